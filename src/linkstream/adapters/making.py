"""Making: a clusterer from the parameters that the adapters share."""

from __future__ import annotations

from typing import Any

from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import Preset
from linkstream.presets import preset as preset_of

NAMES = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")


def links(parameters: dict[str, Any]) -> Links:
    """The clusterer that an adapter's parameters stand for; ArgumentError where they are wrong.

    Thresholds come from a preset, from the three names, or from both: a name that is given goes
    before the preset. `space`, `evidence` and `heal` of None are the preset's, or else those of
    `Links`; `heal=False` is no healing, whatever the preset says. All others are options of
    `Links`.
    """
    rest = dict(parameters)
    name = rest.pop("preset")
    preset = None if name is None else preset_of(name)
    thresholds = _thresholds({name: rest.pop(name) for name in NAMES}, preset)
    own = {key: rest.pop(key) for key in ("space", "evidence", "heal")}
    chosen: dict[str, Any] = preset.options if preset is not None else {"evidence": "nearest"}
    chosen |= {key: value for key, value in own.items() if value is not None}
    if chosen.get("heal") is False:
        chosen["heal"] = None
    return Links.from_thresholds(thresholds, **chosen, **rest)


def check_unchanged(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise ArgumentError if parameters are no longer those that the vectors were taken with."""
    changed = [name for name, value in now.items() if before[name] != value]
    if changed:
        raise ArgumentError(
            "; ".join(f"{name}={now[name]!r} after {before[name]!r}" for name in changed),
            expected="the parameters of the last fit()",
            remedy="Set them back to go on, or call fit() to start anew with them.",
        )


def _thresholds(given: dict[str, float | None], preset: Preset | None) -> Thresholds:
    values: dict[str, Any] = {
        name: getattr(preset.thresholds, name) if preset is not None and value is None else value
        for name, value in given.items()
    }
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise ArgumentError(
            f"no {', '.join(missing)}",
            expected=f"{', '.join(NAMES)}, or a preset",
            remedy="Thresholds belong to an encoder: take preset=..., or linkstream.tuning.tune.",
        )
    return Thresholds(**values)
