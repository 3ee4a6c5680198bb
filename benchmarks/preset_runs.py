"""Runs of Links along lines of thresholds, kept in a file: the evidence for the presets.

A stream is the first 2,500 vectors of a set in the given order; for an encoder with one set, the
tuning half or the scored half of its identities. Each stream is run at eleven places of three
lines, which differ in their pull. Instant and current accuracy, the share of vectors that keep
their ID, and the separation of the clusters (the last two need no labels) are kept, so that all
tables follow without another run.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.protocol import CAP, Half, load
from linkstream import Links, Space, Thresholds
from linkstream.metrics import accuracy, stability
from linkstream.presets import Line
from linkstream.space import survey
from linkstream.tuning import grid
from linkstream.tuning.granularity import PLACES
from linkstream.tuning.measurements import unit_vectors

KEPT = Path(__file__).parent / "presets.json"
PULLS = (0.6, 0.75, 0.9)
JOIN = 0.4
PARTS = ("tuning", "scored")  # halves of the identities
OPTIONS: dict[str, Any] = {"evidence": "cluster", "heal": "settle"}

Figures = dict[str, float]  # instant, current, still, separation


@dataclass(frozen=True, slots=True)
class Stream:
    """A set, one half of it or all, and the set whose mean centres the space, if any."""

    name: str
    part: str = "first"  # its first 2,500 vectors; or "all", or one of PARTS
    centred_by: str = ""

    @property
    def key(self) -> str:
        """The key of the stream in the file."""
        return " ".join(filter(None, (self.name, self.part, self.centred_by)))


class Runs:
    """Figures by stream, line and place; a run that is not in the file is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, Figures] = {}
        if KEPT.exists():
            self.kept = json.loads(KEPT.read_text("utf-8"))

    def along(self, stream: Stream, line: Line) -> list[Figures]:
        """Return the figures at each of the places of a line."""
        return self.at_all(stream, [line.at(place) for place in PLACES])

    def at_all(
        self, stream: Stream, settings: list[Thresholds], options: dict[str, Any] = OPTIONS
    ) -> list[Figures]:
        """Return the figures of several thresholds."""
        words = "" if options == OPTIONS else f" {options['evidence']} {options['heal']}"
        keys = [f"{stream.key}{words} {tuple(asdict(each).values())}" for each in settings]
        missing = [n for n, key in enumerate(keys) if key not in self.kept]
        if missing:
            half, space = self.half(stream), self.space(stream.centred_by)
            rows = unit_vectors(half.X, space)
            similarity = rows @ rows.T
            for n in missing:
                self.kept[keys[n]] = _figures(half, rows, similarity, settings[n], options)
            self.save()
        return [self.kept[key] for key in keys]

    def save(self) -> None:
        """Write all figures to the file."""
        KEPT.write_text(json.dumps(self.kept, indent=0) + "\n", "utf-8")

    def half(self, stream: Stream) -> Half:
        """Load the vectors and identities of a stream."""
        path = self.folder / f"{stream.name}.npz"
        if stream.part in PARTS:
            return load(path)[PARTS.index(stream.part)]
        cap = CAP if stream.part == "first" else None
        with np.load(path) as arrays:
            rows = arrays["X"][:cap].astype(np.float32)
            return Half(rows / np.linalg.norm(rows, axis=1, keepdims=True), arrays["y"][:cap])

    def space(self, centred_by: str) -> Space:
        """Return the space centred on the mean of the identities of a stream, or without a mean.

        `centred_by` is a set, or a set and a part such as "voice_libri261 tuning"; "" for none.
        """
        if not centred_by:
            return Space()
        name, _, part = centred_by.partition(" ")
        half = self.half(Stream(name, part or "all"))
        mean = survey(half.X, y=half.y).mean
        return Space(mean=[round(float(value), 6) for value in mean])


def _figures(
    half: Half, rows: Any, similarity: Any, thresholds: Thresholds, options: dict[str, Any]
) -> Figures:
    links = Links.from_thresholds(thresholds, threads=1, **options)
    instant = links.add_many(rows)
    current, given = links.labels(), links.resolve_many(instant)
    numbered = np.unique(current, return_inverse=True)[1].astype(np.int32)[np.newaxis, np.newaxis]
    seen = grid.measured((1,), (thresholds,), numbered, similarity)
    found = {"instant": accuracy(half.y, instant), "current": accuracy(half.y, current)}
    found["still"] = stability(given, current)
    found["separation"] = float(seen.separation[0])
    return {name: round(value, 4) for name, value in found.items()}
