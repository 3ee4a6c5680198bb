"""The held-out protocol: a method is tuned on half of the identities and scored on the others.

No identity is in both halves. The order of arrival is kept. A method whose answer depends on the
order is also scored on seeded permutations. There may be several splits of the identities, each
with a seed of its own.

Beside accuracy, methods with lasting IDs are scored for stillness, without labels: `still` is the
share of vectors whose ID at arrival is their ID at the end, and `half` the share of the first half
of the stream that keeps its ID while the second half arrives. IDs are resolved: a join alone
changes no vector.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError
from linkstream.metrics import accuracy, stability

CAP, SEED = 2_500, 0  # vectors of each half; seed of the first split
MOMENTS = ("instant", "current", "settled")
STILLNESS = ("still", "half")

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[Any]
Parameters = dict[str, float]
Answer = Mapping[str, Labels]


class Method(Protocol):
    """A method to compare. `run` returns labels for some of the moments.

    Moments: instant, the ID given at arrival; current, the label after the last vector; settled,
    the label of a method that sees all vectors before it answers. A method with lasting IDs also
    returns `given`, the IDs at arrival resolved after the last vector, and `early`, the labels
    after the first half of the stream, resolved likewise.
    """

    @property
    def name(self) -> str:
        """The name in tables and on the command line."""

    @property
    def note(self) -> str:
        """How the method was tuned, and what a reader must know to judge it."""

    @property
    def ordered(self) -> bool:
        """Whether the answer depends on the order of arrival."""

    @property
    def cap(self) -> int:
        """The maximum number of vectors of a half."""

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return parameters tuned on labelled vectors."""

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return labels by moment."""


@dataclass(frozen=True, slots=True)
class Half:
    """Vectors in order of arrival, and their identities."""

    X: Vectors
    y: Labels

    def first(self, n: int) -> Half:
        """Return the first n vectors."""
        return Half(self.X[:n], self.y[:n])


def load(path: Path, *, split: int = 0) -> tuple[Half, Half]:
    """Load the tuning half and the scored half of a file with arrays X and y, by split."""
    with np.load(path) as arrays:
        if not {"X", "y"} <= set(arrays.files):
            raise ArgumentError(
                f"{path.name} holds {', '.join(arrays.files) or 'nothing'}",
                expected="arrays X (vectors) and y (identities)",
                remedy="Save it with numpy.savez(path, X=X, y=y).",
            )
        return halves(arrays["X"], arrays["y"], seed=SEED + split)


def halves(
    X: npt.ArrayLike, y: npt.ArrayLike, *, cap: int = CAP, seed: int = SEED
) -> tuple[Half, Half]:
    """Return unit vectors of two sets of identities, in order of arrival, at most `cap` of each."""
    rows, who = np.asarray(X).astype(np.float32), np.asarray(y)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if len(np.unique(who)) < 2 or not (np.all(np.isfinite(norms)) and np.all(norms > 0)):
        raise ArgumentError(
            f"{len(np.unique(who))} identities, shortest vector {norms.min(initial=np.inf):g}",
            expected="two identities or more, and vectors that are finite and not 0",
            remedy="Remove bad vectors, or add identities.",
        )
    identities = np.random.default_rng(seed).permutation(np.unique(who))
    tuning = np.isin(who, identities[: len(identities) // 2])
    unit = rows / norms
    first, second = (np.flatnonzero(side)[:cap] for side in (tuning, ~tuning))
    return Half(unit[first], who[first]), Half(unit[second], who[second])


def orders(n: int, count: int) -> list[npt.NDArray[np.int64]]:
    """Return `count` orders of n vectors: the given one, then seeded permutations."""
    shuffled = [np.random.default_rng(seed).permutation(n) for seed in range(1, count)]
    return [np.arange(n), *shuffled][:count]


def figures(answer: Answer, y: Labels) -> dict[str, float]:
    """Return the accuracy of every moment of the answer, and its stillness if it has IDs."""
    found = {moment: accuracy(y, answer[moment]) for moment in MOMENTS if moment in answer}
    return found | stillness(answer)


def stillness(answer: Answer) -> dict[str, float]:
    """Return the shares of vectors that keep their IDs; nothing for a method without IDs."""
    found = {}
    for name, key in zip(STILLNESS, ("given", "early"), strict=True):
        if len(answer.get(key, ())):
            found[name] = stability(answer[key], answer["current"][: len(answer[key])])
    return found


def objective(answer: Answer, y: Labels) -> float:
    """Return the objective of tuning: accuracy, or the mean of instant and current accuracy."""
    seen = figures(answer, y)
    online = [seen[moment] for moment in MOMENTS[:2] if moment in seen]
    return float(np.mean(online or list(seen.values())))


def judge(method: Method, tuning: Half, scored: Half, *, count: int = 5) -> dict[str, Any]:
    """Tune on one half and score on the other, in several orders; return plain values."""
    tuning, scored = tuning.first(method.cap), scored.first(method.cap)
    begin = time.process_time()
    parameters = method.tune(tuning.X, tuning.y)
    tuned = time.process_time()
    kept = [
        figures(method.run(scored.X[order], parameters), scored.y[order])
        for order in orders(len(scored.y), count if method.ordered else 1)
    ]
    seconds = (time.process_time() - tuned) / len(kept)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "parameters": parameters,
        "vectors": [len(tuning.y), len(scored.y)],
        "tuned": objective(method.run(tuning.X, parameters), tuning.y),
        "seconds": {"tune": round(tuned - begin, 3), "run": round(seconds, 3)},
        "orders": kept,
    }


# Search for one parameter

TOLERANCE = 0.002  # scores this close to the best count as equally good
BETWEEN = 3  # new points in each of the two gaps beside the best


def along_a_line(
    score: Callable[[float], float], grid: Sequence[float], *, rounds: int = 1
) -> float:
    """Return the middle of the best run of values, on a grid that is refined beside the best.

    The first of several equally good values lies at the edge of the good range. The middle is more
    likely to be good on other data.
    """
    tried = {float(value): score(float(value)) for value in grid}
    for _ in range(rounds):
        values = sorted(tried)
        best = values.index(max(values, key=tried.__getitem__))
        ends = values[max(best - 1, 0) : best + 2]
        for low, high in pairwise(ends):
            for value in np.linspace(low, high, BETWEEN + 2)[1:-1]:
                tried[float(value)] = score(float(value))
    values = sorted(tried)
    return middle_of_plateau(values, [tried[value] for value in values])


def middle_of_plateau(values: Sequence[float], scores: Sequence[float]) -> float:
    """Return the value nearest the middle of the run of good values around the best one."""
    good = np.asarray(scores) >= max(scores) - TOLERANCE
    first = last = int(np.argmax(scores))
    while first > 0 and good[first - 1]:
        first -= 1
    while last + 1 < len(values) and good[last + 1]:
        last += 1
    run = np.asarray(values[first : last + 1])
    return float(run[np.argmin(np.abs(run - (run[0] + run[-1]) / 2))])
