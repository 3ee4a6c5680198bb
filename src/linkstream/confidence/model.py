"""The model of confidence of a clusterer: what it was fitted to, and what it is valid for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.confidence.curve import ERRORS, Curve, Flags, Floats, fit_curve
from linkstream.engine.decisions import NEW

IDENTITIES = 20  # fewest identities that a model is fitted to

Kinds = npt.NDArray[np.int8]
_PARTS = {"setting", "held", "new", "same", "identities"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a model is valid for; with any other it is void.

    Attributes:
        thresholds: T_c, T_s and T_p.
        evidence: "nearest" or "cluster".
        healing: healing in words.
        space: digest of the space.
    """

    thresholds: tuple[float, float, float]
    evidence: str
    healing: str
    space: str

    def difference(self, other: Setting) -> str:
        """Return the name of the first part that differs; empty if none does."""
        names = ("thresholds", "evidence", "healing", "space")
        return next((name for name in names if getattr(self, name) != getattr(other, name)), "")

    def to_plain(self) -> list[Any]:
        """Return the setting for JSON."""
        return [list(self.thresholds), self.evidence, self.healing, self.space]

    @classmethod
    def from_plain(cls, plain: Any) -> Setting:
        """Return a setting; raise ValueError if the values cannot be those of one."""
        if not isinstance(plain, list) or len(plain) != 4:
            raise ValueError("a setting of other parts")
        thresholds, *words = plain
        if not all(type(word) is str for word in words) or not _three_floats(thresholds):
            raise ValueError("a setting of other parts")
        return cls(tuple(thresholds), *words)


def _three_floats(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) == 3
        and all(type(each) is float for each in values)
    )


@dataclass(frozen=True, slots=True)
class Examples:
    """Decisions that are known to be right or wrong, as columns.

    Attributes:
        kind: JOINED, LINKED or NEW.
        margin: the cluster margin of each; those with NaN are left out.
        right: whether the majority of the cluster was the vector's identity, and for NEW whether
            the identity was not seen before.
        identities: number of different identities.
    """

    kind: Kinds
    margin: Floats
    right: Flags
    identities: int

    @classmethod
    def joined(cls, parts: list[Examples]) -> Examples:
        """Concatenate the examples of several runs over the same identities."""
        return cls(
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.margin for part in parts]),
            np.concatenate([part.right for part in parts]),
            max(part.identities for part in parts),
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of clusters that are known to be one identity or two, as columns.

    Attributes:
        margin: similarity of the two as wholes, less s~(k, k').
        same: whether the majorities of both are one identity.
    """

    margin: Floats
    same: Flags

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """Concatenate the pairs of several runs."""
        return cls(
            np.concatenate([part.margin for part in parts]),
            np.concatenate([part.same for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Model:
    """The probability that a decision is right, from its kind and its cluster margin.

    Attributes:
        setting: what the model is valid for.
        held: the curve for vectors that joined or were linked; the margin is its x.
        new: the curve for new clusters; the margin with its sign changed is its x.
        same: the curve for two clusters to be one identity; their margin is its x.
        identities: number of identities that it was fitted to.
    """

    setting: Setting
    held: Curve
    new: Curve
    same: Curve
    identities: int

    @classmethod
    def fit(cls, examples: Examples, pairs: Pairs, setting: Setting) -> Model:
        """Fit all curves."""
        usable = np.isfinite(examples.margin)
        new = (examples.kind == NEW) & usable
        held = (examples.kind != NEW) & usable
        return cls(
            setting,
            fit_curve(examples.margin[held], examples.right[held]),
            fit_curve(-examples.margin[new], examples.right[new]),
            fit_curve(pairs.margin, pairs.same),
            examples.identities,
        )

    @property
    def is_known(self) -> bool:
        """Whether there were enough identities to learn from."""
        return self.identities >= IDENTITIES

    @property
    def why(self) -> str:
        """Why some probabilities are unknown; empty if none is but by its margin."""
        if not self.is_known:
            return f"fitted to {self.identities} identities; {IDENTITIES} or more are needed"
        return "; ".join(
            f"{name}: {curve.right} right and {curve.wrong} wrong; {ERRORS} of each are needed"
            for name, curve in (("joined and linked", self.held), ("new", self.new))
            if not curve.is_known
        )

    def probabilities(self, kind: Kinds, margin: Floats) -> Floats:
        """Return the probability that each decision is right; NaN if it is unknown."""
        if not self.is_known:
            return np.full(margin.shape, math.nan)
        held, new = self.held.probabilities(margin), self.new.probabilities(-margin)
        return np.where(kind == NEW, new, held)

    def one_identity(self, margin: Floats) -> Floats:
        """Return the probability that two clusters are one identity; NaN if it is unknown."""
        if not self.is_known:
            return np.full(margin.shape, math.nan)
        return self.same.probabilities(margin)

    def to_plain(self) -> dict[str, Any]:
        """Return the model for JSON."""
        return {
            "setting": self.setting.to_plain(),
            "held": self.held.to_plain(),
            "new": self.new.to_plain(),
            "same": self.same.to_plain(),
            "identities": self.identities,
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Model:
        """Return a model; raise ValueError if the values cannot be those of one."""
        if not isinstance(plain, dict) or set(plain) != _PARTS:
            raise ValueError("a model of other parts")
        identities = plain["identities"]
        if type(identities) is not int or identities < 0:
            raise ValueError(f"{identities!r:.60} identities")
        held, new, same = (Curve.from_plain(plain[name]) for name in ("held", "new", "same"))
        return cls(Setting.from_plain(plain["setting"]), held, new, same, identities)
