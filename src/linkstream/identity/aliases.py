"""Aliases: IDs of clusters that were joined into others, and what they stand for now."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.state import State
from linkstream.errors import SnapshotError


def since(n_events: int, state: State) -> dict[int, int]:
    """IDs gone → IDs that stayed, from the events of a state after the first `n_events`."""
    new = state.n_events - n_events
    rows = state.events[len(state.events) - new :] if new else state.events[:0]
    united = rows[rows[:, 0] == events.UNITED]
    return dict(zip(united[:, 5].tolist(), united[:, 4].tolist(), strict=True))


def resolve(aliases: Mapping[int, int], cluster: int) -> int:
    """The live cluster that an ID stands for."""
    while cluster in aliases:
        cluster = aliases[cluster]
    return cluster


def to_array(aliases: Mapping[int, int]) -> npt.NDArray[np.int64]:
    """Pairs gone, stayed, in the order of the IDs gone."""
    return np.array(sorted(aliases.items()), dtype=np.int64).reshape(-1, 2)


def from_array(array: npt.NDArray[np.int64] | None, state: State) -> dict[int, int]:
    """What `to_array` gave, checked: every chain ends in a live cluster (SnapshotError)."""
    if array is None or array.ndim != 2 or array.shape[1] != 2 or array.dtype != np.int64:
        raise _impossible("they are pairs of integers")
    aliases = dict(array.tolist())
    live = set(state.clusters.tolist())
    # An ID once gone never comes back, so that no chain is longer than the list.
    if len(aliases) != len(array) or live & aliases.keys():
        raise _impossible("each ID is gone once, and is not live")
    for gone in aliases:
        if _steps(aliases, gone) is None or resolve(aliases, gone) not in live:
            raise _impossible("every chain ends in a live cluster")
    return aliases


def _steps(aliases: Mapping[int, int], cluster: int) -> int | None:
    """Length of a chain; None for one that never ends."""
    steps = 0
    while cluster in aliases:
        cluster, steps = aliases[cluster], steps + 1
        if steps > len(aliases):
            return None
    return steps


def _impossible(rule: str) -> SnapshotError:
    return SnapshotError(
        f"aliases of cluster IDs where it does not hold that {rule}",
        expected="what linkstream wrote",
        remedy="The file is damaged or was made by another program; use a backup.",
    )
