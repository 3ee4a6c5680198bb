"""Ask the functions of identity/ about a clusterer, with options of a test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkstream.clusterer import explain
from linkstream.identity import review, suggestions


def clusters_of(links, ignored=None):
    """Return the index of all clusters, read to the end, and the pairs that are kept apart."""
    index, given = links.core.running().clusters, explain.restrictions(links.core)
    if ignored is not None:
        given = replace(given, left_out=np.array(sorted(ignored), dtype=np.int64))
    assert index.read(parts=True, budget=2**62)
    index.restrict(given)
    return index, given.barred


def queue(links, limit=1, *, ignored=None, show=None):
    """Return questions; `show` picks vectors of a subcluster."""
    show = show or (lambda number: explain.shown(links.core, number))
    return review.questions(*clusters_of(links, ignored), show=show, limit=limit)


def merges(links, limit, *, ignored=None):
    """Return suggestions to join clusters."""
    engine = links.core.engine

    def nearest(one, other):
        return suggestions.nearest(engine.parts(one), engine.parts(other))

    return suggestions.merges(clusters_of(links, ignored)[0], limit, nearest)


def splits(links, limit, *, ignored=None):
    """Return suggestions to split clusters."""
    return suggestions.splits(clusters_of(links, ignored)[0], limit)
