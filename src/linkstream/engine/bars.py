"""Pairs of subclusters that corrections keep apart, through all merges.

C++ twin: bars.hpp. A pair is given by the numbers of two subclusters. If one is merged, the pair
holds of the subcluster that has absorbed it.
"""

from __future__ import annotations

from collections.abc import Iterable


class Bars:
    """Subclusters by number, each with those that it must stay apart from."""

    def __init__(self) -> None:
        self._apart: dict[int, set[int]] = {}
        self._before: dict[int, set[int]] | None = None  # before the first merge of a change

    def set_pairs(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Replace all pairs."""
        self._apart, self._before = {}, None
        for a, b in pairs:
            self._apart.setdefault(a, set()).add(b)
            self._apart.setdefault(b, set()).add(a)

    def merged(self, absorbed: int, survivor: int) -> None:
        """Let the pairs of a subcluster hold of the one that has absorbed it."""
        if absorbed not in self._apart:
            return
        if self._before is None:
            self._before = {number: set(others) for number, others in self._apart.items()}
        for other in self._apart.pop(absorbed) - {absorbed}:
            self._apart[other].discard(absorbed)
            self._apart[other].add(survivor)
            self._apart.setdefault(survivor, set()).add(other)

    def numbers(self) -> list[int]:
        """Return the subclusters that must stay apart from others."""
        return [*self._apart]

    def apart(self, number: int) -> set[int]:
        """Return the subclusters that must stay apart from one."""
        return self._apart.get(number, set())

    def commit(self) -> None:
        """Keep the merges of a change."""
        self._before = None

    def rollback(self) -> None:
        """Take back the merges of a change."""
        if self._before is not None:
            self._apart, self._before = self._before, None
