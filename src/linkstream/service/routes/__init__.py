"""The routes, one file for each subject."""

from fastapi import APIRouter

from linkstream.service.routes import (
    margins,
    migrations,
    namespaces,
    page,
    policies,
    proposals,
    reads,
    rebuilds,
    tables,
    turns,
    uploads,
    vectors,
    writes,
)


def router() -> APIRouter:
    """Return all routes, the busiest first."""
    routes = APIRouter()
    for module in (
        writes,
        reads,
        margins,
        proposals,
        policies,
        rebuilds,
        migrations,
        vectors,
        tables,
        turns,
        uploads,
        namespaces,
        page,
    ):
        routes.include_router(module.router)
    return routes
