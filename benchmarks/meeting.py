"""Measure one meeting by the protocol of VBx: `python -m benchmarks.meeting FOLDER [--docs]`.

FOLDER contains voice_ami_meeting.npz, the x-vectors of ES2005a from VBx, and the sets of
`conversations.py`. The rate is pyannote.metrics' `DiarizationErrorRate(collar=0.5,
skip_overlap=True)`, as for VBx's 7.06 %. The reference there is an RTTM of the meeting; here it is
the one label that each window has in the file, so that speech is given and there is no overlap.

Nothing is tuned on labels of the meeting. The thresholds of a row come from

- *carried over*: those of the preset `ge2e-turns`, moved by the line that takes the similarities of
  near and of far windows of the conversations for tuning to those of the meeting: the median of
  windows up to a second after one another, without overlap, and of windows half a minute apart;
- *calibrated*: `calibrate`, with near windows as pairs of one person and far ones as pairs of two,
  which they often are not;
- *as they are*: the preset `ge2e-turns` unchanged, without its space.

The preset `xvector` was found on this meeting: a bound. Spectral clustering searches its parameter
by itself. The labels serve the rates alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import quality_tables
from benchmarks.conversation_bed import conversations, load_voices
from benchmarks.conversations import TUNING, TUNING_SEED
from benchmarks.diarization import PAGE, Recording, Spectral
from benchmarks.machine import installed, processor
from linkstream import Links, Space, Thresholds
from linkstream.adapters.diarization import Diarizer, Turn, to_annotation
from linkstream.tuning import calibrate

MEETING = "voice_ami_meeting"
PRESET = "ge2e-turns"
NEAR, FAR = 1.0, 30.0  # seconds after the end of a window, and between two starts
PAIRS = 300  # of each kind, for `calibrate`
DELAY = 2.0
MOMENTS = ("instant", "final", "current")
TIMES = ("instant", f"delay {DELAY:g} s", "current")

Floats = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.int64]


def pairs(spans: Floats, *, near: bool) -> Pairs:
    """Return all pairs of windows that are near each other without overlap, or all far ones."""
    rows, columns = np.triu_indices(len(spans), 1)
    if near:
        pause = spans[columns, 0] - spans[rows, 1]
        kept = (pause >= 0) & (pause <= NEAR)
    else:
        kept = spans[columns, 0] - spans[rows, 0] >= FAR
    return np.column_stack([rows[kept], columns[kept]])


def medians(X: Floats, spans: Floats) -> Floats:
    """Return the median similarity of near windows, and of far ones."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    found = [pairs(spans, near=near) for near in (True, False)]
    return np.array([np.median((X[a] * X[b]).sum(axis=1)) for a, b in (each.T for each in found)])


def carried_over(folder: Path, recording: Recording) -> Thresholds:
    """Return the thresholds of the preset, moved to the similarities of a recording."""
    links = Links.preset(PRESET)
    voices = load_voices(folder).halves()[0]
    talks = conversations(voices, TUNING, seed=TUNING_SEED)
    told = [medians(links.space.centre(talk.X), talk.spans) for talk in talks]
    there = np.mean(told, axis=0)
    here = medians(recording.X.astype(np.float64), recording.spans)
    slope = (here[0] - here[1]) / (there[0] - there[1])
    move = lambda value: float(here[1] + slope * (value - there[1]))  # noqa: E731
    old = links.thresholds
    cluster = move(old.cluster_similarity)
    pair = max(move(old.pair_similarity_max), cluster**2)
    return Thresholds(cluster, min(move(old.subcluster_similarity), 0.999), min(pair, 1.0))


def calibrated(recording: Recording) -> Thresholds:
    """Return what `calibrate` finds with near and far windows."""
    rng = np.random.default_rng(0)
    chosen = []
    for near in (True, False):
        found = pairs(recording.spans, near=near)
        chosen.append(found[np.sort(rng.choice(len(found), PAIRS, replace=False))])
    return calibrate(recording.X, same=chosen[0], different=chosen[1]).thresholds


def rate(recording: Recording, turns: list[Turn]) -> float:
    """Return the error rate of turns by the protocol of VBx, in percent."""
    from pyannote.metrics.diarization import DiarizationErrorRate

    truth = to_annotation(recording.turns(recording.y))
    speech = truth.get_timeline().support()
    judge = DiarizationErrorRate(collar=0.5, skip_overlap=True)
    return 100 * float(judge(truth, to_annotation(turns), uem=speech))


def rates(recording: Recording, links: Links) -> list[float]:
    """Return the rates at once, with a delay, and at the end."""
    diarizer = Diarizer(links, delay=DELAY)
    for span, x in zip(recording.spans.tolist(), recording.X, strict=True):
        diarizer.add(*span, x)
    diarizer.finish()
    return [rate(recording, diarizer.turns(moment)) for moment in MOMENTS]


def rows(folder: Path) -> Iterator[list[str]]:
    """Yield a row for each method."""
    recording = Recording.load(folder / f"{MEETING}.npz")
    mean = recording.X.mean(axis=0, dtype=np.float64)
    centred = Recording(
        Space(mean).centre(recording.X).astype(np.float32), recording.y, recording.spans
    )
    preset = Links.preset(PRESET).thresholds
    yield ["thresholds", "T_c", "T_s", "T_p", *TIMES]
    for name, heard, thresholds in (
        ("carried over", recording, carried_over(folder, recording)),
        ("carried over, less the mean of the meeting", centred, carried_over(folder, centred)),
        ("calibrated", recording, calibrated(recording)),
        ("as they are", recording, preset),
        ("as they are, less the mean of the meeting", centred, preset),
    ):
        links = Links.from_thresholds(thresholds, mode="best")
        yield row(name, thresholds, rates(heard, links))
    links = Links.preset("xvector")
    yield row("preset `xvector`, found on this meeting", links.thresholds, rates(recording, links))
    spectral = Spectral("", "", "turntodiarize", tuned=False)
    labels = spectral.run(recording.X, spectral.tune(recording.X, recording.y))["settled"]
    told = rate(recording, recording.turns(labels))
    yield ["spectral clustering by itself, offline", *"———", "—", "—", f"{told:.1f}"]


def row(name: str, thresholds: Thresholds, found: list[float]) -> list[str]:
    """Return a row of the table."""
    three = (
        thresholds.cluster_similarity,
        thresholds.subcluster_similarity,
        thresholds.pair_similarity_max,
    )
    return [name, *(f"{each:.3f}" for each in three), *(f"{each:.1f}" for each in found)]


def main(arguments: list[str] | None = None) -> int:
    """Print the table, and write the page if `--docs` is given."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.meeting",
        description="One meeting by VBx's protocol. Example: python -m benchmarks.meeting data",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with the meeting")
    parser.add_argument("--docs", action="store_true", help="write the table into the page")
    options = parser.parse_args(arguments)
    table = quality_tables.in_markdown(list(rows(options.folder)))
    print(table)
    names = ("linkstream", "numpy", "pyannote.metrics", "spectralcluster")
    versions = ", ".join(f"{name} {installed(name)}" for name in names)
    made = f"Made by `python -m benchmarks.meeting FOLDER --docs`; {processor()}; {versions}."
    if options.docs:
        quality_tables.put("meeting", f"{table}\n\n{made}", page=PAGE)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
