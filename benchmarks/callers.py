"""Clients for load tests: HTTP/1.1 over kept connections, as little of it as there can be.

A general client spends longer on a request than the service does on answering it, and on two cores
it is then the client that is measured. Here a request is bytes made beforehand; of an answer the
status, the length and the body are read, and nothing else is looked at.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

Requests = Iterator[bytes]


class Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self._read = bytearray()
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def to(cls, port: int) -> Connection:
        """A connection to a service on this machine."""
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(cls, "127.0.0.1", port)
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one but by descent

    async def call(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; ConnectionError where none comes."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def data_received(self, data: bytes) -> None:
        """Some bytes of an answer."""
        self._read += data
        end = self._read.find(b"\r\n\r\n")
        if end < 0 or self._waiting is None:
            return
        head = bytes(self._read[:end]).lower()
        place = head.find(b"content-length:")
        length = int(head[place + 15 : (head + b"\r").find(b"\r", place)])
        whole = end + 4 + length
        if len(self._read) < whole:
            return
        body = bytes(self._read[end + 4 : whole])
        del self._read[:whole]
        if not self._waiting.done():
            self._waiting.set_result((int(head[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError())

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


@dataclass
class Told:
    """What clients saw: seconds of each answer that was good, and how many were not."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    wall: float = 0.0

    def percentile(self, share: float) -> float:
        """Seconds within which so large a share was answered."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def request(method: str, path: str, body: bytes, media: str, *more: str) -> bytes:
    """A request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"content-type: {media}", *more]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


async def _client(port: int, requests: Requests, told: Told) -> None:
    connection = await Connection.to(port)
    for one in requests:
        begin = time.perf_counter()
        status, body = await connection.call(one)
        if status != 200:
            raise AssertionError(f"{status} {body[:300]!r}")
        told.seconds.append(time.perf_counter() - begin)
    connection.close()


def work(port: int, requests: list[Requests]) -> Told:
    """As many clients as there are streams of requests, all at once, each to its end."""

    async def everybody() -> Told:
        told, begin = Told(), time.perf_counter()
        await asyncio.gather(*(_client(port, one, told) for one in requests))
        told.wall = time.perf_counter() - begin
        return told

    return run(everybody)


def run(work: Callable[[], Coroutine[Any, Any, Told]]) -> Told:
    """Run it on the quickest event loop there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())
