"""Labels of windows while they arrive, each final after a delay.

A window is final once `delay` seconds have been heard after its end. Until then its label may
change: the best path through all windows that are not final is computed again for each new window,
from the score of the best path to the last final window. `speakers` decides which clusters are
speakers. The cost of a window depends on the delay and on the number of speakers, not on the length
of the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from linkstream.turn_model.chain import Floats, Integers, TimeModel, backward, forward, never
from linkstream.turn_model.speakers import Speakers, Window
from linkstream.turn_model.whole import Windows

_TOUCH = 1e-6  # seconds: times nearer than this are equal


class LiveLabels:
    """Labels of the windows of one recording, final after a delay.

    Speakers are numbers that the caller gives: the IDs of clusters.

    Args:
        model: parameters of the chain.
        delay: seconds after the end of a window until its label is final.
        windows: returns the windows at some places, in order.
    """

    def __init__(
        self, model: TimeModel, delay: float, windows: Callable[[Integers], Windows]
    ) -> None:
        self._model = model
        self._delay = delay
        self._speakers = Speakers(model, windows)
        self._open: list[Window] = []  # windows that are not final
        self._before: dict[int, float] = {}  # best path to the last final window, by speaker

    @property
    def n_open(self) -> int:
        """Number of windows that are not final."""
        return len(self._open)

    def move(self, window: Window, old: int | None, new: int | None) -> None:
        """Move a window from one cluster to another.

        Args:
            window: the window.
            old: its label so far, or None.
            new: its label from now on, or None if its vector was removed.
        """
        self._speakers.move(window, old, new)

    def add(self, window: Window) -> None:
        """Add the next window, whose label `move` was told before."""
        self._open.append(window)

    def settled(self, known: Collection[int] = (), *, ended: bool = False) -> list[int]:
        """Return the labels of windows that have become final, in order of time.

        Args:
            known: clusters that are speakers in any case, such as those with names.
            ended: whether the recording has ended: all windows become final.
        """
        if not self._open:
            return []
        now = self._open[-1].end - self._delay + _TOUCH
        count = len(self._open) if ended else sum(each.end <= now for each in self._open)
        if not count:
            return []
        self._speakers.judge(known)
        speakers, labels, best = self._labels(known)
        self._before = dict(zip(speakers, best[count - 1].tolist(), strict=True))
        del self._open[:count]
        return labels[:count]

    def open_labels(self, known: Collection[int] = ()) -> list[int]:
        """Return the labels, so far, of the windows that are not final.

        Args:
            known: as for `settled`.
        """
        return self._labels(known)[1] if self._open else []

    def _labels(self, known: Collection[int]) -> tuple[list[int], list[int], Floats]:
        """Return the speakers, labels of the open windows, and scores of the best paths to them.

        A label is −1 if no speaker exists, because all vectors were removed.
        """
        speakers = self._speakers.present(known)
        if not speakers:
            return [], [-1] * len(self._open), np.empty((len(self._open), 0))
        best, rest = self._paths(speakers)
        labels = [speakers[place] for place in (best + rest).argmax(axis=1).tolist()]
        return speakers, labels, best

    def _paths(self, speakers: list[int]) -> tuple[Floats, Floats]:
        """Return the scores of the best paths to and from each open window."""
        scores = self._model.scores(
            np.array([each.vector for each in self._open]),
            np.array([each.milliseconds for each in self._open], dtype=np.float64),
            self._speakers.centres(speakers),
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
