"""Migrations of `Links`: another encoder, a batch at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.data import voice_stream
from linkstream.errors import (
    ArgumentError,
    DimensionError,
    UnknownIdError,
    VectorError,
)
from linkstream.identity.migration_report import MigrationReport, MigrationStatus, TranslationLoss

RAW = Thresholds(0.8, 0.9, 0.93)
ENGINES = ("native", "reference")

Rows = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def X() -> Rows:
    return voice_stream().X[:400].astype(np.float32)


def reencoded(rows: Rows, dimension: int = 300) -> Rows:
    """Return the rows of another encoder: a rotation into more dimensions."""
    rng = np.random.default_rng(7)
    turned = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    return (rows @ turned[: rows.shape[1]]).astype(np.float32)


def added(X: Rows, engine: str = "auto", **options: Any) -> Links:
    links = Links.from_thresholds(RAW, engine=engine, **options)
    links.add_many(X)
    return links


@pytest.mark.parametrize("engine", ENGINES)
def test_a_migration_of_all_vectors_equals_a_rebuild_with_them(X: Rows, engine: str) -> None:
    one, other, rows = added(X[:150], engine), added(X[:150], engine), reencoded(X[:150])
    for links in (one, other):
        links.name(int(links.labels()[0]), "Ann")
        links.remove(3)
    migration = one.migrate(space=Space(model="two"), thresholds=RAW)
    order = np.random.default_rng(1).permutation(150)
    taken = sum(migration.add(rows[part], part) for part in np.array_split(order, 7))
    assert taken == 149
    rebuilt = other.rebuild(apply=True, vectors=rows, space=Space(model="two"), thresholds=RAW)
    finished = migration.finish()
    assert finished.rebuild == rebuilt
    assert finished.loss is None
    assert one.state_hash() == other.state_hash()
    assert one.space.model == "two"
    one.undo()
    assert one.dimension == 256


def test_status_and_missing_follow_both_sides(X: Rows) -> None:
    links, rows = added(X[:100]), reencoded(X)
    migration = links.migrate(space=Space(model="two"))
    assert migration.status().to_dict() == {
        "n_vectors": 100,
        "reencoded": 0,
        "missing": 100,
        "dimension": None,
        "model": "two",
        "pairs": 0,
        "held": 0,
        "share": 0.0,
    }
    migration.add(rows[:40], range(40))
    migration.add(rows[:10], range(10))  # again
    links.add_many(X[100:110])
    links.remove(5)
    links.remove(60)
    status = migration.status()
    assert (status.n_vectors, status.reencoded, status.missing) == (108, 39, 69)
    assert status.dimension == 300
    expected = [n for n in range(40, 110) if n != 60]
    assert migration.missing().tolist() == expected
    assert migration.missing(3).tolist() == expected[:3]
    assert "39 of 108 vectors re-embedded by two (36.1%)" in str(status)


def test_numbers_that_are_used_again_after_an_undo_are_missing(X: Rows) -> None:
    links, rows = added(X[:90]), reencoded(X)
    middle = links.n_events
    links.add_many(X[90:100])
    migration = links.migrate()
    migration.add(rows[:100], range(100))
    links.undo(to=middle)
    links.add_many(X[200:210])
    assert migration.missing().tolist() == list(range(90, 100))
    links.name(int(links.labels()[0]), "Ann")
    links.undo()
    assert len(migration.missing()) == 10


def test_a_removed_vector_that_undo_restores_is_still_there(X: Rows) -> None:
    links, rows = added(X[:50]), reencoded(X)
    migration = links.migrate()
    migration.add(rows[:50], range(50))
    links.remove(7)
    links.undo()
    assert not len(migration.missing())


def test_the_order_and_the_batches_change_nothing(X: Rows) -> None:
    hashes, losses = set(), set()
    for seed, engine in ((0, "native"), (1, "native"), (2, "reference")):
        links, rows = added(X[:120], engine), reencoded(X[:120])
        numbers = np.random.default_rng(seed).permutation(np.arange(0, 120, 2))
        migration = links.migrate(thresholds=RAW)
        for part in np.array_split(numbers, seed + 1):
            migration.add(rows[part], part)
        losses.add(migration.report().loss)
        migration.finish()
        hashes.add(links.state_hash())
    assert len(hashes) == len(losses) == 1


# Vectors that are translated


def test_missing_vectors_are_translated_and_ids_stay(X: Rows) -> None:
    links, rows = added(X), reencoded(X)
    links.rebuild(apply=True)
    before = links.labels()
    migration = links.migrate(thresholds=RAW)
    migration.add(rows[::2], np.arange(0, 400, 2))
    report = migration.report()
    assert report.loss is not None
    assert report.loss.n_pairs == 200
    assert report.loss.cosine > 0.9
    assert report.loss.changed < 0.1
    assert "translation from 200 pairs" in report.text()
    assert not report.applied
    assert np.array_equal(links.labels(), before)
    finished = migration.finish()
    assert finished.applied
    assert finished.rebuild.flows == report.rebuild.flows
    assert finished.loss == report.loss
    assert np.mean(links.labels() == before) > 0.9
    assert links.dimension == 300


def test_a_report_warns_where_translation_changes_many_answers() -> None:
    for changed, warns in ((0.25, False), (0.26, True)):
        loss = TranslationLoss(n_pairs=30, cosine=0.4, changed=changed)
        report = MigrationReport(MigrationStatus(60, 30, 30), loss=loss)
        assert ("Re-embed more before finish" in report.text()) is warns


def test_a_centred_clusterer_is_translated_from_vectors_that_are_not(X: Rows) -> None:
    space = Space(mean=X.mean(axis=0))
    links = Links.from_thresholds(Thresholds(0.5, 0.6, 0.8), space=space)
    links.add_many(X)
    migration = links.migrate(space=Space(mean=reencoded(X).mean(axis=0)))
    migration.add(reencoded(X[::2]), np.arange(0, 400, 2))
    loss = migration.report().loss
    assert loss is not None
    assert loss.cosine > 0.95


def test_a_translation_needs_pairs(X: Rows) -> None:
    links, rows = added(X[:60]), reencoded(X)
    migration = links.migrate()
    migration.add(rows[:9], range(9))
    before = links.state_hash()
    for call in (migration.report, migration.finish, lambda: migration.predict(rows[:2])):
        with pytest.raises(ArgumentError, match="9 of 60 vectors re-embedded"):
            call()
    assert links.state_hash() == before
    migration.add(rows[9:10], [9])
    migration.finish()


def test_a_vector_without_a_translation_is_named() -> None:
    links = Links(0.7, 0.6, 0.9)
    links.add_many([[0.0, 1.0, 0.0] for _ in range(20)])
    links.add_many([[1.0, 0.0, 1.0], [1.0, 0.0, -1.0]])  # the third axis goes to the first
    migration = links.migrate()
    migration.add([[0.0, 1.0] for _ in range(20)], range(20))
    with pytest.raises(VectorError, match=r"vector 2\d, whose translation is zero"):
        migration.finish()
    assert links.dimension == 3


# Answers of both models


def test_both_models_answer_while_vectors_are_re_embedded(X: Rows) -> None:
    links, rows = added(X[:300]), reencoded(X)
    migration = links.migrate(thresholds=RAW)
    migration.add(rows[:300:3], np.arange(0, 300, 3))
    old, new = links.predict(X[300:]), migration.predict(rows[300:])
    assert np.mean(old == new) > 0.8
    migration.add(rows[:300], np.arange(300))
    assert np.mean(old == migration.predict(rows[300:])) > 0.97
    links.add_many(X[300:310])
    assert migration.predict(rows[300:310]).shape == (10,)


# Arguments, and the end


def test_vectors_that_cannot_be_taken_are_refused_before_any_is(X: Rows) -> None:
    links, rows = added(X[:60]), reencoded(X[:60])
    migration = links.migrate(space=Space(dimension=300))
    broken = rows[:5].copy()
    broken[2] = np.nan
    refused: list[tuple[type[Exception], str, Any]] = [
        (ArgumentError, "neither of numbers and keys", lambda: migration.add(rows[:2])),
        (ArgumentError, "without a store", lambda: migration.add(rows[:2], keys=["a", "b"])),
        (ArgumentError, "2 vectors and 3 numbers", lambda: migration.add(rows[:2], [0, 1, 2])),
        (ArgumentError, "two vectors for item 1", lambda: migration.add(rows[:2], [1, 1])),
        (ArgumentError, "and type float64", lambda: migration.add(rows[:2], [0.5, 1.5])),
        (UnknownIdError, "vector 60", lambda: migration.add(rows[:2], [59, 60])),
        (UnknownIdError, "vector -1", lambda: migration.add(rows[:2], [-1, 0])),
        (VectorError, "row 2", lambda: migration.add(broken, range(5))),
        (DimensionError, "dimension 256", lambda: migration.add(X[:2], [0, 1])),
    ]
    for error, words, call in refused:
        with pytest.raises(error, match=words):
            call()
        assert migration.status().reencoded == 0


def test_keys_that_are_no_texts_are_refused(X: Rows) -> None:
    migration = added(X[:20]).migrate()
    for keys, words in (
        ([1, 0], "key 0, 1, of type int; expected a text"),
        (np.array([1, 0]), "of type int"),
        (["a", None], "key 1, None, of type NoneType"),
        ("ab", "keys of type str; expected a list of texts"),
        (7, "keys of type int"),
    ):
        with pytest.raises(ArgumentError, match=words):
            migration.add(reencoded(X[:2]), keys=keys)  # type: ignore[arg-type]
    assert migration.status().reencoded == 0


def test_a_migration_whose_vectors_were_all_removed_can_end_or_go_on(X: Rows) -> None:
    links, rows = added(X[:12]), reencoded(X[:12])
    first, second = (links.migrate(space=Space(model="two")) for _ in range(2))
    for migration in (first, second):
        migration.add(rows[:5], range(5))
    for number in range(12):
        links.remove(number)
    status = first.status()
    assert (status.n_vectors, status.reencoded, status.missing) == (0, 0, 0)
    assert status.model == "two"
    assert not len(first.missing())
    for call in (first.report, first.finish, lambda: first.predict(rows)):
        with pytest.raises(ArgumentError, match=r"all removed.*Abandon the migration"):
            call()
    first.abandon()
    links.add_many(X[12:14])
    assert second.missing().tolist() == [12, 13]
    second.add(rows[:2], [12, 13])
    assert second.finish().applied


def test_repr_tells_the_status_and_the_end(X: Rows) -> None:
    migration = added(X[:9]).migrate()
    assert repr(migration).startswith("Migration(0 of 9 vectors")
    migration.abandon()
    assert repr(migration) == "Migration(ended)"


def test_a_migration_ends_once(X: Rows) -> None:
    links, rows = added(X[:40]), reencoded(X[:40])
    before = links.state_hash()
    first, second = links.migrate(), links.migrate()
    first.add(rows, range(40))
    first.abandon()
    assert links.state_hash() == before
    second.add(rows, range(40))
    second.finish()
    for migration in (first, second):
        for call in (migration.status, migration.finish, migration.abandon, migration.missing):
            with pytest.raises(ArgumentError, match="finished or abandoned"):
                call()


def test_a_migration_needs_vectors(X: Rows) -> None:
    with pytest.raises(ArgumentError, match="without vectors"):
        Links.from_thresholds(RAW).migrate()
    for values, words in (({"space": "two"}, "type str"), ({"thresholds": 0.8}, "type float")):
        with pytest.raises(ArgumentError, match=words):
            added(X[:5]).migrate(**values)


def test_corrections_made_meanwhile_hold_afterwards(X: Rows) -> None:
    links, rows = added(X[:200]), reencoded(X[:200])
    migration = links.migrate(thresholds=RAW)
    migration.add(rows, range(200))
    links.name(int(links.labels()[0]), "Ann")
    links.different(0, 199)
    migration.finish()
    labels = links.labels()
    assert labels[0] != labels[199]
    assert links.named("Ann") == labels[0]


def test_thresholds_may_come_from_the_present_clusters(X: Rows) -> None:
    first, second, rows = Links(0.9, 0.95, 0.97), Links(0.9, 0.95, 0.97), reencoded(X)
    for links in (first, second):
        links.add_many(X)
    migration = first.migrate(thresholds="from clusters")
    migration.add(rows, range(len(X)))
    expected = second.rebuild(apply=True, vectors=rows, thresholds="from clusters")
    assert migration.predict(rows[:5]).shape == (5,)
    report = migration.report()
    assert report.rebuild.thresholds == expected.thresholds
    assert migration.finish().rebuild == expected
    assert first.thresholds == second.thresholds == expected.thresholds
    assert first.state_hash() == second.state_hash()
