"""The three lemmas of the paper, measured on given vectors (equations 9–11).

Each lemma says that a quantity is almost always almost constant for large N. Each function returns
δ and ε of its lemma for the given vectors, and so shows how far the approximation holds. `delta` is
the δ for which ε is measured, and `epsilon` the ε for which δ is measured. `rng` draws the pairs if
there are more than MOST_PAIRS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, VectorError
from linkstream.paper.sphere import angle, normalise, vector_rows

Floats = npt.NDArray[np.float64]

# Measure all pairs up to this number, and a sample of this number if there are more.
MOST_PAIRS = 200_000

# Compare pairs in blocks of about this many coordinates, to bound memory.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class Concentration:
    """How tightly the quantity of a lemma is concentrated.

    Attributes:
        beyond: ε for the given δ: the fraction of cases beyond δ.
        delta: δ for the given ε: a fraction ε of the cases is beyond it.
        mean: the mean of the quantity (a similarity in lemmas 1 and 3, an angle in lemma 2).
        spread: the standard deviation of the quantity.
        cases: the number of vectors or pairs measured.
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
    """Measure whether vectors of different clusters are almost perpendicular (lemma 1, equation 9).

    The quantity is the similarity of two vectors. If its mean is well above 0, the vectors sit in
    a cone and should be centred.
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
    """Measure whether a cluster's vectors are at one angle from its centre (lemma 2, equation 10).

    The quantity is the angle θ in radians; δ bounds |θ - θ_c|. If `theta_c` is None, θ_c is the
    median angle.
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
    """Measure whether components across the centre are perpendicular (lemma 3, equation 11).

    The quantity is the product of two vectors' components across the centre. The components are
    not scaled to unit length, so the product is at most sin²θ. If its mean is above 0, the centre
    is wrong or the cluster is elongated.
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
            remedy="Pass small numbers, such as 0.2 and 0.01.",
        )
    return Concentration(
        beyond=float(np.mean(excess > delta)),
        delta=float(np.quantile(excess, 1.0 - epsilon, method="higher")),
        mean=float(values.mean()),
        spread=float(values.std()),
        cases=len(values),
    )


def _pair_products(rows: Floats, rng: np.random.Generator | None) -> Floats:
    """Return x·x' of all pairs of rows, or of a sample of MOST_PAIRS pairs if there are more."""
    count = len(rows)
    if count < 2:
        raise VectorError(
            f"{count} vector",
            expected="at least two vectors",
            remedy="Pass more vectors; the lemma is about pairs.",
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
    # A shift by 1 to count-1 gives every other row with equal probability, never the same row.
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
