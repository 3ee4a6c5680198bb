"""Methods that see all vectors before they answer; their labels count as settled."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.protocol import (
    CAP,
    Answer,
    Labels,
    Parameters,
    Vectors,
    along_a_line,
    middle_of_plateau,
    objective,
)
from linkstream.metrics import accuracy

Matrix = npt.NDArray[np.float64]

CUTS = 400
CORES = (1, 2, 4, 8)  # vectors that make a place dense
SIZES = (2, 3, 5, 10, 20, 40)  # the smallest cluster of HDBSCAN


def distances(X: Vectors) -> Matrix:
    """Return 1 − cosine of all pairs, at least 0, and 0 on the diagonal."""
    apart = np.maximum(1.0 - (X @ X.T).astype(np.float64), 0.0)
    np.fill_diagonal(apart, 0.0)
    return apart


def alone(labels: Labels) -> Labels:
    """Turn noise (−1) into clusters of one, which favours the method: some identities come once."""
    free = labels.max(initial=-1) + 1
    return np.where(labels == -1, free + np.arange(len(labels)), labels)


@dataclass(frozen=True, slots=True)
class Linkage:
    """Hierarchical clustering of SciPy, cut at one height."""

    name: str
    criterion: str
    note: str
    ordered: bool = False
    cap: int = CAP

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Return the height with the most accurate clusters, of evenly spaced ones."""
        from scipy.cluster.hierarchy import fcluster

        tree = self._tree(X)
        heights = np.linspace(0.0, tree[:, 2].max(), CUTS + 1)[1:].tolist()
        scores = [accuracy(y, fcluster(tree, height, "distance")) for height in heights]
        return {"cut": middle_of_plateau(heights, scores)}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return the clusters below the height."""
        from scipy.cluster.hierarchy import fcluster

        return {"settled": fcluster(self._tree(X), parameters["cut"], "distance")}

    def _tree(self, X: Vectors) -> Matrix:
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        apart = squareform(distances(X), checks=False)
        # Ward's sums of squares want Euclidean distances: |a − b|² = 2 (1 − cosine).
        return linkage(np.sqrt(2 * apart) if self.criterion == "ward" else apart, self.criterion)


@dataclass(frozen=True, slots=True)
class Hdbscan:
    """HDBSCAN of the package hdbscan, on cosine distances.

    Not scikit-learn's: with NumPy 2.4 that of version 1.9 fails wherever epsilon has an effect.
    """

    name: str = "HDBSCAN"
    note: str = (
        "package hdbscan, cosine; smallest cluster and core size over a grid of 24, then epsilon "
        "for the best three; noise counts as clusters of one"
    )
    ordered: bool = False
    cap: int = CAP

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Tune the sizes, then the distance below which clusters are not split."""
        apart = distances(X)

        def score(size: int, core: int, epsilon: float) -> float:
            return accuracy(y, self._labels(apart, size, core, epsilon))

        pairs = [pair for pair in product(SIZES, CORES) if max(pair) < len(y)]
        pairs = sorted(pairs, key=lambda pair: -score(pair[0], pair[1], 0.0))[:3]
        grid = [0.0, *np.linspace(0.05, 0.75, 15).tolist()]
        found = []
        for size, core in pairs:
            scores = [score(size, core, epsilon) for epsilon in grid]
            found.append((max(scores), size, core, middle_of_plateau(grid, scores)))
        _, size, core, epsilon = max(found, key=lambda kept: kept[0])
        return {"min_cluster_size": size, "min_samples": core, "epsilon": epsilon}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return the clusters of the chosen density."""
        size, core = int(parameters["min_cluster_size"]), int(parameters["min_samples"])
        return {"settled": self._labels(distances(X), size, core, parameters["epsilon"])}

    def probabilities(self, X: Vectors, parameters: Parameters) -> npt.NDArray[np.float64]:
        """Return how strongly each vector belongs to its cluster; 0 for noise."""
        size, core = int(parameters["min_cluster_size"]), int(parameters["min_samples"])
        fitted = self._fitted(distances(X), size, core, parameters["epsilon"])
        told: npt.NDArray[np.float64] = fitted.probabilities_
        return told

    def _labels(self, apart: Matrix, size: int, core: int, epsilon: float) -> Labels:
        return alone(self._fitted(apart, size, core, epsilon).labels_)

    def _fitted(self, apart: Matrix, size: int, core: int, epsilon: float) -> Any:
        from hdbscan import HDBSCAN

        made = HDBSCAN(
            min_cluster_size=size,
            min_samples=core,
            cluster_selection_epsilon=epsilon,
            metric="precomputed",
        )
        return made.fit(apart)


@dataclass(frozen=True, slots=True)
class Dbscan:
    """DBSCAN of scikit-learn on cosine distances."""

    name: str = "DBSCAN"
    note: str = "radius tuned for each of four core sizes; noise counts as clusters of one"
    ordered: bool = False
    cap: int = CAP

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Tune the radius for each core size, and return the best pair."""
        apart = distances(X)
        found = []
        for core in CORES:

            def score(reach: float, core: int = core) -> float:
                return accuracy(y, self._labels(apart, reach, core))

            reach = along_a_line(score, np.linspace(0.03, 0.75, 13).tolist())
            found.append((score(reach), reach, core))
        _, reach, core = max(found, key=lambda kept: kept[0])
        return {"eps": reach, "min_samples": core}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return the clusters of the chosen density."""
        core = int(parameters["min_samples"])
        return {"settled": self._labels(distances(X), parameters["eps"], core)}

    def _labels(self, apart: Matrix, reach: float, core: int) -> Labels:
        from sklearn.cluster import DBSCAN

        made = DBSCAN(eps=reach, min_samples=core, metric="precomputed")
        return alone(made.fit_predict(apart))


@dataclass(frozen=True, slots=True)
class KMeans:
    """MiniBatchKMeans of scikit-learn, with a tuned number of clusters per vector."""

    name: str = "MiniBatchKMeans"
    note: str = (
        "needs the number of clusters: tuned as clusters per vector, which helps it if both "
        "halves have similar identities"
    )
    ordered: bool = True
    cap: int = CAP

    def tune(self, X: Vectors, y: Labels) -> Parameters:
        """Tune the number of clusters per vector, in equal ratios and then finer."""

        def score(exponent: float) -> float:
            return objective(self.run(X, {"clusters_a_vector": 2.0**exponent}), y)

        lowest = np.log2(2 / len(X))
        grid = np.arange(-1.0, lowest, -1.0)[::-1].tolist()
        return {"clusters_a_vector": 2.0 ** along_a_line(score, [lowest, *grid])}

    def run(self, X: Vectors, parameters: Parameters) -> Answer:
        """Return clusters, their number by the ratio."""
        from sklearn.cluster import MiniBatchKMeans

        k = min(max(round(parameters["clusters_a_vector"] * len(X)), 1), len(X))
        return {"settled": MiniBatchKMeans(k, n_init=1, random_state=0).fit(X).labels_}
