"""The ground of a clusterer: what it is made of, and the checks that come before anything."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt

from linkstream import presets
from linkstream.clusterer.change import UNUSABLE, Change, Interrupts
from linkstream.engine import door
from linkstream.engine.choice import Factory
from linkstream.engine.contract import Decisions, Engine, Keep
from linkstream.engine.fixed_point import VECTORS_MAX, quantise
from linkstream.engine.state import State
from linkstream.errors import (
    ArgumentError,
    DimensionError,
    NotTrackedError,
    RemovedError,
    UnknownIdError,
)
from linkstream.identity.folding import Base
from linkstream.identity.healing import Healing
from linkstream.identity.laws import Laws
from linkstream.identity.ledger import KINDS, Ledger, Rows
from linkstream.identity.limits import Limits
from linkstream.space import Space

Fixed = npt.NDArray[np.int32]


class Ground:
    """What all sides of `Links` stand on."""

    _engine: Engine | None
    _origin: State  # what the engine started from, or will start from
    _factory: Factory
    _space: Space
    _healing: Healing | None
    _limits: Limits
    _min_size: int
    _keeping: bool
    _keep: Keep | None  # the vectors themselves, once the dimension is known
    _ledger: Ledger
    _straight: bool  # nothing has to be seen to between vectors, and no mean taken off
    _direct: bool  # vectors may go straight to the engine
    _base: Base  # as far as undo goes back
    _undone: Fixed | None = None  # vectors that undo took and redo may need, oldest first
    _elsewhere = False  # vectors are kept by somebody else: the engine does not add to them
    _changing: threading.RLock  # held by the thread that changes the clusterer
    _change: Change | None = None  # what is open of it
    _last: Decisions | None = None

    def _vectors(self, X: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Rows of the right shape and dimension, or VectorError."""
        try:
            return door.vectors(X, dimension=self.dimension)
        except DimensionError as error:
            raise self._named(error) from None

    def _vector(self, x: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """One vector of the right shape and dimension as a block of one row, or VectorError."""
        try:
            return door.vector(x, dimension=self.dimension)
        except DimensionError as error:
            raise self._named(error) from None

    def _named(self, error: DimensionError) -> DimensionError:
        """The same error; it names the encoder where the space says the dimension."""
        fixed = self._space.dimension is not None
        return presets.other_dimension(error.seen, self._space) if fixed else error

    def _fixed(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Rows as the engine's numbers, or VectorError: nothing has changed yet."""
        if self._space.mean is None:
            fixed, lengths = self._factory.quantise(rows)
            door.check_norms(rows, lengths)
        else:
            centred = self._space.centre(rows)
            fixed, lengths = quantise(centred)
            door.check_norms(centred, lengths)
        return fixed

    def _synced(self) -> Ledger:
        """The ledger, with all events read."""
        if self._engine is not None:
            if self._ledger.quiet:  # what is no longer kept of the log had nothing to say
                oldest = self._engine.oldest_event()
                self._ledger.n_events = max(self._ledger.n_events, oldest)
            self._read_log(self._engine.event_rows(self._ledger.n_events)[1])
        # A log that is not kept whole must be read as it grows.
        self._direct = self._straight and (self.track_vectors or self._ledger.quiet)
        return self._ledger

    def _read_log(self, rows: Rows) -> None:
        """Have the ledger take in the next events: all of them, or the clusterer is unusable."""
        if not len(rows):
            return
        if self._change is not None:
            self._ledger.read(rows)
            return
        interrupts = Interrupts()
        interrupts.hold()
        try:
            self._ledger.read(rows)
        except BaseException:
            self._engine = UNUSABLE
            raise
        finally:
            interrupts.release()

    def _made(self, state: State) -> Engine:
        """An engine that goes on from a state."""
        return self._factory.make(state, None if self._elsewhere else self._keep)

    def _laws(self) -> Laws:
        return Laws.of(self._synced())

    def _interruptible(self) -> AbstractContextManager[None]:
        """Work that changes nothing and may take long: Ctrl-C ends it at once."""
        return nullcontext() if self._change is None else self._change.interrupts.let_through()

    def _running(self) -> Engine:
        """The engine, of a clusterer that was spoken of something in."""
        assert self._engine is not None, "IDs are checked before"
        return self._engine

    # Checks: what the caller names is there, or a typed error

    def resolve(self, cluster_id: int) -> int:
        """The live cluster that an ID now stands for.

        An ID is never used again. At a split the larger part keeps it (section 3.4); where
        clusters are joined, the ID that is gone stands for the one that stays. −1: the cluster was
        forgotten, or all its vectors were removed.
        """
        self._check_id(cluster_id)
        cluster = self._synced().resolve(int(cluster_id))
        return cluster if self._running().has_cluster(cluster) else -1

    def _live(self, cluster_id: int) -> int:
        """The live cluster that the caller means; RemovedError if it is gone."""
        cluster = self.resolve(cluster_id)
        if cluster < 0:
            raise RemovedError(
                f"cluster {cluster_id}",
                expected="one that is still there",
                remedy="It was forgotten, or all its vectors were removed; undo() brings it back.",
            )
        return cluster

    def _check_id(self, cluster_id: int) -> None:
        given = self._engine.n_cluster_ids if self._engine else 0
        if isinstance(cluster_id, bool) or not isinstance(cluster_id, (int, np.integer)):
            raise UnknownIdError(
                f"cluster ID {cluster_id!r} of type {type(cluster_id).__name__}",
                expected="an integer",
                remedy="IDs come from add(), add_many(), labels() or clusters().",
            )
        if not 0 <= cluster_id < given:
            raise UnknownIdError(
                f"cluster ID {cluster_id}",
                expected=f"an ID from 0 to {given - 1}" if given else "no ID: nothing was added",
                remedy="IDs come from add(), add_many(), labels() or clusters().",
            )

    def _check_usable(self) -> None:
        """UnusableError where a change failed and could not be taken back."""
        if self._engine is UNUSABLE:
            self._engine.begin()

    def _check_tracked(self, what: str) -> None:
        self._check_usable()
        if not self.track_vectors:
            raise NotTrackedError(
                f"{what} of a clusterer that does not track vectors",
                expected="track_vectors=True",
                remedy="Speak of subclusters or clusters, or track vectors.",
            )

    def _holder(self, vector: int) -> int:
        """The subcluster of a vector that is still there."""
        self._check_tracked(f"vector {vector!r}")
        self._check_vector(vector)
        assert self._engine is not None, "numbers are checked before"
        node = self._engine.holder(int(vector))
        if node < 0:
            raise RemovedError(
                f"vector {vector}",
                expected="one that is still there",
                remedy="It was removed, or its cluster forgotten; undo() brings it back.",
            )
        return node

    def _check_vector(self, vector: int) -> None:
        whole = isinstance(vector, (int, np.integer)) and not isinstance(vector, bool)
        if not whole or not 0 <= vector < self.n_vectors:
            raise UnknownIdError(
                f"vector {vector!r}",
                expected=f"a sequence number from 0 to {self.n_vectors - 1}"
                if self.n_vectors
                else "none: nothing was added",
                remedy="A vector's number is its place in order of arrival.",
            )

    def _check_room(self, n: int) -> None:
        """ArgumentError where so many more vectors cannot be numbered."""
        if self.n_vectors + n > VECTORS_MAX:
            raise ArgumentError(
                f"{n} vectors after {self.n_vectors}",
                expected=f"no more than {VECTORS_MAX} in one clusterer",
                remedy="Begin a new one, or one for each source of vectors.",
            )

    def _check_subcluster(self, number: int) -> int:
        whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        known = whole and self._engine is not None and 0 <= number < 2**62
        if not known or self._running().cluster_of(int(number)) < 0:
            raise RemovedError(
                f"subcluster {number!r}",
                expected="the number of one that is there",
                remedy="clusters() shows them; merges make some disappear.",
            )
        return int(number)

    def _kept(self, members: list[int]) -> Fixed:
        if not members:
            return np.empty((0, self.dimension or 0), dtype=np.int32)
        return self._kept_rows(np.array(members, dtype=np.int64))

    def _kept_rows(self, members: npt.NDArray[np.int64]) -> Fixed:
        if self._keep is None:
            raise NotTrackedError(
                "vectors asked for by number, of a clusterer that keeps none",
                expected="keep_vectors=True",
                remedy="Keep vectors, or pass the vector itself where it is asked for.",
            )
        return self._keep.rows(members)

    @property
    def track_vectors(self) -> bool:
        """Whether the vector → subcluster map and the whole log of events are kept."""
        return self._origin.track_vectors

    @property
    def n_vectors(self) -> int:
        """Vectors taken so far."""
        return self._engine.n_vectors if self._engine else 0

    @property
    def dimension(self) -> int | None:
        """Dimension of the vectors; None until the space or the first vector fixes it."""
        return self._space.dimension if self._engine is None else self._engine.dimension

    def state(self) -> State:
        """The whole state as plain arrays; a copy."""
        return self._engine.state() if self._engine else self._origin


def check_kind(of: str) -> None:
    """ArgumentError unless it says what two numbers are."""
    if not isinstance(of, str) or of not in KINDS:
        raise ArgumentError(
            f"of={of!r}",
            expected=" or ".join(map(repr, KINDS)),
            remedy="It says what the two numbers are.",
        )


def whole_number(name: str, value: int, meaning: str, *, least: int = 1) -> int:
    """A whole number that is large enough, or ArgumentError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ArgumentError(
            f"{name}={value!r:.80}",
            expected=f"a whole number of {least} or more",
            remedy=f"It says {meaning}.",
        )
    return min(int(value), 2**62)


def check_yes_no(name: str, value: object) -> bool:
    """A truth value, or ArgumentError."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(
            f"{name}={value!r:.80}", expected="True or False", remedy="It is a yes or a no."
        )
    return bool(value)
