"""Find vectors by their own keys and times, and what they have of both.

The index proposes vectors by the hash of a key or by a time; the blocks of the journal decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links, absent
from linkstream.errors import ArgumentError, KeyTakenError, UnknownIdError
from linkstream.store import own_columns
from linkstream.store.blocks import NO_TIME, Times
from linkstream.store.index import Index, keys_by_number, times_by_number
from linkstream.store.journal import Journal
from linkstream.store.own_columns import to_text
from linkstream.store.payloads import Lines

Vector: TypeAlias = "int | str"  # a vector by its number, or by its own key
Vectors: TypeAlias = "Sequence[Vector] | npt.NDArray[Any]"
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyedVectors:
    """The vectors of a store by number, key and time.

    A key belongs to one vector that is there, in a cluster or held: removed, forgotten and undone
    vectors free theirs.
    """

    links: Links
    journal: Journal
    index: Index

    def with_key(self, line: bytes) -> int | None:
        """Return the vector that has a key now; None if there is none."""
        for number in self.index.keys.find(own_columns.hash_of(line)):
            if self._there([number])[0] and self.keys([number]) == [line.decode()]:
                return number
        return None

    def among(self, keys: Sequence[str]) -> list[int | None]:
        """Return the vector that has each key; None for a key that no vector has."""
        lines = [own_columns.check_key(key) for key in keys]
        likely = self.index.keys.has(own_columns.hashes_of(lines)).tolist()
        return [
            self.with_key(line) if maybe else None
            for line, maybe in zip(lines, likely, strict=True)
        ]

    def _there(self, numbers: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        return absent.are_there(self.links.core, numbers)

    def refuse_taken(self, lines: Lines, hashes: Integers) -> None:
        """Raise KeyTakenError if a vector that is there has one of these keys."""
        for row in np.flatnonzero(self.index.keys.has(hashes)).tolist():
            line = lines[row]
            number = self.with_key(line) if line else None
            if number is not None:
                raise KeyTakenError(
                    f"row {row} has the key {line.decode()!r:.80} of vector {number}",
                    expected="a key that no vector of the store has",
                    remedy="Leave the vector out if it was added before, or remove the other one.",
                    row=row,
                    vector=number,
                )

    # By number or key

    def number(self, vector: Vector) -> int:
        """Return the number of a vector; raise UnknownIdError if there is none."""
        if isinstance(vector, str):
            found = self.with_key(own_columns.check_key(vector))
            if found is None:
                raise UnknownIdError(
                    f"the key {vector!r:.80}, which no vector has",
                    expected="the key of a vector that is there",
                    remedy="A vector that was removed or undone has no key; digits alone are an "
                    "arrival number, as the int 17.",
                )
            return found
        return absent.check_there(self.links.core, vector)

    def numbers(self, vectors: Vectors) -> Integers:
        """Return the numbers of vectors; raise UnknownIdError if one is not there."""
        if not isinstance(vectors, (Sequence, np.ndarray)) or isinstance(vectors, (str, bytes)):
            raise ArgumentError(
                f"numbers of type {type(vectors).__name__}",
                expected="a list of numbers or keys of vectors",
                remedy="Number vectors in order of arrival, from 0.",
            )
        return np.array([self.number(vector) for vector in vectors], dtype=np.int64)

    # What vectors have

    def keys(self, numbers: Sequence[int] | Integers) -> list[str | None]:
        """Return the key of each vector; None for one without."""
        return keys_by_number(self.journal, self.index, np.asarray(numbers, dtype=np.int64))

    def times(self, numbers: Sequence[int] | Integers) -> Times:
        """Return the time of each vector; `NO_TIME` for one without."""
        return times_by_number(self.journal, self.index, np.asarray(numbers, dtype=np.int64))

    def described(self, numbers: Integers) -> list[dict[str, Any]]:
        """Return number, key and time of each vector as plain values for JSON."""
        rows = zip(numbers.tolist(), self.keys(numbers), self.times(numbers).tolist(), strict=True)
        return [{"vector": n, "id": key, "time": to_text(time)} for n, key, time in rows]

    def between(self, start: int | None, end: int | None) -> Integers:
        """Return the vectors with times from `start` up to but excluding `end`, rising."""
        first = NO_TIME + 1 if start is None else start
        last = np.iinfo(np.int64).max if end is None else end
        found = self.index.times.between(first, int(last))
        there = found[self._there(found)]
        times = self.times(there)
        numbers: Integers = there[(times >= first) & (times < last)]
        return numbers
