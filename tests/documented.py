"""List the public parameters that no docstring describes, and command-line options without help.

    python tests/documented.py [ROOM ...]

A parameter counts as described if the `Args:` of its function, or the `Args:` or `Attributes:` of
its class, have an entry for it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
MODULES = ("", ".store", ".client", ".tuning", ".metrics", ".plots")
FOLDERS = ("adapters", "scaleout")  # the modules of these that a page of docs/ imports are public
SECTION = re.compile(r"^( *)(?:Args|Attributes):\s*$")
ENTRY = re.compile(r"^( *)(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:")


@dataclass(frozen=True, order=True)
class Parameter:
    """A parameter of a public function; `room` is the package that defines the function."""

    room: str
    function: str
    name: str
    documented: bool

    def __str__(self) -> str:
        return f"{self.room}: {self.function}({self.name})"


def entries(docstring: str | None) -> set[str]:
    """Return the names described in the `Args:` and `Attributes:` sections of a docstring."""
    found: set[str] = set()
    section: int | None = None  # indentation of the open section
    level: int | None = None  # indentation of its entries
    for line in inspect.cleandoc(docstring or "").splitlines():
        if header := SECTION.match(line):
            section, level = len(header[1]), None
        elif section is not None and line.strip():
            depth = len(line) - len(line.lstrip())
            if depth <= section:
                section = None
            elif (entry := ENTRY.match(line)) and level in (None, depth):
                level = depth
                found |= {name.lstrip("*") for name in entry[2].split(", ")}
    return found


def public_modules() -> Iterator[ModuleType]:
    """Import the modules whose names users import."""
    pages = "".join(page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    shown = set(re.findall(rf"from linkstream(\.(?:{'|'.join(FOLDERS)})\.\w+) import", pages))
    for name in (*MODULES, *sorted(shown)):
        yield importlib.import_module(f"linkstream{name}")


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__`, or else the names that the module itself defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def parameters() -> list[Parameter]:
    """Return the parameters of every public function, method and constructor."""
    found: dict[tuple[str, str], Parameter] = {}
    for module in public_modules():
        for name in public_names(module):
            for parameter in parameters_of(getattr(module, name), f"{module.__name__}.{name}"):
                found.setdefault((parameter.function, parameter.name), parameter)
    return sorted(found.values())


def parameters_of(value: Any, title: str) -> Iterator[Parameter]:
    """Yield the parameters of a function, or of the constructor and public methods of a class."""
    if inspect.isfunction(value):
        yield from described(value, title, entries(value.__doc__))
    elif inspect.isclass(value) and not issubclass(value, (Enum, BaseException, tuple)):
        whole = set().union(*(entries(base.__doc__) for base in value.__mro__ if ours(base)))
        whole |= entries(value.__init__.__doc__)
        yield from described(value.__init__, title, whole)
        for name in dir(value):
            if not name.startswith("_"):
                method = inspect.unwrap(getattr(value, name))
                method = getattr(method, "__func__", method)
                if inspect.isfunction(method):
                    yield from described(method, f"{title}.{name}", entries(method.__doc__) | whole)


def ours(value: Any) -> bool:
    """Return whether an object is part of linkstream."""
    return (getattr(value, "__module__", None) or "").split(".")[0] == "linkstream"


def described(function: Any, title: str, names: set[str]) -> Iterator[Parameter]:
    """Yield the parameters of one function of linkstream."""
    if not ours(function):
        return
    room = function.__module__.split(".")[1] if "." in function.__module__ else "linkstream"
    for number, name in enumerate(inspect.signature(function).parameters):
        if not name.startswith("_") and not (number == 0 and name in ("self", "cls")):
            yield Parameter(room, title, name, name in names)


def undocumented() -> list[str]:
    """Return the public parameters without a description."""
    return [str(p) for p in parameters() if not p.documented]


def commands(command: Any, path: str = "linkstream") -> Iterator[tuple[str, Any]]:
    """Yield every command of a click command tree with its path."""
    yield path, command
    if hasattr(command, "list_commands"):
        import click

        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [name])
            yield from commands(found, f"{path} {name}")


def without_help() -> list[str]:
    """Return the options and arguments of the command line that have no help text."""
    import typer

    app = importlib.import_module("linkstream.cli.app").app
    return [
        f"{path}: {parameter.name}"
        for path, command in commands(typer.main.get_command(app))
        for parameter in command.params
        if not getattr(parameter, "hidden", False) and not getattr(parameter, "help", None)
    ]


def main(rooms: list[str]) -> int:
    """Print what is missing; return 1 if anything is."""
    every = [p for p in parameters() if not rooms or p.room in rooms]
    missing = [str(p) for p in every if not p.documented]
    if not rooms or "cli" in rooms:
        missing += [f"cli: {words} has no help" for words in without_help()]
    count = f"{sum(p.documented for p in every)} of {len(every)} parameters are documented"
    sys.stdout.write("\n".join([*missing, count]) + "\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
