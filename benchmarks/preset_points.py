"""Presets as single points, to compare the lines with: `python -m benchmarks.preset_points FOLDER`.

Before presets were lines, each was one point: thresholds tuned on the tuning halves of the sets of
one encoder and task, as one stream. Here each point is made with one set left out. If no set of the
task is left, the point of the other task of the encoder is taken; if the encoder has one set, its
other identities are left out. The thresholds are kept in preset_points.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.preset_runs import OPTIONS, Runs, Stream
from benchmarks.protocol import CAP, Half
from linkstream import Space, Thresholds
from linkstream.tuning import tune

KEPT = Path(__file__).parent / "preset_points.json"
TRIALS, ORDERS = 64, 3


@dataclass(frozen=True, slots=True)
class Point:
    """A preset of one point: the sets it is tuned on, and the sets it is used for."""

    sets: tuple[str, ...]
    used_for: tuple[str, ...] = ()
    centred_by: str = ""
    evidence: str = "cluster"

    @property
    def options(self) -> dict[str, Any]:
        """The options of `Links`."""
        return OPTIONS | {"evidence": self.evidence}


MEAN = "voice_libri261 tuning"
POINTS = {
    "ge2e": Point(
        ("voice_audiomnist", "voice_libri261"), ("voice_ravdess", "voice_stream261"), MEAN
    ),
    "ge2e-windows": Point(("voice_stream261",), ("voice_stream10",), MEAN, "nearest"),
    "xvector": Point(("voice_ami_meeting",)),
    "facenet": Point(("face_lfw_facenet",)),
    "arcface": Point(("face_lfw_arcface",)),
    "minilm": Point(
        ("text_banking77", "text_clinc150", "text_hwu64"), ("text_googlenews", "text_pricerunner")
    ),
}


def point_of(name: str) -> tuple[str, Point]:
    """Return the point that a set is judged with when the set is left out."""
    for preset, point in POINTS.items():
        left = len(point.sets) > 1 or not point.used_for
        if name in point.used_for or (name in point.sets and left):
            return preset, point
    raise KeyError(name)


def together(halves: Sequence[Half]) -> Half:
    """Interleave several streams in proportion to their lengths, with separate identities."""
    position = np.concatenate([np.arange(len(half.y)) / len(half.y) for half in halves])
    order = np.argsort(position, kind="stable")
    names = [np.unique(half.y, return_inverse=True)[1] for half in halves]
    starts = np.cumsum([0, *(int(who.max()) + 1 for who in names)])
    who = np.concatenate([name + start for name, start in zip(names, starts, strict=False)])
    return Half(np.concatenate([half.X for half in halves])[order], who[order])


def found(halves: Sequence[Half], space: Space, options: Mapping[str, Any]) -> Thresholds:
    """Tune thresholds on several streams."""
    half = together([half.first(CAP // len(halves)) for half in halves])
    return tune(half.X, half.y, trials=TRIALS, orders=ORDERS, space=space, **options).thresholds


def thresholds_without(name: str, runs: Runs, kept: dict[str, list[float]]) -> Thresholds:
    """Return the point for a set that is left out, from the file or tuned now."""
    preset, point = point_of(name)
    others = [each for each in point.sets if each != name] or [name]
    key = f"{preset} from {', '.join(others)}"
    if key not in kept:
        halves = [runs.half(Stream(other, "tuning")) for other in others]
        chosen = found(halves, runs.space(point.centred_by), point.options)
        kept[key] = list(asdict(chosen).values())
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    return Thresholds(*kept[key])


def point_figures(name: str, part: str, runs: Runs) -> list[float]:
    """Return instant and current accuracy of the point for a set that is left out."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    point = point_of(name)[1]
    stream = Stream(name, part, point.centred_by)
    figures = runs.at_all(stream, [thresholds_without(name, runs, kept)], point.options)[0]
    return [figures["instant"], figures["current"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune the points that are not in the file."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.preset_points")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    runs = Runs(parser.parse_args(arguments).folder)
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    for point in POINTS.values():
        for name in (*point.sets, *point.used_for):
            print(name, point_of(name)[0], thresholds_without(name, runs, kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
