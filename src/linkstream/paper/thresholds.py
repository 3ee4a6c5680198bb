"""The thresholds of the paper: s(k), s(k, k'), s~(k, k'), s~(k), and the limits they tend to.

Equations 13–18 and 23–25. Every function takes Python numbers or NumPy arrays and performs the
same IEEE operations in the same order on either, so that a vectorised caller and a scalar one
get the same bits; the engines rely on that (docs/choices.md, "one formula, one operation order").

Symbols are the paper's: `t_c` is T_c = cos θ_c, `t_s` is T_s, `t_p` is T_p, `k` and `k2` are the
counts k and k' of two subclusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.errors import ThresholdError

# A count or a similarity: one number, or an array of them.
Number = TypeVar("Number", float, npt.NDArray[np.float64])


def single(t_c: float, k: Number) -> Number:
    """s(k): similarity that a vector of the same cluster has to the centroid of k (equation 13).

    >>> single(0.8, 1.0) == 0.8 * 0.8
    True
    """
    c2 = t_c * t_c
    return c2 / _sqrt(1.0 / k + (1.0 - 1.0 / k) * c2)


def multi(t_c: float, k: Number, k2: Number) -> Number:
    """s(k, k'): similarity that centroids of k and k' vectors of one cluster have (equation 16)."""
    tan2 = 1.0 / (t_c * t_c) - 1.0
    return 1.0 / _sqrt((1.0 + tan2 / k) * (1.0 + tan2 / k2))


def anisotropic_multi(t_c: float, t_p: float, k: Number, k2: Number) -> Number:
    """s~(k, k'): s(k, k') drawn down to the pair similarity maximum T_p (equation 24).

    Never falls as k or k' rises: each operation is rounded correctly, hence monotone.
    """
    c2 = t_c * t_c
    slope = max(t_p - c2, 0.0) / (1.0 - c2)
    return c2 + slope * (multi(t_c, k, k2) - c2)


def anisotropic_single(t_c: float, t_p: float, k: Number) -> Number:
    """s~(k) = s~(k, 1): what a new vector needs to share the cluster of k others (equation 25)."""
    return anisotropic_multi(t_c, t_p, k, k * 0.0 + 1.0)


def single_limit(t_c: float) -> float:
    """Where s(k) tends as k grows: T_c itself (equation 15)."""
    return t_c


def multi_limit() -> float:
    """Where s(k, k') tends as both grow: the two centres are one (equation 18)."""
    return 1.0


def anisotropic_multi_limit(t_p: float) -> float:
    """Where s~(k, k') tends as both grow: T_p (equation 23)."""
    return t_p


def _sqrt(value: Number) -> Number:
    # math.sqrt and np.sqrt are both correctly rounded; the first is cheap on one number.
    return math.sqrt(value) if isinstance(value, float) else np.sqrt(value)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The three hyperparameters of Links, checked.

    Attributes:
        cluster_similarity: T_c, in (0, 1): cosine between a vector and its cluster's true centre.
        subcluster_similarity: T_s, in (0, 1): at or above it a vector joins a subcluster.
        pair_similarity_max: T_p, in [T_c², 1]: the most that s~ ever asks of two centroids.

    >>> Thresholds(0.7, 0.6, 0.9).edge(10, 20) > Thresholds(0.7, 0.6, 0.9).edge(1, 1)
    True
    """

    cluster_similarity: float
    subcluster_similarity: float
    pair_similarity_max: float

    def __post_init__(self) -> None:
        for name in ("cluster_similarity", "subcluster_similarity", "pair_similarity_max"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        for name in ("cluster_similarity", "subcluster_similarity"):
            _require(name, getattr(self, name), low=0.0, high=1.0, closed=False)
        # The least s~ can be is T_c² = s(1, 1); typed decimals may miss it by a rounding.
        floor = self.cluster_similarity * self.cluster_similarity
        if not floor > 1e-300:
            raise ThresholdError(
                f"cluster_similarity is {self.cluster_similarity!r}",
                expected="a value whose square is a number apart from 0",
                remedy="Cosines of one cluster's vectors are far above it.",
            )
        _require("pair_similarity_max", self.pair_similarity_max, low=floor, high=1.0, closed=True)

    @property
    def lowest(self) -> float:
        """The least similarity that can matter: below it the outcome is a new cluster."""
        return min(self.subcluster_similarity, self.edge(1, 1))

    def edge(self, k: float, k2: float) -> float:
        """s~(k, k') for these thresholds: what an edge between two subclusters needs (eq 24)."""
        return anisotropic_multi(
            self.cluster_similarity, self.pair_similarity_max, float(k), float(k2)
        )

    def edges(
        self, k: npt.NDArray[np.float64], k2: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """`edge` over arrays of counts, bit for bit the same."""
        with np.errstate(over="ignore"):  # a tiny T_c asks for nothing
            return anisotropic_multi(self.cluster_similarity, self.pair_similarity_max, k, k2)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ThresholdError(
            f"{name} is {value!r} of type {type(value).__name__}",
            expected="a number",
            remedy="Thresholds are cosines, such as 0.7.",
        )
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf


def _require(name: str, value: float, *, low: float, high: float, closed: bool) -> None:
    slack = 1e-12
    inside = low - slack <= value <= high if closed else low < value < high
    if not inside:
        bounds = f"[{low:.6g}, {high:.6g}]" if closed else f"({low:.6g}, {high:.6g})"
        lower = " (its lower end is cluster_similarity squared)" if closed else ""
        raise ThresholdError(
            f"{name} is {value!r}",
            expected=f"a value in {bounds}{lower}",
            remedy="Thresholds belong to an encoder: see docs/how-links-works.md.",
        )
