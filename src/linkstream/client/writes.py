"""The verbs that change something. Each is a generator that both clients run (`requests.py`).

When a call returns, the change is committed in the service's store. Every call is sent with an
idempotency key, so that a retry counts once. The verbs have the documentation of `Links`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.client import errors, views
from linkstream.client.requests import (
    BINARY,
    JSON,
    KEY,
    Request,
    Steps,
    as_in_links,
    check_group,
    finite,
    get,
    key_header,
    post,
    row_of,
    rows_of,
    to_json,
)
from linkstream.client.sending import (
    Sending,
    header_of_part,
    own_values,
    post_vectors,
    vectors_to_send,
)
from linkstream.client.views import Done
from linkstream.clusterer import verb_docs, verbs
from linkstream.clusterer.checks import check_yes_no, several_vectors
from linkstream.clusterer.verb_values import plain
from linkstream.clusterer.verbs import VERBS, Verb
from linkstream.confidence import Policy
from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import Batch
from linkstream.store.keyed import Vector
from linkstream.store.own_columns import Moment, Moments
from linkstream.store.write_requests import attached_to

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
    thresholds: Thresholds | None = None, *, preset: str | None = None, **options: Any
) -> Steps[bool]:
    """Make the namespace; return False if it exists with the same options.

    Needs a token of scope admin. Raises ExistsError if the namespace exists with other options.

    Args:
        thresholds: the three thresholds; give either these or `preset`.
        preset: the name of an encoder with known thresholds, as for `Links.preset`.
        options: `granularity` of the preset, and the options of `Links`, as for `Store.open`:
            `mode`, `space`, `track_vectors`, `keep_vectors`, `evidence`, `heal`, `max_subclusters`,
            `max_idle`, `min_size`, `rebuild_thresholds`, `confidence`, `search`.
    """
    space, confidence = options.pop("space", None), options.pop("confidence", None)
    values = _thresholds(thresholds, preset) | ({} if space is None else {"space": _space(space)})
    if confidence is not None:
        plain_model = confidence if isinstance(confidence, bool) else confidence.to_plain()
        values["confidence"] = plain_model
    values |= {name: plain(v) for name, v in options.items() if v is not None}
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
    at: Moment | None = None,
    id: str | None = None,
    idempotency_key: str | None = None,
) -> Steps[Decision]:
    """As `Links.add`."""
    payloads, ids = None if payload is None else [payload], None if id is None else [id]
    headers = {"Accept": JSON} | key_header(idempotency_key)
    given = vectors_to_send(row_of(x), weight, payloads, at, ids)
    request = post_vectors(PATHS["add"], given, headers, group=group, one="1")
    return _send(request, views.reader(Decision))


@as_in_links
def add_many(
    X: npt.ArrayLike,
    *,
    weight: npt.ArrayLike = 1.0,
    group: str | None = None,
    payloads: Iterable[Any] | None = None,
    at: Moments | None = None,
    ids: Iterable[str | None] | None = None,
    idempotency_key: str | None = None,
) -> Steps[npt.NDArray[np.int64]]:
    """As `Links.add_many`."""
    given = vectors_to_send(rows_of(X), weight, payloads, at, ids)
    return _add_rows(given, idempotency_key, group)


@as_in_links
def add_group(
    X: npt.ArrayLike,
    *,
    group: str | None = None,
    weight: npt.ArrayLike = 1.0,
    payloads: Iterable[Any] | None = None,
    at: Moments | None = None,
    ids: Iterable[str | None] | None = None,
    idempotency_key: str | None = None,
) -> Steps[npt.NDArray[np.int64]]:
    """As `Links.add_group`."""
    given = vectors_to_send(rows_of(X), weight, payloads, at, ids)
    headers = {"Accept": BINARY} | key_header(idempotency_key)
    request = post_vectors(PATHS["add_group"], given, headers, group=group)
    _last_write.set(None)
    if not len(given.rows):  # the arguments were checked; there is nothing to send
        return np.empty(0, dtype=np.int64)
    return (yield request).ids(len(given.rows))


def add_batch(batch: npt.ArrayLike | Batch) -> Steps[npt.NDArray[np.int64]]:
    """Add one batch of `feed`; return its IDs."""
    given = batch if isinstance(batch, Batch) else Batch(batch)
    made = vectors_to_send(rows_of(given.X), given.weight, given.payloads, given.at, given.ids)
    return _add_rows(made, given.idempotency_key, None)


@as_in_links
def enrol(
    name: str,
    X: npt.ArrayLike,
    *,
    locked: bool = True,
    at: Moments | None = None,
    ids: Iterable[str | None] | None = None,
    idempotency_key: str | None = None,
) -> Steps[int]:
    """As `Links.enrol`."""
    rows = finite(rows_of(X))
    own = own_values(attached_to(len(rows), None, at, ids))
    values = {"name": name, "vectors": rows.tolist(), "locked": locked, **own}
    request = post("enrol", values, key=idempotency_key)
    return _send(request, lambda found: int(found["cluster"]))


# Corrections


def sending(name: str) -> Callable[..., Steps[Any]]:
    """Return the verb of a name, which sends the entry of the table of verbs."""
    entry = VERBS[name]

    def send(*args: Any, idempotency_key: str | None = None, **options: Any) -> Steps[Any]:
        return _perform(entry(*args, **options), idempotency_key)

    key = inspect.signature(send).parameters["idempotency_key"]
    shown = verb_docs.signature(name, key)
    parameters = [each for each in shown.parameters.values() if each.name != "self"]
    send.__name__ = send.__qualname__ = name
    send.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
    return as_in_links(send)


@as_in_links
def same(
    a: Vector, b: Vector, *, of: str = "vectors", idempotency_key: str | None = None
) -> Steps[None]:
    """As `Links.same`."""
    return _perform(verbs.Same(a, b, of=of), idempotency_key)


@as_in_links
def different(
    a: Vector, b: Vector, *, of: str = "vectors", idempotency_key: str | None = None
) -> Steps[None]:
    """As `Links.different`."""
    return _perform(verbs.Different(a, b, of=of), idempotency_key)


@as_in_links
def move(
    vector: Vector | Sequence[Vector], cluster: int, *, idempotency_key: str | None = None
) -> Steps[Decision | list[Decision]]:
    """As `Links.move`."""
    return _perform(verbs.Move(vector, cluster), idempotency_key)


@as_in_links
def assign(
    vector: Vector, cluster: int | None = None, *, idempotency_key: str | None = None
) -> Steps[Decision]:
    """As `Links.assign`."""
    return _perform(verbs.Assign(vector, cluster), idempotency_key)


@as_in_links
def remove(
    vector: Vector | npt.ArrayLike,
    *,
    x: npt.ArrayLike | None = None,
    cluster: int | None = None,
    weight: float | None = None,
    idempotency_key: str | None = None,
) -> Steps[None]:
    """As `Links.remove`."""
    numbered = np.ndim(vector) == 0 or several_vectors(vector) is not None
    number: Any = vector if numbered else finite(row_of(vector))[0]
    given = None if x is None else finite(row_of(x))[0]
    return _perform(verbs.Remove(number, x=given, cluster=cluster, weight=weight), idempotency_key)


@as_in_links
def undo(
    *,
    to: int | None = None,
    step: bool = False,
    after: int | None = None,
    idempotency_key: str | None = None,
) -> Steps[None]:
    """As `Links.undo`."""
    return _perform(verbs.Undo(to=to), idempotency_key, step=step, after=after)


@as_in_links
def settle(
    apply: bool = False, *, thresholds: Thresholds | None = None, idempotency_key: str | None = None
) -> Steps[Settlement]:
    """As `Links.settle`."""
    verb = verbs.Settle(check_yes_no("apply", apply), thresholds=thresholds)
    return _send(_proposing(verb, idempotency_key), views.reader(Settlement))


@as_in_links
def rebuild(
    apply: bool = False,
    *,
    thresholds: Thresholds | str | None = None,
    space: Space | None = None,
    vectors: npt.ArrayLike | None = None,
    idempotency_key: str | None = None,
) -> Steps[RebuildReport]:
    """As `Links.rebuild`."""
    check_yes_no("apply", apply)
    verb = verbs.Rebuild(apply, thresholds=thresholds, space=space, vectors=vectors)
    return _send(_proposing(verb, idempotency_key), views.reader(RebuildReport))


def _proposing(verb: verbs.Settle | verbs.Rebuild, key: str | None) -> Request:
    """Return the request of a verb that proposes; a token of scope read is enough for that."""
    plain = all(value is None or value is False for value in vars(verb).values())
    return get(verb.verb, slow=True) if plain else _request(verb, key, slow=True)


def compact() -> Steps[None]:
    """Erase the bytes of everything that was removed, forgotten or undone.

    Nothing before this call can be undone any more. Needs a token of scope admin.
    """
    return _send(post("compact", {}, slow=True), lambda _: None)


def _request(verb: Verb, key: str | None, *, slow: bool = False, **own: Any) -> Request:
    path = PATHS.get(verb.verb, verb.verb)
    return post(path, {**verb.to_json(), **own}, key=key, slow=slow)


def _perform(verb: Verb, key: str | None, **own: Any) -> Steps[Any]:
    """Send a verb that answers with what `_ANSWERS` reads, or else the numbers of its events."""
    verb.keys()  # raises for keys of anything but vectors
    request = _request(verb, key, **own)
    if verb.verb in _ANSWERS:
        return (yield from _send(request, _ANSWERS[verb.verb]))
    _last_write.set((yield from _send(request, views.reader(Done))))
    return None


def _decided(found: Any) -> Decision | list[Decision]:
    """Return the decision on one vector, or those on several."""
    read = views.reader(Decision)
    return [read(each) for each in found["decisions"]] if "decisions" in found else read(found)


# Readers of the answers that are not the numbers of the verb's events.
_ANSWERS: dict[str, Callable[[Any], Any]] = {
    "move": _decided,
    "assign": _decided,
    "accept": views.reader(Policy),
}


def _send(request: Request, reader: Callable[[Any], T]) -> Steps[T]:
    _last_write.set(None)
    answer = yield request
    return answer.read(reader)


def _add_rows(
    given: Sending, idempotency_key: str | None, group: str | None
) -> Steps[npt.NDArray[np.int64]]:
    """Add vectors, in parts if they are too many for one request.

    A part that the service finds too large is halved. The key of a part is made from that of the
    call, so that the call repeated with its key goes on where it stopped.
    """
    check_group(group)
    whole = key_header(idempotency_key)
    waiting, n = given.pieces(), len(given.rows)
    ids = [np.empty(0, dtype=np.int64)]
    _last_write.set(None)
    while waiting:
        start, end = waiting.pop(0)
        headers = {"Accept": BINARY} | header_of_part(whole, start, end, n)
        request = post_vectors(PATHS["add_many"], given.part(start, end), headers, group=group)
        try:
            ids.append((yield request).ids(end - start))
        except errors.TooLargeError as error:
            if end - start == 1:
                raise _with_key(error, whole) from None
            middle = (start + end) // 2
            waiting[:0] = [(start, middle), (middle, end)]
        except errors.ServiceError as error:
            raise _with_key(error, whole) from error.__cause__
    return np.concatenate(ids)


def _with_key(error: errors.ServiceError, whole: dict[str, str]) -> errors.ServiceError:
    """Return an error with the key of the call instead of that of a part."""
    error.idempotency_key = whole[KEY]
    return error


def _space(space: Space) -> dict[str, Any]:
    if space.mean is not None:
        return {"model": space.model, "mean": space.mean.tolist()}
    known = {} if space.dimension is None else {"dimension": space.dimension}
    return {"model": space.model, "mean": None, **known}


def _thresholds(thresholds: Thresholds | None, preset: str | None) -> dict[str, Any]:
    if (thresholds is None) == (preset is None):
        seen = f"thresholds={thresholds!r} and preset={preset!r}"
        remedy = "Pass either preset= or thresholds=."
        raise ArgumentError(seen, expected="one of them", remedy=remedy)
    if preset is not None:
        return {"preset": preset}
    if not isinstance(thresholds, Thresholds):
        seen = f"thresholds of type {type(thresholds).__name__}"
        remedy = "Build them with Thresholds(cluster_similarity, ...)."
        raise ArgumentError(seen, expected="linkstream.Thresholds", remedy=remedy)
    return {"thresholds": asdict(thresholds)}
