"""Swagger UI at /docs: the routes in a form in which they can be tried out.

Its files come from the package fastapi-swagger; nothing is loaded from elsewhere. Swagger UI writes
inline styles, so that the policy of this one page allows them. Scripts stay those of the service.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from linkstream.errors import MissingExtraError
from linkstream.service.assets import Asset, assets
from linkstream.service.middleware import POLICY
from linkstream.service.responses import not_found

FILES = ("swagger-ui-bundle.js", "swagger-ui.css")
_POLICY = {
    "Content-Security-Policy": POLICY.replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    )
}

router = APIRouter()


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Return the page that describes all routes."""
    _bundle()
    return assets("linkstream.service", "dashboard")["docs.html"].answer(request, _POLICY)


@router.get("/docs/{name}", include_in_schema=False)
async def docs_part(request: Request, name: str) -> Response:
    """Return a file of Swagger UI."""
    if name not in FILES:
        raise not_found(f"no {name!r:.100}", "a file of Swagger UI", "Open /docs instead.")
    return _bundle()[name].answer(request)


def _bundle() -> dict[str, Asset]:
    try:
        return assets("fastapi_swagger", "resources")
    except ModuleNotFoundError as missing:
        raise MissingExtraError("fastapi_swagger", extra="service", purpose="/docs") from missing
