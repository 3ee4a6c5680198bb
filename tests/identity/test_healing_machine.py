"""Verbs in any order while the engine heals: both engines agree, and corrections hold.

The model of `test_machine.py` does not heal. Here the engines are compared with each other, with
the replay of their events, and with what corrections require.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from identity.trial import POOL, crowd
from linkstream import Links, errors
from linkstream.identity.settling import Healing
from replay import Replay
from streams import ENGINES

HEALINGS = (
    Healing("settle"),
    Healing("settle", growth=1.1, steadiness=0.0),
    Healing("settle", growth=1.1, steadiness=0.0, final_after=40),
)
VERBS = {
    "add": 8,
    "add_many": 8,
    "add_group": 2,
    "same": 3,
    "different": 3,
    "move": 2,
    "name": 1,
    "remove": 2,
    "undo": 2,
    "redo": 1,
    "settle": 1,
    "save_and_load": 1,
}
LENGTH = 120  # operations of one trial


class HealedTrial:
    """Links on each engine, with one of the healings, and the replay of the events."""

    def __init__(self, seed):
        self.rng = np.random.default_rng([seed, 17])
        self.pool, thresholds = crowd(self.rng)
        options = {
            "heal": HEALINGS[self.rng.integers(len(HEALINGS))],
            "evidence": ("nearest", "cluster")[self.rng.integers(2)],
        }
        self.links = [Links(*thresholds, engine=name, threads=1, **options) for name in ENGINES]
        whole = options["evidence"] == "cluster"
        self.replay, self.counts = Replay(whole_clusters=whole), Counter()
        self.call("add_many", self.pool[:40])

    def do(self, verb):
        """Do one operation on each engine, and compare them."""
        getattr(self, verb)()
        self.counts[verb] += 1
        self.check()

    def call(self, verb, *arguments, **options):
        """Call a verb on each engine; all answer alike or refuse alike."""
        said = [answer(links, verb, *arguments, **options) for links in self.links]
        assert all(one == said[0] for one in said)

    def vectors(self, n):
        return self.rng.integers(self.links[0].n_vectors, size=n).tolist()

    def add(self):
        self.call("add", self.pool[self.rng.integers(POOL)])

    def add_many(self):
        first, size = self.rng.integers(POOL), self.rng.integers(1, 40)
        self.call("add_many", self.pool[first:][:size])

    def add_group(self):
        rows = self.rng.choice(POOL, size=3, replace=False)
        self.call("add_group", self.pool[rows])

    def same(self):
        self.call("same", *self.vectors(2))

    def different(self):
        self.call("different", *self.vectors(2))

    def move(self):
        vector, other = self.vectors(2)
        self.call("move", vector, int(self.links[0].labels()[other]))

    def name(self):
        cluster = int(self.links[0].labels()[self.vectors(1)[0]])
        self.call("name", cluster, ("Ann", "Bob", "Cid")[self.rng.integers(3)])

    def remove(self):
        self.call("remove", self.vectors(1)[0])

    def undo(self):
        self.call("undo")

    def redo(self):
        self.call("redo")

    def settle(self):
        self.call("settle", apply=True)

    def save_and_load(self):
        self.links = [
            Links.from_bytes(links.to_bytes(), engine=links.engine, threads=1)
            for links in self.links
        ]

    def check(self):
        """Check that engines and replay agree, and that what must stay apart is apart."""
        links = self.links[0]
        assert len({each.state_hash() for each in self.links}) == 1
        new = [each.events(self.replay.sequence) for each in self.links]
        assert all(events == new[0] for events in new)
        self.replay.play(new[0])
        assert self.replay.labels() == links.labels().tolist()
        links.state().check()
        cluster = self.replay.cluster
        assert all(cluster[a] != cluster[b] for a, b in links.core.requirements().barred)


def answer(links, verb, *arguments, **options):
    """Return the answer of a verb as text, or the name of its error."""
    try:
        return str(getattr(links, verb)(*arguments, **options))
    except errors.LinkstreamError as error:
        return type(error).__name__


def run_trials(seed, operations):
    """Run random trials up to a number of operations; count verbs and events."""
    rng = np.random.default_rng([seed, 18])
    odds = np.array(list(VERBS.values())) / sum(VERBS.values())
    done, kinds = Counter(), Counter()
    while sum(done.values()) < operations:
        trial = HealedTrial(int(rng.integers(10**9)))
        for verb in rng.choice(list(VERBS), p=odds, size=LENGTH):
            trial.do(str(verb))
        done += trial.counts
        kinds += trial.replay.kinds
    return done, kinds


@pytest.mark.parametrize("seed", range(2))
def test_every_verb_does_the_same_on_both_engines_while_they_heal(seed):
    done, kinds = run_trials(seed, 360)
    assert set(done) == set(VERBS)
    assert {kind for kind in ("split", "united", "undone", "same") if kinds[kind] < 5} == set()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 104))
def test_every_verb_does_the_same_on_both_engines_while_they_heal_at_length(seed):
    done, _ = run_trials(seed, 5_000)
    assert sum(done.values()) >= 5_000
