"""Reading a store: the questions of `Links`, vectors and payloads by number, and the journal.

All methods may be called from many threads. Reads see exactly what was acknowledged.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links, explain, rebuilding, verbs
from linkstream.clusterer.checks import whole_number
from linkstream.clusterer.confidence import Told
from linkstream.clusterer.migration import Migration
from linkstream.clusterer.rebuilding import RebuildSource
from linkstream.clusterer.verb_docs import documentation
from linkstream.engine.event_values import from_rows
from linkstream.engine.events import Event
from linkstream.errors import NotTrackedError
from linkstream.identity.paths import Pair
from linkstream.identity.review import Exemplars, Question
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import (
    about,
    blocks,
    by_key,
    copies,
    file,
    index,
    locks,
    migrating,
    own_columns,
    searching,
    tabular,
)
from linkstream.store.following import FollowedJournal
from linkstream.store.handle import StoreHandle
from linkstream.store.journal import Journal, Operation, decoded
from linkstream.store.keyed import Vector, Vectors
from linkstream.store.model import Model
from linkstream.store.repairing import Verified
from linkstream.store.steps import Step

_EVENTS_AT_ONCE = 20_000  # events that are read from the journal together, about

# The parameters that verbs have only in a store.
OWN_PARAMETERS = {
    "payload": "a JSON value of up to 64 KiB to store with the vector, see `payloads`.",
    "payloads": "a JSON value of up to 64 KiB for each vector, to store with it; None for none.",
    "at": "the time of each vector, or one for all: a datetime or ISO text with a zone, a "
    "datetime64 (UTC), or seconds since 1970.",
    "id": "the vector's own key, a text of up to 512 bytes that no other vector of the store has.",
    "ids": "the vectors' own keys, a text for each vector that no other has; None for none.",
    "progress": "called with the share of the work that is done, from 0 to 1; by the writer thread "
    "with `apply=True`.",
    "step": "undo the whole last step, see `steps` (default False).",
    "idempotency_key": "a repeated call under the same key is done once, and gets the first answer "
    "again. Another call under the key raises IdempotencyError.",
}

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


def documented(method: F) -> F:
    """Give a method the documentation of `Links`, and that of the store's own parameters.

    Paragraphs after the first one of the method replace the notes of `Links`.
    """
    names = inspect.signature(method).parameters
    own = {name: words for name, words in OWN_PARAMETERS.items() if name in names}
    notes = (inspect.getdoc(method) or "").partition("\n\n")[2]
    method.__doc__ = documentation(method.__name__, own, notes)
    return method


def _property_of_links(name: str) -> Any:
    """Return a property that reads the property of the clusterer."""

    def read(self: StoreReader) -> Any:
        return self.handle.read(lambda model: getattr(model.links, name))

    return property(read, doc=getattr(Links, name).__doc__)


def _as_in_links(
    method: Callable[Concatenate[Links, P], R], *, indexed: bool = False
) -> Callable[Concatenate[StoreReader, P], R]:
    """Return a method that runs a method of `Links` on the model; `indexed`: on the whole log."""

    @functools.wraps(method)
    def call(self: StoreReader, /, *args: P.args, **options: P.kwargs) -> R:
        def ask(links: Links) -> R:
            return method(links, *args, **options)

        return self.handle.read(lambda model: model.indexed(ask) if indexed else ask(model.links))

    return call


class StoreReader:
    """The methods of a store that change nothing; `Store` adds those that do.

    Attributes:
        handle: the open file, for code that needs no documented interface (the service, tests).
        journal: the calls that were acknowledged, with their vectors and events.
        followed: what `changes` has read of the journal.
    """

    def __init__(self, handle: StoreHandle) -> None:
        self.handle = handle
        self.journal = JournalReader(handle)
        self.followed = FollowedJournal(handle)

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self.handle.path

    @property
    def read_only(self) -> bool:
        """Whether the store was opened with `read_only=True`."""
        return self.handle.read_only

    @property
    def n_events(self) -> int:
        """The number of events so far, which is the sequence number of the next event."""
        return self.handle.read(lambda model: model.n_events)

    # The properties and methods of Links, with its documentation

    n_vectors: int = _property_of_links("n_vectors")
    n_subclusters: int = _property_of_links("n_subclusters")
    n_clusters: int = _property_of_links("n_clusters")
    dimension: int | None = _property_of_links("dimension")
    track_vectors: bool = _property_of_links("track_vectors")
    keep_vectors: bool = _property_of_links("keep_vectors")
    thresholds: Thresholds = _property_of_links("thresholds")
    rebuild_thresholds: Thresholds | None = _property_of_links("rebuild_thresholds")
    space: Space = _property_of_links("space")

    @property
    def confidence(self) -> Told:
        """The model of probabilities, and why they may be unknown."""
        return self.handle.read(lambda model: model.links.confidence.told())

    policy = _property_of_links("policy")
    labels = _as_in_links(Links.labels)
    members = _as_in_links(Links.members)
    cluster = _as_in_links(Links.cluster)
    cluster_state = _as_in_links(Links.cluster_state)
    clusters = _as_in_links(Links.clusters)
    resolve = _as_in_links(Links.resolve)
    resolve_many = _as_in_links(Links.resolve_many)
    named = _as_in_links(Links.named)
    corrections = _as_in_links(Links.corrections)
    predict = _as_in_links(Links.predict)
    predict_proba = _as_in_links(Links.predict_proba)
    explain = _as_in_links(Links.explain)
    state = _as_in_links(Links.state)
    state_hash = _as_in_links(Links.state_hash)
    history = _as_in_links(Links.history, indexed=True)

    @documented
    def explain_pair(self, a: Vector, b: Vector, *, of: str = "vectors") -> Pair:
        """As `Links.explain_pair`."""
        verbs.Same(a, b, of=of).keys()  # raises for keys of anything but vectors

        def work(model: Model) -> Pair:
            one, other = (model.keyed.number(v) if isinstance(v, str) else v for v in (a, b))
            return model.indexed(lambda links: links.explain_pair(one, other, of=of))

        return self.handle.read(work)

    # Questions about all clusters run in the thread of the caller, and read the model in pieces

    @documented
    def exemplars(self, cluster_id: int, limit: int = 5) -> Exemplars:
        """As `Links.exemplars`."""
        return explain.exemplars(self.handle.read_core, cluster_id, limit)

    @documented
    def review_queue(self, limit: int = 20) -> list[Question]:
        """As `Links.review_queue`."""
        return explain.review_queue(self.handle.read_core, limit, self.handle.progress)

    @documented
    def suggest_merges(self, limit: int = 20) -> list[MergeSuggestion]:
        """As `Links.suggest_merges`."""
        return explain.suggest_merges(self.handle.read_core, limit, self.handle.progress)

    @documented
    def suggest_splits(self, limit: int = 20) -> list[SplitSuggestion]:
        """As `Links.suggest_splits`."""
        return explain.suggest_splits(self.handle.read_core, limit, self.handle.progress)

    @documented
    def partition_hash(self) -> str:
        """As `Links.partition_hash`."""
        return rebuilding.hash_of(self._rebuild_source("partition_hash"), self._fixed_vectors)

    def migration(self) -> Migration | None:
        """Return the migration to another encoder that is under way; None if there is none."""
        return migrating.under_way(self.handle)

    def _rebuild_source(self, verb: str) -> RebuildSource | None:
        return self.handle.read_core(lambda core: rebuilding.source_for_read(core, verb))

    def _fixed_vectors(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        return self.handle.read_core(lambda core: core.kept(numbers))

    # Tables and reports

    held = documented(by_key.held)
    to_frame = documented(tabular.to_frame)
    clusters_frame = documented(tabular.clusters_frame)
    changes = documented(tabular.changes)
    search = searching.search

    # What only a store has

    def events(self, since: int = 0) -> list[Event]:
        """Return all events from a sequence number on; `journal.events` yields them one by one.

        Args:
            since: the sequence number of the first event.
        """
        return self.with_probabilities(list(self.journal.events(since)))

    def vectors(self, numbers: Vectors) -> npt.NDArray[np.float32]:
        """Return vectors by number, one a row, as they were given.

        Args:
            numbers: the vectors, by number or by their own keys, in any order.
        """
        return self.handle.read(lambda model: _vectors(model, numbers))

    def payloads(self, numbers: Vectors) -> list[Any]:
        """Return the payloads of vectors; None for a vector without one.

        Args:
            numbers: the vectors, by number or by their own keys, in any order.
        """
        return self.handle.read(lambda model: _payloads(model, numbers))

    # By the vectors' own keys and times

    number = by_key.number
    numbers = by_key.numbers
    key = by_key.key
    keys = by_key.keys
    time = by_key.time
    times = by_key.times
    described = by_key.described
    between = by_key.between
    event_keys = by_key.event_keys
    with_probabilities = by_key.with_probabilities
    how_sure = by_key.how_sure

    def steps(self, limit: int = 20) -> list[Step]:
        """Return the steps that `undo(step=True)` would undo, the newest first.

        Steps that `redo` can bring back come before them and have `undone` set.

        Args:
            limit: how many steps to return, besides those that can be redone.
        """
        limit = whole_number("limit", limit, "how many steps to show")
        return self.handle.read(lambda model: model.steps(limit))

    def info(self) -> dict[str, Any]:
        """Return the path, sizes, counts, thresholds and options of the store as plain values."""
        handle = self.handle
        return handle.read(
            lambda model: {
                **about.figures(model),
                **handle.description,
                **about.rebuilt(model.links),
            }
        )

    def refresh(self) -> int:
        """Read what other processes have written since opening; return how many operations.

        Only for read-only stores; others return 0. In a folder that this process cannot write to,
        a store shows its content at the time of opening.
        """
        return self.handle.refresh()

    def verify(self) -> Verified:
        """Read and replay everything; raise DamagedStoreError if something was changed.

        This takes as long as adding all vectors again. Other threads and processes can go on.
        """
        return self.handle.verify()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the store as it is now; other threads and processes can go on.

        Args:
            path: the copy; no file may have this name.
        """
        self.handle.check_open()
        copies.backup(self.path, locks.resolved(path))


class JournalReader:
    """The journal of a store: each call that was acknowledged, with its vectors and events.

    Args:
        operation: of all methods that have it: an operation of this store.
    """

    def __init__(self, handle: StoreHandle) -> None:
        self._handle = handle

    @property
    def n_operations(self) -> int:
        """The number of calls acknowledged so far."""
        return self._handle.read(lambda model: model.number)

    def operations(self, since: int = 0) -> Iterator[Operation]:
        """Return an iterator over operations, the oldest first.

        Args:
            since: the number of the operation after which to begin.
        """
        since = whole_number("since", since, "the operation after which to begin", least=0)
        last = self.n_operations
        return self._read(min(since, last), last)

    def events(self, since: int = 0) -> Iterator[Event]:
        """Yield events, reading the journal as they are consumed.

        Args:
            since: the sequence number of the first event.
        """
        since = whole_number("since", since, "the first event to tell of", least=0)
        texts, last = self._handle.read(
            lambda model: (list(model.links.core.up_to_date_ledger().texts), model.number)
        )
        for operation in self._read(0, last, event=since):
            skipped = max(0, since - operation.first_event)
            if skipped < len(operation.events):
                first = operation.first_event + skipped
                what = f"the events of operation {operation.number}"
                with file.distrusted(self._handle.path, what):
                    found = from_rows(first, operation.events[skipped:], texts)
                yield from found

    def find(self, key: str) -> Operation | None:
        """Return the operation that used an idempotency key; None if there is none.

        Args:
            key: the idempotency key.
        """
        return self._handle.read(lambda model: model.done(key))

    def answer(self, operation: Operation) -> Any:
        """Return what the caller of an operation got: a Decision, IDs, one ID, or None."""
        return decoded(operation)

    def vectors(self, operation: Operation) -> npt.NDArray[np.float32] | None:
        """Return the vectors that an operation brought; None if it brought none."""
        return self._handle.read(lambda model: model.journal.vectors(operation))

    def payloads(self, operation: Operation) -> list[Any] | None:
        """Return the payloads that an operation brought; None if it brought none."""
        return self._handle.read(lambda model: model.journal.payloads(operation))

    def times(self, operation: Operation) -> npt.NDArray[np.int64] | None:
        """Return the times of the vectors of an operation as `Attached` has them, or None."""
        return self._handle.read(lambda model: model.journal.own(operation).times)

    def own(self, operation: Operation) -> list[dict[str, str | None]]:
        """Return `id` and `time` of the rows of an operation; an empty list if it has neither."""
        if not (operation.has(blocks.KEYS) or operation.has(blocks.TIMES)):
            return []
        found = self._handle.read(lambda model: model.journal.own(operation))
        ids = [b""] * operation.n_rows if found.keys is None else found.keys
        times = [blocks.NO_TIME] * operation.n_rows if found.times is None else found.times.tolist()
        return [
            {"id": key.decode() or None, "time": own_columns.to_text(time)}
            for key, time in zip(ids, times, strict=True)
        ]

    def vectors_left(self, operation: Operation) -> int:
        """Return how many of the vectors of an operation were not undone."""
        return self._handle.read(lambda model: model.left_of(operation))

    def _read(self, since: int, last: int, *, event: int | None = None) -> Iterator[Operation]:
        """Yield operations through a connection of its own, so that a slow reader blocks nobody."""
        path = self._handle.path
        with (
            file.guarded(path),
            contextlib.closing(file.connect(path, read_only=True)) as connection,
        ):
            journal = Journal(connection, path)
            if event is not None:
                since = journal.before_event(event, last)
            while block := _block(journal.operations(since, last)):
                yield from block
                since = block[-1].number


def _block(operations: Iterator[Operation]) -> list[Operation]:
    """Return the next operations, with about _EVENTS_AT_ONCE events."""
    block: list[Operation] = []
    size = 0
    for operation in operations:
        block.append(operation)
        size += 1 + len(operation.events)
        if size >= _EVENTS_AT_ONCE:
            break
    return block


def _payloads(model: Model, numbers: Vectors) -> list[Any]:
    wanted = model.keyed.numbers(numbers)
    with model.steady():
        return index.payloads_by_number(model.journal, model.index, wanted)


def _vectors(model: Model, numbers: Vectors) -> npt.NDArray[np.float32]:
    if model.vectors is None:
        raise NotTrackedError(
            "vectors asked for by number, of a store that keeps none",
            expected="keep_vectors=True",
            remedy="Make the store with keep_vectors=True.",
        )
    wanted = model.keyed.numbers(numbers)
    if not len(wanted):
        return np.empty((0, model.links.dimension or 0), dtype=np.float32)
    with model.steady():
        return model.vectors.as_given(wanted)
