"""One large corpus: what workers do. Each clusters a shard; then two by two they become one.

What goes from worker to worker is small: a snapshot without vectors, and for each subcluster of
each shard the one that now holds it. Vectors stay where they are, with the number of the subcluster
that their shard put them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from linkstream.clusterer import Links
from linkstream.errors import VectorError
from linkstream.identity.ledger import GONE
from linkstream.scaleout import vectors

Integers = npt.NDArray[np.int64]
Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Columns of what is joined: the number of a part, its clusterer, and the map of subclusters.
PART_TYPES = {
    "part": pa.int32(),
    "links": pa.binary(),
    "shards": pa.list_(pa.int32()),
    "numbers": pa.list_(pa.int64()),
    "holders": pa.list_(pa.int64()),
}
_IN_SPARK = {
    pa.int32(): "INT",
    pa.binary(): "BINARY",
    pa.list_(pa.int32()): "ARRAY<INT>",
    pa.list_(pa.int64()): "ARRAY<BIGINT>",
}
PART = ", ".join(f"{name} {_IN_SPARK[kind]}" for name, kind in PART_TYPES.items())


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some shards that have become one clusterer.

    Attributes:
        number: place among the parts of its round.
        links: the clusterer, without vectors.
        shards, numbers, holders: of each subcluster that a shard ended with: the shard, its
            number there, and that of the subcluster which holds it in `links`.
    """

    number: int
    links: Links
    shards: Integers
    numbers: Integers
    holders: Integers

    @classmethod
    def of_shard(cls, shard: int, links: Links) -> Part:
        """A shard by itself."""
        numbers = links.state().numbers
        return cls(shard, links.without_vectors(), np.full(len(numbers), shard), numbers, numbers)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Part:
        """What `to_batch` wrote."""
        maps = (np.asarray(row[name], dtype=np.int64) for name in ("shards", "numbers", "holders"))
        return cls(row["part"], Links.from_bytes(row["links"], threads=1), *maps)

    def to_batch(self) -> pa.RecordBatch:
        """As one row, for the next worker."""
        values: dict[str, Any] = {
            "part": self.number,
            "links": self.links.to_bytes(history=False),
            "shards": self.shards.astype(np.int32),
            "numbers": self.numbers,
            "holders": self.holders,
        }
        columns = {name: pa.array([values[name]], kind) for name, kind in PART_TYPES.items()}
        return pa.RecordBatch.from_pydict(columns)

    def joined(self, other: Part) -> Part:
        """Both as one; the other's subclusters come into this one's clusterer."""
        moved = self.links.absorb(other.links)
        mine = _looked_up(self.holders, moved.merged, default=None)
        theirs = _looked_up(other.holders, moved.subclusters, default=GONE)
        return Part(
            self.number,
            self.links,
            np.concatenate([self.shards, other.shards]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([mine, theirs]),
        )

    def clusters(self) -> Integers:
        """For each entry of the map, the ID of the cluster that holds it; −1: it is gone."""
        state = self.links.state()
        known = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
        return _looked_up(self.holders, known, default=GONE)


def _looked_up(keys: Integers, found: dict[int, int], *, default: int | None) -> Integers:
    """Each key's value; without one the default, or with None the key itself."""
    values = [found.get(key, key if default is None else default) for key in keys.tolist()]
    return np.array(values, dtype=np.int64)


def cluster_shard(begin: bytes, *, mark: bool) -> Work:
    """The work of the first round: rows of one shard in, in order; rows and its clusterer out."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        links, shard = Links.from_bytes(begin, threads=1), 0
        ids: list[pa.Array] = []
        taken: list[npt.NDArray[np.bool_]] = []
        for batch in batches:
            if batch.num_rows:
                shard = batch["shard"][0].as_py()
                ids.append(batch["id"])
                taken.append(_taken(links, batch, mark=mark))
        if ids:
            holders = np.full(sum(map(len, taken)), GONE)
            holders[np.concatenate(taken)] = links.state().vectors
            yield from _placed(ids, shard, holders)
            yield _with_links(Part.of_shard(shard, links), ids[0].type)

    return work


def _taken(links: Links, batch: pa.RecordBatch, *, mark: bool) -> npt.NDArray[np.bool_]:
    """Give a batch to the clusterer; which rows it took."""
    try:
        links.add_many(vectors.block(batch["vector"]))
        return np.ones(batch.num_rows, dtype=bool)
    except VectorError as error:
        if not mark:
            row = "" if error.row is None else f" (id {batch['id'][error.row].as_py()!r})"
            raise VectorError(
                f"{error.seen}{row}",
                expected=error.expected,
                remedy="Leave such rows out, or pass bad='mark': they then have no cluster.",
                row=error.row,
            ) from None
    values = np.empty(batch.num_rows, dtype=object)
    values[:] = batch["vector"].to_pylist()
    good, problems = vectors.usable(links, values)
    if len(good):
        links.add_many(good)
    return np.array([problem is None for problem in problems])


def _placed(ids: list[pa.Array], shard: int, holders: Integers) -> Iterator[pa.RecordBatch]:
    """Each row's id, shard and subcluster; of what a part is written with nothing."""
    first = 0
    for some in ids:
        n = len(some)
        columns = {
            "id": some,
            "shard": pa.array(np.full(n, shard, dtype=np.int32)),
            "subcluster": pa.array(holders[first : first + n]),
        }
        columns |= {name: pa.nulls(n, kind) for name, kind in PART_TYPES.items()}
        first += n
        yield pa.RecordBatch.from_pydict(columns)


def _with_links(part: Part, id_type: pa.DataType) -> pa.RecordBatch:
    row = part.to_batch()
    columns = {
        "id": pa.nulls(1, id_type),
        "shard": pa.nulls(1, pa.int32()),
        "subcluster": pa.nulls(1, pa.int64()),
    }
    columns |= {name: row[name] for name in PART_TYPES}
    return pa.RecordBatch.from_pydict(columns)


def join_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The work of each further round: the parts of one pair in, one part out."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    if rows:
        parts = sorted(map(Part.from_row, rows), key=lambda part: part.number)
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.joined(part)
        yield replace(whole, number=whole.number // 2).to_batch()
