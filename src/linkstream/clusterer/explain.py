"""Explanations, suggestions and questions for review. Nothing here changes a clusterer.

Suggestions compare all clusters with one another, which takes long. They work on a `ReadSnapshot`,
so that a store can go on with other calls meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy.typing as npt

from linkstream import explanation
from linkstream.clusterer import views
from linkstream.clusterer.checks import check_kind, whole_number
from linkstream.clusterer.core import Core
from linkstream.engine.linkage import Progress, Unite
from linkstream.engine.state import State
from linkstream.engine.totals import StateSubclusters
from linkstream.explanation import Explanation
from linkstream.identity import paths, review, settling, suggestions
from linkstream.identity.laws import Laws
from linkstream.identity.ledger import Ledger
from linkstream.identity.paths import Pair
from linkstream.identity.review import Exemplars, Fetch, Question
from linkstream.identity.settling import Settlement
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds

Show = Callable[[State, int], tuple[int, ...]]  # vectors to show of a subcluster


@dataclass(frozen=True, eq=False, slots=True)
class ReadSnapshot:
    """The graph, the corrections and the ignored clusters at one moment."""

    state: State
    laws: Laws
    ignored: Collection[int]
    unions: Unite

    def merges(self, limit: int) -> list[MergeSuggestion]:
        """Return what `Links.suggest_merges` returns."""
        return suggestions.merges(self.state, limit, laws=self.laws, ignored=self.ignored)

    def splits(self, limit: int) -> list[SplitSuggestion]:
        """Return what `Links.suggest_splits` returns."""
        return suggestions.splits(self.state, limit, ignored=self.ignored)

    def questions(self, limit: int, show: Show) -> list[Question]:
        """Return what `Links.review_queue` returns; `show` picks vectors of a subcluster."""
        return review.questions(
            self.state,
            laws=self.laws,
            ignored=self.ignored,
            limit=limit,
            show=lambda node: show(self.state, node),
        )

    def exemplars(self, cluster: int, fetch: Fetch, limit: int) -> Exemplars:
        """Return what `Links.exemplars` returns; `fetch` gives vectors by number."""
        return review.exemplars(self.state, cluster, fetch, limit=limit)

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
    return None if core.engine is None else _view(core, copy.deepcopy(core.up_to_date_ledger()))


def _view(core: Core, ledger: Ledger | None = None) -> ReadSnapshot | None:
    """Return a view that is valid until the ledger changes; None if nothing was added."""
    if core.engine is None:
        return None
    ledger = ledger or core.up_to_date_ledger()
    return ReadSnapshot(core.state(), Laws.of(ledger), ledger.ignored, core.factory.unions)


def explain(core: Core, x: npt.ArrayLike, *, limit: int = 5) -> Explanation:
    """Return why a vector would get the answer that it would get."""
    fixed = core.quantised(core.check_row(x))
    limit = whole_number("limit", limit, "how many subclusters to show")
    return explanation.explain(core.engine, fixed[0], limit=limit)


def explain_pair(core: Core, a: int, b: int, *, of: str = "vectors") -> Pair:
    """Return why two vectors, subclusters or clusters share a cluster, or do not."""
    one, other = _end(core, a, of), _end(core, b, of)
    log = views.events(core, core.oldest_event())
    return paths.between(core.state(), one, other, log, of=of, laws=core.laws())


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


def exemplars(core: Core, cluster_id: int, limit: int = 5) -> Exemplars:
    """Return vectors of a cluster to look at."""
    limit = whole_number("limit", limit, "how many vectors of each kind to show")
    live, snapshot = snapshot_of(core, cluster_id)
    return snapshot.exemplars(live, core.kept, limit)


def snapshot_of(core: Core, cluster_id: int) -> tuple[int, ReadSnapshot]:
    """Return the live cluster that an ID stands for, and a snapshot for `exemplars`."""
    live = core.live(cluster_id)
    core.check_tracked("exemplars()")
    snapshot = snapshot_for_read(core)
    assert snapshot is not None, "there is a cluster"
    return live, snapshot


def review_queue(core: Core, limit: int = 20) -> list[Question]:
    """Return the questions whose answers would correct most, best first."""
    limit, view = whole_number("limit", limit, "how many questions to ask"), _view(core)
    return view.questions(limit, lambda *subject: shown(core, *subject)) if view else []


def shown(core: Core, state: State, node: int) -> tuple[int, ...]:
    """Return vectors of a subcluster to show with a question."""
    fetch = None if core.vectors is None else core.vectors.rows
    return review.central(state, node, fetch, limit=review.SHOWN)


def suggest_merges(core: Core, limit: int = 20) -> list[MergeSuggestion]:
    """Return pairs of clusters that may be one, by margin, best first."""
    limit, view = whole_number("limit", limit, "how many suggestions to make"), _view(core)
    return view.merges(limit) if view else []


def suggest_splits(core: Core, limit: int = 20) -> list[SplitSuggestion]:
    """Return the edges that hold clusters together by the least margin, weakest first."""
    limit, view = whole_number("limit", limit, "how many suggestions to make"), _view(core)
    return view.splits(limit) if view else []
