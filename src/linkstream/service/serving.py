"""uvicorn's server, made to start and stop as `running.serve` promises. Needs uvicorn."""

from __future__ import annotations

import contextlib
import math
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from linkstream.errors import StoreError
from linkstream.service.settings import Settings

if TYPE_CHECKING:
    from linkstream.service.sessions import Sessions

_ACCEPTS = 8  # connections taken in a turn
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """Serves on sockets that are there already; says when it is ready; ends without a word.

    uvicorn's own raises the signal again that it was stopped by, so that the process looks killed.
    Here a stop that was asked for is a success.
    """

    def __init__(self, config: uvicorn.Config, *, demo: bool = False) -> None:
        super().__init__(config)
        self.ready: Callable[[], None] | None = None
        self._demo = demo
        self._failed: BaseException | None = None

    @classmethod
    def of(cls, settings: Settings, *, sessions: Sessions | None = None) -> Server:
        """The server of a service."""
        from linkstream.service import create_app
        from linkstream.service.wire import Protocol

        config = uvicorn.Config(
            create_app(settings, sessions=sessions),
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # else any caller could say that it is another
            timeout_keep_alive=math.ceil(settings.idle_seconds),
            timeout_graceful_shutdown=math.ceil(settings.stop_seconds),
        )
        return cls(config, demo=settings.demo)

    def run_on(self, sockets: list[socket.socket]) -> None:
        """Serve until told to stop; what went wrong at the beginning is raised."""
        # uvloop accepts one connection of a socket in each turn of its loop, and turns are long
        # when there is much to do.
        more = [one.dup() for one in sockets for _ in range(_ACCEPTS - 1)]
        try:
            self.run(sockets=[*sockets, *more])
        except SystemExit:  # which is how uvicorn says that the app did not start
            raise StoreError(
                "a service that did not start",
                expected="stores that can be opened, in a folder that can be written to",
                remedy="The log says why.",
            ) from None
        finally:
            for one in more:
                one.close()
        if self._failed is not None:
            raise self._failed

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets=sockets)
        if self.should_exit:
            return
        if self._demo:
            from linkstream.service import demo

            sessions = self.lifespan.state["sessions"]
            sessions.spawn(demo.feed(sessions))
        try:
            if self.ready is not None:
                self.ready()
        except BaseException as error:  # as where nobody reads the output: stop in good order
            self._failed = error
            self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Within it, the first signal stops in good order, the second at once."""
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
        """A signal came."""
        self.force_exit = self.should_exit
        self.should_exit = True
