"""Measure policies on identities that were held out: `python -m benchmarks.policies FOLDER`.

Sets, splits, thresholds and models are those of benchmarks/confidence.py: a model is fitted to the
tuning half and judged on the other, in the given order and a permutation. Each stream runs without
a policy, with vectors held, and with unsure vectors of half weight, for each probability.

The page docs/confidence.md says what the columns mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.confidence import FIRST, MODES, PAGE, Job, parser, wanted
from benchmarks.protocol import load, orders
from benchmarks.quality import THREAD_VARIABLES
from benchmarks.quality_tables import put
from benchmarks.workloads import SMALL
from linkstream import Links
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model, Policy
from linkstream.confidence.policy import UNSURE
from linkstream.engine.contract import NEW
from linkstream.errors import ArgumentError
from linkstream.metrics import accuracy
from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.candidates import Candidate
from linkstream.tuning.confidence import fit_confidence

RESULTS = Path(__file__).with_name("policies.json")
PROBABILITIES = (0.9, 0.95, 0.99)
GONE = -1

Rows = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def main(arguments: list[str] | None = None) -> int:
    """Run all sets, store the figures, and write the page."""
    options: argparse.Namespace = parser(RESULTS, "What to do with the unsure").parse_args(
        arguments
    )
    if options.speed:
        speed()
        return 0
    if options.folder is None:
        write(json.loads(options.json.read_text("utf-8")))
        return 0
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    with ProcessPoolExecutor(options.jobs) as pool:
        results = [row for rows in pool.map(judge, list(wanted(options))) for row in rows]
    options.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    write(results)
    return 0


def judge(job: Job) -> list[dict[str, Any]]:
    """Return the figures of one split of a set, for each probability and order."""
    path, mode, split, parameters = job
    ours, theirs = (half.first(FIRST) for half in load(path, split=split))
    candidate = Candidate(Thresholds(*parameters.values()), options={"mode": mode})
    codes = np.unique(ours.y, return_inverse=True)[1].astype(np.int64)
    model = fit_confidence(candidate, ours.X, codes, orders(len(codes), 3))
    if not model.is_known:
        return []
    y = np.unique(theirs.y, return_inverse=True)[1].astype(np.int64)
    head = {"set": path.stem, "mode": mode, "split": split}
    return [
        head | found
        for order in orders(len(y), 2)
        for found in _of_order(candidate, model, theirs.X[order], y[order])
    ]


def _of_order(candidate: Candidate, model: Model, X: Rows, y: Integers) -> Iterator[dict[str, Any]]:
    taken = run(candidate.links(), model, X, y)
    for probability in PROBABILITIES:
        new = reachable(candidate.links(), model, X, probability)
        if new is None:
            yield {"probability": probability}
            continue
        held, lighter = (
            run(candidate.links(), model, X, y, (probability, new, unsure))
            for unsure in ("hold", "weigh")
        )
        yield {
            "probability": probability,
            "new": new,
            **held.figures(y),
            "take": accuracy(y, taken.labels),
            "take_at_once": float(taken.right.mean()),
            "weigh": accuracy(y, lighter.labels),
        }


def reachable(links: Links, model: Model, X: Rows, probability: float) -> float | None:
    """Return the probability of new clusters: the same, or 0 if that is not reached; or None."""
    links.confidence.use(model)
    links.add(X[0])
    for new in (probability, 0.0):
        try:
            links.accept(probability, new=new)
        except ArgumentError:
            continue
        return new
    return None


@dataclass(frozen=True, slots=True)
class Run:
    """A stream under a policy.

    Attributes:
        sure: which vectors were decided at once.
        right: which of the first decisions were right.
        waiting: labels at the end; −1 for those that still wait.
        labels: labels after those were put where the tests say.
    """

    sure: Flags
    right: Flags
    waiting: Integers
    labels: Integers

    def figures(self, y: Integers) -> dict[str, Any]:
        """Return the figures of vectors that were held."""
        later = ~self.sure & (self.waiting != GONE)
        majority = majorities(self.waiting, y)
        hits = [
            majority[label] == who for label, who in zip(self.waiting[later], y[later], strict=True)
        ]
        return {
            "at_once": float(self.right[self.sure].mean()),
            "held": float(1.0 - self.sure.mean()),
            "later": int(later.sum()),
            "later_right": int(np.sum(hits)),
            "n": len(y),
            "hold": accuracy(y, self.labels),
            "person": accuracy(y, by_a_person(self.waiting, y)),
        }


def run(
    links: Links, model: Model, X: Rows, y: Integers, given: tuple[float, float, str] | None = None
) -> Run:
    """Add vectors one by one under a policy; judge each first decision.

    A new cluster is right if no cluster holds the identity yet; vectors that wait are in none.
    """
    links.confidence.use(model)
    policy, seen = Policy(), np.zeros(int(y.max()) + 1, dtype=bool)
    sure, right = np.ones(len(X), dtype=bool), np.zeros(len(X), dtype=bool)
    for i in range(len(X)):
        decided = links.decide_many(X[i : i + 1])
        if i == 0 and given is not None:
            policy = links.accept(given[0], new=given[1], unsure=given[2])
        doubt = None if i == 0 else policy.doubt
        kind, margin = int(decided.tested[0]), float(decided.cluster_margin[0])
        sure[i] = doubt is None or not doubt.is_unsure(kind, margin)
        cluster = int(decided.cluster[0])
        if cluster == GONE:
            continue
        right[i] = not seen[y[i]] if kind == NEW else _is_right(links, cluster, i, y)
        seen[y[i]] = True
    waiting = links.labels()
    links.accept()
    return Run(sure, right, waiting, links.labels())


def _is_right(links: Links, cluster: int, i: int, y: Integers) -> bool:
    members = links.members(cluster, before=i)
    return bool(len(members)) and int(np.bincount(y[members]).argmax()) == y[i]


def majorities(labels: Integers, y: Integers) -> dict[int, int]:
    """Return the identity with the most vectors of each cluster."""
    return {
        int(label): int(np.bincount(y[labels == label]).argmax())
        for label in np.unique(labels[labels != GONE])
    }


def by_a_person(labels: Integers, y: Integers) -> Integers:
    """Return labels after a person put each that waits into the largest cluster of its identity."""
    done, best = labels.copy(), dict[int, int]()
    sizes = np.bincount(labels[labels != GONE])
    for label, who in sorted(majorities(labels, y).items(), key=lambda each: sizes[each[0]]):
        best[who] = label
    for place in np.flatnonzero(labels == GONE).tolist():
        done[place] = best.setdefault(int(y[place]), int(len(sizes) + place))
    return done


def speed(rounds: int = 20, unsure: float = 0.1) -> None:
    """Print microseconds a vector of `add_many` without a policy and with each, on one thread.

    A tenth of the vectors that would join or be linked is unsure; vectors are kept.
    """
    for name in ("tight", "scatter", "lobes"):
        X = SMALL[name].make()
        for mode in MODES:
            options = {"threads": 1, "mode": mode, "keep_vectors": True}
            model = _model(SMALL[name].thresholds, X, unsure, options)
            best = dict.fromkeys(("take", *UNSURE), np.inf)
            for policy in (*best,) * rounds:
                links = Links(*SMALL[name].thresholds, **options)
                links.add(X[0])
                if policy != "take":
                    links.confidence.use(model)
                    links.accept(0.9, new=0, unsure=policy)
                begin = time.process_time()
                links.add_many(X[1:])
                best[policy] = min(best[policy], (time.process_time() - begin) / len(X) * 1e6)
            told = ", ".join(
                f"{each} {best[each]:.2f} ({best['take'] / best[each]:.2f})" for each in best
            )
            print(f"{name} {mode}: {told}", flush=True)


def _model(
    thresholds: tuple[float, float, float], X: Rows, unsure: float, options: dict[str, Any]
) -> Model:
    """Return a model by which this share of the vectors that are given a cluster is below .9."""
    links = Links(*thresholds, **options)
    links.confidence.set_margins(True)
    told = links.decide_many(X)
    margin = float(np.quantile(told.cluster_margin[told.kind != NEW], unsure))
    curve = Curve(float(np.log(9.0)) - 8.0 * margin, 8.0, -2.0, 2.0, 0.99, 900, 90)
    return Model(setting(links.core), curve, curve, curve, 40)


# Page

HEADS = (
    *("set", "sure from", "at once", "right", "later", "right"),
    *("take", "hold, tests", "hold, person", "weigh"),
)


def write(results: list[dict[str, Any]]) -> None:
    """Write the tables of the page."""
    parts = []
    for mode in MODES:
        rows = [
            row(name, probability, [each for each in found if each["probability"] == probability])
            for name, found in _by_set(results, mode)
            for probability in PROBABILITIES
        ]
        ruler = ["---"] + ["--:"] * (len(HEADS) - 1)
        lines = [f"| {' | '.join(line)} |" for line in [list(HEADS), ruler, *rows]]
        parts += [f'`mode="{mode}"`:', "\n".join(lines)]
    put("policies", "\n\n".join(parts), page=PAGE)


def _by_set(results: list[dict[str, Any]], mode: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    of_mode = [each for each in results if each["mode"] == mode]
    for name in sorted({each["set"] for each in of_mode}):
        yield name, [each for each in of_mode if each["set"] == name]


def row(name: str, probability: float, results: list[dict[str, Any]]) -> list[str]:
    """Return a row: means over splits and orders; † where new clusters are all taken."""
    known = [each for each in results if "hold" in each]
    title = name.replace("_", " ")
    if not known:
        return [title, f"{probability}", "never", *[""] * (len(HEADS) - 3)]
    all_new = all(each["new"] == 0.0 for each in known)
    later, right = (sum(each[key] for each in known) for key in ("later", "later_right"))
    mark = "†" if all_new else "‡" if any(each["new"] == 0.0 for each in known) else ""
    return [
        *(title, f"{probability}{mark}", f"{1.0 - _mean(known, 'held'):.2f}"),
        f"{_mean(known, 'at_once'):.3f}",
        f"{later / sum(each['n'] for each in known):.2f}",
        f"{right / later:.3f}" if later else "",
        *(f"{_mean(known, key):.3f}" for key in ("take", "hold", "person", "weigh")),
    ]


def _mean(results: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([each[key] for each in results]))


if __name__ == "__main__":
    sys.exit(main())
