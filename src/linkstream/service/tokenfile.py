"""The token file: validated when read, replaced as a whole, readable by its owner only."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

from linkstream.errors import ArgumentError
from linkstream.io.writing import atomic_file

ALL = "*"  # every namespace, and the service itself
SCOPES = ("read", "write", "admin")  # each includes those before it
NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)
BYTES_MAX = 4 << 20
LABEL_MAX = 200
NAMES_MAX = 1_024  # namespaces per token

_FORMAT, _VERSION = "linkstream-tokens", 1
_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_LAST = datetime(9999, 1, 1, tzinfo=timezone.utc).timestamp()
_KEYS = ("id", "sha256", "label", "scopes", "created", "expires")


@dataclass(frozen=True, slots=True)
class Token:
    """One token as stored in the file, without its secret. Times are seconds since 1970, UTC."""

    id: str
    sha256: str = field(repr=False)
    label: str
    scopes: Mapping[str, str]
    created: float
    expires: float | None

    def __post_init__(self) -> None:
        _check(_is_text(self.id, _ID), "id", self.id, "12 hexadecimal digits")
        _check(_is_text(self.sha256, _SHA256), "sha256", "…", "64 hexadecimal digits")
        _check(
            _is_label(self.label), "label", self.label, f"a text of at most {LABEL_MAX} characters"
        )
        check_scopes(self.scopes)
        _check(_is_time(self.created), "created", self.created, "a time")
        right = self.expires is None or _is_time(self.expires)
        _check(right, "expires", self.expires, "a time before the year 9999")

    def ended(self, now: float) -> bool:
        """Return whether the token has expired."""
        return self.expires is not None and now >= self.expires

    def to_dict(self) -> dict[str, Any]:
        """Return the token as plain values, without its hash."""
        return {
            "id": self.id,
            "label": self.label,
            "scopes": dict(self.scopes),
            "created": written_time(self.created),
            "expires": None if self.expires is None else written_time(self.expires),
        }


def check_scopes(scopes: object) -> None:
    """Raise ArgumentError unless this is a map from namespaces to scopes."""
    expected = f"one of {', '.join(SCOPES)} for each namespace, or for {ALL}"
    right = isinstance(scopes, Mapping) and 0 < len(scopes) <= NAMES_MAX
    _check(right, "scopes", scopes, expected)
    if not isinstance(scopes, Mapping):
        return
    for name, scope in scopes.items():
        named = name == ALL or _is_text(name, NAMESPACE)
        _check(
            named,
            "namespace",
            name,
            "1 to 63 of a–z, 0–9, _ and -, the first a letter or a digit, or *",
        )
        _check(isinstance(scope, str) and scope in SCOPES, f"scope of {name!r}", scope, expected)


def written_time(seconds: float) -> str:
    """Format a time as in the file: UTC, to the second."""
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime(_TIME)


def mark(path: Path) -> object:
    """Return a value that changes with the file; None if there is no file."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return "a link to nowhere" if path.is_symlink() else None
    except OSError as error:
        return error.errno
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def read(path: Path) -> list[Token]:
    """Read all tokens of a file; an empty list if there is no file.

    Raises:
        ArgumentError: the file cannot be read, is not a token file, or others may write to it.
    """
    if mark(path) is None:
        return []
    try:
        data = _bytes(path)
        document = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
        return _tokens(document)
    except ArgumentError as error:
        raise _damaged(path, error.seen, f"{error.expected}") from None
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _damaged(path, why, "a file written by linkstream token") from None


def write(path: Path, tokens: list[Token]) -> None:
    """Replace the file; only its owner may read it."""
    records = [token.to_dict() | {"sha256": token.sha256} for token in tokens]
    document = {"format": _FORMAT, "version": _VERSION, "tokens": records}
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if len(text) > BYTES_MAX:
        seen = f"{len(tokens):,} tokens, which take {len(text):,} bytes"
        remedy = "Revoke some; see linkstream token list."
        raise ArgumentError(seen, expected=f"at most {BYTES_MAX:,} bytes", remedy=remedy)
    with atomic_file(path, "w") as stream:
        if os.name != "nt":
            os.fchmod(stream.fileno(), 0o600)
            _leave_to_owner(path, stream.fileno())
        stream.write(text)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file against other writers inside the block: no revocation may be lost."""
    if os.name == "nt":  # Windows does not open folders
        yield
        return
    import fcntl

    folder = Path(os.path.realpath(path)).parent
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        seen = f"{str(folder)!r} cannot be opened ({error.strerror})"
        remedy = "Make it first."
        raise ArgumentError(seen, expected="a folder for the token file", remedy=remedy) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _leave_to_owner(path: Path, handle: int) -> None:
    """Give a file written by root to the owner of the old file or of the folder."""
    if os.geteuid() != 0:
        return
    real = Path(os.path.realpath(path))
    state = real.stat() if real.exists() else real.parent.stat()
    os.fchown(handle, state.st_uid, state.st_gid)


def _bytes(path: Path) -> bytes:
    # Non-blocking, in case the path is a pipe.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with open(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ValueError("not a regular file")
        if os.name != "nt" and state.st_mode & 0o022:
            seen = f"mode {stat.S_IMODE(state.st_mode):o}, so others may write to it"
            expected = "a file that its owner alone may write to (chmod 600)"
            raise ArgumentError(seen, expected=expected, remedy="")
        data = file.read(BYTES_MAX + 1)
    if len(data) > BYTES_MAX:
        raise ValueError(f"more than {BYTES_MAX:,} bytes")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("duplicate key")
    return made


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _tokens(document: Any) -> list[Token]:
    right = isinstance(document, dict) and set(document) == {"format", "version", "tokens"}
    if not right or document["format"] != _FORMAT or not isinstance(document["tokens"], list):
        raise ValueError("not a list of tokens")
    # A newer version may restrict tokens in ways that this version does not know.
    if type(document["version"]) is not int or document["version"] != _VERSION:
        raise ValueError(f"version {str(document['version'])[:20]!r}")
    tokens = [_token(record) for record in document["tokens"]]
    if len({token.id for token in tokens}) != len(tokens):
        raise ValueError("duplicate ID")
    return tokens


def _token(record: Any) -> Token:
    if not isinstance(record, dict) or set(record) != set(_KEYS):
        raise ValueError(f"a token with other keys than {', '.join(_KEYS)}")
    ends = record["expires"]
    return Token(
        id=record["id"],
        sha256=record["sha256"],
        label=record["label"],
        scopes=record["scopes"],
        created=_read_time(record["created"]),
        expires=None if ends is None else _read_time(ends),
    )


def _read_time(text: Any) -> float:
    if not isinstance(text, str) or len(text) > 30:
        raise ValueError("a time that is not a text")
    return datetime.strptime(text, _TIME).replace(tzinfo=timezone.utc).timestamp()


def _is_text(value: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_label(value: object) -> bool:
    if not isinstance(value, str) or len(value) > LABEL_MAX:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_time(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value <= _LAST


def _check(right: bool, name: str, seen: object, expected: str) -> None:
    if not right:
        shown = repr(seen)
        shown = shown if len(shown) <= 80 else shown[:79] + "…"
        raise ArgumentError(f"{name} {shown}", expected=expected, remedy="Correct the value.")


def _damaged(path: Path, why: str, expected: str) -> ArgumentError:
    return ArgumentError(
        f"the token file {str(path)!r} cannot be used ({why})",
        expected=expected,
        remedy="Restore a copy, or move the file away and make new tokens; until then all calls "
        "are refused.",
    )
