"""Make the presets: `python -m benchmarks.presets FOLDER`, after `python -m benchmarks.quality`.

The thresholds of an encoder are tuned on the tuning halves of its sets as one stream, with separate
identities. Their quality is measured on other data: if an encoder has several sets, each is scored
with thresholds tuned on the others; if it has one set, its other half is scored. For comparison,
the table shows the score of thresholds tuned on the same set: the row "links, healed" of
benchmarks/quality.json. The thresholds of encoders with one set are taken from that file, too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.methods import HEALED, HealedLinks
from benchmarks.protocol import CAP, Half, load
from benchmarks.quality import RESULTS
from benchmarks.quality_tables import put
from linkstream import Links, Space, Thresholds
from linkstream.metrics import accuracy
from linkstream.space import survey
from linkstream.tuning import tune

OUT = Path(__file__).parents[1] / "src/linkstream/data/presets.json"
TRIALS, ORDERS = 64, 3

Halves = Mapping[str, tuple[Half, Half]]


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder, the sets that its preset is tuned on, and sets that only judge it.

    The space is centred on the mean of the identities of `centred_by`, if there are any.
    """

    name: str
    words: str
    model: str
    dimension: int
    sets: tuple[str, ...]
    judges: tuple[str, ...] = ()
    centred_by: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: HEALED)


ENCODERS = (
    Encoder(
        "ge2e",
        "GE2E voices, 256-d (Resemblyzer): utterances of 2 to 4 s",
        "GE2E (Resemblyzer)",
        256,
        ("voice_audiomnist", "voice_libri261"),
        centred_by="voice_libri261",
    ),
    Encoder(
        "ge2e-windows",
        "GE2E voices, 256-d (Resemblyzer): windows of about 1.6 s over running speech",
        "GE2E (Resemblyzer)",
        256,
        ("voice_stream261",),
        judges=("voice_stream10",),
        centred_by="voice_libri261",
        options={"evidence": "nearest", "heal": "settle"},
    ),
    Encoder(
        "xvector",
        "x-vectors of meetings, 256-d (VBx)",
        "x-vectors (VBx)",
        256,
        ("voice_ami_meeting",),
    ),
    Encoder("facenet", "FaceNet, 128-d", "FaceNet", 128, ("face_lfw_facenet",)),
    Encoder(
        "arcface",
        "ArcFace MobileFaceNet, 512-d",
        "ArcFace MobileFaceNet",
        512,
        ("face_lfw_arcface",),
    ),
    Encoder(
        "minilm",
        "all-MiniLM-L6-v2, 384-d: what a sentence is about (intents, topics)",
        "all-MiniLM-L6-v2",
        384,
        ("text_banking77", "text_clinc150", "text_hwu64"),
    ),
    Encoder(
        "minilm-items",
        "all-MiniLM-L6-v2, 384-d: which very thing a text names (offers, duplicates)",
        "all-MiniLM-L6-v2",
        384,
        ("text_pricerunner",),
    ),
)


def space_of(encoder: Encoder, halves: Halves) -> Space:
    """Return the space of an encoder: centred on the mean of many identities, or without a mean."""
    if not encoder.centred_by:
        return Space()
    half = halves[encoder.centred_by][0]
    mean = survey(half.X, y=half.y).mean
    return Space(mean=[round(float(value), 6) for value in mean])


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


def figures(
    half: Half, thresholds: Thresholds, space: Space, options: Mapping[str, Any]
) -> list[float]:
    """Return instant and current accuracy."""
    links = Links.from_thresholds(thresholds, space=space, threads=1, **options)
    instant = links.add_many(half.X)
    return [round(accuracy(half.y, ids), 4) for ids in (instant, links.labels())]


def make(encoder: Encoder, halves: Halves, tuned: Mapping[str, Any]) -> dict[str, Any]:
    """Return a preset with its scores."""
    space, options = space_of(encoder, halves), encoder.options
    if len(encoder.sets) == 1 and space.mean is None and options == HEALED:
        thresholds = Thresholds(**tuned[encoder.sets[0]]["parameters"])
    else:
        thresholds = found([halves[name][0] for name in encoder.sets], space, options)
    scores = {}
    for name in (*encoder.sets, *encoder.judges):
        others = [other for other in encoder.sets if other != name]
        chosen = thresholds
        if others and name in encoder.sets:
            chosen = found([halves[other][0] for other in others], space, options)
        given = tuned[name]["orders"][0]
        scores[name] = {
            "made from": "other sets" if others else "other identities",
            "as shipped": figures(halves[name][1], chosen, space, options),
            "tuned": [round(given["instant"], 4), round(given["current"], 4)],
        }
    return {
        "name": encoder.name,
        "encoder": encoder.words,
        "model": encoder.model,
        "dimension": encoder.dimension,
        "thresholds": {
            "cluster_similarity": thresholds.cluster_similarity,
            "subcluster_similarity": thresholds.subcluster_similarity,
            "pair_similarity_max": thresholds.pair_similarity_max,
        },
        "mean": None if space.mean is None else space.mean.tolist(),
        **options,
        "made_from": list(encoder.sets),
        "figures": scores,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Make all presets, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.presets")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    parser.add_argument("--only", nargs="*", help="names of presets")
    given = parser.parse_args(arguments)
    chosen = [e for e in ENCODERS if not given.only or e.name in given.only]
    kept = {p["name"]: p for p in json.loads(OUT.read_text("utf-8"))} if OUT.exists() else {}
    tuned = json.loads(RESULTS.read_text("utf-8"))["methods"][HealedLinks().name]["sets"]
    for encoder in track(chosen, "presets", disable=not sys.stderr.isatty()):
        names = {*encoder.sets, *encoder.judges, *filter(None, [encoder.centred_by])}
        halves = {name: load(given.folder / f"{name}.npz") for name in names}
        kept[encoder.name] = make(encoder, halves, tuned)
        print(json.dumps(kept[encoder.name]["thresholds"] | kept[encoder.name]["figures"]))
        ordered = [kept[e.name] for e in ENCODERS if e.name in kept]
        OUT.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")
    put("presets", table(ordered), section="## Presets")
    return 0


def table(presets: Sequence[Mapping[str, Any]]) -> str:
    """Return the presets and their scores as a Markdown table."""
    lines = [
        "| preset | vectors | T_c | T_s | T_p | scored on | made from | as shipped | tuned |",
        "| --- | --- | --: | --: | --: | --- | --- | --: | --: |",
    ]
    means = []
    for each in presets:
        thresholds = " | ".join(f"{value:.4f}" for value in each["thresholds"].values())
        head = f"`{each['name']}` | {each['encoder']} | {thresholds}"
        for name, scores in each["figures"].items():
            pair = [scores["as shipped"], scores["tuned"]]
            cells = " | ".join("{:.3f} / {:.3f}".format(*figures) for figures in pair)
            lines.append(f"| {head} | {name} | {scores['made from']} | {cells} |")
            head = " | | | | "
            means.append(pair)
    cells = " | ".join("{:.3f} / {:.3f}".format(*pair) for pair in np.mean(means, axis=0))
    lines.append(f"| **mean** | | | | | | | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
