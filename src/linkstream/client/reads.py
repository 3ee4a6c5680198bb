"""The verbs that read. Each is a generator that both clients run (`requests.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.client import views
from linkstream.client.requests import (
    BINARY,
    Steps,
    finite,
    get,
    post,
    post_vectors,
    row_of,
    rows_of,
)
from linkstream.client.views import (
    ClusterDetail,
    ClusterView,
    Info,
    NamespaceView,
    Page,
    VectorView,
)
from linkstream.clusterer.checks import whole_number
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

PAGE = 1_000  # clusters or events in one request


# The service


def health() -> Steps[dict[str, Any]]:
    """Return the status and version of the service, and the number of its namespaces."""
    answer = yield get("healthz", in_namespace=False)
    return answer.read(dict)


def whoami() -> Steps[dict[str, Any]]:
    """Return the scopes of the token, by namespace."""
    answer = yield get("v1/whoami", in_namespace=False)
    return answer.read(dict)


def namespaces() -> Steps[list[NamespaceView]]:
    """Return the namespaces that the token may read."""
    answer = yield get("v1/namespaces", in_namespace=False)
    return answer.read(views.list_reader("namespaces", NamespaceView))


# The namespace


def info() -> Steps[Info]:
    """Return the counts of the namespace, and the options it was made with."""
    answer = yield get("")
    return answer.read(views.read_info)


def thresholds() -> Steps[Thresholds]:
    """Return the three thresholds."""
    answer = yield get("thresholds")
    return answer.read(views.reader(Thresholds))


def stats() -> Steps[dict[str, Any]]:
    """Return counts and rates since the service started, as plain values."""
    answer = yield get("stats")
    return answer.read(dict)


def state_hash() -> Steps[str]:
    """Return the hex digest of the whole state, as `Links.state_hash`."""
    answer = yield get("", slow=True, hash="true")
    return answer.read(lambda values: str(values["state_hash"]))


# Vectors and clusters


def predict(X: npt.ArrayLike) -> Steps[npt.NDArray[np.int64]]:
    """Return the cluster that each vector would get; −1 for a new one. Nothing changes.

    Args:
        X: one vector a row.
    """
    rows = rows_of(X)
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    answer = yield post_vectors("ask", rows, write=False)
    return answer.ids(len(rows))


def labels() -> Steps[npt.NDArray[np.int64]]:
    """Return the current cluster of every vector, in order of arrival; −1 if removed."""
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
    answer = yield get(f"clusters/{_number(cluster_id)}")
    return answer.read(views.read_cluster)


def members(cluster_id: int, *, limit: int = 50, before: int | None = None) -> Steps[Page]:
    """Return vectors of a cluster with their payloads, newest first.

    Args:
        cluster_id: the cluster.
        limit: how many at most, up to 1,000.
        before: only vectors with a lower number; the `next` of the page before.
    """
    answer = yield get(f"clusters/{_number(cluster_id)}/vectors", limit=limit, before=before)
    return answer.read(views.reader(Page))


def vector(vector: int) -> Steps[VectorView]:
    """Return the current cluster and subcluster of a vector, and its payload.

    Args:
        vector: the vector's number, in order of arrival.
    """
    answer = yield get(f"vectors/{_number(vector)}")
    return answer.read(views.reader(VectorView))


def payload(vector: int) -> Steps[Any]:
    """Return the payload of a vector; None if it has none.

    Args:
        vector: the vector's number, in order of arrival.
    """
    answer = yield get(f"vectors/{_number(vector)}")
    return answer.read(lambda values: values["payload"])


def resolve(cluster_id: int) -> Steps[int]:
    """Return the live cluster that an ID now stands for; −1 if it was forgotten.

    Args:
        cluster_id: any ID that was ever given.
    """
    answer = yield get(f"clusters/{_number(cluster_id)}")
    return answer.read(lambda values: int(values["id"]))


def named(name: str) -> Steps[int]:
    """Return the ID of the cluster with a name; raise ArgumentError if there is none.

    Args:
        name: the whole name.
    """
    offset, total = 0, 1
    while offset < total:
        answer = yield get("clusters", order="id", limit=PAGE, offset=offset, q=name)
        some, total = answer.read(views.read_clusters)
        for each in some:
            if each.name == name:
                return each.id
        offset = offset + len(some) if some else total
    raise ArgumentError(
        f"the name {name!r}",
        expected="a name given by name() or enrol()",
        remedy="List the names with clusters().",
    )


# Explanations


def explain(x: npt.ArrayLike, *, limit: int = 5) -> Steps[Explanation]:
    """Explain the decision that a vector would get. Nothing changes.

    Args:
        x: the vector.
        limit: how many clusters to compare.
    """
    row = finite(row_of(x))[0].tolist()
    answer = yield post("explain", {"vector": row, "limit": limit}, write=False)
    return answer.read(views.reader(Explanation))


def explain_pair(a: int, b: int, *, of: str = "vectors") -> Steps[Pair]:
    """Explain why two vectors, subclusters or clusters are in one cluster, or are not.

    Args:
        a: the number of one.
        b: the number of the other.
        of: what the numbers count: "vectors", "subclusters" or "clusters".
    """
    answer = yield get("explain", a=_number(a), b=_number(b), of=of)
    return answer.read(views.reader(Pair))


def history(cluster_id: int) -> Steps[History]:
    """Return the birth, splits and joins of a cluster's ID.

    Args:
        cluster_id: the cluster.
    """
    answer = yield get(f"clusters/{_number(cluster_id)}")
    return answer.read(lambda values: views.build(History, values["history"]))


def exemplars(cluster_id: int) -> Steps[Exemplars | None]:
    """Return vectors of a cluster to look at; None if the namespace does not keep vectors.

    Args:
        cluster_id: the cluster.
    """
    answer = yield get(f"clusters/{_number(cluster_id)}")
    return answer.read(views.read_cluster).exemplars


# Review


def review_queue(limit: int = 20) -> Steps[list[Question]]:
    """Return the questions whose answers would correct the most vectors, best first.

    Answer with `same(q.a, q.b, of=q.of)` or `different(q.a, q.b, of=q.of)`.

    Args:
        limit: how many at most.
    """
    answer = yield get("review", limit=limit, slow=True)
    return answer.read(views.list_reader("questions", Question))


def suggest_merges(limit: int = 20) -> Steps[list[MergeSuggestion]]:
    """Return pairs of clusters that may be one, by margin, best first.

    Args:
        limit: how many at most.
    """
    answer = yield get("suggestions", limit=limit, slow=True)
    return answer.read(views.list_reader("merges", MergeSuggestion))


def suggest_splits(limit: int = 20) -> Steps[list[SplitSuggestion]]:
    """Return the edges that hold clusters together by the least margin, weakest first.

    Args:
        limit: how many at most.
    """
    answer = yield get("suggestions", limit=limit, slow=True)
    return answer.read(views.list_reader("splits", SplitSuggestion))


# Changes so far


def corrections() -> Steps[list[Correction]]:
    """Return the corrections by `same`, `different` and `move` that are in force."""
    answer = yield get("corrections")
    return answer.read(views.list_reader("corrections", Correction))


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
    answer = yield get("steps", limit=limit, slow=True)
    return answer.read(views.list_reader("steps", Step))


def _number(value: object) -> int:
    """Return a whole number for a path or a query; the service checks whether it exists."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentError(
            f"{value!r:.80} of type {type(value).__name__}",
            expected="a whole number: the ID of a cluster, vector or subcluster",
            remedy="Take the ID from add(), add_many(), clusters() or events().",
        )
    return int(value)
