"""Labels of windows while they arrive, each final after a delay.

A window is final once `delay` seconds have been heard after its end. Until then its label may
change: the best path through all windows that are not final is computed again for each new window,
from the score of the best path to the last final window. The cost of a window depends on the
delay and on the number of speakers, not on the length of the recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from linkstream.turn_model.chain import Floats, TimeModel, backward, forward, never

_TOUCH = 1e-6  # seconds: times nearer than this are equal


@dataclass(frozen=True, slots=True)
class Window:
    """One window of speech.

    Attributes:
        vector: rounded vector (`fixed_point`).
        milliseconds: speech that the window counts for.
        gap: seconds since the window before, from middle to middle.
        end: end in seconds.
    """

    vector: Floats
    milliseconds: int
    gap: float
    end: float


class LiveLabels:
    """Labels of the windows of one recording, final after a delay.

    Speakers are numbers that the caller gives: the IDs of clusters. A speaker exists as long as
    windows have that label.

    Args:
        model: parameters of the chain.
        delay: seconds after the end of a window until its label is final.
    """

    def __init__(self, model: TimeModel, delay: float) -> None:
        self._model = model
        self._delay = delay
        self._sums = np.empty((0, 0))
        self._heard: dict[int, int] = {}  # milliseconds of each speaker
        self._rows: dict[int, int] = {}  # row of each speaker in the sums
        self._open: list[Window] = []  # windows that are not final
        self._before: dict[int, float] = {}  # best path to the last final window, by speaker

    @property
    def n_open(self) -> int:
        """Number of windows that are not final."""
        return len(self._open)

    def move(self, window: Window, old: int | None, new: int | None) -> None:
        """Move a window from one speaker to another in the sums.

        Args:
            window: the window.
            old: its label so far, or None.
            new: its label from now on, or None if its vector was removed.
        """
        for speaker, sign in ((old, -1), (new, 1)):
            if speaker is not None:
                row = self._row(speaker, len(window.vector))
                self._sums[row] += sign * window.milliseconds * window.vector
                self._heard[speaker] = self._heard.get(speaker, 0) + sign * window.milliseconds

    def add(self, window: Window) -> None:
        """Add the next window, whose label is in the sums already."""
        self._open.append(window)

    def settled(self, *, ended: bool = False) -> list[int]:
        """Return the labels of windows that have become final, in order of time.

        Args:
            ended: whether the recording has ended: all windows become final.
        """
        if not self._open:
            return []
        now = self._open[-1].end - self._delay + _TOUCH
        count = len(self._open) if ended else sum(each.end <= now for each in self._open)
        if not count:
            return []
        speakers, labels, best = self._labels()
        self._before = dict(zip(speakers, best[count - 1].tolist(), strict=True))
        del self._open[:count]
        return labels[:count]

    def open_labels(self) -> list[int]:
        """Return the labels, so far, of the windows that are not final."""
        return self._labels()[1] if self._open else []

    def _labels(self) -> tuple[list[int], list[int], Floats]:
        """Return the speakers, labels of the open windows, and scores of the best paths to them.

        A label is −1 if no speaker exists, because all vectors were removed.
        """
        speakers = sorted(who for who, heard in self._heard.items() if heard > 0)
        if not speakers:
            return [], [-1] * len(self._open), np.empty((len(self._open), 0))
        best, rest = self._paths(speakers)
        labels = [speakers[place] for place in (best + rest).argmax(axis=1).tolist()]
        return speakers, labels, best

    def _paths(self, speakers: list[int]) -> tuple[Floats, Floats]:
        """Return the scores of the best paths to and from each open window."""
        rows = [self._rows[who] for who in speakers]
        heard = np.array([self._heard[who] for who in speakers], dtype=np.float64)
        centres = self._model.centres(self._sums[rows], heard)
        scores = self._model.scores(
            np.array([each.vector for each in self._open]),
            np.array([each.milliseconds for each in self._open], dtype=np.float64),
            centres,
        )
        gaps = np.array([each.gap for each in self._open])
        stay, change = self._model.costs(gaps, len(speakers))
        best = forward(scores, stay, change, self._message(speakers))
        return best, backward(scores, stay, change)

    def _message(self, speakers: Iterable[int]) -> Floats | None:
        """Return the scores of the best paths to the last final window; None at the beginning."""
        if not self._before:
            return None
        return np.array([self._before.get(who, never()) for who in speakers])

    def _row(self, speaker: int, dimension: int) -> int:
        """Return the row of a speaker in the sums; make one if there is none."""
        if speaker not in self._rows:
            if len(self._rows) == len(self._sums):
                more = np.zeros((max(8, len(self._sums)), dimension))
                self._sums = np.vstack([self._sums.reshape(-1, dimension), more])
            self._rows[speaker] = len(self._rows)
        return self._rows[speaker]
