"""What a stream does with unsure vectors: take them, hold them, or let them weigh less.

A probability is turned into bounds on the cluster margin once, when the policy is made. The bounds
decide, so that every machine decides the same, whatever it would round a probability to.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from linkstream.confidence.curve import Curve
from linkstream.confidence.model import IDENTITIES, Model, Setting
from linkstream.engine.forest import FULL
from linkstream.engine.policy import NEVER, Doubt
from linkstream.errors import ArgumentError

UNSURE = ("hold", "weigh")  # what can be done with unsure vectors, beside taking them
FIRST = -1  # the encoder of vectors that were never replaced by those of another
_HALVINGS = 200  # more than a double has digits


@dataclass(frozen=True, slots=True)
class Policy:
    """What is done with vectors whose decision is unsure.

    Attributes:
        unsure: "take" (as without a policy), "hold" or "weigh".
        probability: from which on a decision to join or to link is sure; None for "take".
        new: from which on a new cluster is sure; None for "take".
        weight: of unsure vectors, a multiple of 1/256; 0 if they are held.
        joined_margin: the least cluster margin of a sure decision to join or to link; None: all are
            sure.
        new_margin: the greatest cluster margin of a sure new cluster; None: all are sure.
        setting: the settings that the bounds are valid for; with others the policy rests.
        encoder: event of the rebuild that changed the encoder before; with another one it rests.
    """

    unsure: str = "take"
    probability: float | None = None
    new: float | None = None
    weight: float = 1.0
    joined_margin: float | None = None
    new_margin: float | None = None
    setting: Setting | None = None
    encoder: int = FIRST

    @classmethod
    def of(
        cls, model: Model, probability: float, new: float, *, unsure: str, weight: float
    ) -> Policy:
        """Return the policy that a model gives; raise ArgumentError if it is never so sure."""
        held, fresh = model.curves
        tuned = model.identities >= IDENTITIES
        parts = [held, model.held] if tuned else [held]
        joined_margin = _least(parts, probability, "probability", "joins or is linked")
        parts = [fresh, model.new] if tuned else [fresh]
        margin = _least(parts, new, "new", "is new")
        new_margin = None if margin is None else -margin
        bounds = joined_margin, new_margin
        return cls(unsure, probability, new, weight, *bounds, model.setting)

    @property
    def doubt(self) -> Doubt | None:
        """What the engine is told; None for "take"."""
        if self.unsure == "take":
            return None
        joined = -NEVER if self.joined_margin is None else self.joined_margin
        fresh = -NEVER if self.new_margin is None else -self.new_margin
        return Doubt(joined, fresh, FULL - round(self.weight * FULL))

    @property
    def bounds(self) -> str | None:
        """The policy as a text for the event and the journal; None for "take"."""
        if self.unsure == "take" or self.setting is None:
            return None
        told: list[Any] = [self.unsure, self.probability, self.new, self.weight]
        told += [self.joined_margin, self.new_margin, self.setting.to_plain()]
        return json.dumps(told if self.encoder == FIRST else [*told, self.encoder])

    @classmethod
    def from_bounds(cls, text: str | None) -> Policy:
        """Return the policy of a text; raise ValueError if it is none."""
        if text is None:
            return cls()
        parts = json.loads(text)
        if not isinstance(parts, list) or len(parts) not in (7, 8) or parts[0] not in UNSURE:
            raise ValueError("a policy of other parts")
        unsure, probability, new, weight, *margins, setting = parts[:7]
        encoder = parts[7] if len(parts) == 8 else FIRST
        if type(encoder) is not int or encoder < FIRST:
            raise ValueError(f"the encoder {encoder!r:.20} in a policy")
        if not _is_figure(weight) or not 0 <= weight < 1 or (weight == 0) != (unsure == "hold"):
            raise ValueError(f"the weight {weight!r:.20} in a policy")
        if not (_is_figure(probability) and _is_figure(new)):
            raise ValueError("a probability in a policy that is none")
        if not all(each is None or _is_figure(each) for each in margins):
            raise ValueError("a margin in a policy that is none")
        given = Setting.from_plain(setting)
        return cls(unsure, probability, new, weight, margins[0], margins[1], given, encoder)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain values for JSON, without its settings."""
        return {
            "unsure": self.unsure,
            "probability": self.probability,
            "new": self.new,
            "weight": self.weight,
            "joined_margin": self.joined_margin,
            "new_margin": self.new_margin,
        }


def _is_figure(value: object) -> bool:
    return type(value) is float and math.isfinite(value)


def _least(curves: list[Curve], probability: float, name: str, what: str) -> float | None:
    """Return the least x at which the first curve is as probable; None if every x is.

    A kind without a curve is as probable as the share of it that was right, by all curves.
    """
    curve = curves[0]
    if probability <= 0.0:
        return None
    if not curve.is_known:
        _refuse_above(share_right(curves), probability, name, what)
        return None
    _refuse_above(float(curve.probabilities(curve.high)), probability, name, what)
    if float(curve.probabilities(curve.low)) >= probability:
        return curve.low
    below, least = curve.low, curve.high
    for _ in range(_HALVINGS):
        middle = (below + least) / 2.0
        if float(curve.probabilities(middle)) >= probability:
            least = middle
        else:
            below = middle
    return least


def share_right(curves: list[Curve]) -> float:
    """Return the share of right decisions of a kind that has no curve, smoothed."""
    right, wrong = (sum(getattr(each, name) for each in curves) for name in ("right", "wrong"))
    return float(right + 1) / float(right + wrong + 2)


def _refuse_above(most: float, probability: float, name: str, what: str) -> None:
    """Raise ArgumentError if no decision of a kind is as probable."""
    if most >= probability:
        return
    raise ArgumentError(
        f"{name}={probability}, where the model tells at most {math.floor(most * 1e3) / 1e3} of a "
        f"vector that {what}",
        expected="a probability that it can tell: else nothing is ever sure",
        remedy=f"Choose a lower {name}=; new=0 takes every new cluster. More identities to tune "
        "with, or more answers, can make it surer.",
    )
