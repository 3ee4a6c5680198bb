"""Answers in a store: it learns by itself, and replay, undo and kill -9 change nothing of it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.clusterer.confidence import LEARNS_AFTER, Confidence, setting
from linkstream.confidence import Curve, Model
from linkstream.confidence.answers import TOLD, UNTOLD
from linkstream.store import Store, repair
from streams import make

STREAM = make("lobes", 0)
THRESHOLDS = Thresholds(*STREAM.thresholds)
HELD = Curve(1.0, 8.0, -0.4, 0.5, 0.99, 900, 90)
NEW = Curve(0.5, 5.0, -0.2, 1.0, 0.98, 300, 30)
SAME = Curve(-1.0, 9.0, -0.3, 0.1, 0.9, 40, 400)
MODEL = Model(setting(Links.from_thresholds(THRESHOLDS).core), HELD, NEW, SAME, 40)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.links"


def opened(path):
    return Store.open(path, thresholds=THRESHOLDS, confidence=MODEL)


def learnt(store):
    return len(store.confidence.model.answers)


def test_a_store_learns_after_each_ten_answers_also_when_it_is_opened_again(path):
    with opened(path) as store:
        store.add_many(STREAM.vectors[:60])
        for vector in range(1, LEARNS_AFTER):
            store.judge(vector, False)
        assert learnt(store) == 0
        before = store.add(STREAM.vectors[60]).probability
        store.undo()
        store.judge(30, False)
        assert learnt(store) == LEARNS_AFTER
        after = store.add(STREAM.vectors[60]).probability
        assert after < before
        model = store.confidence.model
    for _ in range(2):
        with Store.open(path) as store:
            assert store.confidence.model == model
            store.undo()
            assert store.add(STREAM.vectors[60]).probability == after
            store.verify()


def test_undo_takes_the_answer_back_and_compaction_keeps_the_others(path):
    with opened(path) as store:
        store.add_many(STREAM.vectors[:60])
        for vector in range(1, 2 * LEARNS_AFTER + 1):
            store.judge(vector, vector % 2 > 0)
        assert learnt(store) == 2 * LEARNS_AFTER
        store.undo()
        assert learnt(store) == LEARNS_AFTER
        store.redo()
        assert learnt(store) == 2 * LEARNS_AFTER
        model = store.confidence.model
        store.compact()
    with Store.open(path) as store:
        assert store.confidence.model == model
        store.judge(40, True)
        assert learnt(store) == 2 * LEARNS_AFTER


def test_an_answer_of_the_review_is_kept_and_the_margin_is_that_of_the_question(path):
    with opened(path) as store:
        store.add_many(STREAM.vectors)
        question = next(each for each in store.review_queue() if each.kind == "join")
        store.different(question.a, question.b, of=question.of)
        event = next(each for each in store.events() if each.kind == "compared")
        assert event.told / TOLD == pytest.approx(question.probability, abs=1e-5)
    with Store.open(path) as store:
        assert "compared" in [each.kind for each in store.events()]


def test_a_drift_is_an_event_of_the_store_once(path):
    with opened(path) as store:
        store.add_many(STREAM.vectors)
        for vector in range(1, 60):
            store.judge(vector, False)
        told = [each for each in store.events() if each.kind == "drifted"]
        assert len(told) == 1
    with Store.open(path) as store:
        assert [each for each in store.events() if each.kind == "drifted"] == told


def test_a_store_of_a_preset_learns_from_answers_alone(path):
    rng = np.random.default_rng(0)
    people = rng.standard_normal((40, 256))
    X = people[rng.integers(40, size=400)] + 0.7 * rng.standard_normal((400, 256))
    with Store.open(path, preset="ge2e", confidence=True) as store:
        store.add_many(X)
        assert "50 answers, of which there are 0" in store.confidence.why
        for vector in range(1, 211):
            store.judge(vector, vector % 5 > 0)
        assert "50 answers" not in store.confidence.why
    with Store.open(path, preset="ge2e", confidence=True) as store:
        assert learnt(store) == 210


def test_a_store_without_snapshots_is_repaired_with_its_answers(path):
    with opened(path) as store:
        store.add_many(STREAM.vectors[:60])
        for vector in range(1, LEARNS_AFTER + 1):
            store.judge(vector, False)
        model = store.confidence.model
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM snapshots")
    assert repair(path).lost == 0
    with Store.open(path) as store:
        assert store.confidence.model == model


_CHILD = """
import sys
from confidence.test_store_answers import STREAM, opened
with opened(sys.argv[1]) as store:
    store.add_many(STREAM.vectors[:60])
    for vector in range(1, 59):
        store.judge(vector, vector % 3 > 0)
        print(vector, flush=True)
"""


def test_a_kill_loses_no_answer_that_was_acknowledged(path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(path)], stdout=subprocess.PIPE, env=environment
    )
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(23)]
    child.send_signal(signal.SIGKILL)
    child.wait()
    said += [int(line) for line in child.stdout.read().split()]
    child.stdout.close()
    with Store.open(path) as store:
        judged = [each.member for each in store.events() if each.kind == "judged"]
        assert judged[: len(said)] == said
        assert len(judged) <= len(said) + 1
        assert learnt(store) == len(judged) // LEARNS_AFTER * LEARNS_AFTER


def test_a_journal_of_another_processor_may_have_rounded_a_probability_otherwise(path, monkeypatch):
    with opened(path) as store:
        store.add_many(STREAM.vectors)
        store.judge(7, True)
        question = next(each for each in store.review_queue() if each.kind == "join")
        store.different(question.a, question.b, of=question.of)
        before = store.state_hash()
    exact = Confidence.told_of

    def rounded(self, *given):
        told = exact(self, *given)
        return told if told == UNTOLD else told + 1

    monkeypatch.setattr(Confidence, "told_of", rounded)
    with Store.open(path) as store:
        store.verify()  # replays the journal
        assert store.state_hash() == before
        judged = [each for each in store.events() if each.kind in ("judged", "compared")]
        assert len(judged) == 2
        assert all(each.told > 0 for each in judged)
