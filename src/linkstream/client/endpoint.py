"""The way to a service: where it is, what is sent along, how long is waited."""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass, replace
from typing import Any

import httpx

from linkstream import __version__
from linkstream.client.asking import SLOW, Answer, Request
from linkstream.client.errors import ServiceError
from linkstream.client.namespace import check_name
from linkstream.client.retrying import Retries
from linkstream.errors import ArgumentError

CONNECT, READ = 10.0, 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Way:
    """Where a client's requests go. It does not know the token: nothing shown can tell it."""

    url: str
    namespace: str | None
    timeout: float
    connect_timeout: float
    retries: Retries

    def to(self, namespace: str) -> Way:
        """The same service, another namespace."""
        return replace(self, namespace=check_name(namespace))

    def arguments(self, request: Request) -> dict[str, Any]:
        """A request in httpx's words."""
        return {
            "method": request.method,
            "url": self._path(request),
            "params": dict(request.query),
            "headers": dict(request.headers),
            "content": request.body,
            "timeout": self._timeout(request),
        }

    def _path(self, request: Request) -> str:
        if request.whole:
            return f"/{request.path}"
        if self.namespace is None:
            raise ArgumentError(
                f"{request} of no namespace",
                expected="a client of a namespace",
                remedy="Client(url, 'people'), or client.namespace('people').",
            )
        return f"/v1/namespaces/{self.namespace}/{request.path}".rstrip("/")

    def _timeout(self, request: Request) -> httpx.Timeout:
        read = max(SLOW, self.timeout) if request.slow else self.timeout
        return httpx.Timeout(self.timeout, connect=self.connect_timeout, read=read)

    def __str__(self) -> str:
        there = "" if self.namespace is None else f", {self.namespace!r}"
        return f"({self.url!r}{there})"


def way_to(
    url: str,
    namespace: str | None,
    *,
    timeout: float,
    connect_timeout: float,
    retries: Retries | None,
) -> Way:
    """A way that was checked, before anything is sent."""
    for name, seconds in (("timeout", timeout), ("connect_timeout", connect_timeout)):
        if type(seconds) not in (int, float) or not 0 < seconds < float("inf"):
            raise ArgumentError(
                f"{name}={seconds!r:.80}",
                expected="seconds, above 0",
                remedy="It says how long to wait; leave it out for the default.",
            )
    if namespace is not None:
        check_name(namespace)
    return Way(_checked(url), namespace, timeout, connect_timeout, retries or Retries())


def options(way: Way, token: str | None, verify: bool | ssl.SSLContext) -> dict[str, Any]:
    """What httpx's clients are made with. Proxies of the environment are not for this machine."""
    headers = {"User-Agent": f"linkstream/{__version__}", "Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {_checked_token(token)}"
    return {
        "base_url": way.url,
        "headers": headers,
        "verify": verify,
        "trust_env": not _is_loopback(httpx.URL(way.url).host),
    }


def answer_of(response: httpx.Response) -> Answer:
    """An answer that was read whole."""
    return Answer(response.status_code, response.headers, response.content)


def check_open(http: httpx.Client | httpx.AsyncClient) -> None:
    """ServiceError where the connections were let go."""
    if http.is_closed:
        raise ServiceError(
            "a client that was closed",
            expected="one that is open",
            remedy="Make another one, or close it later.",
        )


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL()
    if parsed.userinfo:  # not shown: it is a secret
        raise ArgumentError(
            "a URL with a user or a password in it",
            expected="a URL without",
            remedy="Pass the token as token=.",
        )
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment:
        raise ArgumentError(
            f"url={url!r:.200}",
            expected="http:// or https://, a host, and its port",
            remedy="`linkstream serve` prints it, such as http://127.0.0.1:7777.",
        )
    return str(parsed).rstrip("/")


def _checked_token(token: object) -> str:
    if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]{1,4096}", token):
        raise ArgumentError(
            "a token that is no line of ASCII without blanks",  # not shown: it is a secret
            expected="what `linkstream token create` printed",
            remedy="Look for a line's end, or for quotes, that came along.",
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
