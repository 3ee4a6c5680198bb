"""Routing: one declaration of each route, with scope, body and answer.

The declaration is enforced, and /openapi.json is made from it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import ip_address
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi import Path as InPath
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from linkstream.errors import ArgumentError
from linkstream.service import requests, schemas
from linkstream.service.requests import header
from linkstream.service.responses import Refusal
from linkstream.service.sessions import NAME, SESSION, Session, Sessions
from linkstream.service.settings import Settings
from linkstream.service.tokens import Grant, Tokens

N = "/v1/namespaces/{namespace}"
_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": schemas.Error, "description": "Refused; nothing has changed."},
    "503": {"model": schemas.Error, "description": "Not possible now: see Retry-After."},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same call with the same key is done once and has the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}

_KEYS = re.compile(r"[!-~]{1,255}")

Handler = Callable[..., Awaitable[Any]]
Namespace = Annotated[
    str,
    InPath(
        description="1 to 63 of a–z, 0–9, _ and -.",
        json_schema_extra={"pattern": f"^{NAME.pattern}$", "example": "people"},
    ),
]


def settings_of(request: Request) -> Settings:
    """Return the settings of the service."""
    settings: Settings = request.app.state.settings
    return settings


def sessions_of(request: Request) -> Sessions:
    """Return the namespaces."""
    sessions: Sessions = request.app.state.sessions
    return sessions


def grant_of(request: Request) -> Grant:
    """Return the scopes of the caller; refuse with 401 without a valid token."""
    tokens: Tokens = request.app.state.tokens
    given = header(request, b"authorization")
    kind, _, secret = (given or "").partition(" ")
    grant = tokens.grant(secret.strip() if kind.lower() == "bearer" else None)
    if grant is None:
        raise Refusal(
            401,
            "token",
            "no token" if given is None else "a token that is unknown, expired or revoked",
            expected="Authorization: Bearer lsk_…",
            remedy="Make a token: linkstream token create.",
            headers={"WWW-Authenticate": 'Bearer realm="linkstream"'},
        )
    if grant.token is None and request.client is not None:
        _check_loopback(request.client.host)
    request.state.grant = grant
    return grant


@lru_cache(maxsize=1024)
def _check_loopback(host: str) -> None:
    """Refuse callers from other machines; for a service without tokens."""
    try:
        local = ip_address(host).is_loopback
    except ValueError:  # no address: not from a network
        local = True
    if not local:
        seen = "a call from another machine to a service without tokens"
        remedy = "Make a token: linkstream token create."
        raise Refusal(403, "token", seen, expected="calls from this machine", remedy=remedy)


def allowed(request: Request, scope: str, namespace: str | None) -> Grant:
    """Return the caller's grant; refuse with 403 if it lacks a scope for the namespace."""
    grant = grant_of(request)
    if not grant.allows(scope, namespace):
        where = "all namespaces" if namespace is None else f"{namespace!r:.100}"
        seen = f"a token without {scope} for {where}"
        remedy = "See linkstream token create --help for how to make one."
        raise Refusal(403, "scope", seen, expected=f"a token with {scope} or more", remedy=remedy)
    return grant


async def entered(request: Request, scope: str) -> Session:
    """Check the scope, and return the namespace of the request."""
    namespace = request.path_params["namespace"]
    allowed(request, scope, namespace)
    session = request.scope[SESSION] = await sessions_of(request).get(namespace)
    return session


def _entered(request: Request) -> Session:
    session: Session = request.scope[SESSION]
    return session


Here = Annotated[Session, Depends(_entered)]  # the namespace of the request


def route(
    router: APIRouter,
    method: str,
    path: str,
    scope: str,
    *,
    body: type[BaseModel] | dict[str, Any] | None = None,
    answer: Any = None,
    status: int = 200,
    hot: bool = False,
    opened: str = "",
    unmade: bool = False,
    extra: dict[str, Any] | None = None,
) -> Callable[[Handler], Handler]:
    """Return a decorator that adds a handler as a route.

    Args:
        router: the router to add the route to.
        method: the HTTP method.
        path: the path; `N` is that of a namespace.
        scope: "read", "write", "admin", "any" (any token) or "none" (no token).
        body: the schema of the JSON body, or the content of all kinds of body.
        answer: the schema of the answer.
        status: the HTTP status of a success.
        hot: the handler checks the scope itself, for speed.
        opened: the name of a setting that opens the route to callers without a token.
        unmade: the namespace of the path need not exist.
        extra: more fields of the route in /openapi.json.
    """

    async def enter(request: Request, namespace: Namespace) -> None:
        await entered(request, scope)

    async def identify(request: Request) -> None:
        if scope == "any":
            grant_of(request)
        elif opened and getattr(settings_of(request), opened):
            return
        elif scope != "none":
            allowed(request, scope, request.path_params.get("namespace"))

    exists = (path.startswith(N + "/") and not unmade) or (path == N and method == "GET")
    check = enter if exists else identify

    def add(handler: Handler) -> Handler:
        router.add_api_route(
            path,
            handler,
            methods=[method],
            status_code=status,
            response_model=answer,
            response_class=Response if answer is None else JSONResponse,
            responses=dict(_ERRORS),
            dependencies=[] if hot else [Depends(check)],
            summary=(handler.__doc__ or "").partition("\n")[0],
            description=handler.__doc__,
            operation_id=handler.__name__,
            openapi_extra=_extra(method, scope, body, extra or {}),
        )
        return handler

    return add


def _extra(
    method: str, scope: str, body: type[BaseModel] | dict[str, Any] | None, more: dict[str, Any]
) -> dict[str, Any]:
    fields: dict[str, Any] = {"x-scope": scope}
    fields["security"] = [] if scope == "none" else [{"bearer": []}]
    if body is not None:
        content = body if isinstance(body, dict) else {requests.JSON: {"schema": inline(body)}}
        fields["requestBody"] = {"required": True, "content": content}
    if method == "POST" and scope in ("write", "admin"):
        fields["parameters"] = [_KEY]
    for name, value in more.items():
        fields[name] = [*fields.get(name, ()), *value] if isinstance(value, list) else value
    return fields


def inline(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a body with all references resolved."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def resolved(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").rpartition("/")[2]
            return resolved(parts[name]) if name else {k: resolved(v) for k, v in value.items()}
        return [resolved(each) for each in value] if isinstance(value, list) else value

    found: dict[str, Any] = resolved(schema)
    return found


def key_of(request: Request) -> str | None:
    """Return the idempotency key of a request; refuse one with blanks or other characters.

    Two clients or proxies may treat blanks within a value differently, so that one key would
    become two.
    """
    key = header(request, b"idempotency-key")
    if key is not None and not _KEYS.fullmatch(key := key.strip(" \t")):
        raise ArgumentError(
            f"Idempotency-Key {key!r:.80}",
            expected="1 to 255 printable ASCII characters without blanks",
            remedy="Use a new key for each call, such as a UUID, and the same key to retry a call.",
        )
    return key
