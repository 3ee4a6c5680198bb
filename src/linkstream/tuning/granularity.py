"""Runs along the line of a preset, and the granularity that suits the vectors.

Links runs at eleven places of the line, with the options of the preset. A place is scored by
pairs or groups as in `grid`, or by structure. The structure is the separation alone: how much
nearer the rest of its own cluster is to a vector than the next cluster. Along a line it has one
wide maximum, where clusters are neither lumped together nor shattered. docs/tuning.md has the
scores of this choice on labelled sets.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.presets import Line
from linkstream.tuning import grid
from linkstream.tuning.grid import GridRuns
from linkstream.tuning.measurements import Floats, Rows

STEPS = 11
PLACES = tuple(np.linspace(0.0, 1.0, STEPS).round(4).tolist())
_SEPARATION_MIN = 0.2  # below, no place has separate clusters


class Scale(Protocol):
    """A line of thresholds and the options of `Links` that go with it, such as a preset."""

    @property
    def line(self) -> Line:
        """The thresholds by granularity."""

    @property
    def evidence(self) -> str:
        """As for `Links`."""

    @property
    def heal(self) -> str | None:
        """As for `Links`."""


def run_line(sample: Rows, scale: Scale, places: npt.ArrayLike = PLACES) -> GridRuns:
    """Run Links over unit vectors of the space at some places of a line, in the given order."""
    thresholds = tuple(scale.line.at(float(place)) for place in np.asarray(places))
    options = options_of(scale)
    partitions = [[grid.partition(each, sample, options)] for each in thresholds]
    similarity = sample @ sample.T
    return grid.measured((len(thresholds),), thresholds, np.array(partitions), similarity)


def options_of(scale: Scale) -> dict[str, Any]:
    """Return the options of `Links` for vectors that are centred already."""
    return {"evidence": scale.evidence, "heal": scale.heal}


def score_by_structure(runs: GridRuns) -> Floats:
    """Return the smoothed separation of each place."""
    return grid.smooth(runs.separation, runs.shape)


def doubts(score: Floats) -> list[str]:
    """Return the reasons not to trust the place with the best separation."""
    if float(np.max(score)) < _SEPARATION_MIN:
        return ["the clusters are separate at no level of the preset"]
    if int(np.argmax(score)) == len(score) - 1:
        return ["the finest clusters are the most separate, as if most vectors had a near copy"]
    return []
