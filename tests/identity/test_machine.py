"""All verbs of Links in any order, on both engines, against a naive model (model.py).

After each operation (trial.py): the engines have one hash; labels, edges with their rules,
cluster IDs, sums and events are the model's; replaying the events gives the same map; no
constraint is violated; no ID is used again. Refused operations change nothing, undo restores the
hash, redo brings back what undo took, a snapshot goes on as if nothing had happened.

Hypothesis drives the verbs to find the smallest failure; a plain random generator drives the same
verbs for the bulk. Together at least 2,900 operations here and 200,000 in the long form.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from identity.trial import LARGEST, VERBS, Trial, corners, crowd
from linkstream import Links
from linkstream.errors import ArgumentError
from linkstream.identity.settling import Healing
from replay import Replay
from streams import ENGINES

numbers = st.tuples(*[st.integers(0, LARGEST - 1)] * 4)


def rule_of(verb):
    @rule(numbers=numbers)
    def operate(self, numbers):
        self.trial.do(verb, numbers)
        type(self).operations += 1

    operate.__name__ = verb
    return operate


class IdentityMachine(RuleBasedStateMachine):
    """A rule for each verb; the trial compares and checks after each operation."""

    operations = 0

    @initialize(seed=st.integers(0, 10**6), size=st.integers(0, 7))
    def begin(self, seed, size):
        self.trial = Trial(seed)
        self.trial.do("add_many", (0, size, 0, 0))


for _verb in VERBS:
    setattr(IdentityMachine, _verb, rule_of(_verb))


def run_trials(seed, operations):
    """Run random trials up to a number of operations; count verbs and events."""
    rng = np.random.default_rng([seed, 5])
    verbs, odds = list(VERBS), np.array(list(VERBS.values())) / sum(VERBS.values())
    done, kinds = Counter(), Counter()
    while done["operations"] < operations:
        trial = Trial(int(rng.integers(10**9)))
        trial.do("add_many", (0, 15, 0, 0))
        for _ in range(rng.choice([20, 40, 40, 100])):
            verb = verbs[rng.choice(len(verbs), p=odds)]
            trial.do(verb, rng.integers(LARGEST, size=4).tolist())
            done["operations"] += 1
        done += trial.counts
        kinds += trial.replay.kinds
    return done, kinds


@pytest.mark.parametrize("examples", [30, pytest.param(60, marks=pytest.mark.long)])
def test_the_smallest_failure_is_found_by_hypothesis(examples):
    class Machine(IdentityMachine):
        pass

    Machine.TestCase.settings = settings(
        max_examples=examples, stateful_step_count=30, deadline=None, print_blob=True
    )
    Machine.TestCase().runTest()
    assert Machine.operations >= 400


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))]
)
def test_every_verb_on_both_engines_does_what_the_naive_model_does(seed):
    done, kinds = run_trials(seed, 1_250)
    assert done["operations"] >= 1_250
    assert {verb for verb in VERBS if done[verb] < 8} == set()
    refused = ("same", "different", "move", "name", "remove", "undo", "redo")
    assert {verb for verb in refused if not done[f"{verb} refused"]} == set()
    # Each kind of event must have come, so that nothing passes for want of anything to compare.
    least = {"merged": 15, "severed": 60, "split": 60, "vanished": 60, "tied": 20, "retied": 2}
    least |= {"moved": 30, "united": 15, "held": 20, "flagged": 40, "undone": 30, "forgotten": 20}
    least |= {"redone": 30}
    assert {kind for kind in least if kinds[kind] < least[kind]} == set()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_every_verb_on_both_engines_does_what_the_naive_model_does_at_length(seed):
    done, _ = run_trials(seed, 5_000)
    assert done["operations"] >= 5_000


def test_moves_and_joins_among_wide_clouds_do_what_the_naive_model_does():
    """Wide clouds, where a vector that joins a subcluster often makes the cluster split."""
    rng = np.random.default_rng(12)
    verbs = ["move_where_it_joins"] * 5 + ["join_after_moving", "add_many", "undo_and_redo", "same"]
    done = Counter()
    for seed in range(20):
        trial = Trial(seed, corners)
        for row in (0, 7):
            trial.do("add_many", (row, 7, 0, 0))
        for verb in rng.choice(verbs, size=12):
            trial.do(str(verb), rng.integers(LARGEST, size=4).tolist())
        done += trial.counts
    assert done["moved alone"] >= 3
    assert done["join_after_moving"] >= 10


@pytest.mark.parametrize("seed", range(6))
def test_healing_keeps_corrections_and_both_engines_heal_alike(seed):
    """Without the model: check only the constraints of the corrected vectors."""
    rng = np.random.default_rng([seed, 9])
    pool, thresholds = crowd(rng)
    heal = Healing(("join", "settle")[seed % 2], first=8, growth=1.1, min_size=2)
    both = [Links(*thresholds, engine=name, threads=1, heal=heal) for name in ENGINES]
    said = {"same": [], "different": []}
    for x in np.concatenate([pool, pool[::-1]]):
        for links in both:
            links.add(x)
        n = both[0].n_vectors
        verb, a, b = str(rng.choice(list(said))), *rng.integers(n, size=2).tolist()
        try:
            for links in both:
                getattr(links, verb)(a, b)
            said[verb].append((a, b))
        except ArgumentError:
            assert both[0].events()[-1].kind not in said
        labels = both[0].labels()
        assert both[0].state_hash() == both[-1].state_hash()
        assert all(labels[a] == labels[b] for a, b in said["same"])
        assert all(labels[a] != labels[b] for a, b in said["different"])
    replay = Replay(both[0].events())
    assert replay.labels() == both[0].labels().tolist()
    assert replay.kinds["united"] > 5 or heal.mode == "join"


@pytest.mark.parametrize("seed", [1218, 276, 117, *range(20)])
def test_prototypes_stay_in_the_cluster_of_their_name_after_splits(seed):
    rng = np.random.default_rng(seed)
    pool, thresholds = crowd(rng)
    n = int(rng.integers(3, 14))
    for engine in ENGINES:
        links = Links(*thresholds, engine=engine, threads=1)
        links.add_many(pool[:n])
        largest = max(links.clusters(), key=lambda view: view.size)
        links.name(largest.id, "Ann")
        for rows in (slice(n, n + 1), slice(n + 1, n + 4)):
            cluster = links.enrol("Ann", pool[rows])
            assert [view.id for view in links.clusters() if view.name == "Ann"] == [cluster]
            assert set(links.labels()[rows].tolist()) == {cluster}


@pytest.mark.parametrize("seed", range(6))
def test_tracking_vectors_does_not_change_the_clusters(seed):
    rng = np.random.default_rng([seed, 10])
    pool, thresholds = crowd(rng)
    pairs = [(name, tracked) for name in ENGINES for tracked in (True, False)]
    all_of_them = [
        Links(*thresholds, engine=name, threads=1, track_vectors=tracked, max_subclusters=20)
        for name, tracked in pairs
    ]
    for _ in range(60):
        verb, arguments, options = told(rng, pool, all_of_them[0])
        answers = [attempt(links, verb, arguments, options) for links in all_of_them]
        assert all(answer == answers[0] for answer in answers)
        states = [links.state() for links in all_of_them]
        for name in (
            "numbers",
            "clusters",
            "counts",
            "sums",
            "edges",
            "edge_rules",
            "missing_weight",
            "flags",
        ):
            first = getattr(states[0], name)
            assert all(np.array_equal(getattr(state, name), first) for state in states)
        if rng.random() < 0.1:
            all_of_them = [
                Links.from_bytes(links.to_bytes(), engine=links.engine, threads=1)
                for links in all_of_them
            ]


def told(rng, pool, links):
    """Return a verb that needs no vector number, with arguments."""
    X = pool[rng.integers(len(pool)) :][: rng.integers(1, 5)]
    clusters, nodes = [view.id for view in links.clusters()], links.state().numbers.tolist()
    if not clusters or rng.random() < 0.5:
        name = str(rng.choice(["add_many", "add_group", "enrol"]))
        return name, (X,) if name != "enrol" else (f"n{rng.integers(3)}", X), {}
    of, numbers = [("clusters", clusters), ("subclusters", nodes)][rng.integers(2)]
    a, b = rng.choice(numbers, size=2).tolist()
    c = int(rng.choice(clusters))
    return [
        ("same", (a, b), {"of": of}),
        ("different", (a, b), {"of": of}),
        ("rename", (c, f"n{rng.integers(3)}"), {}),
        ("ignore", (c,), {}),
        ("forget", (c,), {}),
        ("settle", (True,), {}),
    ][rng.choice(6, p=[0.3, 0.3, 0.15, 0.05, 0.1, 0.1])]


def attempt(links, verb, arguments, options):
    try:
        answer = getattr(links, verb)(*arguments, **options)
    except ArgumentError as refused:
        return type(refused).__name__
    return answer.tolist() if hasattr(answer, "tolist") else answer
