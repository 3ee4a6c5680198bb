"""The routes, one file for each subject."""

from fastapi import APIRouter

from linkstream.service.routes import (
    activity,
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
        proposals,
        policies,
        activity,
        rebuilds,
        migrations,
        vectors,
        tables,
        turns,
        namespaces,
        page,
        swagger,
    ):
        routes.include_router(module.router)
    return routes
