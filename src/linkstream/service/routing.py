"""Routing: a route says who may call it, what it takes and what it answers, in one place.

What is said there is enforced and is what /openapi.json tells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import ip_address
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi import Path as InPath
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from linkstream.service import bodies, shapes
from linkstream.service.answers import Refusal
from linkstream.service.heads import head
from linkstream.service.sessions import NAME, SESSION, Session, Sessions
from linkstream.service.settings import Settings
from linkstream.service.tokens import Grant, Tokens

N = "/v1/namespaces/{namespace}"
_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": shapes.Error, "description": "Refused; nothing has changed."},
    "503": {"model": shapes.Error, "description": "Not now: see Retry-After."},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same call under the same key is done once, and answered alike.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}

Handler = Callable[..., Awaitable[Any]]
Namespace = Annotated[
    str,
    InPath(
        description="1 to 63 of a–z, 0–9, _ and -.",
        json_schema_extra={"pattern": f"^{NAME.pattern}$", "example": "people"},
    ),
]


def settings_of(request: Request) -> Settings:
    """How the service is set up."""
    settings: Settings = request.app.state.settings
    return settings


def sessions_of(request: Request) -> Sessions:
    """The namespaces."""
    sessions: Sessions = request.app.state.sessions
    return sessions


def grant_of(request: Request) -> Grant:
    """What the caller may do; 401 where nobody knows it."""
    tokens: Tokens = request.app.state.tokens
    said = head(request, b"authorization")
    kind, _, secret = (said or "").partition(" ")
    grant = tokens.grant(secret.strip() if kind.lower() == "bearer" else None)
    if grant is None:
        raise Refusal(
            401,
            "token",
            "no token" if said is None else "a token that is not known, or no longer",
            expected="Authorization: Bearer lsk_…",
            remedy="linkstream token create makes one.",
            headers={"WWW-Authenticate": 'Bearer realm="linkstream"'},
        )
    if grant.token is None and request.client is not None:
        _check_near(request.client.host)
    request.state.grant = grant
    return grant


@lru_cache(maxsize=1024)
def _check_near(host: str) -> None:
    """Without tokens, only this machine may call, whoever runs the application."""
    try:
        near = ip_address(host).is_loopback
    except ValueError:  # no address: not from a network
        near = True
    if not near:
        raise Refusal(
            403,
            "token",
            "a call from another machine, and no tokens",
            expected="calls from this one",
            remedy="Make a token: linkstream token create.",
        )


def allowed(request: Request, scope: str, namespace: str | None) -> Grant:
    """403 unless the caller may do so much there."""
    grant = grant_of(request)
    if not grant.allows(scope, namespace):
        where = "all namespaces" if namespace is None else f"{namespace!r:.100}"
        raise Refusal(
            403,
            "scope",
            f"a token without {scope} for {where}",
            expected=f"one with {scope} or more",
            remedy="linkstream token create --help tells how to make one.",
        )
    return grant


async def entered(request: Request, scope: str) -> Session:
    """The namespace of a request, for one who may do so much there."""
    namespace = request.path_params["namespace"]
    allowed(request, scope, namespace)
    session = request.scope[SESSION] = await sessions_of(request).get(namespace)
    return session


def _here(request: Request) -> Session:
    session: Session = request.scope[SESSION]
    return session


Here = Annotated[Session, Depends(_here)]


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
    extra: dict[str, Any] | None = None,
) -> Callable[[Handler], Handler]:
    """Add a route.

    `hot`: it enters by itself, in the fewest steps. `opened`: the setting that opens it to all.
    """

    async def enter(request: Request, namespace: Namespace) -> None:
        await entered(request, scope)

    async def know(request: Request) -> None:
        if scope == "any":
            grant_of(request)
        elif opened and getattr(settings_of(request), opened):
            return
        elif scope != "none":
            namespace = request.path_params.get("namespace")
            allowed(request, scope, namespace)

    door = enter if path.startswith(N + "/") or (path == N and method == "GET") else know

    def add(handler: Handler) -> Handler:
        router.add_api_route(
            path,
            handler,
            methods=[method],
            status_code=status,
            response_model=answer,
            response_class=Response if answer is None else JSONResponse,
            responses=dict(_ERRORS),
            dependencies=[] if hot else [Depends(door)],
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
    said: dict[str, Any] = {"x-scope": scope}
    said["security"] = [] if scope == "none" else [{"bearer": []}]
    if body is not None:
        content = body if isinstance(body, dict) else {bodies.JSON: {"schema": inline(body)}}
        said["requestBody"] = {"required": True, "content": content}
    if method == "POST" and scope in ("write", "admin"):
        said["parameters"] = [_KEY]
    for name, value in more.items():
        said[name] = [*said.get(name, ()), *value] if isinstance(value, list) else value
    return said


def inline(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a body, whole in itself."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").rpartition("/")[2]
            return whole(parts[name]) if name else {k: whole(v) for k, v in value.items()}
        return [whole(each) for each in value] if isinstance(value, list) else value

    found: dict[str, Any] = whole(schema)
    return found


def key_of(request: Request) -> str | None:
    """The idempotency key of a request."""
    return head(request, b"idempotency-key")
