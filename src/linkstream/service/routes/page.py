"""The files of the dashboard, and pictures from the folder `images`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from linkstream.service.assets import Asset, assets
from linkstream.service.responses import not_found, too_large
from linkstream.service.routing import Here, N, route, sessions_of, settings_of

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
async def page(request: Request) -> Response:
    """Return the dashboard."""
    return parts()["index.html"].answer(request)


@router.get("/page/{name}", include_in_schema=False)
async def part(request: Request, name: str) -> Response:
    """Return a file of the dashboard."""
    if name not in parts():
        raise not_found(f"no {name!r:.100}", "a file of the dashboard", "Open / instead.")
    return parts()[name].answer(request)


@route(router, "GET", f"{N}/images/{{path:path}}", "read")
async def image(request: Request, session: Here, path: str) -> Response:
    """Return a picture that payloads refer to, from the folder `images`."""
    folder = settings_of(request).images
    if folder is None:
        raise not_found("no folder of pictures", "the setting images", "Set images to a folder.")
    return await sessions_of(request).run_in_thread(lambda: picture(folder, path))


def parts() -> dict[str, Asset]:
    """Return all files of the dashboard."""
    return assets("linkstream.service", "dashboard")


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
