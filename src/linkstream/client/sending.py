"""The bodies of requests that add vectors, and the parts in which large batches are sent.

Vectors alone go as raw float32. With payloads or weights they go as a stream of Arrow, in which the
payloads are a column of JSON texts; without pyarrow, as JSON, which takes five times as many bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.client.requests import (
    BINARY,
    JSON,
    Request,
    Rows,
    check_group,
    finite,
    query_of,
)
from linkstream.clusterer.checks import missing_weights
from linkstream.store.blocks import NO_TIME, NOTHING, Attached
from linkstream.store.own_columns import Moments, to_text
from linkstream.store.write_requests import attached_to

try:
    import pyarrow as pa
except ImportError:  # JSON is sent then
    pa = None

ARROW = "application/vnd.apache.arrow.stream"
ROWS_MAX = 65_536  # vectors of a request, unless the service takes fewer
BYTES_MAX = 30 << 20  # of a request: some less than the service takes by default
JSON_MAX = 7 << 20  # of a request in JSON
_KEY_MAX = 200  # characters of a key that a part may extend


@dataclass(frozen=True, eq=False, slots=True)
class Sending:
    """Vectors to send, with what comes with them; checked."""

    rows: Rows
    weights: list[float] | None = None
    attached: Attached = NOTHING

    def part(self, start: int, end: int) -> Sending:
        """Return some of the vectors."""
        weights = None if self.weights is None else self.weights[start:end]
        return Sending(self.rows[start:end], weights, self.attached.part(start, end))

    @property
    def is_plain(self) -> bool:
        """Whether there are only vectors."""
        return self.weights is None and not self.attached.flags

    def n_bytes(self) -> int:
        """Return about how many bytes the body has."""
        lines = (*(self.attached.payloads or ()), *(self.attached.keys or ()))
        texts = sum(map(len, lines)) + 16 * len(lines)
        return self.rows.nbytes * (1 if self.is_plain or pa is not None else 6) + texts

    def pieces(self) -> list[tuple[int, int]]:
        """Return the parts that a service takes by default, as first and last row."""
        most = BYTES_MAX if self.is_plain or pa is not None else JSON_MAX
        n, size = len(self.rows), self.n_bytes()
        count = max(-(-n // ROWS_MAX), -(-size // most), 1)
        step = -(-n // min(count, max(n, 1))) or 1
        return [(start, min(start + step, n)) for start in range(0, n, step)]


def vectors_to_send(
    rows: Rows,
    weight: npt.ArrayLike,
    payloads: Any = None,
    at: Moments | None = None,
    ids: Iterable[str | None] | None = None,
) -> Sending:
    """Check what is sent with vectors; raise ArgumentError as the store would."""
    plain = type(weight) in (int, float) and weight == 1
    weights = None if plain else _weights(weight, rows)
    attached = attached_to(len(rows), payloads, at, ids)
    made = Sending(rows, weights, attached)
    if not made.is_plain and _as_json(rows):  # which cannot hold all numbers
        finite(rows)
    return made


def _as_json(rows: Rows) -> bool:
    return pa is None or len(rows) == 1


def _weights(weight: npt.ArrayLike, rows: Rows) -> list[float]:
    missing_weights(weight, len(rows))  # raises ArgumentError for weights that are not valid
    weights: list[float] = np.broadcast_to(np.asarray(weight, float), len(rows)).tolist()
    return weights


def post_vectors(
    path: str,
    given: Sending,
    headers: dict[str, str],
    *,
    group: str | None = None,
    **query: str,
) -> Request:
    """Make a request that sends vectors."""
    check_group(group)
    asked = query_of({"group": group, **query})
    if given.is_plain:
        body = given.rows.astype("<f4", copy=False).tobytes()
        asked = {"dimension": given.rows.shape[1], **asked}
        return Request("POST", path, asked, headers | {"Content-Type": BINARY}, body)
    if _as_json(given.rows):
        return Request("POST", path, asked, headers | {"Content-Type": JSON}, _json(given))
    return Request("POST", path, asked, headers | {"Content-Type": ARROW}, _arrow(given))


def header_of_part(whole: dict[str, str], start: int, end: int, n: int) -> dict[str, str]:
    """Return the header with the key of a part; a call in one part keeps its key."""
    if (start, end) == (0, n):
        return whole
    return {name: _part_key(key, start, end) for name, key in whole.items()}


def _part_key(key: str, start: int, end: int) -> str:
    if len(key) > _KEY_MAX:
        key = hashlib.sha256(key.encode()).hexdigest()
    return f"{key}:{start}-{end}"


# Bodies


def _json(given: Sending) -> bytes:
    rows: list[Any] = given.rows.tolist()
    parts = [f'{{"vectors":{json.dumps(rows, separators=(",", ":"))}'.encode()]
    weights = given.weights or [1.0] * len(rows)
    parts.append(f'"weights":{json.dumps(weights)}'.encode())
    if given.attached.payloads is not None:
        lines = [line or b"null" for line in given.attached.payloads]
        parts.append(b'"payloads":[' + b",".join(lines) + b"]")
    for name, values in own_values(given.attached).items():
        parts.append(f'"{name}":{json.dumps(values)}'.encode())
    return b",".join(parts) + b"}"


def own_values(attached: Attached) -> dict[str, Any]:
    """Return the times and keys as JSON has them, without those that did not come."""
    found: dict[str, Any] = {}
    if attached.times is not None:
        found["at"] = [to_text(time) for time in attached.times.tolist()]
    if attached.keys is not None:
        found["ids"] = [line.decode() or None for line in attached.keys]
    return found


def _arrow(given: Sending) -> bytes:
    flat = pa.array(given.rows.astype("<f4", copy=False).ravel())
    columns = {"vector": pa.FixedSizeListArray.from_arrays(flat, given.rows.shape[1])}
    if given.attached.payloads is not None:
        texts = pa.array(given.attached.payloads, pa.large_binary())
        columns["payload"] = texts.cast(pa.large_string())
    if given.weights is not None:
        columns["weight"] = pa.array(given.weights, pa.float64())
    if (times := given.attached.times) is not None:
        columns["at"] = pa.array(times, mask=times == NO_TIME)
    if given.attached.keys is not None:
        columns["id"] = pa.array(own_values(given.attached)["ids"], pa.large_string())
    fields = [
        pa.field(name, column.type, metadata=None if name == "vector" else {"linkstream": name})
        for name, column in columns.items()
    ]
    batch = pa.record_batch(list(columns.values()), schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    body: bytes = sink.getvalue().to_pybytes()
    return body
