"""Slow reads are shared, bounded and ended; writes and fast reads do not wait for them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from starlette.requests import ClientDisconnect

from linkstream.service.responses import Refusal, json_bytes, json_response
from linkstream.service.settings import Settings
from linkstream.service.slow_reads import CACHED, Cancel, Cancelled, SlowReads
from linkstream.store import Store
from linkstream.store.reader import StoreReader
from service.calling import TIMEOUT, RawConnection, head
from service.internals import slow_reads_of
from service.server import ThreadService, until
from store.operations import vectors

X = vectors(np.random.default_rng(3), 40)


@dataclass(eq=False)
class Namespace:
    """A namespace with a version that tests set."""

    serial: int = 0
    version: int = 0


class Gate:
    """Work that counts its runs and waits until it is opened or cancelled."""

    def __init__(self):
        self.begun = self.cancelled = 0
        self._open = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, cancel):
        with self._lock:
            self.begun += 1
        while not self._open.wait(0.001):
            if cancel():
                with self._lock:
                    self.cancelled += 1
                raise Cancelled
        return b"answer %d" % self.begun

    def open(self):
        self._open.set()


class Client:
    """The ASGI channel of a client that stays until `leave` is called."""

    def __init__(self):
        self._gone = asyncio.Event()

    async def receive(self):
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def leave(self):
        self._gone.set()


def slow_reads(**settings):
    return SlowReads(Settings(data="unused", **settings))


def ask(reads, namespace, gate, *, key="review", size=0, client=None):
    """Ask a question as a task of its own."""
    receive = (client or Client()).receive
    return asyncio.ensure_future(reads.ask(namespace, key, gate, size, receive))


async def eventually(condition):
    """Wait until a condition is true."""
    while not condition():
        await asyncio.sleep(0.001)


def run(story):
    asyncio.run(asyncio.wait_for(story(), TIMEOUT))


# One computation for equal questions


def test_equal_questions_are_computed_once_for_all_who_ask():
    async def story():
        reads, gate, here = slow_reads(), Gate(), Namespace()
        tasks = [ask(reads, here, gate) for _ in range(32)]
        await eventually(lambda: gate.begun)
        tasks += [ask(reads, here, gate) for _ in range(32)]
        await asyncio.sleep(0)
        gate.open()
        assert set(await asyncio.gather(*tasks)) == {b"answer 1"}
        assert (gate.begun, reads.computed, reads.shared) == (1, 1, 63)

    run(story)


def test_an_answer_is_used_again_until_the_namespace_changes():
    async def story():
        reads, gate, here = slow_reads(), Gate(), Namespace()
        gate.open()
        assert await ask(reads, here, gate) == b"answer 1"
        assert await ask(reads, here, gate) == b"answer 1"
        here.version += 1
        assert await ask(reads, here, gate) == b"answer 2"
        assert await ask(reads, Namespace(serial=1, version=1), gate) == b"answer 3"
        assert await ask(reads, here, gate, key="map") == b"answer 4"

    run(story)


def test_a_question_after_a_change_does_not_get_an_older_answer():
    async def story():
        reads, gate, here = slow_reads(), Gate(), Namespace()
        before = ask(reads, here, gate)
        await eventually(lambda: gate.begun)
        here.version += 1
        after = [ask(reads, here, gate) for _ in range(5)]
        await eventually(lambda: len(reads.waiting) == 1)
        here.version += 1  # a question that has not begun is shared: its answer will be newer
        after.append(ask(reads, here, gate))
        await asyncio.sleep(0)
        assert len(reads.waiting) == 1
        gate.open()
        assert await before == b"answer 1"
        assert set(await asyncio.gather(*after)) == {b"answer 2"}

    run(story)


def test_an_answer_that_was_outdated_when_it_came_is_not_used_again():
    async def story():
        reads, gate, here = slow_reads(), Gate(), Namespace()
        first = ask(reads, here, gate)
        await eventually(lambda: gate.begun)
        here.version += 1
        gate.open()
        await first
        assert await ask(reads, here, gate) == b"answer 2"

    run(story)


def test_finished_answers_take_bounded_memory():
    async def story():
        reads, here = slow_reads(), Namespace()
        body = bytes(CACHED // 5)
        for key in range(8):
            assert await ask(reads, here, lambda _: body, key=key) is body
        assert await ask(reads, here, lambda _: b"new", key=7) is body
        assert await ask(reads, here, lambda _: b"new", key=0) == b"new"
        await ask(reads, here, lambda _: bytes(CACHED), key="long")
        assert await ask(reads, here, lambda _: b"new", key="long") == b"new"

    run(story)


# The end of a computation


def test_the_work_ends_when_the_last_who_waits_has_gone():
    async def story():
        reads, gate, here = slow_reads(), Gate(), Namespace()
        clients = [Client() for _ in range(3)]
        tasks = [ask(reads, here, gate, client=client) for client in clients]
        await eventually(lambda: gate.begun)
        for client in clients[:2]:
            client.leave()
        await asyncio.wait(tasks[:2])
        assert not gate.cancelled
        clients[2].leave()
        await asyncio.wait(tasks)
        assert all(isinstance(task.exception(), ClientDisconnect) for task in tasks)
        await eventually(lambda: not reads.running)
        assert (gate.begun, gate.cancelled) == (1, 1)

    run(story)


def test_a_waiting_question_that_nobody_waits_for_is_never_computed():
    async def story():
        reads, gate, here, client = slow_reads(slow_threads=1), Gate(), Namespace(), Client()
        first = ask(reads, here, gate, key="map")
        await eventually(lambda: gate.begun)
        second = ask(reads, here, gate, client=client)
        await eventually(lambda: reads.waiting)
        client.leave()
        await asyncio.wait([second])
        assert not reads.waiting
        gate.open()
        await first
        assert gate.begun == 1

    run(story)


def test_work_that_does_not_notice_keeps_its_thread_and_memory_until_it_ends():
    async def story():
        reads, here, client = slow_reads(slow_threads=1, slow_bytes=100), Namespace(), Client()
        deaf, go_on = threading.Event(), Gate()
        first = ask(reads, here, lambda _: deaf.wait() and b"", size=60, client=client)
        await eventually(lambda: reads.running)
        client.leave()
        await asyncio.wait([first])
        second = ask(reads, here, go_on, key="map", size=60)
        await eventually(lambda: reads.waiting)
        assert reads.used == 60
        deaf.set()
        go_on.open()
        assert await second == b"answer 1"

    run(story)


def test_a_question_that_is_being_cancelled_is_not_shared():
    async def story():
        reads, here, client = slow_reads(), Namespace(), Client()
        deaf, gate = threading.Event(), Gate()
        first = ask(reads, here, lambda _: deaf.wait() and b"", client=client)
        await eventually(lambda: reads.running)
        client.leave()
        await asyncio.wait([first])
        second = ask(reads, here, gate)
        await asyncio.sleep(0)
        deaf.set()
        gate.open()
        assert await second == b"answer 1"

    run(story)


def test_an_error_reaches_all_who_wait_and_is_not_kept():
    async def story():
        reads, here = slow_reads(), Namespace()
        gate, failing = Gate(), [True]

        def work(cancel):
            gate(cancel)
            if failing[0]:
                raise Refusal(404, "not-found", "x", expected="y", remedy="z")
            return b"well"

        tasks = [ask(reads, here, work) for _ in range(3)]
        await eventually(lambda: gate.begun)
        gate.open()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each.status for each in found] == [404] * 3
        failing[0] = False
        assert await ask(reads, here, work) == b"well"

    run(story)


def test_work_without_memory_is_refused_with_503():
    async def story():
        def work(_):
            raise MemoryError

        with pytest.raises(Refusal) as refused:
            await ask(slow_reads(), Namespace(), work)
        assert refused.value.status == 503

    run(story)


def test_stopping_ends_all_questions_and_refuses_new_ones():
    async def story():
        reads, gate, here = slow_reads(slow_threads=1), Gate(), Namespace()
        tasks = [ask(reads, here, gate, key=key) for key in range(3)]
        await eventually(lambda: gate.begun)
        reads.stop()
        tasks.append(ask(reads, here, gate, key=4))
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each.status for each in found] == [503] * 4
        await eventually(lambda: not reads.running)
        assert (gate.begun, gate.cancelled) == (1, 1)

    run(story)


# Bounds


def test_a_limited_number_of_questions_run_and_wait_and_others_are_refused():
    async def story():
        reads, gate = slow_reads(slow_threads=2, slow_calls=4), Gate()
        here, there, other = (Namespace(serial) for serial in range(3))
        places = (here, here, here, there, there, other)
        tasks = [ask(reads, where, gate, key=key) for key, where in enumerate(places)]
        await eventually(lambda: gate.begun == 2)
        assert (len(reads.running), len(reads.waiting)) == (2, 4)
        with pytest.raises(Refusal) as refused:
            await ask(reads, other, gate, key="more")
        assert refused.value.status == 503
        assert int(refused.value.headers["Retry-After"]) >= 1
        assert reads.refused == 1
        gate.open()
        await asyncio.gather(*tasks)
        assert gate.begun == len(places)

    run(story)


def test_one_namespace_has_half_of_the_queue_and_the_others_come_first():
    async def story():
        reads, gate = slow_reads(slow_threads=2, slow_calls=4), Gate()
        here, there = Namespace(0), Namespace(1)
        tasks = [ask(reads, here, gate, key=key) for key in range(4)]
        await eventually(lambda: gate.begun == 2)
        with pytest.raises(Refusal):
            await ask(reads, here, gate, key="more")
        tasks.append(ask(reads, there, gate))
        await eventually(lambda: len(reads.waiting) == 3)
        turns = [question.namespace for question in sorted(reads.waiting, key=reads.turn)]
        assert turns == [there, here, here]
        gate.open()
        await asyncio.gather(*tasks)

    run(story)


def test_questions_wait_while_others_use_the_memory_and_are_refused_beyond_it():
    async def story():
        reads, gate, here = slow_reads(slow_threads=8, slow_bytes=100), Gate(), Namespace()
        tasks = [ask(reads, here, gate, key=key, size=40) for key in range(4)]
        await eventually(lambda: gate.begun == 2)
        assert (len(reads.running), len(reads.waiting), reads.used) == (2, 2, 80)
        with pytest.raises(Refusal) as refused:
            await ask(reads, here, gate, key="huge", size=101)
        assert refused.value.status == 503
        assert "slow_bytes" in refused.value.remedy
        gate.open()
        await asyncio.gather(*tasks)
        assert (gate.begun, reads.used) == (4, 0)

    run(story)


def test_cancel_is_a_stop_and_a_progress_function():
    cancel = Cancel()
    assert cancel() is False
    cancel.check(0.5)
    cancel.wanted = True
    assert cancel() is True
    with pytest.raises(Cancelled):
        cancel.check(0.5)


def test_settle_ends_by_the_progress_function(tmp_path):
    cancel = Cancel()
    cancel.wanted = True
    with Store.open(tmp_path / "a.links", preset="ge2e") as store:
        store.add_many(np.random.default_rng(1).standard_normal((50, 256)))
        with pytest.raises(Cancelled):
            store.settle(progress=cancel.check)


@pytest.mark.parametrize(
    "values",
    [
        {},
        [],
        {"a": list(range(5_001)), "b": {"c": [{"é": None}] * 2_001, "d": {}}, "e": "x"},
        list(range(2_000)),
        list(range(2_001)),
    ],
    ids=["object", "list", "nested", "short", "long"],
)
def test_long_answers_are_encoded_as_others(values):
    assert json_bytes(values) == json_response(values).body


# Over HTTP

SLOW = ("review", "suggestions", "margins", "map", "settle", "labels", "clusters")


@pytest.fixture
def gated(monkeypatch):
    """Hold up all reviews until the gate is opened."""
    gate = Gate()

    def review_queue(self, limit=20, **_):
        gate(lambda: False)
        return []

    monkeypatch.setattr(StoreReader, "review_queue", review_queue)
    yield gate
    gate.open()


def test_writes_and_fast_reads_are_answered_while_slow_reads_fill_all_bounds(tmp_path, gated):
    bounds = {"slow_threads": 2, "slow_calls": 4}
    with ThreadService(tmp_path / "data", **bounds) as service, ThreadPoolExecutor(8) as pool:
        path = service.namespace("people")
        service.post(f"{path}/vectors", X)
        asked = [pool.submit(service.get, f"{path}/review?limit={1 + n}") for n in range(4)]
        until(lambda: gated.begun == 2 and len(slow_reads_of(service).waiting) == 2)
        refused = service.get(f"{path}/suggestions")
        assert (refused.status, refused.kind) == (503, "busy")
        assert int(refused.headers["retry-after"]) >= 1
        for _ in range(10):
            assert service.post(f"{path}/vectors", X[:3]).status == 200
            assert service.get(f"{path}/clusters/0").status == 200
            assert service.get(f"{path}/stats").status == 200
        gated.open()
        assert [each.result().status for each in asked] == [200] * 4


def test_the_work_ends_when_clients_hang_up(tmp_path, monkeypatch):
    begun, ended = threading.Semaphore(0), threading.Semaphore(0)

    def settle(self, apply=False, *, thresholds=None, progress=None):
        begun.release()
        try:
            while True:
                progress(0.5)
                threading.Event().wait(0.001)
        finally:
            ended.release()

    monkeypatch.setattr(Store, "settle", settle)
    with ThreadService(tmp_path / "data") as service:
        path = service.namespace("people")
        service.post(f"{path}/vectors", X)
        with RawConnection(service.port) as one, RawConnection(service.port) as other:
            for line in (one, other):
                line.send(head("GET", f"{path}/settle"))
            assert begun.acquire(timeout=TIMEOUT)
            until(lambda: slow_reads_of(service).shared == 1)
            one.close()
            assert service.get("/healthz").status == 200
            assert slow_reads_of(service).running
        assert ended.acquire(timeout=TIMEOUT)
        until(lambda: not slow_reads_of(service).running)
        assert not begun.acquire(blocking=False), "it was computed twice"


@pytest.mark.parametrize("route", SLOW)
def test_an_answer_is_computed_again_after_each_change(service, namespace, route):
    first = service.get(f"{namespace}/{route}").json
    service.post(f"{namespace}/vectors", X)
    computed = slow_reads_of(service).computed
    second = service.get(f"{namespace}/{route}").json
    assert second != first or route in ("suggestions", "settle", "review")
    assert service.get(f"{namespace}/{route}").json == second
    assert slow_reads_of(service).computed == computed + 1


def test_a_question_that_needs_too_much_memory_is_refused_with_its_remedy(tmp_path):
    with ThreadService(tmp_path / "data", slow_bytes=1_000) as service:
        path = service.namespace("people")
        assert service.get(f"{path}/review").status == 200
        service.post(f"{path}/vectors", X)
        answer = service.get(f"{path}/review")
        assert (answer.status, answer.kind) == (503, "busy")
        assert "slow_bytes" in answer.json["error"]["remedy"]
        assert service.get(f"{path}/clusters/0").status == 200
