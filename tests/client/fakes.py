"""Both clients behind one interface for tests, and fake services."""

from __future__ import annotations

import asyncio
import json

import httpx

from linkstream.client import AsyncClient, Client, Retries

URL = "http://service.test:7777"
TOKEN = "lsk_7_a-secret-that-nobody-must-see"
DECISION = {
    "cluster": 3,
    "subcluster": 5,
    "kind": "joined",
    "similarity": 0.75,
    "threshold": 0.625,
    "margin": 0.125,
    "sequence": 17,
}


class Blocking:
    """A `Client`."""

    def __init__(self, handler, url=URL, namespace="people", **options):
        transport = handler if handler is None else httpx.MockTransport(handler)
        self._client = Client(url, namespace, transport=transport, **options)

    def __getattr__(self, verb):
        return getattr(self._client, verb)

    def first(self, verb, n, *args):
        """Return the first n values of a stream."""
        stream = getattr(self._client, verb)(*args)
        try:
            return [next(stream) for _ in range(n)]
        finally:
            stream.close()

    def every(self, verb, *args):
        return list(getattr(self._client, verb)(*args))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._client.close()


class Awaited:
    """An `AsyncClient` whose verbs are awaited on an event loop of its own."""

    def __init__(self, handler, url=URL, namespace="people", **options):
        transport = handler if handler is None else httpx.MockTransport(handler)
        self._loop = asyncio.new_event_loop()
        self._client = AsyncClient(url, namespace, transport=transport, **options)

    def __getattr__(self, verb):
        method = getattr(self._client, verb)
        return lambda *args, **kwargs: self._loop.run_until_complete(method(*args, **kwargs))

    def first(self, verb, n, *args):
        async def some():
            stream = getattr(self._client, verb)(*args)
            try:
                return [await anext(stream) for _ in range(n)]
            finally:
                await stream.aclose()

        return self._loop.run_until_complete(some())

    def every(self, verb, *args):
        async def collect():
            return [each async for each in getattr(self._client, verb)(*args)]

        return self._loop.run_until_complete(collect())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


BOTH = (Blocking, Awaited)


class Service:
    """Gives prepared answers in turn, the last one again and again; keeps the requests."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = []

    def __call__(self, request):
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def keys_sent(self):
        return [request.headers.get("idempotency-key") for request in self.asked]


def good(values):
    return lambda: httpx.Response(200, json=values)


def ids(*numbers):
    body = b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)
    return lambda: httpx.Response(
        200, content=body, headers={"Content-Type": "application/octet-stream"}
    )


def refusal(status, kind, headers=None, **more):
    words = {"seen": "this", "expected": "that", "remedy": "Mend it."}
    body = json.dumps({"error": {"kind": kind, **words, **more}})
    return lambda: httpx.Response(status, content=body, headers=headers or {})


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A stream that comes in pieces; a piece that is an exception is raised."""

    def __init__(self, *pieces):
        self._pieces = pieces

    def __iter__(self):
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def __aiter__(self):
        for piece in self:
            yield piece


def stream(*pieces):
    headers = {"Content-Type": "text/event-stream; charset=utf-8"}
    return lambda: httpx.Response(200, stream=Pieces(*pieces), headers=headers)


def never():
    return Retries(attempts=1)
