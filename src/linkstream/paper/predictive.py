"""What k vectors of a cluster say about the next one, at finite N: equations 7 and 8, and s_p(k).

*The model.* Equation 7 conditions on the vectors themselves; Links keeps of a subcluster its
centroid and its count. So we condition on those two. The paper's prior of μ is uniform and its
clusters are isotropic, hence turning all vectors together changes nothing, and given the centroid
μ lies around it in a uniform direction, at an angle ψ whose law depends on k, σ and N alone. The
predictive density is then a function of the angle φ to the centroid alone, as section 2.3 wants.
With θ the new vector's angle to μ, and w the cosine between the directions, seen from μ, of the
new vector and of the centroid,

    cos φ = cos θ cos ψ + sin θ sin ψ · w,        θ, ψ, w independent,

w being a coordinate of a uniform vector in R^(N-1).

*Exact and approximate.* For k = 1, ψ is distributed as θ; for k = ∞ it is 0: exact up to
quadrature. In between the centroid is the direction of (a, B), a = Σ cos θ_i along μ and
B = Σ sin θ_i u_i across it, u_i uniform. We take a normal and |B|² given a gamma, with their exact
means, variances and covariance: right in the limit of many vectors, since B then is an isotropic
Gaussian. Measured against simulation (docs/model.md), probabilities are off by up to .0065 in
dimension 2, .0025 in dimensions 3 and 4, .002 in dimension 8, all at k = 2 or 3; at 32 and above
no error shows above the noise of a million draws, some .0015.
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

# Gauss nodes in each direction of the law of the centroid, and of w.
_CENTROID_NODES = 16
_SIDE_NODES = 24
_NEGLIGIBLE = 1e-13

# T_s of `derive_thresholds`: seven pairs in ten of one cluster are more similar than that. Lower,
# and strangers join, which nothing undoes; higher, and T_s nears its cliff (docs/model.md).
_PAIRS_THAT_JOIN = 0.7


def log_predictive(angle: npt.ArrayLike, k: float, sigma: float, dimension: int) -> Floats:
    """How likely a new vector of the cluster is at an angle from the centroid of k (equation 7).

    The logarithm of ρ̂, a density per area of the sphere, falling as the angle grows. k is a count
    of at least 1, or infinity, where ρ̂ is f itself. Reliable to some six standard deviations from
    the typical angle. Cost: some 10 ms for each angle.
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
    """The part of a cluster's new vectors at least this similar to the centroid of k (equation 8).

    ρ̂ falls with the angle, so the region of equation 8 is the cap around the centroid that
    reaches to the vector: small for a vector in the middle, near 1 for one at the rim. Cost:
    some 5 ms for each similarity.
    """
    law = angle_law(sigma, dimension)
    turn, scale, weight = _mixture(k, sigma, dimension)
    out = []
    for value in np.ravel(np.asarray(similarity, dtype=np.float64)):
        # For given ψ and w, cos φ = scale · cos(θ - turn): at least `value` within `width` of
        # `turn`, once around the circle included.
        width = np.arccos(np.clip(value / scale, -1.0, 1.0))
        inside = law.cdf(turn + width) - law.cdf(turn - width)
        inside += 1.0 - law.cdf(2.0 * math.pi + turn - width)
        out.append(float(weight @ np.where(value > scale, 0.0, inside)))
    return np.asarray(np.clip(np.reshape(out, np.shape(similarity)), 0.0, 1.0))


def finite_threshold(k: float, dimension: int, sigma: float, probability: float) -> float:
    """s_p(k; N, σ): the similarity to the centroid of k that a fraction p of new vectors reach.

    The finite-dimensional s(k), from equation 8: with p = ½ it tends to s(k) of equation 13 as N
    grows, and s_p(∞) is the cosine of the p-quantile of θ. Accurate to the error of `cumulative`
    over the density there; the solution itself is halved down to 1e-10. Cost: about 0.1 s.

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
    """The similarity that a fraction of strangers reach: lemma 1 with its numbers (equation 9).

    δ for a given ε = `probability`, exactly, when strangers are uniform on the sphere. The same
    for a vector and for any centroid that does not depend on it.

    >>> round(stranger_similarity(256, 0.01), 3)
    0.145
    """
    _require_probability(probability)
    return float(np.cos(marginal_quantile(probability, math.inf, dimension)))


def derive_thresholds(sigma: float, dimension: int, probability: float = 0.99) -> Thresholds:
    """Thresholds for the paper's own clusters, for a known σ, without labelled data.

    T_c: such that s(k) asks of a cluster's vectors no more than a fraction `probability` of them
    reach; the mode would turn away half. One vector against another is the hardest case, so
    T_c² = s_p(1). T_s: under the cliff at cos²θ_c, where seven pairs in ten join. T_p: half-way
    from T_c, the similarity of a centre to a subcluster of near copies, to 1, of two random ones.

    Real data are not the paper's model: take this as a start. Raises ThresholdError where the
    cluster is so wide that s_p(1) is not positive. Cost: about 0.3 s.
    """
    own = finite_threshold(1, dimension, sigma, probability)
    joining = finite_threshold(1, dimension, sigma, min(_PAIRS_THAT_JOIN, probability))
    if own <= 0.0:
        raise ThresholdError(
            f"σ = {sigma!r} in dimension {dimension}: {probability:.4g} of pairs reach {own:.3g}",
            expected="a positive similarity between the vectors of one cluster",
            remedy="Clusters this wide overlap with strangers; lower probability, or narrow σ.",
        )
    t_c = math.sqrt(own)
    return Thresholds(t_c, joining, 0.5 * (1.0 + t_c))


@lru_cache(maxsize=64)
def _mixture(k: float, sigma: float, dimension: int) -> tuple[Floats, Floats, Floats]:
    """Nodes over (ψ, w) as amplitude and phase: cos φ = scale · cos(θ - turn), and weights."""
    psi, psi_weight = _centroid_angles(k, sigma, dimension)
    side, side_weight = _gauss_side(dimension)
    along = np.multiply.outer(np.cos(psi), np.ones_like(side))
    across = np.multiply.outer(np.sin(psi), side)
    weight = np.multiply.outer(psi_weight, side_weight)
    keep = weight > _NEGLIGIBLE * weight.max()
    turn = np.arctan2(across[keep], along[keep])
    return turn, np.hypot(across[keep], along[keep]), weight[keep] / weight[keep].sum()


def _centroid_angles(k: float, sigma: float, dimension: int) -> tuple[Floats, Floats]:
    """Nodes and weights of ψ, the angle between the centre and the centroid of k vectors."""
    require_model(sigma, dimension)
    if not k >= 1.0:
        raise ArgumentError(
            f"k is {k!r}",
            expected="a count of at least 1, or infinity",
            remedy="A subcluster holds at least one vector.",
        )
    theta, weight = angle_law(sigma, dimension).nodes()
    if math.isinf(k):
        return np.zeros(1), np.ones(1)
    if k > 1.0:
        theta, weight = _sum_angles(k, dimension, np.cos(theta), weight)
    keep = weight > _NEGLIGIBLE * weight.max()
    return theta[keep], weight[keep] / weight[keep].sum()


def _sum_angles(k: float, dimension: int, cosine: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Nodes of ψ for k ≥ 2: the direction of (a, |B|), a normal, |B|² given a gamma.

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
    # The regression line may cross zero only far out, at a few nodes of no weight.
    mean_given_a = np.maximum(k * mean_q + drift * (cov / var_c), 1e-3 * k * mean_q)
    across = np.sqrt(np.multiply.outer(mean_given_a, np.maximum(gamma, 0.0) / shape))
    psi = np.arctan2(across, (k * mean_c + drift)[:, np.newaxis])
    return psi.reshape(-1), np.multiply.outer(normal_weight, gamma_weight).reshape(-1)


def _gauss_side(dimension: int) -> tuple[Floats, Floats]:
    """Gauss nodes of w, a coordinate of a uniform vector in R^(N-1); in dimension 2 just ±1."""
    if dimension == 2:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    n = np.arange(1.0, _SIDE_NODES)
    # The recurrence of the Gegenbauer polynomials; its first term is the variance of w, and is
    # written out because the general form is 0/0 there in dimension 3.
    squared = np.full(len(n), 1.0 / (dimension - 1))
    m = n[1:]
    squared[1:] = m * (m + dimension - 4) / ((2 * m + dimension - 3) * (2 * m + dimension - 5))
    return _gauss(np.zeros(_SIDE_NODES), squared)


def _side_cosines(dimension: int) -> tuple[Floats, Floats]:
    """The law of w again, on panels over its whole range, with log weights.

    For given φ equation 7 draws its weight from directions that are rare in the prior, far
    outside the reach of the Gauss nodes when N is large; these panels resolve them to N = 4096.
    """
    if dimension == 2:
        return np.array([-1.0, 1.0]), np.log([0.5, 0.5])
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = 0.5 * math.pi / 48
    chi = (half * (2.0 * np.arange(48.0)[:, np.newaxis] + 1.0 + nodes)).reshape(-1)
    log_weight = np.log(np.tile(half * weights, 48)) + (dimension - 3) * np.log(np.sin(chi))
    return np.cos(chi), log_weight + log_area(dimension - 1) - log_area(dimension)


def _gauss(diagonal: Floats, squared: Floats) -> tuple[Floats, Floats]:
    """Gauss nodes and weights of a law, from the recurrence of its orthogonal polynomials.

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
            remedy="0.99 lets one in a hundred of a cluster's own vectors fail.",
        )
