"""Unit vectors: the angle between them, and three ways to say where their middle is.

Equations 1, 6 and 12. `centroid` is what the algorithm keeps, `model_centroid` is what the paper
writes for large N, `spherical_mean` is the maximum-likelihood centre itself; docs/model.md
compares the three.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, ConvergenceError, VectorError

Floats = npt.NDArray[np.float64]

# A sum of k unit vectors shorter than k times this is rounding, not a direction.
_VANISHING = 1e-13


def angle(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """How far apart two vectors are, in radians from 0 to π (equation 1).

    Equal in exact arithmetic to arccos(x·y) on unit vectors, but precise to a few rounding
    errors at every angle, where arccos loses half the digits near 0 and π. The lengths do not
    matter. The last axis holds the coordinates; leading axes broadcast. Cost: a few passes over
    the larger argument.

    >>> float(angle([1.0, 0.0], [0.0, 1.0])) == math.pi / 2
    True
    """
    a, b = normalise(x), normalise(y)
    if a.shape[-1] != b.shape[-1]:
        raise VectorError(
            f"vectors of {a.shape[-1]} and of {b.shape[-1]} coordinates",
            expected="vectors of one dimension",
            remedy="Compare vectors of the same encoder.",
        )
    # In the rhombus 0, a, a+b, b the diagonals a+b and a-b are perpendicular and halve the angle:
    # tan(angle / 2) = |a-b| / |a+b|. Neither length cancels where the other one carries the answer.
    return np.asarray(2.0 * np.arctan2(_length(a - b), _length(a + b)))


def normalise(X: npt.ArrayLike) -> Floats:
    """The same directions at unit length, as a new float64 array; the last axis is coordinates.

    Raises VectorError for a vector that is zero or not finite, and names its row. Neither huge
    nor tiny coordinates overflow.

    >>> normalise([[3.0, 4.0]]).tolist()
    [[0.6, 0.8]]
    """
    array = _finite(X)
    # Dividing by the largest coordinate first keeps the squares within range.
    largest = np.max(np.abs(array), axis=-1, keepdims=True)
    if not np.all(largest > 0.0):
        _reject(largest[..., 0] > 0.0, "is zero", "a vector with a direction")
    scaled = array / largest
    return np.asarray(scaled / _length(scaled)[..., np.newaxis])


def centroid(X: npt.ArrayLike) -> Floats:
    """The middle that Links keeps for a subcluster: the vectors' sum at unit length.

    The direction of the mean, hence the unit vector with the greatest total similarity to the
    rows of X. Raises VectorError if the sum vanishes: opposite vectors have no middle.

    >>> centroid([[1.0, 0.0], [0.0, 1.0]]).round(4).tolist()
    [0.7071, 0.7071]
    """
    rows = vector_rows(X)
    total = rows.sum(axis=0)
    length = float(_length(total))
    if length <= _VANISHING * float(_length(rows).sum()):
        raise VectorError(
            f"{len(rows)} vectors whose sum has length {length:.3g}",
            expected="vectors that leave a direction when added",
            remedy="Opposite vectors cancel; they are not of one cluster.",
        )
    return np.asarray(total / length)


def model_centroid(X: npt.ArrayLike, t_c: float) -> Floats:
    """The middle as the paper writes it: the sum over the length the model expects (equation 12).

    Divides by √(k² cos²θ_c + k sin²θ_c), t_c being cos θ_c. It points where `centroid` points but
    is *not of unit length* in general: only for vectors that lie exactly at θ_c from the centre
    with perpendicular remainders. Its length thus measures how well the approximation holds.

    >>> model_centroid([[0.6, 0.8]], 0.7).round(12).tolist()
    [0.6, 0.8]
    """
    rows = vector_rows(X)
    if not 0.0 <= t_c <= 1.0:
        raise ArgumentError(
            f"t_c is {t_c!r}",
            expected="a cosine in [0, 1]",
            remedy="t_c is cos θ_c: see typical_angle.",
        )
    k = float(len(rows))
    c2 = t_c * t_c
    return np.asarray(rows.sum(axis=0) / math.sqrt(k * k * c2 + k * (1.0 - c2)))


# Why the iteration of `spherical_mean` descends, from any start.
#
# Let the weights add up to 1 and F(μ) = ½ Σ w_i ∠(x_i, μ)². Moving μ by a small tangent vector v
# changes the angle θ to x_i as in flat space along the line of sight, and less than that across
# it, because meridians converge: the Hessian of ½θ² has eigenvalue 1 along and θ cot θ across,
# and θ cot θ ≤ 1. At the antipode of x_i, ½θ² is the lower envelope of smooth functions, which
# only lowers it. So no direction curves upwards faster than 1, and with the gradient
# g = -Σ w_i log_μ(x_i) every step v of any length has
#     F(exp_μ(v)) ≤ F(μ) + g·v + ½|v|².
# The right side is least at v = -g = Σ w_i log_μ(x_i), exactly the step of Buss and Fillmore:
# average the points in the tangent plane, go there. It gains at least ½|g|²; as F ≥ 0, the
# gradients tend to 0.
#
# Why the limit is the one we want. Let every point lie in the open hemisphere H around c. A
# minimum outside H could be mirrored into H across its boundary, nearer to every point; so the
# minima lie in H, and there the critical point is unique (Buss and Fillmore, theorem 1). Hence
# the certificate checked below: x_i·c > 0 for all i with c the start, and the result within H.
# The steps shrink by a factor of about 1 - Σ w_i θ_i cot θ_i each.
def spherical_mean(
    X: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    tolerance: float = 1e-12,
    iterations: int = 10_000,
) -> Floats:
    """The most likely centre of the vectors' cluster: least sum of squared angles (equation 6).

    Buss and Fillmore's spherical average. The answer is certified: every vector lies in one open
    hemisphere, where the minimum is unique, and the mean of the tangent vectors has length at
    most `tolerance`. Raises ConvergenceError otherwise. Weights, if given, are positive; only
    their ratios matter. Cost: some ten to fifty passes over X for angles up to 75 degrees.

    >>> spherical_mean([[1.0, 0.0], [0.0, 1.0]]).round(4).tolist()
    [0.7071, 0.7071]
    """
    rows = normalise(vector_rows(X))
    share = _shares(weights, len(rows))
    start = centroid(share[:, np.newaxis] * rows)
    _require_hemisphere(rows @ start)
    mean, step = start, math.inf
    for _ in range(iterations):
        tangent = share @ _log_map(mean, rows)
        step = float(_length(tangent))
        if step <= tolerance and float(mean @ start) > 0.0:
            return mean
        mean = _exp_map(mean, tangent)
    raise ConvergenceError(
        f"a step of {step:.3g} radians after {iterations} iterations",
        expected=f"at most {tolerance:.3g}, in the hemisphere of the start",
        remedy="Vectors near the rim of a hemisphere converge slowly; raise iterations.",
    )


def _log_map(base: Floats, rows: Floats) -> Floats:
    """Each row as a tangent vector at `base`: its direction from there, its angle as length."""
    along = rows @ base
    across = rows - along[:, np.newaxis] * base
    sine = _length(across)
    angles = np.arctan2(sine, along)
    # A row at the base itself has no direction and needs none: its tangent vector is 0.
    return np.asarray(across * (angles / np.where(sine > 0.0, sine, 1.0))[:, np.newaxis])


def _exp_map(base: Floats, tangent: Floats) -> Floats:
    """Where one arrives from `base` along the great circle of `tangent`, after its length."""
    length = float(_length(tangent))
    # np.sinc(t) is sin(πt)/(πt) and whole at 0. Scaling removes the drift of rounding.
    return normalise(math.cos(length) * base + float(np.sinc(length / math.pi)) * tangent)


def _shares(weights: npt.ArrayLike | None, count: int) -> Floats:
    """The weights as positive numbers that add up to one."""
    if weights is None:
        return np.full(count, 1.0 / count)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (count,) or not np.all(np.isfinite(array)) or not np.all(array > 0.0):
        raise ArgumentError(
            f"weights of shape {array.shape}, least {array.min(initial=math.inf)!r}",
            expected=f"{count} finite positive numbers",
            remedy="Leave a vector out instead of giving it no weight.",
        )
    return np.asarray(array / array.sum())


def _require_hemisphere(similarities: Floats) -> None:
    least = int(np.argmin(similarities))
    if similarities[least] <= 0.0:
        raise ConvergenceError(
            f"the vector in row {least} has similarity {similarities[least]:.3g} to the centroid",
            expected="all vectors in an open hemisphere around their centroid",
            remedy="Vectors this far apart may have several means; use centroid, or cluster first.",
        )


def vector_rows(X: npt.ArrayLike) -> Floats:
    """X as float64, one finite vector per row; VectorError otherwise."""
    array = _finite(X)
    if array.ndim != 2 or len(array) == 0:
        raise VectorError(
            f"an array of shape {array.shape}",
            expected="one vector per row, at least one row",
            remedy="Pass an array of shape (count, dimension).",
        )
    return array


def _finite(X: npt.ArrayLike) -> Floats:
    array = np.asarray(X, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise VectorError(
            f"an array of shape {array.shape}",
            expected="coordinates along the last axis",
            remedy="Pass an array of shape (dimension,) or (count, dimension).",
        )
    if not np.all(np.isfinite(array)):
        _reject(np.all(np.isfinite(array), axis=-1), "is not finite", "finite coordinates")
    return array


def _reject(good: npt.NDArray[np.bool_], seen: str, expected: str) -> None:
    """Raise for the first vector that is not `good`, naming its row where there are rows."""
    row = int(np.flatnonzero(~good.reshape(-1))[0]) if good.ndim else None
    name = "the vector" if row is None else f"the vector in row {row}"
    raise VectorError(
        f"{name} {seen}", expected=expected, remedy="Drop it before clustering.", row=row
    )


def _length(X: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", X, X)))
