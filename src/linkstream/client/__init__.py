"""The client: the verbs of `Links`, asked of a service over HTTP; blocking or awaited."""

import importlib.util

from linkstream.errors import MissingExtraError

if importlib.util.find_spec("httpx") is None:
    raise MissingExtraError("httpx", extra="client", purpose="The client")

from linkstream.client.awaiting import AsyncClient
from linkstream.client.blocking import Client
from linkstream.client.retrying import Retries
from linkstream.store import Batch

__all__ = ["AsyncClient", "Batch", "Client", "Retries"]
