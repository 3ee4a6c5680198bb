"""Which setting of a lattice is best, by pairs, by groups or by structure alone; and the doubts.

By pairs of one identity. Let β be the share of all pairs of vectors that are of one identity, π(θ)
the share that a setting θ puts together, R(θ) the share of the known pairs that it puts together.
Then precision is β·R/π and the F1 of pairs 2·β·R/(β + π). π is known exactly, without labels, R
from the known pairs, and since no precision is above 1, β is at most π/R for every θ: the least
of these is taken. So the base rate needs no labels either, and wrong merges, of which a hundred
pairs of strangers show hardly any, are weighed as heavily as they are frequent.

By groups. With D(θ) the share of strangers put together, β·R = π − (1 − β)·D, and the F1 follows
in the same way. It is multiplied by what the structure says.

By structure. A good setting gives clusters that are clear and steady: a vector is nearer to the
rest of its own than to the next, and the order of arrival does not matter. The product of both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linkstream.tuning.evidence import Pairs
from linkstream.tuning.lattice import Lattice, agreement, smooth
from linkstream.tuning.measurements import Floats

_RECALL_MIN = 0.2  # of known pairs; below, π/R says little about the base rate
_BASE_MIN = 1e-4
_MERGED_MAX = 0.5  # of strangers; above, π and D are both near 1 and their difference is noise
_ONE_SIDED = 0.84  # standard errors: an upper bound of 80 %

# A setting is trusted without known pairs where its score is at least _CLEAR, and where no rival
# that cuts otherwise (agreement below _OTHERWISE) comes near it. It must not be too coarse: pairs
# of strangers show that most of what it puts together is right or, where there are none, its
# clusters' members are almost as alike as neighbours are. Set on eleven labelled sets.
_CLEAR = 0.15
_OTHERWISE = 0.5
_RIVAL = 0.75
_RIGHT = 0.5
_ALIKE = 0.57


def by_pairs(found: Lattice, same: Pairs) -> Floats:
    """The F1 of pairs of each setting, from pairs of one identity."""
    recall = found.share(same)
    usable = recall >= _RECALL_MIN
    base = float(np.min(found.together[usable] / recall[usable])) if usable.any() else 1.0
    return smooth(2.0 * base * recall / (base + found.together))


def by_structure(found: Lattice) -> Floats:
    """How clear and steady each setting's clusters are."""
    return _of_cuts(found, found.clear * found.steady)


def by_groups(found: Lattice, different: Pairs) -> Floats:
    """The same, times the F1 of pairs that pairs of strangers tell of."""
    merged, most = _merged(found, different)
    # β = (π − D)/(R − D) is at least (π − D)/(1 − D), for R is at most 1.
    apart = most <= _MERGED_MAX
    bases = (found.together[apart] - most[apart]) / (1.0 - most[apart])
    base = max(float(np.max(bases, initial=0.0)), _BASE_MIN)
    right = np.maximum(found.together - (1.0 - base) * merged, 0.0)
    return _of_cuts(found, found.clear * found.steady * 2.0 * right / (base + found.together))


def _merged(found: Lattice, different: Pairs) -> tuple[Floats, Floats]:
    """Share of strangers that each setting puts together, and an upper bound of it."""
    n, merged = len(different), found.share(different)
    middle = (n * merged + 1.0) / (n + 2.0)
    return merged, middle + _ONE_SIDED * np.sqrt(middle * (1.0 - middle) / (n + 2.0))


def _of_cuts(found: Lattice, raw: Floats) -> Floats:
    """Smoothed; nothing for settings that put all together or all apart, whatever is near."""
    cuts = (found.clear != 0.0) & (raw > 0.0)
    return np.where(cuts, smooth(np.maximum(raw, 0.0)), 0.0)


def doubts(found: Lattice, score: Floats, best: int, different: Pairs) -> list[str]:
    """What speaks against the best of these scores, in words; nothing is good."""
    structure = smooth(np.maximum(found.clear * found.steady, 0.0))
    if score[best] <= 0.0 or structure[best] < _CLEAR:
        return ["no thresholds give clusters that are clear and steady"]
    reasons = []
    if rival(found, score, best) > _RIVAL:
        reasons.append("thresholds far from each other cut the vectors otherwise and as well")
    if len(different) and least_precision(found, different, best) < _RIGHT:
        reasons.append("too few strangers were seen together to tell that they are kept apart")
    if not len(different) and found.likeness[best] < _ALIKE:
        reasons.append("within the clusters that stand out there seem to be finer ones")
    return reasons


def rival(found: Lattice, score: Floats, best: int) -> float:
    """The best score of a setting that cuts otherwise, as part of the best."""
    cut = found.cuts[best, 0]
    for other in np.argsort(-score, kind="stable").tolist():
        if agreement(cut, found.cuts[other, 0]) < _OTHERWISE:
            return float(score[other] / score[best])
    return 0.0


def least_precision(found: Lattice, different: Pairs, best: int) -> float:
    """Of the pairs put together, how many at least are right, by pairs of strangers."""
    return float(1.0 - _merged(found, different)[1][best] / found.together[best])


def disagreement(setting: npt.NDArray[np.int32], weights: Floats) -> tuple[float, float]:
    """Pairs apart in one order of those together in another; and the reverse.

    `weights` says how often each vector counts; a vector is no pair with itself.
    """
    itself = float(np.sum(weights * weights))
    total = float(np.sum(weights)) ** 2 - itself
    mine, other = setting[0].astype(np.int64), setting[1:]
    ours = _squares(mine, weights) - itself
    parted, joined = [], []
    for cut in other:
        _, cells = np.unique(mine * len(cut) + cut, return_inverse=True)
        both = _squares(cells, weights) - itself
        theirs = _squares(cut, weights) - itself
        parted.append(1.0 - both / max(ours, 1.0))
        joined.append((theirs - both) / max(total - ours, 1.0))
    return float(np.mean(parted)), float(np.mean(joined))


def _squares(groups: npt.NDArray[np.integer], weights: Floats) -> float:
    sums = np.bincount(groups, weights)
    return float(np.sum(sums * sums))
