"""Migrations of clusterers that keep no vectors: sums go to the other encoder."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.data import voice_stream
from linkstream.errors import ArgumentError, DimensionError, NotTrackedError, SnapshotError
from linkstream.identity.rebuild_sums import SubclusterSums
from linkstream.metrics import accuracy

RAW = Thresholds(0.8, 0.9, 0.93)
ENGINES = ("native", "reference")

Rows = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def X() -> Rows:
    return voice_stream().X[:300].astype(np.float32)


def reencoded(rows: Rows, dimension: int = 300) -> Rows:
    """Return the rows of another encoder: a rotation into more dimensions."""
    rng = np.random.default_rng(7)
    turned = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    return (rows @ turned[: rows.shape[1]]).astype(np.float32)


def added(X: Rows, engine: str = "auto", **options: Any) -> Links:
    links = Links.from_thresholds(RAW, engine=engine, mode="best", keep_vectors=False, **options)
    links.add_many(X)
    return links


def sums_of(links: Links) -> npt.NDArray[np.int64]:
    return links.core.state().sums


def fixed(rows: Rows) -> npt.NDArray[np.int64]:
    wide = rows.astype(np.float64)
    return np.rint(wide / np.linalg.norm(wide, axis=1, keepdims=True) * 2.0**30).astype(np.int64)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("with_old", [False, True])
def test_sums_are_exact_where_all_vectors_were_re_embedded(
    X: Rows, engine: str, with_old: bool
) -> None:
    links, V = added(X, engine), reencoded(X)
    links.name(int(links.labels()[0]), "Ann")
    held = links.core.state()
    migration = links.migrate(space=Space(model="two"))
    for part in np.array_split(np.random.default_rng(1).permutation(300), 7):
        migration.add(V[part], part, old=X[part] if with_old else None)
    report = migration.finish()
    assert report.loss is None
    assert report.rebuild.n_vectors == 300
    expected = np.zeros((len(held.numbers), 300), dtype=np.int64)
    np.add.at(expected, np.searchsorted(held.numbers, held.vectors), fixed(V))
    assert np.abs(sums_of(links) - expected).max() <= held.counts.max()
    assert np.array_equal(links.core.state().vectors, held.vectors)
    assert (links.dimension, links.space.model) == (300, "two")
    assert links.named("Ann") is not None
    links.add_many(V[:5])  # the stream goes on in the new space
    assert np.array_equal(links.labels()[300:], links.labels()[:5])


def test_a_rebuild_with_all_vectors_is_the_same(X: Rows) -> None:
    V = reencoded(X)
    one, other = added(X), added(X)
    migration = one.migrate()
    migration.add(V, range(300))
    proposed = other.rebuild(vectors=V)
    assert not proposed.applied
    assert other.dimension == 256
    assert other.rebuild(apply=True, vectors=V) == migration.finish().rebuild
    assert one.state_hash() == other.state_hash()
    with pytest.raises(NotTrackedError, match="rebuild in a clusterer that does not keep"):
        other.rebuild()


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("with_old", [False, True])
def test_both_engines_and_all_batches_have_one_state(X: Rows, share: float, with_old: bool) -> None:
    V, hashes, reports = reencoded(X), set(), []
    seen = np.random.default_rng(2).permutation(300)[: int(share * 300)]
    for engine in ENGINES:
        for n in (1, 9):
            links = added(X, engine)
            links.different(0, 200)
            migration = links.migrate(thresholds=RAW)
            for part in np.array_split(seen if n == 1 else seen[::-1], n):
                migration.add(V[part], part, old=X[part] if with_old else None)
            reports.append(migration.finish())
            hashes.add(links.state_hash())
            labels = links.labels()
            assert labels[0] != labels[200]
    assert len(hashes) == 1
    assert all(each == reports[0] for each in reports)


def test_old_vectors_make_a_rotation_nearly_exact(X: Rows) -> None:
    """Subclusters alone are fewer pairs than vectors, and mostly samples."""
    V, seen = reencoded(X), np.random.default_rng(3).permutation(300)[:200]
    cosines, found, fully = [], [], added(X)
    fully.rebuild(apply=True, vectors=V)
    for old in (None, X[seen]):
        links = added(X)
        migration = links.migrate()
        migration.add(V[seen], seen, old=old)
        loss = migration.finish().loss
        assert loss is not None
        cosines.append(loss.cosine)
        found.append(accuracy(fully.labels(), links.labels()))
    assert cosines[1] > max(cosines[0], 0.97)
    assert found[1] > 0.95


@pytest.mark.parametrize("engine", ENGINES)
def test_undo_right_after_takes_it_back(X: Rows, engine: str) -> None:
    links, V = added(X, engine), reencoded(X)
    links.name(int(links.labels()[0]), "Ann")
    before = links.state_hash()
    first = links.n_events
    migration = links.migrate(thresholds=Thresholds(0.7, 0.9, 0.93))
    migration.add(V[:200], range(200))
    migration.finish()
    loaded, twin = Links.from_bytes(links.to_bytes()), copy.copy(links)
    for each in (links, loaded, twin):
        each.undo(to=first)
        assert each.state_hash() == before
        assert (each.dimension, each.thresholds) == (256, RAW)
        assert each.named("Ann") is not None
        with pytest.raises(NotTrackedError):
            each.redo()
        each.add_many(X[:3])
        with pytest.raises(NotTrackedError):
            each.undo()


def test_a_later_change_ends_what_can_be_undone_and_is_not_kept_in_snapshots(X: Rows) -> None:
    links, V = added(X), reencoded(X)
    links.rebuild(apply=True, vectors=V)
    with_former = len(links.to_bytes())
    links.add(V[0])
    with pytest.raises(NotTrackedError, match="undo in a clusterer that does not keep"):
        links.undo()
    assert len(links.to_bytes()) < with_former - sums_of(links).nbytes // 2
    assert links.dimension == 300


def test_a_former_state_of_another_clusterer_is_refused(X: Rows) -> None:
    links, other, V = added(X), added(X[:40]), reencoded(X)
    links.rebuild(apply=True, vectors=V)
    other.rebuild(apply=True, vectors=V[:40])
    former = links.core.before
    links.core.before = None
    other.core.before = former
    assert former is not None
    former = type(former)(former.state, former.ledger, former.epochs, other.n_events)
    other.core.before = former
    with pytest.raises(SnapshotError, match="former state of another clusterer"):
        Links.from_bytes(other.to_bytes())


def test_groups_and_prototypes_hold(X: Rows) -> None:
    links, V = added(X[:100]), reencoded(X)
    links.enrol("Bob", X[100:103])
    links.add_group(X[103:106])
    links.add_many(X[:50], weight=0.5)
    n, numbers = links.n_vectors, [*range(106), *range(50)]
    migration = links.migrate()
    migration.add(V[numbers], range(n))
    migration.finish()
    group = links.labels()[103:106]
    assert len(set(group.tolist())) == 3
    assert set(links.labels()[100:103].tolist()) == {links.named("Bob")}
    assert np.abs(sums_of(links)).max() <= links.core.state().counts.max() * 2**30


def test_pairs_alone_migrate_where_vectors_are_not_tracked(X: Rows) -> None:
    V, hashes = reencoded(X), set()
    for engine in ENGINES:
        links = Links.from_thresholds(RAW, engine=engine, mode="best", track_vectors=False)
        links.add_many(X)
        before = links.state_hash()
        migration = links.migrate()
        for part in np.array_split(np.arange(280), 3):
            assert migration.add(V[part], old=X[part]) == len(part)
        assert migration.status().pairs == 280
        assert migration.status().missing == 300
        assert np.array_equal(migration.predict(V[:20]), links.predict(X[:20]))
        report = migration.finish()
        assert report.loss is not None
        assert report.loss.cosine > 0.99
        hashes.add(links.state_hash())
        links.undo()
        assert links.state_hash() == before
    assert len(hashes) == 1


def test_what_cannot_be_is_refused_and_changes_nothing(X: Rows) -> None:
    V = reencoded(X)
    untracked = Links.from_thresholds(RAW, track_vectors=False)
    untracked.add_many(X[:50])
    pairs = untracked.migrate()
    for options in ({"numbers": [0]}, {"keys": ["a"], "old": X[:1]}, {}):
        with pytest.raises(NotTrackedError, match="by number or key"):
            pairs.add(V[:1], **options)
    with pytest.raises(ArgumentError, match="1 vectors and 2 old"):
        pairs.add(V[:1], old=X[:2])
    with pytest.raises(NotTrackedError, match="vectors that are missing"):
        pairs.missing()
    with pytest.raises(NotTrackedError, match="rebuild"):
        untracked.rebuild(vectors=V[:50])
    kept = Links.from_thresholds(RAW)
    kept.add_many(X[:50])
    with pytest.raises(ArgumentError, match="where vectors are kept"):
        kept.migrate().add(V[:1], [0], old=X[:1])
    links = added(X)
    before, migration = links.state_hash(), links.migrate()
    with pytest.raises(DimensionError, match="dimension 300"):
        migration.add(V[:1], [0], old=V[:1])
    with pytest.raises(ArgumentError, match="no vectors of the other encoder"):
        migration.report()
    migration.add(V[:5], range(5))
    with pytest.raises(ArgumentError, match="to translate sums by"):
        migration.finish()
    migration.add(V[:40], range(40), old=-X[:40])
    with pytest.raises(ArgumentError, match="old vectors that are not those of subcluster"):
        migration.finish()
    assert migration.add(V[:40], range(40), old=X[:40]) == 40
    assert migration.report().status.pairs == 40
    assert links.state_hash() == before


def test_old_vectors_of_an_encoder_that_is_gone_are_dropped(X: Rows) -> None:
    links, V = added(X), reencoded(X)
    first, second = links.migrate(), links.migrate()
    first.add(V[:60], range(60), old=X[:60])
    second.add(V, range(300))
    second.finish()
    assert first.status().pairs == 0
    assert first.status().reencoded == 60
    first.add(V[:60], range(60), old=V[:60])
    assert first.report().status.pairs == 60


def test_thresholds_come_from_the_vectors_that_are_there(X: Rows) -> None:
    V, found = reencoded(X), []
    for engine in ENGINES:
        links = added(X, engine)
        migration = links.migrate(thresholds="from clusters")
        migration.add(V[:250], range(250))
        report = migration.finish()
        found.append(links.thresholds)
        assert report.rebuild.thresholds == links.thresholds
    assert found[0] == found[1]


def test_disagreements_name_vectors_and_are_asked_about(X: Rows) -> None:
    rng = np.random.default_rng(5)
    V = np.tanh(reencoded(X) @ (3.0 * rng.standard_normal((300, 40)))).astype(np.float32)
    links = added(X)
    migration = links.migrate()
    migration.add(V, range(300))
    report = migration.finish()
    assert report.disagreements
    for each in report.disagreements:
        assert all(0 <= vector < 300 for vector in each.vectors)
    assert any(question.before is not None for question in links.review_queue(100))


def test_sums_of_any_size_survive_as_rows() -> None:
    rng = np.random.default_rng(6)
    sums = rng.integers(-(2**61), 2**61, size=(20, 5))
    sums[0] = [0, 1, -1, 2**21, -(2**42)]
    rows = np.asarray(SubclusterSums(sums))
    assert rows.dtype == np.float32
    assert SubclusterSums.of_rows(rows).equals(SubclusterSums(sums))
