"""The verbs that read. Each is a generator that both clients run (`requests.py`)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.client import views
from linkstream.client.requests import (
    BINARY,
    Steps,
    as_in_links,
    fetch,
    finite,
    get,
    post,
    row_of,
    rows_of,
)
from linkstream.client.sending import Sending, post_vectors
from linkstream.client.views import (
    ClusterDetail,
    ClusterView,
    Info,
    Named,
    NamespaceView,
    Page,
    VectorView,
)
from linkstream.clusterer.checks import check_ids, whole_number
from linkstream.clusterer.confidence import Told
from linkstream.clusterer.policies import HeldVector
from linkstream.clusterer.verbs import Same
from linkstream.confidence import Policy
from linkstream.engine.events import Event
from linkstream.errors import ArgumentError
from linkstream.explanation import Explanation
from linkstream.identity.laws import Correction
from linkstream.identity.paths import Pair
from linkstream.identity.review import Exemplars, Question
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.identity.timeline import History
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Step
from linkstream.store.keyed import Vector, Vectors
from linkstream.store.own_columns import PREFIX, check_key, microseconds

T = TypeVar("T")

PAGE = 1_000  # clusters or events in one request
_HELD_PAGE = 200  # held vectors in one request
LOOKUPS = 10_000  # vectors to look up in one request
IDS = 100_000  # IDs to resolve in one request


# The service


def health() -> Steps[dict[str, Any]]:
    """Return the status and version of the service, and the number of its namespaces."""
    return fetch("healthz", dict, in_namespace=False)


def whoami() -> Steps[dict[str, Any]]:
    """Return the scopes of the token, by namespace."""
    return fetch("v1/whoami", dict, in_namespace=False)


def namespaces() -> Steps[list[NamespaceView]]:
    """Return the namespaces that the token may read."""
    reader = views.list_reader("namespaces", NamespaceView)
    return fetch("v1/namespaces", reader, in_namespace=False)


# The namespace


def info() -> Steps[Info]:
    """Return the counts of the namespace, and the options it was made with."""
    return fetch("", views.read_info)


def thresholds() -> Steps[Thresholds]:
    """Return the three thresholds."""
    return fetch("thresholds", views.reader(Thresholds))


def confidence() -> Steps[Told]:
    """Return the model of probabilities, and why they may be unknown."""
    return fetch("confidence", views.read_confidence)


def stats() -> Steps[dict[str, Any]]:
    """Return counts and rates since the service started, as plain values."""
    return fetch("stats", dict)


@as_in_links
def state_hash() -> Steps[str]:
    """As `Links.state_hash`."""
    return fetch("", lambda values: str(values["state_hash"]), slow=True, hash="true")


@as_in_links
def partition_hash() -> Steps[str]:
    """As `Links.partition_hash`."""
    return fetch("partition", lambda values: str(values["partition_hash"]), slow=True)


# Vectors and clusters


@as_in_links
def predict(X: npt.ArrayLike) -> Steps[npt.NDArray[np.int64]]:
    """As `Links.predict`."""
    rows = rows_of(X)
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    answer = yield post_vectors("ask", Sending(rows), {"Accept": BINARY})
    return answer.ids(len(rows))


@as_in_links
def predict_proba(X: npt.ArrayLike, *, limit: int = 5) -> Steps[list[dict[int, float]]]:
    """As `Links.predict_proba`."""
    rows = rows_of(X)
    most = whole_number("limit", limit, "how many clusters to return of each vector")
    if not len(rows):
        return []
    answer = yield post_vectors("predict_proba", Sending(rows), {}, limit=str(most))
    return answer.read(lambda values: views.read_probabilities(values, len(rows)))


@as_in_links
def labels() -> Steps[npt.NDArray[np.int64]]:
    """As `Links.labels`."""
    answer = yield get("labels", accept=BINARY)
    return answer.ids(None, "labels")


def clusters(
    *, order: str = "id", limit: int | None = None, matching: str | None = None
) -> Steps[list[ClusterView]]:
    """Return the clusters.

    Args:
        order: "id", "size" (largest first) or "recent" (last seen first).
        limit: how many at most; None for all.
        matching: only clusters whose name contains this text, or whose ID is this number.
    """
    most = None if limit is None else whole_number("limit", limit, "how many clusters to show")
    found: dict[int, ClusterView] = {}  # by ID: pages may overlap while vectors are added
    offset, total = 0, 1
    while offset < total and (most is None or len(found) < most):
        answer = yield get("clusters", order=order, limit=PAGE, offset=offset, q=matching)
        some, total = answer.read(views.read_clusters)
        found |= {each.id: each for each in some}
        offset = offset + len(some) if some else total
    return list(found.values())[:most]


def cluster(cluster_id: int) -> Steps[ClusterDetail]:
    """Return a cluster with its subclusters, edges, history and exemplars.

    Args:
        cluster_id: the cluster; if it was joined into another, that one is returned.
    """
    return fetch(f"clusters/{_number(cluster_id)}", views.read_cluster)


def members(cluster_id: int, *, limit: int = 50, before: int | None = None) -> Steps[Page]:
    """Return vectors of a cluster with their payloads, newest first.

    Args:
        cluster_id: the cluster.
        limit: how many at most, up to 1,000.
        before: only vectors with a lower number; the `next` of the page before.
    """
    path = f"clusters/{_number(cluster_id)}/vectors"
    return fetch(path, views.reader(Page), limit=limit, before=before)


def vector(vector: Vector) -> Steps[VectorView]:
    """Return the current cluster and subcluster of a vector, its payload, key and time.

    Args:
        vector: the vector, by its number in order of arrival or by its own key.
    """
    return _vector(vector, views.reader(VectorView))


def payload(vector: Vector) -> Steps[Any]:
    """Return the payload of a vector; None if it has none.

    Args:
        vector: the vector, by its number in order of arrival or by its own key.
    """
    return _vector(vector, lambda values: values["payload"])


def _vector(vector: Vector, reader: Callable[[Any], T]) -> Steps[T]:
    if isinstance(vector, str):
        return fetch("vectors", reader, id=check_key(vector).decode())
    return fetch(f"vectors/{_number(vector)}", reader)


def number(key: Vector) -> Steps[int]:
    """Return the number of the vector that has a key; raise UnknownIdError if none has it.

    Args:
        key: the vector's own key; or its number, which is returned if the vector is there.
    """
    return int((yield from numbers([key]))[0])


def numbers(keys: Vectors) -> Steps[npt.NDArray[np.int64]]:
    """Return the numbers of vectors; raise UnknownIdError if one is not there.

    Args:
        keys: the vectors by their own keys, or by number.
    """
    found = yield from _lookup(keys)
    return np.array([each.vector for each in found], dtype=np.int64)


def key(vector: Vector) -> Steps[str | None]:
    """Return a vector's own key; None if it has none.

    Args:
        vector: the vector, by number.
    """
    return (yield from keys([vector]))[0]


def keys(vectors: Vectors) -> Steps[list[str | None]]:
    """Return the vectors' own keys; None for a vector without one.

    Args:
        vectors: the numbers of the vectors, in any order.
    """
    return [each.id for each in (yield from _lookup(vectors))]


def time(vector: Vector) -> Steps[datetime | None]:
    """Return a vector's own time in UTC; None if it has none.

    Args:
        vector: the vector, by number or by its own key.
    """
    return (yield from _lookup([vector]))[0].time


def times(vectors: Vectors) -> Steps[npt.NDArray[np.datetime64]]:
    """Return the vectors' own times in UTC, as datetime64 in microseconds; NaT for none.

    Args:
        vectors: the vectors, by number or by their own keys.
    """
    found = yield from _lookup(vectors)
    plain = [microseconds(each.time) for each in found]
    return np.array(plain, dtype=np.int64).astype("datetime64[us]")


def _lookup(vectors: Vectors) -> Steps[list[Named]]:
    """Return number, key and time of vectors."""
    wanted = [each if isinstance(each, str) else _number(each) for each in vectors]
    found: list[Named] = []
    for start in range(0, len(wanted), LOOKUPS):
        part = {"vectors": wanted[start : start + LOOKUPS]}
        answer = yield post("lookup", part, write=False)
        found += answer.read(views.list_reader("vectors", Named))
    return found


@as_in_links
def resolve(cluster_id: int) -> Steps[int]:
    """As `Links.resolve`."""
    return fetch(f"clusters/{_number(cluster_id)}", lambda values: int(values["id"]))


@as_in_links
def resolve_many(ids: npt.ArrayLike) -> Steps[npt.NDArray[np.int64]]:
    """As `Links.resolve_many`."""
    wanted, places = np.unique(check_ids(ids), return_inverse=True)
    found: list[int] = []
    for start in range(0, len(wanted), IDS):
        answer = yield post("resolve", {"ids": wanted[start : start + IDS].tolist()}, write=False)
        found += answer.read(lambda values: [int(each) for each in values["ids"]])
    return np.array(found, dtype=np.int64)[places]


@as_in_links
def named(name: str) -> Steps[int]:
    """As `Links.named`."""
    for each in (yield from clusters(matching=name)):
        if each.name == name:
            return each.id
    seen = f"the name {name!r}"
    remedy = "List the names with clusters()."
    raise ArgumentError(seen, expected="a name given by name() or enrol()", remedy=remedy)


# Explanations


@as_in_links
def explain(x: npt.ArrayLike, *, limit: int = 5) -> Steps[Explanation]:
    """As `Links.explain`."""
    row = finite(row_of(x))[0].tolist()
    answer = yield post("explain", {"vector": row, "limit": limit}, write=False)
    return answer.read(views.reader(Explanation))


@as_in_links
def explain_pair(a: Vector, b: Vector, *, of: str = "vectors") -> Steps[Pair]:
    """As `Links.explain_pair`."""
    Same(a, b, of=of).keys()  # raises for keys of anything but vectors
    return fetch("explain", views.reader(Pair), a=_words(a), b=_words(b), of=of)


def _words(vector: Vector) -> int | str:
    """Return a number, or a key as a query has it."""
    return PREFIX + vector if isinstance(vector, str) else _number(vector)


@as_in_links
def history(cluster_id: int) -> Steps[History]:
    """As `Links.history`."""
    path = f"clusters/{_number(cluster_id)}"
    return fetch(path, lambda values: views.build(History, values["history"]))


def exemplars(cluster_id: int) -> Steps[Exemplars | None]:
    """Return vectors of a cluster to look at; None if the namespace does not keep vectors.

    Args:
        cluster_id: the cluster.
    """
    path = f"clusters/{_number(cluster_id)}"
    return fetch(path, lambda values: views.read_cluster(values).exemplars)


# Review


@as_in_links
def review_queue(limit: int = 20) -> Steps[list[Question]]:
    """As `Links.review_queue`."""
    return fetch("review", views.list_reader("questions", Question), limit=limit, slow=True)


@as_in_links
def suggest_merges(limit: int = 20) -> Steps[list[MergeSuggestion]]:
    """As `Links.suggest_merges`."""
    reader = views.list_reader("merges", MergeSuggestion)
    return fetch("suggestions", reader, limit=limit, slow=True)


@as_in_links
def suggest_splits(limit: int = 20) -> Steps[list[SplitSuggestion]]:
    """As `Links.suggest_splits`."""
    reader = views.list_reader("splits", SplitSuggestion)
    return fetch("suggestions", reader, limit=limit, slow=True)


def policy() -> Steps[Policy]:
    """Return what is done with unsure vectors; see `accept`."""
    return fetch("policy", views.reader(Policy))


@as_in_links
def held(*, limit: int = 20, before: int | None = None) -> Steps[list[HeldVector]]:
    """As `Links.held`.

    A page of the service has 200 vectors; more are asked for one page after the other.
    """
    most = whole_number("limit", limit, "how many vectors to return")
    found: list[HeldVector] = []
    while len(found) < most:
        size = min(_HELD_PAGE, most - len(found))
        after: dict[str, Any] = {} if before is None else {"before": before}
        answer = yield get("held", limit=size, **after)
        some = answer.read(views.list_reader("held", HeldVector))
        found += some
        if len(some) < size:
            break
        before = some[-1].vector
    return found


# Changes so far


@as_in_links
def corrections() -> Steps[list[Correction]]:
    """As `Links.corrections`."""
    return fetch("corrections", views.list_reader("corrections", Correction))


def events(since: int = 0, *, limit: int | None = None) -> Steps[list[Event]]:
    """Return typed events, oldest first.

    Args:
        since: the sequence number of the first event.
        limit: how many at most; None for all.
    """
    since = whole_number("since", since, "the first event to tell of", least=0)
    most = None if limit is None else whole_number("limit", limit, "how many events to tell")
    found: list[Event] = []
    while most is None or len(found) < most:
        size = PAGE if most is None else min(PAGE, most - len(found))
        answer = yield get("events", since=since, limit=size)
        some, since = answer.read(views.read_events)
        found += some
        if not some:
            break
    return found


def steps(limit: int = 20) -> Steps[list[Step]]:
    """Return the steps that `undo(step=True)` takes back, newest first.

    Steps that `redo` can bring back come before them, marked `undone`.

    Args:
        limit: how many at most.
    """
    return fetch("steps", views.list_reader("steps", Step), limit=limit, slow=True)


def _number(value: object) -> int:
    """Return a whole number for a path or a query; the service checks whether it exists."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentError(
            f"{value!r:.80} of type {type(value).__name__}",
            expected="a whole number: the ID of a cluster, vector or subcluster",
            remedy="Take the ID from add(), add_many(), clusters() or events().",
        )
    return int(value)
