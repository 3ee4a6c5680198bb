"""Rules for an event log that is loaded: the range of each number of a row.

The checks are linear in the log and vectorised; they run on every snapshot that is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.event_values import numbers_of
from linkstream.engine.fixed_point import VECTORS_MAX
from linkstream.engine.forest import CLAIM, FULL, LOCKED, PINNED

Rows = npt.NDArray[np.int64]

# What the numbers of a row name, by field; WIDTH − 2 for each class.
NOTHING, SUBCLUSTER, CLUSTER, VECTOR, NUMBER = range(5)
_MEANINGS = {
    **dict.fromkeys(
        ("subcluster", "partner", "absorbed", "heir", "old", "old_partner", "origin"), SUBCLUSTER
    ),
    **dict.fromkeys(("cluster", "new_cluster", "gone"), CLUSTER),
    "member": VECTOR,
}
KINDS_OF_NUMBERS = [
    [_MEANINGS.get(name, NUMBER) for name in numbers_of(event)]
    + [NOTHING] * (events.WIDTH - 2 - len(numbers_of(event)))
    for event in events.CLASSES
]

# Lowest value and end, by field, of numbers that do not name a subcluster, cluster or vector.
_RANGES = {
    "weight": (0, FULL),
    "firmness": (0, PINNED + 1),
    "flags": (0, (LOCKED | CLAIM) + 1),
    **dict.fromkeys(("on", "asked", "locked"), (0, 2)),
    **dict.fromkeys(("of", "side", "reason"), (0, 3)),
    **dict.fromkeys(("cuts", "joins", "size", "subclusters", "a", "b"), (0, 2**32)),
    **dict.fromkeys(("moved", "clusters"), (0, 2**32)),
    **dict.fromkeys(("to", "correction", "undone"), (0, 2**62)),
    "margin": (-3 * 10**9, 3 * 10**9),
    "told": (-1, 10**6 + 1),
    "verdict": (0, 4),
    "right": (0, 10**6 + 1),
    **dict.fromkeys(("same", "about"), (0, 2)),
    "answers": (0, 2**32),
}
# Fields that name a subcluster, cluster or vector and may be −1: none.
_OPTIONAL = {
    *((events.Moved, "partner"), (events.Vanished, "heir"), (events.Removed, "member")),
    *((events.Transferred, "member"), (events.Transferred, "origin")),
    *((events.Dropped, "member"), (events.Pinned, "member"), (events.Retracted, "subcluster")),
    (events.Relocated, "cluster"),
}
_BACK = (events.UNDONE, events.RETRACTED, events.REDONE)  # events that name an earlier event


def _lowest(event: type[events.Event], name: str, kind: int) -> int:
    if name in event.texts:
        return 0 if event is events.Enrolled else -1
    if kind == NUMBER:
        return _RANGES.get(name, (-1, 0))[0]
    return -1 if (event, name) in _OPTIONAL else 0


def _table(entry: Callable[[type[events.Event], str, int], int], rest: int) -> npt.NDArray[Any]:
    """Return an entry for each number of a row, by code; `rest` where a class has no field."""
    rows = []
    for event, kinds in zip(events.CLASSES, KINDS_OF_NUMBERS, strict=True):
        names = numbers_of(event)
        row = [entry(event, name, kind) for name, kind in zip(names, kinds, strict=False)]
        rows.append(row + [rest] * (events.WIDTH - 2 - len(row)))
    return np.array(rows)


_LOW = _table(_lowest, -1)
_ENDS = _table(lambda event, name, kind: _RANGES.get(name, (0, 2**32))[1], 0)
TEXTS = _table(lambda event, name, kind: name in event.texts, False)  # whether it names a text
KINDS = np.array(KINDS_OF_NUMBERS)


def numbers_fit(
    log: Rows, *, n_vectors: int, n_events: int, free_subcluster: int, free_cluster: int
) -> bool:
    """Return whether all rows have known codes, are in order, and name only given numbers."""
    if not len(log):
        return True
    codes, vectors, numbers = log[:, 0], log[:, 1], log[:, 2:]
    if len(log) > n_events or codes.min() < 0 or codes.max() >= len(events.CLASSES):
        return False
    # Events that were undone may name vectors that no longer exist; before the first undo the
    # numbers of vectors only rise.
    undone = codes == events.UNDONE
    latest = VECTORS_MAX if undone.any() else max(n_vectors, 1)
    before = vectors[: int(np.argmax(undone))] if undone.any() else vectors
    if vectors.min() < 0 or vectors.max() >= latest or np.any(before[1:] < before[:-1]):
        return False
    ends = {SUBCLUSTER: free_subcluster, CLUSTER: free_cluster, VECTOR: latest}
    high = _ENDS.copy()
    for kind, end in ends.items():
        high[kind == KINDS] = end
    return _columns_fit(codes, numbers, high) and _order_fits(log, n_events)


def _columns_fit(codes: Rows, numbers: Rows, high: Rows) -> bool:
    """Return whether each number is in the range of its field."""
    return not any(
        np.any((column < _LOW[:, i][codes]) | (column >= high[:, i][codes]))
        for i, column in enumerate(numbers.T)
    )


def _order_fits(log: Rows, n_events: int) -> bool:
    """Return whether a vector follows each weight, and events name only earlier events."""
    codes = log[:, 0]
    weighed = np.flatnonzero(codes == events.WEIGHED)
    if len(weighed) and (
        weighed[-1] + 1 == len(log) or not np.isin(codes[weighed + 1], events.ARRIVALS).all()
    ):
        return False
    back = np.flatnonzero(np.isin(codes, _BACK))
    return bool(np.all(log[back, 2] < back + (n_events - len(log))))
