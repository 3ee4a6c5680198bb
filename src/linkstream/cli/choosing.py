"""Which clusterer the caller asked for: three thresholds, or a preset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.io import Source
    from linkstream.paper.thresholds import Thresholds

Three = tuple[float | None, float | None, float | None]


def thresholds(preset: str | None, three: Three) -> Thresholds | None:
    """The three thresholds; None where a preset stands for them."""
    from linkstream.paper.thresholds import Thresholds

    t_c, t_s, t_p = three
    if preset is not None and t_c is None and t_s is None and t_p is None:
        return None
    if preset is not None or t_c is None or t_s is None or t_p is None:
        raise ArgumentError(
            f"preset {preset!r} and thresholds {three}",
            expected="all three thresholds, or a preset and none of them",
            remedy="linkstream tune finds thresholds; docs/tuning.md lists the presets.",
        )
    return Thresholds(t_c, t_s, t_p)


def check_dimension(preset: str | None, three: Three, source: Source) -> None:
    """Raise DimensionError if the preset is for vectors of another dimension than the source has.

    It comes before a store is made: a store that was made with the wrong preset stays in the way.
    """
    from linkstream import presets

    if preset is None or three != (None, None, None):
        return
    chosen = presets.preset(preset)
    if source.dimension not in (None, chosen.dimension):
        seen = f"{source.name}: vectors of dimension {source.dimension}"
        raise presets.other_dimension(seen, chosen.space)


def options(**given: Any) -> dict[str, Any]:
    """The options of `Links` that the caller set."""
    return {name: value for name, value in given.items() if value is not None}


def of_store(preset: str | None, three: Three) -> Thresholds | None:
    """The same, for a store that may be there: then none of them need be given."""
    nothing = preset is None and three == (None, None, None)
    return None if nothing else thresholds(preset, three)
