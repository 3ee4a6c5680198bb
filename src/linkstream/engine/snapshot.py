"""Snapshot bytes: arrays and a small header, checksummed, readable without running code.

```text
offset  bytes  what
0       8      magic "LINKSNAP"
8       4      format version, little-endian
12      4      length of the header
16      h      header, JSON: {"meta": {...}, "arrays": [[name, dtype, shape], ...]}; then
               blanks, so that the arrays begin at a multiple of 8
16+h    ...    the arrays, little-endian, C order, one after the other
end−32  32     SHA-256 of all bytes before
```

Reading allocates a small multiple of the file's size: the header is read step by step, unknown
parts and arrays are refused by name before they are read, and shapes are compared with the size of
the file before an array is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import SnapshotError

MAGIC = b"LINKSNAP"
VERSION = 1
DTYPES = {code: np.dtype(code) for code in ("<i4", "<i8", "<f8")}

_ALIGNED = 8
_PREFIX = struct.Struct("<8sII")
_DIGEST_SIZE = hashlib.sha256().digest_size

Arrays = dict[str, npt.NDArray[Any]]


def encode(meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return bytes from which `decode` reads the same header and arrays."""
    stored = {
        name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in stored.items()]
    header = json.dumps({"meta": dict(meta), "arrays": layout}, sort_keys=True).encode()
    header += b" " * (-len(header) % _ALIGNED)
    prefix = _PREFIX.pack(MAGIC, VERSION, len(header))
    body = b"".join([prefix, header, *(array.tobytes() for array in stored.values())])
    return body + hashlib.sha256(body).digest()


def decode(
    data: bytes, *, meta: Collection[str], arrays: Collection[str], views: Collection[str] = ()
) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a snapshot; raise SnapshotError if it is damaged.

    `meta` and `arrays` are the names that are allowed; `views` are the names of arrays to return as
    read-only views of `data` if they are aligned.
    """
    if len(data) < _PREFIX.size + _DIGEST_SIZE:
        raise _damaged(f"{len(data)} bytes", f"at least {_PREFIX.size + _DIGEST_SIZE}")
    magic, version, header_size = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise _damaged(f"a file that begins with {magic!r}", f"{MAGIC!r}")
    if version > VERSION:
        raise SnapshotError(
            f"a snapshot of format version {version}",
            expected=f"version {VERSION} or older",
            remedy="Upgrade linkstream to read it.",
        )
    body = memoryview(data)[:-_DIGEST_SIZE]
    if hashlib.sha256(body).digest() != data[-_DIGEST_SIZE:] or version != VERSION:
        raise _damaged("bytes that do not match their checksum", "an undamaged file")
    payload = body[_PREFIX.size :]
    if header_size > len(payload):
        raise _damaged(f"a header of {header_size} bytes", f"at most {len(payload)}")
    header, layout = _header(bytes(payload[:header_size]), meta, arrays)
    return header, _read_arrays(layout, payload[header_size:], views)


Layout = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\n\r]*")
_ENTRY = re.compile(
    r'\[\s*"(\w{1,40})"\s*,\s*"(<\w\w)"\s*,\s*\[\s*(\d{1,14})\s*(?:,\s*(\d{1,14})\s*)?\]\s*\]',
    re.ASCII,
)


class _Steps:
    """A JSON text read step by step: the caller checks each name before its value is read."""

    def __init__(self, text: str) -> None:
        self.text, self.offset = text, 0

    def peek(self) -> str:
        """Return the next character that is not blank; an empty string at the end."""
        found = _BLANKS.match(self.text, self.offset)
        self.offset = self.offset if found is None else found.end()
        return self.text[self.offset : self.offset + 1]

    def take(self, wanted: str) -> str:
        """Consume the next character; raise ValueError if it is not one of those wanted."""
        found = self.peek()
        if not found or found not in wanted:
            raise ValueError(f"{found!r} instead of one of {wanted!r}")
        self.offset += 1
        return found

    def value(self) -> Any:
        """Read one value."""
        self.peek()
        value, self.offset = _DECODER.raw_decode(self.text, self.offset)
        return value

    def members(self) -> Iterator[str]:
        """Yield the names in an object; the caller reads the value after each."""
        self.take("{")
        end = "" if self.peek() != "}" else self.take("}")
        while not end or end == ",":
            if self.peek() != '"':
                raise ValueError("a member without a name")
            name: str = self.value()
            self.take(":")
            yield name
            end = self.take(",}")

    def entries(self) -> Iterator[None]:
        """Yield once for each entry of a list; the caller reads the entry."""
        self.take("[")
        end = "" if self.peek() != "]" else self.take("]")
        while not end or end == ",":
            yield
            end = self.take(",]")


def _header(
    raw: bytes, meta: Collection[str], arrays: Collection[str]
) -> tuple[dict[str, Any], Layout]:
    parts: dict[str, Any] = {}
    try:
        steps = _Steps(raw.decode())
        for name in steps.members():
            if name in parts or name not in ("meta", "arrays"):
                raise _damaged(f"a header with {name!r:.60}", "meta and arrays, each once")
            parts[name] = _meta(steps, meta) if name == "meta" else _layout(steps, arrays)
        if steps.peek():
            raise ValueError("text beyond the end")
    except (ValueError, RecursionError):
        raise _damaged("a header that is not JSON", "a JSON object") from None
    if len(parts) != 2:
        raise _damaged("a header without its two parts", "meta and arrays")
    return parts["meta"], parts["arrays"]


def _meta(steps: _Steps, known: Collection[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in steps.members():
        if name in found or name not in known:
            raise _damaged(f"a header that tells of {name!r:.60}", f"{', '.join(known)}, each once")
        found[name] = steps.value()
    return found


def _layout(steps: _Steps, known: Collection[str]) -> Layout:
    """Return the types and shapes of the arrays by name; refuse an unknown name at once."""
    found: Layout = {}
    for _ in steps.entries():
        steps.peek()
        entry = _ENTRY.match(steps.text, steps.offset)
        if entry is None or entry[2] not in DTYPES:
            seen = steps.text[steps.offset : steps.offset + 60]
            raise _damaged(f"an array described as {seen!a}", "name, dtype and shape")
        name, dtype, *shape = entry.groups()
        if name in found or name not in known:
            raise _damaged(f"an array {name!r}", f"{', '.join(known)}, each once")
        found[name] = DTYPES[dtype], tuple(int(n) for n in shape if n is not None)
        steps.offset = entry.end()
    return found


def _read_arrays(layout: Layout, payload: memoryview, views: Collection[str]) -> Arrays:
    arrays: Arrays = {}
    offset = 0
    for name, (dtype, shape) in layout.items():
        size = math.prod(shape) * dtype.itemsize
        if offset + size > len(payload):
            raise _damaged(f"array {name!r} of shape {shape}", "arrays that fit the file")
        flat = np.frombuffer(payload, dtype=dtype, count=math.prod(shape), offset=offset)
        copied = name not in views or not flat.flags.aligned
        arrays[name] = flat.reshape(shape).astype(dtype.newbyteorder("="), copy=copied)
        offset += size
    if offset != len(payload):
        raise _damaged(f"{len(payload) - offset} bytes beyond the arrays", "none")
    return arrays


def _damaged(seen: str, expected: str) -> SnapshotError:
    remedy = "The file is damaged or is not a linkstream snapshot; use a backup."
    return SnapshotError(seen, expected=expected, remedy=remedy)
