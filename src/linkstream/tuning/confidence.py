"""Fit a model of confidence to labelled vectors: which decisions were right, at what margin."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Examples, Model, Pairs
from linkstream.engine.contract import NEW
from linkstream.tuning.candidates import Candidate, Labels, Vectors

Rows = npt.NDArray[np.int64]
PAIRS = 300  # of clusters, of each order of arrival


def fit_confidence(
    candidate: Candidate, X: Vectors, y: Labels, orders: Iterable[Rows], *, engine: str = "auto"
) -> Model:
    """Return the model of a candidate, from its decisions in several orders of arrival.

    Args:
        candidate: thresholds, space and options of the clusterer.
        X: vectors.
        y: the identity of each vector, whole numbers from 0.
        orders: the orders of arrival.
        engine: as for `Links`.
    """
    runs, found = [], []
    for rows in orders:
        links = candidate.links(engine=engine, threads=1)
        runs.append(judged(links, X[rows], y[rows]))
        found.append(pairs(links, y[rows]))
    return Model.fit(Examples.joined(runs), Pairs.joined(found), setting(links.core))


def pairs(links: Links, y: Labels) -> Pairs:
    """Return the pairs of clusters that `suggest_merges` puts first, and which are one identity.

    Args:
        links: a clusterer that has the vectors.
        y: the identity of each vector, whole numbers from 0.
    """
    suggested = links.suggest_merges(limit=PAIRS)
    who = {cluster: _majority(links, cluster, len(y), y) for cluster in np.unique(links.labels())}
    same = [who[each.clusters[0]] == who[each.clusters[1]] for each in suggested]
    margin = np.array([each.margin for each in suggested])
    smaller = np.array([min(each.sizes) for each in suggested], dtype=np.int64)
    return Pairs(margin, smaller, np.array(same, dtype=bool))


def judged(links: Links, X: Vectors, y: Labels) -> Examples:
    """Add vectors of known identities to an empty clusterer; tell which decisions were right.

    A decision to join or to link is right if the vector's identity has the most vectors of the
    cluster that the vector is then in, itself left out; of equals the one that came first. A new
    cluster is right if the identity was not seen before.

    Args:
        links: the clusterer.
        X: vectors in order of arrival.
        y: the identity of each vector, whole numbers from 0.
    """
    links.confidence.set_margins(True)
    n, seen = len(X), np.zeros(int(y.max(initial=0)) + 1, dtype=bool)
    kind, margin = np.empty(n, dtype=np.int8), np.empty(n)
    right = np.empty(n, dtype=bool)
    for i in range(n):
        decisions = links.decide_many(X[i : i + 1])
        kind[i], margin[i] = decisions.kind[0], decisions.cluster_margin[0]
        if kind[i] == NEW:
            right[i] = not seen[y[i]]
        else:
            cluster = links.resolve(int(decisions.cluster[0]))  # healing may have joined it
            right[i] = _majority(links, cluster, i, y) == y[i]
        seen[y[i]] = True
    return Examples(kind, margin, right, int(seen.sum()))


def _majority(links: Links, cluster: int, before: int, y: Labels) -> int:
    """Return the identity of most vectors of a cluster that came before one; −1 if none did."""
    members = links.core.running().members(cluster, before, before)
    if not len(members):
        return -1
    counts = np.bincount(y[members])
    most = np.flatnonzero(counts == counts.max())
    if len(most) == 1:
        return int(most[0])
    first = [members[y[members] == identity].min() for identity in most]
    return int(most[int(np.argmin(first))])
