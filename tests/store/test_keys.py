"""A call with an idempotency key counts once, however often it comes and whatever comes between."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from linkstream.errors import ArgumentError, IdempotencyError, StoreClosedError, VectorError
from linkstream.store import Store, commit_loop
from store.crash_harness import Job, read, wait
from store.internals import EarlyMaintenance
from store.operations import (
    ADDING,
    THRESHOLDS,
    VERBS,
    Shadow,
    do,
    make_operation,
    plain,
    state_of,
    vectors,
)


@pytest.fixture(autouse=True)
def _early():
    with EarlyMaintenance(20):
        yield


X = vectors(np.random.default_rng(3), 30)


@pytest.fixture
def store(path):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        yield store


CALLS = {
    "add": lambda store, **key: store.add(X[0], **key),
    "add, weighted": lambda store, **key: store.add(X[0], weight=0.5, payload="a", **key),
    "add_many": lambda store, **key: store.add_many(X[:7], **key),
    "add_many, with payloads": lambda store, **key: store.add_many(
        X[:7], payloads=list("abcdefg"), **key
    ),
    "add_many, weighted": lambda store, **key: store.add_many(
        X[:3], weight=np.array([0.5, 0.0, 1.0]), **key
    ),
    "add_group": lambda store, **key: store.add_group(X[:3], payloads=[1, None, {}], **key),
    "add_many, in a group": lambda store, **key: store.add_many(X[:3], group="photo", **key),
    "enrol": lambda store, **key: store.enrol("Ann", X[:2], **key),
    "same": lambda store, **key: store.same(1, 4, **key),
    "different": lambda store, **key: store.different(1, 2, **key),
    "retract": lambda store, **key: store.retract(first_said(store), **key),
    "name": lambda store, **key: store.name(0, "Ann", **key),
    "rename": lambda store, **key: store.rename(0, "Ann", **key),
    "ignore": lambda store, **key: store.ignore(0, **key),
    "judge": lambda store, **key: store.judge(5, True, **key),
    "remove": lambda store, **key: store.remove(5, **key),
    "forget": lambda store, **key: store.forget(1, **key),
    "undo": lambda store, **key: store.undo(**key),
    "undo to": lambda store, **key: store.undo(to=8, **key),
}


def first_said(store):
    """The number of the first correction, whether it still holds or not."""
    return next((event.sequence for event in store.events() if event.kind == "same"), 0)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_repeated_call_gets_the_first_answer_and_is_done_once(path, call):
    with Store.open(path, thresholds=THRESHOLDS, threads=1, confidence=True) as store:
        store.add_many(X[10:])
        store.same(8, 9)
        first = plain(call(store, idempotency_key="batch-1"))
        store.add_many(X[7:9])
        before = state_of(store)
        assert plain(call(store, idempotency_key="batch-1")) == first
        assert state_of(store) == before
    for _ in range(2):
        with Store.open(path) as store:
            assert plain(call(store, idempotency_key="batch-1")) == first
            assert state_of(store) == before
            store.verify()


@pytest.mark.parametrize("call", list(CALLS.values())[:4], ids=list(CALLS)[:4])
def test_the_same_call_under_another_key_is_done_again(store, call):
    call(store, idempotency_key="batch-1")
    n = len(store.labels())
    call(store, idempotency_key="batch-2")
    assert len(store.labels()) == 2 * n


OTHERS = {
    "fewer vectors": lambda store, **key: store.add_many(X[:6], **key),
    "another order": lambda store, **key: store.add_many(X[6::-1], **key),
    "a bit changed": lambda store, **key: store.add_many(bit_changed(X[:7]), **key),
    "other numbers of rows and columns": lambda store, **key: store.add_many(
        X[:7].reshape(14, -1), **key
    ),
    "weights": lambda store, **key: store.add_many(X[:7], weight=0.5, **key),
    "one other weight": lambda store, **key: store.add_many(X[:7], weight=[1] * 6 + [0.5], **key),
    "a group": lambda store, **key: store.add_many(X[:7], group="photo", **key),
    "payloads": lambda store, **key: store.add_many(X[:7], payloads=list("abcdefg"), **key),
    "another verb": lambda store, **key: store.add_group(X[:7], **key),
    "one vector": lambda store, **key: store.add(X[0], **key),
    "no vectors": lambda store, **key: store.add_many(X[:0], **key),
    "a verb without vectors": lambda store, **key: store.name(0, "Ann", **key),
    "undo": lambda store, **key: store.undo(**key),
}


def bit_changed(rows):
    rows = rows.copy()
    rows.view(np.int32)[3, 2] ^= 1
    return rows


@pytest.mark.parametrize("call", OTHERS.values(), ids=OTHERS)
def test_the_same_key_with_another_call_is_refused_and_changes_nothing(path, call):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        first = store.add_many(X[:7], idempotency_key="batch-1").tolist()
        before = state_of(store)
    for _ in range(2):
        with Store.open(path) as store:
            with pytest.raises((IdempotencyError, VectorError)):
                call(store, idempotency_key="batch-1")
            assert store.add_many(X[:7], idempotency_key="batch-1").tolist() == first
            assert state_of(store) == before


@pytest.mark.parametrize(
    "other", [None, ["b", None, 1], ["a", None, True], ["a", None, 1.5], ["a", {}, 1]]
)
def test_other_payloads_are_another_call(store, other):
    payloads = ["a", None, 1]
    first = store.add_many(X[:3], payloads=payloads, idempotency_key="k").tolist()
    with pytest.raises(IdempotencyError):
        store.add_many(X[:3], payloads=other, idempotency_key="k")
    assert store.add_many(X[:3], payloads=tuple(payloads), idempotency_key="k").tolist() == first
    assert store.payloads([0, 1, 2]) == payloads


def test_the_order_of_payload_keys_does_not_matter(store):
    first = store.add(X[0], payload={"a": 1, "b": 2}, idempotency_key="k")
    assert store.add(X[0], payload={"b": 2, "a": 1}, idempotency_key="k") == first
    assert store.n_vectors == 1


def test_an_array_of_another_type_with_the_same_numbers_is_the_same_call(store):
    first = store.add_many(X[:7], idempotency_key="batch-1").tolist()
    for same in (X[:7].astype(np.float64), X[:7].astype(">f4"), X[:7].tolist()):
        assert store.add_many(same, idempotency_key="batch-1").tolist() == first
    assert store.add_many(X[:7], weight=np.ones(7), idempotency_key="batch-1").tolist() == first
    assert len(store.labels()) == 7


def test_a_repeated_call_gets_the_first_answer_after_clusters_have_changed(store):
    first = store.add_many(X[:7], idempotency_key="batch-1").tolist()
    store.remove(0)
    for cluster in {store.resolve(cluster) for cluster in first} - {-1}:
        store.forget(cluster)
    assert store.add_many(X[:7], idempotency_key="batch-1").tolist() == first


def test_a_repeated_call_is_not_done_again_after_an_undo(store):
    store.add_many(X[10:])
    first = store.add(X[0], idempotency_key="k")
    store.undo()
    before = state_of(store)
    assert store.add(X[0], idempotency_key="k") == first
    assert state_of(store) == before


def test_a_refused_call_leaves_its_key_free(store):
    with pytest.raises(VectorError):
        store.add_many([[np.nan] * 8], idempotency_key="batch-1")
    with pytest.raises(ArgumentError):
        store.add_many(X[:7], weight=-1.0, idempotency_key="batch-1")
    with pytest.raises(ArgumentError):
        store.remove(99, idempotency_key="batch-1")
    assert len(store.add_many(X[:7], idempotency_key="batch-1")) == 7


@pytest.mark.parametrize(
    "key", ["a", "", " ", "ключ", "with\0nul", "'; DROP TABLE operations; --", "k" * 255]
)
def test_any_string_is_a_valid_key_or_is_refused_before_any_change(path, key):
    with Store.open(path, thresholds=THRESHOLDS) as store:
        try:
            first = store.add_many(X[:7], idempotency_key=key).tolist()
        except ArgumentError:
            assert key.strip() == "" or "\0" in key
            assert store.n_vectors == 0
            return
    with Store.open(path) as store:
        assert store.add_many(X[:7], idempotency_key=key).tolist() == first
        assert len(store.labels()) == 7


@pytest.mark.parametrize("key", [5, 1.5, True, b"x", ("a",), "\ud800", "k" * 256])
def test_an_invalid_key_is_refused_before_any_change(path, key):
    with Store.open(path, thresholds=THRESHOLDS) as store:
        for call in CALLS.values():
            with pytest.raises(ArgumentError):
                call(store, idempotency_key=key)
        assert len(store.labels()) == 0
        store.add_many(X[:7])
    with Store.open(path) as store:
        assert len(store.labels()) == 7


# Many at once, with one key.


def test_threads_with_the_same_key_all_get_the_first_answer(path):
    threads, rounds = 8, 10
    gate = threading.Barrier(threads)

    def call(thread):
        answers = []
        for turn in range(rounds):
            gate.wait()
            rows = X[2 * turn : 2 * turn + 2]
            answers.append(store.add_many(rows, idempotency_key=str(turn)).tolist())
        return answers

    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        with ThreadPoolExecutor(threads) as pool:
            answers = list(pool.map(call, range(threads)))
        assert store.n_vectors == 2 * rounds
        assert all(answer == answers[0] for answer in answers)
        before = state_of(store)
    with Store.open(path, threads=1) as store:
        assert state_of(store) == before
        assert [operation.key for operation in store.journal.operations()] == list(
            map(str, range(rounds))
        )


def test_threads_with_the_same_key_and_different_calls_add_one_call(path):
    gate = threading.Barrier(8)

    def call(thread):
        gate.wait()
        try:
            return store.add_many(X[3 * thread : 3 * thread + 3], idempotency_key="k").tolist()
        except IdempotencyError:
            return None

    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        with ThreadPoolExecutor(8) as pool:
            answers = [answer for answer in pool.map(call, range(8)) if answer is not None]
        assert len(answers) == 1
        assert store.n_vectors == 3
        assert store.labels().tolist() == answers[0]


# Killed, and tried again from the start by somebody who does not know how far it had come.

ADDS = {verb: VERBS[verb] for verb in ADDING}


def test_calls_repeated_after_each_kill_are_done_once(harness, tmp_path, path):
    seed, operations, known = 7, 40, {}
    shadow = Shadow(seed, verbs=ADDS).until(operations)
    rng = np.random.default_rng(seed)
    for turn in range(6):
        record = tmp_path / f"{turn}.record"
        job = Job(str(path), str(record), seed, 0, operations, verbs=ADDS, keys=True)
        pid = harness.start(job)
        wait(record, answers=turn * 5)
        time.sleep(rng.uniform(0.0, 0.01))
        with contextlib.suppress(ProcessLookupError):  # it may have done all
            os.kill(pid, signal.SIGKILL)
        harness.ended()
        for number, answer in read(record).answers.items():
            assert known.setdefault(number, answer) == answer == shadow.answers[number]
    with Store.open(path, threads=1) as store:
        for number in range(operations):
            what = make_operation(seed, number, None, verbs=ADDS)
            answer = do(store, what, idempotency_key=str(number))
            assert json.loads(json.dumps(answer)) == shadow.answers[number]
        assert state_of(store) == shadow.states[operations]


@pytest.mark.parametrize("rows", [1, 300], ids=["small", "written ahead"])
def test_two_calls_with_one_key_are_both_refused_if_the_commit_fails(path, monkeypatch, rows):
    def broken(writer, group):
        raise sqlite3.OperationalError("disk I/O error")

    outcomes = []

    def call(store):
        try:
            store.add_many(np.resize(X, (rows, X.shape[1])), idempotency_key="the same")
            outcomes.append("answered")
        except StoreClosedError:
            outcomes.append("refused")

    with Store.open(path, thresholds=THRESHOLDS) as store:
        store.add_many(X[:5])
        before, go_on = store.state_hash(), threading.Event()
        others = [threading.Thread(target=store.handle.run, args=(go_on.wait,))]
        others += [threading.Thread(target=call, args=(store,)) for _ in range(2)]
        for thread in others:
            thread.start()
            time.sleep(0.05)  # the first blocks the writer thread; the others wait together
        monkeypatch.setattr(commit_loop.JournalWriter, "commit", broken)
        go_on.set()
        for thread in others:
            thread.join()
        assert outcomes == ["refused", "refused"]
        assert store.state_hash() == before
