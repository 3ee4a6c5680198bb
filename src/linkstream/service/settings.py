"""Settings of a service: defaults, a TOML file, the environment, flags; later ones win."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
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
_FOREIGN = frozenset(
    PREFIX + name for name in ("CONFIG", "KERNEL", "PURE_PYTHON", "SANITIZE", "TOKEN", "URL")
)
# Kubernetes sets such variables in every pod for a service named "linkstream".
_ORCHESTRATOR = re.compile(rf"{PREFIX}(SERVICE_(HOST|PORT).*|PORT_\d+_.*)")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")

_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}")
_NAME = re.compile(r"[a-z0-9._-]{1,253}|[0-9a-f:.]{2,45}")


def _wrong(name: str, value: object, expected: str, remedy: str) -> ArgumentError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    return ArgumentError(f"{name} = {shown}", expected=expected, remedy=remedy)


# Validators: each takes a name and a value, and returns the value of the setting.

Validator = Callable[[str, Any], Any]


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or "\0" in str(value):
        raise _wrong(name, value, "a path", "Write the path as text.")
    return Path(value)


def _maybe_path(name: str, value: Any) -> Path | None:
    return None if value is None else _path(name, value)


def _host(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _HOST.fullmatch(value.strip("[]")):
        raise _wrong(
            name, value, "an address or a host name", "Try 127.0.0.1, without http:// and port."
        )
    return value.strip("[]")


def _hosts(name: str, value: Any) -> tuple[str, ...]:
    hosts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(hosts, list | tuple):
        raise _wrong(name, value, "a list of host names", 'Try ["people.example.org"].')
    for host in hosts:
        if not isinstance(host, str) or not _NAME.fullmatch(host.lower().strip("[]")):
            remedy = "Write people.example.org, without http://, port and *."
            raise _wrong(name, host, "a host name", remedy)
    return tuple(host.lower().strip("[]") for host in hosts)


def _whole(least: int, most: int, *, bytes_: bool = False) -> Validator:
    units = "|".join(_UNITS) if bytes_ else ""
    pattern = re.compile(rf"([0-9]{{1,15}}) ?({units})", re.IGNORECASE)
    expected = f"a whole number from {least:,} to {most:,}"

    def read(name: str, value: Any) -> int:
        if isinstance(value, str) and (found := pattern.fullmatch(value.strip())):
            value = int(found[1]) * _UNITS[found[2].upper()]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            remedy = "Write 33554432 or 32MiB." if bytes_ else f"Try {least:,} or more."
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
        raise _wrong(name, value, "seconds above 0, at most 86,400", "Try 20.")
    return seconds


def _engine(name: str, value: Any) -> str:
    if value not in ENGINES:
        raise _wrong(name, value, f"one of {', '.join(ENGINES)}", "Try auto.")
    return str(value)


def _switch(name: str, value: Any) -> bool:
    flag = _WORDS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise _wrong(name, value, "true or false", "Write true or false.")
    return flag


_BYTES = _whole(1, 1 << 40, bytes_=True)
_COUNT = _whole(1, 1_000_000)


def _setting(validate: Validator, default: Any = MISSING) -> Any:
    return field(default=default, metadata={"validate": validate})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a service; wrong values are refused.

    >>> Settings(data="stores", body_max="8 MiB").body_max
    8388608

    Args:
        data: folder of the stores, one file for each namespace.
        host: address to listen at; other than loopback only with a token.
        port: port to listen at; 0 takes a free one.
        tokens: token file; None for tokens.json in the data folder.
        images: folder of pictures that payloads refer to.
        allowed_hosts: host names of the service besides loopback and `host`.
        body_max: most bytes in a request.
        rows_max: most vectors in a request.
        dimension_max: largest dimension of a vector.
        namespaces_max: most namespaces in the data folder.
        name_max: most characters in the name of a cluster.
        receive_seconds: seconds for a whole request to arrive.
        queue_calls: most requests that wait at a namespace.
        queue_bytes: most bytes that wait at a namespace.
        total_bytes: most bytes that wait at all namespaces.
        slow_threads: most slow reads that run at a time, such as reviews, the map, settle.
        slow_calls: most slow reads that wait; a namespace may have half of them.
        slow_bytes: most memory for all slow reads together, by estimate.
        connections_max: most connections at a time.
        event_readers_max: most connections that follow events.
        recordings_max: most recordings of speech in memory, see http-api.md.
        recording_idle_seconds: seconds after which an unused recording leaves the memory.
        upload_max: most bytes of a file that is uploaded in pieces.
        uploads_max: most uploads at a time.
        upload_idle_seconds: seconds after which an unused upload is removed.
        idle_seconds: seconds that a connection may stay open between two requests.
        stop_seconds: seconds from the signal to stop until the process has ended.
        threads: threads of each store's engine; None, or "all" in a file, for every core.
        engine: "auto", "native" or "reference".
        open_metrics: whether /metrics needs no token.
        demo: whether to feed the voices that come with the package.
    """

    data: Path = _setting(_path)  # noqa: RUF009
    host: str = _setting(_host, "127.0.0.1")
    port: int = _setting(_whole(0, 65_535), 7777)
    tokens: Path | None = _setting(_maybe_path, None)  # noqa: RUF009
    images: Path | None = _setting(_maybe_path, None)  # noqa: RUF009
    allowed_hosts: tuple[str, ...] = _setting(_hosts, ())
    body_max: int = _setting(_BYTES, 32 * _MIB)
    rows_max: int = _setting(_COUNT, 65_536)
    dimension_max: int = _setting(_COUNT, 4_096)
    namespaces_max: int = _setting(_COUNT, 256)
    name_max: int = _setting(_COUNT, 200)
    receive_seconds: float = _setting(_seconds, 20.0)
    queue_calls: int = _setting(_COUNT, 1_024)
    queue_bytes: int = _setting(_BYTES, 256 * _MIB)
    total_bytes: int = _setting(_BYTES, 512 * _MIB)
    slow_threads: int = _setting(_whole(1, 1_024), 2)
    slow_calls: int = _setting(_COUNT, 64)
    slow_bytes: int = _setting(_BYTES, 2 * _GIB)
    connections_max: int = _setting(_COUNT, 1_024)
    event_readers_max: int = _setting(_COUNT, 64)
    recordings_max: int = _setting(_COUNT, 256)
    recording_idle_seconds: float = _setting(_seconds, 900.0)
    upload_max: int = _setting(_BYTES, 4 * _GIB)
    uploads_max: int = _setting(_COUNT, 16)
    upload_idle_seconds: float = _setting(_seconds, 3_600.0)
    idle_seconds: float = _setting(_seconds, 15.0)
    stop_seconds: float = _setting(_seconds, 20.0)
    threads: int | None = _setting(_threads, 1)
    engine: str = _setting(_engine, "auto")
    open_metrics: bool = _setting(_switch, False)
    demo: bool = _setting(_switch, False)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = each.metadata["validate"](each.name, getattr(self, each.name))
            object.__setattr__(self, each.name, value)

    @property
    def token_file(self) -> Path:
        """The path of the token file."""
        return self.data / "tokens.json" if self.tokens is None else self.tokens

    @classmethod
    def load(
        cls,
        config: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
    ) -> Settings:
        """Load settings from the table [service] of a TOML file, variables and flags.

        Args:
            config: the TOML file; None for the file of LINKSTREAM_CONFIG, if set. Relative paths
                in the file start at its folder.
            environment: variables such as LINKSTREAM_PORT; None for those of the process.
            flags: values by name; None means that a flag was not given.

        Raises:
            ArgumentError: the file cannot be read, a name is unknown, or a value is wrong.
        """
        environment = os.environ if environment is None else environment
        config = config or environment.get(PREFIX + "CONFIG")
        given = {} if config is None else _from_file(Path(config))
        given |= _from_environment(environment)
        given |= {name: value for name, value in (flags or {}).items() if value is not None}
        _check_names(given, "the flags", lambda name: f"--{name.replace('_', '-')}")
        if given.get("data") is None:
            remedy = f"Run: linkstream serve DATA, or set {PREFIX}DATA."
            raise ArgumentError("no data folder", expected="a folder for the stores", remedy=remedy)
        return cls(**given)


def _from_file(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file."""
    document = _parsed(path)
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        raise _wrong(f"{path}: {TABLE}", table, "a table", f"Write [{TABLE}] above the settings.")
    strays = [name for name, value in document.items() if not isinstance(value, dict)]
    if strays:
        seen = f"{path}: {strays[0]!r} outside of any table"
        remedy = f"Write [{TABLE}] above it."
        raise ArgumentError(seen, expected=f"settings in the table [{TABLE}]", remedy=remedy)
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
            remedy="Correct the file, or leave it out.",
        ) from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in variables; empty ones are ignored."""
    ours = {
        name[len(PREFIX) :].lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value and not _is_foreign(name, value)
    }
    _check_names(ours, "the environment", lambda name: PREFIX + name.upper())
    return ours


def _is_foreign(name: str, value: str) -> bool:
    if name == PREFIX + "PORT" and _ADDRESS.match(value):
        return True
    return name in _FOREIGN or _ORCHESTRATOR.fullmatch(name) is not None


def _check_names(given: Mapping[str, Any], where: str, shown: Callable[[str], str]) -> None:
    known = [each.name for each in fields(Settings)]
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        seen = f"{shown(name)!r} in {where}"
        remedy = f"Did you mean {shown(near[0])}?" if near else "Leave it out."
        raise ArgumentError(seen, expected=f"one of {', '.join(map(shown, known))}", remedy=remedy)
