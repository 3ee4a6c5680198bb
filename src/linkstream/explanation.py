"""Why a vector gets the answer it gets: the nearest subclusters beside what each test asks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine.contract import Candidate, Engine, Kind


@dataclass(frozen=True, slots=True)
class Explanation:
    """What would happen to a vector, and the evidence.

    Attributes:
        kind: "joined", "linked" or "new".
        cluster: the cluster it would belong to; None where it would be new.
        nearest: the most similar subclusters, best first; the first is J (equation 19).
        runner_up: the most similar subcluster of any other cluster than J's.
        threshold: what J's similarity was judged by: T_s if it joins, else s~(k_J).
        margin: J's similarity less that threshold.
    """

    kind: Kind
    cluster: int | None
    nearest: tuple[Candidate, ...]
    runner_up: Candidate | None
    threshold: float | None
    margin: float | None

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.nearest:
            return "new cluster: nothing has been added yet"
        lines = [_VERDICTS[self.kind].format(c=self.nearest[0], threshold=self.threshold)]
        lines += [f"  {_describe(candidate)}" for candidate in self.nearest]
        if self.runner_up is not None:
            lines.append(f"next cluster: {_describe(self.runner_up)}")
        return "\n".join(lines)


_VERDICTS: dict[Kind, str] = {
    "joined": "joins subcluster {c.subcluster} of cluster {c.cluster}: "
    "similarity {c.similarity:.4f} reaches T_s {threshold:.4f}",
    "linked": "new subcluster in cluster {c.cluster}: similarity {c.similarity:.4f} to "
    "subcluster {c.subcluster} reaches s~({c.count}) {threshold:.4f}",
    "new": "new cluster: similarity {c.similarity:.4f} to the nearest subcluster, "
    "{c.subcluster} of cluster {c.cluster}, is below s~({c.count}) {threshold:.4f}",
}


def explain(engine: Engine | None, vector: npt.NDArray[np.int32], *, limit: int) -> Explanation:
    """Rank the subclusters for one vector, and ask the engine what it would do with it."""
    ranked = _ranked_to_another_cluster(engine, vector, limit) if engine else []
    if engine is None or not ranked:
        return Explanation("new", None, (), None, None, None)
    best = ranked[0]
    kind = engine.ask(vector[np.newaxis]).at(0).kind
    threshold = best.join_threshold if kind == "joined" else best.link_threshold
    return Explanation(
        kind=kind,
        cluster=None if kind == "new" else best.cluster,
        nearest=tuple(ranked[:limit]),
        runner_up=next((c for c in ranked if c.cluster != best.cluster), None),
        threshold=threshold,
        margin=best.similarity - threshold,
    )


def _ranked_to_another_cluster(
    engine: Engine, vector: npt.NDArray[np.int32], limit: int
) -> list[Candidate]:
    # The runner-up of another cluster may stand behind many subclusters of the first.
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
