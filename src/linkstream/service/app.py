"""The application: routes, the guard before them, and the stores behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from linkstream import __version__
from linkstream.errors import LinkstreamError
from linkstream.service import bodies
from linkstream.service.answers import Refusal, hidden_of, refused
from linkstream.service.guard import Guard
from linkstream.service.lane import Lane
from linkstream.service.metrics import Metrics
from linkstream.service.routes import router
from linkstream.service.routes.vectors import add_vectors
from linkstream.service.sessions import Sessions
from linkstream.service.settings import Settings
from linkstream.service.tokens import Tokens

ABOUT = "Clusters embeddings as they arrive. Errors say what was seen, expected, and the remedy."


class Service(FastAPI):
    """FastAPI's application behind our guard: nothing comes in or goes out past it."""

    front: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        await self.front(scope, receive, send)


def create_app(settings: Settings, *, sessions: Sessions | None = None) -> Service:
    """The service as an ASGI application.

    Run it with one worker: a store has one writer. `linkstream serve` also looks after who can
    reach it and how long a request may take to come; another server has to do that itself.
    """
    namespaces = sessions or Sessions(settings)
    tokens, metrics = Tokens.load(settings.token_file), Metrics()
    metrics.watch(namespaces)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        await namespaces.start()
        try:
            yield {"settings": settings, "sessions": namespaces}
        finally:
            await namespaces.stop()

    app = Service(
        title="linkstream",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings, app.state.sessions = settings, namespaces
    app.state.tokens, app.state.metrics = tokens, metrics
    app.include_router(router())
    lane = Lane(super(Service, app).__call__, add_vectors, app)
    app.front = Guard(lane, settings, metrics)
    app.add_exception_handler(LinkstreamError, _ours)
    app.add_exception_handler(RequestValidationError, _misshapen)
    app.add_exception_handler(HTTPException, _http)
    _describe_tokens(app)
    return app


def _describe_tokens(app: FastAPI) -> None:
    """Say in /openapi.json how a token is sent."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        described = plain()
        parts = described.setdefault("components", {})
        parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        return described

    app.openapi = openapi  # type: ignore[method-assign]


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, LinkstreamError)
    return refused(error, hidden=hidden_of(request.app.state.settings))


async def _misshapen(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return refused(bodies.misshapen(error.errors()[0]))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "method"}.get(error.status_code, "http")
    return refused(
        Refusal(
            error.status_code,
            kind,
            f"{request.method} {request.url.path!r:.100}",
            expected="a route of /openapi.json",
            remedy="Check the path and the method.",
            headers=dict(error.headers or {}),
        )
    )
