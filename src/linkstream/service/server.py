"""uvicorn's server and HTTP protocol, adapted: time limits, and start and stop. Needs uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from linkstream.errors import StoreError
from linkstream.service import create_app
from linkstream.service.middleware import SECURITY_HEADERS
from linkstream.service.responses import Refusal, busy, error_body
from linkstream.service.settings import Settings
from linkstream.service.stopping import Watchdog, end_process

if TYPE_CHECKING:
    from linkstream.service.sessions import Sessions

HEAD_MAX = 64 << 10  # bytes of a request before its body
_LEFT_MAX = 8 << 20  # bytes of a refused head that are read, so that the client sees the answer
_GRACE = 0.1  # seconds to read bytes that arrived while the event loop was busy
_ACCEPTS = 8  # connections accepted in one turn of the event loop
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Parts of `stop_seconds`: until connections are closed, and until requests are cancelled. The rest
# is for closing the stores.
_REQUESTS, _CANCEL = 0.7, 0.75

_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with time limits.

    uvicorn waits for a request without limit. Here the whole request, head and body, has
    `receive_seconds` from its first byte (for the first request, from the start of the connection);
    after that the response is 408 and the connection is closed. A client that does not read its
    response has as long before the connection is dropped.
    """

    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None
    _head: int | None = None  # bytes received of an unfinished head
    _answering: RequestResponseCycle | None = None
    _left: int | None = None  # bytes of a refused head that may still come

    def connection_made(self, transport: Any) -> None:
        """Accept a connection, or refuse it if there are too many."""
        super().connection_made(transport)
        settings = self.app_state["settings"]
        if len(self.connections) > settings.connections_max:
            seen = f"{len(self.connections)} connections"
            self._refuse(busy(seen, f"at most {settings.connections_max} at a time"))
            return
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Parse bytes of a request; limit the size of its head."""
        if self.transport.is_closing():
            return
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                self.transport.abort()
            return
        if self._receiving is None:
            self._start_timer()
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_MAX and not self.transport.is_closing():
                seen = f"a head of more than {HEAD_MAX} bytes"
                remedy = "Send long values in the body."
                expected = "a shorter head"
                refusal = Refusal(431, "too-large", seen, expected=expected, remedy=remedy)
                self._refuse(refusal, wait=True)

    def on_message_begin(self) -> None:
        """Start the timer; a request may begin in the same bytes in which another ended."""
        if self._receiving is None:
            self._start_timer()
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting the bytes of the head."""
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the timer: the whole request has arrived."""
        super().on_message_complete()
        self._stop_timer()

    def pause_writing(self) -> None:
        """Start a timer: the client does not read its response."""
        super().pause_writing()
        seconds = self.app_state["settings"].receive_seconds
        self._sending = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that timer: the client reads again."""
        super().resume_writing()
        self._stop_sending()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers and cancel the requests of the connection."""
        self._stop_timer()
        self._stop_sending()
        self._cancel_requests()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP."""
        self._refuse(
            Refusal(400, "http", msg, expected="HTTP/1.1", remedy="Send requests as curl does.")
        )

    def shutdown(self) -> None:
        """End streams and slow reads when the service stops; other requests are answered."""
        self.app_state["sessions"].begin_stop()
        super().shutdown()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _cancel_requests(self) -> None:
        """Mark all unanswered requests of the connection as disconnected."""
        waiting = [cycle for cycle, _ in self.pipeline]
        for cycle in (self._answering, *waiting):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def _start_timer(self) -> None:
        seconds = self.app_state["settings"].receive_seconds
        self._receiving = self.loop.call_later(seconds, self._grace_period)

    def _stop_timer(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _grace_period(self) -> None:
        """Wait a little longer for bytes that the busy event loop has not read yet."""
        self._receiving = self.loop.call_later(_GRACE, self._too_slow)

    def _too_slow(self) -> None:
        seconds = self.app_state["settings"].receive_seconds
        self._receiving = None
        if self.transport.is_closing():
            return
        if self._left is not None or (self.cycle is not None and self.cycle.response_started):
            self.transport.close()  # answered before the whole request was read
            return
        seen = f"a request that was incomplete after {seconds:g} s"
        expected = "the whole request by then"
        remedy = "Send smaller requests, or raise receive_seconds."
        self._refuse(Refusal(408, "too-slow", seen, expected=expected, remedy=remedy))

    def _refuse(self, error: Refusal, *, wait: bool = False) -> None:
        """Send an error and close the connection.

        With `wait`, the rest of what the client sends is read and dropped, until the client closes
        or the time of the request is over: else the system resets the connection, and a client that
        is still sending never sees the answer.
        """
        body = json.dumps(error_body(error)).encode()
        head = [
            f"HTTP/1.1 {error.status} {_REASONS[error.status]}".encode(),
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
            b"cache-control: no-store",
            *(b"%s: %s" % pair for pair in SECURITY_HEADERS),
        ]
        head += [f"{name.lower()}: {value}".encode() for name, value in error.headers.items()]
        self._cancel_requests()
        self.transport.write(b"\r\n".join([*head, b"", b""]) + body)
        if wait and self.transport.can_write_eof():
            self._left = _LEFT_MAX
            self.transport.write_eof()
        else:
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn's server on sockets that are already open; calls `ready` when it answers.

    uvicorn raises the signal that stopped it again, so that the process looks killed. Here a stop
    by a signal is a success. The process ends `stop_seconds` after the signal, whatever runs.
    """

    def __init__(self, config: uvicorn.Config, settings: Settings) -> None:
        super().__init__(config)
        self.ready: Callable[[], None] | None = None
        self.signalled = False
        self._settings = settings
        self._watchdog = Watchdog()
        self._failed: BaseException | None = None

    @classmethod
    def of(cls, settings: Settings, *, sessions: Sessions | None = None) -> Server:
        """Make the server of a service."""
        config = uvicorn.Config(
            create_app(settings, sessions=sessions),
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # else a caller could forge its address
            timeout_keep_alive=math.ceil(settings.idle_seconds),
        )
        return cls(config, settings)

    def run_on(self, sockets: list[socket.socket]) -> None:
        """Serve until stopped; raise the error if the start failed."""
        # uvloop accepts one connection per socket in each turn of the event loop, and turns are
        # long under load.
        more = [one.dup() for one in sockets for _ in range(_ACCEPTS - 1)]
        try:
            with self._watchdog, self._signals():
                self.run(sockets=[*sockets, *more])
        except SystemExit:  # uvicorn's sign that the application did not start
            raise StoreError(
                "a service that did not start",
                expected="stores that can be opened, in a writable folder",
                remedy="See the log for the reason.",
            ) from None
        finally:
            for one in more:
                one.close()
        if self._failed is not None:
            raise self._failed

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer requests, then call `ready`."""
        await super().startup(sockets=sockets)
        if self.should_exit:
            return
        if self._settings.demo:
            from linkstream.service import demo

            sessions = self.lifespan.state["sessions"]
            demo.start(sessions)
        try:
            if self.ready is not None:
                self.ready()
        except BaseException as error:  # such as a closed output: stop in good order
            self._failed = error
            self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer running requests, for a part of `stop_seconds`, then close the stores."""
        seconds = self._settings.stop_seconds
        self.lifespan.state["sessions"].begin_stop()
        timer = asyncio.get_running_loop().call_later(_REQUESTS * seconds, self._hang_up)
        self.config.timeout_graceful_shutdown = _CANCEL * seconds  # type: ignore[assignment]
        try:
            await super().shutdown(sockets=sockets)
        finally:
            timer.cancel()

    def _hang_up(self) -> None:
        """Close the connections of requests that are not answered yet.

        An answer such as 503 would be wrong: a write may still be done.
        """
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: `run_on` handles signals until the event loop has ended."""
        yield

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals inside the block: the first stops in good order, the second at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002, RUF100
        """Stop; at the second signal end the process at once."""
        if self.signalled:
            end_process()
        self.signalled = self.should_exit = True
        self._watchdog.limit(self._settings.stop_seconds)
