"""The routes, one file for each subject."""

from fastapi import APIRouter

from linkstream.service.routes import (
    migrations,
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
    for module in (
        writes,
        reads,
        proposals,
        rebuilds,
        migrations,
        vectors,
        tables,
        namespaces,
        page,
    ):
        routes.include_router(module.router)
    return routes
