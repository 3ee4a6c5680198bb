"""Many threads at once: each is answered rightly, in one order, by fewer commits than calls."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.clusterer.verbs import Add, AddMany
from linkstream.errors import (
    ArgumentError,
    LinkstreamError,
    StoreClosedError,
    VectorError,
)
from linkstream.identity import settling, suggestions
from linkstream.store import Store
from linkstream.store.model import Model
from linkstream.store.write_requests import request_of
from store.child import batch
from store.crash_harness import DIE_BEFORE, Job, read
from store.internals import EarlyMaintenance, in_order, told
from store.operations import new, plain, state_of, vectors


@pytest.fixture(autouse=True)
def _early():
    with EarlyMaintenance(20):
        yield


X = vectors(np.random.default_rng(0), 240)


def test_concurrent_adds_are_all_answered_and_none_is_lost(path):
    def work(thread):
        found = []
        for i in range(thread * 30, thread * 30 + 30, 3):
            rows = X[i : i + 3]
            if i % 2:
                found.append(([i], plain(store.add(X[i], payload=i))))
            else:
                payloads = [i, i + 1, i + 2]
                found.append((payloads, store.add_many(rows, payloads=payloads).tolist()))
        return found

    with new(path) as store:
        with ThreadPoolExecutor(8) as pool:
            answers = [answer for answers in pool.map(work, range(8)) for answer in answers]
        given = {op.number: op.payloads for op in told(store)}
        links, decided = in_order(store)
        assert store.state_hash() == links.state_hash()
        right = {tuple(payloads): answer for payloads, answer in answers}
        assert len(right) == len(answers) == len(given) == store.journal.n_operations
        for number, payloads in given.items():
            assert decided[number] == right[tuple(payloads)]
        # Each vector has the number, the payload and the label that belong together.
        payloads = store.payloads(range(store.n_vectors))
        assert np.array_equal(store.vectors(range(store.n_vectors)), X[payloads])
        before = state_of(store)
    with Store.open(path) as store:
        assert state_of(store) == before
        store.verify()


def test_reads_during_writes_see_one_moment(path):
    done = threading.Event()
    seen = []

    def look():
        while not done.is_set():
            n = store.journal.n_operations
            labels = store.labels()
            events = store.events()
            sizes = sum(view.size for view in store.clusters())
            assert len(labels) % 3 == 0
            assert len(labels) >= 3 * n
            assert sizes % 3 == 0
            arrivals = sum(event.kind in ("created", "joined", "linked") for event in events)
            assert arrivals % 3 == 0, "half of a batch"
            if len(labels):
                rows = store.vectors([0, len(labels) - 1])
                assert np.array_equal(rows, X[[0, len(labels) - 1]])
            seen.append(len(labels))

    with new(path) as store, ThreadPoolExecutor(3) as pool:
        looks = [pool.submit(look) for _ in range(3)]
        for i in range(0, len(X), 3):
            store.add_many(X[i : i + 3])
        done.set()
        for one in looks:
            one.result()
    assert len(set(seen)) > 3


def test_only_the_wrong_call_of_a_group_is_refused(path):
    gate = threading.Barrier(8)

    def work(thread):
        wrong = 0
        for i in range(10):
            gate.wait()
            try:
                if thread % 4 == 0:
                    store.add_many([[np.nan] * 8])
                elif thread % 4 == 1:
                    store.remove(10**6)
                else:
                    store.add(X[thread * 10 + i])
            except (VectorError, ArgumentError):
                wrong += 1
        return wrong

    with new(path) as store, ThreadPoolExecutor(8) as pool:
        wrong = list(pool.map(work, range(8)))
        assert wrong == [10, 10, 0, 0] * 2
        assert store.n_vectors == 40
        assert store.state_hash() == in_order(store)[0].state_hash()


def test_concurrent_corrections_and_undos_have_one_order(path):
    def work(thread):
        rng = np.random.default_rng(thread)
        for i in range(12):
            a, b = rng.integers(20, size=2).tolist()
            try:
                if i % 4 == 0:
                    store.undo()
                elif i % 4 == 1:
                    store.different(a, b)
                elif i % 4 == 2:
                    store.remove(a)
                else:
                    store.add_many(X[thread * 20 + i : thread * 20 + i + 5])
            except ArgumentError:
                pass

    with new(path) as store:
        store.add_many(X[:40])
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
        links, _ = in_order(store)
        assert store.state_hash() == links.state_hash()
        assert store.events() == links.events()
        before = state_of(store)
    with Store.open(path) as store:
        assert state_of(store) == before
        store.verify()


CARE = {
    "compact": lambda store, i: store.compact(),
    "snapshot": lambda store, i: store.handle.maintenance.write_snapshot(),
    "backup": lambda store, i: store.backup(store.path.with_name(f"{i}.links")),
    "verify": lambda store, i: store.verify(),
    "read": lambda store, i: (store.labels(), store.clusters(), store.events(), store.info()),
    "follow": lambda store, i: list(store.journal.operations()),
    "history": lambda store, i: store.history(0),
}


@pytest.mark.parametrize("seconds", [1.0, pytest.param(30.0, marks=pytest.mark.long)])
def test_a_store_closed_during_many_calls_has_all_acknowledged_ones(path, seconds):
    acknowledged, rounds, errors = {}, [0] * len(CARE), []

    def add(thread):
        for i in itertools.count():
            key = f"{thread}:{i}"
            rows = batch(9, (thread, i), (1, 3, 20))
            try:
                ids = store.add_many(rows, payloads=[key] * len(rows), idempotency_key=key)
            except StoreClosedError:
                return
            acknowledged[key] = ids.tolist()

    def care(place, call):
        for i in itertools.count():
            try:
                call(store, i)
            except StoreClosedError:
                return
            except LinkstreamError as error:
                if "others read it" not in str(error):  # what compact says of an open reader
                    errors.append(error)
                    return
            rounds[place] += 1
            time.sleep(0.02)

    store = new(path)
    store.add_many(X[:10], idempotency_key="9:0")
    with ThreadPoolExecutor(16) as pool:
        work = [pool.submit(add, thread) for thread in range(3)]
        work += [pool.submit(care, *pair) for pair in enumerate(CARE.values())]
        time.sleep(seconds)
        store.close()
        for one in work:
            one.result(timeout=30)
    assert errors == []
    assert min(rounds) > 0, rounds
    with Store.open(path, threads=1) as store:
        found = {op.key: op.result.tolist() for op in told(store)}
        assert {key: found.get(key) for key in acknowledged} == acknowledged
        store.verify()


def commits(harness, folder, *, slow, **how):
    """A session's calls, and how often it forced something to disk."""
    path, record = folder / "people.links", folder / "record"
    job = Job(str(path), str(record), 4, sizes=(3,), fault=(-1, 0, DIE_BEFORE), slow=slow, **how)
    start = time.monotonic()
    assert harness.run(job) == 0
    record = read(record)
    assert "closed" in record.notes, record.notes
    calls = len(record.answers) + len(record.of_threads)
    return calls, record.notes["done"], time.monotonic() - start


def test_calls_of_many_threads_share_their_commits(faulty, folder):
    calls, forced, _ = commits(faulty, folder, slow=4_000, way="threads", threads=(0,) * 8, last=15)
    assert calls == 120
    assert forced < calls / 2


def test_each_call_of_a_single_thread_is_synced_to_disk(faulty, folder):
    calls, forced, _ = commits(faulty, folder, slow=0, verbs={"add": 1}, last=30)
    assert calls == 30
    assert forced >= calls


def test_other_calls_go_on_during_suggest_merges(tmp_path, monkeypatch):
    begun, on = threading.Event(), threading.Event()
    merges = suggestions.merges

    def slowly(*asked):
        begun.set()
        assert on.wait(30)
        return merges(*asked)

    monkeypatch.setattr(suggestions, "merges", slowly)
    with Store.open(tmp_path / "a.links", thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
        store.add_many(np.eye(4, dtype=np.float32))
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(store.suggest_merges)
            assert begun.wait(30)
            store.same(0, 1, of="clusters")
            assert store.add(np.eye(4)[1]).cluster == 0
            on.set()
            seen = asked.result()
    assert {pair.clusters for pair in seen} >= {(0, 1)}  # as it was when it was asked


def test_calls_decided_in_one_batch_get_the_same_answers(tmp_path):
    """Singles, batches, one that is refused, one that comes twice: as if each had come alone."""
    rows = np.random.default_rng(8).normal(size=(60, 6)).astype(np.float32)
    with Store.open(tmp_path / "a.links", thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
        alone = Links.from_thresholds(store.thresholds)
        first = store.add_many(rows[:20])
        assert np.array_equal(first, alone.add_many(rows[:20]))
        hold, on = threading.Event(), threading.Event()
        with ThreadPoolExecutor(1) as pool:
            busy = pool.submit(store.handle.read, lambda _: hold.set() or on.wait(30))
            assert hold.wait(30)
            requests = [
                request_of(Add(rows[20]), payloads=["one"], key="key-1"),
                request_of(AddMany(rows[21:25])),
                request_of(Add(rows[20]), payloads=["one"], key="key-1"),
                request_of(AddMany(np.full((2, rows.shape[1]), np.nan))),
                request_of(AddMany(rows[25:40]), key="key-2"),
                request_of(Add(rows[40], weight=0.5)),
                request_of(Add(rows[41])),
                request_of(Add(rows[42])),
            ]
            for request in requests:
                store.handle.submit(request)
            on.set()
            assert busy.result()
        with pytest.raises(VectorError):
            requests[3].result()
        wanted = [alone.add(rows[20]), alone.add_many(rows[21:25])]
        assert requests[0].result() == requests[2].result() == wanted[0]
        assert np.array_equal(requests[1].result(), wanted[1])
        assert np.array_equal(requests[4].result(), alone.add_many(rows[25:40]))
        assert requests[5].result() == alone.add(rows[40], weight=0.5)
        assert [t.result() for t in requests[6:]] == [alone.add(rows[41]), alone.add(rows[42])]
        assert [t.first for t in requests if t.error is None] == [20, 21, 20, 25, 40, 41, 42]
        assert store.state_hash() == alone.state_hash()
        assert store.payloads([20])[0] == "one"
        assert store.journal.n_operations == 7
        assert store.events() == alone.events()
        store.verify()
    with Store.open(tmp_path / "a.links") as store:
        assert store.state_hash() == alone.state_hash()


def test_calls_of_a_batch_that_fails_halfway_are_not_acknowledged(tmp_path, monkeypatch):
    rows = np.random.default_rng(9).normal(size=(40, 6)).astype(np.float32)
    path = tmp_path / "a.links"
    with Store.open(path, thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
        store.add_many(rows[:20])
        before = store.state_hash()
        decided = Model._decided

        def once(model, request, *rest):
            monkeypatch.setattr(Model, "_decided", broken)
            decided(model, request, *rest)

        def broken(*_):
            raise MemoryError

        hold, on = threading.Event(), threading.Event()
        with ThreadPoolExecutor(1) as pool:
            busy = pool.submit(store.handle.read, lambda _: hold.set() or on.wait(30))
            assert hold.wait(30)
            monkeypatch.setattr(Model, "_decided", once)
            requests = [request_of(Add(x)) for x in rows[20:]]
            for request in requests:
                store.handle.submit(request)
            on.set()
            assert busy.result()
        for request in requests:
            with pytest.raises((MemoryError, StoreClosedError)):
                request.result()
        monkeypatch.setattr(Model, "_decided", decided)
        assert store.state_hash() == before  # reads show what was acknowledged
        with pytest.raises(StoreClosedError):
            store.add(rows[20])
    with Store.open(path) as store:
        assert store.state_hash() == before
        store.verify()


@pytest.mark.parametrize("apply", [False, True])
def test_settle_reports_its_progress(tmp_path, apply):
    rows = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    shares = []
    with Store.open(tmp_path / "a.links", thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
        store.add_many(rows)
        store.settle(apply, progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1
        count = len(shares)
        store.settle(apply)  # the report was for one call
        assert len(shares) == count


@pytest.mark.parametrize("thresholds", [None, Thresholds(0.6, 0.5, 0.9)])
def test_settle_proposes_in_the_thread_of_the_caller(tmp_path, monkeypatch, thresholds):
    threads, settle = [], settling.settle

    def noted(*args, **options):
        threads.append(threading.current_thread())
        return settle(*args, **options)

    rows = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    with Store.open(tmp_path / "a.links", thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
        store.add_many(rows)
        alone = Links.from_thresholds(store.thresholds)
        alone.add_many(rows)
        expected = alone.settle(thresholds=thresholds)
        monkeypatch.setattr(settling, "settle", noted)
        assert store.settle(thresholds=thresholds) == expected
        assert threads == [threading.current_thread()]
