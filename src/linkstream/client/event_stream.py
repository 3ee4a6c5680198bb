"""Following: events as they come, and where to go on after the connection broke.

Server-sent events, read here byte by byte: a line ends at CR, LF or both and nowhere else, so
that no letter of a name can end one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx

from linkstream.client.asking import Answer, Request
from linkstream.client.errors import AnswerError
from linkstream.client.retrying import Patience, Retries
from linkstream.clusterer.checks import whole_number
from linkstream.engine import events
from linkstream.engine.events import Event

LINE_MAX = 1 << 20  # bytes of a message; ours take some hundred
_END = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a CR at the end may have its LF still to come


class Messages:
    """The data of each message, from pieces of a stream that are cut anywhere."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def read(self, piece: bytes) -> Iterator[bytes]:
        """The messages that a piece ends."""
        self._rest += piece
        lines: list[bytes] = []
        if b"\n" in piece or b"\r" in self._rest:
            *lines, last = _END.split(self._rest)
            self._rest = bytearray(last)
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                yield b"\n".join(self._data)
                self._data, self._size = [], 0
        if self._size + len(self._rest) > LINE_MAX:
            raise AnswerError(
                f"a message of more than {LINE_MAX} bytes",
                expected="events",
                remedy="Check the URL, and what lies between here and the service.",
            )

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)


class Tail:
    """One who follows: which event comes next, and how long to wait before coming back."""

    def __init__(self, since: int, retries: Retries) -> None:
        self._next = self._first = whole_number(
            "since", since, "the first event to tell of", least=0
        )
        self._patience = Patience(retries, "GET events/stream")
        self._messages = Messages()

    def request(self) -> Request:
        """What to ask for, to go on where it stopped."""
        self._messages = Messages()
        headers = {"Accept": "text/event-stream"}
        if self._next > self._first:
            headers["Last-Event-ID"] = str(self._next - 1)
        return Request("GET", "events/stream", {"since": self._next}, headers)

    def read(self, piece: bytes) -> Iterator[Event]:
        """The events that a piece of the stream tells, each of them once."""
        self._patience.renew()  # somebody is there, be it only a heartbeat
        for message in self._messages.read(piece):
            event = _event(message)
            if event.sequence >= self._next:
                self._next = event.sequence + 1
                yield event

    def broken(self, failure: Answer | httpx.HTTPError | None) -> float:
        """Seconds to wait before coming back; raises what is to be told if it was tried enough.

        None: the service ended the stream, as it does when it stops.
        """
        ended = httpx.RemoteProtocolError("the service ended the stream")
        return self._patience.wait(ended if failure is None else failure)


def _event(message: bytes) -> Event:
    try:
        return events.from_dict(json.loads(message))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise AnswerError(
            f"a message that is no event ({error!s:.200})",
            expected="what this version's service sends",
            remedy="Use a client and a service of one version; check what lies between them.",
        ) from None
