"""What to do with vectors whose decision is unsure: hold them, or let them weigh less.

C++ twin: policy.hpp. Cluster margins are compared with bounds that are stored; no probability is
computed here, so that all machines do the same (docs/confidence.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkstream.engine.decisions import NEW
from linkstream.engine.forest import FULL

if TYPE_CHECKING:
    from linkstream.engine.assess import Verdict
    from linkstream.engine.graph import Graph

NEVER = math.inf  # a bound that no margin reaches


@dataclass(frozen=True, slots=True)
class Doubt:
    """Which decisions are unsure, and what is done with their vectors.

    Attributes:
        joined: least cluster margin of a sure decision to join or to link.
        fresh: least margin, with its sign changed, of a sure new cluster.
        missing_weight: what an unsure vector lacks to the full weight in 256ths; FULL: it is held
            back, which changes no cluster.
    """

    joined: float
    fresh: float
    missing_weight: int

    @property
    def holds(self) -> bool:
        """Whether unsure vectors are held back."""
        return self.missing_weight == FULL

    def is_unsure(self, kind: int, margin: float) -> bool:
        """Return whether a decision is unsure; it is if the margin is unknown.

        >>> Doubt(0.1, 0.2, FULL).is_unsure(0, 0.15), Doubt(0.1, 0.2, FULL).is_unsure(NEW, -0.15)
        (False, True)
        """
        return not (-margin >= self.fresh if kind == NEW else margin >= self.joined)


class Policy:
    """What the reference engine does with new vectors whose decision is unsure."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.doubt: Doubt | None = None

    def lacking(self, verdict: Verdict) -> int:
        """Return what a new vector lacks to the full weight; FULL: it is held back.

        A vector is surely new if there is no other.
        """
        doubt = self.doubt
        if doubt is None or not self._graph.nodes:
            return 0
        unsure = doubt.is_unsure(verdict.kind, verdict.cluster_margin)
        return doubt.missing_weight if unsure else 0
