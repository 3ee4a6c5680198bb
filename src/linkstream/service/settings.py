"""How a service is set up: defaults, a TOML file, the environment, flags; later ones win."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from linkstream.errors import ArgumentError, MissingExtraError

TABLE = "service"
PREFIX = "LINKSTREAM_"
ENGINES = ("auto", "native", "reference")

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "B": 1, "KIB": _KIB, "MIB": _MIB, "GIB": _GIB}
_WORDS = dict.fromkeys(("1", "true", "yes", "on"), True)
_WORDS |= dict.fromkeys(("0", "false", "no", "off"), False)
# Variables of other parts of linkstream.
_OTHERS = frozenset(
    PREFIX + name for name in ("CONFIG", "KERNEL", "PURE_PYTHON", "SANITIZE", "TOKEN", "URL")
)
# Kubernetes tells every pod of a service named "linkstream" by such variables where it is.
_ORCHESTRATOR = re.compile(rf"{PREFIX}(SERVICE_(HOST|PORT).*|PORT_\d+_.*)")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")

_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}")
_NAME = re.compile(r"[a-z0-9._-]{1,253}|[0-9a-f:.]{2,45}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that can be set of a service; wrong values are refused as it is made.

    >>> Settings(data="stores", body_max="8 MiB").body_max
    8388608
    """

    data: Path
    """The folder of the stores, one for each namespace."""
    host: str = "127.0.0.1"
    """The address to listen at. Beyond loopback only with a token."""
    port: int = 7777
    """The port; 0 takes any that is free."""
    tokens: Path | None = None
    """The file of tokens; else tokens.json in the data folder."""
    images: Path | None = None
    """A folder of pictures that payloads may point into."""
    allowed_hosts: tuple[str, ...] = ()
    """Names by which the service may be called besides loopback and its own address."""

    body_max: int = 32 * _MIB
    """Bytes of a request."""
    rows_max: int = 65_536
    """Vectors of a request."""
    dimension_max: int = 4_096
    """Numbers of a vector."""
    namespaces_max: int = 256
    """Namespaces in the data folder."""
    name_max: int = 200
    """Letters of the name of a cluster."""

    receive_seconds: float = 20.0
    """By then the head and the body of a request must have come."""
    queue_calls: int = 1_024
    """Requests that may wait at a namespace."""
    queue_bytes: int = 256 * _MIB
    """Bytes that may wait at a namespace."""
    total_bytes: int = 512 * _MIB
    """Bytes that may wait at all namespaces together."""
    connections_max: int = 1_024
    """Connections at a time."""
    event_readers_max: int = 64
    """Of them, those that follow events."""
    idle_seconds: float = 15.0
    """How long a connection may stay open between two requests."""
    stop_seconds: float = 20.0
    """How long requests under way may take when the service stops."""

    threads: int | None = 1
    """Threads of each store's engine; None, or "all" in a file, takes every core."""
    engine: str = "auto"
    """The engine: auto, native or reference."""
    open_metrics: bool = False
    """Whether /metrics is read without a token."""
    demo: bool = False
    """Whether a stream of voices that comes with the package is fed as if live."""

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, kind(name, getattr(self, name)))

    @property
    def token_file(self) -> Path:
        """Where the tokens are."""
        return self.data / "tokens.json" if self.tokens is None else self.tokens

    @classmethod
    def load(
        cls,
        config: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
    ) -> Settings:
        """Settings from everywhere: the table [service] of a TOML file, variables, flags.

        Variables are LINKSTREAM_ and the name in capitals; LINKSTREAM_CONFIG names the file where
        `config` does not. Flags that are None were not given. Paths in the file start at its
        folder.

        Raises:
            ArgumentError: a file that cannot be read, an unknown name, or a value out of place.
        """
        environment = os.environ if environment is None else environment
        config = config or environment.get(PREFIX + "CONFIG")
        given = {} if config is None else _of_file(Path(config))
        given |= _of_environment(environment)
        given |= {name: value for name, value in (flags or {}).items() if value is not None}
        _check_names(given, "the flags", lambda name: f"--{name.replace('_', '-')}")
        if given.get("data") is None:
            raise ArgumentError(
                "no data folder",
                expected="a folder for the stores, one file a namespace",
                remedy=f"Run: linkstream serve DATA, or set {PREFIX}DATA.",
            )
        return cls(**given)


def _of_file(path: Path) -> dict[str, Any]:
    """What the table of a TOML file sets."""
    document = _parsed(path)
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        raise _wrong(f"{path}: {TABLE}", table, "a table", f"Write [{TABLE}] above the settings.")
    strays = [name for name, value in document.items() if not isinstance(value, dict)]
    if strays:
        raise ArgumentError(
            f"{path}: {strays[0]!r} outside of any table",
            expected=f"settings in the table [{TABLE}]",
            remedy=f"Write [{TABLE}] above it.",
        )
    _check_names(table, f"{path}", lambda name: name)
    for name in ("data", "tokens", "images"):
        if isinstance(table.get(name), str) and table[name]:
            table[name] = path.absolute().parent / table[name]
    return table


def _parsed(path: Path) -> dict[str, Any]:
    try:
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
    except ModuleNotFoundError as missing:
        purpose = "A TOML file of settings"
        raise MissingExtraError("tomli", extra="service", purpose=purpose) from missing
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"{str(path)!r} cannot be read ({getattr(error, 'strerror', None) or error})",
            expected=f"a TOML file with a table [{TABLE}]",
            remedy="Correct it, or leave it out.",
        ) from None


def _of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """What variables set. Empty ones are as good as none."""
    ours = {
        name[len(PREFIX) :].lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value and not _of_others(name, value)
    }
    _check_names(ours, "the environment", lambda name: PREFIX + name.upper())
    return ours


def _of_others(name: str, value: str) -> bool:
    if name == PREFIX + "PORT" and _ADDRESS.match(value):
        return True
    return name in _OTHERS or _ORCHESTRATOR.fullmatch(name) is not None


def _check_names(given: Mapping[str, Any], where: str, shown: Callable[[str], str]) -> None:
    known = [field.name for field in fields(Settings)]
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        raise ArgumentError(
            f"{shown(name)!r} in {where}",
            expected=f"one of {', '.join(map(shown, known))}",
            remedy=f"Did you mean {shown(near[0])}?" if near else "Leave it out.",
        )


def _wrong(name: str, value: object, expected: str, remedy: str) -> ArgumentError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    return ArgumentError(f"{name} = {shown}", expected=expected, remedy=remedy)


# What a value may be. Each takes a name and what was given, and answers with what is meant.

Kind = Callable[[str, Any], Any]


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or "\0" in str(value):
        raise _wrong(name, value, "a path", "Write it as text.")
    return Path(value)


def _maybe_path(name: str, value: Any) -> Path | None:
    return None if value is None else _path(name, value)


def _host(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _HOST.fullmatch(value.strip("[]")):
        raise _wrong(
            name, value, "an address or the name of one", "Try 127.0.0.1; no http://, no port."
        )
    return value.strip("[]")


def _hosts(name: str, value: Any) -> tuple[str, ...]:
    hosts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(hosts, list | tuple):
        raise _wrong(name, value, "a list of names of hosts", 'Try ["people.example.org"].')
    for host in hosts:
        if not isinstance(host, str) or not _NAME.fullmatch(host.lower().strip("[]")):
            remedy = "Write each as in people.example.org: no http://, no port, no *."
            raise _wrong(name, host, "the name of a host", remedy)
    return tuple(host.lower().strip("[]") for host in hosts)


def _whole(least: int, most: int, *, bytes_: bool = False) -> Kind:
    units = "|".join(_UNITS) if bytes_ else ""
    pattern = re.compile(rf"([0-9]{{1,15}}) ?({units})", re.IGNORECASE)
    expected = f"a whole number from {least:,} to {most:,}"

    def read(name: str, value: Any) -> int:
        if isinstance(value, str) and (found := pattern.fullmatch(value.strip())):
            value = int(found[1]) * _UNITS[found[2].upper()]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            remedy = "Write it as 33554432 or as 32MiB." if bytes_ else f"Try {least:,} or more."
            raise _wrong(name, value, expected, remedy)
        return value

    return read


def _threads(name: str, value: Any) -> int | None:
    if value is None or value == "all":
        return None
    read: int = _whole(1, 1_024)(name, value)
    return read


def _seconds(name: str, value: Any) -> float:
    try:
        seconds = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = float("nan")
    if not 0.0 < seconds <= 86_400.0:
        raise _wrong(name, value, "seconds, above 0 and at most 86,400", "Try 20.")
    return seconds


def _engine(name: str, value: Any) -> str:
    if value not in ENGINES:
        raise _wrong(name, value, f"one of {', '.join(ENGINES)}", "Try auto.")
    return str(value)


def _switch(name: str, value: Any) -> bool:
    said = _WORDS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise _wrong(name, value, "true or false", "Write one of the two.")
    return said


_BYTES = _whole(1, 1 << 40, bytes_=True)
_COUNT = _whole(1, 1_000_000)
_KINDS: dict[str, Kind] = {
    "data": _path,
    "host": _host,
    "port": _whole(0, 65_535),
    "tokens": _maybe_path,
    "images": _maybe_path,
    "allowed_hosts": _hosts,
    "body_max": _BYTES,
    "rows_max": _COUNT,
    "dimension_max": _COUNT,
    "namespaces_max": _COUNT,
    "name_max": _COUNT,
    "receive_seconds": _seconds,
    "queue_calls": _COUNT,
    "queue_bytes": _BYTES,
    "total_bytes": _BYTES,
    "connections_max": _COUNT,
    "event_readers_max": _COUNT,
    "idle_seconds": _seconds,
    "stop_seconds": _seconds,
    "threads": _threads,
    "engine": _engine,
    "open_metrics": _switch,
    "demo": _switch,
}
