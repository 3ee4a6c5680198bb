"""Following events: each event once, in order, over broken connections."""

from __future__ import annotations

import itertools
import json
import random

import httpx
import pytest

from client.fakes import Service, good, refusal, stream
from linkstream.client import Retries
from linkstream.client.errors import (
    AnswerError,
    BusyError,
    ScopeError,
    UnreachableError,
)
from linkstream.client.event_stream import MESSAGE_MAX, MessageParser
from linkstream.engine.events import Created, Named
from linkstream.errors import ArgumentError


def event(sequence):
    return Created(sequence, sequence, sequence, sequence)


def sent(told):
    """Return an event as the service sends it, with non-ASCII names unescaped."""
    data = json.dumps(told.to_dict(), ensure_ascii=False)
    return f"id: {told.sequence}\nevent: {told.kind}\ndata: {data}\n\n".encode()


def some(first, last):
    return b": hello\n\n" + b"".join(sent(event(n)) for n in range(first, last))


def test_follow_yields_events_in_order(talk):
    service = Service(stream(some(7, 9), b": still here\n\n", some(9, 11)))
    with talk(service) as client:
        assert client.first("follow", 4, 7) == [event(n) for n in range(7, 11)]
    (request,) = service.asked
    assert request.url.path == "/v1/namespaces/people/events/stream"
    assert request.url.params["since"] == "7"
    assert request.headers["accept"] == "text/event-stream"
    assert "last-event-id" not in request.headers


def test_a_broken_stream_resumes_after_the_last_event(talk, waits):
    service = Service(
        stream(some(0, 2), sent(event(2))[:20], httpx.ReadError("reset")),  # one was half there
        httpx.ConnectError("refused"),
        refusal(503, "stopping", {"Retry-After": "2"}),
        stream(some(2, 4)),  # the service stops
        stream(some(4, 6)),
    )
    with talk(service) as client:
        assert client.first("follow", 6) == [event(n) for n in range(6)]
    asked = [
        (each.headers.get("last-event-id"), each.url.params["since"]) for each in service.asked
    ]
    assert asked == [(None, "0"), ("1", "2"), ("1", "2"), ("1", "2"), ("3", "4")]
    assert waits[2] >= 2.0


def test_an_event_sent_twice_is_yielded_once(talk, waits):
    service = Service(stream(some(0, 3), httpx.ReadError("reset")), stream(some(1, 5)))
    with talk(service) as client:
        assert client.first("follow", 5) == [event(n) for n in range(5)]


def test_follow_raises_if_the_service_stays_unreachable(talk, waits):
    service = Service(stream(some(0, 1), httpx.ReadError("reset")), httpx.ConnectError("refused"))
    retries = Retries(attempts=4)
    with talk(service, retries=retries) as client, pytest.raises(UnreachableError, match="events"):
        client.first("follow", 2)
    assert len(service.asked) == 1 + 3


def test_a_heartbeat_resets_the_retries(talk, waits):
    quiet = [stream(b": still here\n\n", httpx.ReadTimeout("silence")) for _ in range(50)]
    service = Service(*quiet, stream(some(0, 1)))
    with talk(service, retries=Retries(attempts=2)) as client:
        assert client.first("follow", 1) == [event(0)]
    assert max(waits) <= 0.1


def test_follow_raises_a_refusal(talk, waits):
    with talk(Service(refusal(403, "scope"))) as client, pytest.raises(ScopeError):
        client.first("follow", 1)
    busy = Service(refusal(503, "busy"))
    with talk(busy, retries=Retries(attempts=3)) as client, pytest.raises(BusyError):
        client.first("follow", 1)
    assert len(busy.asked) == 3


def test_an_invalid_since_is_refused_before_a_request_is_sent(talk):
    service = Service(stream(some(0, 1)))
    for since in (-1, 1.5, True):
        with talk(service) as client, pytest.raises(ArgumentError, match="since"):
            client.first("follow", 1, since)
    assert service.asked == []


@pytest.mark.parametrize("data", [b"<h1>", b"7", b"[]", b"{}", b'{"kind": "moon", "version": 1}'])
def test_a_message_that_is_no_event_raises_answer_error(talk, waits, data):
    service = Service(stream(b"data: " + data + b"\n\n"))
    with talk(service) as client, pytest.raises(AnswerError, match="no event"):
        client.first("follow", 1)


def test_a_message_over_the_limit_raises_answer_error(talk, waits):
    service = Service(lambda: stream(*itertools.repeat(b"data: " + b"x" * 4096, 10_000))())
    with talk(service) as client, pytest.raises(AnswerError, match=str(MESSAGE_MAX)):
        client.first("follow", 1)


def test_line_separators_in_names_do_not_end_a_message(talk):
    names = ["a\u2028b", "a\x85b", "\x0b\x0c\x1c", "</script>", "\r\n\ndata: 7", "ünï😀"]
    told = [Named(n, 0, 0, name) for n, name in enumerate(names)]
    with talk(Service(stream(b"".join(map(sent, told))))) as client:
        assert client.first("follow", len(told)) == told


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_messages_do_not_depend_on_where_the_stream_is_cut(end):
    lines = [
        b": hello",
        b"",
        b"id: 1",
        b"data: a",
        b"data:b",
        b"",
        b"event: x",
        b"",
        b"data: c",
        b"",
    ]
    whole = end.join([*lines, b":"])
    chance = random.Random(0)
    for _ in range(200):
        cuts = sorted(chance.sample(range(len(whole) + 1), chance.randrange(12)))
        pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)])]
        parser = MessageParser()
        assert [m for piece in pieces for m in parser.parse(piece)] == [b"a\nb", b"c"]


def test_events_are_read_page_by_page(talk):
    def page(request):
        since, limit = (int(request.url.params[name]) for name in ("since", "limit"))
        last = min(since + limit, 2500)
        told = [event(n).to_dict() for n in range(since, last)]
        return httpx.Response(200, json={"events": told, "next": max(since, last)})

    with talk(page) as client:
        assert client.events(10) == [event(n) for n in range(10, 2500)]
        assert client.events(10, limit=1200) == [event(n) for n in range(10, 1210)]
        assert client.events(2500) == []
        assert client.every("iter_events", 10) == [event(n) for n in range(10, 2500)]
        assert client.first("iter_events", 3) == [event(n) for n in range(3)]


def test_an_empty_page_of_events_ends_the_reading(talk):
    with talk(Service(good({"events": [], "next": 0}))) as client:
        assert client.events() == []
