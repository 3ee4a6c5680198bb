"""The wire: how long a connection may take to say what it wants, and how many there may be.

uvicorn waits for a request as long as it takes to come. Here a request, head and body, has so many
seconds from its first byte (from the beginning of the connection, for the first one); after that
it is answered with 408 and the connection is closed. One who asks and does not take the answer has
as long before the connection is dropped.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from linkstream.service.answers import Refusal, busy, told
from linkstream.service.guard import HEADERS

_GRACE = 0.1  # seconds
HEAD_MAX = 64 << 10  # bytes of a request before its body

_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with a clock for each direction."""

    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None
    _head: int | None = None  # bytes of a head that goes on
    _answering: RequestResponseCycle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, if there is room for it."""
        super().connection_made(transport)
        settings = self.app_state["settings"]
        if len(self.connections) > settings.connections_max:
            seen = f"{len(self.connections)} connections"
            self._refuse(busy(seen, f"at most {settings.connections_max} at a time"))
            return
        self._set_clock()

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request."""
        if self.transport.is_closing():
            return
        if self._receiving is None:
            self._set_clock()
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_MAX and not self.transport.is_closing():
                self._refuse(_long_head())

    def on_message_begin(self) -> None:
        """A request begins; it may be the next one in the same bytes."""
        if self._receiving is None:
            self._set_clock()
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It is known what is asked for."""
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of a request is here."""
        super().on_message_complete()
        self._stop_clock()

    def pause_writing(self) -> None:
        """Whoever asked does not take the answer as fast as it comes."""
        super().pause_writing()
        seconds = self.app_state["settings"].receive_seconds
        self._sending = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It takes it again."""
        super().resume_writing()
        self._stop_sending()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has gone."""
        self._stop_clock()
        self._stop_sending()
        self._give_up()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Bytes that are no HTTP."""
        self._refuse(
            Refusal(400, "http", msg, expected="HTTP/1.1", remedy="Send requests as curl does.")
        )

    def shutdown(self) -> None:
        """The service stops: streams of events end, and requests under way are answered."""
        self.app_state["sessions"].stopping.set()
        super().shutdown()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _give_up(self) -> None:
        """Nobody is there any more for what is being answered, or waits to be."""
        waiting = [cycle for cycle, _ in self.pipeline]
        for cycle in (self._answering, *waiting):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def _set_clock(self) -> None:
        seconds = self.app_state["settings"].receive_seconds
        self._receiving = self.loop.call_later(seconds, self._look_again)

    def _stop_clock(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _look_again(self) -> None:
        """Time is up; but what came while the loop was busy may not have been read yet."""
        self._receiving = self.loop.call_later(_GRACE, self._too_slow)

    def _too_slow(self) -> None:
        seconds = self.app_state["settings"].receive_seconds
        self._receiving = None
        if self.transport.is_closing():
            return
        if self.cycle is not None and self.cycle.response_started:
            self.transport.close()  # it was answered without being read to the end
            return
        self._refuse(
            Refusal(
                408,
                "too-slow",
                f"a request that had not come after {seconds:g} s",
                expected="all of it by then",
                remedy="Send smaller requests, or raise receive_seconds.",
            )
        )

    def _refuse(self, error: Refusal) -> None:
        """Answer and hang up; whoever was reading the request sees that it ended."""
        body = json.dumps(told(error)).encode()
        head = [
            f"HTTP/1.1 {error.status} {_REASONS[error.status]}".encode(),
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
            b"cache-control: no-store",
            *(b"%s: %s" % pair for pair in HEADERS),
        ]
        head += [f"{name.lower()}: {value}".encode() for name, value in error.headers.items()]
        self._give_up()
        self.transport.write(b"\r\n".join([*head, b"", b""]) + body)
        self.transport.close()


def _long_head() -> Refusal:
    return Refusal(
        431,
        "too-large",
        f"a head of more than {HEAD_MAX} bytes",
        expected="a shorter one",
        remedy="Send long things in the body.",
    )
