"""The vectors that are held: they have numbers, and wait for a decision.

They are asked again at points of the stream, every POINT vectors. A point asks the vectors of the
1st, 2nd, 4th, 8th, … block of POINT vectors before it. So each vector is asked at most about log2
of the number of blocks times, and what is asked depends on the number of vectors alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from linkstream.identity.steps import Steps

POINT = 256  # vectors between two points


class Held:
    """Numbers of held vectors, by block.

    >>> held = Held([3, 300])
    >>> list(held), held.due(256), held.due(512), held.due(768)
    ([3, 300], [3], [3, 300], [300])
    """

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._blocks: dict[int, set[int]] = {}
        for number in numbers:
            self.add(Steps(), number)

    def __len__(self) -> int:
        return sum(map(len, self._blocks.values()))

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(number for block in self._blocks.values() for number in block))

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, (int, np.integer)):
            return False
        return number in self._blocks.get(int(number) // POINT, ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self._blocks == other._blocks

    def add(self, steps: Steps, number: int) -> None:
        """Hold a vector.

        Args:
            steps: records how to take that back.
            number: the number of the vector.
        """
        block = number // POINT
        if block not in self._blocks:
            steps.put(self._blocks, block, set())
        steps.add(self._blocks[block], number)

    def discard(self, steps: Steps, number: int) -> None:
        """Hold a vector no longer, if it is held.

        Args:
            steps: records how to take that back.
            number: the number of the vector.
        """
        if number not in self:
            return
        block = number // POINT
        steps.discard(self._blocks[block], number)
        if not self._blocks[block]:
            steps.pop(self._blocks, block)

    def copy(self) -> Held:
        """Return an independent copy."""
        twin = Held()
        twin._blocks = {block: {*numbers} for block, numbers in self._blocks.items()}
        return twin

    def due(self, n_vectors: int) -> list[int]:
        """Return the vectors to ask again at a point, in order of arrival.

        Args:
            n_vectors: the number of vectors at the point, a multiple of POINT.
        """
        point, found = n_vectors // POINT, list[int]()
        wait = 1
        while wait <= point:
            found += self._blocks.get(point - wait, ())
            wait *= 2
        return sorted(found)
