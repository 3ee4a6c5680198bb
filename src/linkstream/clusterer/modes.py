"""Modes: one name for options of `Links` that belong together.

"paper" is the algorithm of the paper; "best" is the most accurate configuration that is known
(docs/tuning.md). Thresholds belong to a mode: tune them with the mode that they are used with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from linkstream.clusterer.checks import check_evidence
from linkstream.errors import ArgumentError
from linkstream.identity.settling import Healing


class Configuration(NamedTuple):
    """What a mode stands for: the options `evidence` and `heal` of `Links`."""

    evidence: str
    healing: Healing | None


PAPER, BEST = "paper", "best"
MODES = {
    PAPER: Configuration("nearest", None),
    BEST: Configuration("cluster", Healing("settle")),
}


def configuration(mode: str, evidence: str | None, heal: object) -> Configuration:
    """Return evidence and healing: those that were given, else those of the mode.

    Raise ArgumentError if one of the three is not valid.

    Args:
        mode: "paper" or "best".
        evidence: "nearest" or "cluster"; None takes that of the mode.
        heal: a mode of healing or a Healing; None takes that of the mode, False is no healing.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise ArgumentError(
            f"mode={mode!r}",
            expected=" or ".join(map(repr, MODES)),
            remedy="'paper' is the default; 'best' is more accurate with thresholds tuned for it.",
        )
    chosen = MODES[mode]
    if evidence is not None:
        check_evidence(evidence)
        chosen = chosen._replace(evidence=evidence)
    if heal is not None:
        chosen = chosen._replace(healing=None if heal is False else Healing.of(heal))
    return chosen


def shortest_options(chosen: Configuration) -> dict[str, Any]:
    """Return the fewest options of `Links` that mean this configuration.

    >>> shortest_options(MODES["best"])
    {'mode': 'best'}
    >>> shortest_options(Configuration("cluster", None))
    {'evidence': 'cluster'}
    """
    for mode, meant in MODES.items():
        if chosen == meant:
            return {} if mode == PAPER else {"mode": mode}
    options: dict[str, Any] = {}
    if chosen.evidence != MODES[PAPER].evidence:
        options["evidence"] = chosen.evidence
    if chosen.healing is not None:
        plain = chosen.healing == Healing(chosen.healing.mode)
        options["heal"] = chosen.healing.mode if plain else chosen.healing
    return options


def over_preset(preset: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a preset with those that were given.

    A mode that was given replaces evidence and healing of the preset.
    """
    replaced = ("evidence", "heal") if given.get("mode") is not None else ()
    return {name: each for name, each in preset.items() if name not in replaced} | dict(given)
