"""Thresholds for `rebuild`, tuned for themselves on labelled vectors.

A rebuild has no order of arrival and no answers at once, so its thresholds are two numbers, and
every pair of a grid can be tried: see identity/rebuild_search.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkstream.engine import choice
from linkstream.engine.state import Integers
from linkstream.epochs import in_space
from linkstream.identity.content import Content
from linkstream.identity.rebuild_search import Examples, Grid
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.tuning.inputs import LabelledVectors
from linkstream.tuning.objective import Objective

VECTORS_MAX = 2_500  # of the sample


class RebuildTuning(NamedTuple):
    """Thresholds for `rebuild`, and the objective of its labels on the tuned vectors."""

    thresholds: Thresholds
    score: float


def tuned_for_rebuilds(
    examples: LabelledVectors,
    space: Space,
    objective: Objective,
    *,
    join: float,
    seed: int,
    engine: str,
    threads: int | None,
) -> RebuildTuning:
    """Return the thresholds with the best neighbourhood on the grid; T_s is `join`.

    More than 2,500 vectors are sampled by identity.
    """
    rows = _sample(examples.y, seed)
    factory = choice.choose(engine, threads)
    fixed = in_space(space, examples.X[rows], factory.quantise)
    nothing = np.zeros(len(rows), dtype=np.int64)
    vectors = Examples.of(Content(np.arange(len(rows)), fixed, nothing), examples.y[rows])

    def score(tried: Examples, groups: Integers) -> float:
        return objective.of(tried.labels, groups)

    grid = Grid.over(*vectors.similarity_range(), join)
    scores = grid.scores(vectors, factory.unions, score)
    best = grid.best([scores])
    return RebuildTuning(grid.at(best), float(scores[best]))


def _sample(y: Integers, seed: int) -> Integers:
    """Return the rows of identities in a random order, until there are enough."""
    order = np.random.default_rng(seed).permutation(int(y.max()) + 1)
    place = np.argsort(order)[y]
    return np.sort(np.argsort(place, kind="stable")[:VECTORS_MAX])
