"""Presets: thresholds and a space for an encoder, with the figures behind them.

Made by `python -m benchmarks.presets FOLDER` from labelled sets; docs/tuning.md shows how well each
does on sets that did not make it. A preset is a start: `tune` or `calibrate` on vectors of your
own is better where there are labels or pairs.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from linkstream.errors import ArgumentError, DimensionError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space


@dataclass(frozen=True, slots=True, eq=False)
class Preset:
    """What suits an encoder.

    Attributes:
        name: what `Links.preset` is asked for.
        encoder: the vectors it is for, in words.
        model: name of the encoder.
        dimension: dimension of its vectors; vectors of another dimension are refused.
        thresholds, space: what was found. The space has the name of the preset and the dimension.
        evidence, heal: options of `Links` that it was found with.
        made_from: the sets that made it.
        figures: what it scored, by set: on sets that did not make it where there are several,
            else on identities that did not.
    """

    name: str
    encoder: str
    model: str
    dimension: int
    thresholds: Thresholds
    space: Space
    evidence: str
    heal: str | None
    made_from: tuple[str, ...]
    figures: dict[str, Any]

    @property
    def options(self) -> dict[str, Any]:
        """The options of `Links` that go with the thresholds."""
        return {"space": self.space, "evidence": self.evidence, "heal": self.heal}


@functools.cache
def presets() -> dict[str, Preset]:
    """All presets, by name."""
    text = (resources.files("linkstream.data") / "presets.json").read_text("utf-8")
    return {values["name"]: _preset(values) for values in json.loads(text)}


def preset(name: str) -> Preset:
    """The preset of a name."""
    known = presets()
    if name not in known:
        raise ArgumentError(
            f"preset {name!r}",
            expected=f"one of {', '.join(map(repr, known))}",
            remedy="For another encoder use linkstream.tuning: tune, calibrate or diagnose.",
        )
    return known[name]


def other_dimension(seen: str, space: Space) -> DimensionError:
    """The error for vectors that have another dimension than their space; names the encoder."""
    known = presets().get(space.model or "")
    if known is not None and known.space == space:
        maker = f"preset {known.name!r} is for {known.model}"
    else:
        maker = "the space says" if space.model is None else f"model {space.model!r} makes them"
    return DimensionError(
        seen,
        expected=f"dimension {space.dimension}: {maker}",
        remedy="Embed with that encoder, or choose the preset or the thresholds of your encoder.",
        row=0,
    )


def _preset(values: dict[str, Any]) -> Preset:
    return Preset(
        name=values["name"],
        encoder=values["encoder"],
        model=values["model"],
        dimension=values["dimension"],
        thresholds=Thresholds(**values["thresholds"]),
        space=Space(values["mean"], model=values["name"], dimension=values["dimension"]),
        evidence=values["evidence"],
        heal=values["heal"],
        made_from=tuple(values["made_from"]),
        figures=values["figures"],
    )
