"""A glance: what is there at one moment, to be looked at while the stream goes on.

Suggestions, reviews and proposals compare all clusters with one another, which takes long. A
glance shares nothing with the clusterer it was taken of, so that nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from linkstream.engine.linkage import Floats, Unions
from linkstream.engine.state import State
from linkstream.identity import exemplars, review, settling, suggestions
from linkstream.identity.exemplars import Exemplars, Fetch
from linkstream.identity.laws import Laws
from linkstream.identity.review import Question
from linkstream.identity.settling import Settlement
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds

Show = Callable[[State, int], tuple[int, ...]]  # vectors to show of a subcluster


@dataclass(frozen=True, eq=False, slots=True)
class Glance:
    """The graph, the laws and what is to be ignored."""

    state: State
    laws: Laws
    ignored: Collection[int]
    unions: Callable[[Floats, Floats, Floats, Thresholds], Unions]

    def merges(self, limit: int) -> list[MergeSuggestion]:
        """As `Links.suggest_merges`."""
        return suggestions.merges(self.state, limit, laws=self.laws, ignored=self.ignored)

    def splits(self, limit: int) -> list[SplitSuggestion]:
        """As `Links.suggest_splits`."""
        return suggestions.splits(self.state, limit, ignored=self.ignored)

    def questions(self, limit: int, show: Show) -> list[Question]:
        """As `Links.review_queue`."""
        return review.questions(
            self.state,
            laws=self.laws,
            ignored=self.ignored,
            limit=limit,
            show=lambda node: show(self.state, node),
        )

    def exemplars(self, cluster: int, fetch: Fetch, limit: int) -> Exemplars:
        """As `Links.exemplars`."""
        return exemplars.exemplars(self.state, cluster, fetch, limit=limit)

    def proposals(self) -> Settlement:
        """As `Links.settle`, which is not applied."""
        thresholds = self.state.thresholds
        changes, _ = settling.settle(
            self.state, thresholds, self.unions, laws=self.laws, asked=True
        )
        return changes
