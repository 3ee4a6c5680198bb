"""Exemplars: vectors to look at when a person is to judge a cluster or a subcluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine.linkage import CENTROID_SCALE, Floats, Integers
from linkstream.engine.state import State
from linkstream.identity.comparison import directions
from linkstream.identity.comparison import Totals

Fetch = Callable[[Integers], npt.NDArray[np.int32]]  # vectors as they are kept, by number

LOOKED = 4096  # vectors that are looked at, of a cluster or subcluster that has more


@dataclass(frozen=True, slots=True)
class Exemplars:
    """Vectors of one cluster, by number.

    Attributes:
        central: the most similar to the cluster's centroid, the most similar first.
        newest: the last to arrive, the last first.
        doubtful: those that another cluster is nearest to, compared with their own; the most
            doubtful first.
    """

    central: tuple[int, ...]
    newest: tuple[int, ...]
    doubtful: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = (f"{name:8} {_list(numbers)}" for name, numbers in asdict(self).items())
        return "\n".join(lines)


def exemplars(state: State, cluster: int, fetch: Fetch, *, limit: int) -> Exemplars:
    """The vectors that stand for a cluster, up to `limit` of each kind (tie: the older).

    `fetch` gives the vectors of some numbers. Of very many, some are looked at, evenly spread
    over the stream. Costs m·n·d steps for m vectors and n clusters.
    """
    totals = Totals.of(state)
    units = directions(totals.sums)
    own = int(np.searchsorted(totals.ids, cluster))
    members = _vectors_of(state, state.numbers[state.clusters == cluster])
    numbers = _some(members)
    scores = _cosines(fetch(numbers), units)
    to_own = scores[:, own].copy()
    scores[:, own] = -1.0
    return Exemplars(
        central=_first(numbers, -to_own, limit),
        newest=tuple(members[::-1][:limit].tolist()),
        doubtful=_first(numbers, to_own - scores.max(axis=1), limit),
    )


def central(state: State, subcluster: int, fetch: Fetch | None, *, limit: int) -> tuple[int, ...]:
    """Vectors of one subcluster, the most similar to its centroid first; the oldest if unknown.

    None where vectors are not tracked.
    """
    numbers = _some(_vectors_of(state, np.array([subcluster])))
    if fetch is None or len(numbers) <= 1:
        return tuple(numbers[:limit].tolist())
    row = np.searchsorted(state.numbers, [subcluster])
    return _first(numbers, -_cosines(fetch(numbers), directions(state.sums[row]))[:, 0], limit)


def _vectors_of(state: State, subclusters: Integers) -> Integers:
    return np.flatnonzero(np.isin(state.vectors, subclusters)).astype(np.int64)


def _some(numbers: Integers) -> Integers:
    """All of them; or, of more than may be looked at, some."""
    if len(numbers) <= LOOKED:
        return numbers
    return numbers[np.arange(LOOKED) * len(numbers) // LOOKED]


def _cosines(rows: npt.NDArray[np.int32], units: Floats) -> Floats:
    found: Floats = directions(rows.astype(np.int64)) @ units.T / CENTROID_SCALE**2
    return found


def _first(numbers: Integers, rank: Floats, limit: int) -> tuple[int, ...]:
    return tuple(numbers[np.argsort(rank, kind="stable")[:limit]].tolist())


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers)) or "none"
