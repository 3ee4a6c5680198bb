"""The methods of the quality table: those that process vectors one by one, and the list of all.

To add a row, add an object to METHODS; see `protocol.Method`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.offline_methods import Dbscan, Hdbscan, KMeans, Linkage
from benchmarks.protocol import (
    CAP,
    Answer,
    Labels,
    Method,
    Parameters,
    Vectors,
    along_a_line,
    objective,
)
from linkstream import Links, Space
from linkstream.tuning import tune
from linkstream.tuning.inputs import LabelledVectors
from linkstream.tuning.objective import Objective
from linkstream.tuning.rebuilds import tuned_for_rebuilds


@dataclass(frozen=True, slots=True)
class OneCentroid:
    """A baseline: a vector joins the nearest centroid if it is similar enough, else starts one.

    Labels never change after arrival.
    """

    name: str = "one centroid"
    note: str = (
        "a baseline of this project: nearest normalised sum, one threshold; labels never change"
    )
    ordered: bool = True
    cap: int = CAP

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the threshold with the most accurate labels."""

        def score(threshold: float) -> float:
            return objective(self.run(X, {"similarity": threshold}), y)

        return {"similarity": along_a_line(score, np.linspace(0.08, 0.96, 23).tolist(), rounds=2)}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return one label per vector, given at arrival."""
        sums, centroids = np.empty_like(X), np.empty_like(X)
        labels, n = np.empty(len(X), dtype=np.int64), 0
        for place, vector in enumerate(X):
            similarities = centroids[:n] @ vector
            nearest = int(np.argmax(similarities)) if n else 0
            if n and similarities[nearest] >= parameters["similarity"]:
                sums[nearest] += vector
                centroids[nearest] = sums[nearest] / np.linalg.norm(sums[nearest])
            else:
                nearest = n
                sums[n] = centroids[n] = vector
                n += 1
            labels[place] = nearest
        early = labels[: len(X) // 2]
        return {"instant": labels, "current": labels, "given": labels, "early": early}


@dataclass(frozen=True, slots=True)
class Birch:
    """Birch of scikit-learn without its global step."""

    name: str = "Birch"
    note: str = "radius of a subcluster tuned, no global step; labels by nearest subcluster"
    ordered: bool = True
    cap: int = CAP

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the radius with the most accurate subclusters."""

        def score(radius: float) -> float:
            return objective(self.run(X, {"threshold": radius}), y)

        return {"threshold": along_a_line(score, np.linspace(0.2, 1.1, 13).tolist(), rounds=2)}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return the nearest subcluster of each vector after the last one."""
        from sklearn.cluster import Birch as Peer

        return {"current": Peer(threshold=parameters["threshold"], n_clusters=None).fit(X).labels_}


@dataclass(frozen=True, slots=True)
class Dbstream:
    """DBSTREAM of river, which is pure Python and gets fewer vectors.

    Its clusters are renumbered at each request, so there are no IDs at arrival.
    """

    name: str = "DBSTREAM"
    note: str = (
        "pure Python, so it gets fewer vectors: tuned on the first 500 of its half, scored on the "
        "first 1,000 of the other, which is a different task; no fading"
    )
    ordered: bool = True
    cap: int = 1_000
    tuning_cap: int = 500

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Tune the radius, then the share that connects two micro-clusters."""
        X, y = X[: self.tuning_cap], y[: self.tuning_cap]

        def score(radius: float, shared: float = 0.3) -> float:
            return objective(self.run(X, {"radius": radius, "shared": shared}), y)

        radius = along_a_line(score, np.linspace(0.3, 1.3, 11).tolist())
        shared = max((0.3, 0.1, 0.6), key=lambda value: score(radius, value))
        return {"radius": radius, "shared": shared}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return the nearest cluster of each vector after the last one, as `predict_one` does."""
        from river.cluster import DBSTREAM

        peer = DBSTREAM(
            clustering_threshold=parameters["radius"],
            intersection_factor=parameters["shared"],
            fading_factor=1e-6,  # 0 is refused
            cleanup_interval=len(X) + 1,
        )
        for row in X.tolist():
            peer.learn_one(dict(enumerate(row)))
        centres = np.array([list(centre.values()) for centre in peer.centers.values()])
        apart = (centres**2).sum(axis=1) - 2.0 * X.astype(np.float64) @ centres.T
        return {"current": apart.argmin(axis=1)}


def tune_links(X: Vectors, y: Labels, *, trials: int, **options: Any) -> Parameters:
    """Tune the thresholds of Links on labelled vectors."""
    thresholds = tune(X, y, trials=trials, workers=1, **options).thresholds
    return {
        "cluster_similarity": thresholds.cluster_similarity,
        "subcluster_similarity": thresholds.subcluster_similarity,
        "pair_similarity_max": thresholds.pair_similarity_max,
    }


@dataclass(frozen=True, slots=True)
class Linkscluster:
    """The implementation of Links by a co-author of the paper."""

    name: str = "linkscluster"
    note: str = (
        "the implementation of Links by a co-author of the paper, with the thresholds tuned for "
        "`links`: it has no tuning of its own, and the model is the same"
    )
    ordered: bool = True
    cap: int = CAP
    trials: int = 200

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the thresholds tuned for the same model."""
        return tune_links(X, y, trials=self.trials)

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return IDs at arrival, and final labels."""
        from linkscluster import LinksClusterer

        peer, half = LinksClusterer(*parameters.values()), len(X) // 2
        first = [peer.predict_next(vector) for vector in X[:half]]
        early = np.array(peer.get_final_labels()[:half]) if half else np.empty(0, np.int64)
        instant = np.array(first + [peer.predict_next(vector) for vector in X[half:]])
        current = peer.get_final_labels()
        return {"instant": instant, "current": current, "given": instant, "early": early}


def stream(links: Links, X: Vectors) -> dict[str, Labels]:
    """Add vectors to a clusterer; return labels by moment, and what stillness compares."""
    half = len(X) // 2
    first = links.add_many(X[:half]) if half else np.empty(0, np.int64)
    early = links.labels()
    instant = np.concatenate([first, links.add_many(X[half:])])
    return {
        "instant": instant,
        "current": links.labels(),
        "given": links.resolve_many(instant),
        "early": links.resolve_many(early),
    }


@dataclass(frozen=True, slots=True)
class PaperLinks:
    """Links as in the paper."""

    name: str = "links"
    note: str = "this project, as in the paper; `tune` with 200 trials, three orders"
    ordered: bool = True
    cap: int = CAP
    trials: int = 200

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the thresholds of `linkstream.tuning.tune`."""
        return tune_links(X, y, trials=self.trials)

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return IDs at arrival, and final labels."""
        return stream(Links(**parameters, threads=1), X)


@dataclass(frozen=True, slots=True)
class HealedLinks:
    """Links with `mode="best"`."""

    name: str = "links, healed"
    note: str = (
        'this project with mode="best"; `tune` with 64 trials, three orders; '
        "settled: `settle(apply=True)` after the last vector, with the same thresholds"
    )
    ordered: bool = True
    cap: int = CAP
    trials: int = 64

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the thresholds of `linkstream.tuning.tune`."""
        return tune_links(X, y, trials=self.trials, mode="best")

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return IDs at arrival, final labels, and labels after `settle`."""
        links = Links(**parameters, threads=1, mode="best")
        answer = stream(links, X)
        links.settle(apply=True)
        return answer | {"settled": links.labels()}


@dataclass(frozen=True, slots=True)
class RebuiltLinks:
    """Links after a rebuild with thresholds of its own."""

    name: str = "links, rebuilt"
    note: str = (
        "this project: `rebuild(apply=True)` with the thresholds for rebuilds of "
        "`tune(…, rebuild=True)`, the best of 187 pairs"
    )
    ordered: bool = False
    cap: int = CAP
    subcluster_similarity: float = 0.9  # which decides nothing about the clusters

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the thresholds for a rebuild."""
        tuned = tuned_for_rebuilds(
            LabelledVectors.of(X, y),
            Space(),
            Objective(),
            join=self.subcluster_similarity,
            seed=0,
            engine="auto",
            threads=1,
        )
        return asdict(tuned.thresholds)

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return the labels after a rebuild."""
        links = Links(**parameters, threads=1)
        links.add_many(X)
        links.rebuild(apply=True)
        return {"settled": links.labels()}


HEALED = {"evidence": "cluster", "heal": "settle"}  # what mode="best" means

METHODS: tuple[Method, ...] = (
    Linkage("average linkage", "average", "SciPy, cosine, 400 cuts tried"),
    Linkage("Ward linkage", "ward", "SciPy, 400 cuts tried"),
    Hdbscan(),
    Dbscan(),
    KMeans(),
    Birch(),
    Dbstream(),
    OneCentroid(),
    Linkscluster(),
    PaperLinks(),
    HealedLinks(),
    RebuiltLinks(),
)


def by_name(name: str) -> Method:
    """Return the method with this name."""
    return {method.name: method for method in METHODS}[name]
