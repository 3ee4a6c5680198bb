"""The guard: what every request passes, whatever it asks for.

Who calls (by Host and by site), what every answer carries, and what becomes of an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect

from linkstream.errors import LinkstreamError
from linkstream.service.answers import Refusal, hidden_of, refused
from linkstream.service.heads import KEPT
from linkstream.service.metrics import Metrics
from linkstream.service.settings import Settings

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
HEADERS_MAX = 100  # of a request
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
# What it would matter to read otherwise than whoever passed the request on to us.
_ONCE = frozenset(
    (
        *(b"host", b"origin", b"sec-fetch-site", b"authorization", b"idempotency-key"),
        *(b"content-type", b"content-length", b"content-encoding", b"last-event-id"),
    )
)
_OURS = frozenset((b"same-origin", b"none"))

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

_log = logging.getLogger("linkstream.service")


class Guard:
    """The outermost of the application."""

    def __init__(self, app: Any, settings: Settings, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._hidden = hidden_of(settings)
        self._hosts = _LOOPBACK | {settings.host.lower(), *settings.allowed_hosts}
        self._any_host = settings.host in ("0.0.0.0", "::") and not settings.allowed_hosts

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.setdefault("headers", [])
                message["headers"] = [*given, *HEADERS]
                if not any(name == b"cache-control" for name, _ in given):
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, answer)
        except LinkstreamError as error:
            await refused(error, hidden=self._hidden)(scope, receive, answer)
        except ClientDisconnect:
            status = 499  # nobody is there to be answered
        except Exception:
            _log.exception("%s %s", scope["method"], scope["path"])
            await refused(_fault())(scope, receive, answer)
        finally:
            self._metrics.answered(scope, status, time.perf_counter() - start)

    def _check(self, scope: Any) -> None:
        heads: dict[bytes, bytes] = {}
        if len(scope["headers"]) > HEADERS_MAX:
            raise Refusal(
                431,
                "too-large",
                f"{len(scope['headers'])} headers",
                expected=f"at most {HEADERS_MAX}",
                remedy="Send fewer.",
            )
        for name, value in scope["headers"]:
            if name in _ONCE and name in heads:
                raise _odd(f"{name.decode()} twice", "each header once")
            heads[name] = value
        if not scope["path"].isprintable():
            raise _odd(f"the path {scope['path']!r:.100}", "one of letters that can be printed")
        host = heads.get(b"host")
        self._check_host(host)
        _check_site(scope, host, heads.get(b"origin"), heads.get(b"sec-fetch-site"))
        scope[KEPT] = heads

    def _check_host(self, host: bytes | None) -> None:
        """A page of another site may give its own name our address; the name tells."""
        if self._any_host:
            return
        if host is None or hostname(host) not in self._hosts:
            raise Refusal(
                403,
                "host",
                f"Host {host!r:.100}",
                expected="a name by which the service is known",
                remedy="Call it by its address, or add the name to allowed_hosts.",
            )


@lru_cache(maxsize=256)
def hostname(host: bytes) -> str:
    """The name in a Host header, without the port; empty where there is none."""
    try:
        return (urlsplit(f"//{host.decode('ascii')}").hostname or "").lower()
    except ValueError:
        return ""


def _check_site(scope: Any, host: bytes | None, origin: bytes | None, site: bytes | None) -> None:
    """Browsers say whose page a request comes from; only our own may call."""
    strange = origin is not None and not _same_origin(origin, host)
    if strange or (site is not None and site not in _OURS and not _is_visit(scope)):
        raise Refusal(
            403,
            "origin",
            f"a request from another site ({(origin or site)!r:.100})",
            expected="one from the service's own page, or from a program",
            remedy="Call it from a server of yours.",
        )


def _same_origin(origin: bytes, host: bytes | None) -> bool:
    scheme, found, place = origin.partition(b"://")
    return bool(found) and scheme in (b"http", b"https") and place == host


def _odd(seen: str, expected: str) -> Refusal:
    return Refusal(400, "http", seen, expected=expected, remedy="Send requests as curl does.")


def _is_visit(scope: Any) -> bool:
    """Somebody follows a link to the page."""
    return (scope["method"], scope["path"]) == ("GET", "/")


def _fault() -> Refusal:
    return Refusal(
        500,
        "fault",
        "a fault of the service",
        expected="none",
        remedy="What was acknowledged is safe. See the log of the service, and report it.",
    )
