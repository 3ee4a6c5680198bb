"""The lane: adding vectors is what a service does all day, and goes straight to its handler.

The same function is a route like any other, and told by /openapi.json; here it is reached past the
router, which took two fifths of the time (docs/choices.md, "Adding goes past the router").
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from linkstream.service.routing import N

Handler = Callable[[Request], Awaitable[Response]]

_BEFORE, _AFTER = N.split("{namespace}")[0], "/vectors"


class Lane:
    """Takes POST …/vectors; all others go on to the router."""

    def __init__(self, others: Any, handler: Handler, app: Any) -> None:
        self._others, self._handler, self._app = others, handler, app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or pass on."""
        name = _namespace(scope)
        if name is None:
            await self._others(scope, receive, send)
            return
        scope["app"] = self._app
        scope["path_params"] = {"namespace": name}
        scope["linkstream.route"] = f"{N}{_AFTER}"
        response = await self._handler(Request(scope, receive, send))
        await response(scope, receive, send)


def _namespace(scope: Any) -> str | None:
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    path: str = scope["path"]
    if not (path.startswith(_BEFORE) and path.endswith(_AFTER)):
        return None
    name = path[len(_BEFORE) : -len(_AFTER)]
    return name if name and "/" not in name else None
