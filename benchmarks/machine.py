"""The machine of a run, and the memory of this process."""

from __future__ import annotations

import os
import platform
import resource
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

MIB, GIB = 2.0**20, 2.0**30
PACKAGES = (
    "linkstream",
    "numpy",
    "linkscluster",
    "faiss-cpu",
    "hnswlib",
    "usearch",
    "river",
    "scikit-learn",
)


def describe(kernel: str) -> dict[str, object]:
    """Return processor, cores, memory, system and versions."""
    return {
        "processor": processor(),
        "cores": usable_cores(),
        "memory_gib": round(memory_bytes() / GIB),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "kernel": kernel,
        "versions": {name: installed(name) for name in PACKAGES},
    }


def processor() -> str:
    """Return the name of the processor, with family, model and stepping if known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or "unknown"
    fields = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    numbers = [fields.get(name, "?") for name in ("cpu family", "model", "stepping")]
    name = fields.get("model name", "unknown")
    return f"{name}, family {numbers[0]}, model {numbers[1]}, stepping {numbers[2]}"


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


def memory_bytes() -> float:
    """Return the memory of the machine in bytes; 0 if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError):
        return 0.0


def installed(name: str) -> str:
    """Return the version of a package, or "not installed"."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def resident() -> float:
    """Return the resident memory of this process in bytes (the peak, if only that is known)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_resident()
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def peak_resident() -> float:
    """Return the peak resident memory of this process in bytes."""
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def busy_seconds() -> float:
    """Return the processor time of all processes of the machine; 0 if unknown."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
