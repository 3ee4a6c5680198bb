"""The subcluster that holds each vector, through all merges. C++ twin: members.hpp."""

from __future__ import annotations


class Members:
    """The subcluster of each vector in order of arrival; empty if vectors are not tracked."""

    def __init__(self, tracked: bool) -> None:
        self.tracked = tracked
        self._holders: list[int] = []  # when the vector arrived or was moved; −1 if removed
        self._survivors: dict[int, int] = {}  # merged subcluster → the subcluster that took it in
        self._open = False
        self._moves: list[tuple[int, int]] = []  # of the open change: vector, holder before
        self._merges: list[int] = []  # of the open change: subclusters merged into others
        self._n_before = 0

    def restore(self, holders: list[int]) -> None:
        """Set the subcluster of each vector."""
        self._holders = holders

    def merged(self, absorbed: int, survivor: int) -> None:
        """Record that one subcluster took in another."""
        if self.tracked:
            self._survivors[absorbed] = survivor
            self._merges.append(absorbed)

    def joined(self, number: int, n: int = 1) -> None:
        """Record that a subcluster holds the next `n` vectors."""
        if self.tracked:
            self._holders.extend([number] * n)

    def moved(self, member: int, number: int) -> None:
        """Record that a vector is now in another subcluster; −1: in none."""
        if self.tracked:
            self._moves.append((member, self._holders[member]))
            self._holders[member] = number

    def begin(self) -> None:
        """Begin a change."""
        self._open, self._n_before = True, len(self._holders)

    def commit(self) -> None:
        """Keep what was recorded since `begin`."""
        self._moves.clear()
        self._merges.clear()
        self._open = False

    def rollback(self) -> None:
        """Take back what was recorded since `begin`."""
        for member, number in reversed(self._moves):
            self._holders[member] = number
        del self._holders[self._n_before :]
        for number in self._merges:
            self._survivors.pop(number, None)
        self.commit()

    def holder(self, member: int) -> int:
        """Return the subcluster that holds a vector; −1 if the vector was removed."""
        return self._followed(self._holders[member])

    def live(self) -> list[int]:
        """Return the subcluster that holds each vector, in order of arrival."""
        live = [self._followed(number) for number in self._holders]
        if not self._open:  # an open change may be taken back, and its merges with it
            self._holders = list(live)
        return live

    def _followed(self, number: int) -> int:
        while number in self._survivors:
            number = self._survivors[number]
        return number
