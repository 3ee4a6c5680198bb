"""The thresholds of the paper: s(k), s(k, k'), s~(k, k') and s~(k) (equations 13–18, 23–25).

Every function takes Python numbers or NumPy arrays and performs the same IEEE operations in the
same order on both, so that scalar and vectorised callers get the same bits. The engines rely on
that (docs/choices.md, "one formula, one operation order").

Symbols are the paper's: `t_c` is T_c = cos θ_c, in (0, 1); `t_p` is T_p, in [T_c², 1]; `k` and `k2`
are the counts k and k' of two subclusters, at least 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.errors import ThresholdError
from linkstream.paper.floats import quietly

# A count or a similarity: one number, or an array of them.
Number = TypeVar("Number", float, npt.NDArray[np.float64])


def vector_threshold(t_c: float, k: Number) -> Number:
    """Return s(k), the similarity of a new vector to the centroid of k others (equation 13).

    s(k) rises with k from T_c² to T_c (equation 15).

    >>> vector_threshold(0.8, 1.0) == 0.8 * 0.8
    True
    """
    c2 = t_c * t_c
    return c2 / _sqrt(1.0 / k + (1.0 - 1.0 / k) * c2)


def pair_threshold(t_c: float, k: Number, k2: Number) -> Number:
    """Return s(k, k'), the similarity of two centroids of one cluster (equation 16).

    s(k, 1) is s(k) (equation 17); s(k, k') tends to 1 as both counts grow (equation 18).
    """
    tan2 = 1.0 / (t_c * t_c) - 1.0
    return 1.0 / _sqrt((1.0 + tan2 / k) * (1.0 + tan2 / k2))


def anisotropic_pair_threshold(t_c: float, t_p: float, k: Number, k2: Number) -> Number:
    """Return s~(k, k'): s(k, k') interpolated to end at T_p instead of 1 (equations 23 and 24).

    s~ never falls as a count rises: each operation is rounded correctly, hence monotone.
    """
    c2 = t_c * t_c
    slope = max(t_p - c2, 0.0) / (1.0 - c2)
    return c2 + slope * (pair_threshold(t_c, k, k2) - c2)


def anisotropic_vector_threshold(t_c: float, t_p: float, k: Number) -> Number:
    """Return s~(k) = s~(k, 1), the least similarity that links a new vector (equation 25)."""
    return anisotropic_pair_threshold(t_c, t_p, k, k * 0.0 + 1.0)


def _sqrt(value: Number) -> Number:
    # math.sqrt and np.sqrt are both correctly rounded; the first is cheap on one number.
    return math.sqrt(value) if isinstance(value, float) else np.sqrt(value)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The three hyperparameters of Links, checked: ThresholdError if one is out of range.

    Attributes:
        cluster_similarity: T_c, in (0, 1): the cosine between a vector and its cluster's centre.
        subcluster_similarity: T_s, in (0, 1): a vector this similar joins a subcluster.
        pair_similarity_max: T_p, in [T_c², 1]: the upper limit of s~, for large subclusters.

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
        # T_p is at least T_c² = s(1, 1); a typed decimal may miss it by a rounding.
        floor = self.cluster_similarity * self.cluster_similarity
        if not floor > 1e-300:
            raise ThresholdError(
                f"cluster_similarity is {self.cluster_similarity!r}",
                expected="a value whose square is above 1e-300",
                remedy="Vectors of one cluster have cosines far above it, such as 0.7.",
            )
        _require("pair_similarity_max", self.pair_similarity_max, low=floor, high=1.0, closed=True)

    @property
    def lowest(self) -> float:
        """The lowest threshold: a vector less similar to all subclusters begins a new cluster."""
        return min(self.subcluster_similarity, self.edge(1, 1))

    def edge(self, k: float, k2: float) -> float:
        """Return s~(k, k'), the similarity that an edge between two subclusters needs (eq 24).

        Args:
            k: the number of vectors (or their weight) in one subcluster, at least 1.
            k2: the number of vectors in the other one.
        """
        return anisotropic_pair_threshold(
            self.cluster_similarity, self.pair_similarity_max, float(k), float(k2)
        )

    def edges(
        self, k: npt.NDArray[np.float64], k2: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return `edge` for arrays of counts, with the same bits.

        Args:
            k: the counts of one subcluster of each pair.
            k2: the counts of the other one.
        """
        figures = self.cluster_similarity, self.pair_similarity_max
        # 1 / T_c² overflows for a tiny T_c; s is then 0
        return quietly(lambda: anisotropic_pair_threshold(*figures, k, k2))


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ThresholdError(
            f"{name} is {value!r} of type {type(value).__name__}",
            expected="a number",
            remedy="Thresholds are cosines, such as 0.7.",
        )
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
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
