"""Apply operations to a clusterer, and replay them to compare the results."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links, checks
from linkstream.clusterer.verbs import VERBS
from linkstream.engine.contract import Decision
from linkstream.engine.events import WIDTH
from linkstream.errors import LinkstreamError, StoreError
from linkstream.store.file import damaged, distrusted
from linkstream.store.journal import IDS, Operation, Rows

_SLICE = 5_000  # vectors at a time if the clusterer drops old events: they must be read before

_DECISION = tuple(field.name for field in fields(Decision))

Events = npt.NDArray[np.int64]


def do(
    links: Links, verb: str, arguments: dict[str, Any], rows: Rows | None, first_event: int
) -> tuple[Any, Events]:
    """Apply an operation; return the answer and the events."""
    if verb == "add_many" and not links.track_vectors and rows is not None and len(rows) > _SLICE:
        return _in_slices(links, arguments, rows, first_event)
    answer = VERBS[verb].from_journal(arguments, rows).perform(links.core)
    return answer, events_since(links, first_event)


def _in_slices(
    links: Links, arguments: dict[str, Any], rows: Rows, first_event: int
) -> tuple[Any, Events]:
    links.core.quantised(rows)  # raise errors before any change
    checks.lights(arguments.get("weight", 1.0), len(rows))
    weight = np.broadcast_to(np.asarray(arguments.get("weight", 1.0)), len(rows))
    ids, events = [], []
    for start in range(0, len(rows), _SLICE):
        part = slice(start, start + _SLICE)
        full = bool((weight[part] == 1).all())
        some = {**arguments, "weight": 1.0 if full else weight[part].tolist()}
        ids.append(links.add_many(rows[part], **some))
        events.append(events_since(links, first_event))
        first_event += len(events[-1])
    return np.concatenate(ids), np.concatenate(events)


def events_since(links: Links, sequence: int) -> Events:
    """Return the event rows of a clusterer from a sequence number on."""
    engine = links.core.engine
    if engine is None:
        return np.empty((0, WIDTH), dtype=np.int64)
    return engine.event_rows(sequence)[1]


def encoded(answer: Any) -> bytes:
    """Return an answer as bytes."""
    if isinstance(answer, np.ndarray):
        return answer.astype("<i8").tobytes()
    if isinstance(answer, Decision):
        return json.dumps({name: getattr(answer, name) for name in _DECISION}).encode()
    return json.dumps(answer if isinstance(answer, int) else None).encode()


def decoded(operation: Operation) -> Any:
    """Return the answer of an operation."""
    if operation.verb in IDS:
        return np.frombuffer(operation.result, dtype="<i8").astype(np.int64)
    answer = json.loads(operation.result)
    return Decision(**answer) if isinstance(answer, dict) else answer


def again(
    links: Links,
    operation: Operation,
    arguments: dict[str, Any],
    rows: Rows | None,
    path: Path,
) -> None:
    """Replay an operation; raise DamagedStoreError if the result differs from the journal."""
    what = f"operation {operation.number} ({operation.verb})"
    if operation.verb not in VERBS:
        raise damaged(path, f"{what}: an unknown verb")
    before = links.n_vectors
    try:
        with distrusted(path, what):
            answer, events = do(links, operation.verb, arguments, rows, operation.first_event)
    except StoreError:
        raise
    except LinkstreamError as error:
        raise damaged(path, f"{what} cannot be done again: {error}") from error
    if (
        before != operation.first_vector
        or not np.array_equal(events, operation.events)
        or encoded(answer) != operation.result
    ):
        raise damaged(path, f"{what}, decided again, differs from what was decided")
