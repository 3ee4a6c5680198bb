"""Thresholds of rebuilds that a clusterer has beside those of its stream."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds, saving
from linkstream.engine import snapshot
from linkstream.errors import ArgumentError, SnapshotError
from linkstream.identity.rebuild_thresholds import RebuildThresholds
from linkstream.io.exporting import export
from linkstream.io.importing import import_store
from linkstream.store import Store
from streams import around, unit

STREAM = Thresholds(0.9, 0.92, 0.95)
OWN = Thresholds(0.75, 0.92, 0.7)


def vectors(n=60):
    rng = np.random.default_rng(0)
    centres = unit(rng.standard_normal((5, 16)))
    return np.float32(around(rng, centres[rng.integers(5, size=n)], 0.85))


def with_own(**options):
    links = Links.from_thresholds(STREAM, rebuild_thresholds=OWN, **options)
    links.add_many(vectors())
    return links


def test_a_rebuild_takes_its_own_thresholds_and_the_stream_keeps_the_others():
    links, other = with_own(), Links.from_thresholds(STREAM)
    other.add_many(vectors())
    assert links.rebuild_thresholds == OWN
    assert other.rebuild_thresholds is None
    assert links.state_hash() != other.state_hash()
    assert links.rebuild() == other.rebuild(thresholds=OWN)
    assert links.rebuild(apply=True).thresholds == OWN
    assert links.thresholds == STREAM
    other.rebuild(apply=True)
    assert links.n_clusters < other.n_clusters
    assert links.settle() is not None  # settles with the thresholds of the stream


@pytest.mark.parametrize(
    "copied",
    [
        lambda links, _: copy.copy(links),
        lambda links, _: Links.from_bytes(links.to_bytes()),
        lambda links, path: (links.save(path), Links.load(path))[1],
    ],
    ids=["copy", "bytes", "file"],
)
def test_copies_and_snapshots_keep_them(copied, tmp_path):
    links = with_own()
    twin = copied(links, tmp_path / "a.links")
    assert twin.rebuild_thresholds == OWN
    assert twin.state_hash() == links.state_hash()
    assert twin.rebuild() == links.rebuild()


@pytest.mark.parametrize(
    "given", [{"thresholds": STREAM}, {"thresholds": Thresholds(0.8, 0.9, 0.8)}]
)
def test_thresholds_of_a_call_go_before_them(given):
    links = with_own()
    assert links.rebuild(**given).thresholds == given["thresholds"]
    assert links.rebuild_thresholds == OWN


def test_other_thresholds_of_the_clusterer_put_them_out_of_force_until_an_undo():
    links = with_own()
    links.rebuild(thresholds=Thresholds(0.8, 0.9, 0.8), apply=True)
    assert links.rebuild_thresholds is None
    assert links.rebuild().thresholds == Thresholds(0.8, 0.9, 0.8)
    assert Links.from_bytes(links.to_bytes()).rebuild_thresholds is None
    links.undo()
    assert links.rebuild_thresholds == OWN


def test_another_space_puts_them_out_of_force_until_an_undo():
    links, space = with_own(), Space(np.full(16, 0.05))
    assert links.rebuild(space=space).thresholds == STREAM
    links.rebuild(space=space, apply=True)
    assert links.rebuild_thresholds is None
    links.undo()
    assert links.rebuild_thresholds == OWN
    assert links.rebuild(vectors=vectors()[:, :8]).thresholds == STREAM


def test_wrong_thresholds_are_refused():
    with pytest.raises(ArgumentError, match="thresholds of type tuple"):
        Links.from_thresholds(STREAM, rebuild_thresholds=(0.7, 0.8, 0.9))


@pytest.mark.parametrize(
    "plain",
    [
        3,
        {},
        {"rebuild": {}, "stream": {}},
        {"rebuild": 1},
        {**RebuildThresholds(OWN, OWN).to_plain(), "a": 1},
    ],
)
def test_a_snapshot_with_others_is_refused(plain):
    meta, arrays = snapshot.decode(with_own().to_bytes(), meta=saving._META, arrays=saving._ARRAYS)
    with pytest.raises(SnapshotError, match="thresholds of rebuilds"):
        Links.from_bytes(snapshot.encode({**meta, "rebuild_thresholds": plain}, arrays))


def test_a_store_keeps_them_in_its_description_and_exports(tmp_path):
    path, links = tmp_path / "a.links", with_own()
    with Store.open(path, thresholds=STREAM, rebuild_thresholds=OWN) as store:
        store.add_many(vectors())
        assert store.rebuild_thresholds == OWN
        assert store.rebuild() == links.rebuild()
        assert json.loads(json.dumps(store.info()))["rebuild_thresholds"]["pair_similarity_max"]
        export(store, tmp_path / "folder")
        expected = links.rebuild(apply=True)
        assert store.rebuild(apply=True) == expected
    with Store.open(path, thresholds=STREAM, rebuild_thresholds=OWN) as store:
        assert store.rebuild_thresholds == OWN
        assert store.state_hash() == links.state_hash()
        store.verify()
    with pytest.raises(ArgumentError, match="rebuild_thresholds="):
        Store.open(path, rebuild_thresholds=STREAM)
    import_store(tmp_path / "folder", tmp_path / "b.links")
    with Store.open(tmp_path / "b.links") as store:
        assert store.rebuild_thresholds == OWN


def test_a_store_without_them_is_not_one_with_them(tmp_path):
    path = tmp_path / "a.links"
    with Store.open(path, thresholds=STREAM) as store:
        assert store.rebuild_thresholds is None
        assert "rebuild_thresholds" not in store.info()
    with pytest.raises(ArgumentError, match="which has None"):
        Store.open(path, rebuild_thresholds=OWN)
