"""The core of a clusterer: engine, ledger, kept vectors and settings, and the checks of IDs.

`Links`, the store and the adapters share one `Core`. Each capability is a module of functions that
take the core first: adding, corrections, removal, absorb, explain, maintenance, views, snapshots.
"""

from __future__ import annotations

import copy
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from linkstream import presets
from linkstream.clusterer import absent
from linkstream.clusterer.change import UNUSABLE, Change, Interrupts, one_change
from linkstream.clusterer.confidence import LEARNS_AFTER, Confidence
from linkstream.clusterer.inverses import Inverses
from linkstream.confidence.policy import Policy
from linkstream.engine import choice, door
from linkstream.engine.contract import Decisions, Engine, Requirements, Stop, VectorStore
from linkstream.engine.fixed_point import VECTORS_MAX
from linkstream.engine.linkage import Progress
from linkstream.engine.state import Integers, State
from linkstream.epochs import Epochs, Former, FormerVectors, in_space
from linkstream.errors import (
    ArgumentError,
    DimensionError,
    NotTrackedError,
    RemovedError,
    UnknownIdError,
)
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.event_index import EventIndex
from linkstream.identity.folding import Base
from linkstream.identity.following import Follower
from linkstream.identity.laws import Laws
from linkstream.identity.ledger import UNKNOWN, Ledger, Rows
from linkstream.saving import Saved

if TYPE_CHECKING:
    from linkstream.clusterer.listing import Listing
    from linkstream.clusterer.rebuilding import Prepared

Fixed = npt.NDArray[np.int32]
Float32s = npt.NDArray[np.float32]


@runtime_checkable
class ExternalVectors(VectorStore, Protocol):
    """The vectors of a store, which reads them from its journal."""

    def at(self, epochs: Epochs, given: Fixed | None = None) -> ExternalVectors:
        """Return the vectors as they are when these epochs stand.

        `given` are those of the last epoch, by number, if the journal does not have them yet.
        """


class Core:
    """All that makes up one clusterer.

    Attributes:
        engine: the engine; None until the dimension is known.
        origin: the state that the engine started from, or will start from.
        factory: makes engines of the chosen kind.
        engine_options: the options `engine` and `threads` as they were given.
        space: the space that vectors are brought to.
        healing: how clusters are repaired while vectors arrive; None for the paper's algorithm.
        limits: the bounds on memory.
        min_size: vectors that an unnamed cluster needs to be more than pending.
        keep_vectors: whether the vectors themselves are kept.
        vectors: the kept vectors; None until the dimension is known, or if none are kept.
        rebuild_thresholds: thresholds of rebuilds, if they differ from those of the stream.
        epochs: the spaces that the vectors were in.
        former: vectors of other epochs, by the event of the epoch; for undo and redo.
        before: what a clusterer that keeps no vectors was before its encoder changed, for undo.
        external_vectors: whether `vectors` belongs to a store, so that the engine must not append.
        ledger: names, aliases, corrections and groups; see `up_to_date_ledger`.
        settles: whether the engine settles clusters while vectors arrive.
        heals_alone: whether it does so within `add`; otherwise maintenance does.
        is_ready: whether the engine knows what corrections require; see `ready`.
        maintained: whether healing, limits or the event log may need work between two vectors.
        fast_path: whether vectors may go straight to the engine.
        base: the state and ledger that undo can go back to.
        undone: vectors that undo took and redo may need, oldest first.
        cuts: number of vectors after each undo.
        lock: held by the thread that changes the clusterer.
        change: the open change, if any.
        confidence: the model of probabilities.
        last_decisions: decisions of the last batch that was added.
        inverses: what takes back the newest changes.
        follower: what `changes` has read of the log; None until it is first called.
        event_index: what histories have read of the log; None until one is first asked for.
        progress: what `settle` reports its progress to, unless it is told otherwise.
        policy: what the engine does with unsure vectors; None if nothing special. See `ready`.
        prepared: a rebuild that was computed before it is applied; see `rebuilding.Prepared`.
        replayed: the events of the call, if it is one of a journal; None if it is new.
        disagreements: the event that ended the last migration, and where the encoders disagreed.
        listing: what lists of clusters have read; None until one is first asked for.
        shown: vectors of subclusters that questions showed last, with their members and sums.
    """

    def __init__(self, saved: Saved, *, engine: str = "auto", threads: int | None = None) -> None:
        state = saved.state
        self.factory = choice.choose(engine, threads)
        self.engine_options: dict[str, Any] = {"engine": engine, "threads": threads}
        self.space, self.healing, self.limits = saved.space, saved.healing, saved.limits
        self.epochs = saved.epochs or Epochs.first(saved.space)
        self.rebuild_thresholds = saved.rebuild_thresholds
        self.former: dict[int, FormerVectors] = {}
        self.before: Former | None = saved.former
        self.min_size, self.keep_vectors = saved.min_size, saved.keep_vectors
        self.lock = threading.RLock()
        self.change: Change | None = None
        self.last_decisions: Decisions | None = None
        self.progress: Progress | None = None
        self.prepared: Prepared | None = None
        self.replayed: Integers | None = None
        self.follower: Follower | None = None
        self.disagreements: tuple[int, tuple[Disagreement, ...]] = (-1, ())
        self.shown: dict[int, tuple[Integers, Integers, tuple[int, ...]]] = {}
        self.event_index: EventIndex | None = None
        self.listing: Listing | None = None
        self.inverses = Inverses()
        self.origin, self.ledger = state, saved.ledger
        complete = state.n_events == len(state.events)
        empty = replace(self.empty_state(), dimension=state.dimension)
        self.base = Base(empty, Ledger()) if complete else Base(state, copy.deepcopy(saved.ledger))
        self.settles = self.healing is not None and self.healing.as_it_goes
        self._watched = bool(self.limits) or (self.healing is not None and not self.settles)
        self.maintained = self.fast_path = self.heals_alone = self.is_ready = False
        self.confidence = Confidence(self, saved)
        self._required: int | None = None  # revision of the ledger that the engine was told
        self.policy: Policy | None = None
        self._policy_told: str | None = None  # the text of the policy that the engine follows
        self.vectors: VectorStore | None = None
        self.external_vectors = False
        self.undone = saved.undone
        self.cuts: list[int] = []
        self.engine: Engine | None = None
        self.up_to_date_ledger()
        if state.dimension:
            self.engine = self._first_engine(state)
            if self.vectors is not None and saved.kept is not None:
                self.vectors.append(saved.kept)

    # The engine

    def running(self) -> Engine:
        """Return the engine of a clusterer that has vectors; callers check an ID before."""
        assert self.engine is not None, "IDs are checked before"
        return self.engine

    def start_engine(self, dimension: int) -> Engine:
        """Return the engine; make it if this is the first vector."""
        if self.engine is None:
            self.engine = self._first_engine(replace(self.origin, dimension=dimension))
        return self.engine

    def make_engine(self, state: State) -> Engine:
        """Return a new engine that continues from a state."""
        engine = self.factory.make(state, None if self.external_vectors else self.vectors)
        self._set_healing(engine)
        engine.set_cluster_margins(self.confidence.margins)
        self._required = self._policy_told = self.policy = None
        return engine

    def replace_state(self, state: State) -> Engine:
        """Continue from another state, with a new engine."""
        self.engine = self.make_engine(state)
        self.up_to_date_ledger()
        return self.engine

    def _first_engine(self, state: State) -> Engine:
        if self.keep_vectors and self.vectors is None:
            self.vectors = self.factory.vector_store(state.dimension)
        return self.make_engine(state)

    def empty_state(self) -> State:
        """Return the state of a clusterer with the same settings and no vectors."""
        origin = self.origin
        return State(origin.thresholds, 0, origin.track_vectors, origin.cluster_evidence)

    def state(self) -> State:
        """Return the whole state as plain arrays; a copy."""
        return self.engine.state() if self.engine else self.origin

    def oldest_event(self) -> int:
        """Return the sequence number of the oldest event that is kept."""
        return self.engine.oldest_event() if self.engine else 0

    @property
    def track_vectors(self) -> bool:
        """Whether the vector → subcluster map and the whole event log are kept."""
        return self.origin.track_vectors

    @property
    def n_vectors(self) -> int:
        """Vectors added so far."""
        return self.engine.n_vectors if self.engine else 0

    @property
    def dimension(self) -> int | None:
        """Dimension of the vectors; None until the space or the first vector fixes it."""
        return self.space.dimension if self.engine is None else self.engine.dimension

    # The ledger

    def up_to_date_ledger(self) -> Ledger:
        """Return the ledger after it has read all events."""
        if self.engine is not None:
            if self.ledger.quiet:  # dropped events held nothing for a quiet ledger
                self.ledger.n_events = max(self.ledger.n_events, self.engine.oldest_event())
            self._read_log(self.engine.event_rows(self.ledger.n_events)[1])
        # An event log that drops old events must be read while it grows.
        quiet = self.track_vectors or self.ledger.quiet
        alone = self.settles and quiet and (self.track_vectors or not self.ledger.names)
        if alone is not self.heals_alone:
            self.heals_alone = alone
            if self.engine is not None:
                self._set_healing(self.engine)
        waits = self._watched or self.settles is not self.heals_alone or self.policy is not None
        self.maintained = waits or not self.track_vectors
        self.is_ready = not self.settles or self._required == self.ledger.revision
        self.is_ready = self.is_ready and self._policy_told == self.ledger.policy
        plain = self.space.mean is None and not waits
        self.fast_path = plain and quiet and self.is_ready
        return self.ledger

    def ready(self) -> Engine:
        """Return the engine after it was told what corrections require, unless it knows.

        It is told again only after a change of corrections, groups or names, or of the engine.
        """
        engine, ledger = self.running(), self.up_to_date_ledger()
        if not self.is_ready:
            if ledger.revision == UNKNOWN:
                ledger.revise()
            self._set_healing(engine)
            engine.require(self.requirements())
            self._required = ledger.revision
            self._tell_policy(engine)
            self.up_to_date_ledger()
        return engine

    def _tell_policy(self, engine: Engine) -> None:
        """Tell the engine what to do with unsure vectors: nothing if other settings hold now."""
        text = self.ledger.policy
        policy = None if text is None else Policy.from_bounds(text)
        self.policy = policy if policy is not None and self.confidence.fits(policy) else None
        engine.set_cluster_margins(self.confidence.margins or self.policy is not None)
        engine.set_policy(None if self.policy is None else self.policy.doubt)
        self._policy_told = text

    def _set_healing(self, engine: Engine) -> None:
        healing, alone = self.healing, self.heals_alone
        if healing is not None and healing.steadiness is not None:
            final_after = healing.final_after or 0
            engine.set_healing(
                healing.growth, healing.steadiness, alone=alone, final_after=final_after
            )

    def requirements(self) -> Requirements:
        """Return what corrections require when clusters are settled: subclusters and clusters."""
        return self.laws().requirements()

    def _read_log(self, rows: Rows) -> None:
        """Let the ledger read the next events; mark the clusterer unusable if that fails."""
        if not len(rows):
            return
        if self.change is not None:
            self.inverses.read(self.ledger, rows, alone=False)
            return
        interrupts = Interrupts()
        interrupts.hold()
        try:
            self.inverses.read(self.ledger, rows, alone=True)
        except BaseException:
            self.engine = UNUSABLE
            raise
        finally:
            interrupts.release()

    def laws(self) -> Laws:
        """Return the corrections that hold, ready to be looked up."""
        return Laws.of(self.up_to_date_ledger())

    # Interrupts

    @property
    def stop(self) -> Stop | None:
        """Function that tells long work whether Ctrl-C was pressed; None outside of a change."""
        return None if self.change is None else self.change.interrupts.stop

    def interruptible(self) -> AbstractContextManager[None]:
        """Return a context in which Ctrl-C raises at once; for long work that changes nothing."""
        return nullcontext() if self.change is None else self.change.reading()

    # Vectors from the caller

    def check_rows(self, X: npt.ArrayLike) -> Float32s:
        """Return rows of the right shape and dimension, or raise VectorError."""
        try:
            return door.vectors(X, dimension=self.dimension)
        except DimensionError as error:
            raise self._with_encoder(error) from None

    def check_row(self, x: npt.ArrayLike) -> Float32s:
        """Return one vector as a block of one row, or raise VectorError."""
        try:
            return door.vector(x, dimension=self.dimension)
        except DimensionError as error:
            raise self._with_encoder(error) from None

    def _with_encoder(self, error: DimensionError) -> DimensionError:
        """Return the same error; it names the encoder if the space fixes the dimension."""
        fixed = self.space.dimension is not None
        return presets.other_dimension(error.seen, self.space) if fixed else error

    def quantised(self, rows: Float32s) -> Fixed:
        """Return rows as fixed-point numbers, or raise VectorError; nothing changes."""
        return in_space(self.space, rows, self.factory.quantise)

    def kept(self, numbers: npt.ArrayLike) -> Fixed:
        """Return kept vectors by number; raise NotTrackedError if none are kept."""
        wanted = np.asarray(numbers, dtype=np.int64)
        if not len(wanted):
            return np.empty((0, self.dimension or 0), dtype=np.int32)
        if self.vectors is None:
            raise NotTrackedError(
                "vectors asked for by number, of a clusterer that keeps none",
                expected="keep_vectors=True",
                remedy="Keep vectors, or pass the vector itself where it is asked for.",
            )
        return self.vectors.rows(wanted)

    # Checks of IDs and numbers

    def resolve(self, cluster_id: int) -> int:
        """Return the live cluster that an ID stands for; −1 if it is gone."""
        self.check_id(cluster_id)
        cluster = self.up_to_date_ledger().resolve(int(cluster_id))
        return cluster if self.running().has_cluster(cluster) else -1

    def live(self, cluster_id: int) -> int:
        """Return the live cluster that an ID stands for; raise RemovedError if it is gone."""
        cluster = self.resolve(cluster_id)
        if cluster < 0:
            raise absent.cluster_error(self, int(cluster_id))
        return cluster

    def check_id(self, cluster_id: int) -> None:
        """Raise UnknownIdError unless this cluster ID was given."""
        given = self.engine.n_cluster_ids if self.engine else 0
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

    def holder(self, vector: int) -> int:
        """Return the subcluster that holds a vector; raise RemovedError if it was removed."""
        self.check_tracked(f"vector {vector!r}")
        self.check_vector(vector)
        node = self.running().holder(int(vector))
        if node < 0:
            raise absent.vector_error(self, int(vector))
        return node

    def check_vector(self, vector: int) -> None:
        """Raise UnknownIdError unless this is the number of a vector."""
        whole = isinstance(vector, (int, np.integer)) and not isinstance(vector, bool)
        if not whole or not 0 <= vector < self.n_vectors:
            raise UnknownIdError(
                f"vector {vector!r}",
                expected=f"a sequence number from 0 to {self.n_vectors - 1}"
                if self.n_vectors
                else "none: nothing was added",
                remedy="A vector's number is its place in order of arrival.",
            )

    def check_subcluster(self, number: int) -> int:
        """Return the number of a subcluster; raise RemovedError if there is none."""
        whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        known = whole and self.engine is not None and 0 <= number < 2**62
        if not known or self.running().cluster_of(int(number)) < 0:
            raise RemovedError(
                f"subcluster {number!r}",
                expected="the number of one that is there",
                remedy="clusters() shows them; merges make some disappear.",
            )
        return int(number)

    def check_room(self, n: int) -> None:
        """Raise ArgumentError if n more vectors cannot be numbered."""
        if self.n_vectors + n > VECTORS_MAX:
            raise ArgumentError(
                f"{n} vectors after {self.n_vectors}",
                expected=f"no more than {VECTORS_MAX} in one clusterer",
                remedy="Begin a new one, or one for each source of vectors.",
            )

    def check_usable(self) -> None:
        """Raise UnusableError if a change failed and could not be rolled back."""
        if self.engine is UNUSABLE:
            self.engine.begin()

    def check_tracked(self, what: str) -> None:
        """Raise NotTrackedError, which names `what`, unless vectors are tracked."""
        self.check_usable()
        if not self.track_vectors:
            raise NotTrackedError(
                f"{what} of a clusterer that does not track vectors",
                expected="track_vectors=True",
                remedy="Speak of subclusters or clusters, or track vectors.",
            )

    # For a store, which keeps the event log and the vectors itself

    def use_external_vectors(self, vectors: ExternalVectors | None) -> None:
        """Read vectors by number from a store; None keeps none. Call `recall` before an undo."""
        self.external_vectors, self.vectors = True, vectors
        self.confidence.alone = LEARNS_AFTER
        self.keep_vectors = vectors is not None
        self.origin = self.empty_state()
        self.base = Base(replace(self.origin, dimension=self.dimension or 0), Ledger())

    @one_change
    def recall(self, log: npt.NDArray[np.int64], base: Base | None) -> None:
        """Take over the event log that a store kept, from a base on; None starts from nothing."""
        if self.engine is not None:
            self.replace_state(replace(self.state(), events=log))
        if base is not None:
            self.base = base
