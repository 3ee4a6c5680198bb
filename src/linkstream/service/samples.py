"""Samples: how many events, vectors and clusters a namespace had at which time.

The engine reads no clock and the journal has no times, so the service samples its counts while it
runs. Old samples are thinned: the older they are, the longer the steps between them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MOST = 32_768  # samples kept; beyond them the old ones are thinned
CORRECTED = 4_096  # samples right after a correction that thinning keeps
_WIDTH = 5
# Age in seconds, and the step between the samples that thinning keeps up to this age.
_STEPS = ((600, 1), (7_200, 10), (86_400, 60), (7 * 86_400, 300), (120 * 86_400, 3_600))
_LONGEST = 86_400  # the step of samples that are older still

Columns = npt.NDArray[np.int64]


class Sample(NamedTuple):
    """The counts of a namespace at one time, in milliseconds since 1970."""

    time: int
    events: int
    vectors: int
    clusters: int
    corrected: int = 0  # 1 if a correction came since the sample before


@dataclass(frozen=True, slots=True)
class Moment:
    """When something happened: by `time`, and after `after`; None where it is unknown.

    Both are in seconds since 1970.
    """

    time: float | None
    after: float | None

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values for JSON."""
        return {"time": self.time, "after": self.after}


class Samples:
    """The samples of a namespace, the oldest first."""

    def __init__(self, rows: Sequence[Sequence[int]] = ()) -> None:
        self._flat = array("q")
        for row in rows:
            self._flat.extend(row)

    def __len__(self) -> int:
        return len(self._flat) // _WIDTH

    def add(self, sample: Sample) -> Sample:
        """Add a sample and return it; a clock that went back does not go back here."""
        last = self.last
        if last is not None and sample.time < last.time:
            sample = sample._replace(time=last.time)
        self._flat.extend(sample)
        return sample

    @property
    def last(self) -> Sample | None:
        """The newest sample; None if there is none."""
        return Sample(*self._flat[-_WIDTH:]) if self._flat else None

    def rows(self) -> Columns:
        """Return all samples as rows."""
        return np.array(self._flat, dtype=np.int64).reshape(-1, _WIDTH)

    def thinned(self) -> Samples:
        """Return the samples that are kept when there are too many."""
        rows = self.rows()
        ages = (rows[-1, 0] - rows[:, 0]) / 1000
        bins = [age for age, _ in _STEPS]
        steps = np.array([step for _, step in _STEPS] + [_LONGEST]) * 1000
        step = steps[np.searchsorted(bins, ages)]
        slot = rows[:, 0] // step
        # The last sample of each step; a step changes where its length does.
        ends = np.flatnonzero((np.diff(slot) != 0) | (np.diff(step) != 0))
        corrected = np.flatnonzero(rows[:, 4])[-CORRECTED:]
        kept = np.unique(np.concatenate([[0], ends, corrected, [len(rows) - 1]]))
        return Samples(rows[kept].tolist())

    # When

    def of_events(self, events: Sequence[int]) -> list[Moment]:
        """Return when events happened, by their numbers."""
        rows = self.rows()
        return _moments(rows, np.searchsorted(rows[:, 1], np.array(events), side="right"))

    def of_vectors(self, vectors: Sequence[int]) -> list[Moment]:
        """Return when vectors came, by their numbers.

        An undo frees numbers, so a vector came after the last sample without it.
        """
        rows = self.rows()
        least = np.minimum.accumulate(rows[::-1, 2])[::-1] if len(rows) else rows[:, 2]
        return _moments(rows, np.searchsorted(least, np.array(vectors), side="right"))

    def timeline(self, now: float, seconds: float | None, bins: int) -> dict[str, Any]:
        """Return counts over time in bins of equal width up to `now`.

        Args:
            now: the end, in seconds since 1970.
            seconds: the length; None for all that is known.
            bins: how many bins.
        """
        rows = self.rows()
        known = rows[0, 0] / 1000 if len(rows) else now
        start = known if seconds is None else now - seconds
        width = max((now - start) / bins, 1.0)
        edges = now - width * np.arange(bins, -1, -1)
        found = np.searchsorted(rows[:, 0], edges * 1000, side="right") - 1
        seen = found >= 0
        columns = [
            np.where(seen, rows[np.maximum(found, 0), i], -1) if len(rows) else found
            for i in (2, 3)
        ]
        vectors, clusters = columns
        before = np.where(vectors[:-1] < 0, rows[0, 2] if len(rows) else 0, vectors[:-1])
        added = np.where(vectors[1:] < 0, 0, np.maximum(vectors[1:] - before, 0))
        return {
            "now": now,
            "start": float(edges[0]),
            "width": width,
            "known": known if len(rows) else None,
            "before": int(rows[0, 2]) if len(rows) else 0,
            "time": edges[1:].tolist(),
            "vectors": _known(vectors[1:]),
            "clusters": _known(clusters[1:]),
            "added": added.tolist(),
        }


def _known(values: Columns) -> list[int | None]:
    return [None if value < 0 else value for value in values.tolist()]


def _moments(rows: Columns, places: Columns) -> list[Moment]:
    times = rows[:, 0] / 1000
    return [
        Moment(
            float(times[place]) if place < len(rows) else None,
            float(times[place - 1]) if 0 < place <= len(rows) else None,
        )
        for place in places.tolist()
    ]
