"""Views: what a service shows of a namespace, where `Links` has no type for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkstream.identity.exemplars import Exemplars
from linkstream.identity.history import History
from linkstream.paper.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """A namespace that the token may read; figures are None until it is used."""

    name: str
    vectors: int | None
    subclusters: int | None
    clusters: int | None
    dimension: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """A correction that was made, by the events from `before` up to, not with, `event`.

    `undo(after=done.event)` takes it back if nothing came after it; `undo(to=done.before)` takes
    back it and all that came after it.
    """

    before: int
    event: int


@dataclass(frozen=True, slots=True)
class Info:
    """What a namespace holds, and what it was made with.

    Attributes:
        n_vectors, n_subclusters, n_clusters, n_events: as of `Links` and `Store`.
        dimension: of the vectors; None until the space or the first vector fixes it.
        thresholds: the three thresholds.
        told: all that the service tells, as plain values.
    """

    n_vectors: int
    n_subclusters: int
    n_clusters: int
    n_events: int
    dimension: int | None
    thresholds: Thresholds
    told: Any


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster in few words; as `Cluster`, but that its subclusters are counted, not listed."""

    id: int
    size: int
    n_subclusters: int
    name: str | None
    first_seen: int
    last_seen: int
    pending: bool = False
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A subcluster."""

    subcluster: int
    count: int
    first_seen: int
    last_seen: int


@dataclass(frozen=True, slots=True)
class Edge:
    """What ties two subclusters: their similarity, and what s~ asks of them.

    `firm` is 0 where equation 22 judges it, 1 where it was settled, 2 where it is a person's word.
    """

    subclusters: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    firm: int


@dataclass(frozen=True, slots=True)
class ClusterDetail:
    """A cluster and all that is to be seen of it.

    Attributes:
        id: the live cluster; −1 where it was forgotten.
        asked: the ID that was asked for; another one where it was joined into this.
        cluster: in few words; None where it was forgotten.
        nodes, edges: its tree of subclusters; `truncated` where there are more.
        history: the story of the ID asked for, as events; `story` has it in words.
        exemplars: vectors to look at; None where they are not kept.
    """

    id: int
    asked: int
    cluster: ClusterView | None
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    truncated: bool
    history: History
    story: tuple[str, ...]
    exemplars: Exemplars | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A vector's number, and what was attached to it."""

    vector: int
    payload: Any


@dataclass(frozen=True, slots=True)
class Page:
    """Some vectors of a cluster, newest first; `next` goes on from here as `before`."""

    vectors: tuple[Shown, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class VectorView:
    """Where a vector is now, and what was attached to it."""

    vector: int
    cluster: int
    subcluster: int
    payload: Any
