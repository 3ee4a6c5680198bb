"""The files of the dashboard, and pictures from the folder `images`."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from linkstream.service.responses import not_found, too_large
from linkstream.service.routing import N, Namespace, route, sessions_of, settings_of

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
PICTURES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
PICTURE_MAX = 16 << 20  # bytes

router = APIRouter()


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """Return the dashboard."""
    return parts()["index.html"]


@router.get("/page/{name}", include_in_schema=False)
async def part(name: str) -> Response:
    """Return a file of the dashboard."""
    if name not in parts():
        raise not_found(f"no {name!r:.100}", "a file of the dashboard", "Open / instead.")
    return parts()[name]


@route(router, "GET", f"{N}/images/{{path:path}}", "read", unmade=True)
async def image(request: Request, namespace: Namespace, path: str) -> Response:
    """Return a picture that payloads refer to, from the folder `images`.

    The namespace need not exist yet: rows of an upload are looked at before.
    """
    folder = settings_of(request).images
    if folder is None:
        raise not_found("no folder of pictures", "the setting images", "Set images to a folder.")
    return await sessions_of(request).run_in_thread(lambda: picture(folder, path))


@lru_cache(maxsize=1)
def parts() -> dict[str, Response]:
    """Return all files of the dashboard, read once."""
    folder = files("linkstream.service") / "dashboard"
    found = {}
    for part in folder.iterdir():
        kind = KINDS.get(Path(part.name).suffix)
        if kind is not None:
            headers = {"Cache-Control": "no-cache"}
            found[part.name] = Response(part.read_bytes(), media_type=kind, headers=headers)
    return found


def picture(folder: Path, path: str) -> Response:
    """Return a picture in a folder; refuse paths and links that lead out of the folder."""
    kind = PICTURES.get(Path(path).suffix.lower())
    missing = not_found(
        f"no picture {path!r:.100}", "a .jpg, .png, .webp or .gif", "Check the path."
    )
    if kind is None or "\0" in path or "\\" in path:
        raise missing
    try:
        root = folder.resolve(strict=True)
        target = (root / path).resolve(strict=True)
        if not target.is_relative_to(root):
            raise missing
        handle = os.open(target, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError, RuntimeError):
        raise missing from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise missing
    with os.fdopen(handle, "rb") as file:
        if status.st_size > PICTURE_MAX:
            seen = f"a picture of {status.st_size} bytes"
            raise too_large(seen, f"at most {PICTURE_MAX}", "Make the picture smaller.")
        body = file.read(PICTURE_MAX + 1)
    return Response(body, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})
