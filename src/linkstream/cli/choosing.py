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
            _given(preset, three),
            expected=f"--preset NAME, or all of {', '.join(_FLAGS)}",
            remedy="linkstream presets lists the presets; tune and calibrate find thresholds.",
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


_FLAGS = ("--cluster-similarity", "--subcluster-similarity", "--pair-similarity-max")


def _given(preset: str | None, three: Three) -> str:
    """Return the options that were given, of which there are too many or too few."""
    given = [] if preset is None else [f"--preset {preset}"]
    given += [flag for flag, value in zip(_FLAGS, three, strict=True) if value is not None]
    return " and ".join(given) if given else "no thresholds"


def options(**given: Any) -> dict[str, Any]:
    """The options of `Links` that the caller set."""
    return {name: value for name, value in given.items() if value is not None}


def of_store(preset: str | None, three: Three) -> Thresholds | None:
    """The same, for a store that may be there: then none of them need be given."""
    nothing = preset is None and three == (None, None, None)
    return None if nothing else thresholds(preset, three)


def command(thresholds: Thresholds) -> str:
    """Return the command that clusters with some thresholds."""
    values = (
        thresholds.cluster_similarity,
        thresholds.subcluster_similarity,
        thresholds.pair_similarity_max,
    )
    given = " ".join(f"{flag} {value:.6g}" for flag, value in zip(_FLAGS, values, strict=True))
    return f"linkstream cluster FILE --store people.links {given}"
