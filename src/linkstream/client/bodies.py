"""Bodies: vectors on their way to the service; bytes where they come alone, JSON with the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.client.asking import BINARY, JSON, Request, encoded, key_header, plain_query
from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError
from linkstream.identity.weights import lights

Rows = npt.NDArray[np.float32]


def rows_of(X: npt.ArrayLike) -> Rows:
    """Rows of float32, as `Links` would take them; VectorError before anything is sent."""
    return door.vectors(X, dimension=None)


def row_of(x: npt.ArrayLike) -> Rows:
    """One vector, as a block of one row."""
    return door.vector(x, dimension=None)


def finite(rows: Rows) -> Rows:
    """Rows that JSON can hold; VectorError for others, as the service would say it."""
    door.check_norms(rows, norms(rows.astype(np.float64)))
    return rows


def sending(
    path: str,
    rows: Rows,
    *,
    idempotency_key: str | None = None,
    write: bool = True,
    weight: npt.ArrayLike = 1.0,
    payloads: Iterable[Any] | None = None,
    **names: str | None,
) -> Request:
    """A request that brings rows of vectors; `names` are texts that go with all of them."""
    headers = {"Accept": BINARY} | (key_header(idempotency_key) if write else {})
    for name, said in names.items():
        _check_text(name, said)
    full = _is_full(weight)
    if payloads is None and full:
        return raw(path, rows, headers, **names)
    values: dict[str, Any] = {name: said for name, said in names.items() if said is not None}
    if payloads is not None:
        values["payloads"] = _listed(payloads)
    if not full:
        values["weights"] = _weights(weight, len(rows))
    values["vectors"] = finite(rows).tolist()
    return Request("POST", path, {}, headers | {"Content-Type": JSON}, encoded(values))


def sending_one(
    row: Rows, *, idempotency_key: str | None, weight: float, payload: Any, group: str | None
) -> Request:
    """A request that brings one vector, and is answered by the whole decision."""
    headers = {"Accept": JSON} | key_header(idempotency_key)
    _check_text("group", group)
    if payload is None and _is_full(weight):
        return raw("vectors", row, headers, one="1", group=group)
    values: dict[str, Any] = {"vector": finite(row)[0].tolist(), "payload": payload}
    values |= {"group": group, "weight": _weights(weight, 1)[0]}
    return Request("POST", "vectors", {}, headers | {"Content-Type": JSON}, encoded(values))


def raw(path: str, rows: Rows, headers: dict[str, str], **query: str | None) -> Request:
    """Rows as they lie in memory."""
    body = rows.astype("<f4", copy=False).tobytes()
    asked = plain_query({"dimension": rows.shape[1], **query})
    return Request("POST", path, asked, headers | {"Content-Type": BINARY}, body)


def _is_full(weight: npt.ArrayLike) -> bool:
    return type(weight) in (int, float) and weight == 1


def _weights(weight: npt.ArrayLike, n: int) -> list[float]:
    """One weight for each of n vectors."""
    lights(weight, n)
    weights: list[float] = np.broadcast_to(np.asarray(weight, dtype=np.float64), (n,)).tolist()
    return weights


def _listed(payloads: Iterable[Any]) -> list[Any]:
    if not isinstance(payloads, Iterable) or isinstance(payloads, (str, bytes, dict)):
        raise ArgumentError(
            f"payloads={payloads!r:.80}",
            expected="a list with one for each vector",
            remedy="None stands for nothing attached.",
        )
    return list(payloads)


def _check_text(name: str, said: object) -> None:
    if not (said is None or isinstance(said, str)):
        raise ArgumentError(
            f"{name} of type {type(said).__name__}",
            expected="a text",
            remedy="Name the photo, or whatever the vectors were seen in.",
        )
