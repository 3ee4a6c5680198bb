"""Middleware: the checks of every request, the headers of every response, and the fast path."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from linkstream.errors import LinkstreamError
from linkstream.service.metrics import Metrics
from linkstream.service.requests import HEADERS
from linkstream.service.responses import Refusal, error_response, fault, hidden_prefix
from linkstream.service.routing import N
from linkstream.service.sessions import Sessions
from linkstream.service.settings import Settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
HEADERS_MAX = 100  # in a request
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
# A proxy and the service might read different values if one of these came twice.
_ONCE = frozenset(
    (
        *(b"host", b"origin", b"sec-fetch-site", b"authorization", b"idempotency-key"),
        *(b"content-type", b"content-length", b"content-encoding", b"last-event-id"),
    )
)
_OWN_SITE = frozenset((b"same-origin", b"none"))

_BEFORE, _AFTER = N.split("{namespace}")[0], "/vectors"

_CSP = SECURITY_HEADERS[0][0]

Handler = Callable[[Request], Awaitable[Response]]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

_log = logging.getLogger("linkstream.service")


class SecurityMiddleware:
    """The outermost layer: checks requests, adds headers, turns errors into responses."""

    def __init__(self, app: Any, settings: Settings, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._hidden = hidden_prefix(settings)
        self._hosts = _LOOPBACK | {settings.host.lower(), *settings.allowed_hosts}
        self._any_host = settings.host in ("0.0.0.0", "::") and not settings.allowed_hosts

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, answer = time.perf_counter(), _Answer(send, head=scope["method"] == "HEAD")
        if answer.head:
            scope = {**scope, "method": "GET"}  # the server sends no body
        try:
            self._check(scope)
            await self._app(scope, receive, answer)
        except _HeadAnswered:
            pass
        except LinkstreamError as error:
            await self._refuse(error_response(error, hidden=self._hidden), scope, receive, answer)
        except ClientDisconnect:
            answer.status = 499  # the client has gone
        except asyncio.CancelledError:
            answer.status = 499
            if not _stopping(scope):
                raise
            # The service stops and has closed the connection: uvicorn would log a traceback.
        except Exception:
            _log.exception("%s %s", scope["method"], scope["path"])
            await self._refuse(
                error_response(fault("a fault of the service")), scope, receive, answer
            )
        finally:
            self._metrics.answered(scope, answer.status, time.perf_counter() - start)

    async def _refuse(self, error: Response, scope: Any, receive: Receive, answer: _Answer) -> None:
        if answer.started:  # of a fault, by the application
            return
        with contextlib.suppress(_HeadAnswered):
            await error(scope, receive, answer)

    def _check(self, scope: Any) -> None:
        headers: dict[bytes, bytes] = {}
        if len(scope["headers"]) > HEADERS_MAX:
            seen = f"{len(scope['headers'])} headers"
            remedy = "Send fewer headers."
            raise Refusal(431, "too-large", seen, expected=f"at most {HEADERS_MAX}", remedy=remedy)
        for name, value in scope["headers"]:
            if name in _ONCE and name in headers:
                raise _bad_request(f"{name.decode()} twice", "this header once")
            headers[name] = value
        if not scope["path"].isprintable():
            raise _bad_request(f"the path {scope['path']!r:.100}", "printable characters")
        host = headers.get(b"host")
        self._check_host(host)
        _check_site(scope, host, headers.get(b"origin"), headers.get(b"sec-fetch-site"))
        scope[HEADERS] = headers

    def _check_host(self, host: bytes | None) -> None:
        """Refuse unknown host names: a site may point its name at this address (DNS rebinding)."""
        if self._any_host:
            return
        if host is None or hostname(host) not in self._hosts:
            seen = f"Host {host!r:.100}"
            remedy = "Use the address of the service, or add the name to allowed_hosts."
            raise Refusal(403, "host", seen, expected="a host name of the service", remedy=remedy)


class _HeadAnswered(Exception):  # noqa: N818  # not a failure
    """Ends the work on an answer to HEAD, whose headers have been sent."""


class _Answer:
    """Sends the messages of an answer, with the headers of every answer.

    The answer to HEAD ends where its body would begin, also if the body is a stream.
    """

    def __init__(self, send: Send, *, head: bool) -> None:
        self._send, self.head, self.status, self.started = send, head, 500, False

    async def __call__(self, message: Any) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.status, self.started = message["status"], True
            given = message.setdefault("headers", [])
            names = {name.lower() for name, _ in given}
            own = SECURITY_HEADERS[1:] if _CSP in names else SECURITY_HEADERS  # that of /docs
            message["headers"] = [*given, *own]
            if b"cache-control" not in names:
                message["headers"].append((b"cache-control", b"no-store"))
        elif self.head:
            await self._send({"type": "http.response.body", "body": b""})
            raise _HeadAnswered
        await self._send(message)


class AddFastPath:
    """Sends POST …/vectors straight to its handler; all other requests go to the router.

    The same function is also a route like any other, so /openapi.json describes it. The router took
    two fifths of the time of a request (docs/choices.md, "Adding goes past the router").
    """

    def __init__(self, router: Any, handler: Handler, app: Any) -> None:
        self._router, self._handler, self._app = router, handler, app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request that adds vectors, or pass the request on."""
        name = _adds_to(scope)
        if name is None:
            await self._router(scope, receive, send)
            return
        scope["app"] = self._app
        scope["path_params"] = {"namespace": name}
        scope["linkstream.route"] = f"{N}{_AFTER}"
        response = await self._handler(Request(scope, receive, send))
        await response(scope, receive, send)


def _stopping(scope: Any) -> bool:
    sessions: Sessions | None = scope.get("state", {}).get("sessions")
    return sessions is not None and sessions.stopping.is_set()


def _adds_to(scope: Any) -> str | None:
    """Return the namespace if the request adds vectors to one, else None."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    path: str = scope["path"]
    if not (path.startswith(_BEFORE) and path.endswith(_AFTER)):
        return None
    name = path[len(_BEFORE) : -len(_AFTER)]
    return name if name and "/" not in name else None


@lru_cache(maxsize=256)
def hostname(host: bytes) -> str:
    """Return the name in a Host header without the port; empty if there is none."""
    try:
        return (urlsplit(f"//{host.decode('ascii')}").hostname or "").lower()
    except ValueError:
        return ""


def _check_site(scope: Any, host: bytes | None, origin: bytes | None, site: bytes | None) -> None:
    """Refuse requests that a browser sends for the page of another site."""
    foreign = origin is not None and not _same_origin(origin, host)
    follows_link = (scope["method"], scope["path"]) == ("GET", "/")  # to the dashboard
    if foreign or (site is not None and site not in _OWN_SITE and not follows_link):
        raise Refusal(
            403,
            "origin",
            f"a request from another site ({(origin or site)!r:.100})",
            expected="a request of the dashboard, or of a program",
            remedy="Call the service from your own server.",
        )


def _same_origin(origin: bytes, host: bytes | None) -> bool:
    scheme, found, rest = origin.partition(b"://")
    return bool(found) and scheme in (b"http", b"https") and rest == host


def _bad_request(seen: str, expected: str) -> Refusal:
    return Refusal(400, "http", seen, expected=expected, remedy="Send requests as curl does.")
