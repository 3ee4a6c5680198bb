"""The distribution of the next vector of a cluster at finite N: equations 7 and 8, and s_p(k).

`sigma` is σ, above 0; `dimension` is N, from 2; `k` is a number of vectors from 1 to infinity.

*The model.* Equation 7 conditions on the k vectors. Links keeps only the centroid and the count of
a subcluster, so we condition on these two. The prior of μ is uniform and clusters are isotropic.
Hence, given the centroid, μ lies in a uniform direction from it, at an angle ψ whose distribution
depends on k, σ and N alone, and the predictive density depends on the angle φ to the centroid
alone. Let θ be the angle of the new vector to μ, and w the cosine between the directions from μ to
the new vector and to the centroid. Then

    cos φ = cos θ cos ψ + sin θ sin ψ · w,        θ, ψ, w independent,

where w is a coordinate of a uniform vector in R^(N-1).

*Exact and approximate.* For k = 1, ψ is distributed as θ; for k = ∞ it is 0. Both are exact up to
quadrature. In between, the centroid is the direction of (a, B), with a = Σ cos θ_i along μ and
B = Σ sin θ_i u_i across it, u_i uniform. We take a as normal and |B|², given a, as gamma, with
their exact means, variances and covariance. This is exact in the limit of many vectors, where B is
an isotropic Gaussian. Compared with simulation (docs/model.md), probabilities are off by up to
.0065 in dimension 2, .0025 in dimensions 3 and 4, and .002 in dimension 8, all at k = 2 or 3. From
dimension 32 on, errors are below the noise of a million draws, about .0015.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, ThresholdError
from linkstream.paper.generative import (
    angle_law,
    log_area,
    log_normaliser,
    marginal_quantile,
    require_model,
)
from linkstream.paper.thresholds import Thresholds

Floats = npt.NDArray[np.float64]

# The numbers of Gauss nodes for the distributions of the centroid (in each direction) and of w.
_CENTROID_NODES = 16
_SIDE_NODES = 24
_NEGLIGIBLE = 1e-13

# T_s of `derive_thresholds`: seven in ten pairs of one cluster are more similar. With a lower T_s
# vectors of other clusters join, for good; a higher T_s is near its cliff (docs/model.md).
_PAIRS_THAT_JOIN = 0.7


def log_predictive(angle: npt.ArrayLike, k: float, sigma: float, dimension: int) -> Floats:
    """Return log ρ̂, the density of a new vector around a centroid of k vectors (equation 7).

    ρ̂ is a density per area of the sphere and falls as the angle grows. It is reliable to about six
    standard deviations from the typical angle, and takes about 10 ms for each angle.
    """
    psi, weight = _centroid_angles(k, sigma, dimension)
    side, log_side = _side_cosines(dimension)
    log_weight = np.log(weight)[:, np.newaxis] + log_side
    out = []
    for phi in np.ravel(np.asarray(angle, dtype=np.float64)):
        cosine = math.cos(phi) * np.cos(psi)[:, np.newaxis]
        cosine = cosine + math.sin(phi) * np.multiply.outer(np.sin(psi), side)
        theta = np.arccos(np.clip(cosine, -1.0, 1.0))
        terms = log_weight - 0.5 * (theta / sigma) ** 2
        peak = float(terms.max())
        out.append(peak + math.log(float(np.exp(terms - peak).sum())))
    return np.reshape(out, np.shape(angle)) - log_normaliser(sigma, dimension)


def cumulative(similarity: npt.ArrayLike, k: float, sigma: float, dimension: int) -> Floats:
    """Return the fraction of new vectors at least this similar to a centroid of k (equation 8).

    ρ̂ falls with the angle, so the region of equation 8 is the cap around the centroid up to the
    vector. The integral is small for a vector near the centroid and near 1 for one at the edge of
    the cluster. It takes about 5 ms for each similarity.
    """
    law = angle_law(sigma, dimension)
    turn, scale, weight = _mixture(k, sigma, dimension)
    out = []
    for value in np.ravel(np.asarray(similarity, dtype=np.float64)):
        # For given ψ and w, cos φ = scale · cos(θ - turn). It is at least `value` for θ within
        # `width` of `turn`, modulo 2π.
        width = np.arccos(np.clip(value / scale, -1.0, 1.0))
        inside = law.cdf(turn + width) - law.cdf(turn - width)
        inside += 1.0 - law.cdf(2.0 * math.pi + turn - width)
        out.append(float(weight @ np.where(value > scale, 0.0, inside)))
    return np.asarray(np.clip(np.reshape(out, np.shape(similarity)), 0.0, 1.0))


def finite_threshold(k: float, dimension: int, sigma: float, probability: float) -> float:
    """Return s_p(k; N, σ), the similarity to a centroid of k that a fraction p of vectors reach.

    This is s(k) at finite N, from equation 8. With p = ½ it tends to s(k) of equation 13 as N
    grows; s_p(∞) is the cosine of the p-quantile of θ. It is solved to 1e-10, in about 0.1 s.

    >>> s = finite_threshold(1, 256, 0.05, 0.5)
    >>> bool(abs(cumulative(s, 1, 0.05, 256) - 0.5) < 1e-6)
    True
    """
    _require_probability(probability)
    low, high = -1.0, 1.0
    while high - low > 1e-10:
        middle = 0.5 * (low + high)
        if float(cumulative(middle, k, sigma, dimension)) >= probability:
            low = middle
        else:
            high = middle
    return low


def stranger_similarity(dimension: int, probability: float) -> float:
    """Return δ of lemma 1 for a given ε, for uniform vectors (equation 9).

    It is the similarity that a fraction ε of vectors reach to a vector or a centroid of another
    cluster.

    >>> round(stranger_similarity(256, 0.01), 3)
    0.145
    """
    _require_probability(probability)
    return float(np.cos(marginal_quantile(probability, math.inf, dimension)))


def derive_thresholds(sigma: float, dimension: int, probability: float = 0.99) -> Thresholds:
    """Return thresholds for clusters of the paper's model with a known σ, without labelled data.

    T_c is such that a fraction `probability` of a cluster's vectors reach s(k); with T_c = cos θ_c
    only half would. One vector against another is the hardest case, so T_c² = s_p(1). T_s is below
    its cliff at cos²θ_c: seven in ten pairs join. T_p is half-way from T_c, for subclusters of near
    copies, to 1, for subclusters of random vectors.

    Real data differ from the model, so tune these values. The call takes about 0.3 s.

    Args:
        sigma: σ, above 0; `generative.sigma_of` gives it for a typical angle.
        dimension: N, from 2.
        probability: the fraction of a cluster's own vectors that pass, in (0, 1).

    Raises:
        ThresholdError: the cluster is so wide that s_p(1) is not positive.
    """
    own = finite_threshold(1, dimension, sigma, probability)
    joining = finite_threshold(1, dimension, sigma, min(_PAIRS_THAT_JOIN, probability))
    if own <= 0.0:
        raise ThresholdError(
            f"σ = {sigma!r} in dimension {dimension}: {probability:.4g} of pairs reach {own:.3g}",
            expected="a positive similarity between the vectors of one cluster",
            remedy="Lower probability, or use a smaller σ; clusters this wide overlap.",
        )
    t_c = math.sqrt(own)
    return Thresholds(t_c, joining, 0.5 * (1.0 + t_c))


@lru_cache(maxsize=64)
def _mixture(k: float, sigma: float, dimension: int) -> tuple[Floats, Floats, Floats]:
    """Return turn, scale and weight of nodes over (ψ, w), with cos φ = scale · cos(θ - turn)."""
    psi, psi_weight = _centroid_angles(k, sigma, dimension)
    side, side_weight = _gauss_side(dimension)
    along = np.multiply.outer(np.cos(psi), np.ones_like(side))
    across = np.multiply.outer(np.sin(psi), side)
    weight = np.multiply.outer(psi_weight, side_weight)
    keep = weight > _NEGLIGIBLE * weight.max()
    turn = np.arctan2(across[keep], along[keep])
    return turn, np.hypot(across[keep], along[keep]), weight[keep] / weight[keep].sum()


def _centroid_angles(k: float, sigma: float, dimension: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of ψ, the angle between the centre and a centroid of k vectors."""
    require_model(sigma, dimension)
    if not k >= 1.0:
        raise ArgumentError(
            f"k is {k!r}",
            expected="a count of at least 1, or infinity",
            remedy="Pass the number of vectors in the subcluster.",
        )
    theta, weight = angle_law(sigma, dimension).nodes()
    if math.isinf(k):
        return np.zeros(1), np.ones(1)
    if k > 1.0:
        theta, weight = _sum_angles(k, dimension, np.cos(theta), weight)
    keep = weight > _NEGLIGIBLE * weight.max()
    return theta[keep], weight[keep] / weight[keep].sum()


def _sum_angles(k: float, dimension: int, cosine: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights of ψ for k ≥ 2: the direction of (a, |B|), normal and gamma.

    Means, variances and the covariance are exact. With c = cos θ and q = sin²θ,
    E a = k E c, Var a = k Var c, E|B|² = k E q, Cov(a, |B|²) = k Cov(c, q). In |B|² = Σ q_i +
    2 Σ_{i<j} √(q_i q_j) w_ij the w_ij are uncorrelated with mean 0 and variance 1/(N-1), so
    Var|B|² = k Var q + 2 k (k-1) (E q)² / (N-1). Regressing on a leaves the variance below.
    """
    square = 1.0 - cosine * cosine
    mean_c, mean_q = float(weight @ cosine), float(weight @ square)
    off_c, off_q = cosine - mean_c, square - mean_q
    var_c, cov = float(weight @ (off_c * off_c)), float(weight @ (off_c * off_q))
    var_q = float(weight @ (off_q * off_q)) - cov * cov / var_c
    shape = (k * mean_q) ** 2 / (
        k * max(var_q, 0.0) + 2 * k * (k - 1) * mean_q**2 / (dimension - 1)
    )

    normal, normal_weight = _gauss(np.zeros(_CENTROID_NODES), np.arange(1.0, _CENTROID_NODES))
    step = np.arange(_CENTROID_NODES, dtype=np.float64)
    gamma, gamma_weight = _gauss(2 * step + shape, step[1:] * (step[1:] + shape - 1.0))
    drift = normal * math.sqrt(k * var_c)
    # The regression line may cross zero only far out, at a few nodes of negligible weight.
    mean_given_a = np.maximum(k * mean_q + drift * (cov / var_c), 1e-3 * k * mean_q)
    across = np.sqrt(np.multiply.outer(mean_given_a, np.maximum(gamma, 0.0) / shape))
    psi = np.arctan2(across, (k * mean_c + drift)[:, np.newaxis])
    return psi.reshape(-1), np.multiply.outer(normal_weight, gamma_weight).reshape(-1)


def _gauss_side(dimension: int) -> tuple[Floats, Floats]:
    """Return Gauss nodes of w, a coordinate of a uniform vector in R^(N-1); ±1 in dimension 2."""
    if dimension == 2:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    n = np.arange(1.0, _SIDE_NODES)
    # The recurrence of the Gegenbauer polynomials. Its first term is the variance of w; the general
    # form would be 0/0 there in dimension 3.
    squared = np.full(len(n), 1.0 / (dimension - 1))
    m = n[1:]
    squared[1:] = m * (m + dimension - 4) / ((2 * m + dimension - 3) * (2 * m + dimension - 5))
    return _gauss(np.zeros(_SIDE_NODES), squared)


def _side_cosines(dimension: int) -> tuple[Floats, Floats]:
    """Return nodes of w on panels over its whole range, with log weights.

    For a given φ the integral of equation 7 comes from directions that are rare in the prior, far
    outside the Gauss nodes when N is large. These panels resolve them up to N = 4096.
    """
    if dimension == 2:
        return np.array([-1.0, 1.0]), np.log([0.5, 0.5])
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = 0.5 * math.pi / 48
    chi = (half * (2.0 * np.arange(48.0)[:, np.newaxis] + 1.0 + nodes)).reshape(-1)
    log_weight = np.log(np.tile(half * weights, 48)) + (dimension - 3) * np.log(np.sin(chi))
    return np.cos(chi), log_weight + log_area(dimension - 1) - log_area(dimension)


def _gauss(diagonal: Floats, squared: Floats) -> tuple[Floats, Floats]:
    """Return Gauss nodes and weights, from the recurrence of the orthogonal polynomials.

    The nodes are the eigenvalues of the symmetric tridiagonal matrix of the recurrence, the
    weights the squared first entries of its eigenvectors (Golub and Welsch).
    """
    beside = np.sqrt(squared)
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, vectors[0] ** 2


def _require_probability(probability: float) -> None:
    if not 0.0 < probability < 1.0:
        raise ArgumentError(
            f"probability is {probability!r}",
            expected="a fraction in (0, 1)",
            remedy="Pass a fraction, such as 0.99.",
        )
