"""Histories and the makers of edges from all events, one by one: what the index must agree with."""

from __future__ import annotations

import itertools

from linkstream.engine import events as kinds
from linkstream.identity import timeline

MAKERS = kinds.Linked, kinds.Rejoined, kinds.United, kinds.Tied, kinds.Retied, kinds.Moved


def history(log, cluster):
    return timeline.history_of(cluster, timeline.standing(log))


def makers(log):
    """Return the event that last made each edge; each merge renames all edges."""
    made = {}
    for event in timeline.standing(log):
        if isinstance(event, MAKERS) and event.partner >= 0:
            a, b = sorted((event.subcluster, event.partner))
            made[a, b] = event.sequence
        elif isinstance(event, kinds.Merged):
            made = _renamed(made, event.absorbed, event.subcluster)
        elif isinstance(event, kinds.Vanished) and event.heir >= 0:
            made = _renamed(made, event.subcluster, event.heir)
    return made


def _renamed(made, absorbed, survivor):
    moved = {}
    for edge, sequence in made.items():
        ends = sorted(survivor if end == absorbed else end for end in edge)
        if ends[0] != ends[1]:
            moved[ends[0], ends[1]] = sequence
    return moved


def check_histories(asked, log):
    """Compare the histories of all clusters that a clusterer or store ever had."""
    named = {getattr(event, name, -1) for event in log for name in ("cluster", "new_cluster")}
    for cluster in sorted(named - {-1}):
        assert asked.history(cluster) == history(log, cluster)


def check_paths(asked, log):
    """Compare the makers of the edges between neighbours among the subclusters of each cluster."""
    made = makers(log)
    for cluster in asked.clusters():
        for a, b in itertools.pairwise(cluster.subclusters):
            for step in asked.explain_pair(a, b, of="subclusters").steps:
                assert step.made == made.get(tuple(sorted(step.subclusters)))
