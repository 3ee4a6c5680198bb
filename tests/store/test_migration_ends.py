"""Ends of migrations: what an undo leaves, several side by side, and changes that keep coming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from linkstream import Links
from linkstream.clusterer.migrating import Moment
from linkstream.errors import ArgumentError, ChangedError
from store.test_migration import RAW, V, X, opened, reencoded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.links"


def test_an_undo_of_the_end_leaves_no_migration_and_redo_restores_it(path: Path) -> None:
    links = Links.from_thresholds(RAW)
    with opened(path) as store:
        for each in (links, store):
            each.add_many(X[:60])
            migration = each.migrate()
            migration.add(V[:50], range(50))
            migration.finish()
            after = each.state_hash()
            each.undo()
            assert each.dimension == X.shape[1]
            with pytest.raises(ArgumentError, match="finished or abandoned"):
                migration.status()
            assert each.migrate().status().reencoded == 0
            each.redo()
            assert (each.dimension, each.state_hash()) == (90, after)


def test_several_migrations_and_a_rebuild_go_on_side_by_side() -> None:
    links = Links.from_thresholds(RAW)
    links.add_many(X[:60])
    first, second = links.migrate(), links.migrate()
    first.add(V[:60], range(60))
    second.add(reencoded(X[:60], 70), range(60))
    links.rebuild(apply=True)
    assert (first.status().dimension, second.status().dimension) == (90, 70)
    first.finish()
    assert (links.dimension, second.status().reencoded) == (90, 60)
    second.finish()
    assert links.dimension == 70


def test_changes_that_keep_coming_leave_the_migration_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as store:
        store.add_many(X[:30])
        migration = store.migrate()
        migration.add(V[:30], range(30))
        report, rows = Moment.report, iter(X[30:])

        def slow(self: Moment, progress: Any = None) -> Any:
            found = report(self, progress)
            store.add(next(rows))
            return found

        monkeypatch.setattr(Moment, "report", slow)
        with pytest.raises(ChangedError, match=r"in one of 5 tries.*the migration goes on"):
            migration.finish()
        assert migration.status().reencoded == 30
        assert store.dimension == X.shape[1]
