"""Rebuilding: equal sets of vectors give equal clusters, whatever came before."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.clusterer import rebuilding
from linkstream.data import voice_stream
from linkstream.errors import ArgumentError, NotTrackedError
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.identity.rebuild_rows import Labels, Units
from linkstream.store import Store
from replay import Replay
from streams import ENGINES, around, unit

THRESHOLDS = (0.75, 0.8, 0.85)


def cloud(seed, n=60, identities=5, d=8):
    """Return vectors around identities, some of them twice, and their identities."""
    rng = np.random.default_rng(seed)
    who = rng.integers(identities, size=n)
    X = np.float32(around(rng, unit(rng.standard_normal((identities, d)))[who], 0.8))
    X[-6:], who[-6:] = X[:6], who[:6]
    return X, who


class Arrivals:
    """A set of vectors with weights, groups, prototypes and corrections, to be told in any order.

    Vectors 0 to 5 have equal twins at the end. Corrections name some of the equal vectors only.
    Sets of even seeds have weights, others prototypes: one that joins a locked prototype loses its
    weight.
    """

    def __init__(self, seed):
        self.X, self.who = cloud(seed)
        rng = np.random.default_rng([seed, 1])
        n = len(self.X)
        self.weights = rng.choice([1.0, 0.5, 0.25] if seed % 2 == 0 else [1.0], size=n)
        free = rng.permutation(n)
        self.groups = [free[:3], free[3:6]]
        self.prototypes = {"Ann": free[6:8], "Bob": free[8:9]} if seed % 2 else {}
        self.alone = free[9:]
        pairs = [rng.choice(self.alone, size=2, replace=False) for _ in range(8)]
        pairs += [(0, n - 6), (1, n - 5)]
        self.said = [
            ("same" if self.who[a] == self.who[b] else "different", a, b) for a, b in pairs
        ]

    def told(self, seed, engine, **options):
        """Return a clusterer that was told all of it, in an order and in batches of its own."""
        rng = np.random.default_rng([seed, 2])
        links = Links(*THRESHOLDS, engine=engine, threads=1, **options)
        number = {}
        steps = [("group", group) for group in self.groups]
        steps += [("enrol", name) for name in self.prototypes]
        alone = rng.permutation(self.alone)
        steps += [("vectors", part) for part in np.array_split(alone, rng.integers(1, 9))]
        for place in rng.permutation(len(steps)).tolist():
            self.tell(links, number, *steps[place])
        for place in rng.permutation(len(self.said)).tolist():
            verb, a, b = self.said[place]
            if a in number and b in number:
                getattr(links, verb)(number[int(a)], number[int(b)])
        return links

    def tell(self, links, number, kind, what):
        first = links.n_vectors
        if kind == "enrol":
            members = self.prototypes[what]
            links.enrol(what, self.X[members])
        elif kind == "group":
            members = what
            links.add_group(self.X[members])
        else:
            members = what
            links.add_many(self.X[members], weight=self.weights[members])
        number.update(zip(members.tolist(), range(first, first + len(members)), strict=True))


def with_strangers(links, seed):
    """Add vectors far from all others, then remove them again."""
    rng = np.random.default_rng([seed, 3])
    first = links.n_vectors
    links.add_many(np.float32(rng.standard_normal((7, links.dimension))))
    for cluster in set(links.labels()[first:].tolist()):
        if links.cluster(cluster).first_seen >= first:
            links.forget(cluster)
    for vector in np.flatnonzero(links.labels()[first:] >= 0).tolist():
        links.remove(first + vector)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("options", [{}, {"mode": "best"}], ids=["paper", "best"])
def test_one_set_has_one_partition_in_any_order_on_both_engines(seed, options):
    arrivals, hashes, before = Arrivals(seed), set(), set()
    for order in range(4):
        for engine in ENGINES:
            links = arrivals.told(order, engine, **options)
            if order % 2:
                with_strangers(links, order)
            before.add(links.partition_hash())
            links.rebuild(apply=True)
            hashes.add(links.partition_hash())
    assert len(hashes) == 1
    assert len(before) > 1


@pytest.mark.parametrize("shards", [1, 2, 8])
def test_shards_that_were_joined_have_the_partition_of_one_stream(shards):
    X, _ = cloud(3, n=120)
    whole = Links(*THRESHOLDS)
    whole.add_many(X)
    whole.rebuild(apply=True)
    for engine in ENGINES:
        parts = []
        for rows in np.array_split(np.random.default_rng(shards).permutation(len(X)), shards):
            parts.append(Links(*THRESHOLDS, engine=engine, threads=1, mode="best"))
            parts[-1].add_many(X[rows])
        for other in parts[1:]:
            parts[0].absorb(other)
        parts[0].rebuild(apply=True)
        assert parts[0].partition_hash() == whole.partition_hash()


def test_voices_have_one_partition_in_any_order():
    X = voice_stream().X
    found = set()
    for seed in range(4):
        links = Links(0.8, 0.9, 0.93, mode="best")
        for part in np.array_split(X[np.random.default_rng(seed).permutation(len(X))], 1 + seed):
            links.add_many(part)
        links.rebuild(apply=True)
        found.add(links.partition_hash())
    assert len(found) == 1


MODES = {"paper": {}, "best": {"mode": "best"}, "evidence": {"evidence": "cluster"}}


def test_a_replay_of_many_rows_follows_from_the_set_as_well_in_any_mode_on_both_engines():
    arrivals, found, before = Arrivals(9), set(), set()
    for order, (options, engine) in enumerate(itertools.product(MODES.values(), ENGINES * 2)):
        links = arrivals.told(order, engine, **options)
        assert links.n_vectors > 20
        before.add(links.partition_hash())
        rebuilding.rebuild(links.core, True, limit=20)
        found.add(links.partition_hash())
    assert len(found) == 1
    assert len(before) > 1


@pytest.mark.parametrize("seed", range(8))
def test_gathered_rows_are_equal_in_any_mode(seed):
    """The replay once tested as the clusterer itself does, so that modes had several answers."""
    X, _ = cloud(seed, n=300, identities=9, d=6)
    found = set()
    for options in MODES.values():
        links = Links(0.8, 0.7, 0.9, **options)
        links.add_many(X)
        rebuilding.rebuild(links.core, True, limit=20)
        found.add(links.partition_hash())
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_gathered_and_hold_in_any_order_on_both_engines(seed):
    """Vectors of groups were once never gathered, so that all of them were compared."""
    X, _ = cloud(seed, n=240, identities=8, d=6)
    photos = np.random.default_rng(seed).permutation(240).reshape(80, 3)
    found, n_units, rng = set(), [], np.random.default_rng([seed, 8])
    for order in range(4):
        links = Links(0.8, 0.7, 0.9, engine=ENGINES[order % 2], threads=1)
        number = {}
        for photo in rng.permutation(80).tolist():
            number[photo] = links.n_vectors
            links.add_group(X[photos[photo]])
        rebuilding.rebuild(links.core, True, limit=20)
        labels = links.labels()
        for first in number.values():
            assert len(set(labels[first : first + 3].tolist())) == 3
        found.add(links.partition_hash())
        source = rebuilding.source_for_read(links.core, "rebuild")
        units = Units.of(source.content(links.core.kept), source.state, source.ledger)
        replay = functools.partial(source._replayed, links.thresholds, None)
        n_units.append(units.gathered(replay, Labels({}), 20).n_rows)
    assert len(found) == 1
    assert len(set(n_units)) == 1
    assert n_units[0] < 120


KEPT_APART = {
    "a hexagon": [(i, (i + 1) % 6) for i in range(6)],
    "three pairs": [(0, 1), (2, 3), (4, 5)],
    "a triangle and a path": [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5)],
}


@pytest.mark.parametrize("pairs", KEPT_APART.values(), ids=KEPT_APART)
@pytest.mark.parametrize("ties", [[], [(6, 7), (8, 0)]], ids=["apart", "some tied"])
@pytest.mark.parametrize("limit", [4, 100])
def test_equal_vectors_that_are_kept_apart_have_one_partition_in_any_order(pairs, ties, limit):
    """Their numbers once decided which of them shared a cluster, as corrections are symmetric."""
    said = [("different", *pair) for pair in pairs] + [("same", *pair) for pair in ties]
    found, rng = set(), np.random.default_rng(5)
    for order in range(12):
        links = Links(*THRESHOLDS, engine=ENGINES[order % len(ENGINES)], threads=1)
        place = rng.permutation(9)
        links.add_many(np.tile(np.float32([[0.6, 0.8, 0.0]]), (9, 1)))
        for verb, a, b in rng.permutation(np.array(said, dtype=object)).tolist():
            getattr(links, verb)(int(place[a]), int(place[b]))
        rebuilding.rebuild(links.core, True, limit=limit)
        found.add(links.partition_hash())
    assert len(found) == 1


def test_one_vector_can_change_clusters_that_are_not_near_it():
    """So a rebuild of what is near a new vector is not a rebuild of the whole."""
    degrees = np.array([24.0, 32.0, 54.8, 57.5, 63.8, 83.1, 91.1, 125.9])
    angles = np.radians(degrees)
    X = np.float32(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    found = []
    for first in (1, 0):
        links = Links(0.8, 0.8, 0.85)
        links.add_many(X[first:])
        links.rebuild(apply=True)
        labels = links.labels()
        found.append({tuple(degrees[first:][labels == label]) for label in set(labels.tolist())})
    assert found[0] == {(32.0, 54.8, 57.5, 63.8), (83.1, 91.1, 125.9)}
    assert found[1] == {(24.0, 32.0), (54.8, 57.5, 63.8, 83.1, 91.1), (125.9,)}


def test_both_engines_have_one_state_after_a_rebuild():
    states = set()
    for engine in ENGINES:
        links = Arrivals(4).told(1, engine, mode="best")
        links.rebuild(apply=True)
        links.add_many(cloud(8)[0])
        states.add(links.state_hash())
    assert len(states) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_rebuild_changes_nothing(engine):
    links = Links(*THRESHOLDS, engine=engine)
    links.add_many(cloud(5)[0])
    assert links.rebuild(apply=True).flows
    again = links.rebuild()
    assert again.flows == ()
    assert again.n_transferred == 0
    assert again.n_clusters == (links.n_clusters,) * 2


@pytest.mark.parametrize("engine", ENGINES)
def test_undo_takes_a_rebuild_back_as_one_step(engine):
    links = Arrivals(2).told(0, engine, mode="best")
    before, labels = links.state_hash(), links.labels()
    links.rebuild(apply=True)
    after = links.state_hash()
    links.undo()
    assert (links.state_hash(), links.labels().tolist()) == (before, labels.tolist())
    links.redo()
    assert links.state_hash() == after
    assert Links.from_bytes(links.to_bytes()).state_hash() == after


def test_a_proposal_changes_nothing_and_says_what_would_change():
    links = Links(*THRESHOLDS)
    links.add_many(cloud(5)[0])
    before = links.state_hash(), links.n_events
    shares = []
    proposed = links.rebuild(progress=shares.append)
    assert (links.state_hash(), links.n_events) == before
    assert (min(shares) >= 0.0, max(shares)) == (True, 1.0)
    labels = links.labels()
    done = links.rebuild(apply=True)
    assert done.flows == proposed.flows
    assert str(done).startswith("rebuilt: ")
    assert str(proposed).splitlines()[1:] == [str(flow) for flow in proposed.flows]
    assert proposed.to_dict()["n_clusters"] == done.n_clusters
    moved = np.count_nonzero(links.resolve_many(labels) != links.labels())
    assert moved == done.n_moved


def test_an_id_stays_with_most_of_its_vectors_and_the_others_resolve_to_it():
    links = Links(*THRESHOLDS)
    links.add_many(cloud(5)[0])
    before = links.labels()
    report = links.rebuild(apply=True)
    after = links.labels()
    for cluster in np.unique(before).tolist():
        inside = after[before == cluster]
        home = links.resolve(cluster)
        assert np.count_nonzero(inside == home) == np.bincount(inside).max()
    fresh = {flow.to for flow in report.of("split")}
    assert fresh == set(after.tolist()) - set(before.tolist())
    gone = {flow.cluster: flow.to for flow in report.of("joined")}
    assert {cluster: links.resolve(cluster) for cluster in gone} == gone


def test_events_tell_each_move():
    links = Arrivals(1).told(0, "auto", mode="best")
    replay = Replay(links.events(), whole_clusters=True)
    first = links.n_events
    links.rebuild(apply=True)
    replay.play(links.events(since=first))
    assert replay.labels() == links.labels().tolist()
    assert replay.kinds["rebuilt"] == 1
    changes = links.changes(since=first)
    assert changes.apply(Replay(links.events()[:first], whole_clusters=True).labels()).tolist() == (
        links.labels().tolist()
    )


def test_clusters_of_different_names_are_kept_apart():
    rng = np.random.default_rng(0)
    X = np.float32(around(rng, np.repeat(unit(rng.standard_normal((1, 16))), 40, axis=0), 0.8))
    links = Links(0.9, 0.9, 0.95)
    links.add_many(X)
    named = [view.id for view in sorted(links.clusters(), key=lambda view: -view.size)[:2]]
    for name, cluster in zip(("Ann", "Bob"), named, strict=True):
        links.name(cluster, name)
    assert len(named) == 2
    links.rebuild(apply=True, thresholds=Thresholds(0.6, 0.9, 0.7))
    assert {links.named("Ann"), links.named("Bob")} == set(named)


def test_prototypes_stay_with_their_name_and_do_not_learn():
    arrivals = Arrivals(7)
    links = arrivals.told(0, "auto", mode="best")
    sums = {name: links.cluster(links.named(name)) for name in arrivals.prototypes}
    links.rebuild(apply=True)
    for name, view in sums.items():
        assert links.named(name) == view.id
    state = links.state()
    locked = state.flags & 1 > 0
    assert state.counts[locked].sum() == sum(map(len, arrivals.prototypes.values()))
    assert not state.missing_weight[locked].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rebuild_with_thresholds_goes_on_with_them_and_undo_restores_the_old_ones(engine):
    X, _ = cloud(6)
    old, new = Thresholds(*THRESHOLDS), Thresholds(0.6, 0.85, 0.9)
    links = Links.from_thresholds(old, engine=engine)
    links.add_many(X)
    before = links.state_hash()
    links.rebuild(thresholds=new)
    assert links.thresholds == old
    links.rebuild(apply=True, thresholds=new)
    assert links.thresholds == links.state().thresholds == new
    assert links.events()[-1].sequence > links.events()[0].sequence
    fresh = Links.from_thresholds(new, engine=engine)
    fresh.add_many(X[::-1])
    fresh.rebuild(apply=True)
    assert fresh.partition_hash() == links.partition_hash()
    after = links.state_hash()
    links.undo()
    assert (links.thresholds, links.state_hash()) == (old, before)
    links.redo()
    assert (links.thresholds, links.state_hash()) == (new, after)
    again = Links.from_bytes(links.to_bytes())
    again.undo()
    assert (again.thresholds, again.state_hash()) == (old, before)


def test_the_digest_of_a_partition_is_of_contents_and_weights_alone():
    X, _ = cloud(5)
    one, other = Links(*THRESHOLDS), Links(*THRESHOLDS)
    assert one.partition_hash() == other.partition_hash()
    one.add_many(X[:2], weight=0.5)
    other.add_many(X[:2])
    assert one.partition_hash() != other.partition_hash()
    one.undo()
    one.undo()
    empty = one.partition_hash()
    assert empty == Links(*THRESHOLDS).partition_hash()
    assert one.rebuild(apply=True) == RebuildReport(applied=True)


def test_a_second_rebuild_moves_nothing_without_names_and_may_move_more_with_two():
    X = [
        [-0.8, -0.5, -0.4],
        [0, -0.8, -0.6],
        [-0.9, 0.7, -0.2],
        [0.9, -1.2, 0.9],
        [0.7, 0, -0.8],
        [0.4, -0.6, -1.4],
    ]
    plain, named = (Links(0.55, 0.6, 0.75) for _ in range(2))
    for each in (plain, named):
        each.add_many(np.array(X, "f4"))
    named.name(0, "Ann")
    named.name(1, "Bob")
    hashes = []
    for _ in range(3):
        named.rebuild(apply=True)
        plain.rebuild(apply=True)
        hashes.append((named.partition_hash(), plain.partition_hash()))
        assert {c.name for c in named.clusters()} >= {"Ann", "Bob"}
    assert hashes[0][0] != hashes[1][0] == hashes[2][0]
    assert hashes[0][1] == hashes[1][1]
    assert plain.rebuild().n_transferred == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"vectors": cloud(7)[0][:5, :6]}, "vectors"),
        ({"thresholds": Thresholds(0.6, 0.85, 0.9), "space": Space(model="b")}, "thresholds and s"),
    ],
)
@pytest.mark.parametrize("apply", [False, True])
def test_a_clusterer_without_vectors_refuses_other_settings(tmp_path, apply, given, words):
    links = Links(*THRESHOLDS)
    with Store.open(tmp_path / "a.links", thresholds=Thresholds(*THRESHOLDS)) as store:
        for each in (links, store):
            each.add_many(cloud(5)[0][:5])
            for number in range(5):
                each.remove(number)
            before = each.state_hash()
            with pytest.raises(ArgumentError, match=f"to other {words}.* without vectors"):
                each.rebuild(apply, **given)
            assert each.state_hash() == before


def test_a_journal_of_an_earlier_version_may_have_other_settings_without_vectors(tmp_path):
    with Store.open(tmp_path / "a.links", thresholds=Thresholds(*THRESHOLDS)) as store:
        store.handle.read_core(lambda core: setattr(core, "replayed", np.empty((0, 6))))
        store.rebuild(apply=True, thresholds=Thresholds(0.6, 0.85, 0.9))  # refused by this version
        store.add_many(cloud(5)[0])
        before = store.state_hash()
    with Store.open(tmp_path / "a.links") as store:
        store.verify()  # replays the journal
        assert store.state_hash() == before
        assert store.thresholds == Thresholds(*THRESHOLDS)


@pytest.mark.parametrize("options", [{"track_vectors": False}, {"keep_vectors": False}])
@pytest.mark.parametrize("verb", ["rebuild", "partition_hash"])
def test_a_clusterer_without_its_vectors_refuses(options, verb):
    links = Links(*THRESHOLDS, **options)
    links.add_many(cloud(5)[0])
    with pytest.raises(NotTrackedError, match=verb):
        getattr(links, verb)()


def test_a_store_rebuilds_journals_and_replays(tmp_path):
    X, _ = cloud(5)
    new = Thresholds(0.6, 0.85, 0.9)
    path = tmp_path / "a.links"
    links = Links(*THRESHOLDS, mode="best")
    links.add_many(X)
    with Store.open(path, thresholds=Thresholds(*THRESHOLDS), mode="best") as store:
        store.add_many(X)
        assert store.rebuild() == links.rebuild()
        assert store.rebuild(thresholds=new) == links.rebuild(thresholds=new)
        done = store.rebuild(True, thresholds=new, idempotency_key="once")
        assert done == links.rebuild(True, thresholds=new)
        again = store.rebuild(True, thresholds=new, idempotency_key="once")
        assert again == RebuildReport(applied=True, repeated=True)
        assert store.partition_hash() == links.partition_hash()
        assert store.state_hash() == links.state_hash()
        store.verify()
    with Store.open(path) as store:
        assert store.thresholds == new
        assert store.state_hash() == links.state_hash()
        store.undo()
        links.undo()
        assert store.thresholds == links.thresholds == Thresholds(*THRESHOLDS)
        assert store.state_hash() == links.state_hash()
        store.redo()
        links.redo()
        store.add_many(X[:5])
        links.add_many(X[:5])
        assert store.state_hash() == links.state_hash()
        store.verify()
