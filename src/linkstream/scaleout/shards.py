"""One large corpus: what workers do. Each clusters a shard; then two by two they become one.

What goes from worker to worker is small: a snapshot without vectors, and for each subcluster of
each shard the one that now holds it. Vectors stay where they are, with the number of the subcluster
that their shard put them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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

# A part goes from worker to worker in pieces: rows of Spark beyond some megabytes are slow, and
# beyond two gigabytes there are none.
PIECE = 1 << 20
COLUMNS = pa.schema(
    [("part", pa.int32()), ("field", pa.string()), ("place", pa.int32()), ("body", pa.binary())]
)
_IN_SPARK = {pa.int32(): "INT", pa.string(): "STRING", pa.binary(): "BINARY"}
PIECES = ", ".join(f"{column.name} {_IN_SPARK[column.type]}" for column in COLUMNS)
MAPS = ("shards", "numbers", "holders")  # fields of a part beside its clusterer


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
    def from_pieces(cls, number: int, rows: list[dict[str, Any]]) -> Part:
        """What `pieces` wrote, in any order."""
        bodies: dict[str, list[bytes]] = {}
        for row in sorted(rows, key=lambda row: row["place"]):
            bodies.setdefault(row["field"], []).append(row["body"])
        whole = {name: b"".join(some) for name, some in bodies.items()}
        links = Links.from_bytes(whole["links"], threads=1)
        return cls(number, links, *(np.frombuffer(whole[name], dtype="<i8") for name in MAPS))

    def pieces(self) -> Iterator[pa.RecordBatch]:
        """As rows, for the next worker."""
        fields = {"links": self.links.to_bytes(history=False)}
        fields |= {name: getattr(self, name).astype("<i8").tobytes() for name in MAPS}
        for name, body in fields.items():
            for place, first in enumerate(range(0, len(body) or 1, PIECE)):
                row = {"part": self.number, "field": name, "place": place}
                row["body"] = body[first : first + PIECE]
                yield pa.RecordBatch.from_pylist([row], schema=COLUMNS)

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
            for row in Part.of_shard(shard, links).pieces():
                yield _beside(row, ids[0].type)

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
        columns |= {column.name: pa.nulls(n, column.type) for column in COLUMNS}
        first += n
        yield pa.RecordBatch.from_pydict(columns)


def _beside(piece: pa.RecordBatch, id_type: pa.DataType) -> pa.RecordBatch:
    """A piece among rows of vectors."""
    columns = {
        "id": pa.nulls(1, id_type),
        "shard": pa.nulls(1, pa.int32()),
        "subcluster": pa.nulls(1, pa.int64()),
    }
    columns |= {name: piece[name] for name in COLUMNS.names}
    return pa.RecordBatch.from_pydict(columns)


def read_parts(batches: Iterable[pa.RecordBatch]) -> list[Part]:
    """All parts that the rows have, in order."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            rows.setdefault(row["part"], []).append(row)
    return [Part.from_pieces(number, rows.pop(number)) for number in sorted(rows)]


def join_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The work of each further round: the parts of one pair in, one part out."""
    parts = read_parts(batches)
    if parts:
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.joined(part)
        yield from replace(whole, number=whole.number // 2).pieces()
