"""Writes: the verbs that change something. Each is done once, however often it is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.client import bodies, reading
from linkstream.client.asking import Steps, post, verb
from linkstream.client.views import Done
from linkstream.engine.contract import Decision
from linkstream.identity.settling import Settlement


class Writes:
    """The side of a client that sends.

    When a call returns, what it sent is safe in the service's store. A call that raises
    `UnreachableError` may have been done: the same call again, under the same
    `idempotency_key`, counts once. Without a key each call gets one of its own, for its retries.
    """

    # Vectors in

    @verb
    def add(
        self,
        x: npt.ArrayLike,
        *,
        weight: float = 1.0,
        group: str | None = None,
        payload: Any = None,
        idempotency_key: str | None = None,
    ) -> Steps[Decision]:
        """Take one vector; say which cluster it belongs to, once that is safe.

        Args:
            x: the vector.
            weight: as of `Links.add`.
            group: as of `Links.add`.
            payload: anything JSON can hold, to be had again by `payload()`.
            idempotency_key: the same call under the same key is done once; it gets the same
                answer again. Another call under it: IdempotencyError.
        """
        answer = yield bodies.sending_one(
            bodies.row_of(x),
            idempotency_key=idempotency_key,
            weight=weight,
            payload=payload,
            group=group,
        )
        return answer.read(reading.reader(Decision))

    @verb
    def add_many(
        self,
        X: npt.ArrayLike,
        *,
        weight: npt.ArrayLike = 1.0,
        group: str | None = None,
        payloads: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[npt.NDArray[np.int64]]:
        """Take vectors in order; their IDs, once all of them are safe. All of them or none.

        They go as raw float32; with payloads or weights as JSON, which takes five times the room.
        """
        return _adding("vectors", X, idempotency_key, weight=weight, payloads=payloads, group=group)

    @verb
    def add_group(
        self,
        X: npt.ArrayLike,
        *,
        group: str | None = None,
        weight: npt.ArrayLike = 1.0,
        payloads: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[npt.NDArray[np.int64]]:
        """Take vectors seen together, as faces of one photo are: all get different clusters.

        Groups of one `group` are one group.
        """
        return _adding("groups", X, idempotency_key, weight=weight, payloads=payloads, key=group)

    @verb
    def enrol(
        self,
        name: str,
        X: npt.ArrayLike,
        *,
        locked: bool = True,
        idempotency_key: str | None = None,
    ) -> Steps[int]:
        """Vectors of somebody known: prototypes of a cluster with that name; its ID."""
        rows = bodies.finite(bodies.rows_of(X)).tolist()
        said = {"name": name, "vectors": rows, "locked": locked}
        answer = yield post("enrol", said, key=idempotency_key)
        return answer.read(lambda told: int(told["cluster"]))

    # A person's word

    @verb
    def same(
        self, a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> Steps[Done]:
        """Two vectors, subclusters or clusters are one, from now on.

        ContradictionError, which names the one correction, where one of the very same forbids it.
        """
        answer = yield post("same", {"a": a, "b": b, "of": of}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def different(
        self, a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> Steps[Done]:
        """Two vectors, subclusters or clusters are never one."""
        answer = yield post("different", {"a": a, "b": b, "of": of}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def move(
        self, vector: int, cluster: int, *, idempotency_key: str | None = None
    ) -> Steps[Decision]:
        """Put a vector into another cluster; it stays there."""
        said = {"vector": vector, "cluster": cluster}
        answer = yield post("move", said, key=idempotency_key)
        return answer.read(reading.reader(Decision))

    @verb
    def retract(self, correction: int, *, idempotency_key: str | None = None) -> Steps[Done]:
        """Take back one correction, by its number, and nothing that came after it.

        The number is that of its event: `before` of the answer to `same` and `different`, the
        `correction` of a ContradictionError, or as `corrections()` tells it.
        """
        answer = yield post("retract", {"correction": correction}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def name(
        self, cluster: int, name: str, *, claim: bool = False, idempotency_key: str | None = None
    ) -> Steps[Done]:
        """Give a cluster a name of its own. Clusters with different names are never joined."""
        said = {"cluster": cluster, "name": name, "claim": claim}
        answer = yield post("name", said, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def rename(
        self, cluster: int, name: str | None, *, idempotency_key: str | None = None
    ) -> Steps[Done]:
        """Give a cluster another name; None takes it away."""
        answer = yield post("rename", {"cluster": cluster, "name": name}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def ignore(
        self, cluster: int, on: bool = True, *, idempotency_key: str | None = None
    ) -> Steps[Done]:
        """Leave a cluster out of suggestions and reviews; it goes on taking vectors."""
        answer = yield post("ignore", {"cluster": cluster, "on": on}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def remove(self, vector: int, *, idempotency_key: str | None = None) -> Steps[Done]:
        """Take a vector out of the model, exactly. Its bytes stay, for undo, until `compact`."""
        answer = yield post("remove", {"vector": vector}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def forget(self, cluster: int, *, idempotency_key: str | None = None) -> Steps[Done]:
        """Forget a cluster and all it held. The bytes stay, for undo, until `compact`."""
        answer = yield post("forget", {"cluster": cluster}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def undo(
        self,
        *,
        to: int | None = None,
        step: bool = False,
        after: int | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Done]:
        """Take back the last change or vector; or all from the event of sequence `to` on.

        With `step`, the whole last step: all that one command did, or one call that was part of
        none; `steps` shows them. The last change may be another caller's. With `after`, the `event`
        of a correction, it is taken back only if nothing came after it: UndoError where something
        did.
        """
        said: dict[str, Any] = {"to": to}
        said |= {"step": True} if step else {}
        said |= {} if after is None else {"after": after}
        answer = yield post("undo", said, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def redo(self, *, idempotency_key: str | None = None) -> Steps[Done]:
        """Bring back what the last `undo` took, with the IDs it had; several, one after the other.

        UndoError where something else was changed since, or nothing was undone.
        """
        answer = yield post("redo", {}, key=idempotency_key)
        return answer.read(reading.reader(Done))

    @verb
    def settle(self, *, idempotency_key: str | None = None) -> Steps[Settlement | None]:
        """Join and cut clusters by an offline pass; `proposals` says what it would change.

        None where it was done before under the same key.
        """
        answer = yield post("settle", {}, key=idempotency_key, slow=True)
        return answer.read(reading.settlement)

    @verb
    def compact(self) -> Steps[None]:
        """Forget for good what was removed, forgotten or undone: no byte of it is left.

        What came before cannot be undone any more. Needs a token of scope admin.
        """
        yield post("compact", {}, slow=True)


def _adding(
    path: str, X: npt.ArrayLike, idempotency_key: str | None, **rest: Any
) -> Steps[npt.NDArray[np.int64]]:
    rows = bodies.rows_of(X)
    request = bodies.sending(path, rows, idempotency_key=idempotency_key, **rest)
    if not len(rows):  # nothing to be sent, nor to be kept
        return np.empty(0, dtype=np.int64)
    answer = yield request
    return answer.ids(len(rows))
