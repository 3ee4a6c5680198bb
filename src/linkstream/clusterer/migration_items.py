"""What a migration brings to the other encoder: vectors, or sums where vectors are not kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from linkstream.clusterer.rebuilding import Plan, RebuildSource, Wanted
from linkstream.clusterer.reencoded import Reencoded, Rows
from linkstream.clusterer.spaces import Fetch
from linkstream.engine.state import Fixed, Integers
from linkstream.epochs import in_space, recentred
from linkstream.errors import ArgumentError, VectorError
from linkstream.identity import translation
from linkstream.identity.content import Content
from linkstream.identity.disagreements import Disagreement, Sides
from linkstream.identity.rebuild_sums import Subclusters, SubclusterSums, directed
from linkstream.identity.sum_disagreements import SumSides
from linkstream.identity.sum_translation import Gathered, SumPairs, blocks, missing_weights
from linkstream.identity.translation import Fitted
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

Tests = tuple[Thresholds, Thresholds]  # of the old encoder and of the new one


@dataclass(frozen=True, slots=True)
class Target:
    """What a migration leads to: a space, and thresholds.

    None are those of the clusterer; "from clusters" are found from the present clusters, as the
    other encoder sees them.
    """

    space: Space
    thresholds: Thresholds | str | None = None


class Items(Protocol):
    """What changes to the other encoder, at one moment."""

    @property
    def translation(self) -> Fitted | None:
        """The map for what is missing; None if nothing is. Raise ArgumentError for few pairs."""

    def wanted(self) -> Wanted:
        """Return the rebuild at the end."""

    def held_out(self, fitted: Fitted) -> tuple[Fixed, Fixed]:
        """Return what the map made of held-out vectors, and what they are, in the other space."""

    def sums(self) -> Integers:
        """Return the sums of the present subclusters in the other encoder."""

    def disagreements(self, plan: Plan, after: Integers, tests: Tests) -> tuple[Disagreement, ...]:
        """Return where the encoders disagree; `after` is the cluster of each item of the plan."""


@dataclass(frozen=True)
class KeptVectors:
    """Vectors that are kept: those that are missing are translated, one by one.

    Attributes:
        source: the clusterer.
        fetch: reads its vectors by number.
        received: the vectors of the other encoder, by number.
        target: the space and the thresholds that the migration leads to.
        there: the vectors that were not removed and were re-embedded.
        missing: those that were not re-embedded.
    """

    source: RebuildSource
    fetch: Fetch
    received: Reencoded
    target: Target
    there: Integers
    missing: Integers

    @cached_property
    def translation(self) -> Fitted | None:
        """The map for the vectors that are missing; None if none are."""
        if not len(self.missing):
            return None
        self._check_ready()
        return translation.fitted(self._pairs(), len(self.there))

    def wanted(self) -> Wanted:
        """Return a rebuild with the vectors of the other encoder."""
        return Wanted(self.target.thresholds, self.target.space, self.vectors)

    def held_out(self, fitted: Fitted) -> tuple[Fixed, Fixed]:
        """Return vectors in the other space."""
        expected = (fitted.expected / 2.0**30).astype(np.float32)
        one, other = (in_space(self.target.space, each) for each in (fitted.held_out, expected))
        return one, other

    def sums(self) -> Integers:
        """Return the sums of the vectors that are there, and of the translated ones."""
        state, rows = self.source.state, self.vectors
        live = np.flatnonzero(state.vectors >= 0)
        missing = missing_weights(state, self.source.ledger)
        read = lambda numbers: in_space(self.target.space, rows[numbers])  # noqa: E731
        return Gathered.of(state, missing, live, read, rows.shape[1]).sums

    def disagreements(self, plan: Plan, after: Integers, tests: Tests) -> tuple[Disagreement, ...]:
        """Return sets of vectors."""
        assert isinstance(plan.content, Content), "vectors were clustered"
        sides = Sides(plan.content, plan.partition.clusters, after, self.fetch, tests)
        return sides.disagreements(plan.report.flows)

    @cached_property
    def vectors(self) -> Rows:
        """A vector of the other encoder for each number; 0 for those that were removed."""
        dimension = self._check_ready()
        found = np.zeros((self.source.state.n_vectors, dimension), dtype=np.float32)
        for numbers in blocks(self.there):
            found[numbers] = self.received.rows(numbers)
        for numbers in blocks(self.missing):
            found[numbers] = self._translated(numbers)
        return found

    def _translated(self, numbers: Integers) -> Rows:
        fitted = self.translation
        assert fitted is not None, "some are missing"
        rows = fitted.map(self._old(numbers))
        empty = ~rows.any(axis=1)
        if empty.any():
            number = int(numbers[empty][0])
            raise VectorError(
                f"vector {number}, whose translation is zero",
                expected="a vector that is not at right angles to all that were re-embedded",
                remedy="Re-embed it, or remove it.",
            )
        return rows

    def _check_ready(self) -> int:
        """Return the dimension; raise ArgumentError if too few pairs are there to translate."""
        dimension, n = self.received.dimension(), len(self.there)
        few = len(self.missing) and n < translation.LEAST
        if dimension is None or few:
            raise ArgumentError(
                f"{n} of {n + len(self.missing)} vectors re-embedded",
                expected=f"all of them, or {translation.LEAST} from which to translate the others",
                remedy="Add more first; missing() lists what is left.",
            )
        return dimension

    def _pairs(self) -> Iterator[tuple[Fixed, Fixed]]:
        for numbers in blocks(self.there):
            yield self._old(numbers), in_space(Space(), self.received.rows(numbers))

    def _old(self, numbers: Integers) -> Fixed:
        """Return vectors of the present encoder, not centred."""
        fixed, space = self.fetch(numbers), self.source.space
        return fixed if space.mean is None else recentred(fixed, space, Space())


@dataclass(frozen=True)
class Sums:
    """Sums of subclusters, of vectors that are not kept: what is missing of them is translated.

    Attributes:
        source: the clusterer.
        received: the vectors of the other encoder by number, some with their old vectors.
        target: the space and the thresholds that the migration leads to.
        there: the vectors that were not removed and were re-embedded.
    """

    source: RebuildSource
    received: Reencoded
    target: Target
    there: Integers

    @cached_property
    def translation(self) -> Fitted | None:
        """The map for the sums of what is missing; None if nothing is."""
        places, _, _ = self._known.rest()
        if not len(places):
            return None
        old, (left, right) = self._with_old, self._known.directions()
        n = len(old) + len(left)
        if n < translation.LEAST:
            raise ArgumentError(
                f"{n} pairs of old and new vectors, or of subclusters, to translate sums by",
                expected=f"at least {translation.LEAST} of them, or all vectors re-embedded",
                remedy="Add more vectors, with their old vectors if they are at hand.",
            )
        found = [(self._old(some), self._new(some)) for some in blocks(old)]
        return translation.fitted([*found, (left, right)], n)

    def wanted(self) -> Wanted:
        """Return a rebuild with sums in the other encoder."""
        test = self.target.thresholds
        if isinstance(test, str):
            content = Content.of_some(self.source.state, self.source.ledger, self.there, self._new)
            test, _ = self.source.from_clusters(content, keep_join=False)
        return Wanted(test, self.target.space, SubclusterSums(directed(self.sums())))

    def held_out(self, fitted: Fitted) -> tuple[Fixed, Fixed]:
        """Return directions in the other space."""
        return in_space(Space(), fitted.held_out), fitted.expected

    def sums(self) -> Integers:
        """Return the sums of the re-embedded vectors, with the translated rest."""
        fitted = self.translation
        return self._known.sums(None if fitted is None else fitted.map)

    def disagreements(self, plan: Plan, after: Integers, tests: Tests) -> tuple[Disagreement, ...]:
        """Return sets of subclusters, each as one of its vectors."""
        assert isinstance(plan.content, Subclusters), "sums were clustered"
        sides = SumSides(self.source.state, plan.content, after, tests)
        return sides.disagreements(plan.report.flows)

    @cached_property
    def _with_old(self) -> Integers:
        """The numbers of the pairs: vectors that came with their old vectors."""
        pairs = self.received.old_numbers()
        return np.intersect1d(pairs, self.there) if self.source.state.track_vectors else pairs

    @cached_property
    def _known(self) -> SumPairs:
        state, dimension = self.source.state, self.received.dimension()
        if dimension is None:
            raise ArgumentError(
                "no vectors of the other encoder",
                expected="all of them, or some from which to translate the others",
                remedy="Add some first.",
            )
        missing = missing_weights(state, self.source.ledger)
        pairs = np.intersect1d(self._with_old, self.there)
        others = np.setdiff1d(self.there, pairs, assume_unique=True)
        return SumPairs.of(
            state,
            Gathered.of(state, missing, pairs, self._old, state.dimension),
            Gathered.of(state, missing, pairs, self._new, dimension),
            Gathered.of(state, missing, others, self._new, dimension),
        )

    def _new(self, numbers: Integers) -> Fixed:
        return in_space(self.target.space, self.received.rows(numbers))

    def _old(self, numbers: Integers) -> Fixed:
        return in_space(self.source.space, self.received.old_rows(numbers))
