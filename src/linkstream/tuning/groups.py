"""The three lemmas of the paper, measured on groups of vectors of one identity each.

With labels, the groups are the identities. Without labels, a group is a vector drawn at random and
the vectors near it: their similarity lies at least seven tenths of the way from a random pair to a
pair of neighbours. Measured on eleven labelled sets, such groups are mostly of one identity (82 to
100 % of their vectors; 20 % for product offers) and cover only a part of it: two of their vectors
are more similar than two of an identity, by up to 0.08 for voices and faces, 0.2 for texts, and
0.4 in a noisy meeting. Strangers are vectors of different identities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.measurements import Floats, Rows

SIZE_MIN = 5  # vectors of a group, for lemmas 2 and 3
_NEAR = 0.7  # of the way from a random pair to a pair of neighbours
_HALVED_MIN = 40  # vectors of a group whose two halves are compared
_PER_IDENTITY = 60
_SEEDS = 200
_BLOCK = 8192
_PAIRS_MAX = 200_000
_DELTA, _EPSILON = 0.2, 0.01

Labels = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Lemma:
    """A quantity that is almost constant according to a lemma, as measured.

    Attributes:
        mean: mean of a similarity (lemma 1), an angle (lemma 2) or a product (lemma 3).
        spread: standard deviation of the quantity.
        beyond: share of cases more than 0.2 from the value of the lemma: its ε.
        delta: distance that all but 1 % of the cases stay within: its δ.
        dimensions: number of dimensions in which uniformly drawn vectors have this spread; None
            for lemma 2.
        cases: number of pairs or vectors measured.
    """

    mean: float
    spread: float
    beyond: float
    delta: float
    dimensions: float | None
    cases: int


@dataclass(frozen=True, slots=True)
class Groups:
    """The lemmas on groups of one identity each, and the thresholds against the groups.

    Attributes:
        labelled: whether the groups are given by labels, or made from neighbours.
        count: number of groups of five vectors or more, for lemmas 2 and 3.
        pair: mean similarity of two vectors of one group, the T_c² of these vectors; None if no
            group is big enough.
        strangers, angles, residuals: lemmas 1, 2 and 3; None if there is nothing to measure.
        strangers_pass: share of pairs of strangers at or above T_c²; None without thresholds.
        members_fail: share of vectors that fail s~ against the rest of their group as one
            subcluster; None without thresholds.
        lobes: for each big group, the similarity of its two halves along its longest direction.
        lobes_fail: share of `lobes` that s~ would not link; None without thresholds or big groups.
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
    """Return rows of random identities, up to sixty of each, about `size` in total."""
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
    rows: Rows, drawn: Labels, nearest: Labels, mean: Floats, rng: np.random.Generator
) -> tuple[Labels, Labels]:
    """Return the rows in groups made without labels, and the group of each.

    A group is the rows near a drawn row, after centring. A row near two drawn rows belongs to the
    first. A drawn row that belongs to another group starts none.
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
    chosen = chosen[sample_of_identities(group[chosen], len(chosen), rng)]
    return chosen, group[chosen]


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
    """Measure the lemmas on a sample, with the group of each vector."""
    strange = _strangers(sample, who, rng)
    big = _big_groups(sample, who)
    angles = np.concatenate([_angles(rows) for rows in big]) if big else np.empty(0)
    residuals, sines = _residuals(big, rng)
    lobes = [_lobes(rows) for rows in big if len(rows) >= _HALVED_MIN]
    return Groups(
        labelled=labelled,
        count=len(big),
        pair=_pair_similarity(big) if big else None,
        strangers=_lemma(strange, strange, scale=1.0),
        angles=_lemma(angles, np.abs(angles - np.median(angles)) if big else angles, scale=None),
        residuals=_lemma(residuals, residuals, scale=sines),
        lobes=tuple(similarity for similarity, _, _ in lobes),
        **_tested(thresholds, strange, big, lobes),
    )


def similarities_after_centring(
    sample: Rows, who: Labels, mean: Floats, rng: np.random.Generator
) -> tuple[float | None, float | None]:
    """Return the mean similarity of strangers, and of two of one group, less the mean vector."""
    centred = _centred(sample, mean)
    strange, big = _strangers(centred, who, rng), _big_groups(centred, who)
    return (float(strange.mean()) if len(strange) else None, _pair_similarity(big) if big else None)


def _big_groups(sample: Rows, who: Labels) -> list[Floats]:
    members = [sample[who == group].astype(np.float64) for group in np.unique(who)]
    return [rows for rows in members if len(rows) >= SIZE_MIN]


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
    """Return similarities of 200,000 pairs from different groups, with equal group weights."""
    groups, inverse, counts = np.unique(who, return_inverse=True, return_counts=True)
    if len(groups) < 2:
        return np.empty(0)
    # Draw two different groups, then one vector of each, so that all groups weigh the same.
    order = np.argsort(inverse, kind="stable")
    starts = np.cumsum(counts) - counts
    first = rng.integers(len(groups), size=_PAIRS_MAX)
    second = (first + rng.integers(1, len(groups), size=_PAIRS_MAX)) % len(groups)
    a, b = (order[starts[g] + rng.integers(counts[g])] for g in (first, second))
    blocks = [slice(start, start + _BLOCK) for start in range(0, _PAIRS_MAX, _BLOCK)]
    products = [np.einsum("ij,ij->i", sample[a[block]], sample[b[block]]) for block in blocks]
    return np.concatenate(products).astype(np.float64)


def _angles(rows: Floats) -> Floats:
    """Return the angle of each vector to the centroid of the rest of its group."""
    others = rows.sum(axis=0) - rows
    length = np.maximum(np.linalg.norm(others, axis=1), 1e-12)  # the sum may be zero
    cosine = np.einsum("ij,ij->i", rows, others) / length
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _residuals(big: list[Floats], rng: np.random.Generator) -> tuple[Floats, float]:
    """Return products of components perpendicular to the centroid, and the mean sin²θ."""
    products, squares = [np.empty(0)], [np.empty(0)]
    for rows in big:
        middle = rows.sum(axis=0)
        middle /= max(float(np.linalg.norm(middle)), 1e-12)
        across = rows - np.multiply.outer(rows @ middle, middle)
        gram = across @ across.T
        products.append(gram[np.triu_indices(len(rows), 1)])
        squares.append(np.diagonal(gram))
    pooled = np.concatenate(products)
    if len(pooled) > _PAIRS_MAX:
        pooled = rng.choice(pooled, _PAIRS_MAX, replace=False)
    return pooled, float(np.concatenate(squares).mean()) if big else 0.0


def _pair_similarity(big: list[Floats]) -> float:
    """Return the mean similarity of two vectors of one group, with equal group weights."""
    means = []
    for rows in big:
        total, k = rows.sum(axis=0), len(rows)
        means.append((float(total @ total) - float(np.sum(rows * rows))) / (k * (k - 1)))
    return float(np.mean(means))


def _lobes(rows: Floats) -> tuple[float, int, int]:
    """Return the similarity of two halves of a group along its longest direction, and counts."""
    left = rows - rows.mean(axis=0)
    longest = np.linalg.svd(left, full_matrices=False)[2][0]
    side = left @ longest > 0.0
    a, b = rows[side].sum(axis=0), rows[~side].sum(axis=0)
    length = max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12)
    return float(a @ b) / length, int(side.sum()), int((~side).sum())


def _tested(
    thresholds: Thresholds | None,
    strange: Floats,
    big: list[Floats],
    lobes: list[tuple[float, int, int]],
) -> dict[str, float | None]:
    """Return the shares that pass or fail the thresholds, as fields of `Groups`."""
    if thresholds is None:
        return {"strangers_pass": None, "members_fail": None, "lobes_fail": None}
    edge = thresholds.edge
    members = [np.cos(_angles(rows)) < edge(len(rows) - 1, 1) for rows in big]
    halves = [similarity < edge(max(a, 1), max(b, 1)) for similarity, a, b in lobes]
    return {
        "strangers_pass": float(np.mean(strange >= edge(1, 1))) if len(strange) else None,
        "members_fail": float(np.mean(np.concatenate(members))) if big else None,
        "lobes_fail": float(np.mean(halves)) if lobes else None,
    }
