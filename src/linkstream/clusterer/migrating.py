"""What a migration to another encoder computes, from one moment of a clusterer.

A *moment* has the state, the vectors as they are, and the vectors of the other encoder that came
so far. What is missing is translated by a linear map fitted on what is there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from linkstream.clusterer.migration_items import Items, KeptVectors, Sums, Target
from linkstream.clusterer.rebuilding import Prepared, RebuildSource, prepare
from linkstream.clusterer.reencoded import Reencoded, Rows
from linkstream.clusterer.spaces import Fetch
from linkstream.engine.contract import Engine
from linkstream.engine.linkage import Progress
from linkstream.engine.state import Fixed, Integers
from linkstream.epochs import in_space
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.migration_report import MigrationReport, MigrationStatus, TranslationLoss
from linkstream.identity.rebuild_sums import directed
from linkstream.identity.translation import Fitted
from linkstream.paper.thresholds import Thresholds


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

    @cached_property
    def items(self) -> Items:
        """What changes to the other encoder: vectors, or sums where vectors are not kept."""
        if self.source.kept:
            return KeptVectors(
                self.source, self.fetch, self.received, self.target, self.there, self.missing
            )
        return Sums(self.source, self.received, self.target, self.there)

    def status(self) -> MigrationStatus:
        """Return how far the migration is; where vectors are not tracked, all are missing."""
        state = self.source.state
        n = len(self.live) if state.track_vectors else int(state.counts.sum())
        return MigrationStatus(
            n_vectors=n,
            reencoded=len(self.there),
            missing=n - len(self.there),
            dimension=self.target.space.dimension or self.received.dimension(),
            model=self.target.space.model,
            pairs=len(self.received.old_numbers()),
            held=len(self.source.ledger.held),
        )

    def report(self, progress: Progress | None = None) -> MigrationReport:
        """Return what the rebuild at the end would change."""
        report = self.made(progress).plan.report
        return MigrationReport(self.status(), report, self.loss(), self.disagreements(progress))

    def made(self, progress: Progress | None = None) -> Prepared:
        """Return the rebuild at the end, computed once."""
        if self.prepared is None:
            wanted = self.items.wanted()
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
            self._disagreements = self.items.disagreements(plan, after, tests)
        return self._disagreements

    # Translation

    @property
    def translation(self) -> Fitted | None:
        """The map for what is missing; None if nothing is."""
        return self.items.translation

    def loss(self) -> TranslationLoss | None:
        """Return what is lost by translation; None if nothing is translated."""
        fitted = self.translation
        if fitted is None:
            return None
        answers = [self._answers(rows) for rows in self.items.held_out(fitted)]
        changed = np.count_nonzero(answers[0] != answers[1]) / len(fitted.expected)
        return TranslationLoss(fitted.n_pairs, fitted.cosine, float(changed))

    # Answers of the new model before the end

    def predicted(self, rows: Rows) -> Integers:
        """Return the cluster that vectors of the other encoder would get; −1 for a new one."""
        return self._answers(in_space(self.target.space, rows))

    def _answers(self, fixed: Fixed) -> Integers:
        return self.engine.ask(fixed).cluster

    @cached_property
    def engine(self) -> Engine:
        """The present clusters, with the sums of their vectors in the other encoder."""
        state, sums = self.source.state, directed(self.items.sums())
        present = replace(
            state,
            thresholds=self.thresholds,
            dimension=sums.shape[1],
            sums=sums,
            events=state.events[:0],
        )
        return self.source.factory.make(present, None)
