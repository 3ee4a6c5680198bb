"""Other libraries, measured on the same data in the same run; missing ones are reported.

There are clusterers, which cluster a stream, and searchers, which only find the nearest row of a
table. A searcher does a part of the work of linkstream: it does not join, link, sever or store.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import THREADS, Thresholds, Vectors

Found = npt.NDArray[np.int64]

QUERIES_A_BLOCK = 256
EFFORTS = (16, 32, 64, 128, 256)  # how many candidates a graph search keeps
RECALL_WANTED = 0.99
NEIGHBOURS, BUILD_EFFORT = 16, 100  # of the graphs


# Clusterers


@dataclass(frozen=True)
class Thousands:
    """The best seconds of each thousand vectors over several passes, and the subclusters found."""

    seconds: tuple[float, ...]
    passes: int
    n_subclusters: int

    @property
    def whole_rate(self) -> float:
        """Vectors per second of the whole stream."""
        return 1_000 * len(self.seconds) / sum(self.seconds)

    @property
    def last_rate(self) -> float:
        """Vectors per second of the last thousand."""
        return 1_000 / self.seconds[-1]


def linkscluster_best(
    vectors: Vectors, thresholds: Thresholds, *, threads: tuple[int, ...]
) -> Thousands:
    """Measure linkscluster, with one pass for each number of threads.

    On a shared machine, products of NumPy slow down up to tenfold for seconds if one of their two
    threads loses its core. Most passes of half a minute are affected, so each thousand counts at
    its best pass, with two threads or with one.
    """
    passes = [linkscluster_pass(vectors, thresholds, threads=count) for count in threads]
    best = tuple(min(seconds) for seconds in zip(*(one.seconds for one in passes), strict=True))
    return Thousands(best, len(passes), passes[0].n_subclusters)


def linkscluster_pass(vectors: Vectors, thresholds: Thresholds, *, threads: int) -> Thousands:
    """Measure one pass over the stream, one call per vector."""
    from linkscluster import LinksClusterer
    from threadpoolctl import threadpool_limits

    peer = LinksClusterer(*thresholds)
    seconds: list[float] = []
    with threadpool_limits(threads):
        for first in range(0, len(vectors), 1_000):
            begin = time.perf_counter()
            for vector in vectors[first : first + 1_000]:
                peer.predict_next(vector)
            seconds.append(time.perf_counter() - begin)
    return Thousands(tuple(seconds), 1, peer.n_subclusters_)


def birch(vectors: Vectors) -> int:
    """Run Birch of scikit-learn without its global step; return the number of clusters."""
    from sklearn.cluster import Birch

    # Radius of a subcluster: vectors at cosine .9 to their centre lie at distance .45.
    return len(Birch(threshold=0.5, n_clusters=None).partial_fit(vectors).subcluster_centers_)


def dbstream(rows: list[dict[int, float]]) -> int:
    """Run DBSTREAM of river, one dictionary per vector; return the number of micro-clusters."""
    from river.cluster import DBSTREAM

    peer = DBSTREAM(clustering_threshold=0.6, cleanup_interval=1_000)
    for row in rows:
        peer.learn_one(row)
    return len(peer.micro_clusters)


def as_dictionaries(vectors: Vectors) -> list[dict[int, float]]:
    """Return vectors as dictionaries for river."""
    return [dict(enumerate(row)) for row in vectors.tolist()]


# Searchers


@dataclass
class Searcher:
    """A search for the nearest row; `set_effort` is None if the search is exact."""

    find: Callable[[Vectors], Found]
    set_effort: Callable[[int], None] | None = None


def numpy_matrix_vector(table: Vectors) -> Searcher:
    """Search with one product and one argmax per vector."""
    return Searcher(lambda queries: np.array([int(np.argmax(table @ q)) for q in queries]))


def numpy_matrix_matrix(table: Vectors) -> Searcher:
    """Search with one product and one argmax per block."""
    columns = table.T

    def find(queries: Vectors) -> Found:
        starts = range(0, len(queries), QUERIES_A_BLOCK)
        blocks = [queries[i : i + QUERIES_A_BLOCK] @ columns for i in starts]
        return np.concatenate([block.argmax(axis=1) for block in blocks])

    return Searcher(find)


def faiss_flat(table: Vectors) -> Searcher:
    """Search with faiss, exactly, by inner product."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexFlatIP(table.shape[1])
    index.add(table)
    return Searcher(lambda queries: index.search(queries, 1)[1][:, 0])


def faiss_hnsw(table: Vectors) -> Searcher:
    """Search with the graph of faiss."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexHNSWFlat(table.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = BUILD_EFFORT
    index.add(table)

    def set_effort(effort: int) -> None:
        index.hnsw.efSearch = effort

    return Searcher(lambda queries: index.search(queries, 1)[1][:, 0], set_effort)


def hnswlib_graph(table: Vectors) -> Searcher:
    """Search with hnswlib."""
    import hnswlib

    index = hnswlib.Index("ip", table.shape[1])
    index.init_index(len(table), M=NEIGHBOURS, ef_construction=BUILD_EFFORT)
    index.set_num_threads(THREADS)
    index.add_items(table)
    return Searcher(lambda queries: index.knn_query(queries, 1)[0][:, 0], index.set_ef)


def usearch_graph(table: Vectors) -> Searcher:
    """Search with usearch in float32."""
    from usearch.index import Index

    index = Index(
        ndim=table.shape[1],
        metric="ip",
        dtype="f32",
        connectivity=NEIGHBOURS,
        expansion_add=BUILD_EFFORT,
    )
    index.add(np.arange(len(table)), table, threads=THREADS)

    def set_effort(effort: int) -> None:
        index.expansion_search = effort

    return Searcher(lambda q: index.search(q, 1, threads=THREADS).keys[:, 0], set_effort)


EXACT = {"NumPy matrix–matrix": numpy_matrix_matrix, "faiss flat": faiss_flat}
GRAPHS = {"faiss HNSW": faiss_hnsw, "hnswlib": hnswlib_graph, "usearch": usearch_graph}


def lowest_effort(searcher: Searcher, queries: Vectors, truth: Found) -> tuple[int, float]:
    """Set the least effort with the wanted recall, or the greatest; return effort and recall."""
    assert searcher.set_effort is not None
    for effort in EFFORTS:
        searcher.set_effort(effort)
        recall = float(np.mean(searcher.find(queries).astype(np.int64) == truth))
        if recall >= RECALL_WANTED:
            break
    return effort, recall
