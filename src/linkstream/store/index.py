"""The index: which operation brought a vector, and which was done under a key.

Kept in memory and in the snapshots, which are checked as a whole; never in an index of SQLite's,
which is not.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import snapshot
from linkstream.errors import SnapshotError
from linkstream.store.journal import Operation

Integers = npt.NDArray[np.int64]

_ARRAYS = ("firsts", "operations", "hashes", "done")


class Index:
    """Places of vectors in the journal, in order; operations by key."""

    def __init__(
        self, firsts: list[int], operations: list[int], hashes: Integers, done: Integers
    ) -> None:
        self._firsts, self._operations = firsts, operations  # of vectors, rising
        self._hashes, self._done = hashes, done  # of keys, sorted by hash
        self._recent: dict[str, int] = {}  # keys since then

    @classmethod
    def empty(cls) -> Index:
        """Of a store with nothing in it."""
        nothing = np.empty(0, dtype=np.int64)
        return cls([], [], nothing, nothing)

    def note(self, operation: Operation, n_vectors: int) -> None:
        """Take in an operation, after which there are so many vectors."""
        if n_vectors < operation.first_vector:
            self.cut(n_vectors)
        elif n_vectors > operation.first_vector and operation.verb != "redo":
            self._firsts.append(operation.first_vector)
            self._operations.append(operation.number)
        if operation.key is not None:
            self._recent[operation.key] = operation.number

    def cut(self, n_vectors: int) -> None:
        """Only so many vectors are left; later ones will take the numbers of those undone."""
        while self._firsts and self._firsts[-1] >= n_vectors:
            self._firsts.pop()
            self._operations.pop()

    def restore(self, operations: Iterable[Operation]) -> None:
        """Have the vectors of operations again that an undo took, in order."""
        for operation in operations:
            self._firsts.append(operation.first_vector)
            self._operations.append(operation.number)

    def left_of(self, operation: Operation, n_vectors: int) -> int:
        """How many of the vectors that an operation brought still have their numbers."""
        place = bisect_right(self._firsts, operation.first_vector) - 1
        if place < 0 or self._operations[place] != operation.number:
            return 0
        return [*self._firsts[place + 1 : place + 2], n_vectors][0] - operation.first_vector

    def holding(self, vector: int) -> tuple[int, int]:
        """The operation that brought a vector, and the vector's place among those it brought."""
        place = bisect_right(self._firsts, vector) - 1
        return self._operations[place], vector - self._firsts[place]

    def stretches(self, n_vectors: int) -> Iterator[tuple[int, int, int]]:
        """Operations that brought the vectors there are: number, first vector, end."""
        ends = [*self._firsts[1:], n_vectors][: len(self._firsts)]
        yield from zip(self._operations, self._firsts, ends, strict=True)

    def under(self, key: str) -> list[int]:
        """Operations that may have been done under a key; the newest last."""
        if key in self._recent:
            return [self._recent[key]]
        found = _hash(key)
        low = int(np.searchsorted(self._hashes, found, side="left"))
        high = int(np.searchsorted(self._hashes, found, side="right"))
        found_at: list[int] = self._done[low:high].tolist()
        return found_at

    def packed(self, next_piece: int) -> bytes:
        """All of it, checksummed; with the number of the next piece of vectors."""
        hashes = np.array([_hash(key) for key in self._recent], dtype=np.int64)
        done = np.array(list(self._recent.values()), dtype=np.int64)
        hashes = np.concatenate([self._hashes, hashes])
        done = np.concatenate([self._done, done])
        order = np.argsort(hashes, kind="stable")
        arrays = {
            "firsts": np.array(self._firsts, dtype=np.int64),
            "operations": np.array(self._operations, dtype=np.int64),
            "hashes": hashes[order],
            "done": done[order],
        }
        return snapshot.encode({"next_piece": next_piece}, arrays)

    @classmethod
    def unpacked(cls, data: bytes) -> tuple[Index, int]:
        """The index and the number that `packed` was given, or SnapshotError."""
        meta, arrays = snapshot.decode(data, meta=("next_piece",), arrays=_ARRAYS)
        rule = _broken_rule(meta.get("next_piece"), [arrays.get(name) for name in _ARRAYS])
        if rule is not None:
            raise SnapshotError(
                f"an index where it does not hold that {rule}",
                expected="what linkstream wrote",
                remedy="Use a backup.",
            )
        firsts, operations, hashes, done = (arrays[name] for name in _ARRAYS)
        return cls(firsts.tolist(), operations.tolist(), hashes, done), meta["next_piece"]


def _broken_rule(next_piece: object, columns: list[npt.NDArray[Any] | None]) -> str | None:
    """Return the rule that the parts of an index break; None if they keep all."""
    if not all(column is not None and column.dtype == np.int64 for column in columns):
        return f"it has the arrays {', '.join(_ARRAYS)}, of integers"
    firsts, operations, hashes, done = (column for column in columns if column is not None)
    if any(column.ndim != 1 for column in (firsts, operations, hashes, done)):
        return "its arrays have one dimension"
    if len(firsts) != len(operations) or len(hashes) != len(done):
        return "its arrays agree in size"
    if not (np.all(firsts >= 0) and np.all(np.diff(firsts) > 0) and np.all(operations >= 0)):
        return "vectors rise, and operations are numbered from 0 on"
    if not (np.all(hashes[1:] >= hashes[:-1]) and np.all(done >= 0)):
        return "keys are sorted"
    if type(next_piece) is not int or not 0 <= next_piece < 2**62:
        return "the next piece of vectors has a number"
    return None


def _hash(key: str) -> int:
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
