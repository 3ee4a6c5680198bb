"""Measure the value of answers to the review queue: `python -m benchmarks.review FOLDER`.

The protocol is that of `protocol.py`, with healed Links and both halves of each set: each half is
clustered with thresholds tuned on the other, then reviewed. One row is a complete set with the
shipped preset, which was tuned on half of its identities. If the tuning half has 20 identities or
more, a model of confidence that was fitted to it orders the queue, which is compared with the order
without one. The labels give the answers: whether two subclusters are the same is decided by the
most central vector of each. The queue is compared with random questions, half of them about two
clusters, half about an edge. The command prints a table and draws docs/img/review.png.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.progress import track

from benchmarks.methods import HEALED, HealedLinks
from benchmarks.performance_page import INK, OURS, QUIET, THEIRS
from benchmarks.protocol import Half, Vectors, load, orders
from benchmarks.quality import RESULTS
from linkstream import Links, Thresholds
from linkstream.confidence import Model
from linkstream.engine.forest import PINNED
from linkstream.errors import ContradictionError
from linkstream.identity.review import NO_ODDS
from linkstream.metrics import accuracy
from linkstream.tuning.candidates import Candidate
from linkstream.tuning.confidence import fit_confidence

SETS = ("voice_libri261", "face_lfw_facenet", "voice_stream10", "voice_stream261")
WHOLE = {"voice_libri261": "ge2e"}
QUESTIONS, SEEDS, GOAL = 150, 5, 0.99
FIRST = 1_500  # vectors of a half that a model is fitted to
IMAGE = Path(__file__).resolve().parent.parent / "docs" / "img" / "review.png"

Ask = Callable[[Links], tuple[int, int] | None]  # two subclusters to ask about


@dataclass(frozen=True, slots=True)
class Curves:
    """Accuracy after 0, 1, 2, … answers, by the queue and by random questions."""

    vectors: int
    identities: int
    queue: list[float]
    random: list[list[float]]
    plain: list[float] | None = None  # by the queue without a model, if there is one


def reached(scores: list[float], goal: float) -> str:
    """Return after how many answers this accuracy is reached."""
    places = [place for place, value in enumerate(scores) if value >= goal]
    return str(places[0]) if places else f"> {len(scores) - 1}"


def by_queue(links: Links) -> tuple[int, int] | None:
    """Return the first question of the queue."""
    first = links.review_queue(limit=1)
    return (first[0].a, first[0].b) if first else None


def at_random(rng: np.random.Generator) -> Ask:
    """Return a random question: two clusters or the ends of an edge, with equal chances."""

    def ask(links: Links) -> tuple[int, int] | None:
        state = links.state()
        edges = state.edges[state.edge_rules != PINNED]
        if len(edges) and rng.random() < 0.5:
            a, b = edges[rng.integers(len(edges))].tolist()
            return a, b
        clusters = np.unique(state.clusters)
        if len(clusters) < 2:
            return None
        pair = rng.choice(clusters, 2, replace=False)
        a, b = (int(rng.choice(state.numbers[state.clusters == cluster])) for cluster in pair)
        return a, b

    return ask


def curve(half: Half, links: Links, ask: Ask) -> list[float]:
    """Return the accuracy after each answer."""
    scores = [accuracy(half.y, links.labels())]
    for _ in range(QUESTIONS):
        pair = ask(links)
        if pair is not None:
            answer(half, links, *pair)
        scores.append(accuracy(half.y, links.labels()))
    return scores


def answer(half: Half, links: Links, a: int, b: int) -> None:
    """Answer by the labels of the most central vector of each subcluster."""
    one, other = (half.y[central(half.X, links, number)] for number in (a, b))
    # Answers about subclusters of several identities may contradict: the first one stands.
    with contextlib.suppress(ContradictionError):
        (links.same if one == other else links.different)(a, b, of="subclusters")


def central(X: Vectors, links: Links, number: int) -> int:
    """Return the vector of a subcluster that is nearest to its centroid."""
    state = links.state()
    vectors = np.flatnonzero(state.vectors == number)
    centroid = state.sums[np.searchsorted(state.numbers, number)].astype(np.float64)
    rows = links.space.centre(X[vectors])
    return int(vectors[np.argmax(rows / np.linalg.norm(rows, axis=1, keepdims=True) @ centroid)])


def healed(thresholds: Thresholds) -> Links:
    """Return a clusterer of the best configuration."""
    return Links.from_thresholds(thresholds, threads=1, **HEALED)


def model_of(half: Half, thresholds: Thresholds) -> Model:
    """Return the model of confidence that is fitted to a half."""
    first = half.first(FIRST)
    codes = np.unique(first.y, return_inverse=True)[1].astype(np.int64)
    candidate = Candidate(thresholds, options=HEALED)
    return fit_confidence(candidate, first.X, codes, orders(len(codes), 3))


def review(half: Half, links: Links, model: Model | None = None) -> Curves:
    """Return the curves of some vectors, with an empty clusterer and the model of another half."""
    links.add_many(half.X)
    start = links.to_bytes()

    def run(ask: Ask, model: Model | None = None) -> list[float]:
        begun = Links.from_bytes(start, threads=1)
        begun.confidence.use(model)
        return curve(half, begun, ask)

    asks = [at_random(np.random.default_rng(seed)) for seed in range(SEEDS)]
    identities = len(np.unique(half.y))
    plain, found = run(by_queue), None
    links.confidence.use(model)
    if links.confidence.odds_of_pairs() != NO_ODDS:
        found = run(by_queue, model)
    drawn = [run(ask) for ask in asks]
    return Curves(len(half.y), identities, found or plain, drawn, found and plain)


def whole(path: Path) -> Half:
    """Return all vectors of a set in order of arrival."""
    with np.load(path) as arrays:
        return Half(arrays["X"].astype(np.float32), arrays["y"])


def table(rows: dict[str, Curves]) -> str:
    """Return the scores of all sets as a Markdown table."""
    marks = (0, 20, 50, 100, 150)
    heads = " | ".join(f"{mark}" for mark in marks)
    lines = [
        f"| set | vectors, identities | questions to {GOAL:.2f} | without a model | {heads} "
        "| 150 without a model | 150 at random |",
        "| --- | --: | --: | --: |" + " --: |" * (len(marks) + 2),
    ]
    for name, curves in rows.items():
        cells = " | ".join(f"{curves.queue[mark]:.3f}" for mark in marks)
        drawn = np.mean([scores[-1] for scores in curves.random])
        lines.append(
            f"| {name.replace('_', ' ')} | {curves.vectors}, {curves.identities} | "
            f"{reached(curves.queue, GOAL)} | {reached(curves.plain or curves.queue, GOAL)} | "
            f"{cells} | {(curves.plain or curves.queue)[-1]:.3f} | {drawn:.3f} |"
        )
    return "\n".join(lines)


def draw(rows: dict[str, Curves]) -> None:
    """Draw a panel per set: the curve of the queue, and those of random questions."""
    figure = Figure(figsize=(8.6, 2.6 * ((len(rows) + 1) // 2) + 0.3))
    axes = figure.subplots((len(rows) + 1) // 2, 2, squeeze=False)
    for axis, (name, curves) in zip(axes.flat, rows.items(), strict=False):
        panel(axis, name, curves)
    for axis in axes[-1]:
        axis.set_xlabel("questions answered", color=INK, fontsize=9.5)
    for axis in axes[:, 0]:
        axis.set_ylabel("current accuracy", color=INK, fontsize=9.5)
    figure.tight_layout(h_pad=1.2, w_pad=1.6, rect=(0, 0, 1, 0.95))
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="upper center",
        ncols=3,
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
    )
    figure.savefig(IMAGE, dpi=130, metadata={"Software": None})


def panel(axis: Axes, name: str, curves: Curves) -> None:
    """Draw one set; random curves may leave the panel at the bottom."""
    for place, scores in enumerate(curves.random):
        label = None if place else "questions at random, five seeds"
        axis.plot(scores, color=THEIRS, lw=0.9, alpha=0.8, label=label)
    axis.plot(curves.queue, color=OURS, lw=2.2, label="review queue")
    axis.axhline(GOAL, color=QUIET, lw=0.8, ls=(0, (4, 3)), label=f"{GOAL:.2f}")
    title = f"{name.replace('_', ' ')}: {curves.vectors} vectors, {curves.identities} identities"
    axis.set_title(title, loc="left", fontsize=10, color=INK)
    axis.set_xlim(0, QUESTIONS)
    lowest = max(min(map(min, [curves.queue, *curves.random])), curves.queue[0] - 0.03)
    axis.set_ylim(lowest - (1 - lowest) * 0.08, 1.0 + (1 - lowest) * 0.05)
    axis.tick_params(labelsize=9, colors=INK)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(QUIET)


def main(arguments: Sequence[str] | None = None) -> int:
    """Review both halves of each set; print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.review")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    folder = parser.parse_args(arguments).folder
    tuned = json.loads(RESULTS.read_text("utf-8"))["methods"][HealedLinks().name]["sets"]
    rows, shown = {}, {}
    for name in track(SETS, "reviewing", disable=not sys.stderr.isatty()):
        tuning, scored = load(folder / f"{name}.npz")
        given = Thresholds(**tuned[name]["parameters"])
        shown[name] = rows[name] = review(scored, healed(given), model_of(tuning, given))
        swapped = Thresholds(**HealedLinks().tune(scored.X, scored.y))
        found = review(tuning, healed(swapped), model_of(scored, swapped))
        rows[f"{name}, halves swapped"] = found
    for name, preset in WHOLE.items():
        everyone = whole(folder / f"{name}.npz")
        rows[f"{name}, all, preset {preset}"] = review(everyone, Links.preset(preset, threads=1))
    print(table(rows))
    draw(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
