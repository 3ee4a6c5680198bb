"""The ASGI application: routes, middleware, and the namespaces behind them."""

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
from linkstream.service.invalid import invalid
from linkstream.service.metrics import Metrics
from linkstream.service.middleware import AddFastPath, SecurityMiddleware
from linkstream.service.responses import Refusal, error_response, fault, hidden_prefix
from linkstream.service.routes import router
from linkstream.service.routes.writes import add_vectors
from linkstream.service.sessions import Sessions
from linkstream.service.settings import Settings
from linkstream.service.tokens import Tokens

ABOUT = "Clusters embeddings as they arrive. Errors state what was seen, expected, and the remedy."


class Service(FastAPI):
    """FastAPI's application inside the middleware, which sees every request and response."""

    front: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        await self.front(scope, receive, send)


def create_app(settings: Settings, *, sessions: Sessions | None = None) -> Service:
    """Make the service as an ASGI application.

    Run it with one worker: a store has one writer. `linkstream serve` also checks the address it
    listens at and limits the time of a request; another server has to do that itself.

    Args:
        settings: the settings of the service.
        sessions: the namespaces; None opens those in the data folder.
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
        docs_url=None,  # that page loads scripts from other sites; ours is routes/swagger.py
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings, app.state.sessions = settings, namespaces
    app.state.tokens, app.state.metrics = tokens, metrics
    app.include_router(router())
    fast_path = AddFastPath(super(Service, app).__call__, add_vectors, app)
    app.front = SecurityMiddleware(fast_path, settings, metrics)
    app.add_exception_handler(LinkstreamError, _library_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _fault)  # the middleware logs it
    _describe_tokens(app)
    return app


def _describe_tokens(app: FastAPI) -> None:
    """Describe the token in /openapi.json."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        described = plain()
        parts = described.setdefault("components", {})
        parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        return described

    app.openapi = openapi  # type: ignore[method-assign]


async def _library_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, LinkstreamError)
    return error_response(error, hidden=hidden_prefix(request.app.state.settings))


async def _invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(invalid(error.errors()[0]))


async def _fault(_request: Request, _error: Exception) -> Response:
    return error_response(fault("a fault of the service"))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "method"}.get(error.status_code, "http")
    return error_response(
        Refusal(
            error.status_code,
            kind,
            f"{request.method} {request.url.path!r:.100}",
            expected="a route of /openapi.json",
            remedy="Check the path and the HTTP method.",
            headers=dict(error.headers or {}),
        )
    )
