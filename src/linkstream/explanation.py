"""Explanations of answers: the nearest subclusters of a vector, with the threshold of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine.contract import Candidate, Engine, Kind
from linkstream.identity import counterfactual
from linkstream.identity.counterfactual import Judged


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for a vector, the evidence for it, and what would change it.

    Attributes:
        kind: "joined", "linked" or "new".
        cluster: the cluster of the vector; None if the vector would start a new one.
        nearest: the most similar subclusters, best first; the first is J (equation 19).
        runner_up: the most similar subcluster of another cluster than J's, or None.
        judged: the subcluster or cluster that equation 21 is applied to: J, or with
            `evidence="cluster"` the cluster with the greatest margin.
        threshold: the threshold that decided: T_s if the vector joins, else s~ for `judged`.
        margin: the similarity less that threshold.
        to_join: how much more similar to J the vector must be to join J; None if it joins.
        to_link: how much more similar to `judged` the vector must be to be linked; None unless
            it would start a new cluster.
        changes: sentences that say what would change the answer.
        cluster_margin: as in `Decision`; None if margins are off or there is no cluster.
        probability: that the answer is right; None if unknown (`links.confidence.why`).
    """

    kind: Kind
    cluster: int | None
    nearest: tuple[Candidate, ...]
    runner_up: Candidate | None
    judged: Judged | None
    threshold: float | None
    margin: float | None
    to_join: float | None = None
    to_link: float | None = None
    changes: tuple[str, ...] = ()
    cluster_margin: float | None = None
    probability: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.nearest:
            return "new cluster: no vector has been added yet"
        lines = [self._first_line()]
        lines += [f"  {_describe(candidate)}" for candidate in self.nearest]
        if self.runner_up is not None:
            lines.append(f"next cluster: {_describe(self.runner_up)}")
        if self.probability is not None:
            margin = "" if self.cluster_margin is None else f", margin {self.cluster_margin:+.4f}"
            lines.append(f"right with probability {self.probability:.3f}{margin} to whole clusters")
        lines += [f"change: {change}" for change in self.changes]
        return "\n".join(lines)

    def _first_line(self) -> str:
        best, judged = self.nearest[0], self.judged
        if self.kind == "joined" or judged is None:
            return (
                f"joins subcluster {best.subcluster} of cluster {best.cluster}: "
                f"similarity {best.similarity:.4f} reaches T_s {self.threshold:.4f}"
            )
        if judged.subcluster is None:
            to, whom = "to the whole cluster", f"the whole of cluster {judged.cluster}"
        else:
            to = f"to subcluster {judged.subcluster}"
            whom = f"the nearest subcluster, {judged.subcluster} of cluster {judged.cluster},"
        threshold = f"s~({judged.mass:.6g}) {self.threshold:.4f}"
        if self.kind == "linked":
            return (
                f"new subcluster in cluster {judged.cluster}: similarity "
                f"{judged.similarity:.4f} {to} reaches {threshold}"
            )
        return f"new cluster: similarity {judged.similarity:.4f} to {whom} is below {threshold}"


def explain(engine: Engine | None, vector: npt.NDArray[np.int32], *, limit: int) -> Explanation:
    """Explain what the engine would do with a vector, without adding it.

    Args:
        engine: the engine; None if no vector was added yet.
        vector: the vector in fixed point.
        limit: number of subclusters in `nearest`.
    """
    ranked = _ranked_to_another_cluster(engine, vector, max(limit, 2)) if engine else []
    if engine is None or not ranked:
        return Explanation("new", None, (), None, None, None, None)
    best, answer = ranked[0], engine.ask(vector[np.newaxis]).at(0)
    asked = counterfactual.asked(engine, vector, ranked)
    judged = asked.best()
    if answer.kind != "joined" and answer.similarity is not None and answer.threshold is not None:
        # The engine's own figures, exact to the last bit.
        judged = replace(judged, similarity=answer.similarity, threshold=answer.threshold)
    joined = answer.kind == "joined"
    threshold = best.join_threshold if joined else judged.threshold
    return Explanation(
        kind=answer.kind,
        cluster=None if answer.kind == "new" else answer.cluster,
        nearest=tuple(ranked[:limit]),
        runner_up=next((c for c in ranked if c.cluster != best.cluster), None),
        judged=judged,
        threshold=threshold,
        margin=(best if joined else judged).similarity - threshold,
        to_join=None if joined else best.join_threshold - best.similarity,
        to_link=-judged.margin if answer.kind == "new" else None,
        changes=tuple(counterfactual.changes(answer.kind, ranked, judged, asked)),
        cluster_margin=answer.cluster_margin,
    )


def _ranked_to_another_cluster(
    engine: Engine, vector: npt.NDArray[np.int32], limit: int
) -> list[Candidate]:
    # Many subclusters of the first cluster may rank before the first one of another cluster.
    while True:
        ranked = engine.ranked(vector, limit)
        if len(ranked) < limit or any(c.cluster != ranked[0].cluster for c in ranked):
            return ranked
        limit *= 4


def _describe(c: Candidate) -> str:
    return (
        f"cluster {c.cluster}, subcluster {c.subcluster} of {c.count}: "
        f"similarity {c.similarity:.4f}, join at {c.join_threshold:.4f}, "
        f"link at {c.link_threshold:.4f}"
    )
