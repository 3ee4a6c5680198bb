"""Links run over a grid of thresholds, and the score of each setting of the grid.

T_c² and T_s each take thirteen values, from the similarity of random pairs to a little above that
of nearest neighbours. T_p lies a fixed part of the way from T_c² to 1. Each setting is run in the
given order and in two others. A setting is scored in one of three ways.

By pairs of one identity. Let β be the share of all pairs of vectors that are of one identity, π(θ)
the share that setting θ puts together, and R(θ) the share of the known pairs that it puts together.
Then precision is β·R/π, and the F1 of pairs is 2·β·R/(β + π). π is exact without labels, and R
comes from the known pairs. Precision is at most 1, so β is at most π/R for every θ: the minimum is
taken. So the base rate needs no labels, and wrong merges weigh as much as they are frequent,
although a hundred pairs of strangers (vectors of different identities) show hardly any of them.

By groups. With D(θ) the share of strangers put together, β·R = π − (1 − β)·D, and the F1 follows in
the same way. It is multiplied by the score by structure.

By structure. A good setting gives clusters that are separate (a vector is nearer to the rest of its
own cluster than to the next) and stable (the order of arrival does not matter). The score is the
product of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.candidates import rounded_thresholds
from linkstream.tuning.inputs import Pairs
from linkstream.tuning.measurements import Floats, Rows

Partitions = npt.NDArray[np.int32]

STEPS = 13
ORDERS = 3
# Part of the way from T_c² to 1. Found on eleven labelled sets; 0.3 and 0.45 cost less than 0.01.
PULL = 0.6
_SMOOTHING = 1.2  # standard deviation, in steps
_LOWEST, _HIGHEST, _CAP = 0.02, 0.97, 0.98
_NARROWEST = 0.1
_DIGITS = 4
_SINGLETONS = 0.8  # clusters per vector; above, most clusters have one vector and say nothing

_RECALL_MIN = 0.2  # of known pairs; below, π/R says little about the base rate
_BASE_MIN = 1e-4
_MERGED_MAX = 0.5  # of strangers; above, π and D are both near 1 and their difference is noise
_ONE_SIDED = 0.84  # standard errors: an upper bound of 80 %

# Without known pairs, a setting is trusted if its score by structure is at least _SCORE_MIN, and if
# no different partition (adjusted Rand index below _DIFFERENT) has more than _RIVAL_MAX of its
# score. Its clusters must not be too coarse: pairs of strangers show that most pairs it puts
# together are right or, without such pairs, the vectors of a cluster are almost as similar as
# neighbours are. Set on eleven labelled sets.
_SCORE_MIN = 0.15
_DIFFERENT = 0.5
_RIVAL_MAX = 0.75
_PRECISION_MIN = 0.5
_COMPACTNESS_MIN = 0.57


@dataclass(frozen=True, slots=True, eq=False)
class GridRuns:
    """The settings of a grid or a line, and the partitions of the sample that they give.

    Attributes:
        shape: settings along each axis: two axes, T_c² first, or one along a line.
        thresholds: one for each setting, T_c² slowest.
        partitions: clusters numbered from 0, by setting, order of arrival and vector.
        together: share of all pairs of vectors that share a cluster, mean over the orders.
        stability: mean adjusted Rand index of the orders with each other; 1 with one order.
        separation: how much nearer the rest of its own cluster is to a vector than the next
            cluster, from −1 to 1, mean over the vectors; 0 if (almost) all vectors share a
            cluster or are alone.
        compactness: mean similarity of two vectors of a cluster, on a scale from 0 (two vectors
            of different clusters) to 1 (nearest neighbours).
    """

    shape: tuple[int, ...]
    thresholds: tuple[Thresholds, ...]
    partitions: Partitions
    together: Floats
    stability: Floats
    separation: Floats
    compactness: Floats

    def share_together(self, pairs: Pairs) -> Floats:
        """Return the share of these pairs that each setting puts together, mean over the orders."""
        hits = self.partitions[:, :, pairs[:, 0]] == self.partitions[:, :, pairs[:, 1]]
        return np.asarray(hits.mean(axis=(1, 2)))


def run_grid(sample: Rows, *, seed: int) -> GridRuns:
    """Run every setting over unit vectors: 507 runs of Links, and n² similarities."""
    similarity = sample @ sample.T
    settings = _settings(similarity)
    partitions = np.stack([in_orders(each, sample, {}, seed=seed) for each in settings])
    return measured((STEPS, STEPS), settings, partitions, similarity)


def in_orders(
    thresholds: Thresholds, sample: Rows, options: dict[str, Any], *, seed: int
) -> Partitions:
    """Return the partitions of one setting in the given order and in two others."""
    orders = [np.random.default_rng([seed, k]).permutation(len(sample)) for k in range(1, ORDERS)]
    partitions = np.empty((ORDERS, len(sample)), dtype=np.int32)
    for row, order in enumerate([np.arange(len(sample)), *orders]):
        partitions[row, order] = partition(thresholds, sample[order], options)
    return partitions


def measured(
    shape: tuple[int, ...],
    settings: tuple[Thresholds, ...],
    partitions: Partitions,
    similarity: Rows,
) -> GridRuns:
    """Return the runs with their figures."""
    neighbour, shares = _neighbour_similarity(similarity), _share_of_pairs(partitions)
    forms = np.array([_form(similarity, setting[0], neighbour) for setting in partitions])
    stability = np.array([_stability(setting) for setting in partitions])
    return GridRuns(shape, settings, partitions, shares, stability, forms[:, 0], forms[:, 1])


def score_by_pairs(runs: GridRuns, same: Pairs) -> Floats:
    """Return the F1 of pairs of each setting, from pairs of one identity."""
    recall = runs.share_together(same)
    usable = recall >= _RECALL_MIN
    base = float(np.min(runs.together[usable] / recall[usable])) if usable.any() else 1.0
    return smooth(2.0 * base * recall / (base + runs.together), runs.shape)


def score_by_structure(runs: GridRuns) -> Floats:
    """Return separation times stability of each setting."""
    return _smooth_partitions(runs, runs.separation * runs.stability)


def score_by_groups(runs: GridRuns, different: Pairs) -> Floats:
    """Return the score by structure times the F1 of pairs, from pairs of strangers."""
    merged, most = _strangers_merged(runs, different)
    # β = (π − D)/(R − D) is at least (π − D)/(1 − D), since R is at most 1.
    usable = most <= _MERGED_MAX
    bases = (runs.together[usable] - most[usable]) / (1.0 - most[usable])
    base = max(float(np.max(bases, initial=0.0)), _BASE_MIN)
    right = np.maximum(runs.together - (1.0 - base) * merged, 0.0)
    f1 = 2.0 * right / (base + runs.together)
    return _smooth_partitions(runs, runs.separation * runs.stability * f1)


def doubts(runs: GridRuns, score: Floats, best: int, different: Pairs) -> list[str]:
    """Return the reasons not to trust the best setting; an empty list if there are none."""
    structure = smooth(np.maximum(runs.separation * runs.stability, 0.0), runs.shape)
    if score[best] <= 0.0 or structure[best] < _SCORE_MIN:
        return ["no thresholds give clusters that are separate and stable"]
    reasons = []
    if _rival(runs, score, best) > _RIVAL_MAX:
        reasons.append("very different thresholds give other clusters that score almost as well")
    if len(different):
        least_precision = 1.0 - _strangers_merged(runs, different)[1][best] / runs.together[best]
        if least_precision < _PRECISION_MIN:
            reasons.append("too few strangers were seen together to show that they are kept apart")
    elif runs.compactness[best] < _COMPACTNESS_MIN:
        reasons.append("the clusters seem to contain finer ones")
    return reasons


def agreement(a: Partitions, b: Partitions) -> float:
    """Return the adjusted Rand index; 0 if both put all vectors together or all apart."""
    n = len(a)
    everything = n * (n - 1) / 2
    both = _pairs(np.unique(a.astype(np.int64) * n + b, return_counts=True)[1])
    ours, theirs = _pairs(np.bincount(a)), _pairs(np.bincount(b))
    chance = ours * theirs / everything
    most = (ours + theirs) / 2
    return (both - chance) / (most - chance) if most - chance > 1e-9 * everything else 0.0


def disagreement(setting: Partitions, weights: Floats) -> tuple[float, float]:
    """Compare the first order of arrival with the others, over weighted pairs of vectors.

    Return the share of the pairs together in the first order that are apart in another, and the
    reverse. A vector forms no pair with itself.
    """
    itself = float(np.sum(weights * weights))
    total = float(np.sum(weights)) ** 2 - itself
    mine, other = setting[0].astype(np.int64), setting[1:]
    ours = _weighted_pairs(mine, weights) - itself
    parted, joined = [], []
    for partition in other:
        _, cells = np.unique(mine * len(partition) + partition, return_inverse=True)
        both = _weighted_pairs(cells, weights) - itself
        theirs = _weighted_pairs(partition, weights) - itself
        parted.append(1.0 - both / max(ours, 1.0))
        joined.append((theirs - both) / max(total - ours, 1.0))
    return float(np.mean(parted)), float(np.mean(joined))


def _settings(similarity: Rows) -> tuple[Thresholds, ...]:
    low, high = similarity_range(similarity)
    # Rounded, since the last bits of a similarity differ between machines.
    steps = np.minimum(low + np.arange(1, STEPS + 1) / (STEPS - 1) * (high - low), _CAP)
    values = steps.round(_DIGITS).tolist()
    return tuple(rounded_thresholds(each, join, PULL) for each in values for join in values)


def similarity_range(similarity: Rows) -> tuple[float, float]:
    """Return the similarity of random pairs (their lower quarter) and of nearest neighbours."""
    pairs = similarity[np.triu_indices(len(similarity), 1)]
    high = min(max(_neighbour_similarity(similarity), _LOWEST + _NARROWEST), _HIGHEST)
    return min(max(float(np.quantile(pairs, 0.25)), _LOWEST), high - _NARROWEST), high


def partition(thresholds: Thresholds, rows: Rows, options: dict[str, Any]) -> Partitions:
    """Return the clusters of unit vectors, numbered from 0; `options` are those of `Links`."""
    links = Links.from_thresholds(thresholds, threads=1, **options)
    links.add_many(rows)
    return np.unique(links.labels(), return_inverse=True)[1].astype(np.int32)


def _neighbour_similarity(similarity: Rows) -> float:
    """Return the median similarity of a vector to its nearest neighbour."""
    others = similarity.copy()
    np.fill_diagonal(others, -2.0)
    return float(np.median(others.max(axis=1)))


def _share_of_pairs(partitions: Partitions) -> Floats:
    n = partitions.shape[2]
    shares = [[_pairs(np.bincount(each)) for each in setting] for setting in partitions]
    return np.asarray(np.mean(shares, axis=1) / (n * (n - 1) / 2))


def _stability(setting: Partitions) -> float:
    pairs = [(j, k) for j in range(len(setting)) for k in range(j)]
    return float(np.mean([agreement(setting[j], setting[k]) for j, k in pairs] or [1.0]))


def _form(similarity: Rows, partition: Partitions, neighbour: float) -> tuple[float, float]:
    """Return separation and compactness of a partition."""
    n, counts = len(partition), np.bincount(partition)
    if not 2 <= len(counts) <= _SINGLETONS * n:
        return 0.0, 0.0
    rows = np.arange(n)
    starts = np.cumsum(counts) - counts
    # Products of each vector with the sum of each cluster: all figures follow from them.
    sums = np.add.reduceat(similarity[:, np.argsort(partition, kind="stable")], starts, axis=1)
    own = sums[rows, partition].astype(np.float64)
    squares = np.bincount(partition, own)
    rest = np.maximum(squares[partition] - 2.0 * own + 1.0, 1e-6)  # of the cluster, squared length
    mine = (own - 1.0) / np.sqrt(rest)
    sums /= np.sqrt(np.maximum(squares, 1e-6)).astype(np.float32)
    sums[rows, partition] = -1.0
    next_one = sums.max(axis=1).astype(np.float64)
    gain = (mine - next_one) / np.maximum(1.0 - np.minimum(mine, next_one), 1e-6)
    separation = float(np.where(counts[partition] > 1, gain, 0.0).mean())
    return separation, _compactness(similarity, counts, own, neighbour)


def _compactness(
    similarity: Rows, counts: npt.NDArray[np.intp], own: Floats, neighbour: float
) -> float:
    n = len(own)
    inside, total = float(own.sum()) - n, float(similarity.sum(dtype=np.float64)) - n
    within = inside / (2 * _pairs(counts))
    across = (total - inside) / (n * (n - 1) - 2 * _pairs(counts))
    return (within - across) / max(neighbour - across, 1e-6)


def _strangers_merged(runs: GridRuns, different: Pairs) -> tuple[Floats, Floats]:
    """Return the share of strangers that each setting puts together, and its upper bound."""
    n, merged = len(different), runs.share_together(different)
    middle = (n * merged + 1.0) / (n + 2.0)
    return merged, middle + _ONE_SIDED * np.sqrt(middle * (1.0 - middle) / (n + 2.0))


def smooth(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Average each setting with its neighbours, so that no lucky setting is chosen."""
    smoothed = values.reshape(shape)
    for axis, count in enumerate(shape):
        steps = np.arange(count)
        weights = np.exp(-0.5 * ((steps[:, np.newaxis] - steps) / _SMOOTHING) ** 2)
        weights /= weights.sum(axis=1, keepdims=True)
        smoothed = np.moveaxis(np.tensordot(weights, smoothed, axes=(1, axis)), 0, axis)
    return np.asarray(smoothed).reshape(-1)


def _smooth_partitions(runs: GridRuns, raw: Floats) -> Floats:
    """Smooth the scores; 0 for settings that put all vectors together or all apart."""
    usable = (runs.separation != 0.0) & (raw > 0.0)
    return np.where(usable, smooth(np.maximum(raw, 0.0), runs.shape), 0.0)


def _rival(runs: GridRuns, score: Floats, best: int) -> float:
    """Return the best score of a setting with a different partition, relative to the best."""
    chosen = runs.partitions[best, 0]
    for other in np.argsort(-score, kind="stable").tolist():
        if agreement(chosen, runs.partitions[other, 0]) < _DIFFERENT:
            return float(score[other] / score[best])
    return 0.0


def _pairs(counts: npt.NDArray[np.intp]) -> float:
    wide = counts.astype(np.float64)
    return float(np.sum(wide * (wide - 1.0)) / 2.0)


def _weighted_pairs(partition: npt.NDArray[np.integer], weights: Floats) -> float:
    sums = np.bincount(partition, weights)
    return float(np.sum(sums * sums))
