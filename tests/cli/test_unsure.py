"""accept, held and assign on a store with a model."""

from __future__ import annotations

import pytest

from cli.command import json_lines, run
from cli.test_examples import store_with_doubts


@pytest.fixture
def doubts(folder):
    store_with_doubts(folder / "people.links")
    return folder


def test_a_vector_waits_until_a_person_decides(doubts):
    (waiting,) = json_lines(run("held", "people.links", cwd=doubts).stdout)
    assert (waiting["vector"], waiting["cluster"], waiting["kind"]) == (7, 0, "linked")
    assert 0.8 < waiting["probability"] < 0.95
    told = run("held", "people.links", "--format", "text", cwd=doubts).stdout
    assert "vector 7: cluster 0, probability 0.9" in told
    assert "linkstream assign people.links 7" in told
    (done,) = json_lines(run("assign", "people.links", 7, "--new", cwd=doubts).stdout)
    assert done == {"vector": 7, "cluster": 7, "subcluster": 7}
    assert run("held", "people.links", cwd=doubts).stdout == ""
    assert run("undo", "people.links", cwd=doubts).returncode == 0
    assert len(json_lines(run("held", "people.links", cwd=doubts).stdout)) == 1


def test_without_a_probability_what_waits_is_taken(doubts):
    (policy,) = json_lines(run("accept", "people.links", cwd=doubts).stdout)
    assert policy["unsure"] == "take"
    assert run("held", "people.links", cwd=doubts).stdout == ""
    told = run("accept", "people.links", 0.9, "--unsure", "weigh", "--format", "text", cwd=doubts)
    assert told.stdout.startswith(
        "Decisions below 0.9 (new clusters: 0.9) are given a weight of 0.5"
    )


def test_a_cluster_and_new_together_are_refused(doubts):
    done = run("assign", "people.links", 7, 0, "--new", cwd=doubts)
    assert done.returncode == 2
    assert "Leave one of them out" in done.stderr
