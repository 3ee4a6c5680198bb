"""Minimal HTTP/1.1 clients for load tests, with persistent connections.

A general client needs more time for a request than the service needs to answer it, so that on two
cores the client would be measured. Here requests are prepared as bytes, and only status, length
and body of an answer are read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

Requests = Iterator[bytes]


class Connection(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self) -> None:
        self._read = bytearray()
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def to(cls, port: int) -> Connection:
        """Connect to a service on this machine."""
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(cls, "127.0.0.1", port)
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass

    async def call(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; return status and body, or raise ConnectionError."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def data_received(self, data: bytes) -> None:
        """Collect bytes, and finish the request once its answer is complete."""
        self._read += data
        end = self._read.find(b"\r\n\r\n")
        if end < 0 or self._waiting is None:
            return
        head = bytes(self._read[:end]).lower()
        start = head.find(b"content-length:")
        length = int(head[start + 15 : (head + b"\r").find(b"\r", start)])
        whole = end + 4 + length
        if len(self._read) < whole:
            return
        body = bytes(self._read[end + 4 : whole])
        del self._read[:whole]
        if not self._waiting.done():
            self._waiting.set_result((int(head[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the open request."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError())

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


@dataclass
class ClientResults:
    """Results of clients: seconds of each successful answer, and the number of refusals."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    wall: float = 0.0

    def percentile(self, share: float) -> float:
        """Return the seconds within which this share of requests was answered."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def request(method: str, path: str, body: bytes, media: str, *more: str) -> bytes:
    """Return a request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"content-type: {media}", *more]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


async def _client(port: int, requests: Requests, results: ClientResults) -> None:
    connection = await Connection.to(port)
    for one in requests:
        begin = time.perf_counter()
        status, body = await connection.call(one)
        if status != 200:
            raise AssertionError(f"{status} {body[:300]!r}")
        results.seconds.append(time.perf_counter() - begin)
    connection.close()


def work(port: int, requests: list[Requests]) -> ClientResults:
    """Run one client per stream of requests, all concurrently, until all have ended."""

    async def everybody() -> ClientResults:
        results, begin = ClientResults(), time.perf_counter()
        await asyncio.gather(*(_client(port, one, results) for one in requests))
        results.wall = time.perf_counter() - begin
        return results

    return run(everybody)


def run(work: Callable[[], Coroutine[Any, Any, ClientResults]]) -> ClientResults:
    """Run a coroutine on uvloop if it is installed, else on asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())
