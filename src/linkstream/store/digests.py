"""Digests: whether a call that comes again under its idempotency key is the same call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkstream.store.blocks import Attached
from linkstream.store.journal import Operation, Rows
from linkstream.store.payloads import value_of

_SIZE = 32  # bytes of SHA-256


def digest(rows: Rows | None, attached: Attached, named: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of the vectors, then that of what came with them.

    `named` are the arguments that are keys of vectors; the journal has their numbers instead.
    """
    return _of_rows(rows, _shape(rows)) + _of_columns(attached, named)


def same(
    rows: Rows | None,
    attached: Attached,
    named: Mapping[str, Any],
    found: Operation,
    stored: Callable[[], Attached],
) -> bool:
    """Return whether vectors and columns are those of an earlier call.

    If the texts of payloads differ, their values are compared: the order of fields does not matter.
    `stored` returns what came with the earlier call.
    """
    if found.digest is None or digest(rows, attached, named) == found.digest:
        return found.digest is not None
    if len(found.digest) == _SIZE:
        return _of_format_1(rows, attached) == found.digest
    if found.digest[:_SIZE] != _of_rows(rows, _shape(rows)) or found.attached != attached.flags:
        return False
    if attached.payloads is None:  # nothing that may be written in two ways
        return False
    return _values(attached) == _values(stored())


def _of_rows(rows: Rows | None, shape: bytes) -> bytes:
    sha = hashlib.sha256(b"" if rows is None else np.ascontiguousarray(rows, dtype="<f4").data)
    sha.update(shape)
    return sha.digest()


def _shape(rows: Rows | None) -> bytes:
    return json.dumps(None if rows is None else rows.shape).encode()


def _of_columns(attached: Attached, named: Mapping[str, Any]) -> bytes:
    sha = hashlib.sha256(json.dumps(dict(named), sort_keys=True).encode() if named else b"")
    for table, entries in attached.columns():
        body = entries.tobytes() if isinstance(entries, np.ndarray) else b"\n".join(entries)
        sha.update(f"{table} {len(body)}\n".encode())
        sha.update(body)
    return sha.digest()


def _of_format_1(rows: Rows | None, attached: Attached) -> bytes | None:
    """Return the digest as format 1 has it, for vectors and payloads alone."""
    if attached.times is not None or attached.keys is not None:
        return None
    shape = None if rows is None else rows.shape
    return _of_rows(rows, json.dumps([shape, _payloads(attached)], sort_keys=True).encode())


def _values(attached: Attached) -> str:
    times = None if attached.times is None else attached.times.tolist()
    keys = None if attached.keys is None else [key.decode() for key in attached.keys]
    return json.dumps([_payloads(attached), times, keys], sort_keys=True)


def _payloads(attached: Attached) -> list[Any] | None:
    lines = attached.payloads
    return None if lines is None else [value_of(line) for line in lines]
