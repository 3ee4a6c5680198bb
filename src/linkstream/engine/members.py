"""The subcluster that holds each vector, through all merges. C++ twin: members.hpp."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

Record = tuple[list[tuple[int, int]], list[int], int]  # moves, merges, vectors before


class Members:
    """The subcluster of each vector in order of arrival; empty if vectors are not tracked.

    The vectors of a subcluster are among those that joined it or were moved to it, or to one that
    it took in: those that are still there, by `holder`.
    """

    def __init__(self, tracked: bool) -> None:
        self.tracked = tracked
        self._holders: list[int] = []  # when the vector arrived or was moved; −1 if removed
        self._survivors: dict[int, int] = {}  # merged subcluster → the subcluster that took it in
        # By subcluster: vectors that arrived there, vectors moved there, subclusters it took in.
        self._joined, self._moved, self._absorbed = (
            defaultdict[int, list[int]](list) for _ in range(3)
        )
        self._open = False
        self.keeps_chains = False  # changes that were committed may be taken back
        self._moves: list[tuple[int, int]] = []  # of the open change: vector, holder before
        self._merges: list[int] = []  # of the open change: subclusters merged into others
        self._n_before = 0

    def restore(self, holders: list[int]) -> None:
        """Set the subcluster of each vector."""
        self._holders = holders
        for member, number in enumerate(holders):
            self._joined[number].append(member)

    def merged(self, absorbed: int, survivor: int) -> None:
        """Record that one subcluster took in another."""
        if self.tracked:
            self._survivors[absorbed] = survivor
            self._absorbed[survivor].append(absorbed)
            self._merges.append(absorbed)

    def joined(self, number: int, n: int = 1) -> None:
        """Record that a subcluster holds the next `n` vectors; −1: none does."""
        if self.tracked:
            first = len(self._holders)
            self._holders.extend([number] * n)
            self._joined[number].extend(range(first, first + n))

    def moved(self, member: int, number: int) -> None:
        """Record that a vector is now in another subcluster; −1: in none."""
        if self.tracked:
            self._moves.append((member, self._holders[member]))
            self._holders[member] = number
            self._moved[number].append(member)

    def begin(self) -> None:
        """Begin a change."""
        self._open, self._n_before = True, len(self._holders)

    def record(self) -> Record:
        """Return what `take_back` needs after the open change was committed."""
        return [*self._moves], [*self._merges], self._n_before

    def commit(self) -> None:
        """Keep what was recorded since `begin`."""
        self._moves.clear()
        self._merges.clear()
        self._open = False

    def take_back(self, record: Record) -> None:
        """Take the last change back."""
        self._moves, self._merges, self._n_before = record
        self.rollback()

    def rollback(self) -> None:
        """Take back what was recorded since `begin`."""
        for member, number in reversed(self._moves):
            self._moved[self._holders[member]].pop()
            self._holders[member] = number
        for number in reversed(self._merges):
            self._absorbed[self._survivors.pop(number)].pop()
        for number in self._holders[self._n_before :]:
            self._joined[number].pop()
        del self._holders[self._n_before :]
        self.commit()

    def holder(self, member: int) -> int:
        """Return the subcluster that holds a vector; −1 if the vector was removed."""
        return self._followed(self._holders[member])

    def vectors_of(self, numbers: Iterable[int], limit: int, before: int) -> list[int]:
        """Return vectors of subclusters that arrived before vector `before`, the newest first."""
        found = {
            member
            for number in numbers
            for member in self._once_in(number)
            if member < before and self.holder(member) == number
        }
        return sorted(found, reverse=True)[:limit]

    def live(self) -> list[int]:
        """Return the subcluster that holds each vector, in order of arrival."""
        live = [self._followed(number) for number in self._holders]
        if not (
            self._open or self.keeps_chains
        ):  # an open change may be taken back, and its merges with it
            self._holders = list(live)
        return live

    def _once_in(self, number: int) -> Iterator[int]:
        """Yield the vectors that were ever in a subcluster, some more than once."""
        todo = [number]
        while todo:
            number = todo.pop()
            yield from self._joined.get(number, ())
            yield from self._moved.get(number, ())
            todo += self._absorbed.get(number, ())

    def _followed(self, number: int) -> int:
        while number in self._survivors:
            number = self._survivors[number]
        return number
