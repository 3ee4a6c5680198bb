"""The service: namespaces of vectors over HTTP, and a dashboard.

`create_app` makes the ASGI application; `linkstream serve` runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkstream.service.settings import Settings

if TYPE_CHECKING:
    from linkstream.service.app import create_app as create_app

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from linkstream.errors import MissingExtraError

    try:
        from linkstream.service.app import create_app
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module not in ("fastapi", "starlette", "pydantic", "prometheus_client"):
            raise
        raise MissingExtraError(module, extra="service", purpose="The service") from missing
    return create_app
