"""Writes: the verbs of `Links` that change something, each acknowledged once it is safe."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import check_yes_no
from linkstream.engine.contract import Decision
from linkstream.identity.settling import Settlement
from linkstream.store import calls
from linkstream.store.calls import Batch
from linkstream.store.clerk import Ticket

_AHEAD = 8  # batches under way in `feed`


class Writes:
    """The side of a store that takes in."""

    def _put(self, ticket: Ticket) -> Ticket:
        """Have a call served, after all that came before; StoreError if nothing may be written."""
        raise NotImplementedError

    def _check_writable(self) -> None:
        """StoreError unless it may be written to."""
        raise NotImplementedError

    def _do(self, ticket: Ticket) -> Any:
        return self._put(ticket).result()

    # Vectors in

    def add(
        self,
        x: npt.ArrayLike,
        *,
        weight: float = 1.0,
        group: str | None = None,
        payload: Any = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Take one vector; say which cluster it belongs to, once that is safe.

        Args:
            x: the vector.
            weight: as of `Links.add`.
            group: as of `Links.add`.
            payload: anything JSON can hold, up to 64 KiB, to be had again by `payload()`.
            idempotency_key: the same call under the same key is done once; it gets the same
                answer again. Another call under it: IdempotencyError.
        """
        payloads = None if payload is None else [payload]
        ticket = calls.adding("add", x, weight, group, payloads, idempotency_key)
        decision: Decision = self._do(ticket)
        return decision

    def add_many(
        self,
        X: npt.ArrayLike,
        *,
        weight: npt.ArrayLike = 1.0,
        group: str | None = None,
        payloads: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> npt.NDArray[np.int64]:
        """Take vectors in order; their IDs, once all of them are safe. All of them or none."""
        ticket = calls.adding("add_many", X, weight, group, payloads, idempotency_key)
        ids: npt.NDArray[np.int64] = self._do(ticket)
        return ids

    def add_group(
        self,
        X: npt.ArrayLike,
        *,
        group: str | None = None,
        weight: npt.ArrayLike = 1.0,
        payloads: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> npt.NDArray[np.int64]:
        """Take vectors seen together; all get different clusters."""
        ticket = calls.adding("add_group", X, weight, group, payloads, idempotency_key)
        ids: npt.NDArray[np.int64] = self._do(ticket)
        return ids

    def feed(
        self, batches: Iterable[npt.ArrayLike | Batch], *, renew: bool = False
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Take batch after batch; the IDs of each, once it is safe.

        The same as `add_many` of each, and quicker: batches that wait are made safe together, and
        the next one can be read meanwhile. A batch that is refused ends it; none after it is taken.

        Args:
            batches: arrays, or `Batch` with weights, payloads and idempotency keys.
            renew: take a batch again whose vectors were all undone since it was taken under its
                key; without it the batch counts as taken.
        """
        self._check_writable()
        calls.check_batches(batches)
        return self._feed(batches, renew=check_yes_no("renew", renew))

    def _feed(
        self, batches: Iterable[npt.ArrayLike | Batch], *, renew: bool
    ) -> Iterator[npt.NDArray[np.int64]]:
        ahead: deque[Ticket] = deque()
        last: Ticket | None = None
        stream, ended = iter(batches), None
        while ended is None:
            try:
                last = self._put(calls.of_batch(next(stream), after=last, renew=renew))
                ahead.append(last)
            except Exception as error:  # what is under way comes first
                ended = error
            while ahead and (len(ahead) > _AHEAD or ended is not None):
                yield ahead.popleft().result()
        if not isinstance(ended, StopIteration):
            raise ended

    def enrol(
        self,
        name: str,
        X: npt.ArrayLike,
        *,
        locked: bool = True,
        idempotency_key: str | None = None,
    ) -> int:
        """Vectors of somebody known: prototypes of a cluster with that name; its ID."""
        ticket = calls.enrolling(name, X, locked, idempotency_key)
        return int(self._do(ticket))

    # A person's word

    def same(
        self, a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> None:
        """Two vectors, subclusters or clusters are one, from now on."""
        self._say("same", {"a": a, "b": b, "of": of}, idempotency_key)

    def different(
        self, a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> None:
        """Two vectors, subclusters or clusters are never one."""
        self._say("different", {"a": a, "b": b, "of": of}, idempotency_key)

    def move(self, vector: int, cluster: int, *, idempotency_key: str | None = None) -> Decision:
        """Put a vector into another cluster; it stays there."""
        said = {"vector": vector, "cluster": cluster}
        decision: Decision = self._say("move", said, idempotency_key)
        return decision

    def retract(self, correction: int, *, idempotency_key: str | None = None) -> None:
        """Take back one correction, by its number, and nothing that came after it."""
        self._say("retract", {"correction": correction}, idempotency_key)

    def name(
        self, cluster: int, name: str, *, claim: bool = False, idempotency_key: str | None = None
    ) -> None:
        """Give a cluster a name of its own."""
        said = {"cluster": cluster, "name": name, "claim": claim}
        self._say("name", said, idempotency_key)

    def rename(self, cluster: int, name: str | None, *, idempotency_key: str | None = None) -> None:
        """Give a cluster another name; None takes it away."""
        self._say("rename", {"cluster": cluster, "name": name}, idempotency_key)

    def ignore(self, cluster: int, on: bool = True, *, idempotency_key: str | None = None) -> None:
        """Leave a cluster out of suggestions and reviews."""
        self._say("ignore", {"cluster": cluster, "on": on}, idempotency_key)

    def remove(
        self,
        vector: npt.ArrayLike,
        *,
        x: npt.ArrayLike | None = None,
        cluster: int | None = None,
        weight: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Take a vector out of the model, exactly. Its bytes stay, for undo, until `compact`.

        By number; where vectors are not kept or not tracked as `Links.remove` says.
        """
        self._do(calls.removing(vector, x, cluster, weight, idempotency_key))

    def forget(self, cluster: int, *, idempotency_key: str | None = None) -> None:
        """Forget a cluster and all it held. The bytes stay, for undo, until `compact`."""
        self._say("forget", {"cluster": cluster}, idempotency_key)

    def undo(
        self, *, to: int | None = None, step: bool = False, idempotency_key: str | None = None
    ) -> None:
        """Take back the last change or vector; or all from the event of sequence `to` on.

        Args:
            to: the event; None: the last change or vector alone.
            step: take back the whole last step instead: all that one command did, or one call
                that was part of none. `steps` shows them.
            idempotency_key: as of `add`.
        """
        self._do(calls.undoing(to, step, idempotency_key))

    def redo(self, *, idempotency_key: str | None = None) -> None:
        """Bring back what the last `undo` took, with the IDs it had; several, one after the other.

        UndoError where something else was changed since, or nothing was undone.
        """
        self._say("redo", {}, idempotency_key)

    def settle(self, *, idempotency_key: str | None = None) -> Settlement | None:
        """Join and cut clusters by an offline pass; `proposals` says what it would change.

        None where it was done before under the same key.
        """
        changes: Settlement | None = self._say("settle", {}, idempotency_key)
        return changes

    def _say(self, verb: str, arguments: dict[str, Any], key: str | None) -> Any:
        return self._do(calls.saying(verb, arguments, key))
