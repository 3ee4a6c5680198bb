"""Following events: parse server-sent events, and resume after a broken connection.

The stream is parsed as bytes: a line ends at CR, LF or CR LF and nowhere else, so that no
character of a cluster's name can end a line.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

import httpx

from linkstream.client.endpoint import Outcome, Retries, RetryState
from linkstream.client.errors import AnswerError
from linkstream.client.requests import Request
from linkstream.clusterer.checks import whole_number
from linkstream.engine import event_values
from linkstream.engine.events import Event

T = TypeVar("T")

MESSAGE_MAX = 1 << 20  # bytes; a message of the service has some hundred
_END = re.compile(rb"\r\n|\n|\r(?!\Z)")  # the LF of a CR at the end may come with the next piece


class MessageParser:
    """Splits a stream of server-sent events, cut anywhere, into the data of each message."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def parse(self, piece: bytes) -> Iterator[bytes]:
        """Yield the messages that end within a piece of the stream."""
        self._rest += piece
        lines: list[bytes] = []
        if b"\n" in piece or b"\r" in self._rest:
            *lines, last = _END.split(self._rest)
            self._rest = bytearray(last)
        for line in lines:
            if line:
                self._add(line)
            elif self._data:
                yield b"\n".join(self._data)
                self._data, self._size = [], 0
        if self._size + len(self._rest) > MESSAGE_MAX:
            seen = f"a message of more than {MESSAGE_MAX} bytes"
            remedy = "Check the URL, and proxies between the client and the service."
            raise AnswerError(seen, expected="events", remedy=remedy)

    def _add(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)


class Follower(ABC, Generic[T]):
    """Keeps the position in a stream of numbered values, and the state of its retries.

    Args:
        path: path of the stream in the namespace.
        since: number of the first value.
        retries: how often a broken connection is opened again.
    """

    def __init__(self, path: str, since: int, retries: Retries) -> None:
        since = whole_number("since", since, "the first event to tell of", least=0)
        self._path = path
        self._next = self._first = since
        self._retry = RetryState(retries, f"GET {path}")
        self._parser = MessageParser()

    @abstractmethod
    def parse(self, message: bytes) -> Iterator[tuple[int, T]]:
        """Yield the value of a message with its number, if the message has one."""

    def request(self) -> Request:
        """Return the request that opens the stream at the current position."""
        self._parser = MessageParser()
        headers = {"Accept": "text/event-stream"}
        if self._next > self._first:
            headers["Last-Event-ID"] = str(self._next - 1)
        return Request("GET", self._path, {"since": self._next}, headers)

    def read(self, piece: bytes) -> Iterator[T]:
        """Yield the values that end within a piece of the stream, each once."""
        self._retry.reset()  # the service is there, even if it sent only a heartbeat
        for message in self._parser.parse(piece):
            for number, value in self.parse(message):
                if number >= self._next:
                    self._next = number + 1
                    yield value

    def delay_after(self, failure: Outcome | None) -> float:
        """Return the seconds to wait before reopening; raise the error if retries are used up.

        None means that the service ended the stream, as it does when it stops.
        """
        ended = httpx.RemoteProtocolError("the service ended the stream")
        return self._retry.delay_after(ended if failure is None else failure)


class EventFollower(Follower[Event]):
    """Keeps the position in the stream of events."""

    def __init__(self, since: int, retries: Retries) -> None:
        super().__init__("events/stream", since, retries)

    def parse(self, message: bytes) -> Iterator[tuple[int, Event]]:
        """Yield the event of a message."""
        event = _event(message)
        yield event.sequence, event


def _event(message: bytes) -> Event:
    try:
        return event_values.from_dict(json.loads(message))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise AnswerError(
            f"a message that is no event ({error!s:.200})",
            expected="an event of this version of the service",
            remedy="Use the same version for client and service; check proxies between them.",
        ) from None
