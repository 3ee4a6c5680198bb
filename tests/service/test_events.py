"""Events over HTTP: in pages and as streams, resumed without gaps and repetitions."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from linkstream import Links
from service.calling import RawConnection, Stream, head
from service.internals import readers_of
from service.server import ProcessService, until
from store.operations import THRESHOLDS, vectors

X = vectors(np.random.default_rng(9), 300)


def expected(rows):
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    links.add_many(rows)
    return [event.to_dict() for event in links.events()]


def test_the_pages_of_events_contain_every_event(service, namespace):
    service.post(f"{namespace}/vectors", X)
    since, found = 0, []
    while True:
        page = service.get(f"{namespace}/events?since={since}&limit=7").json
        found += page["events"]
        assert len(page["events"]) <= 7
        if not page["events"]:
            break
        assert page["next"] == page["events"][-1]["sequence"] + 1
        since = page["next"]
    assert found == expected(X)
    beyond = service.get(f"{namespace}/events?since={10**9}")
    assert beyond.status in (200, 400)


def test_a_stream_sends_past_and_new_events(service, namespace):
    service.post(f"{namespace}/vectors", X[:100])
    wanted = expected(X)
    with Stream(service.port, f"{namespace}/events/stream?since=0") as stream:
        assert stream.status == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        first = stream.take(len(expected(X[:100])))
        for start in range(100, 300, 20):
            service.post(f"{namespace}/vectors", X[start : start + 20])
        rest = stream.take(len(wanted) - len(first))
    messages = first + rest
    assert [message.data for message in messages] == wanted
    assert [message.id for message in messages] == [str(event["sequence"]) for event in wanted]
    assert [message.event for message in messages] == [event["kind"] for event in wanted]


def test_a_stream_without_since_begins_at_the_first_event(service, namespace):
    service.post(f"{namespace}/vectors", X[:50])
    with Stream(service.port, f"{namespace}/events/stream") as stream:
        service.post(f"{namespace}/vectors", X[50:60])
        (message,) = stream.take(1)
    assert message.data in expected(X[:60])


def test_a_stream_resumes_after_last_event_id(service, namespace):
    service.post(f"{namespace}/vectors", X)
    wanted, found, last = expected(X), [], None
    rng = np.random.default_rng(0)
    while len(found) < len(wanted):
        with Stream(service.port, f"{namespace}/events/stream?since=0", last=last) as stream:
            found += stream.take(min(int(rng.integers(1, 90)), len(wanted) - len(found)))
        last = found[-1].id
    assert [message.data for message in found] == wanted


@pytest.mark.parametrize("last", ["-2", "abc", "9" * 30, "1.5", "\xff"])
def test_an_invalid_last_event_id_is_refused(service, namespace, last):
    with Stream(service.port, f"{namespace}/events/stream", last=last) as stream:
        assert stream.status == 400


def test_several_readers_get_every_event_while_others_write(service, namespace):
    writers, readers, each = 3, 4, 20
    total, found = threading.Barrier(writers + readers), {}

    def write(number):
        total.wait()
        for i in range(each):
            service.post(f"{namespace}/vectors", vectors(np.random.default_rng([number, i]), 3))

    def read(number):
        with Stream(service.port, f"{namespace}/events/stream?since=0") as stream:
            total.wait()
            kept = []
            arrived = 0
            while arrived < writers * each * 3:
                (message,) = stream.take(1)
                arrived += message.event in ("created", "joined", "linked")
                kept.append(message)
            found[number] = kept

    threads = [threading.Thread(target=write, args=(i,)) for i in range(writers)]
    threads += [threading.Thread(target=read, args=(i,)) for i in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    told = service.get(f"{namespace}/events?since=0&limit=1000").json["events"]
    assert len(found) == readers
    for messages in found.values():
        assert [message.data for message in messages] == told[: len(messages)]


def test_a_stream_sends_corrections_and_undos(service, namespace):
    service.post(f"{namespace}/vectors", X[:30])
    n = service.get(f"{namespace}/events").json["next"]
    with Stream(service.port, f"{namespace}/events/stream?since={n}") as stream:
        service.post(f"{namespace}/name", {"cluster": 0, "name": "Ann\nid: 99\ndata: <b>"})
        (named,) = stream.take(1)
        assert (named.event, named.data["name"]) == ("named", "Ann\nid: 99\ndata: <b>")
        assert named.id == str(named.data["sequence"])
        service.post(f"{namespace}/undo", {"to": None})
        (undone,) = stream.take(1)
        assert undone.event == "undone"


def test_each_event_is_sent_once_over_kills_and_stops(nest, tmp_path):
    """A reader resumes with its last event while the service is killed and stopped."""
    with ProcessService(nest, tmp_path / "data") as service:
        path = service.namespace("people")
        found, last, sent = [], None, 0
        for end in (service.kill, service.stop, service.kill):
            for _ in range(4):
                service.post(f"{path}/vectors", X[sent : sent + 20])
                sent += 20
            with Stream(service.port, f"{path}/events/stream?since=0", last=last) as stream:
                found += stream.take(30)
            last = found[-1].id
            end()
            service.start()
        wanted = expected(X[:sent])
        with Stream(service.port, f"{path}/events/stream?since=0", last=last) as stream:
            found += stream.take(len(wanted) - len(found))
        assert [message.data for message in found] == wanted
        service.stop()


def test_a_reader_that_disconnects_frees_its_place(service, namespace):
    before = threading.active_count()
    service.post(f"{namespace}/vectors", X[:5])
    for _ in range(100):  # more than there may be at a time
        with Stream(service.port, f"{namespace}/events/stream?since=0") as stream:
            if stream.status != 200:
                until(lambda: opened(service, namespace))
                continue
            stream.take(1)
    until(lambda: opened(service, namespace))
    assert threading.active_count() < before + 20


def test_readers_that_disconnect_under_load_are_all_released(service, namespace):
    """Some of them read nothing, so that sending to them blocks."""
    over = threading.Event()

    def write():
        with service.caller() as caller:
            while not over.is_set():
                caller.post(f"{namespace}/vectors", X[:20])

    writer = threading.Thread(target=write)
    writer.start()
    rng = np.random.default_rng(3)
    for _ in range(60):
        lines = [RawConnection(service.port, receive_buffer=4_096) for _ in range(4)]
        for place, line in enumerate(lines):
            path = "live" if place % 2 else "events/stream?since=0"
            line.send(head("GET", f"{namespace}/{path}"))
        time.sleep(rng.uniform(0.0, 0.03))
        for line in lines:
            line.close()
    over.set()
    writer.join()
    until(lambda: readers_of(service) == 0, seconds=20.0)


def opened(service, namespace):
    with Stream(service.port, f"{namespace}/events/stream?since=0") as stream:
        return stream.status == 200


def test_the_live_stream_sends_counts_and_decisions(service, namespace):
    service.post(f"{namespace}/vectors", X[:100])
    with Stream(service.port, f"{namespace}/live") as stream:
        assert stream.status == 200
        seen = {}
        for message in stream:
            seen[message.event] = message.data
            if {"stats", "begin", "decisions"} <= set(seen):
                break
        assert seen["stats"]["vectors"] == 100
        assert len(seen["decisions"]["decisions"]) <= 50
        answer = service.post(
            f"{namespace}/vectors", {"vector": X[100].tolist(), "payload": {"file": "<b>.jpg"}}
        ).json
        for message in stream:
            if message.event == "decisions":
                break
        newest = message.data["decisions"][-1]
        assert newest["vector"] == 100
        assert newest["cluster"] == answer["cluster"]
        assert newest["payload"] == {"file": "<b>.jpg"}
        service.post(f"{namespace}/name", {"cluster": answer["cluster"], "name": "Ann"})
        assert any(message.event == "changed" for message in stream)


def test_the_live_stream_sends_at_most_twenty_decisions_at_a_time(service, namespace):
    with Stream(service.port, f"{namespace}/live") as stream:
        first = next(iter(stream))
        assert first.event == "stats"
        begin = time.monotonic()
        with service.caller() as caller:
            sent = 0
            while time.monotonic() - begin < 1.5:
                caller.post(f"{namespace}/vectors", X[:50])
                sent += 50
        frames = told = left_out = 0
        for message in stream:
            if message.event == "decisions":
                frames += 1
                assert len(message.data["decisions"]) <= 20
                told += len(message.data["decisions"])
                left_out += message.data["more"]
                if message.data["decisions"][-1]["vector"] == sent - 1:
                    break
            assert time.monotonic() - begin < 30.0
        assert frames <= 10 * (time.monotonic() - begin) + 5
        assert told + left_out == sent


def test_the_live_stream_does_not_repeat_undone_decisions(service, namespace):
    for first in range(0, 20, 5):
        service.post(f"{namespace}/vectors", X[first : first + 5])
    events = service.get(f"{namespace}/events").json["events"]
    tenth = next(event["sequence"] for event in events if event["vector"] == 10)
    with Stream(service.port, f"{namespace}/live") as stream:
        told = [next(message for message in stream if message.event == "decisions")]
        service.post(f"{namespace}/undo", {"to": tenth})
        assert any(message.event == "changed" for message in stream)
        service.post(f"{namespace}/vectors", X[30:32])
        told = next(message for message in stream if message.event == "decisions").data
        assert [one["vector"] for one in told["decisions"]] == [10, 11]
    with Stream(service.port, f"{namespace}/live") as stream:
        told = next(message for message in stream if message.event == "decisions").data
        assert max(one["vector"] for one in told["decisions"]) == 11


def test_event_numbers_continue_after_a_compaction(service, namespace):
    service.post(f"{namespace}/vectors", X[:50])
    service.post(f"{namespace}/remove", {"vector": 3})
    n = service.get(f"{namespace}/events").json["next"]
    with Stream(service.port, f"{namespace}/events/stream?since={n}") as stream:
        assert service.post(f"{namespace}/compact", {}).status == 200
        service.post(f"{namespace}/vectors", X[50:60])
        found = stream.take(10)
    assert [int(message.id) for message in found] == list(range(n, n + 10))
    later = service.get(f"{namespace}/events?since={n}").json["events"]
    assert [message.data for message in found] == later[:10]
    assert service.get(f"{namespace}/events?since=0").status in (200, 409, 410)
