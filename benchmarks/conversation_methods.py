"""The methods of `conversations.py`: labels of the windows of a conversation.

A method has parameters that are tuned on conversations of other speakers, and returns `Labels`:
those at arrival, those that a method with corrections knows after each window, and those at the
end. The time model takes any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.conversation_bed import Conversation
from benchmarks.methods import OneCentroid
from benchmarks.protocol import along_a_line
from linkstream import Links
from linkstream.adapters.timed_labels import SHARE_MAX
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import Line
from linkstream.turn_model import LiveLabels, TimeModel, Window, Windows, fixed_point, reestimate

SEED = 0
TRIALS, FINALISTS = 80, 4  # of the random search for thresholds
FEW = 25  # conversations that a trial is scored on; finalists are scored on all

# Of `links, healed`, tuned by `conversations.py`: the preset `ge2e-turns` has them.
FROM_CONVERSATIONS = Thresholds(0.378, 0.969, 0.589)

Parameters = dict[str, float]
Integers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of the windows of one conversation.

    Attributes:
        final: labels after the last window.
        instant: labels at arrival; None for a method that sees all windows before it answers.
        changes: for each window, the windows whose label changed after it had arrived, and their
            new labels.
    """

    final: Integers
    instant: Integers | None = None
    changes: Sequence[Mapping[int, int]] = ()


class Method(Protocol):
    """A method to compare."""

    @property
    def name(self) -> str:
        """Name in the tables."""

    @property
    def note(self) -> str:
        """How it was tuned."""

    def tune(self, bed: Sequence[Room]) -> Parameters:
        """Return parameters with little confusion on these conversations."""

    def run(self, X: Rows, parameters: Parameters) -> Labels:
        """Return labels of the windows."""


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation and its windows less the mean of all voices, at unit length."""

    talk: Conversation
    X: Rows

    @classmethod
    def of(cls, talk: Conversation, mean: npt.NDArray[np.float64]) -> Room:
        """Return a conversation with centred windows."""
        rows = talk.X - mean
        return cls(talk, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))

    @property
    def windows(self) -> Windows:
        """The windows as the time model takes them."""
        middles = self.talk.spans.mean(axis=1)
        gaps = np.diff(middles, prepend=middles[0])
        return Windows(fixed_point(self.X.astype(np.float64)), self.milliseconds, gaps)

    @property
    def milliseconds(self) -> npt.NDArray[np.float64]:
        """New speech in each window, as `Diarizer` counts it."""
        starts, ends = self.talk.spans.T
        begins = np.maximum(starts, np.concatenate([starts[:1], ends[:-1]]))
        return np.rint(1000 * np.minimum(ends - begins, SHARE_MAX * (ends - starts)))


def confusion(bed: Sequence[Room], method: Method, parameters: Parameters) -> float:
    """Return the mean confusion: of final labels, and of those at arrival if there are any."""
    total = 0.0
    for room in bed:
        found = method.run(room.X, parameters)
        rates = [
            room.talk.confusion(each) for each in (found.final, found.instant) if each is not None
        ]
        total += float(np.mean(rates))
    return total / len(bed)


def delayed(room: Room, found: Labels, delay: float, model: TimeModel) -> Integers:
    """Return final labels with evidence of time and a delay.

    Args:
        room: the conversation.
        found: labels of a method at arrival, and their changes.
        delay: seconds from the end of a window until its label is final.
        model: parameters of the time model.
    """
    assert found.instant is not None
    windows, final = room.windows, []
    live = LiveLabels(model, delay, windows.at)
    labels: list[int] = []
    ends = room.talk.spans[:, 1].tolist()
    made = [
        Window(n, windows.rows[n], int(windows.milliseconds[n]), float(windows.gaps[n]), ends[n])
        for n in range(len(ends))
    ]
    for n, label in enumerate(found.instant.tolist()):
        live.move(made[n], None, label)
        labels.append(label)
        live.add(made[n])
        for earlier, new in (found.changes[n] if found.changes else {}).items():
            live.move(made[earlier], labels[earlier], new)
            labels[earlier] = new
        final += live.settled()
    return np.array(final + live.settled(ended=True))


def again(room: Room, labels: Integers, model: TimeModel) -> Integers:
    """Return labels re-estimated with evidence of time from a whole conversation."""
    ids = np.unique(labels, return_inverse=True)[1]
    return reestimate(room.windows, ids, model)


# Methods


@dataclass(frozen=True, slots=True)
class Centroid:
    """One centroid for each speaker, one threshold."""

    name: str = "one centroid"
    note: str = "nearest normalised sum, one threshold, tuned; labels never change"

    def tune(self, bed: Sequence[Room]) -> Parameters:
        """Return the best threshold."""

        def score(similarity: float) -> float:
            return -confusion(bed, self, {"similarity": similarity})

        return {"similarity": along_a_line(score, np.linspace(0.1, 0.5, 9).tolist(), rounds=1)}

    def run(self, X: Rows, parameters: Parameters) -> Labels:
        """Return labels at arrival."""
        labels = OneCentroid().run(X, parameters)["instant"]
        return Labels(labels, labels)


def thresholds_of(point: Parameters) -> tuple[float, float, float]:
    """Return the three thresholds of a point of the search."""
    line = Line(point["similarity"], point["similarity"], point["pull"], point["join"])
    t = line.at(0.0)
    return t.cluster_similarity, t.subcluster_similarity, t.pair_similarity_max


def search(bed: Sequence[Room], method: Method, trials: int) -> Parameters:
    """Return thresholds by a seeded random search that narrows down on the best points."""
    rng = np.random.default_rng(SEED)
    tried: list[tuple[float, Parameters]] = []
    for trial in range(trials):
        point = _point(rng, None if trial < trials // 2 else tried)
        tried.append((confusion(bed[:FEW], method, point), point))
        tried.sort(key=lambda pair: pair[0])
    finalists = [point for _, point in tried[:FINALISTS]]
    return min(finalists, key=lambda point: confusion(bed, method, point))


def _point(rng: np.random.Generator, tried: list[tuple[float, Parameters]] | None) -> Parameters:
    """Return a random point, or one near a random one of the best five."""
    if tried is None:
        draws = {"similarity": (0.2, 0.6), "join": (0.08, 1.05), "pull": (0.15, 0.97)}
        return {name: float(rng.uniform(*ends)) for name, ends in draws.items()}
    near = tried[int(rng.integers(min(5, len(tried))))][1]
    steps = {"similarity": 0.03, "join": 0.08, "pull": 0.06}
    limits = {"similarity": (0.05, 0.9), "join": (0.05, 1.1), "pull": (0.05, 0.98)}
    return {
        name: float(np.clip(near[name] + step * rng.normal(), *limits[name]))
        for name, step in steps.items()
    }


@dataclass(frozen=True, slots=True)
class Clusters:
    """This project, as in the paper or healed."""

    name: str
    note: str
    mode: str
    trials: int = TRIALS

    def tune(self, bed: Sequence[Room]) -> Parameters:
        """Return thresholds of a random search."""
        return search(bed, self, self.trials)

    def run(self, X: Rows, parameters: Parameters) -> Labels:
        """Return labels at arrival, their changes, and final labels."""
        return self.follow(X, thresholds_of(parameters))

    def follow(self, X: Rows, thresholds: tuple[float, ...]) -> Labels:
        """Return the labels of a clusterer with these thresholds."""
        links = Links(*thresholds, mode=self.mode, threads=1)
        instant, changes = [], []
        before = np.empty(0, dtype=np.int64)
        for x in X:
            instant.append(links.add(x).cluster)
            now = links.labels()
            moved = np.flatnonzero(now != np.append(before, instant[-1]))
            changes.append({n: int(now[n]) for n in moved.tolist()})
            before = now
        return Labels(before, np.array(instant), changes)


@dataclass(frozen=True, slots=True)
class Peer:
    """The implementation of Links by a co-author of the paper."""

    name: str = "linkscluster"
    note: str = "by a co-author of the paper, with the thresholds tuned for *links, paper*"
    tuned_as: str = "links, paper"

    def tune(self, bed: Sequence[Room]) -> Parameters:
        """Return the thresholds of the same model; `compare` does not call it."""
        return Clusters(self.tuned_as, "", "paper").tune(bed)

    def run(self, X: Rows, parameters: Parameters) -> Labels:
        """Return labels at arrival, and final labels."""
        from linkscluster import LinksClusterer

        peer = LinksClusterer(*thresholds_of(parameters))
        instant = [peer.predict_next(x) for x in X]
        return Labels(np.array(peer.get_final_labels()), np.array(instant))


@dataclass(frozen=True, slots=True)
class AverageLinkage:
    """Average linkage of SciPy, cut at one height."""

    name: str = "average linkage"
    note: str = "SciPy, cosine, one height, tuned; offline"

    def tune(self, bed: Sequence[Room]) -> Parameters:
        """Return the best height."""

        def score(height: float) -> float:
            return -confusion(bed, self, {"height": height})

        return {"height": along_a_line(score, np.linspace(0.6, 1.0, 17).tolist(), rounds=1)}

    def run(self, X: Rows, parameters: Parameters) -> Labels:
        """Return the clusters below the height."""
        from scipy.cluster.hierarchy import fcluster

        tree = _tree(X.tobytes(), X.shape[1])
        return Labels(fcluster(tree, parameters["height"], "distance").astype(np.int64))


@lru_cache(maxsize=256)
def _tree(rows: bytes, dimension: int) -> npt.NDArray[np.float64]:
    from scipy.cluster.hierarchy import linkage

    return linkage(np.frombuffer(rows, np.float32).reshape(-1, dimension), "average", "cosine")


@dataclass(frozen=True, slots=True)
class Spectral:
    """Spectral clustering, by the package spectralcluster."""

    name: str
    note: str
    recipe: str
    percentiles: tuple[float, ...]
    few: int = 12  # conversations that the percentile is tuned on: a run takes seconds

    def tune(self, bed: Sequence[Room]) -> Parameters:
        """Return the best percentile of a list."""
        rates = [confusion(bed[: self.few], self, {"percentile": p}) for p in self.percentiles]
        return {"percentile": self.percentiles[int(np.argmin(rates))]}

    def run(self, X: Rows, parameters: Parameters) -> Labels:
        """Return labels after all windows."""
        from spectralcluster import configs

        peer: Any = deepcopy(getattr(configs, f"{self.recipe}_clusterer"))
        peer.constraint_options = None  # of turns found in the sound, which there is none of here
        peer.max_clusters = 10
        peer.autotune = None
        peer.refinement_options.p_percentile = parameters["percentile"]
        np.random.seed(SEED)  # noqa: NPY002  (its k-means draws from there)
        return Labels(peer.predict(X).astype(np.int64))


METHODS: tuple[Method, ...] = (
    Centroid(),
    Clusters("links, paper", "this project, as in the paper; thresholds tuned", "paper"),
    Peer(),
    Clusters("links, healed", 'this project with mode="best"; thresholds tuned', "best"),
    AverageLinkage(),
    Spectral(
        "spectral",
        "spectralcluster's `turntodiarize` set-up, its percentile tuned; offline",
        "turntodiarize",
        (0.8, 0.85, 0.9, 0.93, 0.95),
    ),
    Spectral(
        "spectral with blur",
        "spectralcluster's `icassp2018` set-up, its percentile tuned; offline",
        "icassp2018",
        (0.65, 0.7, 0.75, 0.8, 0.85),
    ),
)
