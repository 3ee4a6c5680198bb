"""The verbs that change something. Each is a generator that both clients run (`requests.py`).

When a call returns, the change is committed in the service's store. Every call is sent with an
idempotency key, so that a retry counts once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.client import views
from linkstream.client.requests import (
    JSON,
    Request,
    Steps,
    finite,
    get,
    post,
    post_vector,
    post_vectors,
    row_of,
    rows_of,
    to_json,
)
from linkstream.client.views import Done
from linkstream.clusterer.checks import check_yes_no
from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

# HTTP method, and path below the namespace, of every verb.
ROUTES = {
    "create": ("PUT", ""),
    "add": ("POST", "vectors"),
    "add_many": ("POST", "vectors"),
    "add_group": ("POST", "groups"),
    "enrol": ("POST", "enrol"),
    "same": ("POST", "same"),
    "different": ("POST", "different"),
    "move": ("POST", "move"),
    "retract": ("POST", "retract"),
    "name": ("POST", "name"),
    "rename": ("POST", "rename"),
    "ignore": ("POST", "ignore"),
    "remove": ("POST", "remove"),
    "forget": ("POST", "forget"),
    "undo": ("POST", "undo"),
    "redo": ("POST", "redo"),
    "settle": ("POST", "settle"),
    "compact": ("POST", "compact"),
}


# Namespaces


def create(
    thresholds: Thresholds | None = None,
    *,
    preset: str | None = None,
    space: Space | None = None,
    evidence: str | None = None,
    heal: str | None = None,
    track_vectors: bool | None = None,
    keep_vectors: bool | None = None,
    max_subclusters: int | None = None,
    max_idle: int | None = None,
    min_size: int | None = None,
) -> Steps[bool]:
    """Make the namespace; return False if it exists with the same options.

    Needs a token of scope admin. Raises ExistsError if the namespace exists with other options.
    The options are those of `Links`; None leaves the default of `Links`.

    Args:
        thresholds: the three thresholds; give either these or `preset`.
        preset: the name of an encoder, as for `Links.preset`.
        space: the space of the vectors: mean, model and dimension.
        evidence: "nearest" or "cluster".
        heal: "join" or "settle".
        track_vectors: whether vectors are known by number.
        keep_vectors: whether vectors are stored and can be read again.
        max_subclusters: bound of memory: the most subclusters held.
        max_idle: forget an unnamed cluster after this many vectors without one of its own.
        min_size: vectors that an unnamed cluster needs before it stops being pending.
    """
    options = {
        "space": None if space is None else _space(space),
        "evidence": evidence,
        "heal": heal,
        "track_vectors": track_vectors,
        "keep_vectors": keep_vectors,
        "max_subclusters": max_subclusters,
        "max_idle": max_idle,
        "min_size": min_size,
    }
    values = _thresholds(thresholds, preset)
    values |= {name: value for name, value in options.items() if value is not None}
    method, path = ROUTES["create"]
    headers = {"Content-Type": JSON}
    answer = yield Request(method, path, headers=headers, body=to_json(values))
    return answer.status == 201


# Vectors


def add(
    x: npt.ArrayLike,
    *,
    weight: float = 1.0,
    group: str | None = None,
    payload: Any = None,
    idempotency_key: str | None = None,
) -> Steps[Decision]:
    """Add one vector; return its decision after the commit.

    Args:
        x: the vector.
        weight: between 0 and 1, as in `Links.add`.
        group: vectors of one group get different clusters, as in `Links.add`.
        payload: any JSON value, returned by `payload()`.
        idempotency_key: the same call with the same key is done once and returns the same answer.
            Another call with that key raises IdempotencyError. None makes a key for the call.
    """
    row, (_, path) = row_of(x), ROUTES["add"]
    answer = yield post_vector(
        path, row, key=idempotency_key, weight=weight, payload=payload, group=group
    )
    return answer.read(views.reader(Decision))


def add_many(
    X: npt.ArrayLike,
    *,
    weight: npt.ArrayLike = 1.0,
    group: str | None = None,
    payloads: Iterable[Any] | None = None,
    idempotency_key: str | None = None,
) -> Steps[npt.NDArray[np.int64]]:
    """Add vectors in order, all or none; return their IDs after the commit.

    Vectors alone are sent as raw float32. With payloads or weights they are sent as JSON, which
    takes five times as many bytes.

    Args:
        X: one vector a row.
        weight: one weight for all, or one for each vector.
        group: vectors of one group get different clusters.
        payloads: one JSON value for each vector.
        idempotency_key: as in `add`.
    """
    return _add("add_many", X, idempotency_key, weight=weight, payloads=payloads, group=group)


def add_group(
    X: npt.ArrayLike,
    *,
    key: str | None = None,
    weight: npt.ArrayLike = 1.0,
    payloads: Iterable[Any] | None = None,
    idempotency_key: str | None = None,
) -> Steps[npt.NDArray[np.int64]]:
    """Add vectors seen together, such as the faces of one photo: all get different clusters.

    Args:
        X: one vector a row.
        key: the name of the group; calls with the same key add to one group.
        weight: one weight for all, or one for each vector.
        payloads: one JSON value for each vector.
        idempotency_key: as in `add`.
    """
    return _add("add_group", X, idempotency_key, weight=weight, payloads=payloads, key=key)


def enrol(
    name: str, X: npt.ArrayLike, *, locked: bool = True, idempotency_key: str | None = None
) -> Steps[int]:
    """Add prototypes of a known identity; return the ID of the cluster with that name.

    Args:
        name: the name of the cluster.
        X: one prototype a row.
        locked: whether the prototypes take vectors without drifting.
        idempotency_key: as in `add`.
    """
    values = {"name": name, "vectors": finite(rows_of(X)).tolist(), "locked": locked}
    answer = yield _post("enrol", values, idempotency_key)
    return answer.read(lambda found: int(found["cluster"]))


# Corrections


def same(a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None) -> Steps[Done]:
    """Join two vectors, subclusters or clusters for good.

    Raises ContradictionError if an earlier correction forbids it; the error names that correction.

    Args:
        a: the number of one.
        b: the number of the other.
        of: what the numbers count: "vectors", "subclusters" or "clusters".
        idempotency_key: as in `add`.
    """
    return _change("same", idempotency_key, a=a, b=b, of=of)


def different(
    a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
) -> Steps[Done]:
    """Keep two vectors, subclusters or clusters apart for good.

    Args:
        a: the number of one.
        b: the number of the other.
        of: what the numbers count: "vectors", "subclusters" or "clusters".
        idempotency_key: as in `add`.
    """
    return _change("different", idempotency_key, a=a, b=b, of=of)


def move(vector: int, cluster: int, *, idempotency_key: str | None = None) -> Steps[Decision]:
    """Put a vector into another cluster for good.

    Args:
        vector: the vector's number.
        cluster: the cluster's ID.
        idempotency_key: as in `add`.
    """
    answer = yield _post("move", {"vector": vector, "cluster": cluster}, idempotency_key)
    return answer.read(views.reader(Decision))


def retract(correction: int, *, idempotency_key: str | None = None) -> Steps[Done]:
    """Take back one correction and nothing that came after it.

    Args:
        correction: its number: `before` of the answer to `same` or `different`, `correction` of a
            ContradictionError, or as `corrections()` lists it.
        idempotency_key: as in `add`.
    """
    return _change("retract", idempotency_key, correction=correction)


def name(
    cluster: int, name: str, *, claim: bool = False, idempotency_key: str | None = None
) -> Steps[Done]:
    """Name a cluster. Clusters with different names are never joined.

    Args:
        cluster: the cluster's ID.
        name: the name, unique in the namespace.
        claim: at a split, the part with the largest subcluster keeps ID and name.
        idempotency_key: as in `add`.
    """
    return _change("name", idempotency_key, cluster=cluster, name=name, claim=claim)


def rename(cluster: int, name: str | None, *, idempotency_key: str | None = None) -> Steps[Done]:
    """Change the name of a cluster.

    Args:
        cluster: the cluster's ID.
        name: the new name; None removes the name.
        idempotency_key: as in `add`.
    """
    return _change("rename", idempotency_key, cluster=cluster, name=name)


def ignore(cluster: int, on: bool = True, *, idempotency_key: str | None = None) -> Steps[Done]:
    """Leave a cluster out of suggestions and reviews; it still takes vectors.

    Args:
        cluster: the cluster's ID.
        on: False includes the cluster again.
        idempotency_key: as in `add`.
    """
    return _change("ignore", idempotency_key, cluster=cluster, on=on)


def remove(vector: int, *, idempotency_key: str | None = None) -> Steps[Done]:
    """Remove a vector from the model, exactly. Its bytes stay for `undo` until `compact`.

    Args:
        vector: the vector's number.
        idempotency_key: as in `add`.
    """
    return _change("remove", idempotency_key, vector=vector)


def forget(cluster: int, *, idempotency_key: str | None = None) -> Steps[Done]:
    """Remove a cluster and all its vectors. Their bytes stay for `undo` until `compact`.

    Args:
        cluster: the cluster's ID.
        idempotency_key: as in `add`.
    """
    return _change("forget", idempotency_key, cluster=cluster)


def undo(
    *,
    to: int | None = None,
    step: bool = False,
    after: int | None = None,
    idempotency_key: str | None = None,
) -> Steps[Done]:
    """Take back the last change or vector, which may be another caller's.

    Args:
        to: take back everything from the event with this sequence number on.
        step: take back the whole last step: all that one command or one call did; `steps` lists
            the steps.
        after: the `event` of a correction: take it back only if nothing came after it, else raise
            UndoError.
        idempotency_key: as in `add`.
    """
    values: dict[str, Any] = {"to": to}
    values |= {"step": True} if step else {}
    values |= {} if after is None else {"after": after}
    return _change("undo", idempotency_key, **values)


def redo(*, idempotency_key: str | None = None) -> Steps[Done]:
    """Bring back what the last `undo` took, with the same IDs; repeat it for earlier undos.

    Raises UndoError if nothing was undone, or something else changed since.

    Args:
        idempotency_key: as in `add`.
    """
    return _change("redo", idempotency_key)


def settle(apply: bool = False, *, idempotency_key: str | None = None) -> Steps[Settlement | None]:
    """Compare all subclusters; return the clusters to join and to cut, or join and cut them.

    Args:
        apply: change the clusters. False only proposes; a token of scope read is then enough.
        idempotency_key: as in `add`. A call repeated with its key returns None.
    """
    if check_yes_no("apply", apply):
        answer = yield _post("settle", {"apply": True}, idempotency_key, slow=True)
    else:
        answer = yield get("settle", slow=True)
    return answer.read(views.read_settlement)


def compact() -> Steps[None]:
    """Erase the bytes of everything that was removed, forgotten or undone.

    Nothing before this call can be undone any more. Needs a token of scope admin.
    """
    yield _post("compact", {}, None, slow=True)


def _post(verb: str, values: dict[str, Any], key: str | None, *, slow: bool = False) -> Request:
    return post(ROUTES[verb][1], values, key=key, slow=slow)


def _change(verb: str, key: str | None, **values: Any) -> Steps[Done]:
    answer = yield _post(verb, values, key)
    return answer.read(views.reader(Done))


def _add(
    verb: str, X: npt.ArrayLike, idempotency_key: str | None, **options: Any
) -> Steps[npt.NDArray[np.int64]]:
    rows = rows_of(X)
    request = post_vectors(ROUTES[verb][1], rows, idempotency_key=idempotency_key, **options)
    if not len(rows):  # the arguments were checked; there is nothing to send
        return np.empty(0, dtype=np.int64)
    answer = yield request
    return answer.ids(len(rows))


def _space(space: Space) -> dict[str, Any]:
    if space.mean is not None:
        return {"model": space.model, "mean": space.mean.tolist()}
    known = {} if space.dimension is None else {"dimension": space.dimension}
    return {"model": space.model, "mean": None, **known}


def _thresholds(thresholds: Thresholds | None, preset: str | None) -> dict[str, Any]:
    if (thresholds is None) == (preset is None):
        raise ArgumentError(
            f"thresholds={thresholds!r} and preset={preset!r}",
            expected="one of them",
            remedy="Pass either preset= or thresholds=.",
        )
    if preset is not None:
        return {"preset": preset}
    if not isinstance(thresholds, Thresholds):
        raise ArgumentError(
            f"thresholds of type {type(thresholds).__name__}",
            expected="linkstream.Thresholds",
            remedy="Build them with Thresholds(cluster_similarity, ...).",
        )
    names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
    return {"thresholds": {name: getattr(thresholds, name) for name in names}}
