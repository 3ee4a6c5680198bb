"""A trial run of Links on the first vectors: where T_s breaks, and what the stream will cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.measurements import Rows

# By engine: vectors of one run of the curve over T_s, and of the run that is forecast from.
_RUN = {"native": (2000, 10_000), "reference": (400, 800)}
_STEPS = 13
_HORIZONS = (10**4, 10**5, 10**6)
_MARGIN = 0.05  # of an exponent: what one run does not show


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial run: what the first vectors came to at one T_s.

    Attributes:
        subcluster_similarity: the T_s of the run.
        subclusters, clusters: how many there were, over the number of vectors.
    """

    subcluster_similarity: float
    subclusters: float
    clusters: float

    @property
    def alone(self) -> float | None:
        """Of the vectors whose cluster was there already, the share that joined no subcluster.

        Near 1 T_s is over the cliff. None where hardly any vector met a cluster of its own.
        """
        known = 1.0 - self.clusters
        return None if known < 0.05 else (self.subclusters - self.clusters) / known


@dataclass(frozen=True, slots=True)
class Cliff:
    """Trial runs over a range of T_s.

    Attributes:
        vectors: how many were clustered in each run, from the first on.
        curve: the runs, T_s rising.
        edge: the lowest T_s tried from which half of the vectors or more stay alone; None if none.
        at: the run at the thresholds given; None without them.
        identities: how many there are among these vectors; None without labels.
    """

    vectors: int
    curve: tuple[Tried, ...]
    edge: float | None
    at: Tried | None
    identities: int | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the clusterer will hold after more vectors, if they go on as they began.

    Attributes:
        vectors: after how many.
        subclusters, low, high: how many subclusters, and between which bounds.
        bytes_held: memory for them.
        bytes_scanned: what the search for the nearest reads at most, for each vector.
    """

    vectors: int
    subclusters: int
    low: int
    high: int
    bytes_held: int
    bytes_scanned: int


@dataclass(frozen=True, slots=True)
class Growth:
    """Subclusters against vectors in the trial run, and the law it seems to follow.

    Attributes:
        vectors, subclusters: the run, as it went.
        exponent: growth at the end of the run, as a power of the number of vectors: 0 when
            subclusters cease to be born, 1 when every vector is one.
        decline: how much the exponent fell over the last doubling of vectors.
        bytes_per_subcluster: about what one takes in memory with vectors tracked.
        forecasts: at ten thousand, a hundred thousand and a million vectors.
    """

    vectors: tuple[int, ...]
    subclusters: tuple[int, ...]
    exponent: float
    decline: float
    bytes_per_subcluster: int
    forecasts: tuple[Forecast, ...]


def cliff(
    rows: Rows,
    thresholds: Thresholds | None,
    *,
    pair: float,
    neighbour: float,
    labels: npt.NDArray[np.intp] | None,
) -> Cliff:
    """Cluster the first vectors again and again, with T_s rising through the range that matters.

    `pair` is the similarity of two vectors of one identity, `neighbour` that of neighbours.
    """
    # At T_c = cos θ_c half of a cluster's own vectors would be turned away: somewhat below.
    t_c = max(math.sqrt(min(max(pair, 0.0), 0.98)) - 0.05, 0.1)
    if thresholds is not None:
        t_c = thresholds.cluster_similarity
    t_p = 1.0 if thresholds is None else thresholds.pair_similarity_max
    first = rows[: _RUN[Links(0.5, 0.5, 1.0).engine][0]]
    low, high = min(max(pair - 0.35, 0.05), 0.7), min(max(neighbour, pair) + 0.1, 0.98)
    grid = np.linspace(low, max(high, low + 0.2), _STEPS).tolist()
    curve = tuple(_try(first, Thresholds(t_c, t_s, t_p)) for t_s in grid)
    over = [run.subcluster_similarity for run in curve if (run.alone or 0.0) >= 0.5]
    return Cliff(
        vectors=len(first),
        curve=curve,
        edge=min(over) if over else None,
        at=None if thresholds is None else _try(first, thresholds),
        identities=None if labels is None else len(np.unique(labels[: len(first)])),
    )


def growth(rows: Rows, thresholds: Thresholds) -> Growth:
    """Cluster the first vectors, watch subclusters being born, and carry the law on."""
    links = Links.from_thresholds(thresholds, track_vectors=False)
    first = rows[: _RUN[links.engine][1]]
    stops = np.unique(np.geomspace(min(16, len(first)), len(first), 32).astype(np.int64))
    born, done = [], 0
    for stop in stops.tolist():
        links.add_many(first[done:stop])
        born.append(links.n_subclusters)
        done = stop
    now, before = _exponent(stops, born, 0.5, 1.0), _exponent(stops, born, 0.25, 0.5)
    law = _Law(done, born[-1], now, max(before - now, 0.0), min(max(now, before) + _MARGIN, 1.0))
    return Growth(
        vectors=tuple(stops.tolist()),
        subclusters=tuple(born),
        exponent=law.exponent,
        decline=law.decline,
        bytes_per_subcluster=bytes_per_subcluster(rows.shape[1]),
        forecasts=tuple(
            law.forecast(vectors, rows.shape[1]) for vectors in _HORIZONS if vectors > done
        ),
    )


def bytes_per_subcluster(dimension: int) -> int:
    """About what a subcluster takes: nine bytes a coordinate (sum and code), and the rest.

    >>> bytes_per_subcluster(256)
    2732
    """
    return 9 * dimension + 8 + 420


@dataclass(frozen=True, slots=True)
class _Law:
    """Growth from a point on: an exponent, and how much of it is lost with every doubling."""

    vectors: int
    subclusters: int
    exponent: float
    decline: float
    highest: float

    def forecast(self, vectors: int, dimension: int) -> Forecast:
        """Between a decline that goes on in full and one that stops; half of it in the middle."""
        low = self._after(vectors, self.exponent, self.decline + 2.0 * _MARGIN)
        middle = self._after(vectors, self.exponent, 0.5 * self.decline)
        high = self._after(vectors, self.highest, 0.0)
        return Forecast(
            vectors=vectors,
            subclusters=middle,
            low=low,
            high=high,
            bytes_held=middle * bytes_per_subcluster(dimension),
            bytes_scanned=middle * dimension,  # the codes: one byte a coordinate
        )

    def _after(self, vectors: int, exponent: float, decline: float) -> int:
        doublings = math.log2(vectors / self.vectors)
        # The exponent falls in a straight line to 0 and stays there; this is the area under it.
        reach = doublings if decline == 0.0 else min(doublings, exponent / decline)
        area = reach * (exponent - 0.5 * decline * reach)
        return min(round(self.subclusters * float(2.0**area)), vectors)


def _exponent(vectors: npt.NDArray[np.int64], born: list[int], start: float, stop: float) -> float:
    """Slope of log subclusters over log vectors in a part of the run."""
    kept = (vectors >= start * vectors[-1]) & (vectors <= stop * vectors[-1])
    if kept.sum() < 2:
        return 1.0
    slope = float(np.polyfit(np.log(vectors[kept]), np.log(np.array(born)[kept]), 1)[0])
    return min(max(slope, 0.0), 1.0)


def _try(rows: Rows, thresholds: Thresholds) -> Tried:
    links = Links.from_thresholds(thresholds, track_vectors=False)
    links.add_many(rows)
    return Tried(
        thresholds.subcluster_similarity,
        links.n_subclusters / len(rows),
        links.n_clusters / len(rows),
    )
