"""Measure evidence of time on recordings: `python -m benchmarks.timed_recordings FOLDER [--docs]`.

FOLDER contains the recordings of `diarization.py` and the sets of `conversations.py`. As there, a
method is tuned on the windows of half of the speakers and judged on those of the others; the mean
over all halves is given, with the least and the most. The last row takes the thresholds that
`conversations.py` found on conversations of other voices, with the mean of the preset
`ge2e-windows`; it is for voices of that encoder alone. The time model has its defaults. In the
other rows it is given windows less the mean of the half that was tuned on.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import quality_tables
from benchmarks.conversation_bed import Conversation
from benchmarks.conversation_methods import (
    FROM_CONVERSATIONS,
    Centroid,
    Clusters,
    Labels,
    Room,
    again,
    delayed,
)
from benchmarks.diarization import PAGE, SECONDS, Recording, halves, spread
from benchmarks.machine import installed, processor
from benchmarks.methods import HealedLinks, OneCentroid, PaperLinks
from linkstream import Links, Space
from linkstream.adapters.turns import SegmentTimes
from linkstream.turn_model import TimeModel

DELAYS = (0.0, 1.0, 2.0, 5.0)
COLUMNS = ("instant", *(f"{delay:g} s" for delay in DELAYS), "current", "current, timed")
ENCODER = "voice_stream10"  # recording with voices of the encoder of the conversations

SPACE = Links.preset("ge2e-windows").space

Grid = list[list[str]]


def as_conversation(recording: Recording) -> Conversation:
    """Return a recording as a conversation: the time that each window keeps is its speaker's."""
    times = SegmentTimes("cut")
    for span in recording.spans.tolist():
        times.add((span[0], span[1]))
    kept = np.array([sum(end - start for start, end in spans) for spans in times.kept])
    people, who = np.unique(recording.y, return_inverse=True)
    heard = np.eye(len(people))[who] * kept[:, np.newaxis]
    return Conversation(recording.X, recording.spans, heard, kept, who)


def run(kind: Any, parameters: dict[str, float], room: Room, X: Any) -> dict[str, float]:
    """Return confusion by column; the method gets X, the time model the windows of the room."""
    found: Labels = kind.run(X, parameters)
    assert found.instant is not None
    model, rate = TimeModel(), room.talk.confusion
    figures = {"instant": rate(found.instant)}
    for delay in DELAYS:
        figures[f"{delay:g} s"] = rate(delayed(room, found, delay, model))
    return figures | {
        "current": rate(found.final),
        "current, timed": rate(again(room, found.final, model)),
    }


class Given(Clusters):
    """Clusters with three thresholds."""

    def run(self, X: Any, parameters: dict[str, float]) -> Labels:
        """Return labels at arrival, their changes, and final labels."""
        return self.follow(X, tuple(parameters.values()))


METHODS = (
    ("one centroid", Centroid(), OneCentroid()),
    ("links", Given("", "", "paper"), PaperLinks()),
    ("links, healed", Given("", "", "best"), HealedLinks()),
)


def judge(recording: Recording, space: Space | None) -> dict[str, dict[str, list[float]]]:
    """Return the confusion on unseen speakers, by method and column."""
    kept: dict[str, dict[str, list[float]]] = {}

    def keep(name: str, figures: dict[str, float]) -> None:
        for column, rate in figures.items():
            kept.setdefault(name, {}).setdefault(column, []).append(rate)

    speakers = np.unique(recording.y)
    for half in halves(speakers):
        tuning, unseen = recording.only(half), recording.only(np.setdiff1d(speakers, half))
        room = Room.of(as_conversation(unseen), tuning.X.mean(axis=0, dtype=np.float64))
        for name, kind, tuner in METHODS:
            keep(name, run(kind, dict(tuner.tune(tuning.X, tuning.y)), room, unseen.X))
        if space is not None:
            name, kind, _ = METHODS[-1]
            room = Room.of(room.talk, space.mean)
            given = {str(n): each for n, each in enumerate(astuple(FROM_CONVERSATIONS))}
            keep(f"{name}, thresholds of conversations", run(kind, given, room, room.X))
    return kept


def table(kept: dict[str, dict[str, list[float]]]) -> Grid:
    """Return a row for each method."""
    head = ["method", *COLUMNS]
    return [
        head,
        *([name, *(spread(columns[c]) for c in COLUMNS)] for name, columns in kept.items()),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Judge all recordings, print the tables, and write the page if `--docs` is given."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.timed_recordings",
        description="Evidence of time on recordings. Example: "
        "python -m benchmarks.timed_recordings data",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with the recordings")
    parser.add_argument("--docs", action="store_true", help="write the table into the page")
    options = parser.parse_args(arguments)
    parts = []
    for name in SECONDS:
        path = options.folder / f"{name}.npz"
        if path.exists():
            kept = judge(Recording.load(path), SPACE if name == ENCODER else None)
            parts.append(f"**{name}**\n\n{quality_tables.in_markdown(table(kept))}")
            print(parts[-1], flush=True)
    versions = ", ".join(f"{name} {installed(name)}" for name in ("linkstream", "numpy"))
    made = (
        f"Made by `python -m benchmarks.timed_recordings FOLDER --docs`; {processor()}; {versions}."
    )
    if options.docs:
        quality_tables.put("timed", "\n\n".join([*parts, made]), page=PAGE)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
