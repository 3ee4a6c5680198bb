"""Presets: thresholds and a space for an encoder, with their scores.

`python -m benchmarks.presets FOLDER` makes them from labelled sets; docs/tuning.md shows their
scores on other sets. If you have labels or pairs, `tune` or `calibrate` on your own vectors is
better.
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
    """Thresholds, space and options for an encoder.

    Attributes:
        name: the name for `Links.preset`.
        encoder: description of the vectors.
        model: name of the encoder.
        dimension: dimension of the vectors; vectors of another dimension are refused.
        thresholds, space: the thresholds and their space. The model of the space is the name of
            the preset.
        evidence, heal: options of `Links` that the thresholds were tuned with.
        made_from: the sets that the preset was tuned on.
        figures: scores by set: of thresholds tuned on other sets if there are several, else on
            identities held out.
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
    """Return all presets by name."""
    text = (resources.files("linkstream.data") / "presets.json").read_text("utf-8")
    return {values["name"]: _preset(values) for values in json.loads(text)}


def preset(name: str) -> Preset:
    """Return a preset.

    Args:
        name: one of the names in `presets()`.

    Raises:
        ArgumentError: there is no such preset.
    """
    known = presets()
    if name not in known:
        raise ArgumentError(
            f"preset {name!r}",
            expected=f"one of {', '.join(map(repr, known))}",
            remedy="For another encoder use linkstream.tuning: tune, calibrate or diagnose.",
        )
    return known[name]


def other_dimension(seen: str, space: Space) -> DimensionError:
    """Return the error for vectors of another dimension than their space; it names the preset."""
    known = presets().get(space.model or "")
    if known is not None and known.space == space:
        maker = f"preset {known.name!r} is for {known.model}"
    else:
        maker = "the space says" if space.model is None else f"model {space.model!r} makes them"
    return DimensionError(
        seen,
        expected=f"dimension {space.dimension}: {maker}",
        remedy="Embed with that encoder, or choose a preset or thresholds for your encoder.",
        row=0,
    )


def _preset(values: dict[str, Any]) -> Preset:
    space = Space(values.pop("mean"), model=values["name"], dimension=values["dimension"])
    thresholds, made_from = Thresholds(**values["thresholds"]), tuple(values["made_from"])
    return Preset(**values | {"space": space, "thresholds": thresholds, "made_from": made_from})
