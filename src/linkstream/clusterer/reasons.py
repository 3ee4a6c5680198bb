"""Reasons: why, and what a person might look at next; nothing here changes anything."""

from __future__ import annotations

import copy

import numpy.typing as npt

from linkstream.clusterer.base import check_kind, whole_number
from linkstream.clusterer.views import Views
from linkstream.engine.state import State
from linkstream.explanation import Explanation, explain
from linkstream.identity import exemplars as examples
from linkstream.identity import paths, review
from linkstream.identity.exemplars import Exemplars
from linkstream.identity.glance import Glance
from linkstream.identity.laws import Laws
from linkstream.identity.paths import Pair
from linkstream.identity.review import Question
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion


class Reasons(Views):
    """The side of `Links` that explains and suggests."""

    def explain(self, x: npt.ArrayLike, *, limit: int = 5) -> Explanation:
        """Why a vector would get the answer it would get; changes nothing."""
        fixed = self._fixed(self._vector(x))
        return explain(
            self._engine,
            fixed[0],
            limit=whole_number("limit", limit, "how many subclusters to show"),
        )

    def explain_pair(self, a: int, b: int, *, of: str = "vectors") -> Pair:
        """Why two vectors, subclusters or clusters are, or are not, in one cluster.

        The edges between them, with similarity, threshold, and the event that made each; or what
        keeps them apart. Vectors are sequence numbers, in order of arrival from 0.
        """
        one, other = self._end(a, of), self._end(b, of)
        log = self.events(self._oldest_event())
        return paths.between(self.state(), one, other, log, of=of, laws=self._laws())

    def _end(self, number: int, of: str) -> int:
        """A vector, subcluster or cluster that is there, as the caller named it."""
        check_kind(of)
        if of == "vectors":
            self._holder(number)
        elif of == "subclusters":
            self._check_subcluster(number)
        else:
            number = self._live(number)
        return int(number)

    def exemplars(self, cluster_id: int, limit: int = 5) -> Exemplars:
        """Vectors of a cluster to look at: the most central, the newest, the most doubtful."""
        limit = whole_number("limit", limit, "how many vectors of each kind to show")
        live, glance = self._look_at(cluster_id)
        return glance.exemplars(live, self._kept_rows, limit)

    def review_queue(self, limit: int = 20) -> list[Question]:
        """The questions whose answers would put most right, best first.

        Feed an answer back by `same(q.a, q.b, of=q.of)` or `different(q.a, q.b, of=q.of)`, and
        ask again: what was answered, or follows from it, is not asked.
        """
        limit = whole_number("limit", limit, "how many questions to ask")
        glance = self._glance()
        return glance.questions(limit, self._shown) if glance else []

    def suggest_merges(self, limit: int = 20) -> list[MergeSuggestion]:
        """Pairs of clusters that may be one, by margin, best first; those below 0 would not pass.

        What people put apart, and clusters to be ignored, are left out. Costs n²·d steps for n
        clusters.
        """
        limit = whole_number("limit", limit, "how many suggestions to make")
        glance = self._glance()
        return glance.merges(limit) if glance else []

    def suggest_splits(self, limit: int = 20) -> list[SplitSuggestion]:
        """Edges that hold clusters together by the least margin, weakest first."""
        limit = whole_number("limit", limit, "how many suggestions to make")
        glance = self._glance()
        return glance.splits(limit) if glance else []

    def _look_at(self, cluster_id: int) -> tuple[int, Glance]:
        """A live cluster of vectors that are tracked, and all there is."""
        live = self._live(cluster_id)
        self._check_tracked("exemplars()")
        glance = self._aside()
        assert glance is not None, "there is a cluster"
        return live, glance

    def _shown(self, state: State, node: int) -> tuple[int, ...]:
        """Vectors of a subcluster for a person to look at."""
        fetch = None if self._keep is None else self._keep.rows
        return examples.central(state, node, fetch, limit=review.SHOWN)

    def _glance(self) -> Glance | None:
        """What is there now, until the next change; None: nothing yet."""
        if self._engine is None:
            return None
        laws = self._laws()
        return Glance(self.state(), laws, self._ledger.ignored, self._factory.unions)

    def _aside(self) -> Glance | None:
        """The same, to be used at any time by any thread."""
        if self._engine is None:
            return None
        ledger = copy.deepcopy(self._synced())
        return Glance(self.state(), Laws.of(ledger), ledger.ignored, self._factory.unions)
