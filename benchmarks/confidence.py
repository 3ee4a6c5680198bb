"""Measure probabilities on identities that were held out: `python -m benchmarks.confidence FOLDER`.

FOLDER holds .npz files with arrays X (vectors in order of arrival) and y (identities). The model
is fitted to the first vectors of the tuning half of `protocol.py`, in three orders, with the
thresholds that benchmarks/quality.json has for that half. It is judged on the other half, in the
given order and a permutation. A set with fewer than 20 identities for tuning is unknown.

The page docs/confidence.md says what the columns mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.offline_methods import Hdbscan
from benchmarks.protocol import Half, load, orders
from benchmarks.quality import RESULTS as THRESHOLDS
from benchmarks.quality import THREAD_VARIABLES
from benchmarks.quality_tables import put
from benchmarks.workloads import SMALL
from linkstream import Links
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model, Pairs
from linkstream.engine.contract import NEW
from linkstream.paper.thresholds import Thresholds
from linkstream.plots import FAINT, INK, PALETTE, new_figure, save
from linkstream.tuning.candidates import Candidate
from linkstream.tuning.confidence import fit_confidence, judged, pairs

RESULTS = Path(__file__).with_name("confidence.json")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "confidence.md"
PICTURE = PAGE.parent / "img" / "confidence.png"
MODES = {"paper": "links", "best": "links, healed"}  # and their names in quality.json
FIRST = 1_500  # vectors of each half
BINS, DRAWS = 10, 20
SURE = 0.95

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def main(arguments: list[str] | None = None) -> int:
    """Judge all sets, store the figures, and write the page."""
    options = parser().parse_args(arguments)
    if options.speed:
        speed()
        return 0
    if options.folder is None:
        write(json.loads(options.json.read_text("utf-8")))
        return 0
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    jobs = list(wanted(options))
    with ProcessPoolExecutor(options.jobs) as pool:
        results = [each for each in pool.map(judge, jobs) if each]
    options.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    write(results)
    return 0


def parser(
    results: Path = RESULTS,
    what: str = "How far probabilities hold on identities that were held out",
) -> argparse.ArgumentParser:
    """Return the parser of the command line of a benchmark with these results."""
    name = f"python -m benchmarks.{results.stem}"
    made = argparse.ArgumentParser(
        prog=name,
        description=f"{what}. Example: {name} data --sets voice_libri261 --splits 1",
    )
    made.add_argument(
        "folder", nargs="?", type=Path, help=".npz files, X and y; without it, only the page"
    )
    made.add_argument("--speed", action="store_true", help="measure the cost of a model, no sets")
    made.add_argument("--sets", nargs="+", metavar="SET", help="names of files; all if none")
    made.add_argument("--splits", type=int, default=3, help="splits of the identities")
    made.add_argument("--jobs", type=int, default=1, help="processes at a time")
    made.add_argument("--json", type=Path, default=results, help="file that keeps the figures")
    return made


# A set, a mode, a split; thresholds and the parameters of HDBSCAN, of the same tuning half.
Job = tuple[Path, str, int, dict[str, float], dict[str, float]]


def wanted(options: argparse.Namespace) -> Iterator[Job]:
    """Yield the sets, modes and splits that thresholds are known for."""
    methods = json.loads(THRESHOLDS.read_text("utf-8"))["methods"]
    for path in sorted(options.folder.glob("*.npz")):
        if options.sets and path.stem not in options.sets:
            continue
        for mode, method in MODES.items():
            of_set = methods[method]["sets"].get(path.stem)
            for split in range(options.splits) if of_set else ():
                found = parameters_of(of_set, split)
                density = parameters_of(methods["HDBSCAN"]["sets"].get(path.stem), split)
                if found and density:
                    yield path, mode, split, found, density


def parameters_of(of_set: dict[str, Any] | None, split: int) -> dict[str, float]:
    """Return the parameters of a method for a split of a set; empty if there are none."""
    splits = {} if of_set is None else {"0": of_set, **of_set.get("splits", {})}
    found: dict[str, float] = splits.get(str(split), {}).get("parameters", {})
    return found


def judge(job: Job) -> dict[str, Any]:
    """Return the figures of one split of a set."""
    path, mode, split, parameters, density = job
    ours, theirs = (half.first(FIRST) for half in load(path, split=split))
    candidate = Candidate(Thresholds(*parameters.values()), options={"mode": mode})
    codes = np.unique(ours.y, return_inverse=True)[1].astype(np.int64)
    model = fit_confidence(candidate, ours.X, codes, orders(len(codes), 3))
    told = [tested(candidate.links(), theirs, order, density) for order in orders(len(theirs.y), 2)]
    *decided, found = zip(*told, strict=True)
    kind, margin, right, beside = (np.concatenate(column) for column in decided)
    odds = model.probabilities(kind, margin)
    head = {"set": path.stem, "mode": mode, "split": split, "identities": model.identities}
    return head | {"why": model.why} | figures(odds, right, beside) | of_pairs(model, found)


def of_pairs(model: Model, found: tuple[Pairs, ...]) -> dict[str, Any]:
    """Return how well the model tells which clusters are one identity."""
    every = Pairs.joined(list(found))
    told = model.one_identity(every.margin, every.smaller)
    known = np.isfinite(told)
    if not known.any() or len(set(every.same[known].tolist())) < 2:
        return {}
    p, same = told[known], every.same[known]
    return {
        "pairs": int(known.sum()),
        "same_auc": area(p, same),
        "same_ece": calibration_error(p, same),
    }


def area(p: Floats, right: Flags) -> float:
    """Return the probability that one that is right has the greater p; equals count half."""
    values, counts = np.unique(p, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[np.searchsorted(values, p)]
    n = int(right.sum())
    return float((ranks[right].sum() - n * (n + 1) / 2) / (n * (len(p) - n)))


def tested(
    links: Links, half: Half, order: npt.NDArray[np.int64], density: dict[str, float]
) -> tuple[npt.NDArray[np.int8], Floats, Flags, Floats, Pairs]:
    """Return kind, margin, outcome of each decision, other measures; and the pairs of clusters."""
    codes = np.unique(half.y, return_inverse=True)[1].astype(np.int64)
    found = judged(links, half.X[order], codes[order])
    beside = others(links, half.X[order], found.kind, density)
    return found.kind, found.margin, found.right, beside, pairs(links, codes[order])


def others(
    links: Links,
    X: npt.NDArray[np.float32],
    kind: npt.NDArray[np.int8],
    density: dict[str, float],
) -> Floats:
    """Return the margin of each decision, and of each vector two measures that know the future.

    These are its silhouette by the final clusters and its probability by HDBSCAN of all vectors.
    """
    again = Links.from_thresholds(links.thresholds, evidence=links.evidence, heal=links.healing)
    decided = again.decide_many(X)
    margin = decided.similarity - decided.threshold
    margin = np.where(kind == NEW, -margin, margin)
    dense = Hdbscan().probabilities(X, density)
    margin = np.nan_to_num(margin, nan=1.0)
    return np.column_stack([margin, silhouette(X, again.labels()), dense])


def silhouette(X: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> Floats:
    """Return the silhouette of each vector by cosine; 0 for one that is alone."""
    unit = X.astype(np.float64) / np.linalg.norm(X, axis=1, keepdims=True)
    place = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(place)
    sums = np.zeros((len(sizes), X.shape[1]))
    np.add.at(sums, place, unit)
    apart = 1.0 - unit @ sums.T / sizes
    own, rows = sizes[place], np.arange(len(X))
    inside = apart[rows, place] * own / np.maximum(own - 1, 1)
    apart[rows, place] = np.inf
    nearest = np.minimum(apart.min(axis=1), 2.0)
    widest = np.maximum(np.maximum(nearest, inside), 1e-9)
    return np.where(own > 1, (nearest - inside) / widest, 0.0)


def figures(odds: Floats, right: Flags, beside: Floats) -> dict[str, Any]:
    """Return the figures of decisions with these probabilities."""
    known = np.isfinite(odds)
    found: dict[str, Any] = {"decisions": len(odds), "answers": float(known.mean())}
    if not known.any():
        return found
    p, y = odds[known], right[known]
    sure = p >= SURE
    found |= {
        "ece": calibration_error(p, y),
        "floor": floor(p),
        "sure": int(sure.sum()),
        "sure_right": int(y[sure].sum()),
        "accuracy": float(y.mean()),
        "bins": reliability(p, y),
    }
    measures = dict(zip(MEASURES, [p, *beside[known].T], strict=True))
    for name, surer in measures.items():
        order = np.argsort(-surer, kind="stable")
        for share in (90, 50):
            found[f"{name}_{share}"] = float(y[order[: len(y) * share // 100]].mean())
    return found


def calibration_error(p: Floats, right: Flags) -> float:
    """Return the mean gap between probability and share that is right, in bins of equal width."""
    return sum(n * abs(told - seen) for n, told, seen in reliability(p, right)) / len(p)


def reliability(p: Floats, right: Flags) -> list[tuple[int, float, float]]:
    """Return number, mean probability and share that is right of each bin that is not empty."""
    place = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    rows = [place == each for each in range(BINS) if (place == each).any()]
    return [(int(row.sum()), float(p[row].mean()), float(right[row].mean())) for row in rows]


def floor(p: Floats) -> float:
    """Return the calibration error that a perfect model would show with as many decisions."""
    rng = np.random.default_rng(0)
    return float(np.mean([calibration_error(p, rng.random(len(p)) < p) for _ in range(DRAWS)]))


def speed(rounds: int = 40) -> None:
    """Print microseconds a vector of `add_many` without a model and with one, on one thread."""
    curve = Curve(1.0, 8.0, -0.4, 0.5, 0.99, 900, 90)
    for name in ("tight", "scatter", "lobes"):
        workload = SMALL[name]
        X = workload.make()
        for mode in MODES:
            best = [np.inf, np.inf]
            for with_model in (False, True) * rounds:
                links = Links(*workload.thresholds, threads=1, keep_vectors=False, mode=mode)
                if with_model:
                    model = Model(setting(links.core), curve, curve, curve, 40)
                    links.confidence.use(model)
                begin = time.process_time()
                links.add_many(X)
                spent = time.process_time() - begin
                best[with_model] = min(best[with_model], spent / len(X) * 1e6)
            print(f"{name} {mode} {best[0]:.2f} {best[1]:.2f} µs, speed {best[0] / best[1]:.2f}")


# Page

COLUMNS = ("set", "identities", "answers", "ECE", "perfect", "≥ .95", "right", "AUC", "ECE")
MEASURES = ("probability", "margin", "silhouette", "HDBSCAN")


def write(results: list[dict[str, Any]]) -> None:
    """Write the tables and the picture of the page."""
    parts = []
    for mode in MODES:
        of_mode = [each for each in results if each["mode"] == mode]
        parts += [f'`mode="{mode}"`, calibration:', table(of_mode, COLUMNS, calibration)]
        heads = ("set", "all", *(f"{share} %, {each}" for share in (90, 50) for each in MEASURES))
        parts += [f'`mode="{mode}"`, accuracy of the surest:', table(of_mode, heads, coverage)]
    put("confidence", "\n\n".join(parts), page=PAGE)
    draw(results)


def table(
    results: list[dict[str, Any]],
    heads: tuple[str, ...],
    row: Callable[[str, list[dict[str, Any]]], list[str]],
) -> str:
    """Return a table of the means over the splits of each set, and over all that answer."""
    known = [each for each in results if "ece" in each]
    rows = [
        row(name.replace("_", " "), [each for each in results if each["set"] == name])
        for name in sorted({each["set"] for each in results})
    ]
    rows.append(row("mean of those that answer", known))
    ruler = ["---"] + ["--:"] * (len(heads) - 1)
    return "\n".join(f"| {' | '.join(line)} |" for line in [list(heads), ruler, *rows] if line)


def calibration(name: str, results: list[dict[str, Any]]) -> list[str]:
    """Return a row of the first table."""
    known = [each for each in results if "ece" in each]
    identities = f"{np.mean([each['identities'] for each in results]):.0f}"
    if not known:
        return [name, identities, "0", "unknown", "", "", "", "", ""]
    answers = np.mean([each["answers"] for each in results])
    sure, right = (sum(each[key] for each in known) for key in ("sure", "sure_right"))
    told = sum(each["decisions"] * each["answers"] for each in known)
    return [
        *(name, identities, f"{answers:.2f}", mean(known, "ece"), mean(known, "floor")),
        *(f"{sure / told:.2f}", f"{right / sure:.3f}" if sure else ""),
        *(mean(known, "same_auc"), mean(known, "same_ece")),
    ]


def coverage(name: str, results: list[dict[str, Any]]) -> list[str]:
    """Return a row of the second table; none for a set that does not answer."""
    known = [each for each in results if "ece" in each]
    if not known:
        return []
    shares = [f"{measure}_{share}" for share in (90, 50) for measure in MEASURES]
    return [name, mean(known, "accuracy"), *(mean(known, share) for share in shares)]


def mean(results: list[dict[str, Any]], key: str) -> str:
    """Return the mean of a figure."""
    found = [each[key] for each in results if key in each]
    return f"{np.mean(found):.3f}" if found else ""


def draw(results: list[dict[str, Any]]) -> None:
    """Draw the reliability diagram over all sets that answer."""
    figure = new_figure(6.4, 3.4)
    for place, mode in enumerate(MODES):
        axes = figure.add_subplot(1, 2, place + 1)
        bins = [each["bins"] for each in results if each["mode"] == mode and "bins" in each]
        flat = [tuple(each) for some in bins for each in some]
        axes.plot([0, 1], [0, 1], color=FAINT, zorder=0)
        axes.scatter(
            [told for _, told, _ in flat],
            [seen for _, _, seen in flat],
            s=[0.05 * n for n, _, _ in flat],
            color=PALETTE[0],
            alpha=0.35,
            linewidths=0,
        )
        axes.set_title(f'mode="{mode}"', loc="left", fontsize=10, color=INK)
        axes.set_xlabel("probability that was told")
        axes.set_ylabel("share that was right")
        axes.set_aspect("equal")
    save(figure, PICTURE)


if __name__ == "__main__":
    sys.exit(main())
