"""The part of `Links` by which people correct clusters and decide on unsure vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from linkstream.clusterer import corrections, policies
from linkstream.clusterer.learning import judge
from linkstream.clusterer.moving import move
from linkstream.clusterer.policies import HeldVector
from linkstream.clusterer.reader import LinksReader
from linkstream.confidence import Policy
from linkstream.engine.contract import Decision


class LinksCorrections(LinksReader):
    """Everything that a person can say about vectors and clusters."""

    def same(self, a: int, b: int, *, of: str = "vectors") -> None:
        """Declare two vectors, subclusters or clusters the same: they share a cluster from now on.

        `same` of clusters ties the identities, not every pair of vectors. It overrides earlier,
        more general corrections: if those keep `b` away, `b` moves to `a`.

        Args:
            a: number of the first.
            b: number of the second.
            of: what the numbers are: "vectors", "subclusters" or "clusters".

        Raises:
            ContradictionError: a correction of the same two forbids it; the error names it.
        """
        corrections.same(self.core, a, b, of=of)

    def different(self, a: int, b: int, *, of: str = "vectors") -> None:
        """Declare two vectors, subclusters or clusters different: they never share a cluster.

        If they share one now, the weakest edge between them is cut. Two vectors of one subcluster
        are separated: `b` goes into a cluster of its own.

        Args:
            a: number of the first.
            b: number of the second.
            of: what the numbers are: "vectors", "subclusters" or "clusters".

        Raises:
            ContradictionError: a correction of the same two forbids it; the error names it.
        """
        corrections.different(self.core, a, b, of=of)

    @overload
    def move(self, vector: int, cluster: int) -> Decision: ...

    @overload
    def move(self, vector: Sequence[int], cluster: int) -> list[Decision]: ...

    def move(self, vector: int | Sequence[int], cluster: int) -> Decision | list[Decision]:
        """Move a vector, with its share of the sums, into another cluster, where it stays.

        Several vectors move as one change: all or none, and one `undo` takes all back. They go
        into a new cluster together.

        Args:
            vector: number of the vector, or a list of several.
            cluster: ID of the cluster; −1 for a new one.
        """
        return move(self.core, vector, cluster)

    def retract(self, correction: int) -> None:
        """Take back one correction, and nothing that came after it.

        An edge that only this correction held is tested again. What `different` separated is not
        joined, and what `move` moved stays.

        Args:
            correction: number of the correction, from `corrections()` or an error.
        """
        corrections.retract(self.core, correction)

    def name(self, cluster: int, name: str, *, claim: bool = False) -> None:
        """Name a cluster that has no name. Clusters with different names are never joined.

        Args:
            cluster: ID of the cluster.
            name: the name, which no other cluster may have.
            claim: at a split, let the part with the largest subcluster keep ID and name.
        """
        corrections.name(self.core, cluster, name, claim=claim)

    def rename(self, cluster: int, name: str | None) -> None:
        """Change the name of a cluster.

        Args:
            cluster: ID of the cluster.
            name: the new name; None removes the name.
        """
        corrections.rename(self.core, cluster, name)

    def ignore(self, cluster: int, on: bool = True) -> None:
        """Leave a cluster out of suggestions and reviews; vectors still join it.

        Args:
            cluster: ID of the cluster.
            on: False puts it back.
        """
        corrections.ignore(self.core, cluster, on)

    def judge(self, vector: int, right: bool = True) -> None:
        """Say whether the decision on a vector was right; probabilities learn from it.

        Judge decisions as they come or at random, not those that look wrong (docs/confidence.md).

        Args:
            vector: number of the vector.
            right: whether most of its cluster was its identity, or a new cluster a new identity.
        """
        judge(self.core, vector, right)

    # Unsure vectors

    def accept(
        self,
        probability: float | None = None,
        *,
        new: float | None = None,
        unsure: str = "hold",
        weight: float = 0.5,
    ) -> Policy:
        """Say from which probability on decisions are taken, and what is done with the others.

        Held vectors get a number, and the label −1. They are asked again as the stream goes on, and
        now; `held` lists them, and `assign` and `remove` decide on them. With other settings than
        those of the model the policy rests. Vectors of groups, and prototypes, are always taken.

        Args:
            probability: the least probability of a sure decision, such as 0.95; None takes every
                vector as it comes, and those that are held.
            new: the least probability of a sure new cluster, if another; 0 takes all of them.
            unsure: what to do with an unsure vector: "hold" it, or let it "weigh" less.
            weight: how much it weighs then, from 0.05, below 1.

        Raises:
            ArgumentError: probabilities are unknown here, or never reach this one.
        """
        return policies.accept(self.core, probability, new=new, unsure=unsure, weight=weight)

    def assign(self, vector: int, cluster: int | None = None) -> Decision:
        """Decide on a vector that is held: put it into a cluster, a new one, or by the tests.

        In a given cluster it stays, as after `move`. To drop the vector, use `remove`.

        Args:
            vector: number of the vector.
            cluster: ID of the cluster; −1 for a new one; None for what the tests say now.
        """
        return policies.assign(self.core, vector, cluster)

    @property
    def policy(self) -> Policy:
        """What is done with unsure vectors; see `accept`."""
        return policies.policy(self.core)

    def held(self, *, limit: int = 20, before: int | None = None) -> list[HeldVector]:
        """Return the vectors that wait for a decision, newest first, and what they would get now.

        To read page by page, pass the last number of a page as `before`.

        Args:
            limit: how many vectors.
            before: only vectors with a lower number; None for all.
        """
        return policies.held(self.core, limit, before)
