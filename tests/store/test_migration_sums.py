"""Migrations of stores that keep no vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.data import voice_stream
from linkstream.errors import NotTrackedError, StoreError
from linkstream.store import Store, repair

RAW = Thresholds(0.8, 0.9, 0.93)
X = voice_stream().X[:200].astype(np.float32)
V = (X @ np.random.default_rng(7).standard_normal((256, 90))).astype(np.float32)
SEEN = np.random.default_rng(8).permutation(200)[:120]
KINDS: dict[str, dict[str, Any]] = {
    "not kept": {"keep_vectors": False},
    "not tracked": {"track_vectors": False},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.links"


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return {"thresholds": RAW, "mode": "best", **found}


def begun(where: Any, options: dict[str, Any], *, old: bool = True) -> Any:
    """Begin a migration and add some of the vectors."""
    tracked = options.get("track_vectors", True)
    migration = where.migrate(space=Space(model="two"))
    for part in np.array_split(SEEN, 5):
        named = {"numbers": part} if tracked else {}
        migration.add(V[part], old=X[part] if old else None, **named)
    return migration


def twin(options: dict[str, Any]) -> Links:
    """Return a clusterer that did the same as a store."""
    links = Links.from_thresholds(**options)
    links.add_many(X)
    links.name(0, "Ann")
    return links


def test_a_store_migrates_as_links_do_and_undoes_it(path: Path, options: dict[str, Any]) -> None:
    links = twin(options)
    with Store.open(path, **options) as store:
        store.add_many(X)
        store.name(0, "Ann")
        before = store.state_hash()
        begun(store, options)
    with Store.open(path) as store:
        found = store.migration()
        assert found is not None
        assert found.status().pairs == 120
        migration = begun(links, options)
        assert np.array_equal(found.predict(V[:20]), migration.predict(V[:20]))
        assert found.report() == migration.report()
        assert found.finish() == migration.finish()
        assert store.state_hash() == links.state_hash() != before
    with Store.open(path) as store:
        assert store.migration() is None
        assert store.state_hash() == links.state_hash()
        assert store.dimension == 90
        assert [step.command for step in store.steps()] == ["rebuild"]
        store.undo(step=True)
        links.undo()
        assert store.state_hash() == links.state_hash() == before
        store.verify()
    with Store.open(path) as store:
        assert store.state_hash() == before
        store.add_many(X[:10])
        links.add_many(X[:10])
        assert store.state_hash() == links.state_hash()


def test_undo_works_after_a_compaction_and_not_after_a_change(
    path: Path, options: dict[str, Any]
) -> None:
    with Store.open(path, **options) as store:
        store.add_many(X)
        before = store.state_hash()
        begun(store, options).finish()
        store.compact()
    with Store.open(path) as store:
        store.verify()
        store.undo()
        assert store.state_hash() == before
        begun(store, options).finish()
        store.add(V[0])
        with pytest.raises(NotTrackedError):
            store.undo()


def test_undo_of_a_larger_step_is_refused(path: Path, options: dict[str, Any]) -> None:
    with Store.open(path, **options) as store:
        store.add_many(X)
        begun(store, options).finish()
        after = store.state_hash()
        with store.step("two calls"):
            store.name(0, "Ann")
            store.rename(0, "Bea")
        with pytest.raises(NotTrackedError):
            store.undo(step=True)
        assert store.named("Bea") is not None
        assert after


def test_what_was_added_survives_compaction_and_repair(path: Path, options: dict[str, Any]) -> None:
    with Store.open(path, **options) as store:
        store.add_many(X)
        migration = begun(store, options)
        before = migration.report()
        store.compact()
        migration = store.migration()
        assert migration is not None
        assert migration.report() == before
    repair(path)
    with Store.open(path) as store:
        found = store.migration()
        assert found is not None
        assert found.report() == before
        store.verify()


def test_removed_vectors_leave_the_file_with_their_old_ones(path: Path) -> None:
    with Store.open(path, thresholds=RAW, mode="best", keep_vectors=False) as store:
        store.add_many(X)
        migration = store.migrate()
        migration.add(V[:60], range(60), old=X[:60])
        store.remove(7, x=X[7])
        store.compact()
        assert migration.status().pairs == 59
    assert X[7].tobytes() not in path.read_bytes()
    assert V[7].tobytes() not in path.read_bytes()


def test_old_vectors_of_an_encoder_that_is_gone_do_not_count(path: Path) -> None:
    with Store.open(path, thresholds=RAW, mode="best", keep_vectors=False) as store:
        store.add_many(X)
        migration = store.migrate()
        migration.add(V[:60], range(60), old=X[:60])
        store.rebuild(apply=True, vectors=V)
        assert migration.status().pairs == 0
        assert migration.status().reencoded == 60


def test_threads_may_add_pairs_at_once(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with Store.open(path, thresholds=RAW, mode="best", track_vectors=False) as store:
        store.add_many(X)
        migration = store.migrate()
        with ThreadPoolExecutor(4) as pool:
            list(
                pool.map(lambda n: migration.add(V[n : n + 5], old=X[n : n + 5]), range(0, 200, 5))
            )
        assert migration.status().pairs == 200
        with pytest.raises(StoreError):
            Store.open(path)
