"""Unit vectors: the angle between them, and three kinds of centre (equations 1, 6 and 12).

`centroid` is the one that the algorithm uses, `model_centroid` the one that the paper writes for
large N, and `spherical_mean` the maximum-likelihood centre. docs/model.md compares the three.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, ConvergenceError, VectorError

Floats = npt.NDArray[np.float64]

# A sum of k unit vectors that is shorter than k times this has no direction, only rounding errors.
_VANISHING = 1e-13


def angle(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Return the angle between two vectors, in radians from 0 to π (equation 1).

    The result is precise to a few rounding errors at every angle; arccos(x·y) would lose half the
    digits near 0 and π. The last axis holds the coordinates; leading axes broadcast.

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
    # The diagonals a+b and a-b of the rhombus 0, a, a+b, b are perpendicular and halve the angle:
    # tan(angle / 2) = |a-b| / |a+b|. Where one of these lengths cancels, the other one is precise.
    return np.asarray(2.0 * np.arctan2(_length(a - b), _length(a + b)))


def normalise(X: npt.ArrayLike) -> Floats:
    """Return vectors scaled to unit length, as a new float64 array.

    The last axis holds the coordinates. Huge and tiny coordinates do not overflow.

    Raises:
        VectorError: a vector is zero or not finite; the error names its row.

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
    """Return the centroid that Links uses: the sum of the vectors, scaled to unit length.

    It is the unit vector with the greatest total similarity to the rows.

    Raises:
        VectorError: the vectors cancel each other, so that their sum has no direction.

    >>> centroid([[1.0, 0.0], [0.0, 1.0]]).round(4).tolist()
    [0.7071, 0.7071]
    """
    rows = vector_rows(X)
    total = rows.sum(axis=0)
    length = float(_length(total))
    if length <= _VANISHING * float(_length(rows).sum()):
        raise VectorError(
            f"{len(rows)} vectors whose sum has length {length:.3g}",
            expected="vectors whose sum has a direction",
            remedy="Pass vectors of one cluster; opposite vectors cancel.",
        )
    return np.asarray(total / length)


def model_centroid(X: npt.ArrayLike, t_c: float) -> Floats:
    """Return the centroid of equation 12: the sum divided by √(k² cos²θ_c + k sin²θ_c).

    It has the direction of `centroid`, but unit length only if every vector is exactly at θ_c from
    the centre and their components across it are perpendicular. Its length therefore measures how
    well the approximation holds.

    >>> model_centroid([[0.6, 0.8]], 0.7).round(12).tolist()
    [0.6, 0.8]
    """
    rows = vector_rows(X)
    if not 0.0 <= t_c <= 1.0:
        raise ArgumentError(
            f"t_c is {t_c!r}",
            expected="a cosine in [0, 1]",
            remedy="Pass cos θ_c; typical_angle gives θ_c.",
        )
    k = float(len(rows))
    c2 = t_c * t_c
    return np.asarray(rows.sum(axis=0) / math.sqrt(k * k * c2 + k * (1.0 - c2)))


# Why the iteration of `spherical_mean` descends from any start.
#
# Let the weights add up to 1 and F(μ) = ½ Σ w_i ∠(x_i, μ)². A step by a small tangent vector v
# changes the angle θ to x_i as in flat space along the line of sight, and less than that across
# it, because meridians converge: the Hessian of ½θ² has eigenvalue 1 along and θ cot θ ≤ 1 across.
# At the antipode of x_i, ½θ² is the lower envelope of smooth functions, which only lowers it. So
# no direction curves upwards faster than 1. With the gradient g = -Σ w_i log_μ(x_i), every step v
# of any length has
#     F(exp_μ(v)) ≤ F(μ) + g·v + ½|v|².
# The right side is least at v = -g = Σ w_i log_μ(x_i). That is the step of Buss and Fillmore: it
# goes to the average of the points in the tangent plane. It gains at least ½|g|²; as F ≥ 0, the
# gradients tend to 0.
#
# Why the limit is the wanted one. Let every point lie in the open hemisphere H around c. A
# minimum outside H could be mirrored into H across its boundary, nearer to every point; so the
# minima lie in H, and there the critical point is unique (Buss and Fillmore, theorem 1). Hence
# the two checks below: x_i·c > 0 for all i, with c the start, and the result is in H.
# The steps shrink by a factor of about 1 - Σ w_i θ_i cot θ_i each.
def spherical_mean(
    X: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    tolerance: float = 1e-12,
    iterations: int = 10_000,
) -> Floats:
    """Return the maximum-likelihood centre: the least sum of squared angles (equation 6).

    This is the spherical average of Buss and Fillmore. It takes ten to fifty passes over X for
    angles up to 75 degrees.

    Args:
        X: one vector per row.
        weights: a positive weight for each row; only ratios matter. None: equal weights.
        tolerance: the greatest length of the mean tangent vector, in radians.
        iterations: the greatest number of passes.

    Raises:
        ConvergenceError: the vectors do not lie in one open hemisphere, where the minimum is
            unique, or the tolerance was not reached.

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
        remedy="Raise iterations; vectors near the rim of a hemisphere converge slowly.",
    )


def _log_map(base: Floats, rows: Floats) -> Floats:
    """Return each row as a tangent vector at `base`, with its angle from `base` as length."""
    along = rows @ base
    across = rows - along[:, np.newaxis] * base
    sine = _length(across)
    angles = np.arctan2(sine, along)
    # A row equal to the base has the tangent vector 0.
    return np.asarray(across * (angles / np.where(sine > 0.0, sine, 1.0))[:, np.newaxis])


def _exp_map(base: Floats, tangent: Floats) -> Floats:
    """Return the point at the end of a tangent vector, along its great circle from `base`."""
    length = float(_length(tangent))
    # np.sinc(t) is sin(πt)/(πt), and 1 at 0. normalise removes rounding errors.
    return normalise(math.cos(length) * base + float(np.sinc(length / math.pi)) * tangent)


def _shares(weights: npt.ArrayLike | None, count: int) -> Floats:
    """Return the weights scaled to add up to one."""
    if weights is None:
        return np.full(count, 1.0 / count)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (count,) or not np.all(np.isfinite(array)) or not np.all(array > 0.0):
        raise ArgumentError(
            f"weights of shape {array.shape}, least {array.min(initial=math.inf)!r}",
            expected=f"{count} finite positive numbers",
            remedy="Leave a vector out instead of giving it weight 0.",
        )
    return np.asarray(array / array.sum())


def _require_hemisphere(similarities: Floats) -> None:
    least = int(np.argmin(similarities))
    if similarities[least] <= 0.0:
        raise ConvergenceError(
            f"the vector in row {least} has similarity {similarities[least]:.3g} to the centroid",
            expected="all vectors in an open hemisphere around their centroid",
            remedy="Use centroid, or cluster first; vectors this far apart may have several means.",
        )


def vector_rows(X: npt.ArrayLike) -> Floats:
    """Return X as float64 with one finite vector per row; raise VectorError if it is not so."""
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
    """Raise VectorError for the first vector that is not `good`, with its row."""
    row = int(np.flatnonzero(~good.reshape(-1))[0]) if good.ndim else None
    name = "the vector" if row is None else f"the vector in row {row}"
    raise VectorError(
        f"{name} {seen}", expected=expected, remedy="Drop it before clustering.", row=row
    )


def _length(X: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", X, X)))
