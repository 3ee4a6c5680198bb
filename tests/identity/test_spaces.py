"""Rebuilds that change the space of the vectors, or take those of another encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.data import voice_stream
from linkstream.engine.events import Rebuilt
from linkstream.epochs import in_space, recentred
from linkstream.errors import ArgumentError, DimensionError, SpaceError, UndoError, VectorError
from linkstream.store import Store

RAW, CENTRED = Thresholds(0.8, 0.9, 0.93), Thresholds(0.5, 0.6, 0.8)
ENGINES = ("native", "reference")

Rows = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def X() -> Rows:
    return voice_stream().X[:400].astype(np.float32)


@pytest.fixture(scope="module")
def space() -> Space:
    return Space(mean=voice_stream().X.astype(np.float32).mean(axis=0), model="ge2e")


def reencoded(rows: Rows, dimension: int = 90) -> Rows:
    """Return the rows of another encoder: a random projection."""
    rng = np.random.default_rng(7)
    return rows @ rng.standard_normal((rows.shape[1], dimension)).astype(np.float32)


def added(X: Rows, engine: str = "auto", **options: Any) -> Links:
    links = Links.from_thresholds(RAW, engine=engine, **options)
    links.add_many(X)
    return links


def same_partition(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> bool:
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


# Another space of the same encoder


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rebuild_in_a_space_has_the_clusters_of_vectors_added_there(
    X: Rows, space: Space, engine: str
) -> None:
    links = added(X[:150], engine)
    links.rebuild(apply=True, space=space, thresholds=CENTRED)
    fresh = Links.from_thresholds(CENTRED, space=space, engine=engine)
    fresh.add_many(X[:150])
    fresh.rebuild(apply=True)
    assert links.space == space
    assert links.thresholds == CENTRED
    assert same_partition(links.labels(), fresh.labels())


def test_vectors_that_come_later_are_in_the_new_space(X: Rows, space: Space) -> None:
    links = added(X[:300])
    links.rebuild(apply=True, space=space, thresholds=CENTRED)
    cluster = int(links.labels()[7])
    assert links.add(X[7]).cluster == cluster
    again, first = links.core.kept([300, 7]).astype(np.int64)
    assert np.abs(again - first).max() <= 16


def test_centring_is_taken_back_by_the_space_without_a_mean(X: Rows, space: Space) -> None:
    fixed = in_space(space, X)
    back = recentred(fixed, space, Space())
    assert np.abs(back.astype(np.int64) - in_space(Space(), X)).max() <= 8
    assert np.abs(recentred(back, Space(), space).astype(np.int64) - fixed).max() <= 16


def test_both_engines_change_the_space_alike(X: Rows, space: Space) -> None:
    hashes = set()
    for engine in ENGINES:
        links = added(X[:150], engine)
        links.name(int(links.labels()[0]), "Ann")
        links.rebuild(apply=True, space=space, thresholds=CENTRED)
        links.add_many(X[150:160])
        links.rebuild(apply=True, vectors=reencoded(X[:160]), thresholds=RAW)
        links.add_many(reencoded(X[160:170]))
        hashes.add(links.state_hash())
    assert len(hashes) == 1


def test_the_present_space_changes_nothing(X: Rows, space: Space) -> None:
    links = Links.from_thresholds(CENTRED, space=space)
    links.add_many(X[:100])
    links.rebuild(apply=True)
    before = links.state_hash()
    assert not links.rebuild(space=space).flows
    assert links.state_hash() == before


def test_a_proposal_in_another_space_changes_nothing(X: Rows, space: Space) -> None:
    links = added(X)
    before = links.state_hash()
    proposed = links.rebuild(space=space, thresholds=CENTRED)
    assert links.state_hash() == before
    assert links.space == Space()
    applied = links.rebuild(apply=True, space=space, thresholds=CENTRED)
    assert proposed.flows == applied.flows
    assert applied.flows


def test_the_event_names_thresholds_and_space(X: Rows, space: Space) -> None:
    links = added(X[:50])
    links.rebuild(apply=True, space=space)
    (told,) = [event for event in links.events() if isinstance(event, Rebuilt)]
    assert told.settings is not None
    assert "model 'ge2e'" in told.settings


# Another encoder


@pytest.mark.parametrize("engine", ENGINES)
def test_ids_names_and_corrections_stay_with_another_encoder(X: Rows, engine: str) -> None:
    links = added(X[:200], engine)
    ann = int(links.labels()[0])
    links.name(ann, "Ann")
    links.different(0, 199)
    links.rebuild(apply=True, vectors=reencoded(X[:200]), space=Space(model="two"))
    assert links.dimension == 90
    assert links.space.model == "two"
    assert links.labels()[0] == ann
    assert links.labels()[0] != links.labels()[199]
    assert [cluster.name for cluster in links.clusters() if cluster.name] == ["Ann"]


def test_rows_of_removed_vectors_are_not_read(X: Rows) -> None:
    links = added(X[:100])
    links.remove(3)
    rows = reencoded(X[:100])
    rows[3] = 0.0
    links.rebuild(apply=True, vectors=rows)
    assert links.labels()[3] == -1
    again = Links.from_bytes(links.to_bytes())
    assert again.state_hash() == links.state_hash()


def test_vectors_that_cannot_be_taken_are_refused_before_any_change(X: Rows) -> None:
    links, rows = added(X[:60]), reencoded(X[:60])
    before, broken = links.state_hash(), reencoded(X[:60])
    broken[17] = np.nan
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ArgumentError, "59 vectors for a rebuild of 60", {"vectors": rows[:59]}),
        (VectorError, "vector 17", {"vectors": broken}),
        (DimensionError, "dimension 90", {"vectors": rows, "space": Space(dimension=8)}),
        (SpaceError, "dimension 8", {"space": Space(dimension=8)}),
        (ArgumentError, "space is of type str", {"space": "ge2e"}),
    ]
    for error, words, given in refused:
        with pytest.raises(error, match=words):
            links.rebuild(apply=True, **given)
        assert links.state_hash() == before


# Undo and redo


@pytest.mark.parametrize("engine", ENGINES)
def test_undo_and_redo_go_through_changes_of_the_space(X: Rows, space: Space, engine: str) -> None:
    links = added(X[:100], engine)
    states = [(links.state_hash(), links.space, links.dimension)]
    changes: list[Any] = [
        lambda: links.rebuild(apply=True, space=space, thresholds=CENTRED),
        lambda: links.add(X[100]),
        lambda: links.rebuild(apply=True, vectors=reencoded(X[:101]), thresholds=RAW),
        lambda: links.add(reencoded(X[:102])[101]),
        lambda: links.remove(4),
    ]
    labels = [links.labels()]
    for change in changes:
        change()
        states.append((links.state_hash(), links.space, links.dimension))
        labels.append(links.labels())
    for step in range(len(changes) - 1, -1, -1):
        links.undo()
        assert np.array_equal(links.labels(), labels[step])
        assert (links.space, links.dimension) == states[step][1:]
    for step in range(1, len(changes) + 1):
        links.redo()
        assert np.array_equal(links.labels(), labels[step])
        assert (links.space, links.dimension) == states[step][1:]


def test_undo_of_vectors_and_the_change_of_space_after_them_can_be_redone(
    X: Rows, space: Space
) -> None:
    links = added(X[:100])
    middle = links.core.running().n_events
    links.add_many(X[100:105])
    links.rebuild(apply=True, space=space, thresholds=CENTRED)
    links.add_many(X[105:110])
    after = links.labels()
    links.undo(to=middle)
    assert links.n_vectors == 100
    assert links.space == Space()
    links.redo()
    assert np.array_equal(links.labels(), after)
    assert links.space == space


def test_vectors_after_an_undone_change_of_space_are_in_the_old_one(X: Rows, space: Space) -> None:
    links, plain = added(X[:100]), added(X[:100])
    links.rebuild(apply=True, space=space, thresholds=CENTRED)
    links.undo()
    links.add_many(X[100:130])
    plain.add_many(X[100:130])
    assert np.array_equal(links.labels(), plain.labels())
    with pytest.raises(UndoError, match="nothing to redo"):
        links.redo()


def test_a_snapshot_holds_one_space_and_undo_says_so(X: Rows, space: Space) -> None:
    links = added(X[:80])
    links.rebuild(apply=True, space=space, thresholds=CENTRED)
    again = Links.from_bytes(links.to_bytes())
    links.add_many(X[80:90])
    again.add_many(X[80:90])
    assert again.state_hash() == links.state_hash()
    again.undo(to=again.core.running().n_events - 1)
    before = again.state_hash()
    with pytest.raises(UndoError, match="change of the space"):
        again.undo(to=0)
    assert again.state_hash() == before


# In a store


def test_a_store_changes_spaces_as_links_do_and_survives_reopening(
    X: Rows, space: Space, tmp_path: Path
) -> None:
    path, links = tmp_path / "people.links", Links.from_thresholds(RAW)
    store = Store.open(path, thresholds=RAW)
    changes: list[Any] = [
        lambda to: to.add_many(X[:200]),
        lambda to: to.remove(5),
        lambda to: to.rebuild(apply=True, space=space, thresholds=CENTRED),
        lambda to: to.add_many(X[200:240]),
        lambda to: to.different(3, 220),
        lambda to: to.move(7, int(links.labels()[201])),
        lambda to: to.rebuild(
            apply=True, vectors=reencoded(X[:240]), thresholds=RAW, space=Space(model="two")
        ),
        lambda to: to.add_many(reencoded(X[:260])[240:]),
        lambda to: to.same(3, 250),
        lambda to: to.remove(17),
        lambda to: to.undo(to=rebuilds()[1]),
        lambda to: to.redo(),
        lambda to: to.undo(to=rebuilds()[0]),
        lambda to: to.add_many(X[200:203]),
    ]

    def rebuilds() -> list[int]:
        return [event.sequence for event in links.events() if isinstance(event, Rebuilt)]

    for change in changes:
        change(store)
        change(links)
        assert store.state_hash() == links.state_hash()
        store.close()
        store = Store.open(path)
        assert store.state_hash() == links.state_hash()
        assert store.space == links.space
    store.verify()
    store.close()


def test_a_store_returns_the_vectors_of_the_encoder_in_use(X: Rows, tmp_path: Path) -> None:
    rows = reencoded(X[:60])
    with Store.open(tmp_path / "a.links", thresholds=RAW) as store:
        store.add_many(X[:50])
        store.rebuild(apply=True, vectors=rows[:50])
        store.add_many(rows[50:])
        assert np.array_equal(store.vectors([3, 55]), rows[[3, 55]])
        store.undo(to=next(e.sequence for e in store.events() if isinstance(e, Rebuilt)))
        assert np.array_equal(store.vectors([3]), X[[3]])


def test_compaction_keeps_the_vectors_of_a_new_encoder_and_erases_removed_ones(
    X: Rows, tmp_path: Path
) -> None:
    path, rows = tmp_path / "a.links", reencoded(X[:60])
    with Store.open(path, thresholds=RAW) as store:
        store.add_many(X[:60])
        store.rebuild(apply=True, vectors=rows)
        store.remove(11)
        store.compact()
        before, partition = store.state_hash(), store.partition_hash()
    data = path.read_bytes()
    assert rows[11].tobytes() not in data
    assert X[11].tobytes() not in data
    assert rows[12].tobytes() in data
    with Store.open(path) as store:
        store.verify()
        assert (store.state_hash(), store.partition_hash()) == (before, partition)
        store.rebuild(apply=True)


def test_a_store_opens_with_the_settings_that_a_rebuild_chose(
    X: Rows, space: Space, tmp_path: Path
) -> None:
    path = tmp_path / "a.links"
    with Store.open(path, thresholds=RAW) as store:
        store.add_many(X[:50])
        store.rebuild(apply=True, thresholds=CENTRED, space=space)
        assert store.info()["space"]["model"] == "ge2e"
    Store.open(path, thresholds=CENTRED, space=space).close()
    with pytest.raises(ArgumentError, match="which has"):
        Store.open(path, thresholds=RAW)
