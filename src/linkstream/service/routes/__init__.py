"""The routes, one file for each subject."""

from fastapi import APIRouter

from linkstream.service.routes import (
    activity,
    margins,
    migrations,
    namespaces,
    page,
    people,
    policies,
    proposals,
    reads,
    rebuilds,
    swagger,
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
        people,
        reads,
        margins,
        proposals,
        policies,
        activity,
        rebuilds,
        migrations,
        vectors,
        tables,
        turns,
        uploads,
        namespaces,
        page,
        swagger,
    ):
        routes.include_router(module.router)
    return routes
