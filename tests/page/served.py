"""A service with data for the page to show."""

from __future__ import annotations

import json
import struct
import urllib.request
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

DIMENSION = 16
THRESHOLDS = {
    "cluster_similarity": 0.7,
    "subcluster_similarity": 0.8,
    "pair_similarity_max": 0.9,
}
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "Ann\u202egnp.exe\u2066",
    "two\nlines\tand \x1b[2J a bell \x07",
    "\"'><svg/onload=alert(3)>",
    "javascript:alert(4)",
    "{{7*7}} ${alert(5)}",
)


@dataclass(frozen=True)
class Served:
    """A running service, and requests to it as an application sends them."""

    url: str
    token: str | None = None
    namespace: str = "people"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def get(self, route: str) -> Any:
        return self.call("GET", f"/v1/namespaces/{self.namespace}/{route}")

    def post(self, route: str, body: Any) -> Any:
        return self.call("POST", f"/v1/namespaces/{self.namespace}/{route}", body)

    def make(self, **more: Any) -> Served:
        path = f"/v1/namespaces/{self.namespace}"
        self.call("PUT", path, {"thresholds": THRESHOLDS} | more)
        return self

    def add(self, vectors: np.ndarray, payloads: list[Any] | None = None) -> list[int]:
        body = {"vectors": vectors.tolist()} | ({"payloads": payloads} if payloads else {})
        return list(self.post("vectors", body)["ids"])

    def clusters(self) -> list[dict[str, Any]]:
        return list(self.get("clusters?order=id")["clusters"])


def direction(*parts: float) -> np.ndarray:
    """Return a unit vector that starts with these coordinates."""
    x = np.zeros(DIMENSION)
    x[: len(parts)] = parts
    return x / np.linalg.norm(x)


def around(middle: np.ndarray, count: int, *, seed: int = 0, noise: float = 0.04) -> np.ndarray:
    """Return unit vectors near a direction."""
    x = middle + np.random.default_rng(seed).normal(0, noise, (count, DIMENSION))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), np.float32)


def two_alike(served: Served) -> tuple[int, int]:
    """Add two similar clusters and one distant cluster; return the IDs of the two."""
    texts = [{"text": f"first {i}"} for i in range(6)]
    one = served.add(around(direction(1.0), 6), texts)
    texts = [{"text": f"second {i}"} for i in range(6)]
    other = served.add(around(direction(0.6, 0.8), 6, seed=1), texts)
    served.add(around(direction(0, 0, 1.0), 6, seed=2), [{"text": "far"}] * 6)
    assert len({*one, *other}) == 2
    return one[0], other[0]


def png(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """Return a picture of one colour with a lighter disc."""
    rows, columns = np.mgrid[:height, :width]
    disc = (rows - height / 2) ** 2 + (columns - width / 2) ** 2 < (min(width, height) / 3) ** 2
    pixels = np.where(disc[..., None], 230, np.array(colour)).astype(np.uint8)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes())
    chunks = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
