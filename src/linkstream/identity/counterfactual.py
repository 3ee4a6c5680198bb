"""Counterfactuals: what would change the answer that a vector gets.

The clusters stay as they are; the similarity, a threshold or one subcluster changes. Other
thresholds would have led to other clusters, so this is about one vector only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from linkstream.engine.contract import Candidate, Engine, Kind
from linkstream.engine.fixed_point import dot, similarity
from linkstream.engine.forest import FULL
from linkstream.engine.linkage import Floats, Integers
from linkstream.engine.state import Fixed
from linkstream.paper.floats import quietly
from linkstream.paper.thresholds import Thresholds, anisotropic_pair_threshold

_DIGITS = 10_000  # of thresholds and similarities in sentences


@dataclass(frozen=True, slots=True)
class Judged:
    """What equation 21 was applied to: a subcluster, or a cluster if clusters are the evidence.

    Attributes:
        cluster: its ID, or that of the cluster that holds the subcluster.
        subcluster: the subcluster; None if the whole cluster was the evidence.
        mass: k, the weight of its vectors.
        similarity, threshold: of the vector to its centroid, and s~(k).
    """

    cluster: int
    subcluster: int | None
    mass: float
    similarity: float
    threshold: float

    @property
    def margin(self) -> float:
        """Similarity − threshold."""
        return self.similarity - self.threshold


@dataclass(frozen=True, slots=True)
class Asked:
    """What equation 21 is applied to: J only, or every whole cluster.

    Attributes:
        clusters, masses, similarities: one entry for each.
        subcluster: J; None if whole clusters are the evidence.
        engine, vector: to test again without a subcluster; only if whole clusters are the evidence.
    """

    thresholds: Thresholds
    clusters: Integers
    masses: Floats
    similarities: Floats
    subcluster: int | None = None
    engine: Engine | None = None
    vector: Fixed | None = None

    def best(self) -> Judged:
        """Return the entry of the greatest margin (tie: the lower ID)."""
        required = self.required(self.thresholds.cluster_similarity)
        i = int(np.argmax(self.similarities - required))
        figures = float(self.similarities[i]), float(required[i])
        return Judged(int(self.clusters[i]), self.subcluster, float(self.masses[i]), *figures)

    def required(self, t_c: float) -> Floats:
        """Return s~ with another T_c."""
        ones = np.ones_like(self.masses)
        t_p = self.thresholds.pair_similarity_max
        # a tiny T_c overflows; s~ is then 0
        return quietly(lambda: anisotropic_pair_threshold(t_c, t_p, self.masses, ones))

    def passes(self, t_c: float) -> bool:
        """Return whether equation 21 holds for any entry with another T_c."""
        return bool(np.any(self.similarities >= self.required(t_c)))


def asked(engine: Engine, vector: Fixed, ranked: Sequence[Candidate]) -> Asked:
    """Return what equation 21 is applied to for a vector."""
    if engine.cluster_evidence:
        return _of_wholes(engine, vector)
    return _of_subcluster(ranked[0], engine.thresholds)


def _of_subcluster(candidate: Candidate, thresholds: Thresholds) -> Asked:
    return Asked(
        thresholds,
        np.array([candidate.cluster]),
        np.array([_mass(candidate, thresholds)]),
        np.array([candidate.similarity]),
        candidate.subcluster,
    )


def _of_wholes(engine: Engine, vector: Fixed, without: int = -1) -> Asked:
    """Return every cluster that is left without one subcluster."""
    ids, masses, cosines = engine.wholes(vector)
    if without >= 0:
        part = engine.parts(engine.cluster_of(without))
        place, rest = np.searchsorted(ids, part.clusters[0]), part.numbers != without
        weight = part.counts[rest].sum() - part.missing_weight[rest].sum() / FULL
        masses[place] = max(weight, 1.0)
        cosines[place] = _cosine(part.sums[rest].sum(axis=0), vector)
    return Asked(engine.thresholds, ids, masses, cosines, None, engine, vector)


def _cosine(total: Integers, vector: Fixed) -> float:
    product, square = dot(total, vector.astype(np.int64)), dot(total, total)
    q = vector.astype(np.int64)
    return similarity(product, dot(q, q), square) if square else -1.0


def _mass(candidate: Candidate, thresholds: Thresholds) -> float:
    """Return the weight of a subcluster: its count, or less if some vectors weigh less."""
    c2 = thresholds.cluster_similarity**2
    slope = max(thresholds.pair_similarity_max - c2, 0.0) / (1.0 - c2)
    if not slope or thresholds.edge(candidate.count, 1) == candidate.link_threshold:
        return float(candidate.count)
    tan2 = 1.0 / c2 - 1.0
    pair_threshold = (candidate.link_threshold - c2) / slope + c2
    inverse = (1.0 / (pair_threshold * pair_threshold * (1.0 + tan2)) - 1.0) / tan2
    return 1.0 / inverse if 1.0 / candidate.count < inverse <= 1.0 else float(candidate.count)


def changes(kind: Kind, ranked: Sequence[Candidate], judged: Judged, asked: Asked) -> Iterator[str]:
    """Return sentences on what would change the answer; `judged` decided it, `ranked[0]` is J."""
    best = ranked[0]
    if kind == "joined":
        if _up(best.similarity) < 1:
            other = f"with subcluster_similarity {_up(best.similarity):.4f} or more"
            yield f"{other} it would {_linked_or_new(judged)}"
    else:
        yield from _to_join(best)
        if kind == "new":
            yield from _to_link(best, judged)
        yield from _other_t_c(asked, linked=kind == "linked")
    if kind != "new":
        yield from _without(ranked, asked, best.cluster if kind == "joined" else judged.cluster)


def _to_join(best: Candidate) -> Iterator[str]:
    missing, low = _up(best.join_threshold - best.similarity), _down(best.similarity)
    yield f"{missing:.4f} more similarity to subcluster {best.subcluster} and it would join it"
    if low > 0:
        yield f"with subcluster_similarity {low:.4f} or less it would join it"


def _to_link(best: Candidate, judged: Judged) -> Iterator[str]:
    whom = f"subcluster {best.subcluster}"
    if judged.subcluster is None:
        whom = f"the whole of cluster {judged.cluster}"
    elif judged.threshold >= best.join_threshold:
        return  # it would join before
    yield f"{_up(-judged.margin):.4f} more similarity to {whom} and it would be linked"


def _other_t_c(asked: Asked, *, linked: bool) -> Iterator[str]:
    """Return the T_c at which equation 21 would change its answer, if there is one."""
    t_c = asked.thresholds.cluster_similarity
    if linked:
        highest = math.sqrt(asked.thresholds.pair_similarity_max)
        turn = _up(_turn(asked, t_c, highest))
        if turn <= highest and turn < 1 and not asked.passes(turn):
            yield f"with cluster_similarity {turn:.4f} or more it would begin a cluster of its own"
        return
    turn = _down(_turn(asked, 0.0, t_c))
    if turn > 0 and asked.passes(turn):
        margins = asked.similarities - asked.required(turn)
        cluster = int(asked.clusters[np.argmax(margins)])
        yield f"with cluster_similarity {turn:.4f} or less it would be linked to cluster {cluster}"


def _turn(asked: Asked, low: float, high: float) -> float:
    """Return where equation 21 starts to fail, by bisection: s~ rises with T_c."""
    for _ in range(50):
        middle = (low + high) / 2
        if asked.passes(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _without(ranked: Sequence[Candidate], asked: Asked, home: int) -> Iterator[str]:
    """Yield where the vector would go without J, or else without its cluster."""
    best, rest = ranked[0], ranked[1:]
    if best.cluster == home:
        cluster, outcome = _outcome(rest, _left(best, rest, asked))
        if cluster != home:
            yield f"without subcluster {best.subcluster} it would {outcome}"
            return
    others = [candidate for candidate in ranked if candidate.cluster != home]
    _, outcome = _outcome(others, _elsewhere(home, others, asked))
    yield f"without cluster {home} it would {outcome}"


def _left(best: Candidate, rest: Sequence[Candidate], asked: Asked) -> Judged | None:
    """Return what would be tested without J."""
    if asked.engine is not None and asked.vector is not None:
        return _of_wholes(asked.engine, asked.vector, without=best.subcluster).best()
    return _of_subcluster(rest[0], asked.thresholds).best() if rest else None


def _elsewhere(home: int, others: Sequence[Candidate], asked: Asked) -> Judged | None:
    """Return what would be tested without a cluster."""
    if asked.engine is None:
        return _of_subcluster(others[0], asked.thresholds).best() if others else None
    kept = asked.clusters != home
    columns = (asked.clusters[kept], asked.masses[kept], asked.similarities[kept])
    return Asked(asked.thresholds, *columns).best() if kept.any() else None


def _outcome(ranked: Sequence[Candidate], judged: Judged | None) -> tuple[int, str]:
    """Return cluster (−1: new) and text for a vector with these nearest subclusters, if any."""
    if ranked and ranked[0].similarity >= ranked[0].join_threshold:
        first = ranked[0]
        return first.cluster, f"join subcluster {first.subcluster} of cluster {first.cluster}"
    linked = judged is not None and judged.margin >= 0
    return judged.cluster if judged and linked else -1, _linked_or_new(judged)


def _linked_or_new(judged: Judged | None) -> str:
    if judged is None or judged.margin < 0:
        return "begin a cluster of its own"
    return f"be linked to cluster {judged.cluster}"


def _up(value: float) -> float:
    """Return a number rounded up, so that a statement about it holds."""
    return math.floor(value * _DIGITS + 1) / _DIGITS


def _down(value: float) -> float:
    return math.floor(value * _DIGITS) / _DIGITS
