"""What a migration to another encoder computes, from one moment of a clusterer.

A *moment* has the state, the vectors as they are, and the vectors of the other encoder that came
so far. Items without one are translated by a linear map fitted on those with one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from linkstream.clusterer.rebuilding import Prepared, RebuildSource, Wanted, prepare
from linkstream.clusterer.reencoded import Reencoded, Rows
from linkstream.clusterer.spaces import Fetch
from linkstream.engine.contract import Engine
from linkstream.engine.linkage import Progress
from linkstream.engine.state import Fixed, Integers, State
from linkstream.epochs import in_space, recentred
from linkstream.errors import ArgumentError, NotTrackedError, VectorError
from linkstream.identity import translation
from linkstream.identity.content import Content
from linkstream.identity.disagreements import Disagreement, Sides
from linkstream.identity.migration_report import MigrationReport, MigrationStatus, TranslationLoss
from linkstream.identity.translation import Fitted
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_BLOCK = 65_536  # vectors at a time


@dataclass(frozen=True, slots=True)
class Target:
    """What a migration leads to: a space, and thresholds.

    None are those of the clusterer; "from clusters" are found from the present clusters, as the
    other encoder sees them.
    """

    space: Space
    thresholds: Thresholds | str | None = None


@dataclass
class Moment:
    """A clusterer and the vectors of another encoder, at one moment.

    Attributes:
        source: the clusterer.
        fetch: reads its vectors by number.
        received: the vectors of the other encoder, by number.
        target: the space and the thresholds that the migration leads to.
        prepared: the rebuild at the end, if it was computed.
    """

    source: RebuildSource
    fetch: Fetch
    received: Reencoded
    target: Target
    prepared: Prepared | None = None
    _disagreements: tuple[Disagreement, ...] | None = None

    @cached_property
    def live(self) -> Integers:
        """The vectors that were not removed, by number."""
        return np.flatnonzero(self.source.state.vectors >= 0)

    @cached_property
    def there(self) -> Integers:
        """Those of them that were re-embedded."""
        return np.intersect1d(self.live, self.received.numbers(), assume_unique=True)

    @cached_property
    def missing(self) -> Integers:
        """Those of them that were not."""
        return np.setdiff1d(self.live, self.there, assume_unique=True)

    def status(self) -> MigrationStatus:
        """Return how far the migration is."""
        return MigrationStatus(
            n_vectors=len(self.live),
            reencoded=len(self.there),
            missing=len(self.missing),
            dimension=self.target.space.dimension or self.received.dimension(),
            model=self.target.space.model,
        )

    def report(self, progress: Progress | None = None) -> MigrationReport:
        """Return what the rebuild at the end would change."""
        report = self.made(progress).plan.report
        return MigrationReport(self.status(), report, self.loss(), self.disagreements(progress))

    def made(self, progress: Progress | None = None) -> Prepared:
        """Return the rebuild at the end, computed once."""
        if self.prepared is None:
            wanted = Wanted(self.target.thresholds, self.target.space, self.vectors)
            self.prepared = prepare(self.source, self.fetch, wanted, progress)
        return self.prepared

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds of the other encoder."""
        found = self.target.thresholds
        if isinstance(found, str):
            return self.made().plan.thresholds
        return found or self.source.state.thresholds

    def disagreements(self, progress: Progress | None = None) -> tuple[Disagreement, ...]:
        """Return where the encoders disagree, with the margins of both."""
        if self._disagreements is None:
            plan = self.made(progress).plan
            partition, ids = plan.partition, plan.numbering.ids
            groups, places = np.unique(partition.vector_groups(), return_inverse=True)
            after = np.array([ids[group] for group in groups.tolist()], dtype=np.int64)[places]
            tests = self.source.state.thresholds, self.thresholds
            sides = Sides(partition.content, partition.clusters, after, self.fetch, tests)
            self._disagreements = sides.disagreements(plan.report.flows)
        return self._disagreements

    # The vectors of the other encoder

    @cached_property
    def vectors(self) -> Rows:
        """Return a vector of the other encoder for each number; 0 for those that were removed."""
        dimension = self._check_ready()
        found = np.zeros((self.source.state.n_vectors, dimension), dtype=np.float32)
        for numbers in _blocks(self.there):
            found[numbers] = self.received.rows(numbers)
        for numbers in _blocks(self.missing):
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
        dimension = self.received.dimension()
        few = len(self.missing) and len(self.there) < translation.LEAST
        if dimension is None or few:
            raise ArgumentError(
                f"{len(self.there)} of {len(self.live)} vectors re-embedded",
                expected=f"all of them, or {translation.LEAST} from which to translate the others",
                remedy="Add more first; missing() lists what is left.",
            )
        return dimension

    # Translation

    @cached_property
    def translation(self) -> Fitted | None:
        """The map for the items that are missing; None if none are."""
        if not len(self.missing):
            return None
        self._check_ready()
        return translation.fitted(self._pairs(), len(self.there))

    def _pairs(self) -> Iterator[tuple[Fixed, Fixed]]:
        for numbers in _blocks(self.there):
            yield self._old(numbers), in_space(Space(), self.received.rows(numbers))

    def _old(self, numbers: Integers) -> Fixed:
        """Return vectors of the present encoder, not centred."""
        fixed, space = self.fetch(numbers), self.source.space
        return fixed if space.mean is None else recentred(fixed, space, Space())

    def loss(self) -> TranslationLoss | None:
        """Return what is lost where vectors are translated; None if none are."""
        fitted = self.translation
        if fitted is None:
            return None
        expected = (fitted.expected / 2.0**30).astype(np.float32)
        answers = [self.predicted(rows) for rows in (fitted.held_out, expected)]
        changed = np.count_nonzero(answers[0] != answers[1]) / len(expected)
        return TranslationLoss(fitted.n_pairs, fitted.cosine, float(changed))

    # Answers of the new model before the end

    def predicted(self, rows: Rows) -> Integers:
        """Return the cluster that vectors of the other encoder would get; −1 for a new one."""
        return self.engine.ask(in_space(self.target.space, rows)).cluster

    @cached_property
    def engine(self) -> Engine:
        """The present clusters, with the sums of their vectors in the other encoder."""
        state = self.source.state
        fixed = in_space(self.target.space, self.vectors[self.live])
        missing = np.zeros(state.n_vectors, dtype=np.int64)
        for vector, weight in self.source.ledger.missing_weights.items():
            missing[vector] = weight
        owners = np.searchsorted(state.numbers, state.vectors[self.live])
        content = Content(self.live, fixed, missing[self.live])
        sums = content.sums(owners, len(state.numbers))
        return self.source.factory.make(self._state(sums), None)

    def _state(self, sums: Integers) -> State:
        state = self.source.state
        sums[~sums.any(axis=1), 0] = 1  # vectors that cancel out: any direction will do
        return replace(
            state,
            thresholds=self.thresholds,
            dimension=sums.shape[1],
            sums=sums,
            events=state.events[:0],
        )


def _blocks(numbers: Integers) -> Iterator[Integers]:
    for start in range(0, len(numbers), _BLOCK):
        yield numbers[start : start + _BLOCK]


def check_kept(*, kept: bool) -> None:
    """Raise NotTrackedError if a clusterer does not keep its vectors."""
    if not kept:
        raise NotTrackedError(
            "migrate in a clusterer that does not keep its vectors",
            expected="track_vectors=True and keep_vectors=True",
            remedy="Begin a new clusterer with the vectors of the other encoder.",
        )
