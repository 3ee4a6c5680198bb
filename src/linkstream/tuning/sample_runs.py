"""Runs of Links on the first vectors of a stream: which T_s is too high, and the future cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.measurements import Rows

# By engine: number of vectors of each run over T_s, and of the run behind the forecast.
_RUN = {"native": (2000, 10_000), "reference": (400, 800)}
_STEPS = 13
_HORIZONS = (10**4, 10**5, 10**6)
_MARGIN = 0.05  # uncertainty of an exponent from one run


@dataclass(frozen=True, slots=True)
class SampleRun:
    """One run of Links over the first vectors, at one T_s.

    Attributes:
        subcluster_similarity: the T_s of the run.
        subclusters, clusters: their numbers, divided by the number of vectors.
    """

    subcluster_similarity: float
    subclusters: float
    clusters: float

    @property
    def alone(self) -> float | None:
        """Of the vectors added to an existing cluster, the share that joined no subcluster.

        A share near 1 means that T_s is too high. None if hardly any vector was added to an
        existing cluster.
        """
        known = 1.0 - self.clusters
        return None if known < 0.05 else (self.subclusters - self.clusters) / known


@dataclass(frozen=True, slots=True)
class Cliff:
    """Runs over a range of T_s: subclusters rise steeply where T_s becomes too high (the cliff).

    Attributes:
        vectors: number of vectors in each run, the first of the stream.
        curve: the runs, with T_s rising.
        edge: the lowest T_s of the runs at which `SampleRun.alone` is 0.5 or more, or None.
        at: the run at the given thresholds; None without thresholds.
        identities: number of identities among the vectors; None without labels.
    """

    vectors: int
    curve: tuple[SampleRun, ...]
    edge: float | None
    at: SampleRun | None
    identities: int | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Size and cost of a clusterer after more vectors of the same kind.

    Attributes:
        vectors: number of vectors of the forecast.
        subclusters, low, high: number of subclusters, with its bounds.
        bytes_held: memory of the subclusters.
        bytes_scanned: bytes that the search reads for each vector, at most.
    """

    vectors: int
    subclusters: int
    low: int
    high: int
    bytes_held: int
    bytes_scanned: int


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of subclusters with the number of vectors, measured and forecast.

    Attributes:
        vectors, subclusters: their numbers at several stops of the run.
        exponent: subclusters grow as this power of the number of vectors at the end of the run:
            0 if there are no new subclusters, 1 if every vector starts one.
        decline: how much the exponent fell over the last doubling of vectors.
        bytes_per_subcluster: memory of one subcluster, with vectors tracked.
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
    """Cluster the first vectors once for each T_s of a range.

    Without thresholds to judge, T_c is taken from `pair`, and T_p is 1.
    """
    # Somewhat below cos θ_c: at T_c = cos θ_c a cluster would reject half of its own vectors.
    t_c = max(math.sqrt(min(max(pair, 0.0), 0.98)) - 0.05, 0.1)
    if thresholds is not None:
        t_c = thresholds.cluster_similarity
    t_p = 1.0 if thresholds is None else thresholds.pair_similarity_max
    first = rows[: _RUN[Links(0.5, 0.5, 1.0).engine][0]]
    low, high = min(max(pair - 0.35, 0.05), 0.7), min(max(neighbour, pair) + 0.1, 0.98)
    grid = np.linspace(low, max(high, low + 0.2), _STEPS).tolist()
    curve = tuple(_run(first, Thresholds(t_c, t_s, t_p)) for t_s in grid)
    too_high = [run.subcluster_similarity for run in curve if (run.alone or 0.0) >= 0.5]
    return Cliff(
        vectors=len(first),
        curve=curve,
        edge=min(too_high, default=None),
        at=None if thresholds is None else _run(first, thresholds),
        identities=None if labels is None else len(np.unique(labels[: len(first)])),
    )


def growth(rows: Rows, thresholds: Thresholds) -> Growth:
    """Cluster the first vectors, count subclusters on the way, and extrapolate their growth."""
    links = Links.from_thresholds(thresholds, track_vectors=False)
    first = rows[: _RUN[links.engine][1]]
    stops = np.unique(np.geomspace(min(16, len(first)), len(first), 32).astype(np.int64))
    counts, done = [], 0
    for stop in stops.tolist():
        links.add_many(first[done:stop])
        counts.append(links.n_subclusters)
        done = stop
    now, before = _exponent(stops, counts, 0.5, 1.0), _exponent(stops, counts, 0.25, 0.5)
    highest = min(max(now, before) + _MARGIN, 1.0)
    law = _PowerLaw(done, counts[-1], now, max(before - now, 0.0), highest)
    return Growth(
        vectors=tuple(stops.tolist()),
        subclusters=tuple(counts),
        exponent=law.exponent,
        decline=law.decline,
        bytes_per_subcluster=bytes_per_subcluster(rows.shape[1]),
        forecasts=tuple(
            law.forecast(vectors, rows.shape[1]) for vectors in _HORIZONS if vectors > done
        ),
    )


def bytes_per_subcluster(dimension: int) -> int:
    """Return the approximate memory of a subcluster: nine bytes per coordinate, and a constant.

    >>> bytes_per_subcluster(256)
    2732
    """
    return 9 * dimension + 8 + 420


@dataclass(frozen=True, slots=True)
class _PowerLaw:
    """Growth after a run: an exponent that falls by `decline` with every doubling of vectors."""

    vectors: int
    subclusters: int
    exponent: float
    decline: float
    highest: float

    def forecast(self, vectors: int, dimension: int) -> Forecast:
        """Forecast with half of the decline; the bounds take more than all of it, and none."""
        low = self._after(vectors, self.exponent, self.decline + 2.0 * _MARGIN)
        middle = self._after(vectors, self.exponent, 0.5 * self.decline)
        high = self._after(vectors, self.highest, 0.0)
        return Forecast(
            vectors=vectors,
            subclusters=middle,
            low=low,
            high=high,
            bytes_held=middle * bytes_per_subcluster(dimension),
            bytes_scanned=middle * dimension,  # codes of one byte per coordinate
        )

    def _after(self, vectors: int, exponent: float, decline: float) -> int:
        doublings = math.log2(vectors / self.vectors)
        # The exponent falls linearly to 0 and stays there; this is the area under the line.
        reach = doublings if decline == 0.0 else min(doublings, exponent / decline)
        area = reach * (exponent - 0.5 * decline * reach)
        return min(round(self.subclusters * float(2.0**area)), vectors)


def _exponent(
    vectors: npt.NDArray[np.int64], subclusters: list[int], start: float, stop: float
) -> float:
    """Return the slope of log subclusters over log vectors in a part of the run."""
    part = (vectors >= start * vectors[-1]) & (vectors <= stop * vectors[-1])
    if part.sum() < 2:
        return 1.0
    slope = float(np.polyfit(np.log(vectors[part]), np.log(np.array(subclusters)[part]), 1)[0])
    return min(max(slope, 0.0), 1.0)


def _run(rows: Rows, thresholds: Thresholds) -> SampleRun:
    links = Links.from_thresholds(thresholds, track_vectors=False)
    links.add_many(rows)
    return SampleRun(
        thresholds.subcluster_similarity,
        links.n_subclusters / len(rows),
        links.n_clusters / len(rows),
    )
