"""Why a stored vector is in its cluster: similarities, and what people said."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from linkstream.clusterer.core import Core, Fixed
from linkstream.clusterer.near import NearCluster, near_vectors
from linkstream.engine.comparison import directions, similarities
from linkstream.engine.corrections import share
from linkstream.engine.state import Integers
from linkstream.identity.ledger import SPOKEN

_NEXT = 3  # other clusters that are named


@dataclass(frozen=True, slots=True)
class Standing:
    """How a stored vector stands to its cluster and to others.

    Attributes:
        vector: its number.
        cluster: its cluster.
        subcluster: its subcluster.
        companions: the other vectors of its cluster and of its subcluster.
        similarity: to the other vectors of its cluster as a whole; None without others, or if
            vectors are not kept.
        subcluster_similarity: the same, of its subcluster.
        required: the similarity to a subcluster that lets a vector join it.
        others: the most similar other clusters.
        corrections: what people said about this vector, oldest first: the verb, and what it was
            about.
        probability: that the decision on its arrival was right; None if it is unknown.
    """

    vector: int
    cluster: int
    subcluster: int
    companions: tuple[int, int]
    similarity: float | None
    subcluster_similarity: float | None
    required: float
    others: tuple[NearCluster, ...]
    corrections: tuple[tuple[str, int, int], ...]
    probability: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the reasons in words."""
        return {**asdict(self), "words": list(self.words())}

    def words(self) -> tuple[str, ...]:
        """Return the reasons as sentences."""
        return tuple(filter(None, (self._said(), self._within(), self._beside(), self._told())))

    def _said(self) -> str:
        return " ".join(f"{_in_words(self.vector, each)}." for each in self.corrections)

    def _within(self) -> str:
        everyone, group = self.companions
        if not everyone:
            return "It is the only vector of its cluster."
        if self.similarity is None:
            return f"It is with {_counted(everyone)}; vectors are not kept, so nothing is measured."
        found = (
            f"Its similarity to the {_counted(everyone)} of its cluster is {self.similarity:.3f}"
        )
        near = self.subcluster_similarity
        if near is None or group in (0, everyone):
            return f"{found}."
        return f"{found}, and {near:.3f} to the {group} nearest; {self.required:.3f} lets one join."

    def _beside(self) -> str:
        if not self.others:
            return ""
        next_one = max(self.others, key=lambda each: each.similarity)
        if self.similarity is not None and next_one.similarity > self.similarity:
            return f"Cluster {next_one.cluster} is nearer: {next_one.similarity:.3f}."
        return f"The next cluster is {next_one.cluster}, with {next_one.similarity:.3f}."

    def _told(self) -> str:
        known = self.probability
        return "" if known is None else f"When it arrived, the decision was {known:.0%} sure."


def standing(core: Core, vector: int) -> Standing:
    """Return why a stored vector is where it is; reads its cluster and the sums of the others."""
    node, number = core.holder(vector), int(vector)
    engine, ledger = core.running(), core.up_to_date_ledger()
    part = engine.parts(cluster := engine.cluster_of(node))
    row = int(np.searchsorted(part.numbers, node))
    counts = int(part.counts.sum()) - 1, int(part.counts[row]) - 1
    scores: list[float | None] = [None, None]
    others: list[NearCluster] = []
    if core.vectors is not None:
        q = core.kept([number])[0]
        own = share(q, ledger.missing_weights.get(number, 0))
        totals = part.sums.sum(axis=0), part.sums[row]
        pairs = zip(counts, totals, strict=True)
        scores = [_score(q, total - own) if count else None for count, total in pairs]
        others = near_vectors(core, [number], _NEXT)
    pins = ledger.pins_at(node, number)
    said = (SPOKEN.match(law.text) for law in ledger.book.of_pins(pins) if law.level >= 0)
    texts = dict.fromkeys((each[1], int(each[2]), int(each[3])) for each in said if each)
    return Standing(
        number,
        cluster,
        node,
        counts,
        similarity=scores[0],
        subcluster_similarity=scores[1],
        required=core.origin.thresholds.subcluster_similarity,
        others=tuple(others),
        corrections=tuple(texts),
        probability=_probability(core, number),
    )


def _score(q: Fixed, rest: Integers) -> float:
    units = directions(np.stack([q.astype(np.int64), rest]))
    return float(similarities(units[:1], units[1:])[0])


def _probability(core: Core, number: int) -> float | None:
    if core.confidence.holding() is None:
        return None
    told = float(core.confidence.told_at(np.array([number], dtype=np.int64))[1][0])
    return told if told == told else None


def _in_words(vector: int, said: tuple[str, int, int]) -> str:
    """Return in words what a person said about a vector."""
    verb, a, b = said
    if verb == "move":
        return "A person moved it here"
    relation = "the same as" if verb == "same" else "different from"
    return f"A person said that it is {relation} vector {b if a == vector else a}"


def _counted(count: int) -> str:
    return f"{count} other vector{'s' * (count > 1)}"
