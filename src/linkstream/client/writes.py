"""The verbs that change something. Each is a generator that both clients run (`requests.py`).

When a call returns, the change is committed in the service's store. Every call is sent with an
idempotency key, so that a retry counts once. The verbs have the documentation of `Links`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.client import views
from linkstream.client.requests import (
    BINARY,
    JSON,
    Request,
    Rows,
    Steps,
    as_in_links,
    finite,
    get,
    key_header,
    post,
    post_vectors,
    row_of,
    rows_of,
    to_json,
)
from linkstream.client.views import Done
from linkstream.clusterer import verbs
from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.verbs import Verb
from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import Batch

PATHS = {"add": "vectors", "add_many": "vectors", "add_group": "groups"}  # others: their name
_last_write: ContextVar[Done | None] = ContextVar("last_write", default=None)

T = TypeVar("T")


def last_write() -> Done | None:
    """Return the events of the last change that this thread or task made, by any client.

    Only calls that return None have them, such as `same`, `name` and `undo`; None after others.
    """
    return _last_write.get()


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
    answer = yield Request("PUT", "", headers={"Content-Type": JSON}, body=to_json(values))
    return answer.status == 201


# Vectors


@as_in_links
def add(
    x: npt.ArrayLike,
    *,
    weight: float = 1.0,
    group: str | None = None,
    payload: Any = None,
    idempotency_key: str | None = None,
) -> Steps[Decision]:
    """As `Links.add`."""
    payloads = None if payload is None else [payload]
    headers = {"Accept": JSON} | key_header(idempotency_key)
    request = post_vectors(
        PATHS["add"], row_of(x), headers, weight=weight, payloads=payloads, group=group, one="1"
    )
    return _send(request, views.reader(Decision))


@as_in_links
def add_many(
    X: npt.ArrayLike,
    *,
    weight: npt.ArrayLike = 1.0,
    group: str | None = None,
    payloads: Iterable[Any] | None = None,
    idempotency_key: str | None = None,
) -> Steps[npt.NDArray[np.int64]]:
    """As `Links.add_many`."""
    options = {"weight": weight, "group": group, "payloads": payloads}
    return _add_rows("add_many", rows_of(X), idempotency_key, **options)


@as_in_links
def add_group(
    X: npt.ArrayLike,
    *,
    group: str | None = None,
    weight: npt.ArrayLike = 1.0,
    payloads: Iterable[Any] | None = None,
    idempotency_key: str | None = None,
) -> Steps[npt.NDArray[np.int64]]:
    """As `Links.add_group`."""
    options = {"weight": weight, "group": group, "payloads": payloads}
    return _add_rows("add_group", rows_of(X), idempotency_key, **options)


def add_batch(batch: npt.ArrayLike | Batch) -> Steps[npt.NDArray[np.int64]]:
    """Add one batch of `feed`; return its IDs."""
    given = batch if isinstance(batch, Batch) else Batch(batch)
    options = {"weight": given.weight, "payloads": given.payloads}
    return _add_rows("add_many", rows_of(given.X), given.idempotency_key, **options)


@as_in_links
def enrol(
    name: str, X: npt.ArrayLike, *, locked: bool = True, idempotency_key: str | None = None
) -> Steps[int]:
    """As `Links.enrol`."""
    values = {"name": name, "vectors": finite(rows_of(X)).tolist(), "locked": locked}
    request = post("enrol", values, key=idempotency_key)
    return _send(request, lambda found: int(found["cluster"]))


# Corrections


@as_in_links
def same(a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None) -> Steps[None]:
    """As `Links.same`."""
    return _change(verbs.Same(a, b, of=of), idempotency_key)


@as_in_links
def different(
    a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
) -> Steps[None]:
    """As `Links.different`."""
    return _change(verbs.Different(a, b, of=of), idempotency_key)


@as_in_links
def move(vector: int, cluster: int, *, idempotency_key: str | None = None) -> Steps[Decision]:
    """As `Links.move`."""
    request = _request(verbs.Move(vector, cluster), idempotency_key)
    return _send(request, views.reader(Decision))


@as_in_links
def retract(correction: int, *, idempotency_key: str | None = None) -> Steps[None]:
    """As `Links.retract`."""
    return _change(verbs.Retract(correction), idempotency_key)


@as_in_links
def name(
    cluster: int, name: str, *, claim: bool = False, idempotency_key: str | None = None
) -> Steps[None]:
    """As `Links.name`."""
    return _change(verbs.Name(cluster, name, claim=claim), idempotency_key)


@as_in_links
def rename(cluster: int, name: str | None, *, idempotency_key: str | None = None) -> Steps[None]:
    """As `Links.rename`."""
    return _change(verbs.Rename(cluster, name), idempotency_key)


@as_in_links
def ignore(cluster: int, on: bool = True, *, idempotency_key: str | None = None) -> Steps[None]:
    """As `Links.ignore`."""
    return _change(verbs.Ignore(cluster, on), idempotency_key)


@as_in_links
def remove(
    vector: npt.ArrayLike,
    *,
    x: npt.ArrayLike | None = None,
    cluster: int | None = None,
    weight: float | None = None,
    idempotency_key: str | None = None,
) -> Steps[None]:
    """As `Links.remove`."""
    number = vector if np.ndim(vector) == 0 else finite(row_of(vector))[0]
    given = None if x is None else finite(row_of(x))[0]
    return _change(verbs.Remove(number, x=given, cluster=cluster, weight=weight), idempotency_key)


@as_in_links
def forget(cluster: int, *, idempotency_key: str | None = None) -> Steps[None]:
    """As `Links.forget`."""
    return _change(verbs.Forget(cluster), idempotency_key)


@as_in_links
def undo(
    *,
    to: int | None = None,
    step: bool = False,
    after: int | None = None,
    idempotency_key: str | None = None,
) -> Steps[None]:
    """As `Links.undo`."""
    return _change(verbs.Undo(to=to), idempotency_key, step=step, after=after)


@as_in_links
def redo(*, idempotency_key: str | None = None) -> Steps[None]:
    """As `Links.redo`."""
    return _change(verbs.Redo(), idempotency_key)


@as_in_links
def settle(
    apply: bool = False,
    *,
    thresholds: Thresholds | None = None,
    idempotency_key: str | None = None,
) -> Steps[Settlement]:
    """As `Links.settle`."""
    verb = verbs.Settle(check_yes_no("apply", apply), thresholds=thresholds)
    proposing = not apply and thresholds is None  # for which a token of scope read is enough
    request = get("settle", slow=True) if proposing else _request(verb, idempotency_key, slow=True)
    return _send(request, views.reader(Settlement))


def compact() -> Steps[None]:
    """Erase the bytes of everything that was removed, forgotten or undone.

    Nothing before this call can be undone any more. Needs a token of scope admin.
    """
    return _send(post("compact", {}, slow=True), lambda _: None)


def _request(verb: Verb, key: str | None, *, slow: bool = False, **own: Any) -> Request:
    path = PATHS.get(verb.verb, verb.verb)
    return post(path, {**verb.to_json(), **own}, key=key, slow=slow)


def _send(request: Request, reader: Callable[[Any], T]) -> Steps[T]:
    _last_write.set(None)
    answer = yield request
    return answer.read(reader)


def _change(verb: Verb, key: str | None, **own: Any) -> Steps[None]:
    _last_write.set((yield from _send(_request(verb, key, **own), views.reader(Done))))


def _add_rows(
    verb: str, rows: Rows, idempotency_key: str | None, **options: Any
) -> Steps[npt.NDArray[np.int64]]:
    headers = {"Accept": BINARY} | key_header(idempotency_key)
    request = post_vectors(PATHS[verb], rows, headers, **options)
    _last_write.set(None)
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
    return {"thresholds": asdict(thresholds)}
