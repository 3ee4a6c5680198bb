"""Files that are served as they are: read once, compressed once, revalidated by ETag."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file in memory, with its compressed form.

    Attributes:
        body: the bytes of the file.
        packed: the same, compressed by gzip.
        kind: the media type.
        tag: a digest of the bytes; the ETag without its quotes.
    """

    body: bytes
    packed: bytes
    kind: str
    tag: str

    @classmethod
    def of(cls, body: bytes, kind: str) -> Asset:
        """Compress a file."""
        tag = hashlib.sha256(body).hexdigest()[:24]
        return cls(body, gzip.compress(body, mtime=0), kind, tag)

    def answer(self, request: Request, headers: dict[str, str] | None = None) -> Response:
        """Return the file as the client accepts it; 304 if the client has it already."""
        wants = request.headers.get("accept-encoding", "")
        packed = _accepts_gzip(wants)
        tag = f'"{self.tag}-gzip"' if packed else f'"{self.tag}"'
        more = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding", "ETag": tag}
        more |= headers or {}
        if self._is_known(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=more)
        if packed:
            more["Content-Encoding"] = "gzip"
        body = self.packed if packed else self.body
        return Response(body, media_type=self.kind, headers=more)

    def _is_known(self, tags: str) -> bool:
        known = {f'"{self.tag}"', f'"{self.tag}-gzip"', "*"}
        return any(tag.strip().removeprefix("W/") in known for tag in tags.split(","))


@lru_cache(maxsize=4)
def assets(package: str, folder: str) -> dict[str, Asset]:
    """Return all files of a folder of a package, by name."""
    return {
        part.name: Asset.of(part.read_bytes(), kind)
        for part in (files(package) / folder).iterdir()
        if (kind := KINDS.get(Path(part.name).suffix)) is not None
    }


def _accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding names gzip, and not with a weight of zero."""
    for part in header.lower().split(","):
        name, _, weight = part.replace(" ", "").partition(";")
        if name in ("gzip", "x-gzip"):
            return weight.rstrip("0") not in ("q=", "q=0.")
    return False
