"""Snapshot bytes: arrays and a small header, checksummed, readable without running code.

```text
offset  bytes  what
0       8      magic "LINKSNAP"
8       4      format version, little-endian
12      4      length of the header
16      h      header, JSON: {"meta": {...}, "arrays": [[name, dtype, shape], ...]}
16+h    ...    the arrays, little-endian, C order, one after the other
end−32  32     SHA-256 of all bytes before
```

Reading allocates no more than the file's own size: shapes are compared with the bytes that are
there before any array is made.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import SnapshotError

MAGIC = b"LINKSNAP"
VERSION = 1
DTYPES = {code: np.dtype(code) for code in ("<i4", "<i8", "<f8")}

_PREFIX = struct.Struct("<8sII")
_DIGEST_SIZE = hashlib.sha256().digest_size

Arrays = dict[str, npt.NDArray[Any]]


def encode(meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Bytes that `decode` gives back as the same header and arrays."""
    stored = {name: _little_endian(array) for name, array in arrays.items()}
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in stored.items()]
    header = json.dumps({"meta": dict(meta), "arrays": layout}, sort_keys=True).encode()
    body = b"".join(
        [
            _PREFIX.pack(MAGIC, VERSION, len(header)),
            header,
            *(array.tobytes() for array in stored.values()),
        ]
    )
    return body + hashlib.sha256(body).digest()


def decode(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a snapshot, or SnapshotError."""
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
    header = _header(bytes(payload[:header_size]))
    return header["meta"], _read_arrays(header["arrays"], payload[header_size:])


def _header(raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        raise _damaged("a header that is not JSON", "a JSON object") from None
    if not isinstance(header, dict) or set(header) != {"meta", "arrays"}:
        raise _damaged("a header without its two parts", "meta and arrays")
    if not isinstance(header["meta"], dict) or not isinstance(header["arrays"], list):
        raise _damaged("a header of another shape", "an object and a list")
    return header


def _read_arrays(layout: list[Any], payload: memoryview) -> Arrays:
    arrays: Arrays = {}
    place = 0
    for entry in layout:
        name, dtype, shape = _layout_entry(entry)
        size = math.prod(shape) * dtype.itemsize
        if place + size > len(payload) or name in arrays:
            raise _damaged(
                f"array {name!r} of shape {shape}", "arrays that fit the file, each once"
            )
        flat = np.frombuffer(payload, dtype=dtype, count=math.prod(shape), offset=place)
        arrays[name] = flat.reshape(shape).astype(dtype.newbyteorder("="))
        place += size
    if place != len(payload):
        raise _damaged(f"{len(payload) - place} bytes beyond the arrays", "none")
    return arrays


def _layout_entry(entry: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    match entry:
        case [str(name), str(dtype), [*shape]] if (
            dtype in DTYPES
            and len(shape) in (1, 2)
            and all(type(n) is int and 0 <= n < 2**48 for n in shape)
        ):
            return name, DTYPES[dtype], tuple(shape)
    raise _damaged(f"an array described as {entry!r:.80}", "name, dtype and shape")


def _little_endian(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _damaged(seen: str, expected: str) -> SnapshotError:
    return SnapshotError(
        seen,
        expected=expected,
        remedy="The file is damaged or is not a linkstream snapshot; use a backup.",
    )
