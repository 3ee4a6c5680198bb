"""Settling: joins, cuts, IDs that stay with the majority, events."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.engine.events import Severed, Split, United
from linkstream.metrics import accuracy
from replay import Replay
from streams import ENGINES, KINDS, around, make, unit


def fragments(seed=0, n=400, d=64):
    """Return identities at cosine 0.75 and strict thresholds that leave fragments."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((8, d)))
    y = rng.integers(8, size=n)
    return around(rng, centres[y], 0.75).astype(np.float32), y


def fragmented(engine, **options):
    X, y = fragments()
    links = Links(0.8, 0.72, 0.9, engine=engine, **options)
    links.add_many(X)
    return links, y


LOOSER = Thresholds(0.65, 0.72, 0.8)


@pytest.mark.parametrize("engine", ENGINES)
def test_settling_joins_fragments(engine):
    links, y = fragmented(engine)
    before = accuracy(y, links.labels())
    changes = links.settle(apply=True, thresholds=LOOSER)
    assert changes.joins
    assert changes.applied
    assert accuracy(y, links.labels()) > before + 0.2
    assert links.n_clusters == changes.n_clusters_after < changes.n_clusters_before


@pytest.mark.parametrize("engine", ENGINES)
def test_proposing_changes_nothing(engine):
    links, _ = fragmented(engine)
    before = links.state_hash(), len(links.events())
    changes = links.settle(thresholds=LOOSER)
    assert changes.joins
    assert not changes.applied
    assert (links.state_hash(), len(links.events())) == before


@pytest.mark.parametrize("engine", ENGINES)
def test_settling_twice_finds_nothing_new(engine):
    links, _ = fragmented(engine)
    links.settle(apply=True, thresholds=LOOSER)
    again = links.settle(thresholds=LOOSER)
    assert again.joins == again.cuts == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_settled_edges_hold_as_vectors_arrive(engine):
    links, y = fragmented(engine)
    links.settle(apply=True, thresholds=LOOSER)
    ours = links.labels()
    X, _ = fragments(seed=0)
    links.add_many(X + np.float32(1e-4))  # every subcluster is touched again
    united = {event.cluster for event in links.events() if isinstance(event, United)}
    joined = np.isin(ours, list(united))
    for cluster in np.unique(ours[joined]):
        now = links.labels()[: len(y)][ours == cluster]
        assert np.bincount(now).max() / len(now) > 0.9


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_valid_and_the_events_describe_the_settlement(engine, kind):
    stream = make(kind, 3)
    links = Links(*stream.thresholds, engine=engine)
    half = len(stream.vectors) // 2
    for part in (stream.vectors[:half], stream.vectors[half:]):
        links.add_many(part)
        links.settle(apply=True)
        links.state().check()
        replay = Replay(links.events())
        assert replay.labels() == links.labels().tolist()
        assert sorted(map(list, replay.edges)) == links.state().edges.tolist()


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_engines_settle_and_continue_alike(kind, seed):
    stream = make(kind, seed)
    hashes = []
    for engine in ("reference", "native"):
        links = Links(*stream.thresholds, engine=engine)
        for part in np.array_split(stream.vectors, 3):
            links.add_many(part)
            links.settle(apply=True)
        hashes.append((links.state_hash(), links.events()))
    assert hashes[0] == hashes[1]


def two_centres(rng):
    centre = unit(rng.standard_normal(32))
    return np.stack([centre, around(rng, centre, 0.4)])


def test_cuts_separate_two_identities_in_one_cluster():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 60)
    X = around(rng, two_centres(rng)[y], 0.9)
    links = Links(0.3, 0.7, 0.2)  # so loose that all becomes one cluster
    links.add_many(X)
    assert links.n_clusters == 1
    first = int(links.labels()[0])
    changes = links.settle(apply=True, thresholds=Thresholds(0.8, 0.7, 0.9))
    assert changes.cuts
    assert all(cut.margin < 0 for cut in changes.cuts)
    assert accuracy(y, links.labels()) == 1.0
    assert first in links.labels()
    kinds = {type(event) for event in links.events()}
    assert {Severed, Split} <= kinds


def test_the_larger_part_keeps_the_id_and_old_ids_win_over_new_ones():
    rng = np.random.default_rng(6)
    X = around(rng, two_centres(rng)[np.repeat([0, 1], [50, 20])], 0.9)
    links = Links(0.3, 0.7, 0.2)
    links.add_many(X)
    links.settle(apply=True, thresholds=Thresholds(0.8, 0.7, 0.9))
    assert links.labels()[:50].tolist() == [0] * 50
    assert links.resolve(0) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_an_id_that_was_joined_resolves_to_the_surviving_id(engine):
    links, _ = fragmented(engine)
    at_arrival = links.labels()
    links.settle(apply=True, thresholds=LOOSER)
    united = [event for event in links.events() if isinstance(event, United)]
    assert all(event.cluster != event.gone for event in united)
    now = links.labels()
    gone = [int(i) for i in np.unique(at_arrival) if i not in now]
    assert gone
    for cluster in gone:
        inside = now[at_arrival == cluster]
        assert links.resolve(cluster) in inside
    loaded = Links.from_bytes(links.to_bytes(), engine=engine)
    assert [loaded.resolve(i) for i in gone] == [links.resolve(i) for i in gone]
    assert loaded.state_hash() == links.state_hash()


def test_settling_an_empty_clusterer_changes_nothing():
    links = Links(0.7, 0.6, 0.9)
    assert links.settle(apply=True).joins == ()
    links.add([1.0, 0.0])
    assert links.settle(apply=True).n_clusters_after == 1


def test_a_settlement_reads_as_text_and_as_plain_values():
    links, _ = fragmented("auto")
    changes = links.settle(thresholds=LOOSER)
    assert changes.text().startswith(f"proposed: {changes.n_clusters_before} clusters")
    assert len(changes.text().splitlines()) == 1 + len(changes.joins) + len(changes.cuts)
    assert changes.to_dict()["joins"][0]["margin"] >= 0


def test_a_clusterer_without_tracking_settles_too():
    tracked, _ = fragmented("auto")
    untracked, _ = fragmented("auto", track_vectors=False)
    for links in (tracked, untracked):
        links.settle(apply=True, thresholds=LOOSER)
    assert [c.id for c in tracked.clusters()] == [c.id for c in untracked.clusters()]


@pytest.mark.parametrize("engine", ENGINES)
def test_settling_reports_the_share_done_and_ends_when_the_report_raises(engine):
    links, _ = fragmented(engine)
    before, shares = links.state_hash(), []

    def end(_share):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        links.settle(apply=True, thresholds=LOOSER, progress=end)
    assert links.state_hash() == before
    links.settle(apply=True, thresholds=LOOSER, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert links.state_hash() != before
