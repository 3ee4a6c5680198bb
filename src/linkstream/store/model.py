"""The model of a store: a clusterer, and its position in the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream import saving
from linkstream.clusterer import Links, checks
from linkstream.clusterer.corrections import check_clusters
from linkstream.clusterer.snapshots import saved_without_history
from linkstream.clusterer.verb_values import plain
from linkstream.clusterer.verbs import VERBS
from linkstream.engine.decisions import Decision
from linkstream.engine.events import WIDTH
from linkstream.errors import DamagedStoreError, LinkstreamError, SnapshotError, StoreError
from linkstream.identity.event_index import EventIndex
from linkstream.identity.folding import Base
from linkstream.saving import Saved
from linkstream.store import journal, snapshots, steps
from linkstream.store.blocks import Attached
from linkstream.store.file import damaged, distrusted, guarded, view
from linkstream.store.index import Index, JournalVectors
from linkstream.store.journal import IDS, Journal, Mark, Operation, Rows
from linkstream.store.keyed import KeyedVectors
from linkstream.store.snapshots import Snapshot
from linkstream.store.steps import Step
from linkstream.store.write_requests import OpenStep, WriteRequest

_SLICE = 5_000  # vectors at a time if the clusterer drops old events: they must be read before

Events = npt.NDArray[np.int64]
T = TypeVar("T")


@dataclass(slots=True)
class Model:
    """The clusterer after all operations so far.

    `recalled` says whether the clusterer has the event log from the base on, which undo needs.
    """

    path: Path
    connection: sqlite3.Connection
    links: Links
    index: Index
    snapshot: Snapshot
    number: int  # of the last operation
    n_events: int
    next_piece: int
    recalled: bool
    journal: Journal = field(init=False)
    base: int = field(init=False)  # number of the oldest snapshot
    step: OpenStep | None = None  # that the last operation was a part of

    def __post_init__(self) -> None:
        self.journal = Journal(self.connection, self.path)
        self.base = self._oldest()

    @classmethod
    def at(
        cls,
        connection: sqlite3.Connection,
        path: Path,
        snapshot: Snapshot,
        parts: tuple[bytes, bytes],
        *,
        keep: bool,
        running: dict[str, Any],
    ) -> Model:
        """Return the model that a snapshot holds."""
        try:
            with distrusted(path, f"snapshot {snapshot.number}"):
                links = Links.from_bytes(parts[0], **running)
                index, next_piece = Index.unpacked(parts[1])
        except SnapshotError as error:
            raise damaged(path, f"snapshot {snapshot.number}: {error.seen}") from error
        n_events = links.core.up_to_date_ledger().n_events
        number = snapshot.operation
        model = cls(
            path, connection, links, index, snapshot, number, n_events, next_piece, n_events == 0
        )
        core = links.core
        core.use_external_vectors(
            JournalVectors(model.journal, index, core.epochs, core.factory.quantise)
            if keep
            else None
        )
        return model

    def catch_up(self, until: int | None = None) -> int:
        """Replay all later operations, compare the decisions, and return how many there were."""
        before = self.number
        for operation in self.journal.operations(self.number, until):
            self.again(operation)
        return self.number - before

    def again(self, operation: Operation) -> None:
        """Replay one operation, and compare the decisions."""
        rows = self.journal.vectors(operation)
        if operation.first_piece != self.next_piece:
            raise damaged(self.path, f"operation {operation.number} does not follow on the others")
        what = f"operation {operation.number} ({operation.verb})"
        if operation.verb not in VERBS:
            raise damaged(self.path, f"{what}: an unknown verb")
        before, core = (self.links.n_vectors, self.n_events), self.links.core
        core.replayed = operation.events
        try:
            with distrusted(self.path, what):
                answer, events = self._perform(operation.verb, operation.arguments, rows)
        except StoreError:
            raise
        except LinkstreamError as error:
            raise damaged(self.path, f"{what} cannot be done again: {error}") from error
        finally:
            core.replayed = None
        if (
            before != (operation.first_vector, operation.first_event)
            or not np.array_equal(events, operation.events)
            or journal.encoded(answer) != operation.result
        ):
            raise damaged(self.path, f"{what}, decided again, differs from what was decided")
        self._note(operation, self.links.n_vectors, self.journal.own(operation))

    def decide(self, request: WriteRequest) -> None:
        """Perform a call, and set what there is to commit."""
        if request.check is not None:
            request.check(self.n_events)
        if request.key_hashes is not None:
            self.keyed.refuse_taken(request.attached.keys or [], request.key_hashes)
        for name, key in request.named.items():
            one = not isinstance(key, list)
            number = self.keyed.number(key) if one else self.keyed.numbers(key).tolist()
            request.arguments = {**request.arguments, name: number}
        before = self.links.n_vectors
        core = self.links.core
        if request.clusters is not None:
            check_clusters(core, request.arguments, request.clusters)
        core.progress, core.prepared = request.progress, request.prepared
        try:
            request.answer, events = self._perform(request.verb, request.arguments, request.rows)
        finally:
            core.progress = core.prepared = None
        for name in request.found:
            request.arguments = {**request.arguments, name: plain(getattr(request.answer, name))}
        request.decisions = self.links.last_decisions if request.verb in IDS else None
        self._decided(request, before, self.links.n_vectors, events)

    def _perform(
        self, verb: str, arguments: dict[str, Any], rows: Rows | None
    ) -> tuple[Any, Events]:
        """Perform a verb on the clusterer; return the answer and the events."""
        self._read_from_journal()
        untracked = not self.links.track_vectors
        if verb == "add_many" and untracked and rows is not None and len(rows) > _SLICE:
            return self._add_in_slices(arguments, rows)
        with self._going_back(verb, arguments) as given:
            answer = VERBS[verb].from_journal(given, rows).perform(self.links.core)
        return answer, self._events_since(self.n_events)

    def _add_in_slices(self, arguments: dict[str, Any], rows: Rows) -> tuple[Any, Events]:
        self.links.core.quantised(rows)  # raise errors before any change
        checks.missing_weights(arguments.get("weight", 1.0), len(rows))
        weight = np.broadcast_to(np.asarray(arguments.get("weight", 1.0)), len(rows))
        ids, events, first_event = [], [], self.n_events
        for start in range(0, len(rows), _SLICE):
            part = slice(start, start + _SLICE)
            full = bool((weight[part] == 1).all())
            some = {**arguments, "weight": 1.0 if full else weight[part].tolist()}
            ids.append(self.links.add_many(rows[part], **some))
            events.append(self._events_since(first_event))
            first_event += len(events[-1])
        return np.concatenate(ids), np.concatenate(events)

    def _events_since(self, sequence: int) -> Events:
        engine = self.links.core.engine
        if engine is None:
            return np.empty((0, WIDTH), dtype=np.int64)
        return engine.event_rows(sequence)[1]

    @contextmanager
    def _going_back(self, verb: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Prepare undo and redo: the event log, and the vectors that redo restores.

        Yield the arguments for the clusterer. Other verbs need no preparation, nor does an undo of
        changes that the clusterer can take back without the log.
        """
        if verb not in ("undo", "redo"):
            yield arguments
            return
        if verb == "undo":
            with guarded(self.path):
                kept = steps.kept(self.links, self.journal, self.number, arguments)
            if kept is not None:
                yield kept
                return
        before = self.links.n_vectors
        self.recall()
        try:
            with distrusted(self.path, "the log"):
                with guarded(self.path):
                    if verb == "redo":
                        self.index.restore(steps.coming_back(self.links, self.journal, self.number))
                    elif arguments.get("step"):
                        to = steps.last(self.links, self.journal, self.number)
                        arguments = {"to": to}
                yield arguments
        except LinkstreamError:
            self.index.cut(before)
            raise

    def _read_from_journal(self) -> None:
        """Read the vectors that the last operation brought from the journal from now on."""
        core = self.links.core
        if isinstance(core.vectors, JournalVectors):
            core.vectors = core.vectors.at(core.epochs)

    def told(self, answer: Any) -> Any:
        """Return an answer of the journal with what the model of confidence tells now."""
        return self.links.confidence.tell_one(answer) if isinstance(answer, Decision) else answer

    def decide_together(self, requests: list[WriteRequest]) -> None:
        """Perform several calls that only add vectors as one batch.

        A batch gets the same decisions as its vectors one by one, so the answers are the same as
        those of single calls. If a vector is not usable, VectorError is raised and nothing changes.
        """
        rows = [request.rows for request in requests if request.rows is not None]
        before = self.links.n_vectors
        self.links.add_many(np.concatenate(rows))
        decisions = self.links.last_decisions
        assert decisions is not None
        ends = before + np.cumsum([len(some) for some in rows])
        events = self._events_since(self.n_events)
        cuts = np.searchsorted(events[:, 1], ends)  # each event bears the vector that led to it
        first = 0
        for request, end, cut in zip(requests, ends.tolist(), cuts.tolist(), strict=True):
            mine = decisions.part(before - decisions.first_sequence, end - before)
            request.answer = mine.at(0) if request.verb == "add" else mine.cluster.copy()
            request.decisions = mine if request.verb in IDS else None
            self._decided(request, before, end, events[first:cut])
            before, first = end, cut

    def _decided(self, request: WriteRequest, before: int, after: int, events: Events) -> None:
        """Set what there is to commit of a call, from the vector counts before and after it."""
        rows = request.rows
        request.operation = Operation(
            number=self.number + 1,
            verb=request.verb,
            arguments=request.arguments,
            first_vector=before,
            first_event=self.n_events,
            first_piece=self.next_piece,
            n_rows=0 if rows is None else len(rows),
            dimension=0 if rows is None else rows.shape[1],
            attached=request.attached.flags,
            events=events,
            result=journal.encoded(request.answer),
            key=request.key,
            digest=request.digest,
            step=self._marked(request.step),
        )
        request.first, first = before, self.n_events
        self._note(request.operation, after, request.attached)
        request.events = first, self.n_events

    def _marked(self, step: OpenStep | None) -> Mark | None:
        """Return the mark of the next operation; a call from elsewhere begins a new step."""
        if step is not self.step and step is not None:
            step.first = self.number + 1
        self.step = step
        return None if step is None else Mark(step.first, step.command)

    def first_undoable(self) -> int:
        """Return the first event that an undo can take back: nothing goes beyond the base."""
        with guarded(self.path):
            base = snapshots.every(self.connection, self.path)[0]
            if not base.operation:
                return 0
            last = self.journal.operation(base.operation)
        return last.first_event + len(last.events)

    def _oldest(self) -> int:
        query = "SELECT coalesce(min(number), 0) FROM snapshots"
        return int(self.connection.execute(query).fetchone()[0])

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Read the journal at one moment; raise StoreError if another process has compacted it."""
        with view(self.connection):
            if self._oldest() != self.base:
                raise StoreError(
                    f"{self.path}: compacted by another since it was read",
                    expected="a store that is as it was",
                    remedy="Call refresh(), or open it again.",
                )
            yield

    def rest_on(self, made: Snapshot) -> None:
        """Use a new snapshot, for which older ones were dropped."""
        self.snapshot, self.base = made, self._oldest()

    def done(self, key: str) -> Operation | None:
        """Return the newest operation with an idempotency key, if any."""
        for number in reversed(self.index.under(key)):
            operation = self.journal.operation(number)
            if operation.key == key:
                return operation
        return None

    @property
    def vectors(self) -> JournalVectors | None:
        """The kept vectors; None if none are kept."""
        found = self.links.core.vectors
        return found if isinstance(found, JournalVectors) else None

    @property
    def keyed(self) -> KeyedVectors:
        """The vectors by number, key and time."""
        return KeyedVectors(self.links, self.journal, self.index)

    def may_have(self, requests: list[WriteRequest]) -> bool:
        """Return whether some keys of these calls are known, or come twice; rarely in error."""
        hashes = [each.key_hashes for each in requests if each.key_hashes is not None]
        if not hashes:
            return False
        values = np.sort(np.concatenate(hashes))
        values = values[values != 0]  # of vectors without a key
        again = (values[1:] == values[:-1]).any()
        return bool(again or self.index.keys.has(values).any())

    def left_of(self, operation: Operation) -> int:
        """Return how many vectors of an operation were not undone."""
        return self.index.left_of(operation, self.links.n_vectors)

    @property
    def moved(self) -> bool:
        """Whether the clusterer changed outside of an operation."""
        return bool(len(self._events_since(self.n_events)))

    def _note(self, operation: Operation, n_vectors: int, own: Attached) -> None:
        self.index.note(operation, n_vectors, own)
        self.number = operation.number
        self.n_events += len(operation.events)
        self.next_piece += operation.n_pieces

    def recall(self) -> None:
        """Load the event log from the base on, which undo and histories need."""
        if self.recalled or not self.links.track_vectors:
            return
        with guarded(self.path):
            base = snapshots.every(self.connection, self.path)[0]
            log = self._log(base, self.n_events)
        with distrusted(self.path, "the log"):
            self.links.core.recall(log, self._base(base))
        self.recalled = True

    def _log(self, base: Snapshot, end: int) -> Events:
        """Return the events of the operations after a snapshot that began before an event."""
        log = [np.empty((0, WIDTH), dtype=np.int64)]
        for operation in self.journal.operations(base.operation, self.number):
            if operation.first_event >= end:
                break
            log.append(operation.events)
        return np.concatenate(log)

    def steps(self, limit: int) -> list[Step]:
        """Return the steps, the newest first."""
        return self.remember(lambda links: steps.listed(links, self.journal, self.number, limit))

    def remember(self, work: Callable[[Links], T]) -> T:
        """Read something from the clusterer that needs the event log."""
        with self.steady():
            self.recall()
        with distrusted(self.path, "the log"):
            return work(self.links)

    def indexed(self, work: Callable[[Links], T]) -> T:
        """Read something from the clusterer that finds events of the log by its index."""
        with self.steady():
            self._begin_index()
        with distrusted(self.path, "the log"):
            return work(self.links)

    def _begin_index(self) -> None:
        """Index the events before those of the clusterer, from the base on, at the first call."""
        core, index = self.links.core, self.links.core.event_index
        end = core.oldest_event()
        begun = index is not None and index.first_event < end
        if self.recalled or begun or not core.track_vectors:
            return
        with guarded(self.path):
            log = self._log(snapshots.every(self.connection, self.path)[0], end)
        if len(log):
            with distrusted(self.path, "the log"):
                index = EventIndex(end - len(log))
                index.read(log)
            core.event_index = index

    def _base(self, base: Snapshot) -> Base | None:
        if base.operation == 0:
            return None
        try:
            links = Links.from_bytes(
                snapshots.read(self.connection, self.path, base)[0], engine="reference"
            )
        except SnapshotError as error:
            raise damaged(self.path, f"snapshot {base.number}: {error.seen}") from error
        return Base(links.state(), links.core.up_to_date_ledger())

    def pack(self) -> Callable[[], tuple[bytes, bytes]]:
        """Return a function that packs the current snapshot; it may run later."""
        saved: Saved = saved_without_history(self.links.core)
        index = self.index.packed(self.next_piece)
        return lambda: (saving.pack(saved), index)


def load(
    connection: sqlite3.Connection, path: Path, *, keep: bool, running: dict[str, Any]
) -> Model:
    """Return the model from the newest sound snapshot, with all later operations replayed."""
    for snapshot, parts in snapshots.sound(connection, path):
        try:
            model = Model.at(connection, path, snapshot, parts, keep=keep, running=running)
        except DamagedStoreError:
            continue
        model.catch_up()
        check_end(model, keep=keep)
        return model
    raise damaged(path, "no sound snapshot")


def check_end(model: Model, *, keep: bool) -> None:
    """Raise DamagedStoreError unless two tables agree on where the journal ends."""
    query = "SELECT coalesce(max(piece), 0) FROM vectors"
    (piece,) = model.connection.execute(query).fetchone()
    pieces = (model.next_piece - 1,) if keep else (0, model.next_piece - 1)
    if model.journal.last() != model.number or piece not in pieces:
        raise damaged(model.path, f"the journal does not end with operation {model.number}")
