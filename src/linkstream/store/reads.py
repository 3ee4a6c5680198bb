"""Reads: what is there to be asked of a store; safe from many threads, and nothing changes.

A reader sees what has been acknowledged: it waits for a commit that is going on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster, Links, explain
from linkstream.clusterer.checks import whole_number
from linkstream.engine.events import Event, from_rows
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, NotTrackedError, UnknownIdError
from linkstream.explanation import Explanation
from linkstream.identity.corrections import Correction
from linkstream.identity.exemplars import Exemplars
from linkstream.identity.history import History
from linkstream.identity.paths import Pair
from linkstream.identity.review import Question
from linkstream.identity.settling import Settlement
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import file, kept, replaying
from linkstream.store.journal import Journal, Operation
from linkstream.store.model import Model
from linkstream.store.steps import Step

_EVENTS = 20_000  # about so many at a time, where they are read one after the other

T = TypeVar("T")


class Reads:
    """The side of a store that answers."""

    path: Path

    def _ask(self, work: Callable[[Model], T]) -> T:
        """Ask the model something, while nothing is decided or written."""
        raise NotImplementedError

    # Figures

    @property
    def n_vectors(self) -> int:
        """Vectors taken so far."""
        return self._ask(lambda model: model.links.n_vectors)

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""
        return self._ask(lambda model: model.links.n_subclusters)

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""
        return self._ask(lambda model: model.links.n_clusters)

    @property
    def n_operations(self) -> int:
        """Calls acknowledged so far."""
        return self._ask(lambda model: model.number)

    @property
    def n_events(self) -> int:
        """Events so far: the sequence number of the next."""
        return self._ask(lambda model: model.n_events)

    def figures(self) -> dict[str, int | None]:
        """How many there are of everything, at one moment."""
        return self._ask(
            lambda model: {
                "vectors": model.links.n_vectors,
                "subclusters": model.links.n_subclusters,
                "clusters": model.links.n_clusters,
                "operations": model.number,
                "events": model.n_events,
                "dimension": model.links.dimension,
            }
        )

    @property
    def dimension(self) -> int | None:
        """Dimension of the vectors; None until the space or the first vector fixes it."""
        return self._ask(lambda model: model.links.dimension)

    @property
    def track_vectors(self) -> bool:
        """Whether vectors are known by number."""
        return self._ask(lambda model: model.links.track_vectors)

    @property
    def keep_vectors(self) -> bool:
        """Whether vectors can be had again by number."""
        return self._ask(lambda model: model.links.keep_vectors)

    @property
    def thresholds(self) -> Thresholds:
        """The three thresholds."""
        return self._ask(lambda model: model.links.thresholds)

    @property
    def space(self) -> Space:
        """The space vectors are brought to before they are clustered."""
        return self._ask(lambda model: model.links.space)

    def state_hash(self) -> str:
        """Hex digest of the whole state, as `Links.state_hash`."""
        return self._ask(lambda model: model.links.state_hash())

    def state(self) -> State:
        """The whole state as plain arrays; a copy."""
        return self._ask(lambda model: model.links.state())

    # As of Links

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector, in order of arrival; −1 for one removed."""
        return self._ask(lambda model: model.links.labels())

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""
        return self._ask(lambda model: model.links.clusters())

    def resolve(self, cluster_id: int) -> int:
        """The live cluster that an ID now stands for; −1: none."""
        return self._ask(lambda model: model.links.resolve(cluster_id))

    def named(self, name: str) -> int:
        """The cluster that has a name."""
        return self._ask(lambda model: model.links.named(name))

    def corrections(self) -> list[Correction]:
        """All that people said by `same`, `different` and `move`, and that still holds."""
        return self._ask(lambda model: model.links.corrections())

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Ask for the cluster of each vector, changing nothing; −1 where it would be new."""
        return self._ask(lambda model: model.links.predict(X))

    def explain(self, x: npt.ArrayLike, *, limit: int = 5) -> Explanation:
        """Why a vector would get the answer it would get."""
        return self._ask(lambda model: model.links.explain(x, limit=limit))

    def explain_pair(self, a: int, b: int, *, of: str = "vectors") -> Pair:
        """Why two are, or are not, in one cluster."""
        return self._ask(
            lambda model: model.remember(lambda links: links.explain_pair(a, b, of=of))
        )

    def history(self, cluster_id: int) -> History:
        """Birth, splits and joins of a cluster's ID."""
        return self._ask(lambda model: model.remember(lambda links: links.history(cluster_id)))

    # What compares everything with everything is done by the caller, while others go on

    def exemplars(self, cluster_id: int, limit: int = 5) -> Exemplars:
        """Vectors of a cluster to look at."""
        limit = whole_number("limit", limit, "how many vectors of each kind to show")
        live, glance = self._ask(lambda model: explain.snapshot_of(model.links.core, cluster_id))
        return glance.exemplars(live, self._fetch, limit)

    def _fetch(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        return self._ask(lambda model: model.links.core.kept(numbers))

    def review_queue(self, limit: int = 20) -> list[Question]:
        """The questions whose answers would put most right."""
        limit = whole_number("limit", limit, "how many questions to ask")
        glance = self._ask(lambda model: explain.snapshot_for_read(model.links.core))
        return glance.questions(limit, self._shown) if glance else []

    def suggest_merges(self, limit: int = 20) -> list[MergeSuggestion]:
        """Pairs of clusters that may be one."""
        limit = whole_number("limit", limit, "how many suggestions to make")
        glance = self._ask(lambda model: explain.snapshot_for_read(model.links.core))
        return glance.merges(limit) if glance else []

    def suggest_splits(self, limit: int = 20) -> list[SplitSuggestion]:
        """Edges that hold clusters together by the least margin."""
        limit = whole_number("limit", limit, "how many suggestions to make")
        glance = self._ask(lambda model: explain.snapshot_for_read(model.links.core))
        return glance.splits(limit) if glance else []

    def proposals(self) -> Settlement:
        """What `settle` would change."""
        glance = self._ask(lambda model: explain.snapshot_for_read(model.links.core))
        return glance.proposals() if glance else Settlement((), (), 0, 0)

    def _shown(self, state: State, node: int) -> tuple[int, ...]:
        try:
            return self._ask(lambda model: explain.shown(model.links.core, state, node))
        except UnknownIdError:  # one of them was removed meanwhile
            return ()

    # From the journal

    def events(self, since: int = 0) -> list[Event]:
        """Typed events from a sequence number on; those of all times."""
        return list(self.iter_events(since))

    def iter_events(self, since: int = 0) -> Iterator[Event]:
        """Typed events from a sequence number on, read as they are asked for."""
        since = whole_number("since", since, "the first event to tell of", least=0)
        texts, last = self._ask(
            lambda model: (list(model.links.core.up_to_date_ledger().texts), model.number)
        )
        for operation in self._operations(0, last, event=since):
            skipped = max(0, since - operation.first_event)
            if skipped < len(operation.events):
                first = operation.first_event + skipped
                with file.distrusted(self.path, f"the events of operation {operation.number}"):
                    told = from_rows(first, operation.events[skipped:], texts)
                yield from told

    def operations(self, since: int = 0) -> Iterator[Operation]:
        """The calls that were acknowledged, after operation number `since`, oldest first."""
        since = whole_number("since", since, "the operation after which to begin", least=0)
        last = self.n_operations
        return self._operations(min(since, last), last)

    def done(self, key: str) -> Operation | None:
        """What was done under an idempotency key; None: nothing."""
        return self._ask(lambda model: model.done(key))

    def answer_of(self, operation: Operation) -> Any:
        """What was answered to an operation: a Decision, IDs, one ID, or None."""
        return replaying.decoded(operation)

    def left_of(self, operation: Operation) -> int:
        """How many of the vectors that came with an operation were not undone."""
        return self._ask(lambda model: model.left_of(operation))

    def steps(self, limit: int = 20) -> list[Step]:
        """What `undo(step=True)` takes back, the newest first; so many at most.

        Before them, with `undone`, comes what `redo` can bring back; the last of these first.
        """
        limit = whole_number("limit", limit, "how many steps to show")
        return self._ask(lambda model: model.steps(limit))

    def vectors_of(self, operation: Operation) -> npt.NDArray[np.float32] | None:
        """The vectors that came with an operation; None where none did."""
        return self._ask(lambda model: model.journal.vectors(operation))

    def payloads_of(self, operation: Operation) -> list[Any] | None:
        """What was attached to the vectors of an operation; None: nothing."""
        return self._ask(lambda model: model.journal.payloads(operation))

    def vectors(self, numbers: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Vectors by number, as they were given."""
        return self._ask(lambda model: _vectors(model, numbers))

    def payload(self, vector: int) -> Any:
        """What was attached to a vector; None: nothing."""
        return self.payloads([vector])[0]

    def payloads(self, numbers: Sequence[int] | npt.NDArray[np.int64]) -> list[Any]:
        """What was attached to vectors."""
        return self._ask(lambda model: _payloads(model, numbers))

    # How it is done

    def _operations(
        self, since: int, last: int, *, event: int | None = None
    ) -> Iterator[Operation]:
        """Through a connection of its own, so many at a time: a slow reader holds nobody up."""
        with (
            file.guarded(self.path),
            contextlib.closing(file.connect(self.path, read_only=True)) as connection,
        ):
            journal = Journal(connection, self.path)
            if event is not None:
                since = journal.before_event(event, last)
            while True:
                some: list[Operation] = []
                size = 0
                for operation in journal.operations(since, last):
                    some.append(operation)
                    size += 1 + len(operation.events)
                    if size >= _EVENTS:
                        break
                if not some:
                    return
                yield from some
                since = some[-1].number


def _payloads(model: Model, numbers: Sequence[int] | npt.NDArray[np.int64]) -> list[Any]:
    wanted = _checked(model.links, numbers)
    with model.steady():
        return kept.payload_of(model.journal, model.index, wanted)


def _vectors(
    model: Model, numbers: Sequence[int] | npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    if model.links.core.vectors is None:
        raise NotTrackedError(
            "vectors asked for by number, of a store that keeps none",
            expected="keep_vectors=True",
            remedy="Make the store with keep_vectors=True.",
        )
    wanted = _checked(model.links, numbers)
    if not len(wanted):
        return np.empty((0, model.links.dimension or 0), dtype=np.float32)
    with model.steady():
        return kept.given(model.journal, model.index, wanted)


def _checked(links: Links, numbers: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Numbers of vectors that are there."""
    if not isinstance(numbers, (Sequence, np.ndarray)) or isinstance(numbers, (str, bytes)):
        raise ArgumentError(
            f"numbers of type {type(numbers).__name__}",
            expected="a list of numbers of vectors",
            remedy="A vector's number is its place in order of arrival.",
        )
    for number in numbers:
        if links.track_vectors:
            links.core.holder(number)
        else:
            links.core.check_vector(number)
    return np.array([int(number) for number in numbers], dtype=np.int64)
