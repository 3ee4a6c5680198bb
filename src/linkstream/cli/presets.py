"""`linkstream presets`: encoders whose thresholds are known."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from linkstream.cli import screen
from linkstream.cli.options import AsJson
from linkstream.presets import Preset
from linkstream.presets import presets as known


def presets(as_json: AsJson = False) -> None:
    """List the encoders whose thresholds are known.

    Each was measured on labelled sets; docs/tuning.md has the figures. Thresholds belong to an
    encoder: for another one use `linkstream tune` or `linkstream calibrate`.

    Example: linkstream presets
    """
    found = list(known().values())
    if screen.speaks_json(as_json):
        for each in found:
            screen.write_json(_record(each))
        return
    rows = screen.table("Presets", "name", "vectors of", "T_c", "T_s", "T_p")
    rows.columns[1].justify = "left"
    for each in found:
        figures = asdict(each.thresholds).values()
        rows.add_row(each.name, each.encoder, *(f"{figure:.4f}" for figure in figures))
    console = screen.people(stderr=False)
    console.print(rows)
    console.print("\nTo use one: linkstream cluster FILE --store people.links --preset NAME")


def _record(preset: Preset) -> dict[str, Any]:
    return {
        "name": preset.name,
        "encoder": preset.encoder,
        "thresholds": asdict(preset.thresholds),
        "evidence": preset.evidence,
        "heal": preset.heal,
        "made_from": list(preset.made_from),
        "figures": preset.figures,
    }
