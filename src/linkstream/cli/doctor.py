"""`linkstream doctor`: what is installed, which engine runs, and whether it works."""

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
from linkstream.clusterer import Links
from linkstream.errors import EngineUnavailableError, LinkstreamError
from linkstream.scaleout import environment

ENGINES = ("native", "reference")

SELF_CHECK_THRESHOLDS = (0.8, 0.85, 1.0)  # every kind of event occurs

# State hash after adding `self_check_vectors`, the same on every machine and engine.
SELF_CHECK_HASH = "3e47215cc0f1c1e34a237226909002f6f0a64f3c18a0678f807361e941f6e837"

_FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "asimd", "sve")


def doctor() -> None:
    """Show what is installed, which engine runs, and whether it works.

    The exit code is 1 if the self-check fails.

    Example: linkstream doctor --json
    """
    found = diagnosis()
    if not screen.wrote_json([found]):
        _show(found)
    if not all(check["passed"] for check in found["self_check"].values()):
        raise typer.Exit(1)


def diagnosis() -> dict[str, Any]:
    """Return the report of `linkstream doctor` as plain values."""
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
    """Add 100 vectors with an engine and compare the state with the recorded one."""
    links = Links(*SELF_CHECK_THRESHOLDS, engine=engine)
    links.add_many(self_check_vectors())
    seen = links.state_hash()
    return {"passed": seen == SELF_CHECK_HASH, "seen": seen, "expected": SELF_CHECK_HASH}


def self_check_vectors() -> npt.NDArray[np.float64]:
    """Return 100 vectors of whole numbers around five centres, from integer arithmetic alone."""
    numbers = _random_integers(1600 + 5 * 16)
    centres = [numbers[16 * i : 16 * (i + 1)] for i in range(5)]
    noise = numbers[5 * 16 :]
    rows = [
        [centre + noise[16 * i + j] * 3 // 5 for j, centre in enumerate(centres[i**3 % 5])]
        for i in range(100)
    ]
    return np.array(rows, dtype=np.float64)


def _random_integers(n: int) -> list[int]:
    """Return integers from −512 to 511 by a linear congruential generator."""
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
    """Return the compiler and kernels of the compiled core, or None if there is none."""
    try:
        core = importlib.import_module("linkstream._core")
    except ImportError:
        return None
    return f"{core.build_info()}; kernels {', '.join(core.kernels())}"


def _cpu() -> dict[str, Any]:
    """Return the name and features of the processor, as far as they are known."""
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
    """Return the state of each extra of the package, with the line that installs it."""
    needed: dict[str, list[str]] = {}
    for line in _requirements():
        found = re.match(r"([A-Za-z0-9._-]+)[^;]*;.*extra\s*==\s*['\"]([\w-]+)['\"]", line)
        newer_python = "python_version <" in line and sys.version_info >= (3, 11)
        if found and found[1] != "linkstream" and not newer_python:
            needed.setdefault(found[2], []).append(found[1])
    return {extra: _extra(extra, modules) for extra, modules in sorted(needed.items())}


def _spark() -> dict[str, Any]:
    """Return whether Spark could run here: the packages, and Java."""
    try:
        environment.check_packages()
        return {"ready": True, "java": environment.check_java(), "why": None}
    except LinkstreamError as error:
        return {"ready": False, "java": None, "why": str(error)}


def _requirements() -> list[str]:
    try:
        return metadata.requires("linkstream") or []
    except metadata.PackageNotFoundError:  # a checkout that was never installed
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


def _show(found: dict[str, Any]) -> None:
    console = screen.console()
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
