"""Labels of a whole recording, computed again only where something changed.

A recording is divided into chapters of 512 windows. The label of a window is that of `reestimate`
for three chapters: its own and its neighbours, at the ends of the recording the first or last
three. A recording of up to three chapters is thus estimated at once, with all its windows. In a
longer one a label depends on nothing outside its three chapters. The answer is a function of the
labels alone, whatever was asked before, and three chapters are estimated again only if a label in
them or a name of theirs changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkstream.turn_model.chain import Integers, TimeModel
from linkstream.turn_model.whole import Windows, reestimate

CHAPTER = 512  # windows
_SPAN = 3  # chapters that are estimated together
_REMOVED = -1


@dataclass(frozen=True, slots=True)
class _Answer:
    """Labels of a span of windows, and what they were made from."""

    given: Integers
    known: tuple[int, ...]
    labels: Integers

    def holds(self, given: Integers, known: tuple[int, ...]) -> bool:
        """Return whether the labels are those of these inputs."""
        return self.known == known and np.array_equal(self.given, given)


class Chapters:
    """Labels of one recording with the whole past, up to date at the cost of what changed.

    Args:
        model: parameters of the chain.
        windows: returns the windows at some places, in order.
    """

    def __init__(self, model: TimeModel, windows: Callable[[Integers], Windows]) -> None:
        self._model = model
        self._windows = windows
        self._answers: dict[int, _Answer] = {}  # by first window

    def labels(self, given: Integers, known: Integers) -> Integers:
        """Return all labels, re-estimated; −1 stays.

        Args:
            given: labels of the clusterer, −1 for a removed vector, UNDECIDED for a held one.
            known: clusters that are never removed, such as those with names, in order.
        """
        answer = np.empty_like(given)
        last = max(-(-len(given) // CHAPTER) - _SPAN, 0) * CHAPTER  # first window of the last span
        for first in range(0, last + 1, CHAPTER):
            found = self._span(first, given[first : first + _SPAN * CHAPTER], known)
            begin = 0 if first == 0 else CHAPTER
            end = len(found) if first == last else 2 * CHAPTER
            answer[first + begin : first + end] = found[begin:end]
        return answer

    def _span(self, first: int, given: Integers, known: Integers) -> Integers:
        """Return the labels of one span."""
        names = tuple(np.intersect1d(known, given).tolist()) if len(known) else ()
        answer = self._answers.get(first)
        if answer is None or not answer.holds(given, names):
            labels, kept = given.copy(), np.flatnonzero(given != _REMOVED)
            if len(kept):
                windows = self._windows(first + kept)
                labels[kept] = reestimate(windows, given[kept], self._model, known=names)
            answer = self._answers[first] = _Answer(given.copy(), names, labels)
        return answer.labels
