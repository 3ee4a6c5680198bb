"""Every route of the service with its scope and a valid request, to compare with /openapi.json."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from service.server import MADE_WITH
from store.operations import vectors

X = vectors(np.random.default_rng(8), 6)
N = "/v1/namespaces/{namespace}"
ONE = {"vector": X[0].tolist()}
MANY = {"vectors": X[:2].tolist()}


class Route(NamedTuple):
    """A method, a path as in the OpenAPI, the scope it needs, and a valid body.

    `scope`: "none" for anybody, "any" for any good token, "all" for read on all namespaces.
    """

    method: str
    path: str
    scope: str
    body: Any = None
    query: str = ""

    def target(self, namespace, **ids):
        """Return the path and query of the request."""
        filled = {
            "cluster": 0,
            "vector": 0,
            "subcluster": 0,
            "path": "a.png",
            "job": "0",
            "recording": "m",
            "upload": "0",
        } | ids
        path = self.path.format(namespace=namespace, **filled)
        return path + (f"?{self.query}" if self.query else "")

    @property
    def name(self):
        return f"{self.method} {self.path}"


def _reads():
    plain = (
        "",
        "/clusters",
        "/clusters/{cluster}",
        "/clusters/{cluster}/vectors",
        "/vectors/{vector}",
        "/vectors/{vector}/why",
        "/labels",
        "/subclusters/{subcluster}",
        "/suggestions",
        "/review",
        "/corrections",
        "/activity",
        "/timeline",
        "/moments",
        "/settle",
        "/rebuild",
        "/rebuilds",
        "/rebuilds/{job}",
        "/migration",
        "/migration/missing",
        "/migration/report",
        "/partition",
        "/steps",
        "/changes",
        "/events",
        "/space",
        "/thresholds",
        "/confidence",
        "/held",
        "/policy",
        "/margins",
        "/map",
        "/stats",
        "/turns",
        "/turns/{recording}",
        "/images/{path}",
    )
    return [Route("GET", N + path, "read") for path in plain]


TABLES = [
    Route("GET", N + "/tables/vectors", "read", query="format=csv"),
    Route("GET", N + "/tables/clusters", "read", query="format=jsonl"),
]

STREAMS = [
    Route("GET", N + path, "read")
    for path in ("/events/stream", "/live", "/turns/{recording}/stream")
]

ROUTES = [
    Route("GET", "/healthz", "none"),
    Route("GET", "/openapi.json", "none"),
    Route("GET", "/metrics", "all"),
    Route("GET", "/v1/whoami", "any"),
    Route("GET", "/v1/namespaces", "any"),
    *_reads(),
    *STREAMS,
    *TABLES,
    Route("GET", N + "/search", "read", query="q=red"),
    Route("GET", N + "/nearest", "read", query="cluster=0"),
    Route(
        "GET",
        N + "/margins/examples",
        "read",
        query="cluster_similarity=0.7&subcluster_similarity=0.8&pair_similarity_max=0.9",
    ),
    Route("GET", N + "/explain", "read", query="a=0&b=1&of=vectors"),
    Route("GET", N + "/vectors", "read", query="id=a%2Fb%20%C3%BC"),
    Route("POST", N + "/lookup", "read", {"vectors": [0]}),
    Route("POST", N + "/explain", "read", ONE),
    Route("POST", N + "/ask", "read", MANY),
    Route("POST", N + "/predict_proba", "read", MANY),
    Route("POST", N + "/resolve", "read", {"ids": [0, -1]}),
    Route("PUT", N, "admin", MADE_WITH),
    Route("POST", N + "/vectors", "write", MANY),
    Route("POST", N + "/groups", "write", MANY),
    Route("POST", N + "/enrol", "write", {"name": "Ann", **MANY}),
    Route("POST", N + "/name", "write", {"cluster": 0, "name": "Bob"}),
    Route("POST", N + "/rename", "write", {"cluster": 0, "name": "Cid"}),
    Route("POST", N + "/ignore", "write", {"cluster": 0}),
    Route("POST", N + "/judge", "write", {"vector": 0, "right": True}),
    Route("POST", N + "/accept", "write", {}),
    Route("POST", N + "/assign", "write", {"vector": 0}),
    Route("POST", N + "/same", "write", {"a": 0, "b": 1}),
    Route("POST", N + "/different", "write", {"a": 0, "b": 1}),
    Route("POST", N + "/retract", "write", {"correction": 0}),
    Route("POST", N + "/move", "write", {"vector": 0, "cluster": 0}),
    Route("POST", N + "/remove", "write", {"vector": 1}),
    Route("POST", N + "/forget", "write", {"cluster": 0}),
    Route("POST", N + "/undo", "write", {"to": None}),
    Route("POST", N + "/redo", "write", {}),
    Route("POST", N + "/settle", "write", {}),
    Route("POST", N + "/rebuild", "write", {}),
    Route("POST", N + "/rebuilds", "write", {}),
    Route("DELETE", N + "/rebuilds/{job}", "write"),
    Route("POST", N + "/migration", "write", {}),
    Route("POST", N + "/migration/vectors", "write", {**MANY, "numbers": [0, 1]}),
    Route("POST", N + "/migration/ask", "read", MANY),
    Route("POST", N + "/migration/finish", "write", {}),
    Route("POST", N + "/migration/abandon", "write", {}),
    Route("POST", N + "/turns/{recording}", "write", {**MANY, "times": [[0, 1], [1, 2]]}),
    Route("POST", N + "/turns/{recording}/finish", "write", {}),
    Route("POST", N + "/compact", "admin", {}),
    Route("GET", "/v1/presets", "any"),
    Route("POST", N + "/demo", "admin"),
    Route("POST", N + "/uploads", "write", {"file": "a.npy", "size": 10}),
    Route("GET", N + "/uploads", "write"),
    Route("PUT", N + "/uploads/{upload}", "write", b"0", query="offset=0"),
    Route("GET", N + "/uploads/{upload}", "write"),
    Route("GET", N + "/uploads/{upload}/columns", "write"),
    Route("POST", N + "/uploads/{upload}/pairs", "write", {}),
    Route("POST", N + "/uploads/{upload}/calibrate", "write", {}),
    Route("POST", N + "/uploads/{upload}/add", "write", {}),
    Route("DELETE", N + "/uploads/{upload}", "write"),
]


def shape(path):
    """Return a path with empty placeholders."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
