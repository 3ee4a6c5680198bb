"""Margins for other thresholds agree with the clusterer."""

from __future__ import annotations

import json
from dataclasses import astuple, replace

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine.comparison import edge_figures
from linkstream.engine.state import State
from linkstream.paper.thresholds import Thresholds
from linkstream.service import margin_examples, margins

T = Thresholds(0.7, 0.85, 0.8)
NOW = margins.MOVES.index(0)


class Held:
    """An object with a state."""

    def __init__(self, state):
        self.held = state

    def state(self):
        return self.held


def clustered(thresholds=T, count=500, seed=0, **options):
    """Return a clusterer with vectors of overlapping clusters."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((25, 16))
    X = centres[rng.integers(0, 25, count)] + 0.8 * rng.standard_normal((count, 16))
    links = Links(*astuple(thresholds), threads=1, **options)
    links.add_many(X / np.linalg.norm(X, axis=1, keepdims=True))
    return links


@pytest.fixture(scope="module")
def links():
    return clustered()


@pytest.fixture(scope="module")
def found(links):
    return margins.figures(links)


def failing(found, group, c=NOW, p=NOW):
    counts = found["edge"][group][c][p]
    return None if counts is None else sum(counts[: found["margin_bins"]["zero"]])


def passing(found, group, c=NOW, p=NOW):
    counts = found["edge"][group][c][p]
    return None if counts is None else sum(counts[found["margin_bins"]["zero"] :])


def test_pairs_that_pass_are_those_that_would_be_suggested(links, found):
    suggested = links.suggest_merges(margins.PAIRS)
    assert len(suggested) == found["pairs"]["shown"]
    assert passing(found, "pairs") == sum(pair.margin >= 0 for pair in suggested) > 0


def test_few_edges_fail_with_the_current_thresholds(links, found):
    edges = found["edges"]
    assert edges["total"] == edges["shown"] == len(links.state().edges) > 0
    assert failing(found, "edges") == 0


def test_changed_thresholds_give_the_margins_of_a_state_with_those_thresholds(links, found):
    moved = replace(links.state(), thresholds=Thresholds(0.75, 0.85, 0.82))
    c, p = margins.MOVES.index(0.05), margins.MOVES.index(0.02)
    similarity, threshold = edge_figures(moved)
    assert failing(found, "edges", c, p) == int((similarity < threshold).sum()) > 0


@pytest.mark.parametrize("axis", ["cluster", "pair"])
def test_higher_thresholds_fail_more_edges_and_pass_fewer_pairs(found, axis):
    steps = range(len(margins.MOVES))
    at = [(i, NOW) if axis == "cluster" else (NOW, i) for i in steps]
    fails = [n for n in (failing(found, "edges", *place) for place in at) if n is not None]
    passes = [n for n in (passing(found, "pairs", *place) for place in at) if n is not None]
    assert fails == sorted(fails)
    assert passes == sorted(passes, reverse=True)
    assert axis == "pair" or fails[0] < fails[-1]
    assert passes[0] > passes[-1]


def test_every_histogram_counts_all_examined_values(found):
    for group in ("edges", "firm", "pairs"):
        assert sum(found[group]["similarity"]) == found[group]["shown"]
        for row in found["edge"][group]:
            assert all(counts is None or sum(counts) == found[group]["shown"] for counts in row)


def test_invalid_thresholds_give_null():
    found = margins.figures(clustered(Thresholds(0.95, 0.97, 0.96)))
    assert found["edge"]["edges"][-1][NOW] is None  # T_c of 1.05
    assert found["edge"]["pairs"][NOW][0] is None  # T_p below T_c squared
    assert found["edge"]["floor"][-1] is None
    assert found["subcluster"]["merged"][-1] is None


def test_the_floor_is_the_edge_threshold_of_two_vectors(found):
    assert found["edge"]["floor"][NOW] == T.edge(1, 1)


def test_a_lower_subcluster_similarity_merges_more(found):
    merged = found["subcluster"]["merged"]
    assert merged == sorted(merged, reverse=True)
    assert merged[0] > merged[NOW]


def test_a_higher_subcluster_similarity_would_refuse_recent_joins():
    links = Links(*astuple(T), threads=1)
    decisions = [links.add([1.0, 0.0]), links.add([0.9, 0.436]), links.add([0.0, -1.0])]
    found = margins.figures(links, recent=decisions)
    assert {kind: found["recent"][kind] for kind in ("joined", "linked", "new")} == {
        "joined": 1,
        "linked": 0,
        "new": 2,
    }
    assert found["subcluster"]["unjoined"][NOW] == 0
    assert found["subcluster"]["unjoined"][-1] == 1


def test_recent_is_null_without_decisions(found):
    assert found["recent"] is None
    assert set(found["subcluster"]["unjoined"]) == {None}


def test_settled_edges_are_compared_by_their_parts():
    links = clustered(evidence="cluster")
    found = margins.figures(links)
    firm = [edge for edge in links.suggest_splits(2**31) if edge.firm]
    assert found["firm"]["total"] == len(firm) > 0
    assert failing(found, "firm") == sum(edge.margin < 0 for edge in firm)


def test_edges_of_corrections_are_counted_separately():
    links = Links(*astuple(T), threads=1)
    links.add_many(np.eye(3))
    links.same(0, 2)
    found = margins.figures(links)
    assert (found["law"], found["edges"]["total"], found["firm"]["total"]) == (1, 0, 0)


def test_the_limits_are_reported(links, monkeypatch):
    monkeypatch.setattr(margins, "EDGES", 7)
    monkeypatch.setattr(margins, "COMPARED", 5)
    monkeypatch.setattr(margins, "PAIRS", 4)
    found = margins.figures(links)
    assert (found["edges"]["shown"], found["edges"]["total"]) == (7, len(links.state().edges))
    assert (found["pairs"]["clusters"], found["pairs"]["shown"]) == (5, 4)
    biggest = sorted(links.clusters(), key=lambda cluster: (-cluster.size, cluster.id))[:5]
    best = [
        pair.margin
        for pair in links.suggest_merges(10**6)
        if set(pair.clusters) <= {cluster.id for cluster in biggest}
    ][:4]
    assert passing(found, "pairs") == sum(margin >= 0 for margin in best)


@pytest.mark.parametrize("vectors", [0, 1])
def test_a_graph_without_edges_has_figures(vectors):
    links = Links(*astuple(T), threads=1)
    links.add_many(np.eye(4)[:vectors].reshape(-1, 4))
    found = margins.figures(links)
    assert found["counts"]["subclusters"] == vectors
    assert found["edges"]["shown"] == found["pairs"]["shown"] == 0


def test_the_figures_are_plain_json(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert margins.figures(Held(State(T, 0)))["counts"]["vectors"] == 0


def moved(links, by):
    """Return the thresholds with T_c and T_p changed."""
    now = links.thresholds
    both = {"cluster_similarity": by, "pair_similarity_max": by}
    return replace(now, **{name: getattr(now, name) + change for name, change in both.items()})


@pytest.mark.parametrize("by", [-0.08, -0.04, 0.04, 0.08])
def test_examples_are_those_that_the_figures_count(links, found, by):
    place = margins.MOVES.index(by)
    state = links.state()
    joined, pairs = margin_examples.joined(state, moved(links, by), 1000)
    parted, edges = margin_examples.parted(state, moved(links, by), 1000)
    assert joined == max(0, passing(found, "pairs", place, place) - passing(found, "pairs"))
    assert parted == max(0, failing(found, "edges", place, place) - failing(found, "edges"))
    assert (len(pairs), len(edges)) == (joined, parted)
    assert all(each.similarity >= each.threshold for each in pairs)
    assert all(each.similarity < each.threshold for each in edges)


def test_the_clearest_examples_come_first(links):
    _, edges = margin_examples.parted(links.state(), moved(links, 0.1), 5)
    gaps = [each.threshold - each.similarity for each in edges]
    assert gaps == sorted(gaps, reverse=True)


def test_no_examples_without_vectors():
    state = Links(*astuple(T)).state()
    assert margin_examples.joined(state, T, 5) == (0, [])
    assert margin_examples.parted(state, T, 5) == (0, [])
