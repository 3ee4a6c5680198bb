"""Presets: a line of thresholds for an encoder, and a space, with their scores.

What counts as one identity depends on the task as well as on the encoder: a topic, an intent or a
product. So a preset is no point but a line through the space of thresholds. `granularity` chooses a
place on it: 0 is the coarsest place (few large clusters), 1 the finest, and named levels lie
between. `python -m benchmarks.presets FOLDER` makes the lines from labelled sets; docs/tuning.md
shows their scores on sets that were left out. If you have labels or pairs, `tune` or `calibrate` on
your own vectors is better.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from importlib import resources
from typing import Any

from linkstream.errors import ArgumentError, DimensionError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

Granularity = str | float

_DIGITS = 4  # of a threshold, so that it can be printed and typed again


@dataclass(frozen=True, slots=True)
class Line:
    """Thresholds by granularity, from 0 (coarse) to 1 (fine).

    T_c rises evenly from `coarse` to `fine`. T_p = T_c² + pull·(1 − T_c²) and
    T_s = 1 − join·(1 − T_c).

    >>> Line(coarse=0.3, fine=0.9, pull=0.7, join=0.4).at(0.5)
    Thresholds(cluster_similarity=0.6, subcluster_similarity=0.84, pair_similarity_max=0.808)

    Attributes:
        coarse, fine: T_c at granularity 0 and 1.
        pull: part of the way of T_p from T_c² to 1.
        join: part of the way of T_s from 1 to T_c.
    """

    coarse: float
    fine: float
    pull: float
    join: float

    def at(self, granularity: float) -> Thresholds:
        """Return the thresholds at a granularity from 0 to 1."""
        t_c = self.coarse + granularity * (self.fine - self.coarse)
        t_s = 1.0 - self.join * (1.0 - t_c)
        t_p = t_c * t_c + self.pull * (1.0 - t_c * t_c)
        return Thresholds(*(round(value, _DIGITS) for value in (t_c, t_s, t_p)))


@dataclass(frozen=True, slots=True, eq=False)
class Preset:
    """Thresholds at one granularity of an encoder, with space and options.

    Attributes:
        name: the name for `Links.preset`.
        encoder: description of the vectors.
        model: name of the encoder.
        dimension: dimension of the vectors; vectors of another dimension are refused.
        line: the thresholds at every granularity.
        levels: the named levels and their granularities, coarse ones first.
        words: what one cluster is, by level.
        default: the level that applies if no granularity is given.
        granularity: the place on the line, from 0 (coarse) to 1 (fine).
        space: the space of the thresholds. Its model is the name of the preset.
        evidence, heal: options of `Links` that the thresholds were tuned with.
        made_from: the sets that the line was made from.
        figures: by set, of a line made without that set, for the default level and for each
            level: instant accuracy, current accuracy, and the share of vectors that keep their
            ID (not for a preset of one point).
    """

    name: str
    encoder: str
    model: str
    dimension: int
    line: Line
    levels: dict[str, float]
    words: dict[str, str]
    default: str
    granularity: float
    space: Space
    evidence: str
    heal: str | None
    made_from: tuple[str, ...]
    figures: dict[str, Any]

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds at the granularity."""
        return self.line.at(self.granularity)

    @property
    def level(self) -> str | None:
        """The name of the granularity, or None if it lies between two levels."""
        return next((name for name, at in self.levels.items() if at == self.granularity), None)

    @property
    def options(self) -> dict[str, Any]:
        """The options of `Links` that go with the thresholds."""
        return {"space": self.space, "evidence": self.evidence, "heal": self.heal}

    def at(self, granularity: Granularity) -> Preset:
        """Return the preset at another granularity.

        Args:
            granularity: the name of a level, or a number from 0 (coarse) to 1 (fine).

        Raises:
            ArgumentError: there is no such level, or the number is outside.
        """
        of = f" of preset {self.name!r}"
        return replace(self, granularity=granularity_of(granularity, self.levels, of=of))


def granularity_of(granularity: object, levels: Mapping[str, float], *, of: str = "") -> float:
    """Return a level by name, or a number, as a number from 0 to 1; else raise ArgumentError."""
    if isinstance(granularity, str) and granularity in levels:
        return levels[granularity]
    number = _as_number(granularity)
    if number is not None and 0.0 <= number <= 1.0:
        return number
    raise ArgumentError(
        f"granularity {granularity!r}{of}{_did_you_mean(granularity, levels)}",
        expected=f"one of {_listed(levels)}, or a number from 0 to 1",
        remedy="0 gives few large clusters, 1 many small ones; levels() shows your own vectors.",
    )


@functools.cache
def presets() -> dict[str, Preset]:
    """Return all presets by name, each at its default level."""
    return {values["name"]: _preset(values) for values in _read()}


@functools.cache
def aliases() -> dict[str, tuple[str, str]]:
    """Return the names that stand for a level of a preset, with the preset and the level."""
    return {
        alias: (values["name"], level)
        for values in _read()
        for alias, level in values["aliases"].items()
    }


def preset(name: str, granularity: Granularity | None = None) -> Preset:
    """Return a preset at a granularity.

    Args:
        name: one of the names in `presets()` or `aliases()`.
        granularity: the name of a level such as "topics", or a number from 0 (coarse) to 1
            (fine). None takes the default level, or that of the alias.

    Raises:
        ArgumentError: there is no such preset, or no such level.

    >>> preset("minilm", "topics").level
    'topics'
    """
    base, level = aliases().get(name, (name, None))
    known = presets()
    if base not in known:
        names = [*known, *aliases()]
        raise ArgumentError(
            f"preset {name!r}{_did_you_mean(name, names)}",
            expected=f"one of {_listed(names)}",
            remedy="For another encoder use linkstream.tuning: tune, calibrate or diagnose.",
        )
    wanted = level if granularity is None else granularity
    return known[base] if wanted is None else known[base].at(wanted)


def check_no_granularity(granularity: object) -> None:
    """Raise ArgumentError if a granularity was given without a preset."""
    if granularity is not None:
        raise ArgumentError(
            f"granularity {granularity!r} without a preset",
            expected="a preset, whose levels it chooses from",
            remedy="Pass preset= as well, or leave granularity= out.",
        )


def describe(model: str | None, thresholds: Thresholds) -> str:
    """Return the preset and level that thresholds of a model come from, or the thresholds."""
    known = presets().get(model or "")
    if known is None:
        return f"thresholds {astuple(thresholds)!r}"
    for level, granularity in known.levels.items():
        if known.line.at(granularity) == thresholds:
            return f"preset {model!r} of granularity {level!r}"
    return f"preset {model!r} with thresholds {astuple(thresholds)!r}"


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


def _read() -> list[dict[str, Any]]:
    text = (resources.files("linkstream.data") / "presets.json").read_text("utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _preset(values: dict[str, Any]) -> Preset:
    levels = {name: level["granularity"] for name, level in values["levels"].items()}
    return Preset(
        name=values["name"],
        encoder=values["encoder"],
        model=values["model"],
        dimension=values["dimension"],
        line=Line(**values["line"]),
        levels=levels,
        words={name: level["words"] for name, level in values["levels"].items()},
        default=values["default"],
        granularity=levels[values["default"]],
        space=Space(values["mean"], model=values["name"], dimension=values["dimension"]),
        evidence=values["evidence"],
        heal=values["heal"],
        made_from=tuple(values["made_from"]),
        figures=values["figures"],
    )


def _as_number(value: object) -> float | None:
    """Return a number, also one written as text on a command line; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _did_you_mean(given: object, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(given), list(names), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
