"""The files of the dashboard, and pictures from the folder `images`."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from fastapi import APIRouter, Request
from starlette.responses import Response

from linkstream.service.assets import Asset, assets
from linkstream.service.responses import not_found, too_large
from linkstream.service.routing import N, Namespace, route, sessions_of, settings_of

PICTURES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
SOUNDS = {
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".mp3": "audio/mpeg",
}
MEDIA = {**PICTURES, **SOUNDS}
MEDIA_MAX = 16 << 20  # bytes of a picture, or of a part of a sound

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


@route(router, "GET", f"{N}/images/{{path:path}}", "read", unmade=True)
async def image(request: Request, namespace: Namespace, path: str) -> Response:
    """Return a picture or a sound that payloads refer to, from the folder `images`.

    The namespace need not exist yet: rows of an upload are looked at before.
    """
    folder, part = settings_of(request).images, request.headers.get("range", "")
    if folder is None:
        raise not_found("no folder of pictures", "the setting images", "Set images to a folder.")
    return await sessions_of(request).run_in_thread(lambda: media(folder, path, part))


def parts() -> dict[str, Asset]:
    """Return all files of the dashboard."""
    return assets("linkstream.service", "dashboard")


def media(folder: Path, path: str, part: str = "") -> Response:
    """Return a picture or a sound in a folder; refuse paths and links that lead out of the folder.

    `part` is the header Range: one range of a sound is returned as 206.
    """
    suffix = Path(path).suffix.lower()
    missing = not_found(
        f"no file {path!r:.100}",
        "a .jpg, .png, .webp, .gif, .wav, .flac, .ogg or .mp3",
        "Check the path.",
    )
    if suffix not in MEDIA or "\0" in path or "\\" in path:
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
        return _answer(file, status.st_size, suffix, part)


def _answer(file: BinaryIO, size: int, suffix: str, part: str) -> Response:
    headers = {"Cache-Control": "private, max-age=3600"}
    start, end = _range(part, size) if suffix in SOUNDS else (0, size)
    if suffix in SOUNDS:
        headers["Accept-Ranges"] = "bytes"
    if (start, end) == (0, size):
        if size > MEDIA_MAX:
            seen, remedy = f"a file of {size} bytes", "Make it smaller, or ask for a Range."
            raise too_large(seen, f"at most {MEDIA_MAX}", remedy)
        return Response(file.read(MEDIA_MAX + 1), media_type=MEDIA[suffix], headers=headers)
    file.seek(start)
    body = file.read(min(end - start, MEDIA_MAX))
    headers["Content-Range"] = f"bytes {start}-{start + len(body) - 1}/{size}"
    return Response(body, status_code=206, media_type=MEDIA[suffix], headers=headers)


def _range(part: str, size: int) -> tuple[int, int]:
    """Return the first byte and the end of a range; all if there is none that can be met."""
    found = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", part)
    first, last = found.groups() if found else ("", "")
    if first:
        start, end = int(first), min(int(last) + 1, size) if last else size
    else:
        start, end = max(size - int(last), 0) if last else 0, size
    return (start, end) if start < end else (0, size)
