"""The routes, one file for each subject."""

from fastapi import APIRouter

from linkstream.service.routes import (
    namespaces,
    page,
    proposals,
    reads,
    rebuilds,
    tables,
    vectors,
    writes,
)


def router() -> APIRouter:
    """Return all routes, the busiest first."""
    routes = APIRouter()
    for module in (writes, reads, proposals, rebuilds, vectors, tables, namespaces, page):
        routes.include_router(module.router)
    return routes
