"""The three lemmas on which Links stands, measured on vectors at hand: equations 9–11.

Each says that something is almost always almost constant when N is large. Each function here
returns the two numbers of its lemma, δ and ε, as the vectors have them, so that a caller can see
how far the approximation holds on real data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, VectorError
from linkstream.paper.sphere import angle, normalise, vector_rows

Floats = npt.NDArray[np.float64]

# A lemma about pairs looks at all of them up to this many, and samples this many beyond.
MOST_PAIRS = 200_000

# Pairs are compared in blocks of about this many coordinates, to keep memory flat.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class Concentration:
    """How tightly a quantity of the vectors gathers where a lemma says it does.

    Attributes:
        beyond: the fraction of cases that exceed the δ asked about: the lemma's ε.
        delta: the δ that all but the ε asked about stay within.
        mean: the mean of the quantity (a similarity in lemmas 1 and 3, an angle in lemma 2).
        spread: its standard deviation.
        cases: how many vectors or pairs were measured.
    """

    beyond: float
    delta: float
    mean: float
    spread: float
    cases: int


def strangers_concentration(
    X: npt.ArrayLike,
    *,
    delta: float = 0.2,
    epsilon: float = 0.01,
    rng: np.random.Generator | None = None,
) -> Concentration:
    """Whether vectors of different clusters are almost perpendicular (lemma 1, equation 9).

    X holds one vector per cluster, or vectors that are mostly strangers. The quantity is the
    similarity of two of them. A mean well above 0 says that the space sits in a cone and should
    be centred. Above MOST_PAIRS pairs a sample is drawn with `rng`.
    """
    rows = normalise(vector_rows(X))
    products = _pair_products(rows, rng)
    return _measured(products, products, delta, epsilon)


def angle_concentration(
    X: npt.ArrayLike,
    center: npt.ArrayLike,
    *,
    theta_c: float | None = None,
    delta: float = 0.2,
    epsilon: float = 0.01,
) -> Concentration:
    """Whether a cluster's vectors all lie at one angle from its centre (lemma 2, equation 10).

    The quantity is the angle θ in radians; δ bounds |θ - θ_c|. Without `theta_c` the median
    angle stands for it. One pass over X.
    """
    theta = angle(vector_rows(X), _vector(center))
    middle = float(np.median(theta)) if theta_c is None else theta_c
    return _measured(theta, np.abs(theta - middle), delta, epsilon)


def residual_concentration(
    X: npt.ArrayLike,
    center: npt.ArrayLike,
    *,
    delta: float = 0.2,
    epsilon: float = 0.01,
    rng: np.random.Generator | None = None,
) -> Concentration:
    """Whether a cluster's vectors leave its centre in perpendicular directions (lemma 3, eq 11).

    The quantity is the product of two vectors' components across the centre, as the paper writes
    it: not scaled to unit length, so at most sin²θ. A mean above 0 says that the centre is not
    the middle, or that the cluster is elongated. Above MOST_PAIRS pairs a sample is drawn.
    """
    rows, middle = normalise(vector_rows(X)), normalise(_vector(center))
    across = rows - np.multiply.outer(rows @ middle, middle)
    products = _pair_products(across, rng)
    return _measured(products, products, delta, epsilon)


def _measured(values: Floats, excess: Floats, delta: float, epsilon: float) -> Concentration:
    if not (delta > 0.0 and 0.0 < epsilon < 1.0):
        raise ArgumentError(
            f"δ = {delta!r} and ε = {epsilon!r}",
            expected="δ above 0 and ε in (0, 1)",
            remedy="The lemmas ask for both to be small, such as 0.2 and 0.01.",
        )
    return Concentration(
        beyond=float(np.mean(excess > delta)),
        delta=float(np.quantile(excess, 1.0 - epsilon, method="higher")),
        mean=float(values.mean()),
        spread=float(values.std()),
        cases=len(values),
    )


def _pair_products(rows: Floats, rng: np.random.Generator | None) -> Floats:
    """x·x' over all pairs of rows, or over MOST_PAIRS drawn ones when there are more."""
    count = len(rows)
    if count < 2:
        raise VectorError(
            f"{count} vector",
            expected="at least two vectors",
            remedy="The lemma speaks of pairs.",
        )
    if count * (count - 1) // 2 <= MOST_PAIRS:
        first, second = np.triu_indices(count, 1)
        return np.asarray((rows @ rows.T)[first, second])
    if rng is None:
        raise ArgumentError(
            f"{count} vectors, more than {MOST_PAIRS} pairs, and no rng",
            expected="a NumPy random generator to draw pairs with",
            remedy="Pass rng=np.random.default_rng(seed).",
        )
    first = rng.integers(count, size=MOST_PAIRS)
    # A shift of 1 to count-1 around the ring reaches every other row alike, never the same one.
    second = (first + rng.integers(1, count, size=MOST_PAIRS)) % count
    step = max(1, _BLOCK // rows.shape[1])
    blocks = [slice(start, start + step) for start in range(0, MOST_PAIRS, step)]
    return np.concatenate(
        [np.einsum("ij,ij->i", rows[first[block]], rows[second[block]]) for block in blocks]
    )


def _vector(center: npt.ArrayLike) -> Floats:
    array = np.asarray(center, dtype=np.float64)
    if array.ndim != 1:
        raise VectorError(
            f"a center of shape {array.shape}",
            expected="one vector",
            remedy="Measure one cluster at a time.",
        )
    return array
