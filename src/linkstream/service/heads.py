"""Heads of requests, looked up in the fewest steps."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request

KEPT = "linkstream.heads"  # where the guard left them, in the scope


def head(request: Request, name: bytes) -> str | None:
    """A header by its name in small letters; None: it is not there."""
    found = request.scope[KEPT].get(name)
    return None if found is None else found.decode("latin-1")


def query(request: Request) -> QueryParams:
    """What the query says."""
    said: bytes = request.scope["query_string"]
    return _parsed(said) if len(said) <= 256 else QueryParams(said)


@lru_cache(maxsize=256)
def _parsed(said: bytes) -> Any:
    return QueryParams(said)
