"""Explanations, suggestions and questions for review. Nothing here changes a clusterer.

Questions compare all clusters with one another. They read a core in short pieces, by `Access`, so
that a store can go on with other calls meanwhile, and compute from the index of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream import explanation
from linkstream.clusterer import views
from linkstream.clusterer.checks import check_kind, whole_number
from linkstream.clusterer.core import Core
from linkstream.clusterer.doubts import doubts
from linkstream.engine.cluster_index import ClusterIndex
from linkstream.engine.comparison import ClusterRestrictions
from linkstream.engine.events import Event
from linkstream.engine.linkage import Progress, Unite
from linkstream.engine.state import State
from linkstream.engine.totals import StateSubclusters
from linkstream.explanation import Explanation
from linkstream.identity import paths, review, settling, suggestions
from linkstream.identity.event_index import from_numbered
from linkstream.identity.laws import Laws
from linkstream.identity.paths import Pair
from linkstream.identity.review import Exemplars, Odds, Question
from linkstream.identity.settling import Settlement
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds

T = TypeVar("T")
Q = TypeVar("Q", MergeSuggestion, Question)

_ALL = 2**62  # above every number of a vector
_PIECE = 1 << 24  # numbers of sums that are read at a time
_BLOCK = 256  # vectors that are compared with all clusters at a time
_SHOWN = 256  # subclusters whose vectors to show are kept
_WAIT = 0.05  # seconds between two reports while another question is computed


class Access(Protocol):
    """Calls a function with a core, between two changes, and returns its result."""

    def __call__(self, work: Callable[[Core], T], /) -> T:
        """Return the result of `work`."""


@dataclass(frozen=True, slots=True)
class Direct:
    """The access to a core of this thread."""

    core: Core

    def __call__(self, work: Callable[[Core], T], /) -> T:
        """Return the result of `work`."""
        return work(self.core)


@dataclass(frozen=True, eq=False, slots=True)
class ReadSnapshot:
    """The graph and the corrections at one moment."""

    state: State
    laws: Laws
    unions: Unite

    def proposals(
        self, thresholds: Thresholds | None = None, progress: Progress | None = None
    ) -> Settlement:
        """Return what `Links.settle` proposes."""
        test = thresholds or self.state.thresholds
        changes, _ = settling.settle(
            StateSubclusters(self.state, self.unions),
            test,
            laws=self.laws,
            asked=True,
            progress=progress,
        )
        return changes


def snapshot_for_read(core: Core) -> ReadSnapshot | None:
    """Return a snapshot that any thread may use later; None if nothing was added."""
    if core.engine is None:
        return None
    ledger = core.up_to_date_ledger().copy()
    return ReadSnapshot(core.state(), Laws.of(ledger), core.factory.unions)


def explain(core: Core, x: npt.ArrayLike, *, limit: int = 5) -> Explanation:
    """Return why a vector would get the answer that it would get."""
    fixed = core.quantised(core.check_row(x))
    limit = whole_number("limit", limit, "how many subclusters to show")
    found = explanation.explain(core.engine, fixed[0], limit=limit)
    told = core.confidence.told_of_kind(found.kind, found.cluster_margin)
    return found if told is None else replace(found, probability=told)


def explain_pair(core: Core, a: int, b: int, *, of: str = "vectors") -> Pair:
    """Return why two vectors, subclusters or clusters share a cluster, or do not."""
    one, other = _end(core, a, of), _end(core, b, of)
    state, ends = _both(core, one, other, of)

    def events_of(subclusters: list[int]) -> list[Event]:
        return from_numbered(*views.event_index(core).of_edges(subclusters))

    return paths.between(state, one, other, events_of, of=of, laws=core.laws(), subclusters=ends)


def _both(core: Core, a: int, b: int, of: str) -> tuple[State, tuple[int, int]]:
    """Return the clusters of two, as one state, and the two subclusters to compare."""
    engine = core.running()
    if of == "clusters":
        parts = engine.parts(a), engine.parts(b)
        same = int(parts[0].numbers[0])
        ends = suggestions.nearest(*parts) if a != b else (same, same)
    else:
        ends = (core.holder(a), core.holder(b)) if of == "vectors" else (a, b)
        parts = engine.parts(engine.cluster_of(ends[0])), engine.parts(engine.cluster_of(ends[1]))
    return paths.joined(*parts), ends


def _end(core: Core, number: int, of: str) -> int:
    """Return a vector, subcluster or cluster that is there, by the number the caller gave."""
    check_kind(of)
    if of == "vectors":
        core.holder(number)
    elif of == "subclusters":
        core.check_subcluster(number)
    else:
        number = core.live(number)
    return int(number)


def exemplars(read: Access, cluster_id: int, limit: int = 5) -> Exemplars:
    """Return vectors of a cluster to look at; reads this cluster and the sums of the others."""
    limit = whole_number("limit", limit, "how many vectors of each kind to show")
    cluster, part, members = read(lambda core: _inside(core, cluster_id))

    def elsewhere(rows: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        blocks = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
        return np.concatenate([read(_Elsewhere(some, cluster)) for some in blocks])

    def fetch(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        return read(lambda core: core.kept(numbers))

    return review.exemplars(part, members, fetch, elsewhere, limit=limit)


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """The greatest similarity of each of some vectors to another cluster."""

    rows: npt.NDArray[np.int32]
    cluster: int

    def __call__(self, core: Core) -> npt.NDArray[np.float64]:
        return core.running().elsewhere(self.rows, self.cluster)


def _inside(core: Core, cluster_id: int) -> tuple[int, State, npt.NDArray[np.int64]]:
    """Return the live cluster that an ID stands for, its subclusters and its vectors."""
    cluster = core.live(cluster_id)
    core.check_tracked("exemplars()")
    engine = core.running()
    return cluster, engine.parts(cluster), engine.members(cluster, _ALL, _ALL)[::-1].copy()


# Questions about all clusters


def review_queue(read: Access, limit: int = 20, progress: Progress | None = None) -> list[Question]:
    """Return the questions whose answers would correct most, best first.

    Args:
        read: gives access to the core.
        limit: how many questions.
        progress: called now and then; it may raise to end the search.
    """
    limit = whole_number("limit", limit, "how many questions to ask")
    with _asking(read, progress, parts=True) as asked:
        if asked is None:
            return []
        index, barred = asked
        show = _Show(read)
        asked_for = review.questions(
            index,
            barred,
            show=show,
            limit=limit,
            odds=read(_odds),
            doubts=read(doubts),
            progress=progress,
        )
        return read(_Telling(asked_for))


def _odds(core: Core) -> Odds:
    return core.confidence.odds_of_pairs()


def suggest_merges(
    read: Access, limit: int = 20, progress: Progress | None = None
) -> list[MergeSuggestion]:
    """Return pairs of clusters that may be one, by margin, best first; see `review_queue`."""
    limit = whole_number("limit", limit, "how many suggestions to make")
    with _asking(read, progress, parts=True) as asked:
        if asked is None:
            return []
        nearest = _Nearest(read, asked[0])
        return read(_Telling(suggestions.merges(asked[0], limit, nearest, progress)))


@dataclass(frozen=True, slots=True)
class _Telling(Generic[Q]):
    """Adds to questions about two clusters the probability that both are one identity."""

    questions: list[Q]

    def __call__(self, core: Core) -> list[Q]:
        margins = [each.margin for each in self.questions]
        told = core.confidence.one_identity(margins, [each.sizes for each in self.questions])
        return [
            each
            if isinstance(each, Question) and not _is_plain_join(each)
            else replace(each, probability=probability)
            for each, probability in zip(self.questions, told, strict=True)
        ]


def _is_plain_join(question: Question) -> bool:
    """Return whether a question is about two clusters by one encoder."""
    return question.kind == "join" and question.before is None


def suggest_splits(
    read: Access, limit: int = 20, progress: Progress | None = None
) -> list[SplitSuggestion]:
    """Return the edges that hold clusters together by the least margin; see `review_queue`."""
    limit = whole_number("limit", limit, "how many suggestions to make")
    with _asking(read, progress, parts=True) as asked:
        return suggestions.splits(asked[0], limit) if asked is not None else []


@contextmanager
def _asking(
    read: Access, progress: Progress | None, *, parts: bool
) -> Iterator[tuple[ClusterIndex, npt.NDArray[np.int64]] | None]:
    """Yield the index of all clusters as they are now, and the pairs that are kept apart.

    Yields None if nothing was added. One question at a time uses an index.
    """
    report = progress or (lambda _share: None)
    while (index := read(_index)) is not None:
        while not index.lock.acquire(timeout=_WAIT):
            report(0.0)
        try:
            given = _caught_up(read, index, report, parts=parts)
            if given is not None:
                index.restrict(given)
                yield index, given.barred
                return
        finally:
            index.lock.release()
    yield None


def _caught_up(
    read: Access, index: ClusterIndex, report: Progress, *, parts: bool
) -> ClusterRestrictions | None:
    """Read all that changed; return what is not to be compared, or None if the engine is gone."""

    def piece(core: Core) -> ClusterRestrictions | bool:
        if core.engine is None or core.engine.clusters is not index:
            return True
        return index.read(parts=parts, budget=_PIECE) and restrictions(core)

    while not (found := read(piece)):
        report(0.0)
    return found if isinstance(found, ClusterRestrictions) else None


def _index(core: Core) -> ClusterIndex | None:
    return None if core.engine is None else core.engine.clusters


def restrictions(core: Core) -> ClusterRestrictions:
    """Return which clusters corrections, groups, names and `ignore` leave out of comparisons."""
    laws, engine = core.laws(), core.running()
    pinned = laws.ledger.pinned()
    cluster = {node: engine.cluster_of(node) for node in pinned}
    pairs = {
        tuple(sorted((cluster[a], cluster[b])))
        for a in pinned
        for b in laws.barred(a)
        if cluster[a] >= 0 and cluster.get(b, -1) >= 0
    }
    barred = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    left_out = np.array(sorted(laws.ledger.ignored), dtype=np.int64)
    return ClusterRestrictions(barred, dict(laws.names), left_out)


@dataclass(frozen=True, slots=True)
class _Show:
    """Picks vectors of a subcluster to show with a question; none of one that is gone."""

    read: Access

    def __call__(self, number: int) -> tuple[int, ...]:
        return self.read(lambda core: shown(core, number))


def shown(core: Core, number: int) -> tuple[int, ...]:
    """Return vectors of a subcluster to show; none if it is gone.

    Those of the subclusters that were shown last are kept: a store reads a vector from its file.
    """
    engine = core.running()
    if engine.cluster_of(number) < 0:
        return ()
    members, total = engine.held_by(number, _ALL, _ALL)[::-1].copy(), engine.total_of(number)[1]
    known = core.shown.get(number)
    if known is not None and np.array_equal(known[0], members) and np.array_equal(known[1], total):
        return known[2]
    fetch = None if core.vectors is None else core.vectors.rows
    found = review.central(members, total, fetch, limit=review.SHOWN)
    core.shown.pop(number, None)
    if len(members) <= review.LOOKED:
        core.shown[number] = members, total, found
    if len(core.shown) > _SHOWN:
        del core.shown[next(iter(core.shown))]
    return found


@dataclass(frozen=True, slots=True)
class _Nearest:
    """Finds the most similar subclusters of two clusters; of one that is gone its heart."""

    read: Access
    index: ClusterIndex

    def __call__(self, one: int, other: int) -> tuple[int, int]:
        parts = self.read(lambda core: [core.running().parts(each) for each in (one, other)])
        if all(len(part.numbers) for part in parts):
            return suggestions.nearest(*parts)
        hearts = self.index.hearts(np.array([one, other], dtype=np.int64)).tolist()
        return hearts[0], hearts[1]
