"""The three lemmas on real vectors: groups of one identity each, and what they are like.

With labels the groups are the identities. Without them they are made: a vector drawn at random and
those that lie at least seven tenths of the way to it, from a random pair to a pair of neighbours.
Measured on eleven labelled sets, such groups are mostly of one identity (82 to 100 % of their
vectors; of product offers 20 %) and only a part of it: two of their vectors are more alike than
two of an identity, by up to 0.08 for voices and faces, 0.2 for texts, 0.4 in a noisy meeting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.measurements import Floats, Rows

SMALLEST = 5  # vectors of a group that lemmas 2 and 3 are measured on
_NEAR = 0.7  # of the way from a random pair to a neighbour, two vectors share a group
_LOBED = 40  # vectors of a group that is cut in two
_PER_IDENTITY = 60
_SEEDS = 200
_BLOCK = 8192
_MOST = 200_000
_DELTA, _EPSILON = 0.2, 0.01

Labels = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Lemma:
    """A quantity that a lemma says is almost constant, as the vectors have it.

    Attributes:
        mean: of a similarity (lemma 1), an angle (lemma 2) or a product (lemma 3).
        spread: its standard deviation.
        beyond: the share of cases further than 0.2 from where the lemma puts them: its ε.
        delta: the distance that all but 1 % of the cases stay within: its δ.
        dimensions: in how many dimensions vectors drawn evenly would have this spread; None for
            lemma 2.
        cases: pairs or vectors measured.
    """

    mean: float
    spread: float
    beyond: float
    delta: float
    dimensions: float | None
    cases: int


@dataclass(frozen=True, slots=True)
class Groups:
    """What groups of one identity are like, and how they lie to each other.

    Attributes:
        labelled: whether the groups are labels or were made from neighbours.
        count: groups of five vectors or more, on which lemmas 2 and 3 are measured.
        pair: mean similarity of two vectors of one group: the T_c² of these vectors; None where
            no group is big enough.
        strangers, angles, residuals: lemmas 1, 2 and 3; None where there was nothing to measure.
        strangers_pass: share of pairs of strangers at or above T_c²; None without thresholds.
        members_fail: share of vectors that fail s~ against the rest of their group as one
            subcluster; None without thresholds.
        lobes: for each big group, the similarity of its two halves along its longest direction.
        lobes_fail: share of those that s~ would not link; None without thresholds or big groups.
    """

    labelled: bool
    count: int
    pair: float | None
    strangers: Lemma | None
    angles: Lemma | None
    residuals: Lemma | None
    strangers_pass: float | None
    members_fail: float | None
    lobes: tuple[float, ...]
    lobes_fail: float | None


def sample_of_identities(who: Labels, size: int, rng: np.random.Generator) -> Labels:
    """Rows of identities drawn at random, up to sixty of each, about `size` in all."""
    order = rng.permutation(len(who))
    by_identity = order[np.argsort(who[order], kind="stable")]
    parts = np.split(by_identity, np.flatnonzero(np.diff(who[by_identity])) + 1)
    chosen: list[Labels] = []
    taken = 0
    for identity in rng.permutation(len(parts)):
        chosen.append(parts[identity][:_PER_IDENTITY])
        taken += len(chosen[-1])
        if taken >= size:
            break
    return np.sort(np.concatenate(chosen))


def neighbourhoods(
    rows: Rows,
    drawn: Labels,
    nearest: Labels,
    mean: Floats,
    rng: np.random.Generator,
) -> tuple[Labels, Labels]:
    """Groups without labels: rows, and the group of each; what is near a drawn row is its group.

    `nearest` is the nearest neighbour of each drawn row. Near is judged with the mean taken away.
    A row near two drawn ones goes to the first, and drawn rows that are taken begin no group.
    """
    here = _centred(rows[drawn], mean)
    typical = float(np.median(np.einsum("ij,ij->i", here, _centred(rows[nearest], mean))))
    random_pair = _pair_similarity([here.astype(np.float64)])
    least = random_pair + _NEAR * (typical - random_pair)
    seeds = rng.permutation(drawn)[:_SEEDS]
    group = np.full(len(rows), -1, dtype=np.intp)
    middles = _centred(rows[seeds], mean).T
    for start in range(0, len(rows), _BLOCK):
        near = _centred(rows[start : start + _BLOCK], mean) @ middles >= least
        group[start : start + len(near)] = np.where(near.any(axis=1), near.argmax(axis=1), -1)
    group[seeds] = np.where(group[seeds] < 0, np.arange(len(seeds)), group[seeds])
    chosen = np.flatnonzero(group >= 0)
    kept = sample_of_identities(group[chosen], len(chosen), rng)
    return chosen[kept], group[chosen[kept]]


def _centred(rows: Rows, mean: Floats) -> Rows:
    left = rows - mean.astype(np.float32)
    left /= np.maximum(np.linalg.norm(left, axis=1, keepdims=True), 1e-6)
    return left


def measure_groups(
    sample: Rows,
    who: Labels,
    *,
    labelled: bool,
    thresholds: Thresholds | None,
    rng: np.random.Generator,
) -> Groups:
    """The lemmas on a sample whose groups are known or guessed."""
    strange = _strangers(sample, who, rng)
    members = [sample[who == group].astype(np.float64) for group in np.unique(who)]
    big = [rows for rows in members if len(rows) >= SMALLEST]
    angles = np.concatenate([_angles(rows) for rows in big]) if big else np.empty(0)
    residuals, sines = _residuals(big, rng)
    lobes = [_lobes(rows) for rows in big if len(rows) >= _LOBED]
    return Groups(
        labelled=labelled,
        count=len(big),
        pair=_pair_similarity(big) if big else None,
        strangers=_lemma(strange, strange, scale=1.0),
        angles=_lemma(angles, np.abs(angles - np.median(angles)) if big else angles, scale=None),
        residuals=_lemma(residuals, residuals, scale=sines),
        strangers_pass=_share_passing(strange, thresholds),
        members_fail=_members_failing(big, thresholds),
        lobes=tuple(similarity for similarity, _, _ in lobes),
        lobes_fail=_lobes_failing(lobes, thresholds),
    )


def once_centred(
    sample: Rows, who: Labels, mean: Floats, rng: np.random.Generator
) -> tuple[float | None, float | None]:
    """Mean similarity of strangers, and of two of one group, with the mean taken away."""
    left = _centred(sample, mean)
    strange = _strangers(left, who, rng)
    members = [left[who == group].astype(np.float64) for group in np.unique(who)]
    big = [rows for rows in members if len(rows) >= SMALLEST]
    return (
        float(strange.mean()) if len(strange) else None,
        _pair_similarity(big) if big else None,
    )


def _lemma(values: Floats, excess: Floats, *, scale: float | None) -> Lemma | None:
    if not len(values):
        return None
    spread = float(values.std())
    even = None if scale is None or spread == 0.0 else (scale / spread) ** 2
    return Lemma(
        mean=float(values.mean()),
        spread=spread,
        beyond=float(np.mean(excess > _DELTA)),
        delta=float(np.quantile(excess, 1.0 - _EPSILON, method="higher")),
        dimensions=even,
        cases=len(values),
    )


def _strangers(sample: Rows, who: Labels, rng: np.random.Generator) -> Floats:
    """Similarities of pairs from different groups, every group alike, 200,000 at most."""
    groups, inverse, counts = np.unique(who, return_inverse=True, return_counts=True)
    if len(groups) < 2:
        return np.empty(0)
    # Two different groups, then one vector of each: a big group is no more of a stranger.
    order = np.argsort(inverse, kind="stable")
    starts = np.cumsum(counts) - counts
    first = rng.integers(len(groups), size=_MOST)
    second = (first + rng.integers(1, len(groups), size=_MOST)) % len(groups)
    a, b = (order[starts[g] + rng.integers(counts[g])] for g in (first, second))
    blocks = [slice(start, start + _BLOCK) for start in range(0, _MOST, _BLOCK)]
    products = [np.einsum("ij,ij->i", sample[a[block]], sample[b[block]]) for block in blocks]
    return np.concatenate(products).astype(np.float64)


def _angles(rows: Floats) -> Floats:
    """The angle of each vector to the centroid of the others of its group."""
    others = rows.sum(axis=0) - rows
    length = np.maximum(np.linalg.norm(others, axis=1), 1e-12)  # opposites have no centroid
    cosine = np.einsum("ij,ij->i", rows, others) / length
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _residuals(big: list[Floats], rng: np.random.Generator) -> tuple[Floats, float]:
    """Products of components across the centroid, over pairs of a group; and the mean sin²θ."""
    products, squares = [np.empty(0)], [np.empty(0)]
    for rows in big:
        middle = rows.sum(axis=0)
        middle /= max(float(np.linalg.norm(middle)), 1e-12)
        across = rows - np.multiply.outer(rows @ middle, middle)
        gram = across @ across.T
        products.append(gram[np.triu_indices(len(rows), 1)])
        squares.append(np.diagonal(gram))
    pooled = np.concatenate(products)
    if len(pooled) > _MOST:
        pooled = rng.choice(pooled, _MOST, replace=False)
    return pooled, float(np.concatenate(squares).mean()) if big else 0.0


def _pair_similarity(big: list[Floats]) -> float:
    """Mean similarity of two vectors of one group, every group alike."""
    means = []
    for rows in big:
        total, k = rows.sum(axis=0), len(rows)
        means.append((float(total @ total) - float(np.sum(rows * rows))) / (k * (k - 1)))
    return float(np.mean(means))


def _lobes(rows: Floats) -> tuple[float, int, int]:
    """Similarity of the two halves of a group along its longest direction, and their counts."""
    left = rows - rows.mean(axis=0)
    longest = np.linalg.svd(left, full_matrices=False)[2][0]
    side = left @ longest > 0.0
    a, b = rows[side].sum(axis=0), rows[~side].sum(axis=0)
    length = max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12)
    return float(a @ b) / length, int(side.sum()), int((~side).sum())


def _share_passing(strange: Floats, thresholds: Thresholds | None) -> float | None:
    if thresholds is None or not len(strange):
        return None
    return float(np.mean(strange >= thresholds.edge(1, 1)))


def _members_failing(big: list[Floats], thresholds: Thresholds | None) -> float | None:
    if thresholds is None or not big:
        return None
    fails = [np.cos(_angles(rows)) < thresholds.edge(len(rows) - 1, 1) for rows in big]
    return float(np.mean(np.concatenate(fails)))


def _lobes_failing(
    lobes: list[tuple[float, int, int]], thresholds: Thresholds | None
) -> float | None:
    if thresholds is None or not lobes:
        return None
    fails = [similarity < thresholds.edge(max(a, 1), max(b, 1)) for similarity, a, b in lobes]
    return float(np.mean(fails))
