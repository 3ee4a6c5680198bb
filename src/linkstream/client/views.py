"""Views of a namespace for which `Links` has no type, and the readers of JSON answers.

A reader converts the service's plain values to the objects that `Links` returns, and checks them.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from linkstream.clusterer.confidence import Told
from linkstream.confidence import Model
from linkstream.engine import event_values
from linkstream.engine.events import Event
from linkstream.identity.review import Exemplars
from linkstream.identity.timeline import History
from linkstream.paper.thresholds import Thresholds
from linkstream.store.own_columns import microseconds, to_datetime

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """A namespace in a list; counts are None until the namespace is first used after a start."""

    name: str
    vectors: int | None
    subclusters: int | None
    clusters: int | None
    dimension: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """The events of a change: sequence numbers from `before` up to but excluding `event`.

    `undo(after=event)` takes the change back if nothing came after it. `undo(to=before)` takes back
    the change and everything after it.
    """

    before: int
    event: int


@dataclass(frozen=True, slots=True)
class Info:
    """Counts and options of a namespace.

    Attributes:
        n_vectors, n_subclusters, n_clusters, n_events: as in `Links` and `Store`.
        dimension: of the vectors; None until the space or the first vector fixes it.
        thresholds: the three thresholds.
        raw: the service's whole answer as plain values.
    """

    n_vectors: int
    n_subclusters: int
    n_clusters: int
    n_events: int
    dimension: int | None
    thresholds: Thresholds
    raw: Any


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster in a list: as `Cluster`, with the number of subclusters instead of their list."""

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
    """An edge between two subclusters; `threshold` is s~ for the pair.

    `firm` is 0 if equation 22 tests the edge, 1 if a settlement made it, 2 if a correction
    did.
    """

    subclusters: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    firm: int


@dataclass(frozen=True, slots=True)
class ClusterDetail:
    """A cluster with its subclusters, edges, history and exemplars.

    Attributes:
        id: the live cluster; −1 if it was forgotten.
        asked: the ID of the request; it differs from `id` if that cluster was joined into this one.
        cluster: the cluster as in a list; None if it was forgotten.
        nodes: its subclusters.
        edges: the edges between them.
        truncated: whether there are more subclusters than `nodes` lists.
        history: births, splits and joins of the ID of the request, as events.
        story: the same in words.
        exemplars: vectors to look at; None if the namespace does not keep vectors.
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
class Named:
    """A vector's number, its own key and its own time; None for what it lacks."""

    vector: int
    id: str | None
    time: datetime | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A vector's number, its payload, its own key and its own time; None for what it lacks."""

    vector: int
    payload: Any
    id: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Vectors of a cluster, newest first; pass `next` as `before` for the next page."""

    vectors: tuple[Shown, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class VectorView:
    """The current cluster and subcluster of a vector, its payload, and its own key and time."""

    vector: int
    cluster: int
    subcluster: int
    payload: Any
    id: str | None = None
    time: datetime | None = None


# Readers: each takes parsed JSON; a value that does not fit raises TypeError or KeyError.


def reader(kind: type[T]) -> Callable[[Any], T]:
    """Return a reader of one object; unknown fields are ignored."""
    return functools.partial(build, kind)


def list_reader(name: str, kind: type[T]) -> Callable[[Any], list[T]]:
    """Return a reader of the list of objects in a field."""
    return lambda values: [build(kind, each) for each in values[name]]


def build(kind: type[T], values: Any) -> T:
    """Build a dataclass from plain values."""
    if not isinstance(values, dict):
        raise TypeError(f"{values!r:.80} for a {kind.__name__}")
    given = {}
    hashable: Any = kind
    for name, expected, needed in _fields(hashable):
        if needed or name in values:
            given[name] = _value(expected, values[name], name)
    return kind(**given)


@functools.cache
def _fields(kind: Any) -> list[tuple[str, Any, bool]]:
    """Return the name and type of each field, and whether the field is required."""
    hints = get_type_hints(kind)
    return [
        (each.name, hints[each.name], each.default is each.default_factory is dataclasses.MISSING)
        for each in dataclasses.fields(kind)
    ]


def _value(expected: Any, value: Any, name: str) -> Any:
    """Convert a plain value to the type of a field."""
    origin, inner = get_origin(expected), get_args(expected)
    if expected is Any:
        return value
    if origin in (Union, types.UnionType):  # all unions here are optionals
        (some,) = (each for each in inner if each is not type(None))
        return None if value is None else _value(some, value, name)
    if origin is tuple and isinstance(value, list):
        return _items(inner, value, name)
    if origin is Literal and value in inner:
        return value
    if expected is float and type(value) in (int, float):
        return float(value)
    if expected in (int, str, bool) and type(value) is expected:
        return value
    if expected is datetime and isinstance(value, str):
        return to_datetime(microseconds(value))
    if expected is Event:
        return event_values.from_dict(value)
    if dataclasses.is_dataclass(expected) and isinstance(expected, type):
        return build(expected, value)
    raise TypeError(f"{value!r:.80} for {name}")


def _items(inner: tuple[Any, ...], values: list[Any], name: str) -> tuple[Any, ...]:
    kinds = (inner[0],) * len(values) if inner[-1] is Ellipsis else inner
    if len(kinds) != len(values):
        raise TypeError(f"{len(values)} values for {name}")
    return tuple(_value(kind, each, name) for kind, each in zip(kinds, values, strict=True))


def read_events(values: Any) -> tuple[list[Event], int]:
    """Read a page of events, and the sequence number at which the next page begins."""
    return [event_values.from_dict(each) for each in values["events"]], int(values["next"])


def read_probabilities(values: Any, n: int) -> list[dict[int, float]]:
    """Read the probabilities of n vectors."""
    rows = zip(values["clusters"], values["probabilities"], strict=True)
    found = [
        {int(cluster): float(share) for cluster, share in zip(*row, strict=True)} for row in rows
    ]
    if len(found) != n:
        raise TypeError(f"probabilities of {len(found)} vectors for {n}")
    return found


def read_confidence(values: Any) -> Told:
    """Read what probabilities are told by."""
    model = values["model"]
    answered = tuple((float(told), bool(right)) for told, right in values["answered"])
    known = None if model is None else Model.from_plain(model)
    return Told(known, str(values["why"]), bool(values["drifted"]), answered)


def read_info(values: Any) -> Info:
    """Read the counts and options of a namespace."""
    counts = {
        f"n_{name}": values[name] for name in ("vectors", "subclusters", "clusters", "events")
    }
    return build(Info, {**values, **counts, "raw": values})


def read_clusters(values: Any) -> tuple[list[ClusterView], int]:
    """Read a page of clusters, and how many there are in all."""
    found = [build(ClusterView, _counted(each)) for each in values["clusters"]]
    return found, int(values["total"])


def read_cluster(values: Any) -> ClusterDetail:
    """Read a cluster with its details."""
    cluster = values["cluster"]
    shown = None if cluster is None else _counted(cluster)
    return build(ClusterDetail, {**values, "cluster": shown})


def _counted(cluster: Any) -> dict[str, Any]:
    return {**cluster, "n_subclusters": cluster["subclusters"]}
