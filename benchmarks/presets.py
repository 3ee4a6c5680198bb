"""Make the presets: `python -m benchmarks.presets FOLDER`.

A preset is a line of thresholds with named levels. What is fitted of it is one number for the line
(its pull) and the places of one or two levels, by current accuracy less a twentieth of the share of
vectors that do not keep their ID. The fit is judged by leaving whole sets out: for every set, a
line with levels is made from the other sets, and scored on the set. An encoder with one set is
judged by leaving half of its identities out.
`preset_runs` makes and keeps the runs, `preset_tables` writes the tables of docs/tuning.md. A
shipped preset that is not made here stays as it is: `ge2e-windows` and `ge2e-turns`, which are
points.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.preset_runs import JOIN, OPTIONS, PULLS, Figures, Runs, Stream
from linkstream.presets import Line
from linkstream.tuning import granularity, grid
from linkstream.tuning.granularity import PLACES

STILL_WEIGHT = 0.05  # of the share of vectors that do not keep the ID they were given
OUT = Path(__file__).parents[1] / "src/linkstream/data/presets.json"


@dataclass(frozen=True, slots=True)
class LevelRule:
    """A named level, and how its place is found.

    `at` is a fixed place; `between` the middle of two other levels; without both, the place is the
    best one in the mean over `sets`. `sets` are the sets whose task the level describes.
    """

    name: str
    words: str
    sets: tuple[str, ...] = ()
    at: float | None = None
    between: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder, its sets, the ends of its line, and its levels.

    The space is centred on the mean of the identities of the first of `centred_by` that is not left
    out. `aliases` are older names that stand for a level.
    """

    name: str
    words: str
    model: str
    dimension: int
    sets: tuple[str, ...]
    ends: tuple[float, float]
    levels: tuple[LevelRule, ...]
    default: str
    centred_by: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)

    def centre(self, left_out: str | None = None) -> str:
        """Return the set whose mean centres the space; "" for none."""
        return next((name for name in self.centred_by if name != left_out), "")

    def line(self, pull: float) -> Line:
        """Return the line with this pull."""
        return Line(coarse=self.ends[0], fine=self.ends[1], pull=pull, join=JOIN)

    def named(self, name: str) -> str:
        """Return the level that describes the task of a set."""
        return next((rule.name for rule in self.levels if name in rule.sets), self.levels[0].name)


@dataclass(frozen=True, slots=True)
class Fit:
    """What is fitted: the pull, and the place of each level."""

    pull: float
    levels: dict[str, float]


GE2E_SETS = (
    "voice_libri261",
    "voice_audiomnist",
    "voice_stream10",
    "voice_stream261",
    "voice_ravdess",
)
FACES = (
    LevelRule("loose", "one person, also in bad pictures", between=("coarse end", "persons")),
    LevelRule("persons", "one person"),
    LevelRule("strict", "one person in similar pictures", between=("persons", "fine end")),
)
ENCODERS = (
    Encoder(
        "ge2e",
        "GE2E voices, 256-d (Resemblyzer)",
        "GE2E (Resemblyzer)",
        256,
        GE2E_SETS,
        (0.3, 0.9),
        (
            LevelRule(
                "windows",
                "one voice in windows of about 1.6 s of running speech, or in many moods",
                ("voice_stream10", "voice_stream261", "voice_ravdess"),
            ),
            LevelRule("speech", "one voice, in any speech", between=("windows", "utterances")),
            LevelRule(
                "utterances",
                "one voice in utterances of 2 to 4 s",
                ("voice_libri261", "voice_audiomnist"),
            ),
            LevelRule(
                "sessions",
                "one voice in one recording session",
                between=("utterances", "fine end"),
            ),
        ),
        "speech",
        centred_by=("voice_libri261", "voice_stream261"),
    ),
    Encoder(
        "xvector",
        "x-vectors of meetings, 256-d (VBx)",
        "x-vectors (VBx)",
        256,
        ("voice_ami_meeting",),
        (0.02, 0.72),
        (
            LevelRule("loose", "one voice, also when it changes", between=("coarse end", "voices")),
            LevelRule("voices", "one voice"),
            LevelRule("strict", "one voice in similar speech", between=("voices", "fine end")),
        ),
        "voices",
    ),
    Encoder(
        "facenet",
        "FaceNet, 128-d",
        "FaceNet",
        128,
        ("face_lfw_facenet",),
        (0.3, 0.9),
        FACES,
        "persons",
    ),
    Encoder(
        "arcface",
        "ArcFace MobileFaceNet, 512-d",
        "ArcFace MobileFaceNet",
        512,
        ("face_lfw_arcface",),
        (0.2, 0.8),
        FACES,
        "persons",
    ),
    Encoder(
        "minilm",
        "all-MiniLM-L6-v2, 384-d",
        "all-MiniLM-L6-v2",
        384,
        (
            "text_banking77",
            "text_clinc150",
            "text_hwu64",
            "text_pricerunner",
            "text_googlenews",
        ),
        (0.1, 0.95),
        (
            LevelRule("topics", "a broad topic", at=0.1),
            LevelRule(
                "stories",
                "a news story or an event",
                ("text_googlenews",),
                between=("topics", "intents"),
            ),
            LevelRule(
                "intents",
                "what a person wants",
                ("text_banking77", "text_clinc150", "text_hwu64"),
            ),
            LevelRule("duplicates", "the same said in other words", between=("intents", "items")),
            LevelRule(
                "items",
                "one product or message, nearly word for word",
                ("text_pricerunner",),
                at=1.0,
            ),
        ),
        "intents",
        aliases={"minilm-items": "items"},
    ),
)


def streams(encoder: Encoder, left_out: str | None) -> dict[str, Stream]:
    """Return the streams that a fit may use, by set."""
    if len(encoder.sets) == 1:
        return {encoder.sets[0]: Stream(encoder.sets[0], "tuning")}
    centre = encoder.centre(left_out)
    return {name: Stream(name, "first", centre) for name in encoder.sets if name != left_out}


def scored(encoder: Encoder, name: str) -> Stream:
    """Return the stream that a set is scored on; a fit for it never sees the labels."""
    if len(encoder.sets) == 1:
        return Stream(name, "scored")
    return Stream(name, "first", encoder.centre(name))


def fit(encoder: Encoder, runs: Runs, left_out: str | None = None) -> Fit:
    """Fit pull and levels on the sets of an encoder, without the one that is left out."""
    shared = [encoder] if len(encoder.sets) == 1 else [e for e in ENCODERS if len(e.sets) > 1]
    pull = max(PULLS, key=lambda each: best_place(each, shared, runs, left_out))
    return Fit(pull, places(encoder, along(encoder, pull, runs, left_out)))


def best_place(pull: float, encoders: Sequence[Encoder], runs: Runs, left_out: str | None) -> float:
    """Return how well one place on a line with this pull serves all sets, mean over the encoders.

    Encoders with several sets share one pull, since the sets of one encoder are few.
    """
    tables = [along(encoder, pull, runs, left_out) for encoder in encoders]
    return float(np.mean([np.mean(list(table.values()), axis=0).max() for table in tables]))


def along(
    encoder: Encoder, pull: float, runs: Runs, left_out: str | None
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the scores along a line, by set of the encoder."""
    line = encoder.line(pull)
    seen = streams(encoder, left_out)
    return {name: scores(runs.along(stream, line)) for name, stream in seen.items()}


def places(encoder: Encoder, table: dict[str, np.ndarray[Any, Any]]) -> dict[str, float]:
    """Return the place of each level: fitted ones, then fixed ones, then those between two."""
    found = {"coarse end": 0.0, "fine end": 1.0}
    for rule in encoder.levels:
        if rule.at is not None:
            found[rule.name] = rule.at
        elif rule.between is None:
            own = [table[name] for name in rule.sets if name in table] or list(table.values())
            smoothed = grid.smooth(np.mean(own, axis=0), (len(PLACES),))
            found[rule.name] = PLACES[int(np.argmax(smoothed))]
    for rule in encoder.levels:
        if rule.at is None and rule.between is not None:
            low, high = (found[name] for name in rule.between)
            found[rule.name] = PLACES[int((low + high) / 2 * (len(PLACES) - 1) + 1e-6)]
    return {rule.name: found[rule.name] for rule in encoder.levels}


def scores(figures: Sequence[Figures]) -> np.ndarray[Any, Any]:
    """Return current accuracy less the weighted share of vectors that moved, of several runs."""
    return np.array([each["current"] - STILL_WEIGHT * (1.0 - each["still"]) for each in figures])


def automatic(figures: Sequence[Figures]) -> int | None:
    """Return the place that `calibrate` chooses without labels; None if it cannot decide."""
    score = grid.smooth(np.array([each["separation"] for each in figures]), (len(PLACES),))
    return None if granularity.doubts(score) else int(np.argmax(score))


def left_out_figures(encoder: Encoder, runs: Runs, name: str) -> dict[str, Any]:
    """Return the figures of a set with a line, levels and default made without it."""
    made = fit(encoder, runs, name if len(encoder.sets) > 1 else None)
    seen = runs.along(scored(encoder, name), encoder.line(made.pull))
    by_level = {level: _triple(seen[PLACES.index(at)]) for level, at in made.levels.items()}
    chosen = automatic(seen)
    named = encoder.named(name) if len(encoder.sets) > 1 else encoder.default
    return {
        "made from": "other sets" if len(encoder.sets) > 1 else "other identities",
        "levels": by_level,
        "default": by_level[encoder.default],
        "named": by_level[named],
        "automatic": by_level[encoder.default] if chosen is None else _triple(seen[chosen]),
        "pull": made.pull,
    }


def _triple(figures: Figures) -> list[float]:
    return [figures["instant"], figures["current"], figures["still"]]


def make(encoder: Encoder, runs: Runs) -> dict[str, Any]:
    """Return a preset made from all sets of its encoder, with the figures of sets left out."""
    made, space = fit(encoder, runs), runs.space(encoder.centre())
    words = {rule.name: rule.words for rule in encoder.levels}
    return {
        "name": encoder.name,
        "encoder": encoder.words,
        "model": encoder.model,
        "dimension": encoder.dimension,
        "line": asdict(encoder.line(made.pull)),
        "levels": {
            name: {"granularity": at, "words": words[name]} for name, at in made.levels.items()
        },
        "default": encoder.default,
        "aliases": encoder.aliases,
        "mean": None if space.mean is None else space.mean.tolist(),
        **OPTIONS,
        "made_from": list(encoder.sets),
        "figures": {name: left_out_figures(encoder, runs, name) for name in encoder.sets},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Make all presets, and write their tables."""
    from benchmarks.preset_tables import write

    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.presets")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    runs = Runs(parser.parse_args(arguments).folder)
    made = {encoder.name: make(encoder, runs) for encoder in ENCODERS}
    shipped = {each["name"]: each for each in json.loads(OUT.read_text("utf-8"))}
    wanted = [made.get(name, each) for name, each in (shipped | made).items()]
    OUT.write_text(json.dumps(wanted, indent=1) + "\n", "utf-8")
    write(wanted, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
