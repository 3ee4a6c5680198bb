"""The vectors' own keys and times: texts and moments that the caller gives with the vectors.

A key is a text, different for each vector of a store. A time is stored as whole microseconds since
1970 in UTC. Both are checked here, in the thread of the caller.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, KeyTakenError, VectorError
from linkstream.store.blocks import NO_TIME, Times
from linkstream.store.payloads import Lines

KEY_MAX = 512  # bytes of UTF-8
PREFIX = "id:"  # before a key where a text may also be a number

# One moment: a datetime or a text of ISO 8601, both with a zone; a datetime64, which is in UTC; or
# seconds since 1970.
Moment: TypeAlias = "datetime | np.datetime64 | str | float"
Moments: TypeAlias = "Moment | Iterable[Moment | None] | npt.NDArray[Any]"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST = -62_135_596_800_000_000  # the year 1
_END = 253_402_300_800_000_000  # the year 10000
_SECONDS_MAX = 10**12  # beyond both; larger numbers may overflow
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?\s?([Zz]|[+-]\d\d(?::?\d\d)?)"
)


# Keys


def check_keys(ids: Iterable[str | None], n: int) -> Lines:
    """Return keys as UTF-8, empty for None; raise ArgumentError unless there is one a vector."""
    listed = isinstance(ids, Iterable) and not isinstance(ids, (str, bytes, dict))
    given = _plain_list(ids) if listed else []
    if not listed or len(given) != n:
        seen = f"{len(given)} keys" if listed else f"ids={ids!r:.80}"
        raise ArgumentError(
            f"{seen} for {n} vectors",
            expected="a list with one for each vector",
            remedy="Use None for a vector without a key.",
        )
    lines = [b"" if key is None else check_key(key, row) for row, key in enumerate(given)]
    _check_different(lines)
    return lines


def _plain_list(values: Any) -> list[Any]:
    """Return a list of an array, a column of Arrow or pandas, or anything to iterate over."""
    for method in ("tolist", "to_pylist"):
        if hasattr(values, method):
            found: list[Any] = getattr(values, method)()
            return found if isinstance(found, list) else [found]
    return list(values)


def check_key(key: object, row: int | None = None) -> bytes:
    """Return a key as UTF-8; raise ArgumentError if it is no usable text."""
    if isinstance(key, str) and not _CONTROL.search(key):
        try:
            line = key.encode()
        except UnicodeEncodeError:
            line = b""
        if 0 < len(line) <= KEY_MAX:
            return line
    shown = f"{key!r:.80}" if isinstance(key, str) else f"a value of type {type(key).__name__}"
    raise VectorError(
        f"the key {shown}" if row is None else f"row {row} has the key {shown}",
        expected=f"a text of 1 to {KEY_MAX} bytes without line breaks and control characters",
        remedy="Pass a ticket number or a file name as text, as id=str(number).",
        row=row,
    )


def _check_different(lines: Lines) -> None:
    """Raise ArgumentError if two vectors of a call have the same key."""
    if len({*lines} - {b""}) == len(lines) - lines.count(b""):
        return
    seen: dict[bytes, int] = {}
    for row, line in enumerate(lines):
        if line and seen.setdefault(line, row) != row:
            raise KeyTakenError(
                f"row {row} has the key {line.decode()!r:.80} of row {seen[line]}",
                expected="a different key for each vector",
                remedy="Leave one of the two vectors out, or give it another key.",
                row=row,
            )


def hash_of(line: bytes) -> int:
    """Return the hash of a key, by which it is indexed; it is not 0."""
    digest = hashlib.blake2b(line, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1


def hashes_of(lines: Lines) -> npt.NDArray[np.int64]:
    """Return the hash of each key; 0 for an empty one."""
    return np.array([hash_of(line) if line else 0 for line in lines], dtype=np.int64)


def reference(words: str) -> int | str:
    """Return the number or the key of a vector that a text stands for.

    Digits are a number; any other text is a key. `id:` before a key makes digits a key.
    """
    if words.isascii() and words.isdecimal():
        return int(words)
    return words.removeprefix(PREFIX)


# Times


def check_times(at: Moments, n: int) -> Times:
    """Return times as microseconds since 1970; one time stands for all vectors."""
    if isinstance(at, (str, datetime, np.generic, int, float)):
        return np.full(n, microseconds(at), dtype=np.int64)
    array = _as_array(at)
    if array is not None:
        times = array
    elif isinstance(at, Iterable) and not isinstance(at, (bytes, dict)):
        given = _plain_list(at)
        times = np.array([microseconds(each, row) for row, each in enumerate(given)], np.int64)
    else:
        raise _no_time(at, None)
    if len(times) != n:
        raise ArgumentError(
            f"{len(times)} times for {n} vectors",
            expected="one time, or a list with one for each vector",
            remedy="Use None for a vector without a time.",
        )
    return times


def _as_array(at: Any) -> Times | None:
    """Return an array of datetime64 in microseconds; None for anything else."""
    if getattr(getattr(at, "dtype", None), "kind", "") != "M" or not hasattr(at, "__array__"):
        return None
    values = np.asarray(at)
    if values.ndim != 1 or values.dtype.kind != "M":
        return None
    coarse: Times = values.astype("datetime64[s]").astype(np.int64)
    outside = ~np.isnat(values) & ((coarse < _FIRST // 10**6) | (coarse >= _END // 10**6))
    if outside.any():
        raise _no_time(values[outside][0], int(np.argmax(outside)))
    times: Times = values.astype("datetime64[us]").astype(np.int64)
    return times


def microseconds(at: object, row: int | None = None) -> int:
    """Return one time as microseconds since 1970; `NO_TIME` for None and NaT."""
    if at is None or (isinstance(at, np.datetime64) and np.isnat(at)) or _is_nat(at):
        return NO_TIME
    found = _parsed(at)
    if found is None or not _FIRST <= found < _END:
        raise _no_time(at, row)
    return found


def _is_nat(at: object) -> bool:
    """Return whether a value is the NaT of pandas, a datetime that is not equal to itself."""
    return isinstance(at, datetime) and at != at


def _parsed(at: object) -> int | None:
    if isinstance(at, str):
        at = _of_text(at)
    if isinstance(at, datetime):
        return None if at.utcoffset() is None else (at - _EPOCH) // timedelta(microseconds=1)
    if isinstance(at, np.datetime64):
        seconds = int(at.astype("datetime64[s]").astype(np.int64))
        near = _FIRST <= seconds * 10**6 < _END
        return int(at.astype("datetime64[us]").astype(np.int64)) if near else None
    if isinstance(at, (int, float, np.integer, np.floating)) and not isinstance(at, bool):
        seconds_ = at.item() if isinstance(at, np.generic) else at
        return round(seconds_ * 1_000_000) if abs(seconds_) < _SECONDS_MAX else None
    return None


def _of_text(text: str) -> datetime | None:
    """Return the time that a text of ISO 8601 with a zone states; None for another text."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        return None
    day, minutes, seconds, fraction, zone = found.groups()
    zone = "+00:00" if zone in "Zz" else zone[:3] + ":" + (zone[3:].lstrip(":") or "00")
    try:
        made = datetime.fromisoformat(f"{day}T{minutes}{seconds or ':00'}{zone}")
    except ValueError:
        return None
    return made.replace(microsecond=int((fraction or "0").ljust(6, "0")[:6]))


def _no_time(at: object, row: int | None) -> VectorError:
    naive = isinstance(at, datetime) and at.utcoffset() is None
    seen = f"{at!r:.80}, which has no zone" if naive else f"{at!r:.80}"
    return VectorError(
        f"at={seen}" if row is None else f"row {row} has the time {seen}",
        expected="a datetime or ISO text with a zone, a datetime64 (UTC), or seconds since 1970, "
        "in the years 1 to 9999",
        remedy="Add the zone, as 2026-01-31T12:00:00Z or datetime.now(timezone.utc).",
        row=row,
    )


def to_datetime(time: int) -> datetime | None:
    """Return a stored time as a datetime in UTC; None if there is none."""
    return None if time == NO_TIME else _EPOCH + timedelta(microseconds=time)


def to_text(time: int) -> str | None:
    """Return a stored time as ISO 8601 in UTC, such as 2026-01-31T12:00:00.5Z; None for none."""
    made = to_datetime(time)
    if made is None:
        return None
    text = made.strftime("%H:%M:%S")
    fraction = f".{made.microsecond:06d}".rstrip("0") if made.microsecond else ""
    return f"{made.date().isoformat()}T{text}{fraction}Z"
