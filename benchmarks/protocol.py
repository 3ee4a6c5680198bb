"""The held-out protocol: half of the identities tunes a method, the other half is scored.

No identity is in both halves, as a stream of strangers asks for. The order of arrival is kept.
A method whose answer depends on that order is scored on seeded permutations too.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError
from linkstream.metrics import accuracy

CAP, SEED = 2_500, 0  # vectors of each half; seed of the split
MOMENTS = ("instant", "current", "settled")

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[Any]
Parameters = dict[str, float]
Answer = Mapping[str, Labels]


class Method(Protocol):
    """A contender. `run` answers with labels for some of the moments.

    Moments: instant, the ID given when the vector came; current, the label it has once the last
    vector has come; settled, the label of a method that saw all vectors before it answered.
    """

    @property
    def name(self) -> str:
        """Name in tables and on the command line."""

    @property
    def note(self) -> str:
        """How it was tuned, and what a reader must know to judge it."""

    @property
    def ordered(self) -> bool:
        """Whether the answer depends on the order of arrival."""

    @property
    def cap(self) -> int:
        """The most vectors of a half that it is given."""

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Free parameters that suit labelled vectors."""

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Labels by moment."""


@dataclass(frozen=True, slots=True)
class Half:
    """Vectors in order of arrival, and who they are."""

    X: Vectors
    y: Labels

    def first(self, n: int) -> Half:
        """The first n of them."""
        return Half(self.X[:n], self.y[:n])


def load(path: Path) -> tuple[Half, Half]:
    """The tuning half and the scored half of a file with arrays X and y."""
    with np.load(path) as arrays:
        if not {"X", "y"} <= set(arrays.files):
            raise ArgumentError(
                f"{path.name} holds {', '.join(arrays.files) or 'nothing'}",
                expected="arrays X (vectors) and y (identities)",
                remedy="Save it with numpy.savez(path, X=X, y=y).",
            )
        return halves(arrays["X"], arrays["y"])


def halves(X: npt.ArrayLike, y: npt.ArrayLike, *, cap: int = CAP) -> tuple[Half, Half]:
    """Unit vectors of two sets of identities, each in order of arrival and cut at `cap`."""
    rows, who = np.asarray(X).astype(np.float32), np.asarray(y)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if len(np.unique(who)) < 2 or not (np.all(np.isfinite(norms)) and np.all(norms > 0)):
        raise ArgumentError(
            f"{len(np.unique(who))} identities, shortest vector {norms.min(initial=np.inf):g}",
            expected="two identities or more, and vectors that are finite and not 0",
            remedy="Leave such vectors out.",
        )
    identities = np.random.default_rng(SEED).permutation(np.unique(who))
    tuning = np.isin(who, identities[: len(identities) // 2])
    unit = rows / norms
    first, second = (np.flatnonzero(side)[:cap] for side in (tuning, ~tuning))
    return Half(unit[first], who[first]), Half(unit[second], who[second])


def orders(n: int, count: int) -> list[npt.NDArray[np.int64]]:
    """The given order of n vectors, then seeded permutations of it: `count` in all."""
    shuffled = [np.random.default_rng(seed).permutation(n) for seed in range(1, count)]
    return [np.arange(n), *shuffled][:count]


def figures(answer: Answer, y: Labels) -> dict[str, float]:
    """Accuracy of every moment that the method has."""
    return {moment: accuracy(y, answer[moment]) for moment in MOMENTS if moment in answer}


def objective(answer: Answer, y: Labels) -> float:
    """What tuning maximises: accuracy; the mean of instant and current where there are both."""
    seen = figures(answer, y)
    online = [seen[moment] for moment in MOMENTS[:2] if moment in seen]
    return float(np.mean(online or list(seen.values())))


def judge(method: Method, tuning: Half, scored: Half, *, count: int = 5) -> dict[str, Any]:
    """Tune on one half and score on the other, in the given order first; plain values."""
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
