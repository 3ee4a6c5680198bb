"""Python clients of the HTTP service: `Client` blocks, `AsyncClient` is awaited."""

import importlib.util

from linkstream.errors import MissingExtraError

if importlib.util.find_spec("httpx") is None:
    raise MissingExtraError("httpx", extra="client", purpose="The client")

from linkstream.client.clients import AsyncClient, Client
from linkstream.client.endpoint import Retries
from linkstream.client.writes import last_write
from linkstream.store import Batch

__all__ = ["AsyncClient", "Batch", "Client", "Retries", "last_write"]
