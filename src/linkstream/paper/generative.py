"""The cluster model of the paper: a Gaussian in the angle to a centre (equations 2–4), and samples.

σ is `sigma`, N is `dimension`. Everything holds for N from 2 to 4096 and any σ > 0; σ = ∞ gives
uniform vectors, as of different clusters.

All functions use one fact about the marginal of θ. Its logarithm (N-2) log sin θ - θ²/2σ² has the
second derivative -(N-2)/sin²θ - 1/σ², at most -κ with

    κ = N - 2 + 1/σ²,

so the marginal is below a Gaussian of variance 1/κ through its peak. That bound gives the range
of the quadrature, and it is the envelope of the exact sampler.
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

# The quadrature reaches to e^-45 of the peak on 48 panels of 12 Gauss nodes. A panel is less than
# half a standard deviation wide, so that 12 nodes leave only rounding errors.
_REACH = 45.0
_PANELS = 48
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def log_area(dimension: int) -> float:
    """Return the logarithm of 𝒜, the hypersurface area of S^(N-2) (equation 4).

    >>> math.isclose(log_area(3), math.log(2 * math.pi))  # S¹ is a circle
    True
    """
    require_model(1.0, dimension)
    half = 0.5 * (dimension - 1)
    return math.log(2.0) + half * math.log(math.pi) - math.lgamma(half)


def log_normaliser(sigma: float, dimension: int) -> float:
    """Return the logarithm of the integral of exp(-θ²/2σ²) over the sphere (equation 2)."""
    law = angle_law(sigma, dimension)
    return log_area(dimension) + law.log_peak + math.log(law.mass)


def log_density(theta: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """Return log f(θ), the density per area of the sphere (equation 2); -∞ outside [0, π]."""
    angles = np.asarray(theta, dtype=np.float64)
    inside = (angles >= 0.0) & (angles <= math.pi)
    value = -0.5 * (angles / sigma) ** 2 - log_normaliser(sigma, dimension)
    return np.where(inside, value, -np.inf)


def log_marginal(theta: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """Return the log density of the angle, 𝒜 (sin θ)^(N-2) f(θ) (equation 3); -∞ outside [0, π]."""
    angles = np.asarray(theta, dtype=np.float64)
    law = angle_law(sigma, dimension)
    return law.log_relative(angles) - math.log(law.mass)


def marginal_cdf(theta: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """Return the fraction of a cluster's vectors within θ of the centre, to about 1e-14."""
    return angle_law(sigma, dimension).cdf(np.asarray(theta, dtype=np.float64))


def marginal_quantile(probability: npt.ArrayLike, sigma: float, dimension: int) -> Floats:
    """Return the angle that a fraction of a cluster's vectors stays within: the inverse cdf."""
    levels = np.asarray(probability, dtype=np.float64)
    if not np.all((levels >= 0.0) & (levels <= 1.0)):
        raise ArgumentError(
            f"probabilities from {levels.min()!r} to {levels.max()!r}",
            expected="fractions in [0, 1]",
            remedy="Pass fractions, such as 0.5 for the median angle.",
        )
    return angle_law(sigma, dimension).quantile(levels)


def typical_angle(sigma: float, dimension: int) -> float:
    """Return θ_c of lemma 2: the mode of the angle's marginal (equation 3).

    The derivative of the log marginal is zero where (N-2) cot θ = θ/σ², that is
    θ tan θ = (N-2) σ². In dimension 2, θ_c is 0 for every finite σ.

    >>> round(math.cos(typical_angle(sigma_of(math.acos(0.7), 256), 256)), 12)
    0.7
    """
    require_model(sigma, dimension)
    target = (dimension - 2) * sigma * sigma if dimension > 2 else 0.0
    # θ tan θ rises on [0, π/2) and is at least θ², so the root is below √target. Bisect down to
    # neighbouring floats; comparing θ sin θ with target·cos θ avoids the pole of the tangent.
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
    """Return the σ of a typical angle, √(θ_c tan θ_c / (N-2)): the inverse of `typical_angle`.

    θ_c is in (0, π/2) and N at least 3: in dimension 2 every σ has its mode at 0.
    """
    require_model(1.0, dimension)
    if dimension < 3 or not 0.0 < theta_c < math.pi / 2:
        raise ArgumentError(
            f"θ_c = {theta_c!r} in dimension {dimension}",
            expected="an angle in (0, π/2) and a dimension of at least 3",
            remedy="Pass the arccos of a typical similarity to the centre.",
        )
    return math.sqrt(theta_c * math.tan(theta_c) / (dimension - 2))


def sample_angles(
    count: int, sigma: float, dimension: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Draw angles from the marginal of equation 3, exactly, by rejection.

    The envelope is the Gaussian of variance 1/κ through the peak (see the head of this file). It
    accepts about seven proposals in ten for every N above 2, and one in two in dimension 2.
    Rejection is as fast as inverting the cdf and has no error but rounding.
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
    """Draw unit vectors of one cluster, exactly (equations 2 and 3).

    Each vector leaves the centre in a uniform direction, by an angle of the marginal. The two are
    independent, because the density depends on the angle alone.
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
    # An isotropic Gaussian projected across the centre has a uniform direction. Project twice:
    # scaling could magnify the rounding error that the first projection leaves.
    across -= (across @ middle)[:, np.newaxis] * middle
    across = normalise(across)
    across -= (across @ middle)[:, np.newaxis] * middle
    return normalise(np.cos(angles) * middle + np.sin(angles) * normalise(across))


def sample_stream(
    clusters: int, per_cluster: int, dimension: int, sigma: float, rng: np.random.Generator
) -> tuple[Floats, Labels]:
    """Draw a shuffled stream of unit vectors from clusters with uniform centres (section 2.1).

    Returns:
        X of shape (clusters × per_cluster, dimension), and the cluster of each row, from 0.

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
    """Raise ArgumentError unless σ > 0 and N is an integer of at least 2."""
    if not sigma > 0.0 or dimension < 2 or dimension != int(dimension):
        raise ArgumentError(
            f"σ = {sigma!r} in dimension {dimension!r}",
            expected="σ above 0 and a whole dimension of at least 2",
            remedy="Compute σ from a typical angle with sigma_of.",
        )


@dataclass(frozen=True, slots=True)
class AngleLaw:
    """The marginal of θ relative to its peak, with its integral over each panel.

    Attributes:
        slope: 1/σ².
        power: N - 2.
        mode: θ_c, the position of the peak.
        log_peak: the logarithm of (sin θ)^(N-2) exp(-θ²/2σ²) at the peak.
        edges: the ends of the panels.
        below: the integral of the relative marginal up to each edge.
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
        """Return the log marginal minus its value at the peak; -∞ outside [0, π]."""
        inside = (theta >= 0.0) & (theta <= math.pi)
        value = _log_shape(np.where(inside, theta, self.mode), self.slope, self.power)
        return np.where(inside, value - self.log_peak, -np.inf)

    def nodes(self) -> tuple[Floats, Floats]:
        """Return quadrature nodes and weights of the marginal; the weights add up to one."""
        half = 0.5 * np.diff(self.edges)[:, np.newaxis]
        theta = (self.edges[:-1, np.newaxis] + half * (1.0 + _NODES)).reshape(-1)
        weight = (half * _WEIGHTS).reshape(-1) * np.exp(self.log_relative(theta))
        return theta, weight / weight.sum()

    def cdf(self, theta: Floats) -> Floats:
        """Return the probability below each angle: a table of panels, plus part of one panel."""
        inside = np.clip(theta, self.edges[0], self.edges[-1])
        panel = np.clip(np.searchsorted(self.edges, inside, side="right") - 1, 0, _PANELS - 1)
        start = self.edges[panel]
        half = 0.5 * (inside - start)
        points = start[..., np.newaxis] + half[..., np.newaxis] * (1.0 + _NODES)
        part = half * (np.exp(self.log_relative(points)) @ _WEIGHTS)
        return np.minimum((self.below[panel] + part) / self.mass, 1.0)

    def quantile(self, levels: Floats) -> Floats:
        """Return the inverse of `cdf`, by bisection within a panel."""
        panel = np.searchsorted(self.below, levels * self.mass, side="right") - 1
        panel = np.clip(panel, 0, _PANELS - 1)
        low, high = self.edges[panel], self.edges[panel + 1]
        for _ in range(50):
            middle = 0.5 * (low + high)
            short = self.cdf(middle) < levels
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return 0.5 * (low + high)

    def propose(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw angles from an envelope of the marginal; return them and the log of the envelope."""
        kappa = self.power + self.slope
        # On a circle with a wide σ the uniform distribution is the tighter envelope.
        if 2.0 * math.pi > kappa * math.pi * math.pi:
            return rng.uniform(0.0, math.pi, count), np.zeros(count)
        theta = rng.normal(self.mode, 1.0 / math.sqrt(kappa), count)
        return theta, -0.5 * kappa * (theta - self.mode) ** 2


@lru_cache(maxsize=256)
def angle_law(sigma: float, dimension: int) -> AngleLaw:
    """Return the tabulated marginal of θ for one σ and N, from a cache (equation 3)."""
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
    """Return (N-2) log sin θ - θ²/2σ² for θ in [0, π]: the log marginal without its constants."""
    gauss = np.asarray(-0.5 * slope * theta * theta)
    if power == 0:
        return gauss
    with np.errstate(divide="ignore"):
        return np.asarray(power * np.log(np.sin(theta)) + gauss)
