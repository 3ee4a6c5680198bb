"""The index: the operation that brought each vector, and the operation under each key.

It also finds vectors by their own keys and times. It is kept in memory and in the snapshots, which
have checksums; an index of SQLite has none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.engine import snapshot
from linkstream.engine.fixed_point import quantise
from linkstream.epochs import Epoch, Epochs, Quantise, in_space, recentred
from linkstream.errors import SnapshotError
from linkstream.store import blocks
from linkstream.store.blocks import Attached
from linkstream.store.journal import Journal, Operation, Payloads, Rows, rows_of_piece
from linkstream.store.own_columns import hash_of, hashes_of
from linkstream.store.value_index import ValueIndex

Integers = npt.NDArray[np.int64]
Fixed = npt.NDArray[np.int32]

T = TypeVar("T")
Find = Callable[[int, Operation | None], tuple[Operation, int]]
_ARRAYS = ("firsts", "operations", "hashes", "done")
_OWN_ARRAYS = (
    "keys",
    "keyed",
    "times",
    "timed",
)  # hashes and times, and the vectors that have them


class Index:
    """Operations by the vectors that they brought and by idempotency key; vectors by their own.

    Attributes:
        keys: vectors by the hash of their own key; also some that are gone.
        times: vectors by their own time; also some that are gone.
    """

    def __init__(
        self, firsts: list[int], operations: list[int], hashes: Integers, done: Integers
    ) -> None:
        self._firsts, self._operations = firsts, operations  # first vectors, rising
        self._hashes, self._done = hashes, done  # sorted by the hash of the key
        self._recent: dict[str, int] = {}  # keys since the last snapshot
        self.keys = ValueIndex()  # vectors by the hash of their own key
        self.times = ValueIndex()  # vectors by their own time

    @classmethod
    def empty(cls) -> Index:
        """Return the index of an empty store."""
        nothing = np.empty(0, dtype=np.int64)
        return cls([], [], nothing, nothing)

    def note(self, operation: Operation, n_vectors: int, own: Attached) -> None:
        """Record an operation, after which the store has `n_vectors` vectors.

        `own` has the keys and times of its vectors.
        """
        if n_vectors < operation.first_vector:
            self.cut(n_vectors)
        elif n_vectors > operation.first_vector and operation.verb != "redo":
            self._firsts.append(operation.first_vector)
            self._operations.append(operation.number)
        if operation.key is not None:
            self._recent[operation.key] = operation.number
        if own.keys is not None or own.times is not None:
            self._note_own(operation, own)

    def _note_own(self, operation: Operation, own: Attached) -> None:
        rows = operation.taken()
        numbers = operation.first_vector + np.arange(len(rows), dtype=np.int64)
        if own.keys is not None:
            lines = [own.keys[row] for row in rows.tolist()]
            there = np.array([bool(line) for line in lines], dtype=np.bool_)
            self.keys.add(hashes_of(lines)[there], numbers[there])
        if own.times is not None:
            times = own.times[rows]
            there = times != blocks.NO_TIME
            self.times.add(times[there], numbers[there])

    def covers(self, other: Index) -> bool:
        """Return whether it has all keys and times of another index."""
        return self.keys.covers(other.keys) and self.times.covers(other.times)

    def own_in(self, journal: Journal, n_vectors: int) -> Index:
        """Return an index of the keys and times that the journal has for these vectors."""
        made = Index.empty()
        for number, _, _ in self.stretches(n_vectors):
            operation = journal.operation(number)
            made._note_own(operation, journal.own(operation))
        return made

    def keep_own(self, there: npt.NDArray[np.bool_]) -> None:
        """Drop the keys and times of vectors that are not there, by number."""
        self.keys.keep(there)
        self.times.keep(there)

    def cut(self, n_vectors: int) -> None:
        """Drop vectors from number `n_vectors` on; new vectors get their numbers."""
        while self._firsts and self._firsts[-1] >= n_vectors:
            self._firsts.pop()
            self._operations.pop()

    def restore(self, operations: Iterable[Operation]) -> None:
        """Record the vectors of operations again after a redo, in order."""
        for operation in operations:
            self._firsts.append(operation.first_vector)
            self._operations.append(operation.number)

    def left_of(self, operation: Operation, n_vectors: int) -> int:
        """Return how many vectors of an operation were not undone."""
        found = bisect_right(self._firsts, operation.first_vector) - 1
        if found < 0 or self._operations[found] != operation.number:
            return 0
        return [*self._firsts[found + 1 : found + 2], n_vectors][0] - operation.first_vector

    def holding(self, vector: int) -> tuple[int, int]:
        """Return the operation that brought a vector, and the vector's position within it."""
        found = bisect_right(self._firsts, vector) - 1
        return self._operations[found], vector - self._firsts[found]

    def operations_of(self, vectors: Integers) -> Integers:
        """Return the operation that brought each of some vectors that are there."""
        places = np.searchsorted(np.array(self._firsts), vectors, side="right") - 1
        return np.array(self._operations, dtype=np.int64)[places]

    def stretch_at(self, operation: int, n_vectors: int) -> tuple[int, int, bool]:
        """Return the first vector and the end of an operation, and whether its vectors are there.

        If they are not, both are the end of the vectors of older operations.
        """
        found = bisect_right(self._operations, operation) - 1
        end = [*self._firsts[found + 1 : found + 2], n_vectors][0]
        if found < 0 or self._operations[found] != operation:
            return end if found >= 0 else 0, end if found >= 0 else 0, False
        return self._firsts[found], end, True

    def stretches(self, n_vectors: int) -> Iterator[tuple[int, int, int]]:
        """Yield the number, first vector and end of each operation that brought vectors."""
        ends = [*self._firsts[1:], n_vectors][: len(self._firsts)]
        yield from zip(self._operations, self._firsts, ends, strict=True)

    def under(self, key: str) -> list[int]:
        """Return operations that may have used a key; the newest is last."""
        if key in self._recent:
            return [self._recent[key]]
        found = hash_of(key.encode())
        low = int(np.searchsorted(self._hashes, found, side="left"))
        high = int(np.searchsorted(self._hashes, found, side="right"))
        found_at: list[int] = self._done[low:high].tolist()
        return found_at

    def packed(self, next_piece: int) -> bytes:
        """Return the index and the number of the next piece of vectors as checksummed bytes."""
        hashes = np.array([hash_of(key.encode()) for key in self._recent], dtype=np.int64)
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
        own = (*self.keys.entries(), *self.times.entries())
        arrays |= dict(zip(_OWN_ARRAYS, own, strict=True))
        return snapshot.encode({"next_piece": next_piece}, arrays)

    @classmethod
    def unpacked(cls, data: bytes) -> tuple[Index, int]:
        """Return the index and the next piece; raise SnapshotError if the bytes are damaged."""
        meta, arrays = snapshot.decode(data, meta=("next_piece",), arrays=_ARRAYS + _OWN_ARRAYS)
        rule = _broken_rule(meta.get("next_piece"), [arrays.get(name) for name in _ARRAYS])
        if not arrays.keys() & {*_OWN_ARRAYS}:  # format 1 has no keys and times
            arrays |= dict.fromkeys(_OWN_ARRAYS, np.empty(0, dtype=np.int64))
        own = [arrays.get(name) for name in _OWN_ARRAYS]
        rule = rule or _broken_rule_of_own(own[:2]) or _broken_rule_of_own(own[2:])
        if rule is not None:
            raise SnapshotError(
                f"an index that breaks the rule: {rule}",
                expected="an index that linkstream wrote",
                remedy="Use a backup.",
            )
        firsts, operations, hashes, done = (arrays[name] for name in _ARRAYS)
        made = cls(firsts.tolist(), operations.tolist(), hashes, done)
        made.keys = ValueIndex(arrays["keys"], arrays["keyed"])
        made.times = ValueIndex(arrays["times"], arrays["timed"])
        return made, meta["next_piece"]


def _broken_rule(next_piece: object, columns: list[npt.NDArray[Any] | None]) -> str | None:
    """Return the rule that the parts of an index break; None if they break none."""
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


def _broken_rule_of_own(columns: list[npt.NDArray[Any] | None]) -> str | None:
    """Return the rule that values and their vectors break; None if they break none."""
    there = [each for each in columns if each is not None and each.dtype == np.int64]
    if len(there) != 2 or any(each.ndim != 1 for each in there) or len(there[0]) != len(there[1]):
        return "keys and times are integers, each of one vector"
    values, vectors = there
    if not (np.all(values[1:] >= values[:-1]) and np.all(vectors >= 0)):
        return "keys and times are sorted, and vectors are numbered from 0 on"
    return None


class JournalVectors:
    """The vectors by number, read from the journal, in the space of the last epoch.

    A vector is what its own operation brought, or what a later rebuild brought in its place.
    """

    def __init__(
        self,
        journal: Journal,
        index: Index,
        epochs: Epochs,
        quantise: Quantise = quantise,
        given: Fixed | None = None,
    ) -> None:
        self._journal, self._index, self._quantise = journal, index, quantise
        self._epochs, self._given = epochs.standing, given
        self._starts = [epoch.n_vectors for epoch in self._epochs]
        self._operations: dict[int, Operation] = {}  # of epochs that came with vectors

    def __len__(self) -> int:
        raise AssertionError("the clusterer knows the number of vectors")

    def append(self, rows: Fixed) -> None:
        """Do nothing: the journal holds the vectors."""

    def cut(self, size: int) -> None:
        """Do nothing: the index is cut when the operation that undoes is recorded."""

    def at(self, epochs: Epochs, given: Fixed | None = None) -> JournalVectors:
        """Return the vectors as they are when these epochs stand.

        Args:
            epochs: the epochs.
            given: the vectors of the last epoch, if the journal does not have them yet.
        """
        return JournalVectors(self._journal, self._index, epochs, self._quantise, given)

    def rows(self, numbers: Integers) -> Fixed:
        """Return vectors by number, in fixed point."""
        last = len(self._epochs) - 1
        if not last:
            return in_space(self._epochs[0].space, self.as_given(numbers), self._quantise)
        found = np.empty((len(numbers), self._epochs[last].dimension), dtype=np.int32)
        origins = np.array([self._origin(number)[0] for number in numbers.tolist()])
        for origin in np.unique(origins).tolist():
            places = np.flatnonzero(origins == origin)
            found[places] = self._moved(origin, numbers[places])
        return found

    def as_given(self, numbers: Integers) -> Rows:
        """Return vectors by number, as they were given for the space that they are in."""
        return vectors_by_number(self._journal, numbers, self._find)

    def operation_of(self, epoch: Epoch) -> Operation:
        """Return the operation that began an epoch."""
        if epoch.event not in self._operations:
            found = self._journal.holding(epoch.event, self._journal.last())
            self._operations[epoch.event] = found
        return self._operations[epoch.event]

    def _moved(self, origin: int, numbers: Integers) -> Fixed:
        """Return vectors that were first in the space of an epoch in that of the last one."""
        first, *later = self._epochs[origin:]
        if self._given is not None and not later and first.n_vectors > int(numbers.max()):
            return self._given[numbers]
        fixed = in_space(first.space, self.as_given(numbers), self._quantise)
        for epoch in later:
            fixed, first = recentred(fixed, first.space, epoch.space), epoch
        return fixed

    def _origin(self, number: int) -> tuple[int, bool]:
        """Return the place of the epoch that a vector was given for.

        Also return whether it came with the rebuild that began the epoch.
        """
        came = bisect_right(self._starts, number) - 1
        for place in range(len(self._epochs) - 1, came, -1):
            if self._epochs[place].given:
                return place, True
        return came, False

    def _find(self, number: int, last: Operation | None) -> tuple[Operation, int]:
        """Return the operation that brought a vector, and the vector's row in it."""
        place, replaced = self._origin(number)
        if replaced:
            return self.operation_of(self._epochs[place]), number
        return _find(self._journal, self._index, number, last)


def vectors_by_number(journal: Journal, numbers: Integers, find: Find) -> Rows:
    """Return vectors by number; `find` returns the operation and the row of each."""
    found: list[Rows] = [np.empty(0, dtype=np.float32)] * len(numbers)
    read, holder, body = (-1, -1), None, np.empty(0, dtype=np.float32)
    for i in np.argsort(numbers, kind="stable").tolist():
        holder, row = find(int(numbers[i]), holder)
        size = rows_of_piece(holder.dimension)
        piece = holder.first_piece + row // size
        if read != (holder.number, piece):
            read, body = (holder.number, piece), journal.piece(holder, piece)
        found[i] = body[row % size]
    return np.stack(found)


def payloads_by_number(journal: Journal, index: Index, numbers: Integers) -> Payloads:
    """Return the payloads of vectors; None for a vector without one."""
    found: Payloads = [None] * len(numbers)
    for i, operation, lines, row in _in_blocks(journal, index, numbers, journal.payload_lines):
        found[i] = None if lines is None else journal.parsed(operation, lines[row])
    return found


def keys_by_number(journal: Journal, index: Index, numbers: Integers) -> list[str | None]:
    """Return the vectors' own keys; None for a vector without one."""
    found: list[str | None] = [None] * len(numbers)
    read = partial(journal.lines, blocks.KEYS)
    for i, _, lines, row in _in_blocks(journal, index, numbers, read):
        found[i] = lines[row].decode() or None if lines is not None else None
    return found


def times_by_number(journal: Journal, index: Index, numbers: Integers) -> Integers:
    """Return the vectors' own times; `NO_TIME` for a vector without one."""
    found = np.full(len(numbers), blocks.NO_TIME, dtype=np.int64)
    for i, _, times, row in _in_blocks(journal, index, numbers, journal.times):
        found[i] = blocks.NO_TIME if times is None else times[row]
    return found


def _in_blocks(
    journal: Journal, index: Index, numbers: Integers, read: Callable[[Operation, int], T]
) -> Iterator[tuple[int, Operation, T, int]]:
    """Yield the position of each number, its operation, its block, and its row in the block."""
    last, holder = (-1, -1), None
    for i in np.argsort(numbers, kind="stable").tolist():
        holder, row = _find(journal, index, int(numbers[i]), holder)
        block, within = divmod(row, blocks.ROWS)
        if last != (holder.number, block):
            last, body = (holder.number, block), read(holder, block)
        yield i, holder, body, within


def _find(
    journal: Journal, index: Index, number: int, last: Operation | None
) -> tuple[Operation, int]:
    """Return the operation that brought a vector, and the vector's row in it."""
    operation, position = index.holding(number)
    known = last is not None and last.number == operation
    holder = last if known and last is not None else journal.operation(operation)
    return holder, holder.row(position)
