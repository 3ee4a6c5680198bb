"""Measure diarization error rates: `python -m benchmarks.diarization FOLDER [--docs]`.

FOLDER contains voice_ami_meeting.npz (X, y, and t: the start of each window) and optionally
voice_stream10.npz. The true speakers come from y; a window stands for the time around its middle
(`turns_of`). Speech is given, so there is no missed speech and no false alarm: the rate, by
pyannote.metrics without a collar, is the share of the time with the wrong speaker.

A method is tuned on the windows of half of the speakers and judged on those of the others, and then
on the whole recording, half of which it was tuned on. A meeting of four has six such halves, and
all are tried; a recording with more speakers is halved once with a seed, and both halves are used
for tuning. Two more columns: tuned on the first half of the time and judged on the second, with the
same speakers in both; and tuned on the whole recording, which is an upper bound.

Tuning maximises the accuracy of windows, as in `protocol.py`. The command takes ten minutes on one
core. It needs pyannote.metrics and spectralcluster.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import quality_tables
from benchmarks.machine import installed, processor
from benchmarks.methods import HealedLinks, OneCentroid, PaperLinks
from benchmarks.protocol import (
    MOMENTS,
    SEED,
    Answer,
    Labels,
    Method,
    Parameters,
    Vectors,
    along_a_line,
)
from linkstream.adapters.diarization import Turn, to_annotation, turns_of
from linkstream.metrics import accuracy

PAGE = Path(__file__).resolve().parent.parent / "docs" / "diarization.md"
SECONDS = {"voice_ami_meeting": 1.44, "voice_stream10": 1.6}  # length of a window
SPEAKERS_MAX = 20  # for spectral clustering, which wants to be told
HEARD = 5.0  # seconds that make a label a speaker worth counting
WAYS = 6  # as many halves are all tried

Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Recording:
    """Windows in order of time: vectors, speakers, and time spans."""

    X: Vectors
    y: Labels
    spans: npt.NDArray[np.float64]

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Load a recording from a file with X, y and t."""
        with np.load(path) as arrays:
            X, t = arrays["X"].astype(np.float32), arrays["t"].astype(np.float64)
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            return cls(X, arrays["y"], np.column_stack([t, t + SECONDS[path.stem]]))

    def only(self, speakers: npt.ArrayLike) -> Recording:
        """Return the windows of these speakers."""
        kept = np.isin(self.y, speakers)
        return Recording(self.X[kept], self.y[kept], self.spans[kept])

    def halves(self) -> tuple[Recording, Recording]:
        """Return the first and the second half of the windows."""
        half = len(self.y) // 2
        return (
            Recording(self.X[:half], self.y[:half], self.spans[:half]),
            Recording(self.X[half:], self.y[half:], self.spans[half:]),
        )

    def turns(self, ids: Labels) -> list[Turn]:
        """Return the turns of these labels."""
        return turns_of(self.spans, np.unique(ids, return_inverse=True)[1])

    def error_rate(self, ids: Labels) -> float:
        """Return the diarization error rate of labels."""
        from pyannote.metrics.diarization import DiarizationErrorRate

        truth, told = to_annotation(self.turns(self.y)), to_annotation(self.turns(ids))
        speech = truth.get_timeline().support()
        return float(DiarizationErrorRate()(truth, told, uem=speech))

    def n_speakers(self, ids: Labels) -> int:
        """Return the number of labels with at least a few seconds."""
        heard: dict[str, float] = {}
        for turn in self.turns(ids):
            heard[turn.speaker] = heard.get(turn.speaker, 0.0) + turn.duration
        return sum(seconds >= HEARD for seconds in heard.values())


# Methods


@dataclass(frozen=True, slots=True)
class Spectral:
    """Offline spectral clustering, by the package spectralcluster."""

    name: str
    note: str
    recipe: str  # "icassp2018" or "turntodiarize", its two published set-ups
    tuned: bool = True
    told: bool = False  # whether it is told how many speakers there are
    ordered: bool = False
    cap: int = 10_000

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the percentile with the most accurate labels; none if it is not tuned."""
        n = float(len(np.unique(y))) if self.told else 0.0
        if not self.tuned:
            return {"speakers": n}

        def score(percentile: float) -> float:
            answer = self.run(X, {"speakers": n, "percentile": percentile})
            return accuracy(y, answer["settled"])

        best = along_a_line(score, np.linspace(0.4, 0.98, 13).tolist(), rounds=1)
        return {"speakers": n, "percentile": best}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return labels after all windows."""
        from spectralcluster import configs

        peer = deepcopy(getattr(configs, f"{self.recipe}_clusterer"))
        peer.constraint_options = None  # of turns found in the sound, which there are none of here
        peer.max_clusters = SPEAKERS_MAX
        if "percentile" in parameters:
            peer.autotune = None
            peer.refinement_options.p_percentile = parameters["percentile"]
        if parameters["speakers"]:
            peer.min_clusters = peer.max_clusters = int(parameters["speakers"])
        np.random.seed(SEED)  # noqa: NPY002  (its k-means draws from there)
        return {"settled": peer.predict(X)}


METHODS: tuple[Method, ...] = (
    OneCentroid(),
    PaperLinks(),
    HealedLinks(),
    Spectral(
        "spectral, by itself",
        "spectralcluster's `turntodiarize` set-up, which needs no labels: it searches its "
        "percentile by itself",
        "turntodiarize",
        tuned=False,
    ),
    Spectral("spectral, tuned", "the same, its percentile tuned", "turntodiarize"),
    Spectral(
        "spectral with blur, tuned",
        "spectralcluster's `icassp2018` set-up, its percentile tuned",
        "icassp2018",
    ),
    Spectral(
        "spectral, told",
        "as *spectral, tuned*, and told how many speakers there are, which no other method is",
        "turntodiarize",
        told=True,
    ),
)


# Judging


def halves(speakers: Labels) -> list[Labels]:
    """Return the halves of the speakers to tune on: all, or a seeded one and its opposite."""
    every = [np.array(some) for some in combinations(speakers, len(speakers) // 2)]
    if len(every) <= WAYS:
        return every
    drawn = np.random.default_rng(SEED).permutation(speakers)
    middle = len(drawn) // 2
    return [drawn[:middle], drawn[middle:]]


def judge(method: Method, recording: Recording) -> dict[str, dict[str, list[float]]]:
    """Return error rates by moment: of unseen speakers, of all, and tuned on all."""
    figures: dict[str, dict[str, list[float]]] = {}

    def keep(what: str, heard: Recording, answer: Answer) -> None:
        for moment in (moment for moment in MOMENTS if moment in answer):
            columns = figures.setdefault(moment, {})
            columns.setdefault(what, []).append(heard.error_rate(answer[moment]))
            if what == "whole":
                count = heard.n_speakers(answer[moment])
                columns.setdefault("speakers", []).append(count)

    speakers = np.unique(recording.y)
    for half in halves(speakers):
        tuning, unseen = recording.only(half), recording.only(np.setdiff1d(speakers, half))
        found = method.tune(tuning.X, tuning.y)
        keep("unseen", unseen, method.run(unseen.X, with_number(found, unseen)))
        keep("whole", recording, method.run(recording.X, with_number(found, recording)))
    earlier, later = recording.halves()
    found = method.tune(earlier.X, earlier.y)
    keep("later", later, method.run(later.X, with_number(found, later)))
    found = method.tune(recording.X, recording.y)
    keep("itself", recording, method.run(recording.X, found))
    return figures


def with_number(parameters: Mapping[str, float], recording: Recording) -> Parameters:
    """Return the parameters with this recording's number of speakers, if they include one."""
    told = dict(parameters)
    if told.get("speakers"):
        told["speakers"] = float(len(np.unique(recording.y)))
    return told


def rows(method: Method, figures: dict[str, dict[str, list[float]]]) -> Iterator[list[str]]:
    """Yield a row for each moment; one for both if labels never change."""
    if figures.get("instant") == figures.get("current", {}):
        figures = {"instant = current": figures["instant"]}
    for moment, columns in figures.items():
        found = sorted({min(columns["speakers"]), max(columns["speakers"])})
        yield [
            method.name,
            moment,
            spread(columns["unseen"]),
            spread(columns["whole"]),
            "–".join(f"{n:.0f}" for n in found),
            percent(columns["later"][0]),
            percent(columns["itself"][0]),
        ]


def spread(values: list[float]) -> str:
    """Return mean, minimum and maximum as text."""
    return f"{percent(float(np.mean(values)))} ({percent(min(values))}–{percent(max(values))})"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * value:.1f}"


def table(name: str, recording: Recording) -> Grid:
    """Run all methods on one recording, and print each row."""
    head = [
        "method",
        "moment",
        "unseen speakers",
        "whole",
        "speakers found",
        "later half",
        "tuned on itself",
    ]
    lines = [head]
    for method in METHODS:
        new = list(rows(method, judge(method, recording)))
        for line in new:
            print(f"{name}: {'  '.join(line)}", flush=True)
        lines += new
    return lines


# Telling


def body(tables: dict[str, Grid], recordings: dict[str, Recording]) -> str:
    """Return the text between the markers of the page."""
    parts = []
    for name, grid in tables.items():
        heard = recordings[name]
        seconds = sum(turn.duration for turn in heard.turns(heard.y))
        parts.append(
            f"**{name}**: {len(np.unique(heard.y))} speakers, {seconds:.0f} s of speech, "
            f"{len(heard.y):,} windows of {SECONDS[name]} s; "
            f"{len(halves(np.unique(heard.y)))} halves of the speakers tuned on in turn.\n\n"
            + quality_tables.in_markdown(grid)
        )
    notes = "\n".join(f"- **{method.name}**: {method.note}." for method in METHODS)
    names = ("numpy", "pyannote.metrics", "pyannote.core", "spectralcluster", "scikit-learn")
    versions = ", ".join(f"{name} {installed(name)}" for name in ("linkstream", *names))
    made = f"Made by `python -m benchmarks.diarization FOLDER --docs`; {processor()}; {versions}."
    return "\n\n".join([*parts, notes, made])


def main(arguments: list[str] | None = None) -> int:
    """Run all methods, print the rates, and write the page if `--docs` is given."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.diarization",
        description="Diarization error rates. Example: python -m benchmarks.diarization data",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with voice_ami_meeting.npz")
    parser.add_argument("--docs", action="store_true", help="write the table into the page")
    options = parser.parse_args(arguments)
    paths = [options.folder / f"{name}.npz" for name in SECONDS]
    if not paths[0].exists():
        parser.error(f"no {paths[0].name} in {options.folder}")
    recordings = {path.stem: Recording.load(path) for path in paths if path.exists()}
    tables = {name: table(name, recording) for name, recording in recordings.items()}
    if options.docs:
        quality_tables.put("der", body(tables, recordings), page=PAGE)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
