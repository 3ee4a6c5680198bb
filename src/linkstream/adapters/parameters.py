"""Make a clusterer from the parameters that the adapters share."""

from __future__ import annotations

from inspect import signature
from typing import Any

from linkstream.clusterer import Links
from linkstream.clusterer.modes import over_preset
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import Preset, check_no_granularity
from linkstream.presets import preset as preset_of

THRESHOLDS = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")


def store_parameters(model: object, given: dict[str, Any]) -> None:
    """Set each argument of a constructor, given by its `locals()`, as an attribute of the model."""
    vars(model).update((name, given[name]) for name in signature(type(model)).parameters)


def make_links(parameters: dict[str, Any]) -> Links:
    """Return the clusterer for an adapter's parameters; raise ArgumentError if one is wrong.

    Thresholds come from a preset and its granularity, from the three parameters, or from both: a
    parameter takes precedence over the preset. If `space`, `mode`, `evidence` or `heal` is None,
    that of the preset applies, or else the default of `Links`; `heal=False` means no healing even
    with a preset. All other parameters are options of `Links`.
    """
    rest = dict(parameters)
    name, granularity = rest.pop("preset"), rest.pop("granularity")
    if name is None:
        check_no_granularity(granularity)
    preset = None if name is None else preset_of(name, granularity)
    thresholds = _thresholds({name: rest.pop(name) for name in THRESHOLDS}, preset)
    own = {key: rest.pop(key) for key in ("space", "mode", "evidence", "heal")}
    given = {key: value for key, value in own.items() if value is not None}
    chosen = over_preset({} if preset is None else preset.options, given)
    return Links.from_thresholds(thresholds, **chosen, **rest)


def _thresholds(given: dict[str, float | None], preset: Preset | None) -> Thresholds:
    values: dict[str, Any] = {
        name: getattr(preset.thresholds, name) if preset is not None and value is None else value
        for name, value in given.items()
    }
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise ArgumentError(
            f"no {', '.join(missing)}",
            expected=f"{', '.join(THRESHOLDS)}, or a preset",
            remedy="Thresholds belong to an encoder: take preset=..., or linkstream.tuning.tune.",
        )
    return Thresholds(**values)
