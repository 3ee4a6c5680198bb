"""The cluster the paper imagines: a Gaussian in the angle to a centre, on the sphere in R^N.

Equations 2–4, and vectors drawn from it. σ is `sigma`, N is `dimension`; everything holds for N
from 2 to 4096 and any σ > 0. σ = ∞ is allowed and gives uniform vectors, that is strangers.

All of it rests on one fact about the marginal of θ. Its logarithm (N-2) log sin θ - θ²/2σ² has
the second derivative -(N-2)/sin²θ - 1/σ², at most -κ with

    κ = N - 2 + 1/σ²,

so the marginal lies below a Gaussian of variance 1/κ drawn through its peak. That bound says how
far the quadrature must reach, and it is the envelope of the exact sampler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, VectorError
from linkstream.paper.sphere import normalise

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

# The quadrature covers all but e^-45 of the peak on 48 panels of 12 Gauss nodes each. A panel is
# then less than half a standard deviation wide, and 12 nodes leave rounding as the only error.
_REACH = 45.0
_PANELS = 48
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def log_area(dimension: int) -> float:
    """The log of 𝒜, the hypersurface area of S^(N-2), which the marginal carries (equation 4).

    >>> math.isclose(log_area(3), math.log(2 * math.pi))  # around a point of the globe: a circle
    True
    """
    require_model(1.0, dimension)
    half = 0.5 * (dimension - 1)
    return math.log(2.0) + half * math.log(math.pi) - math.lgamma(half)


def log_normaliser(sigma: float, dimension: int) -> float:
    """The logarithm of the integral over the sphere of exp(-θ²/2σ²), which f divides by (eq 2)."""
    law = angle_law(sigma, dimension)
    return log_area(dimension) + law.log_peak + math.log(law.mass)


def log_density(theta: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """The log of f(θ), density per area of the sphere at angle θ from the centre (equation 2)."""
    angles = np.asarray(theta, dtype=np.float64)
    inside = (angles >= 0.0) & (angles <= math.pi)
    value = -0.5 * (angles / sigma) ** 2 - log_normaliser(sigma, dimension)
    return np.where(inside, value, -np.inf)


def log_marginal(theta: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """The log of the density of the angle itself, 𝒜 (sin θ)^(N-2) f(θ) (equation 3).

    -∞ outside [0, π]. In logarithms, so that N = 4096 neither overflows nor underflows.
    """
    angles = np.asarray(theta, dtype=np.float64)
    law = angle_law(sigma, dimension)
    return law.log_relative(angles) - math.log(law.mass)


def marginal_cdf(theta: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """The fraction of a cluster's vectors within θ of the centre: equation 3, integrated.

    Absolute error about 1e-14. Cost: 12 evaluations of the marginal per angle.
    """
    return angle_law(sigma, dimension).cdf(np.asarray(theta, dtype=np.float64))


def marginal_quantile(probability: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """The angle from the centre that a given fraction of a cluster's vectors stays within.

    The inverse of `marginal_cdf`, by bisection: exact to about 1e-14 over the density there.
    """
    levels = np.asarray(probability, dtype=np.float64)
    if not np.all((levels >= 0.0) & (levels <= 1.0)):
        raise ArgumentError(
            f"probabilities from {levels.min()!r} to {levels.max()!r}",
            expected="fractions in [0, 1]",
            remedy="0.5 gives the median angle.",
        )
    return angle_law(sigma, dimension).quantile(levels)


def typical_angle(sigma: float, dimension: int) -> float:
    """θ_c: the angle from the centre where a cluster's vectors crowd, the mode of equation 3.

    The paper's constant of lemma 2. Setting the derivative of the log marginal to zero,
    (N-2) cot θ = θ/σ², that is θ tan θ = (N-2) σ². In dimension 2 it is 0 for every finite σ.

    >>> round(math.cos(typical_angle(sigma_of(math.acos(0.7), 256), 256)), 12)
    0.7
    """
    require_model(sigma, dimension)
    target = (dimension - 2) * sigma * sigma if dimension > 2 else 0.0
    # θ tan θ rises on [0, π/2) and is at least θ²: the root lies below √target. Halve until the
    # floats run out; comparing θ sin θ with target·cos θ keeps clear of the pole.
    low, high = 0.0, min(math.pi / 2, math.sqrt(target))
    if math.isinf(target):
        return math.pi / 2
    while low < (middle := 0.5 * (low + high)) < high:
        if middle * math.sin(middle) < target * math.cos(middle):
            low = middle
        else:
            high = middle
    return high


def sigma_of(theta_c: float, dimension: int) -> float:
    """The σ whose cluster has its typical angle at θ_c: √(θ_c tan θ_c / (N-2)), N at least 3.

    The inverse of `typical_angle`. In dimension 2 every σ has its mode at 0: no inverse.
    """
    require_model(1.0, dimension)
    if dimension < 3 or not 0.0 < theta_c < math.pi / 2:
        raise ArgumentError(
            f"θ_c = {theta_c!r} in dimension {dimension}",
            expected="an angle in (0, π/2) and a dimension of at least 3",
            remedy="θ_c is where the vectors of a cluster crowd: arccos of a typical similarity.",
        )
    return math.sqrt(theta_c * math.tan(theta_c) / (dimension - 2))


def sample_angles(
    count: int, sigma: float, dimension: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Angles drawn from the marginal of equation 3, exactly: by rejection, not from a table.

    The Gaussian of variance 1/κ through the peak is an envelope (see the head of this file);
    about seven proposals in ten are kept at every N above 2, one in two in dimension 2. Chosen
    over inverting the cdf because its law has no error at all beyond the rounding of its
    arithmetic, and it is as fast.
    """
    law = angle_law(sigma, dimension)
    kept = [np.empty(0)]
    missing = count
    while missing > 0:
        proposed, log_envelope = law.propose(2 * missing + 16, rng)
        accept = np.log(1.0 - rng.random(len(proposed))) + log_envelope
        kept.append(proposed[accept <= law.log_relative(proposed)][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept)


def sample_cluster(
    center: npt.ArrayLike, count: int, sigma: float, rng: np.random.Generator
) -> Floats:
    """`count` unit vectors of the cluster around `center`, drawn exactly (equations 2 and 3).

    Each goes from the centre in a uniform direction, by an angle from the marginal: the density
    depends on the angle alone, so the two are independent. Cost: count × N normal numbers.
    """
    middle = normalise(center)
    if middle.ndim != 1:
        raise VectorError(
            f"a center of shape {middle.shape}",
            expected="one vector",
            remedy="Sample one cluster at a time, or use sample_stream.",
        )
    angles = sample_angles(count, sigma, len(middle), rng)[:, np.newaxis]
    across = rng.standard_normal((count, len(middle)))
    # What is left of an isotropic Gaussian across the centre has a uniform direction. Twice,
    # because the first projection leaves a rounding error that scaling could magnify.
    across -= (across @ middle)[:, np.newaxis] * middle
    across = normalise(across)
    across -= (across @ middle)[:, np.newaxis] * middle
    return normalise(np.cos(angles) * middle + np.sin(angles) * normalise(across))


def sample_stream(
    clusters: int, per_cluster: int, dimension: int, sigma: float, rng: np.random.Generator
) -> tuple[Floats, Labels]:
    """A shuffled stream of unit vectors from clusters with uniform centres, and their labels.

    Returns X of shape (clusters × per_cluster, dimension) and the cluster of each row, 0 upwards.
    The paper's model in full, property 4 included: no centre is preferred.

    >>> X, y = sample_stream(3, 2, 8, 0.2, np.random.default_rng(0))
    >>> X.shape, sorted(y.tolist())
    ((6, 8), [0, 0, 1, 1, 2, 2])
    """
    require_model(sigma, dimension)
    centers = normalise(rng.standard_normal((clusters, dimension)))
    X = np.concatenate([sample_cluster(center, per_cluster, sigma, rng) for center in centers])
    y = np.repeat(np.arange(clusters, dtype=np.int64), per_cluster)
    order = rng.permutation(len(y))
    return X[order], y[order]


def require_model(sigma: float, dimension: int) -> None:
    """Raise ArgumentError unless σ > 0 and N is a whole number of at least 2."""
    if not sigma > 0.0 or dimension < 2 or dimension != int(dimension):
        raise ArgumentError(
            f"σ = {sigma!r} in dimension {dimension!r}",
            expected="σ above 0 and a whole dimension of at least 2",
            remedy="σ follows from a typical angle: see sigma_of.",
        )


@dataclass(frozen=True, slots=True)
class AngleLaw:
    """The marginal of θ, relative to its peak, with its integral over each panel.

    Attributes:
        slope: 1/σ².
        power: N - 2.
        mode: θ_c, where the peak is.
        log_peak: the logarithm of (sin θ)^(N-2) exp(-θ²/2σ²) there.
        edges: the panels' ends, from where the law begins to where it ends.
        below: the mass of the relative marginal below each edge; the last is all of it.
    """

    slope: float
    power: int
    mode: float
    log_peak: float
    edges: Floats
    below: Floats

    @property
    def mass(self) -> float:
        """The integral of the marginal relative to its peak."""
        return float(self.below[-1])

    def log_relative(self, theta: Floats) -> Floats:
        """The log marginal less its value at the peak; -∞ outside [0, π]."""
        inside = (theta >= 0.0) & (theta <= math.pi)
        value = _log_shape(np.where(inside, theta, self.mode), self.slope, self.power)
        return np.where(inside, value - self.log_peak, -np.inf)

    def nodes(self) -> tuple[Floats, Floats]:
        """Angles and weights that integrate over the law; the weights add up to one."""
        half = 0.5 * np.diff(self.edges)[:, np.newaxis]
        theta = (self.edges[:-1, np.newaxis] + half * (1.0 + _NODES)).reshape(-1)
        weight = (half * _WEIGHTS).reshape(-1) * np.exp(self.log_relative(theta))
        return theta, weight / weight.sum()

    def cdf(self, theta: Floats) -> Floats:
        """The mass below each angle: whole panels from the table, the last one by its nodes."""
        inside = np.clip(theta, self.edges[0], self.edges[-1])
        panel = np.clip(np.searchsorted(self.edges, inside, side="right") - 1, 0, _PANELS - 1)
        start = self.edges[panel]
        half = 0.5 * (inside - start)
        points = start[..., np.newaxis] + half[..., np.newaxis] * (1.0 + _NODES)
        part = half * (np.exp(self.log_relative(points)) @ _WEIGHTS)
        return np.minimum((self.below[panel] + part) / self.mass, 1.0)

    def quantile(self, levels: Floats) -> Floats:
        """The angle below which a given part of the mass lies: halving within its panel."""
        panel = np.searchsorted(self.below, levels * self.mass, side="right") - 1
        panel = np.clip(panel, 0, _PANELS - 1)
        low, high = self.edges[panel], self.edges[panel + 1]
        for _ in range(50):
            middle = 0.5 * (low + high)
            short = self.cdf(middle) < levels
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return 0.5 * (low + high)

    def propose(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws from an envelope of the law, and the log of the envelope there."""
        kappa = self.power + self.slope
        # On a circle with a wide σ the interval itself is the tighter envelope.
        if 2.0 * math.pi > kappa * math.pi * math.pi:
            return rng.uniform(0.0, math.pi, count), np.zeros(count)
        theta = rng.normal(self.mode, 1.0 / math.sqrt(kappa), count)
        return theta, -0.5 * kappa * (theta - self.mode) ** 2


@lru_cache(maxsize=256)
def angle_law(sigma: float, dimension: int) -> AngleLaw:
    """The marginal of θ tabulated for one σ and N, kept for the next caller (equation 3)."""
    mode = typical_angle(sigma, dimension)
    slope, power = (1.0 / sigma) / sigma, dimension - 2
    log_peak = float(_log_shape(np.asarray(mode), slope, power))
    reach = math.sqrt(2.0 * _REACH / max(power + slope, 2.0 * _REACH / math.pi**2))
    edges = np.linspace(max(0.0, mode - reach), min(math.pi, mode + reach), _PANELS + 1)
    half = 0.5 * np.diff(edges)
    points = edges[:-1, np.newaxis] + half[:, np.newaxis] * (1.0 + _NODES)
    masses = half * (np.exp(_log_shape(points, slope, power) - log_peak) @ _WEIGHTS)
    below = np.concatenate([[0.0], np.cumsum(masses)])
    edges.flags.writeable = below.flags.writeable = False
    return AngleLaw(slope, power, mode, log_peak, edges, below)


def _log_shape(theta: Floats, slope: float, power: int) -> Floats:
    """(N-2) log sin θ - θ²/2σ² for θ in [0, π]: the log marginal up to its constants."""
    gauss = np.asarray(-0.5 * slope * theta * theta)
    if power == 0:
        return gauss
    with np.errstate(divide="ignore"):
        return np.asarray(power * np.log(np.sin(theta)) + gauss)
