"""Decisions: the outcome of one vector, and those of a batch as columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["joined", "linked", "new", "held"]
KINDS: tuple[Kind, ...] = ("joined", "linked", "new", "held")
JOINED, LINKED, NEW, HELD = range(4)

Row = tuple[int, int, int, float, float, float]  # the columns of `Decisions`, in order


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one vector.

    Attributes:
        cluster: the ID of the cluster that holds the vector; −1 if it is held.
        subcluster: the number of the subcluster that holds the vector; −1 if it is held.
        kind: "joined" a subcluster, "linked" to one, "new": began a cluster, or "held": unsure, and
            in no cluster yet (`Links.accept`).
        similarity: to J, the most similar subcluster (equation 19). None if no subcluster reaches
            the lowest possible threshold.
        threshold: the threshold that the similarity was compared with, or None.
        sequence: the vector's number, in order of arrival from 0.
        cluster_margin: the similarity to a cluster as a whole, less s~(k, 1) for its k vectors,
            before the vector is added (docs/choices.md, "cluster margin"). None if margins are
            off or no cluster was there.
        probability: that the decision is right; None if unknown (`links.confidence.why`).
    """

    cluster: int
    subcluster: int
    kind: Kind
    similarity: float | None
    threshold: float | None
    sequence: int
    cluster_margin: float | None = None
    probability: float | None = None

    def as_batch(self) -> Decisions:
        """Return the decision as a batch of one."""
        near = self.similarity is not None and self.threshold is not None
        figures = (self.similarity, self.threshold) if near else (math.nan, math.nan)
        margin = math.nan if self.cluster_margin is None else self.cluster_margin
        row = (self.cluster, self.subcluster, KINDS.index(self.kind), *figures, margin)
        batch = Decisions.of(self.sequence, [row])  # type: ignore[list-item]
        if self.probability is None:
            return batch
        return replace(batch, probability=np.array([self.probability]))

    @property
    def tested(self) -> Kind:
        """The kind by the tests alone: of a vector that is held, "linked" or "new"."""
        if self.kind != "held":
            return self.kind
        margin = self.margin
        return "linked" if margin is not None and margin >= 0.0 else "new"

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain values for JSON."""
        return {
            "cluster": self.cluster,
            "subcluster": self.subcluster,
            "kind": self.kind,
            "similarity": self.similarity,
            "threshold": self.threshold,
            "margin": self.margin,
            "sequence": self.sequence,
            "cluster_margin": self.cluster_margin,
            "probability": self.probability,
        }

    @property
    def margin(self) -> float | None:
        """Return similarity − threshold, or None."""
        if self.similarity is None or self.threshold is None:
            return None
        return self.similarity - self.threshold


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of a batch as columns; NaN stands for a figure that is None."""

    first_sequence: int
    cluster: npt.NDArray[np.int64]
    subcluster: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int8]
    similarity: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    cluster_margin: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64] | None = None  # None: all are unknown

    @classmethod
    def of(cls, first_sequence: int, rows: list[Row]) -> Decisions:
        """Make decisions from rows of cluster, subcluster, kind and figures."""
        columns = zip(*rows, strict=True) if rows else ((),) * 6
        types = np.int64, np.int64, np.int8, *(np.float64,) * 3
        return cls(
            first_sequence, *(np.array(c, dtype=t) for c, t in zip(columns, types, strict=True))
        )

    @classmethod
    def joined(cls, pieces: list[Decisions]) -> Decisions:
        """Concatenate the decisions of a batch that was added in pieces, without probabilities."""
        columns = zip(*(piece._columns() for piece in pieces), strict=True)
        return cls(pieces[0].first_sequence, *map(np.concatenate, columns))

    def part(self, start: int, length: int) -> Decisions:
        """Return `length` consecutive decisions from `start` on."""
        columns = (column[start : start + length] for column in self._columns())
        part = Decisions(self.first_sequence + start, *columns)
        if self.probability is None:
            return part
        return replace(part, probability=self.probability[start : start + length])

    @property
    def tested(self) -> npt.NDArray[np.int8]:
        """The kinds by the tests alone: for a vector that is held, LINKED or NEW."""
        held = np.where(self.similarity >= self.threshold, LINKED, NEW)
        return np.where(self.kind == HELD, held, self.kind).astype(np.int8)

    def _columns(self) -> tuple[npt.NDArray[Any], ...]:
        figures = self.similarity, self.threshold, self.cluster_margin
        return self.cluster, self.subcluster, self.kind, *figures

    def at(self, index: int) -> Decision:
        """Return the decision of one row."""
        similarity = float(self.similarity[index])
        near = similarity == similarity  # NaN differs from itself
        return Decision(
            cluster=int(self.cluster[index]),
            subcluster=int(self.subcluster[index]),
            kind=KINDS[self.kind[index]],
            similarity=similarity if near else None,
            threshold=float(self.threshold[index]) if near else None,
            sequence=self.first_sequence + index,
            cluster_margin=_number(self.cluster_margin, index),
            probability=_number(self.probability, index),
        )


def _number(column: npt.NDArray[np.float64] | None, index: int) -> float | None:
    """Return a figure; None if it is NaN or there is no column."""
    figure = math.nan if column is None else float(column[index])
    return None if figure != figure else figure
