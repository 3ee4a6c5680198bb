"""What known pairs tell of two vectors: the likelihood ratio of one identity to two.

Pairs say nothing of how many identities there are, so they give no probability by themselves: with
a base rate that the user states they do. They are not used for the probability of decisions, which
are about clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.confidence.curve import fit_curve
from linkstream.errors import ArgumentError
from linkstream.tuning.measurements import Floats

_DIGITS = 9


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """The likelihood ratio of one identity to two, by the similarity of two vectors.

    Its logarithm is a + b·similarity with b ≥ 0, fitted to the known pairs. It is never beyond what
    so many pairs can show: at most one more than the pairs of two identities, and at least one
    over one more than those of one.

    Attributes:
        intercept, slope: a and b.
        same, different: how many pairs of each kind were known.
    """

    intercept: float
    slope: float
    same: int
    different: int

    @classmethod
    def of(cls, same: Floats, different: Floats) -> PairEvidence:
        """Fit the evidence to the similarities of pairs of one identity and of two."""
        known = np.concatenate([same, different])
        curve = fit_curve(known, np.arange(len(known)) < len(same))
        prior = math.log(len(same) / len(different))
        return cls(round(curve.intercept - prior, _DIGITS), curve.slope, len(same), len(different))

    def likelihood_ratio(self, similarity: npt.ArrayLike) -> Floats:
        """Return how much more likely one identity makes each similarity than two.

        Args:
            similarity: cosines of pairs of vectors, in the space of the calibration.
        """
        log = self.intercept + self.slope * np.asarray(similarity, dtype=np.float64)
        ratio: Floats = np.exp(np.clip(log, -math.log1p(self.same), math.log1p(self.different)))
        return ratio

    def probability(self, similarity: npt.ArrayLike, base_rate: float) -> Floats:
        """Return the probability that pairs of vectors are one identity, at a stated base rate.

        Args:
            similarity: as for `likelihood_ratio`.
            base_rate: the share of such pairs that are one identity, above 0 and below 1.
        """
        number = isinstance(base_rate, (int, float, np.floating))
        if not number or isinstance(base_rate, bool) or not 0.0 < base_rate < 1.0:
            raise ArgumentError(
                f"base_rate={base_rate!r}",
                expected="a number between 0 and 1",
                remedy="Pass the share of such pairs that are one identity, such as 0.01.",
            )
        odds = self.likelihood_ratio(similarity) * base_rate / (1.0 - base_rate)
        told: Floats = odds / (1.0 + odds)
        return told

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON."""
        return {
            "intercept": self.intercept,
            "slope": self.slope,
            "same": self.same,
            "different": self.different,
        }
