"""Schemas of lists of clusters, and of similar clusters."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class Cluster(BaseModel):
    """A cluster; `subclusters` is their number."""

    id: int
    size: int
    subclusters: int
    name: str | None
    first_seen: int
    last_seen: int
    pending: bool
    ignored: bool


class Exemplar(BaseModel):
    """A vector to show of a cluster."""

    vector: int
    key: str | None
    payload: Any


class ListedCluster(Cluster):
    """A cluster in a list; `time` is that of its newest vector, if it has one."""

    time: str | None
    exemplars: list[Exemplar] | None = None


class Clusters(BaseModel):
    """A page of clusters, how many there are in all, and what a search looked at."""

    total: int
    searched: list[Literal["names", "keys", "payloads"]]
    clusters: list[ListedCluster]


class NearCluster(BaseModel):
    """A similar cluster; `apart` says what keeps both from being joined."""

    id: int
    name: str | None
    size: int
    similarity: float
    margin: float
    probability: float | None
    apart: Literal["correction", "name"] | None
    exemplars: list[Exemplar]


class NearClusters(BaseModel):
    """Similar clusters, the greatest margin first."""

    clusters: list[NearCluster]
