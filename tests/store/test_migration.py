"""Migrations of a store: another encoder, a batch at a time, kept in the file."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.data import voice_stream
from linkstream.errors import (
    ArgumentError,
    ChangedError,
    DamagedStoreError,
    StoreClosedError,
    StoreError,
    UnknownIdError,
)
from linkstream.store import Store, repair

RAW = Thresholds(0.8, 0.9, 0.93)

Rows = npt.NDArray[np.float32]


def reencoded(rows: Rows, dimension: int = 90) -> Rows:
    """Return the rows of another encoder: a random projection."""
    rng = np.random.default_rng(7)
    return (rows @ rng.standard_normal((rows.shape[1], dimension))).astype(np.float32)


X = voice_stream().X[:200].astype(np.float32)
V = reencoded(X)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.links"


@contextlib.contextmanager
def opened(path: Path, **options: Any) -> Iterator[Store]:
    with Store.open(path, thresholds=RAW, **options) as store:
        yield store


def test_a_store_migrates_as_links_do(path: Path) -> None:
    links = Links.from_thresholds(RAW)
    links.add_many(X[:100])
    with opened(path) as store:
        store.add_many(X[:100])
        for each in (store, links):
            migration = each.migrate(space=Space(model="two"))
            migration.add(V[:100:2], np.arange(0, 100, 2))
            each.remove(4)
            each.add_many(X[100:105])
            migration.add(V[:60], range(60))
        migration_of_store = store.migrate()
        migration = links.migrate(space=Space(model="two"))
        migration.add(V[:100:2], np.arange(0, 100, 2))
        migration.add(V[:60], range(60))
        assert migration_of_store.status() == migration.status()
        assert np.array_equal(migration_of_store.missing(), migration.missing())
        assert np.array_equal(migration_of_store.predict(V), migration.predict(V))
        assert migration_of_store.report() == migration.report()
        assert migration_of_store.finish() == migration.finish()
        assert store.state_hash() == links.state_hash()
        assert store.migration() is None
        store.undo()
        links.undo()
        assert store.state_hash() == links.state_hash()
    with Store.open(path) as store:
        assert store.state_hash() == links.state_hash()
        store.verify()


def test_what_came_is_there_after_reopening(path: Path) -> None:
    space = Space(mean=np.full(90, 0.01), model="two")
    with opened(path) as store:
        store.add_many(X[:50])
        migration = store.migrate(space=space, thresholds=Thresholds(0.5, 0.6, 0.8))
        migration.add(V[:20], range(20))
        migration.add(V[20:25], [24, 23, 22, 21, 20])
        report = migration.report()
    with opened(path) as store:
        migration = store.migrate()
        assert migration.missing().tolist() == list(range(25, 50))
        assert migration.report() == report
        assert store.migrate(space=space, thresholds=Thresholds(0.5, 0.6, 0.8)) is not None
        with pytest.raises(ArgumentError, match="than those of the migration under way"):
            store.migrate(space=Space(model="three"))
        migration.finish()
        assert store.space == space
        assert store.thresholds == Thresholds(0.5, 0.6, 0.8)


def test_thresholds_from_the_present_clusters_are_found_at_the_end(path: Path) -> None:
    with Store.open(path, thresholds=Thresholds(0.9, 0.95, 0.97)) as store:
        store.add_many(X)
        store.migrate(thresholds="from clusters").add(V, range(len(X)))
    with Store.open(path) as store:
        expected = store.rebuild(vectors=V, thresholds="from clusters")
        assert store.migrate(thresholds="from clusters").report().rebuild == expected
        store.migrate().finish()
        assert store.thresholds == expected.thresholds
    with Store.open(path) as store:
        store.verify()


def test_vectors_come_by_their_own_keys(path: Path) -> None:
    keys = [f"photo {n}" for n in range(30)]
    with opened(path) as store:
        store.add_many(X[:30], ids=keys)
        migration = store.migrate()
        assert migration.add(V[:30], keys=keys) == 30
        with pytest.raises(UnknownIdError, match="photo 31"):
            migration.add(V[:1], keys=["photo 31"])
        assert not len(migration.missing())
        migration.finish()
        assert np.array_equal(store.vectors(["photo 7"]), V[[7]])


def test_numbers_that_are_used_again_after_an_undo_are_missing(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:50])
        store.add_many(X[50:60])
        migration = store.migrate()
        migration.add(V[:60], range(60))
        store.undo(step=True)
        assert not len(migration.missing())
        store.add_many(X[100:105])
        assert migration.missing().tolist() == [50, 51, 52, 53, 54]
        store.undo(step=True)
        store.redo()
        assert migration.missing().tolist() == [50, 51, 52, 53, 54]
    with opened(path) as store:
        assert store.migrate().missing().tolist() == [50, 51, 52, 53, 54]


def test_a_redo_restores_what_was_re_embedded(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:50])
        store.add_many(X[50:60])
        migration = store.migrate()
        migration.add(V[:60], range(60))
        store.undo(step=True)
        assert migration.status().n_vectors == 50
        store.redo()
        assert migration.status().reencoded == 60


def test_an_abandoned_migration_leaves_nothing(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:20])
        before = store.state_hash()
        migration = store.migrate(space=Space(model="two"))
        migration.add(V[:20], range(20))
        migration.abandon()
        assert store.migration() is None
        for call in (migration.status, migration.finish, migration.abandon, migration.missing):
            with pytest.raises(ArgumentError, match="finished or abandoned"):
                call()
        again = store.migrate()
        assert again.status().reencoded == 0
        with pytest.raises(ArgumentError, match="finished or abandoned"):
            migration.status()
        again.abandon()
        assert store.state_hash() == before
        store.compact()
    assert V[3].tobytes() not in path.read_bytes()


def test_compaction_erases_removed_items_and_keeps_the_others(path: Path) -> None:
    with opened(path, search=True) as store:
        store.add_many(X[:30])
        migration = store.migrate()
        migration.add(V[:30], range(30))
        store.remove(11)
        store.compact()
        assert migration.status().reencoded == 29
    data = path.read_bytes()
    assert V[11].tobytes() not in data
    assert V[12].tobytes() in data
    with opened(path) as store:
        store.verify()
        assert store.migrate().status().reencoded == 29


def test_a_reader_sees_the_migration_and_cannot_change_it(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:30])
        with Store.open(path, read_only=True) as reader:
            assert reader.migration() is None
            store.migrate().add(V[:10], range(10))
            reader.refresh()
            seen = reader.migration()
            assert seen is not None
            assert seen.status().reencoded == 10
            assert seen.predict(V[:5]).shape == (5,)
            store.migrate().add(V[10:20], range(10, 20))
            assert seen.status().reencoded == 10
            reader.refresh()
            assert seen.status().reencoded == 20
            for call in (lambda: seen.add(V[:1], [0]), seen.finish, seen.abandon):
                with pytest.raises(StoreError, match="read_only"):
                    call()


def test_vectors_may_arrive_while_a_migration_ends(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:60])
        migration = store.migrate()
        migration.add(V[:60], range(60))
        calls: list[int] = []
        rebuild = migration._host.rebuild

        def late(*args: Any) -> Any:
            if len(calls) < 2:
                store.add(X[60 + len(calls)])
            calls.append(1)
            return rebuild(*args)

        migration._host.rebuild = late  # type: ignore[method-assign]
        report = migration.finish()
        assert len(calls) == 3
        assert report.status.n_vectors == 62
        assert report.status.missing == 2
        assert store.dimension == 90


def test_a_migration_gives_up_if_vectors_keep_coming(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:60])
        migration = store.migrate()
        migration.add(V[:60], range(60))
        rebuild = migration._host.rebuild

        def late(*args: Any) -> Any:
            store.add(X[100])
            return rebuild(*args)

        migration._host.rebuild = late  # type: ignore[method-assign]
        with pytest.raises(ChangedError, match="more events"):
            migration.finish()
        assert store.dimension == 256
        assert migration.status().reencoded == 60


def test_threads_add_to_one_migration(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:100])
        store.migrate()

        def work(first: int) -> None:
            mine = store.migrate()
            for number in range(first, 100, 4):
                mine.add(V[number : number + 1], [number])

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not len(store.migrate().missing())


def test_a_migration_of_a_store_needs_vectors(path: Path) -> None:
    with opened(path) as store:
        with pytest.raises(ArgumentError, match="without vectors"):
            store.migrate()
        assert store.migration() is None


def test_a_commit_that_fails_at_the_end_leaves_the_migration_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with opened(path) as store:
        store.add_many(X[:40])
        before = store.state_hash()
        migration = store.migrate(space=Space(model="two"))
        migration.add(V[:40], range(40))
        with monkeypatch.context() as broken:
            broken.setattr("linkstream.store.about.set_disagreements", fail)
            with pytest.raises(StoreClosedError, match="a write failed"):
                migration.finish()
        assert store.state_hash() == before
    with opened(path) as store:
        store.verify()
        assert store.state_hash() == before
        again = store.migrate()
        assert again.status().missing == 0
        again.finish()
        assert (store.dimension, store.migration()) == (90, None)


def test_the_writer_thread_does_not_compute_the_rebuild_at_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **_options: Any) -> None:
        raise AssertionError("it was computed before")

    with Store.open(path, thresholds=Thresholds(0.9, 0.95, 0.97)) as store:
        store.add_many(X)
        for space in (Space(model="two"), Space(np.full(90, 0.01))):
            given: dict[str, Any] = {"space": space, "thresholds": "from clusters"}
            migration = store.migrate(**given)
            migration.add(V, range(len(X)))
            expected = store.rebuild(vectors=V, **given)
            with monkeypatch.context() as broken:
                broken.setattr("linkstream.clusterer.rebuilding.prepare", fail)
                assert migration.finish().rebuild.flows == expected.flows
            store.undo()


def test_another_migration_may_begin_after_the_end_was_undone(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:40])
        first = store.migrate(space=Space(model="two"))
        first.add(V[:40], range(40))
        first.finish()
        store.undo()
        second = store.migrate(space=Space(model="three"))
        assert second.status().missing == 40
        second.add(reencoded(X[:40], 70), range(40))
        second.finish()
        assert (store.dimension, store.space.model) == (70, "three")


def test_a_backup_has_the_migration(path: Path, tmp_path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:40])
        store.migrate(space=Space(model="two")).add(V[:30], range(30))
        store.backup(tmp_path / "copy.links")
    with opened(tmp_path / "copy.links") as store:
        store.verify()
        assert store.migrate().missing().tolist() == list(range(30, 40))


# Damage


def damage(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (body,) = connection.execute("SELECT body FROM reencoded WHERE number = 7").fetchone()
        connection.execute("UPDATE reencoded SET body = ? WHERE number = 7", (body[::-1],))
        connection.commit()


def test_a_damaged_vector_is_found_and_a_repair_leaves_it_out(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:30])
        store.migrate(space=Space(model="two")).add(V[:20], range(20))
    damage(path)
    with opened(path) as store:
        with pytest.raises(DamagedStoreError, match="migration for item 7"):
            store.verify()
        with pytest.raises(DamagedStoreError, match="migration for item 7"):
            store.migrate().report()
    repaired = repair(path)
    assert repaired.lost == 0
    with opened(path) as store:
        store.verify()
        migration = store.migrate(space=Space(model="two"))
        assert migration.missing().tolist() == [7, *range(20, 30)]
        migration.finish()


def test_a_repair_does_not_bring_back_an_abandoned_migration(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:30])
        store.migrate().add(V[:20], range(20))
        store.migrate().abandon()
    repair(path)
    with opened(path) as store:
        assert store.migration() is None
        migration = store.migrate()
        assert migration.status().reencoded == 0
        migration.add(V[5:8], [5, 6, 7])
    repair(path)
    with opened(path) as store:
        assert store.migrate().status().reencoded == 3


def test_keys_that_are_no_texts_are_refused(path: Path) -> None:
    keys = [str(9 - n) for n in range(10)]
    with opened(path) as store:
        store.add_many(X[:10], ids=keys)
        migration = store.migrate()
        for given in (list(range(10)), np.arange(10), "0123456789"):
            with pytest.raises(ArgumentError, match="the numbers of vectors go into numbers="):
                migration.add(V[:10], keys=given)  # type: ignore[arg-type]
        assert migration.status().reencoded == 0
        assert migration.add(V[:3], keys=np.array(keys[:3])) == 3  # type: ignore[arg-type]
        assert migration.missing().tolist() == list(range(3, 10))


def test_a_migration_whose_vectors_were_all_removed_can_end_or_go_on(path: Path) -> None:
    with opened(path) as store:
        store.add_many(X[:12])
        store.migrate().add(V[:5], range(5))
        for number in range(12):
            store.remove(number)
    with opened(path) as store:
        migration = store.migrate()
        assert (migration.status().n_vectors, len(migration.missing())) == (0, 0)
        with pytest.raises(ArgumentError, match=r"all removed.*Abandon the migration"):
            migration.finish()
        store.add_many(X[12:14])
        assert migration.missing().tolist() == [12, 13]
        migration.abandon()
        assert store.migration() is None


def test_an_undo_of_all_that_was_re_embedded_frees_the_dimension(path: Path) -> None:
    with opened(path) as store:
        links = Links.from_thresholds(RAW)
        for each in (links, store):
            each.add_many(X[:20])
            migration = each.migrate()
            migration.add(V[:15], range(15))
            each.undo(to=0)
            each.add_many(X[20:40])
            assert migration.status().dimension is None
            assert migration.add(V[:3, :64], [4, 5, 6]) == 3
            assert migration.status().dimension == 64
            assert migration.missing(5).tolist() == [0, 1, 2, 3, 7]
        store.verify()
    with opened(path) as store:
        status = store.migrate().status()
        assert (status.reencoded, status.dimension) == (3, 64)
