"""Labels of segments by clusters and time, for `Diarizer` with a delay.

The clusterer decides on each segment by itself; `turn_model` adds that a speaker mostly goes on
speaking. Labels of the clusterer that change later (splits, joins, corrections) are followed.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.adapters.log_reading import UNDECIDED, News
from linkstream.adapters.turns import Span
from linkstream.errors import ArgumentError
from linkstream.space import Space
from linkstream.turn_model import Chapters, LiveLabels, TimeModel, Window, Windows, fixed_point

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DELAY_MAX = 3600.0
# A window counts for its new speech, and at most for this share of its length. The first windows
# after a pause would count much more than their successors, and often hold another speaker as well.
SHARE_MAX = 0.25
# Kinds of events that change no label of an earlier segment.
_LABELS_STAY = {
    *("created", "joined", "linked", "weighed", "grouped", "named", "ignored"),
    *("judged", "compared", "drifted", "deferred", "accepted"),
}


class TimedLabels:
    """Final and current labels of the segments of one recording.

    Args:
        space: the space of the vectors.
        delay: seconds after the end of a segment until its label is final.
        model: parameters of the time model.
    """

    def __init__(self, space: Space, delay: float, model: TimeModel) -> None:
        self._space = space
        self._live = LiveLabels(model, delay, self._windows)
        self._chapters = Chapters(model, self._windows)
        self._rows = np.empty((0, 0), dtype=np.int16)  # rounded vectors
        self._milliseconds = array("q")  # that each segment counts for
        self._middles = array("d")
        self._latest = 0.0  # end of speech so far
        self._last_start = 0.0
        self._labels = array("q")  # labels of the clusterer, as far as the model knows them

    @property
    def n_final(self) -> int:
        """Number of segments whose label is final."""
        return len(self._labels) - self._live.n_open

    def check(self, span: Span, group: str | None) -> None:
        """Raise ArgumentError if a segment cannot be the next one of one speaker at a time."""
        if group is not None:
            raise ArgumentError(
                f"group={group!r} for a diarizer with a delay",
                expected="segments of one speaker at a time",
                remedy="A front end that hears several speakers at once needs one without a delay.",
            )
        if span[0] < self._last_start:
            raise ArgumentError(
                f"a segment from {span[0]:g} after one from {self._last_start:g}",
                expected="segments in order of their starts",
                remedy="Sort the segments by their starts.",
            )

    def row(self, embedding: npt.ArrayLike) -> Floats:
        """Return the vector of a segment, centred and rounded.

        Args:
            embedding: vector of the segment, as the clusterer got it.
        """
        rows = np.asarray(embedding, dtype=np.float32).reshape(1, -1)
        found: Floats = fixed_point(self._space.centre(rows))[0]
        return found

    def rows(self) -> list[Floats]:
        """Return the vectors of all segments, as `row` does."""
        return list(self._rows[: len(self._labels)].astype(np.float64))

    def add(self, span: Span, row: Floats, label: int) -> None:
        """Add a segment with the label that the clusterer gave it.

        Args:
            span: start and end.
            row: vector of the segment, as `row` returns it.
            label: cluster of the segment; negative if its vector is held.
        """
        begin = max(span[0], self._latest) if self._middles else span[0]
        new = min(span[1] - begin, (span[1] - span[0]) * SHARE_MAX)
        self._milliseconds.append(max(round(1000 * new), 1))
        self._middles.append((span[0] + span[1]) / 2)
        self._latest, self._last_start = max(self._latest, span[1]), span[0]
        self._keep(row)
        self._labels.append(label)
        window = self._window(len(self._labels) - 1, span[1])
        self._live.move(window, None, _cluster(label))
        self._live.add(window)

    def follow(self, labels: Integers) -> None:
        """Take over the present labels of the clusterer, negative for one in no cluster.

        Args:
            labels: label of each segment.
        """
        known = np.frombuffer(self._labels, dtype=np.int64).copy()
        for place in np.flatnonzero(known != labels).tolist():
            old, new = int(known[place]), int(labels[place])
            self._live.move(self._window(place, 0.0), _cluster(old), _cluster(new))
            self._labels[place] = new

    def is_stale(self, news: News) -> bool:
        """Return whether new events may have changed labels of earlier segments.

        Args:
            news: the new events.
        """
        return news is None or any(event.kind not in _LABELS_STAY for event in news)

    def settled(self, known: list[int], *, ended: bool = False) -> list[int]:
        """Return the labels of segments that have become final, in order; or UNDECIDED.

        Args:
            known: clusters with names, which are speakers in any case.
            ended: whether the recording has ended.
        """
        return [_speaker(label) for label in self._live.settled(known, ended=ended)]

    def open_labels(self, known: list[int]) -> list[int]:
        """Return the labels, so far, of the segments that are not final.

        Args:
            known: as for `settled`.
        """
        return [_speaker(label) for label in self._live.open_labels(known)]

    def whole(self, labels: Integers, known: list[int]) -> Integers:
        """Return all labels, re-estimated with the whole recording; −1 stays.

        UNDECIDED becomes the label of a speaker, if there is one.

        Args:
            labels: present labels of the clusterer.
            known: as for `settled`.
        """
        return self._chapters.labels(labels, np.array(known, dtype=np.int64))

    def _windows(self, kept: Integers) -> Windows:
        middles = np.frombuffer(self._middles, dtype=np.float64)[kept]
        milliseconds = np.frombuffer(self._milliseconds, dtype=np.int64)[kept]
        return Windows(
            self._rows[kept].astype(np.float64),
            milliseconds.astype(np.float64),
            np.maximum(np.diff(middles, prepend=middles[0]), 0.0),
        )

    def _window(self, place: int, end: float) -> Window:
        before = self._middles[max(place - 1, 0)]
        return Window(
            place,
            self._rows[place].astype(np.float64),
            self._milliseconds[place],
            max(self._middles[place] - before, 0.0),
            end,
        )

    def _keep(self, row: Floats) -> None:
        """Append a rounded vector to the rows."""
        n = len(self._labels)
        if n == len(self._rows):
            more = np.empty((max(64, n), len(row)), dtype=np.int16)
            self._rows = np.vstack([self._rows.reshape(-1, len(row)), more])
        self._rows[n] = row


def _cluster(label: int) -> int | None:
    return label if label >= 0 else None


def _speaker(label: int) -> int:
    return label if label >= 0 else UNDECIDED


def mean_direction(embeddings: Sequence[npt.ArrayLike]) -> npt.NDArray[np.float32]:
    """Return the mean of the embeddings of one speaker, each at unit length.

    Args:
        embeddings: vectors of one dimension.
    """
    rows = [np.asarray(each, dtype=np.float64).reshape(-1) for each in embeddings]
    sizes = sorted({len(row) for row in rows})
    lengths = [float(np.linalg.norm(row)) for row in rows]
    if len(sizes) > 1 or not all(0 < length < np.inf for length in lengths):
        raise ArgumentError(
            f"a run with embeddings of dimensions {sizes} and lengths from {min(lengths):g}",
            expected="finite vectors of one dimension, none of them zero",
            remedy="Leave out segments without speech.",
        )
    total = sum(row / length for row, length in zip(rows, lengths, strict=True))
    return np.asarray(total, dtype=np.float32)


def check_model(model: Any) -> TimeModel:
    """Return the parameters of the evidence of time; raise ArgumentError if they are none.

    Args:
        model: parameters, or None for the defaults.
    """
    if model is None or isinstance(model, TimeModel):
        return model or TimeModel()
    raise ArgumentError(
        f"model={model!r:.80} for a diarizer",
        expected="a TimeModel, or None",
        remedy="Pass model=TimeModel(...) of linkstream.turn_model, or leave it out.",
    )


def check_delay(delay: Any) -> float:
    """Return the delay; raise ArgumentError if it is not a number of seconds."""
    number = isinstance(delay, (int, float, np.number)) and not isinstance(delay, bool)
    if not (number and 0 <= delay <= DELAY_MAX):
        raise ArgumentError(
            f"delay {delay!r}",
            expected=f"seconds from 0 to {DELAY_MAX:g}, or None",
            remedy="It is how long after a segment its speaker becomes final.",
        )
    return float(delay)
