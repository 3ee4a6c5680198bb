"""Ways to cut a sample into clusters: Links over a lattice of thresholds, in several orders.

T_c² and T_s each take thirteen values, from the similarity of random pairs to a little above that
of nearest neighbours. T_p lies a fixed part of the way from T_c² to 1. Each setting is run in the
order given and in two others; what the cuts have in common, and how clear they are, needs no
labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.measurements import Floats, Rows

Cuts = npt.NDArray[np.int32]

STEPS = 13
ORDERS = 3
# Of the way from T_c² to 1. Found on eleven labelled sets; 0.3 and 0.45 cost less than 0.01.
PULL = 0.6
_REACH = 1.2  # in steps: how far a setting is judged by its neighbours, too
_LOWEST, _HIGHEST, _CAP = 0.02, 0.97, 0.98
_NARROWEST = 0.1
_DIGITS = 4
_CROWD = 0.8  # clusters a vector from which on most stand alone, and nothing is to be seen


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Settings, and what each makes of the sample.

    Attributes:
        thresholds: one a setting, T_c² slowest.
        cuts: clusters from 0, by setting, order of arrival and vector.
        together: share of all pairs of vectors that share a cluster, mean over the orders.
        steady: agreement of the orders with each other, as adjusted Rand index.
        clear: mean over vectors of how much nearer the rest of their own cluster is than the
            next one, from −1 to 1; 0 where all or almost all share a cluster or stand alone.
        likeness: mean similarity of two vectors of a cluster, as part of the way from two of
            different ones to nearest neighbours.
    """

    thresholds: tuple[Thresholds, ...]
    cuts: Cuts
    together: Floats
    steady: Floats
    clear: Floats
    likeness: Floats

    def share(self, pairs: npt.NDArray[np.intp]) -> Floats:
        """Share of these pairs that each setting puts together, mean over the orders."""
        hits = self.cuts[:, :, pairs[:, 0]] == self.cuts[:, :, pairs[:, 1]]
        return np.asarray(hits.mean(axis=(1, 2)))


def lattice(sample: Rows, *, seed: int) -> Lattice:
    """Run every setting over unit vectors; costs 507 runs of Links and n² similarities."""
    similarity = sample @ sample.T
    settings = _settings(similarity)
    orders = [np.random.default_rng([seed, k]).permutation(len(sample)) for k in range(1, ORDERS)]
    orders.insert(0, np.arange(len(sample)))
    cuts = np.empty((len(settings), ORDERS, len(sample)), dtype=np.int32)
    for row, thresholds in enumerate(settings):
        for column, order in enumerate(orders):
            cuts[row, column, order] = _run(thresholds, sample[order])
    neighbour, shares = _neighbour(similarity), _together(cuts)
    looks = np.array([_look(similarity, cut[0], neighbour) for cut in cuts])
    steady = np.array([_steadiness(cut) for cut in cuts])
    return Lattice(settings, cuts, shares, steady, looks[:, 0], looks[:, 1])


def smooth(values: Floats) -> Floats:
    """Each setting judged with its neighbours, so that no lucky one is chosen."""
    steps = np.arange(STEPS)
    weights = np.exp(-0.5 * ((steps[:, np.newaxis] - steps) / _REACH) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights @ values.reshape(STEPS, STEPS) @ weights.T).reshape(-1)


def agreement(a: Cuts, b: Cuts) -> float:
    """Adjusted Rand index of two cuts; 0 where both put all together or all apart."""
    n = len(a)
    everything = n * (n - 1) / 2
    both = _pairs(np.unique(a.astype(np.int64) * n + b, return_counts=True)[1])
    ours, theirs = _pairs(np.bincount(a)), _pairs(np.bincount(b))
    chance = ours * theirs / everything
    most = (ours + theirs) / 2
    return (both - chance) / (most - chance) if most - chance > 1e-9 * everything else 0.0


def _settings(similarity: Rows) -> tuple[Thresholds, ...]:
    pairs = similarity[np.triu_indices(len(similarity), 1)]
    high = min(max(_neighbour(similarity), _LOWEST + _NARROWEST), _HIGHEST)
    low = min(max(float(np.quantile(pairs, 0.25)), _LOWEST), high - _NARROWEST)
    # Rounded, for the last bits of a similarity differ between machines.
    places = np.minimum(low + np.arange(1, STEPS + 1) / (STEPS - 1) * (high - low), _CAP)
    values = places.round(_DIGITS).tolist()
    return tuple(_thresholds(squared, joined) for squared in values for joined in values)


def _thresholds(squared: float, joined: float) -> Thresholds:
    t_c = round(math.sqrt(squared), _DIGITS)
    t_p = t_c * t_c + PULL * (1.0 - t_c * t_c)
    return Thresholds(t_c, joined, math.ceil(t_p * 10**_DIGITS) / 10**_DIGITS)


def _run(thresholds: Thresholds, rows: Rows) -> Cuts:
    links = Links.from_thresholds(thresholds, threads=1)
    links.add_many(rows)
    return np.unique(links.labels(), return_inverse=True)[1].astype(np.int32)


def _neighbour(similarity: Rows) -> float:
    """Median similarity of a vector to its nearest neighbour."""
    others = similarity.copy()
    np.fill_diagonal(others, -2.0)
    return float(np.median(others.max(axis=1)))


def _together(cuts: Cuts) -> Floats:
    n = cuts.shape[2]
    shares = [[_pairs(np.bincount(cut)) for cut in setting] for setting in cuts]
    return np.asarray(np.mean(shares, axis=1) / (n * (n - 1) / 2))


def _steadiness(setting: Cuts) -> float:
    pairs = [(j, k) for j in range(len(setting)) for k in range(j)]
    return float(np.mean([agreement(setting[j], setting[k]) for j, k in pairs]))


def _look(similarity: Rows, cut: Cuts, neighbour: float) -> tuple[float, float]:
    """How clear a cut is, and how alike the members of its clusters are."""
    n, counts = len(cut), np.bincount(cut)
    if not 2 <= len(counts) <= _CROWD * n:
        return 0.0, 0.0
    rows = np.arange(n)
    starts = np.cumsum(counts) - counts
    # Products with the sums of the clusters: all else follows from them.
    sums = np.add.reduceat(similarity[:, np.argsort(cut, kind="stable")], starts, axis=1)
    own = sums[rows, cut].astype(np.float64)
    squares = np.bincount(cut, own)
    others = np.maximum(squares[cut] - 2.0 * own + 1.0, 1e-6)  # the rest of the cluster, squared
    mine = (own - 1.0) / np.sqrt(others)
    sums /= np.sqrt(np.maximum(squares, 1e-6)).astype(np.float32)
    sums[rows, cut] = -1.0
    next_one = sums.max(axis=1).astype(np.float64)
    gain = (mine - next_one) / np.maximum(1.0 - np.minimum(mine, next_one), 1e-6)
    return float(np.where(counts[cut] > 1, gain, 0.0).mean()), _likeness(
        similarity, counts, own, neighbour
    )


def _likeness(
    similarity: Rows, counts: npt.NDArray[np.intp], own: Floats, neighbour: float
) -> float:
    n = len(own)
    inside, total = float(own.sum()) - n, float(similarity.sum(dtype=np.float64)) - n
    within = inside / (2 * _pairs(counts))
    across = (total - inside) / (n * (n - 1) - 2 * _pairs(counts))
    return (within - across) / max(neighbour - across, 1e-6)


def _pairs(counts: npt.NDArray[np.intp]) -> float:
    wide = counts.astype(np.float64)
    return float(np.sum(wide * (wide - 1.0)) / 2.0)
