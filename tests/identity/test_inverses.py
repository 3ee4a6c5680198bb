"""Undo by what was kept of a change is undo by the event log, and both cost what they touch."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.clusterer import adding
from linkstream.clusterer.inverses import Inverses
from linkstream.engine.native import NativeEngine
from linkstream.errors import LinkstreamError
from linkstream.identity.lawbook import LawBook
from linkstream.store import Store
from streams import ENGINES, around, unit

engines = pytest.mark.parametrize("engine", ENGINES)
native = pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core")

THRESHOLDS = (0.7, 0.85, 0.8)
MODES = {"paper": {}, "best": {"mode": "best"}, "whole": {"evidence": "cluster"}}
VERBS = {
    "add": 3,
    "add_one": 2,
    "add_many": 4,
    "add_weighted": 3,
    "add_to_group": 2,
    "add_group": 2,
    "enrol": 2,
    "same": 4,
    "different": 4,
    "move": 5,
    "name": 2,
    "retract": 2,
    "remove": 4,
    "forget": 1,
    "settle": 1,
    "undo": 10,
    "undo_to": 3,
    "redo": 3,
}


@pytest.fixture(autouse=True)
def _small_batches_are_kept(monkeypatch):
    monkeypatch.setattr(adding, "_KEPT_ROWS", 0)


def crowd(rng, n, d=8, people=5, cosine=0.85):
    """Return vectors of people whose clusters begin as fragments and overlap a little."""
    centres = unit(rng.standard_normal((people, d)))
    return around(rng, centres[rng.integers(people, size=n)], cosine).astype(np.float32)


class Twins:
    """Clusterers that do the same; the second one undoes by the event log alone."""

    def __init__(self, monkeypatch, seed, **options):
        self.rng = np.random.default_rng(seed)
        self.X = crowd(self.rng, 400)
        self.links = [Links(*THRESHOLDS, **options) for _ in range(2)]
        self.folding, self.taken_back, undone = self.links[1].core.inverses, 0, Inverses.undone

        def counted(inverses, engine, to):
            found = [] if inverses is self.folding else undone(inverses, engine, to)
            self.taken_back += bool(found)
            return found

        monkeypatch.setattr(Inverses, "undone", counted)
        self.do("add_many", self.X[:60])

    def do(self, verb, *arguments, **options):
        """Call a verb on both; return whether it was refused."""
        ends = []
        for links in self.links:
            with contextlib.suppress(LinkstreamError):
                getattr(links, verb)(*arguments, **options)
                ends.append(links)
        assert len(ends) in (0, 2), "one refused what the other did"
        self.check()
        return not ends

    def check(self):
        one, other = self.links
        assert one.state_hash() == other.state_hash()
        assert one.events()[-40:] == other.events()[-40:]
        assert one.corrections() == other.corrections()
        states = [links.state().arrays() for links in self.links]
        for name, array in states[0].items():
            np.testing.assert_array_equal(array, states[1][name], err_msg=name)
        np.testing.assert_array_equal(one.labels(), other.labels())

    def some(self, n=1):
        return [int(each) for each in self.rng.integers(self.links[0].n_vectors, size=n)]

    def cluster(self):
        labels = self.links[0].labels()
        return int(self.rng.choice(labels[labels >= 0]))

    def any(self, verb):
        """Call a verb with arguments drawn at random."""
        rng, (a, b) = self.rng, self.some(2)
        corrections = self.links[0].corrections()
        given = {
            "add": lambda: self.do("add_many", self.X[rng.integers(len(self.X), size=1 + a % 40)]),
            "add_one": lambda: self.do("add", self.X[a % 99]),
            "add_many": lambda: self.do("add_many", self.X[[a % 99]]),
            "add_weighted": lambda: self.do(
                "add_many", self.X[[a % 99]], weight=[0.25 + b % 3 / 4]
            ),
            "add_to_group": lambda: self.do("add_many", self.X[[a % 99]], group=f"g{b % 5}"),
            "add_group": lambda: self.do("add_group", self.X[rng.integers(len(self.X), size=2)]),
            "enrol": lambda: self.do("enrol", f"p{a % 4}", self.X[[a % 99]], locked=bool(b % 2)),
            "same": lambda: self.do("same", a, b),
            "different": lambda: self.do("different", a, b),
            "move": lambda: self.do("move", a, self.cluster()),
            "name": lambda: self.do("name", self.cluster(), f"name {a}", claim=bool(b % 2)),
            "retract": lambda: self.do("retract", corrections[-1].number if corrections else 0),
            "remove": lambda: self.do("remove", a),
            "forget": lambda: self.do("forget", self.cluster()),
            "settle": lambda: self.do("settle", apply=True),
            "undo": lambda: self.do("undo"),
            "undo_to": lambda: self.do("undo", to=len(self.links[0].events()) - 1 - a % 40),
            "redo": lambda: self.do("redo"),
        }
        return given[verb]()


@engines
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 9))]
)
def test_undo_by_inverse_is_undo_by_folding(monkeypatch, engine, mode, seed):
    twins = Twins(monkeypatch, seed, engine=engine, **MODES[mode])
    odds = np.array([*VERBS.values()]) / sum(VERBS.values())
    for verb in twins.rng.choice([*VERBS], size=120, p=odds).tolist():
        twins.any(verb)
    assert twins.taken_back > 8
    twins.do("add_many", twins.X[100:200])


@engines
def test_several_changes_are_taken_back_one_by_one_and_at_once(monkeypatch, engine):
    for at_once in (False, True):
        twins = Twins(monkeypatch, 3, engine=engine)
        before, first = twins.links[0].state_hash(), len(twins.links[0].events())
        done = sum(not twins.any(verb) for verb in ["same", "move", "remove", "different"] * 3)
        assert len(twins.links[0].core.inverses) == done
        for _ in range(1 if at_once else done):
            twins.do("undo", **({"to": first} if at_once else {}))
        assert twins.links[0].state_hash() == before
        assert twins.taken_back == (1 if at_once else done)
        twins.do("redo")
        twins.do("add_many", twins.X[100:200])


@engines
def test_what_was_undone_is_undone_after_save_and_load(engine):
    rng = np.random.default_rng(4)
    links = Links(*THRESHOLDS, engine=engine)
    links.add_many(crowd(rng, 60))
    before = links.state_hash()
    links.remove(3)
    again = Links.from_bytes(links.to_bytes(), engine=engine)
    for each in (links, again):
        each.undo()
        assert each.state_hash() == before
    assert links.to_bytes() == again.to_bytes()


@engines
@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_batches_are_taken_back_one_by_one_and_at_once(monkeypatch, engine, mode, read):
    twins = Twins(monkeypatch, 5, engine=engine, **MODES[mode])
    links = twins.links[0]
    hashes, first = [], []
    for n in (40, 1, 60):
        hashes.append(links.state_hash())
        first.append(links.core.running().n_events)
        for each in twins.links:
            each.add_many(twins.X[100 : 100 + n])
            if read:
                each.clusters()
    for place in (2, 1):
        twins.do("undo", to=first[place])
        assert links.state_hash() == hashes[place]
    twins.do("redo")
    twins.do("redo")
    twins.do("undo", to=first[0])
    assert links.state_hash() == hashes[0]
    assert twins.taken_back == 2
    twins.do("add_many", twins.X[200:300])


@engines
def test_one_vector_of_a_batch_is_undone_alone(monkeypatch, engine):
    twins = Twins(monkeypatch, 6, engine=engine)
    hashes = [twins.links[0].state_hash()]
    for x in twins.X[100:103]:
        twins.do("add_many", x[np.newaxis])
        hashes.append(twins.links[0].state_hash())
    twins.do("undo", to=int(twins.links[0].events()[-1].sequence))
    twins.do("add_many", twins.X[102:105])
    twins.do("undo")
    twins.do("undo")
    assert twins.links[0].state_hash() == hashes[3]


@engines
def test_a_change_that_begins_with_a_consequence_is_undone_with_the_one_before(monkeypatch, engine):
    twins = Twins(monkeypatch, 7, engine=engine)
    before, cluster = twins.links[0].state_hash(), twins.cluster()
    twins.do("name", cluster, "somebody")
    twins.do("name", cluster, "somebody", claim=True)
    twins.do("undo")
    assert twins.links[0].state_hash() == before
    assert twins.links[0].core.ledger.names == {}


@native
def test_a_batch_that_changes_much_is_not_kept():
    X = unit(np.random.default_rng(8).standard_normal((4_500, 512))).astype(np.float32)
    links = Links(0.7, 0.8, 0.8)
    links.add(X[0])
    links.add_many(X)
    assert links.core.running().n_kept == 1
    links.add_many(X)  # 4,500 sums of 4 KiB; half of 32 MiB is the most
    assert links.core.running().n_kept == 0


@native
def test_what_is_kept_stays_within_a_bound_and_has_the_newest_batch():
    X = unit(np.random.default_rng(9).standard_normal((400, 2048))).astype(np.float32)
    links = Links(0.7, 0.8, 0.8)
    links.add_many(X)
    kept = []
    for _ in range(12):
        before, first = links.state_hash(), links.core.running().n_events
        links.add_many(X)  # 400 sums of 16 KiB
        kept.append(links.core.running().n_kept)
    assert min(kept) == 1
    assert max(kept) == 2
    assert links.core.inverses.beginning_at(links.core.running(), first)
    links.undo(to=first)
    assert links.state_hash() == before


@engines
def test_a_batch_without_memory_for_its_inverse_is_added(monkeypatch, engine):
    twins = Twins(monkeypatch, 10, engine=engine, mode="best")
    twins.do("name", twins.cluster(), "somebody")

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(Inverses, "add", fails)
    twins.do("add_many", twins.X[100:120])
    twins.do("add_many", twins.X[120:140], group="seen")
    assert twins.links[0].core.running().n_kept == 0
    monkeypatch.undo()
    twins.do("undo")
    twins.do("add_many", twins.X[140:160])


def test_a_store_undoes_a_step_by_what_was_kept_and_so_does_its_replay(tmp_path, monkeypatch):
    rng = np.random.default_rng(6)
    path, hashes = tmp_path / "a.links", []
    with Store.open(path, thresholds=Thresholds(*THRESHOLDS)) as store:
        store.add_many(crowd(rng, 80))
        hashes.append(store.state_hash())
        with store.step("sort"):
            store.remove(3)
            store.move(5, store.resolve(int(store.labels()[9])))
        hashes.append(store.state_hash())
        store.remove(7)
        monkeypatch.setattr("linkstream.store.steps.last", None)  # the whole log is not read
        store.undo()
        assert store.state_hash() == hashes.pop()
        store.undo(step=True)
        assert store.state_hash() == hashes[0]
        monkeypatch.undo()
    monkeypatch.setattr(Inverses, "undone", lambda *_: [])
    with Store.open(path) as store:
        store.verify()
        assert store.state_hash() == hashes[0]
        store.redo()


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_store_undoes_a_batch_with_its_keys_and_payloads(tmp_path, monkeypatch, one_by_one):
    X, path = crowd(np.random.default_rng(11), 200), tmp_path / "a.links"
    keys = [f"k{i}" for i in range(200)]
    with Store.open(path, thresholds=Thresholds(*THRESHOLDS), mode="best") as store:
        store.add_many(X[:80], ids=keys[:80])
        before = store.state_hash()
        if one_by_one:
            with store.step("file"):
                for i in range(80, 120):
                    store.add_many(X[[i]], ids=keys[i : i + 1], payloads=[{"i": i}])
        else:
            store.add_many(X[80:120], ids=keys[80:120], payloads=[{"i": i} for i in range(80, 120)])
        after = store.state_hash()
        monkeypatch.setattr("linkstream.store.steps.last", None)  # the whole log is not read
        store.undo(step=True)
        monkeypatch.undo()
        assert store.state_hash() == before
        store.redo()
        assert store.state_hash() == after
        assert store.payloads([99]) == [{"i": 99}]
        store.undo(step=True)
        store.add_many(X[120:160], ids=keys[80:120])
        after = store.state_hash()
    monkeypatch.setattr(Inverses, "undone", lambda *_: [])
    with Store.open(path) as store:
        store.verify()
        assert store.state_hash() == after


def touched(monkeypatch, n):
    """Return what corrections and their undos look at, by verb, in a clusterer of n clusters."""
    rng = np.random.default_rng(7)
    centres = unit(rng.standard_normal((n, 256)))
    members = np.tile(np.arange(n), 4)
    links = Links(0.7, 0.8, 0.8, engine="native")
    links.add_many(around(rng, centres[members], 0.95).astype(np.float32))
    for a in range(0, n // 2, 2):
        links.different(a, a + 1)
        links.rename(home(links, a), f"name {a}")
    counts = {}

    def counting(owner, name, size):
        method = getattr(owner, name)

        def counted(*arguments, **options):
            answer = method(*arguments, **options)
            counts[name] = counts.get(name, 0) + size(answer)
            return answer

        monkeypatch.setattr(owner, name, counted)

    with monkeypatch.context():
        counting(NativeEngine, "parts", lambda state: len(state.numbers))
        counting(NativeEngine, "event_rows", lambda found: len(found[1]))
        counting(NativeEngine, "state", lambda state: len(state.numbers))
        counting(NativeEngine, "ranked", len)
        counting(LawBook, "of_pins", len)
        counting(LawBook, "all", len)
        found = {}
        x, y, z = n - 1, n - 2, n - 3
        for verb, call in {
            "same": lambda: links.same(x, x + n),
            "different": lambda: links.different(x, y),
            "move": lambda: links.move(z, home(links, y)),
            "rename": lambda: links.rename(home(links, x), "somebody"),
            "retract": lambda: links.retract(newest(links)),
            "remove": lambda: links.remove(z + n),
        }.items():
            for step, work in ((verb, call), (f"undo {verb}", links.undo)):
                counts.clear()
                walks = links.core.running()._core.n_walks
                work()
                found[step] = {**counts, "walks": links.core.running()._core.n_walks - walks}
        return found


def home(links, vector):
    """Return the cluster of a vector."""
    return links.core.running().cluster_of(links.core.holder(vector))


def newest(links):
    """Return the number of the newest correction, of the ledger."""
    return links.core.ledger.book.newest().sequence


@native
def test_corrections_and_undo_look_at_what_they_name_however_much_there_is(monkeypatch):
    small, large = (touched(monkeypatch, n) for n in (40, 400))
    assert small == large


@engines
def test_small_batches_are_not_kept_outside_of_a_store(engine, monkeypatch):
    monkeypatch.setattr(adding, "_KEPT_ROWS", 4)
    X = crowd(np.random.default_rng(1), 20)
    links = Links(*THRESHOLDS, engine=engine)
    links.add_many(X[:5])
    links.add_many(X[5:8])
    assert links.core.running().n_kept == 0
    links.add_many(X[8:12])
    assert links.core.running().n_kept == 1
