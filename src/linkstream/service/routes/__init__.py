"""The routes, by what they are about: a file each."""

from fastapi import APIRouter

from linkstream.service.routes import (
    clusters,
    corrections,
    events,
    namespaces,
    page,
    people,
    vectors,
)

ROOMS = (vectors, corrections, clusters, people, events, namespaces, page)


def router() -> APIRouter:
    """All routes, the busiest first."""
    whole = APIRouter()
    for room in ROOMS:
        whole.include_router(room.router)
    return whole
