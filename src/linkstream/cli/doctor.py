"""`linkstream doctor`: what is installed, which engine runs, and whether it answers as it must."""

from __future__ import annotations

import importlib
import platform
import re
import sqlite3
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from linkstream import __version__
from linkstream.cli import screen
from linkstream.cli.options import AsJson
from linkstream.clusterer import Links
from linkstream.errors import EngineUnavailableError, LinkstreamError
from linkstream.scaleout import environment

ENGINES = ("native", "reference")

SELF_CHECK_THRESHOLDS = (0.8, 0.85, 1.0)  # with these every kind of event occurs

# State hash after the vectors of `self_check_vectors`: one answer on every machine and engine.
SELF_CHECK_HASH = "3e47215cc0f1c1e34a237226909002f6f0a64f3c18a0678f807361e941f6e837"

_FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "asimd", "sve")


def doctor(
    as_json: AsJson = False,
) -> None:
    """Say what is installed, which engine runs, and whether it answers right.

    Exit code 1 if the self-check fails.

    Example: linkstream doctor --json
    """
    found = diagnosis()
    if screen.speaks_json(as_json):
        screen.write_json(found)
    else:
        _tell(found)
    if not all(check["passed"] for check in found["self_check"].values()):
        raise typer.Exit(1)


def diagnosis() -> dict[str, Any]:
    """All that `linkstream doctor` knows, as plain values."""
    engines = {name: _engine(name) for name in ENGINES}
    return {
        "versions": {
            "linkstream": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "sqlite": sqlite3.sqlite_version,
            "platform": platform.platform(),
        },
        "engines": engines,
        "cpu": _cpu(),
        "extras": _extras(),
        "spark": _spark(),
        "self_check": {
            name: self_check(name) for name, engine in engines.items() if engine["available"]
        },
    }


def self_check(engine: str) -> dict[str, Any]:
    """Run 100 vectors through an engine and compare the state with the one recorded."""
    links = Links(*SELF_CHECK_THRESHOLDS, engine=engine)
    links.add_many(self_check_vectors())
    seen = links.state_hash()
    return {"passed": seen == SELF_CHECK_HASH, "seen": seen, "expected": SELF_CHECK_HASH}


def self_check_vectors() -> npt.NDArray[np.float64]:
    """A hundred vectors around five centres, of whole numbers from integer arithmetic alone."""
    numbers = _random_integers(1600 + 5 * 16)
    centres = [numbers[16 * i : 16 * (i + 1)] for i in range(5)]
    noise = numbers[5 * 16 :]
    rows = [
        [centre + noise[16 * i + j] * 3 // 5 for j, centre in enumerate(centres[i**3 % 5])]
        for i in range(100)
    ]
    return np.array(rows, dtype=np.float64)


def _random_integers(n: int) -> list[int]:
    """Whole numbers from −512 to 511 by a linear congruence, the same everywhere."""
    state, numbers = 1, []
    for _ in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        numbers.append((state >> 16) % 1024 - 512)
    return numbers


def _engine(name: str) -> dict[str, Any]:
    try:
        Links(0.7, 0.6, 0.9, engine=name)
    except EngineUnavailableError as error:
        return {"available": False, "why": error.seen.rpartition("but ")[2], "build": _build_info()}
    return {"available": True, "build": _build_info() if name == "native" else "Python and NumPy"}


def _build_info() -> str | None:
    """What the compiled core was built with, or None where there is none."""
    try:
        core = importlib.import_module("linkstream._core")
    except ImportError:
        return None
    return f"{core.build_info()}; kernels {', '.join(core.kernels())}"


def _cpu() -> dict[str, Any]:
    """The processor, as far as the system tells without being asked twice."""
    name, features = platform.processor() or platform.machine(), []
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        field, _, value = line.partition(":")
        if field.strip() == "model name":
            name = value.strip()
        elif field.strip() in ("flags", "Features"):
            features = [feature for feature in _FEATURES if feature in value.split()]
            break
    return {"name": name, "features": features}


def _extras() -> dict[str, dict[str, Any]]:
    """Each extra of the package: installed, or what is missing and the line that installs it."""
    needed: dict[str, list[str]] = {}
    for line in _requirements():
        found = re.match(r"([A-Za-z0-9._-]+)[^;]*;.*extra\s*==\s*['\"]([\w-]+)['\"]", line)
        newer_python = "python_version <" in line and sys.version_info >= (3, 11)
        if found and found[1] != "linkstream" and not newer_python:
            needed.setdefault(found[2], []).append(found[1])
    return {extra: _extra(extra, modules) for extra, modules in sorted(needed.items())}


def _spark() -> dict[str, Any]:
    """Whether a session could begin here: the packages, and Java."""
    try:
        environment.check_packages()
        return {"ready": True, "java": environment.check_java(), "why": None}
    except LinkstreamError as error:
        return {"ready": False, "java": None, "why": str(error)}


def _requirements() -> list[str]:
    try:
        return metadata.requires("linkstream") or []
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return []


def _extra(extra: str, modules: list[str]) -> dict[str, Any]:
    versions = {module: _version(module) for module in modules}
    missing = [module for module, version in versions.items() if version is None]
    install = f'pip install "linkstream[{extra}]"' if missing else None
    return {"installed": not missing, "versions": versions, "install": install}


def _version(module: str) -> str | None:
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return None


def _tell(found: dict[str, Any]) -> None:
    console = screen.people(stderr=False)
    rows = screen.table("linkstream doctor", "", "")
    rows.columns[1].justify = "left"
    for name, version in found["versions"].items():
        rows.add_row(name, version)
    cpu = found["cpu"]
    rows.add_row("processor", f"{cpu['name']} ({' '.join(cpu['features']) or 'features unknown'})")
    for name, engine in found["engines"].items():
        build = engine["build"] or "no compiled core"
        words = f"yes: {build}" if engine["available"] else f"no: {engine['why']} ({build})"
        rows.add_row(f"engine {name}", words)
    for extra, state in found["extras"].items():
        rows.add_row(f"extra {extra}", "installed" if state["installed"] else state["install"])
    if found["extras"].get("spark", {}).get("installed"):
        spark = found["spark"]
        rows.add_row("spark", f"ready: {spark['java']}" if spark["ready"] else spark["why"])
    for engine, check in found["self_check"].items():
        words = "passed" if check["passed"] else f"FAILED: {check['seen']}"
        rows.add_row(f"self-check {engine}", words)
    console.print(rows)
