"""An index of vectors by a whole number: the hash of a key, or a time.

It is a short list of sorted runs, each at least twice as long as the next one. Adding merges short
runs, so that each entry is moved a few times; a search looks into each run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Run = tuple[Integers, Integers]  # values, rising, and the vector of each


class ValueIndex:
    """Vectors by value, 16 bytes an entry.

    Entries of vectors that were undone or removed stay, since a redo or an undo brings the vectors
    back: the caller checks what it finds.
    """

    def __init__(self, values: Integers | None = None, vectors: Integers | None = None) -> None:
        """Take entries in any order, or begin empty."""
        self._runs: list[Run] = []
        if values is not None and vectors is not None:
            self.add(values, vectors)

    def __len__(self) -> int:
        return sum(len(values) for values, _ in self._runs)

    def add(self, values: Integers, vectors: Integers) -> None:
        """Add entries. The cost is that of their number and, now and then, of a merge."""
        if not len(values):
            return
        order = np.argsort(values, kind="stable")
        self._runs.append((values[order], vectors[order]))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            newer = self._runs.pop()
            self._runs[-1] = _merged(self._runs[-1], newer)

    def find(self, value: int) -> list[int]:
        """Return the vectors with a value, the highest number first."""
        found: list[int] = self.between(value, value + 1).tolist()
        return found[::-1]

    def between(self, start: int, end: int) -> Integers:
        """Return the vectors with values from `start` up to but excluding `end`, rising."""
        found = [np.empty(0, dtype=np.int64)]
        for values, vectors in self._runs:
            low, high = np.searchsorted(values, [start, end])
            found.append(vectors[low:high])
        return np.unique(np.concatenate(found))

    def has(self, values: Integers) -> npt.NDArray[np.bool_]:
        """Return for each value whether a vector has it."""
        found = np.zeros(len(values), dtype=np.bool_)
        for there, _ in self._runs:
            places = np.minimum(np.searchsorted(there, values), len(there) - 1)
            found |= there[places] == values
        return found

    def entries(self) -> Run:
        """Return all entries once, by value and vector."""
        while len(self._runs) > 1:
            newer = self._runs.pop()
            self._runs[-1] = _merged(self._runs[-1], newer)
        if not self._runs:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        values, vectors = self._runs[0]
        if ((values[1:] > values[:-1]) | (vectors[1:] > vectors[:-1])).all():
            return values, vectors
        order = np.lexsort((vectors, values))
        values, vectors = values[order], vectors[order]
        again = np.zeros(len(values), dtype=np.bool_)
        again[1:] = (values[1:] == values[:-1]) & (vectors[1:] == vectors[:-1])
        self._runs = [(values[~again], vectors[~again])]
        return self._runs[0]

    def covers(self, other: ValueIndex) -> bool:
        """Return whether all entries of another index are in this one."""
        (values, vectors), (more, others) = self.entries(), other.entries()
        both = ValueIndex(np.concatenate([values, more]), np.concatenate([vectors, others]))
        return len(both.entries()[0]) == len(values)

    def keep(self, there: npt.NDArray[np.bool_]) -> None:
        """Drop the entries of vectors that are not there, by number."""
        values, vectors = self.entries()
        known = vectors < len(there)
        known[known] = there[vectors[known]]
        self._runs = []
        self.add(values[known], vectors[known])


def _merged(older: Run, newer: Run) -> Run:
    """Return the entries of two runs in one, sorted by value."""
    n = len(older[0]) + len(newer[0])
    from_newer = np.zeros(n, dtype=np.bool_)
    from_newer[np.searchsorted(older[0], newer[0], side="right") + np.arange(len(newer[0]))] = True
    values, vectors = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for made, old, new in ((values, older[0], newer[0]), (vectors, older[1], newer[1])):
        made[from_newer], made[~from_newer] = new, old
    return values, vectors
