"""Disagreements of two encoders after a migration: in the report, and in the review queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from linkstream import Links, Thresholds
from linkstream.identity.disagreements import MOST, Disagreement
from linkstream.identity.review import Question
from linkstream.store import Store

THRESHOLDS = Thresholds(0.8, 0.96, 0.9)

Rows = npt.NDArray[np.float64]


def around(centre: list[float], n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    return np.array(centre) + 0.03 * rng.standard_normal((n, len(centre)))


def views() -> tuple[Rows, Rows]:
    """Return items as two encoders see them: vectors 0 to 9, 10 to 15, 16 to 20, 21 to 28.

    The old one has the first two in one cluster, the new one the last two.
    """
    e = np.eye(6).tolist()
    old = [around(e[0], 10, 0), around(e[0], 6, 1), around(e[1], 5, 2), around(e[2], 8, 3)]
    new = [
        around(e[0], 10, 4),
        around(e[4], 6, 5),
        around([0, 0, 0.93, 0, 0, 0.37], 5, 6),
        around(e[2], 8, 7),
    ]
    return np.concatenate(old), np.concatenate(new)


def migrated(store: Links | Store) -> Any:
    old, new = views()
    store.add_many(old)
    store.rebuild(apply=True)
    migration = store.migrate()
    migration.add(new, range(len(new)))
    return migration


def asked(store: Links | Store) -> list[Question]:
    return [question for question in store.review_queue(50) if question.before is not None]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_report_has_the_margins_of_both_encoders(engine: str) -> None:
    links = Links.from_thresholds(THRESHOLDS, engine=engine)
    report = migrated(links).report()
    assert asked(links) == []
    joined, split = sorted(report.disagreements, key=lambda each: each.kind)
    assert (joined.kind, joined.clusters, joined.sizes) == ("joined", (1, 2), (5, 8))
    assert (split.kind, split.clusters[0], split.sizes) == ("split", 0, (6, 10))
    assert joined.before < -0.5 < 0.03 < joined.after
    assert split.after < -0.5 < 0.05 < split.before
    assert joined.vectors[0] in range(16, 21)
    assert joined.vectors[1] in range(21, 29)
    assert split.vectors[0] in range(10, 16)
    assert split.vectors[1] in range(10)
    for each in report.disagreements:
        assert Disagreement.from_dict(each.to_dict()) == each
        assert str(each) in report.text()


def test_margins_are_those_of_the_sets_of_vectors() -> None:
    old, new = views()
    links = Links.from_thresholds(THRESHOLDS)
    (split,) = [d for d in migrated(links).report().disagreements if d.kind == "split"]

    def margin(rows: Rows) -> float:
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        one, other = units[10:16].sum(axis=0), units[:10].sum(axis=0)
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        return float(cosine - THRESHOLDS.edges(np.array([6.0]), np.array([10.0]))[0])

    assert split.before == pytest.approx(margin(old), abs=1e-6)
    assert split.after == pytest.approx(margin(new), abs=1e-6)


def test_the_review_queue_asks_about_disagreements_until_they_are_answered() -> None:
    links = Links.from_thresholds(THRESHOLDS)
    report = migrated(links).finish()
    assert len(report.disagreements) == 2
    join, cut = sorted(asked(links), key=lambda question: question.kind, reverse=True)
    assert (join.kind, cut.kind) == ("join", "cut")
    assert {join.margin, cut.margin} == {each.after for each in report.disagreements}
    assert {join.before, cut.before} == {each.before for each in report.disagreements}
    assert "by the old encoder" in str(join)
    links.same(cut.a, cut.b, of=cut.of)
    links.different(join.a, join.b, of=join.of)
    assert asked(links) == []
    links.undo()
    (again,) = asked(links)
    assert (again.a, again.b, again.before) == (join.a, join.b, join.before)
    links.same(join.a, join.b, of=join.of)
    assert asked(links) == []


def test_disagreements_end_with_an_undo_and_come_back_with_a_redo() -> None:
    links = Links.from_thresholds(THRESHOLDS)
    migrated(links).finish()
    before = asked(links)
    links.undo()
    assert asked(links) == []
    links.redo()
    assert asked(links) == before


def test_no_question_is_about_removed_vectors_ignored_clusters_or_two_names() -> None:
    links = Links.from_thresholds(THRESHOLDS)
    report = migrated(links).finish()
    (cut,) = [question for question in asked(links) if question.kind == "cut"]
    (join,) = [question for question in asked(links) if question.kind == "join"]
    links.ignore(cut.clusters[0])
    assert asked(links) == [join]
    links.name(join.clusters[0], "Ann")
    assert asked(links) == [join]
    links.name(join.clusters[1], "Bob")
    assert asked(links) == []
    links.undo()
    (split,) = [each for each in report.disagreements if each.kind == "split"]
    links.remove(split.vectors[0])
    assert asked(links) == []


def test_a_store_keeps_disagreements(tmp_path: Path) -> None:
    links = Links.from_thresholds(THRESHOLDS)
    migrated(links).finish()
    path = tmp_path / "people.links"
    with Store.open(path, thresholds=THRESHOLDS) as store:
        migrated(store).finish()
        assert asked(store) == asked(links)
        with Store.open(path, read_only=True) as reader:
            assert asked(reader) == asked(links)
    with Store.open(path) as store:
        assert asked(store) == asked(links)
        store.compact()
        assert asked(store) == asked(links)
        store.verify()


def test_the_largest_disagreements_are_kept() -> None:
    rng = np.random.default_rng(0)
    n = MOST + 20
    links = Links.from_thresholds(THRESHOLDS)
    links.add_many(np.eye(2 * n)[: 2 * n])
    pairs = np.repeat(np.arange(n), 2)
    migration = links.migrate()
    migration.add(np.eye(n)[pairs] + 0.001 * rng.standard_normal((2 * n, n)), range(2 * n))
    assert len(migration.report().disagreements) == MOST
