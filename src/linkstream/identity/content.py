"""The content of a clusterer: its vectors and their weights, whatever their numbers and order.

The digest of a vector is a keyed hash of its fixed-point coordinates and its weight. Sorted by
digest, equal sets of vectors are in equal order. `partition_hash` is made of digests alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from linkstream.engine.corrections import share
from linkstream.engine.forest import FULL
from linkstream.engine.state import Fixed, Integers, State
from linkstream.identity.ledger import Ledger

Digests = npt.NDArray[np.uint64]  # two columns

_KEY = b"linkstream content 1"
_BLOCK = 1_024  # vectors at a time; other threads run in between


@dataclass(frozen=True, slots=True)
class Content:
    """The vectors that were not removed, in order of number.

    Attributes:
        numbers: their numbers.
        fixed: their fixed-point coordinates.
        missing_weights: what each lacks to the full weight, in 256ths. A vector that a locked
            subcluster holds has full weight: it lacks weight there alone.
    """

    numbers: Integers
    fixed: Fixed
    missing_weights: Integers

    @classmethod
    def of(cls, state: State, ledger: Ledger, fixed: Fixed) -> Content:
        """Return the content of a state; `fixed` are the vectors that were not removed."""
        missing = np.zeros(state.n_vectors, dtype=np.int64)
        for vector, weight in ledger.missing_weights.items():
            missing[vector] = weight % FULL
        numbers = np.flatnonzero(state.vectors >= 0)
        return cls(numbers, fixed, missing[numbers])

    @classmethod
    def of_some(
        cls, state: State, ledger: Ledger, numbers: Integers, read: Callable[[Integers], Fixed]
    ) -> Content:
        """Return some vectors of a state; `read` returns them by number."""
        missing = [ledger.missing_weights.get(number, 0) % FULL for number in numbers.tolist()]
        return cls(numbers, read(numbers), np.array(missing, dtype=np.int64))

    @classmethod
    def empty(cls) -> Content:
        """Return the content of no vectors."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, np.empty((0, 0), dtype=np.int32), none)

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, places: Integers) -> Content:
        """Return some of the vectors, by place."""
        return Content(self.numbers[places], self.fixed[places], self.missing_weights[places])

    def places(self, numbers: Integers) -> Integers:
        """Return the places of vectors by number."""
        return np.searchsorted(self.numbers, numbers)

    def rows(self, numbers: Integers) -> Fixed:
        """Return vectors by number."""
        return self.fixed[self.places(numbers)]

    def shares(self, places: Integers) -> Integers:
        """Return what some vectors add to a sum."""
        rows = self.fixed[places].astype(np.int64)
        for row in np.flatnonzero(self.missing_weights[places]).tolist():
            rows[row] = share(rows[row], int(self.missing_weights[places[row]]))
        return rows

    def sums(self, owners: Integers, n: int) -> Integers:
        """Return n sums: row i is the sum of the vectors whose owner is i; owner −1 is none."""
        found = np.zeros((n, self.fixed.shape[1]), dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        order = order[owners[order] >= 0]
        for start in range(0, len(order), _BLOCK):
            part = order[start : start + _BLOCK]
            firsts = np.flatnonzero(np.diff(owners[part], prepend=-1))
            found[owners[part[firsts]]] += np.add.reduceat(self.shares(part), firsts, axis=0)
        return found

    def weights(self) -> npt.NDArray[np.float64]:
        """Return the weight of each vector as the k of the paper's formulas; at least 1."""
        return np.maximum(1.0 - self.missing_weights / FULL, 1.0)

    def digests(self) -> Digests:
        """Return the digest of each vector: two numbers of 64 bits."""
        size = 4 * self.fixed.shape[1]
        found = bytearray()
        for start in range(0, len(self), _BLOCK):
            rows = np.ascontiguousarray(self.fixed[start : start + _BLOCK], dtype="<i4").tobytes()
            missing = self.missing_weights[start : start + _BLOCK].tolist()
            for place, weight in enumerate(missing):
                told = rows[place * size : (place + 1) * size] + bytes([weight])
                found += hashlib.blake2b(told, digest_size=16, key=_KEY).digest()
        return numbers_of(bytes(found))

    def partition_hash(self, labels: Integers) -> str:
        """Return the digest of a partition; `labels` are the cluster of each vector.

        It is SHA-256 of the sorted digests of the clusters; that of a cluster is SHA-256 of the
        sorted digests of its vectors.
        """
        digests = self.digests()
        order = np.lexsort((digests[:, 1], digests[:, 0], labels))
        told = digests[order].astype(">u8")
        starts = np.flatnonzero(np.diff(labels[order], prepend=-1)).tolist()
        ends = pairwise([*starts, len(order)])
        clusters = (told[start:end].tobytes() for start, end in ends)
        sorted_ = sorted(hashlib.sha256(cluster).digest() for cluster in clusters)
        return hashlib.sha256(b"".join(sorted_)).hexdigest()


def numbers_of(digests: bytes) -> Digests:
    """Return digests of 16 bytes as rows of two numbers."""
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def digest_of(*parts: bytes) -> bytes:
    """Return the digest of some bytes, each with its length."""
    hashed = hashlib.blake2b(digest_size=16, key=_KEY)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.digest()
