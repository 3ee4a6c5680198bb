"""One large corpus: shards are clustered in parallel, then joined two by two.

Little data goes from worker to worker: a snapshot without vectors, and for each subcluster of each
shard the subcluster that now holds it. Vectors stay where they are, with the number of the
subcluster of their shard.

For a rebuild vectors go along: snapshots have them, a map from vector to vector takes the place of
that of subclusters, and one worker rebuilds the union at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as f

from linkstream.clusterer import Links
from linkstream.errors import ArgumentError, VectorError
from linkstream.identity.ledger import GONE
from linkstream.scaleout import vectors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BROADCAST_MAX = 10_000_000  # rows of the map of subclusters that is sent to every worker
Integers = npt.NDArray[np.int64]
Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# A group goes from worker to worker in pieces: Spark is slow with rows of several megabytes, and
# rows are limited to two gigabytes.
PIECE = 1 << 20
COLUMNS = pa.schema(
    [("part", pa.int32()), ("field", pa.string()), ("place", pa.int32()), ("body", pa.binary())]
)
_SPARK_TYPES = {pa.int32(): "INT", pa.string(): "STRING", pa.binary(): "BINARY"}
PIECE_SCHEMA = ", ".join(f"{column.name} {_SPARK_TYPES[column.type]}" for column in COLUMNS)
MAPS = ("shards", "numbers", "holders")  # fields of a group besides its clusterer


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """A clustered corpus.

    Attributes:
        ids: one row a vector: its id, and `cluster`, its current cluster ID; null if the vector
            was not usable.
        links: the clusterer of the corpus, without vectors: to query, save and continue.
        shards: how many shards there were.
    """

    ids: DataFrame
    links: Links
    shards: int
    _rows: DataFrame = field(repr=False)

    def release(self) -> None:
        """Free what Spark caches for `ids`. Read the table before."""
        self._rows.unpersist()


def check_ids(ids: DataFrame, name: str) -> int:
    """Return the number of rows; raise ArgumentError if an id is null or occurs twice."""
    lacks, again = f.col("id").isNull(), f.col("id").isNotNull() & (f.col("rows") > 1)
    seen = (
        ids.groupBy("id")
        .agg(f.count(f.lit(1)).alias("rows"))
        .agg(
            f.sum("rows").alias("rows"),
            f.sum(f.when(lacks, f.col("rows"))).alias("null"),
            f.count(f.when(again, 1)).alias("repeated"),
            f.sum(f.when(again, f.col("rows"))).alias("sharing"),
            f.min(f.when(again, f.col("id"))).alias("example"),
        )
        .first()
    )
    assert seen is not None, "an aggregate without groups has one row"
    found = [f"null in {seen['null']:,} rows"] if seen["null"] else []
    if seen["repeated"]:
        found.append(
            f"{seen['repeated']:,} ids that {seen['sharing']:,} rows share, "
            f"such as {seen['example']!r}"
        )
    if found:
        raise ArgumentError(
            f"in the column of ids {name!r}: {'; '.join(found)}",
            expected="an id in each row, and each id once",
            remedy='Leave such rows out: corpus.dropna(subset=["id"]).dropDuplicates(["id"]).',
        )
    return int(seen["rows"] or 0)


def cluster_rows(
    rows: DataFrame, id_name: str, begin: bytes, n_shards: int, *, mark: bool
) -> Corpus:
    """Cluster rows of `shard`, `id` and `vector` that are partitioned by shard and sorted.

    They are rebuilt at the end if the clusterer that shards begin with keeps vectors.
    """
    id_type = rows.schema["id"].dataType.simpleString()
    leaves = rows.select("shard", "id", "vector").mapInArrow(
        cluster_shard(begin, mark=mark),
        f"id {id_type}, shard INT, subcluster BIGINT, {PIECE_SCHEMA}",
    )
    leaves = leaves.persist(StorageLevel.MEMORY_AND_DISK)
    first = Links.from_bytes(begin)
    pieces = leaves.where("body IS NOT NULL").drop("id", "shard", "subcluster")
    joined = _joined(pieces, n_shards, rebuild=first.keep_vectors)
    placed = leaves.where("body IS NULL").select("id", "shard", "subcluster")
    session = rows.sparkSession
    if joined is None:
        empty = placed.select(
            f.col("id").alias(id_name), f.lit(None).cast("bigint").alias("cluster")
        )
        return Corpus(empty, first.without_vectors(), n_shards, leaves)
    table = pd.DataFrame(
        {"shard": joined.shards, "subcluster": joined.numbers, "cluster": joined.clusters()}
    )
    holders = session.createDataFrame(table, "shard INT, subcluster BIGINT, cluster BIGINT")
    if len(table) <= BROADCAST_MAX:
        holders = f.broadcast(holders)
    found = placed.join(holders, ["shard", "subcluster"], "left")
    cluster = f.when(f.col("cluster") >= 0, f.col("cluster")).alias("cluster")
    return Corpus(found.select(f.col("id").alias(id_name), cluster), joined.links, n_shards, leaves)


def _joined(pieces: DataFrame, n: int, *, rebuild: bool) -> ShardGroup | None:
    """Join all groups two by two, round by round, and rebuild; return None if there is none."""
    while n > 1:
        n = (n + 1) // 2
        pairs = pieces.repartitionById(n, (f.col("part") / 2).cast("int"))
        pieces = pairs.mapInArrow(join_groups, PIECE_SCHEMA)
    if rebuild:
        pieces = pieces.repartitionById(1, f.lit(0)).mapInArrow(finish_groups, PIECE_SCHEMA)
    groups = read_groups(pieces.toArrow().to_batches())
    return groups[0] if groups else None


@dataclass(frozen=True, slots=True, eq=False)
class ShardGroup:
    """Shards that were joined into one clusterer.

    Attributes:
        number: index among the groups of its round.
        links: the clusterer.
        shards: for each subcluster of each shard: the shard.
        numbers: the number of the subcluster in its shard.
        holders: the number of the subcluster of `links` that now holds it.

    While the clusterer keeps vectors, `numbers` and `holders` are numbers of vectors.
    """

    number: int
    links: Links
    shards: Integers
    numbers: Integers
    holders: Integers

    @classmethod
    def of_shard(cls, shard: int, links: Links) -> ShardGroup:
        """Return the group of one shard."""
        if links.keep_vectors:
            numbers = np.arange(links.n_vectors)
            return cls(shard, links, np.full(len(numbers), shard), numbers, numbers)
        numbers = links.state().numbers
        return cls(shard, links.without_vectors(), np.full(len(numbers), shard), numbers, numbers)

    @classmethod
    def from_pieces(cls, number: int, rows: list[dict[str, Any]]) -> ShardGroup:
        """Return the group that `pieces` wrote; the rows may be in any order."""
        bodies: dict[str, list[bytes]] = {}
        for row in sorted(rows, key=lambda row: row["place"]):
            bodies.setdefault(row["field"], []).append(row["body"])
        fields = {name: b"".join(some) for name, some in bodies.items()}
        links = Links.from_bytes(fields["links"], threads=1)
        return cls(number, links, *(np.frombuffer(fields[name], dtype="<i8") for name in MAPS))

    def pieces(self) -> Iterator[pa.RecordBatch]:
        """Yield the group as rows for the next worker."""
        fields = {"links": self.links.to_bytes(history=False)}
        fields |= {name: getattr(self, name).astype("<i8").tobytes() for name in MAPS}
        for name, body in fields.items():
            for place, first in enumerate(range(0, len(body) or 1, PIECE)):
                row = {"part": self.number, "field": name, "place": place}
                row["body"] = body[first : first + PIECE]
                yield pa.RecordBatch.from_pylist([row], schema=COLUMNS)

    def joined(self, other: ShardGroup) -> ShardGroup:
        """Absorb the other clusterer into this one; return the joined group."""
        moved = self.links.absorb(other.links)
        if moved.vectors is not None:
            mine, theirs = self.holders, moved.vectors[other.holders]
        else:
            mine = _looked_up(self.holders, moved.merged, default=None)
            theirs = _looked_up(other.holders, moved.subclusters, default=GONE)
        return ShardGroup(
            self.number,
            self.links,
            np.concatenate([self.shards, other.shards]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([mine, theirs]),
        )

    def finished(self) -> ShardGroup:
        """Return the group without vectors, rebuilt before if it has them."""
        if not self.links.keep_vectors:
            return self
        self.links.rebuild(apply=True)
        holders = self.links.state().vectors[self.holders]
        return replace(self, links=self.links.without_vectors(), holders=holders)

    def clusters(self) -> Integers:
        """Return the cluster of each subcluster of the map; −1 if it was removed."""
        state = self.links.state()
        known = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
        return _looked_up(self.holders, known, default=GONE)


def _looked_up(keys: Integers, found: dict[int, int], *, default: int | None) -> Integers:
    """Return the value of each key: without one the default, or the key if that is None."""
    values = [found.get(key, key if default is None else default) for key in keys.tolist()]
    return np.array(values, dtype=np.int64)


def cluster_shard(begin: bytes, *, mark: bool) -> Work:
    """Return the work of the first round: cluster the sorted rows of one shard."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        links, shard = Links.from_bytes(begin, threads=1), 0
        ids: list[pa.Array] = []
        taken: list[npt.NDArray[np.bool_]] = []
        for batch in batches:
            if batch.num_rows:
                shard = batch["shard"][0].as_py()
                ids.append(batch["id"])
                taken.append(_add_batch(links, batch, mark=mark))
        if ids:
            holders = np.full(sum(map(len, taken)), GONE)
            kept = links.keep_vectors
            held = np.arange(links.n_vectors) if kept else links.state().vectors
            holders[np.concatenate(taken)] = held
            yield from _vector_rows(ids, shard, holders)
            for row in ShardGroup.of_shard(shard, links).pieces():
                yield _with_nulls({name: row[name] for name in COLUMNS.names}, ids[0].type)

    return work


def _add_batch(links: Links, batch: pa.RecordBatch, *, mark: bool) -> npt.NDArray[np.bool_]:
    """Add a batch to the clusterer; return which rows were added."""
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


def _vector_rows(ids: list[pa.Array], shard: int, holders: Integers) -> Iterator[pa.RecordBatch]:
    """Yield the id, shard and subcluster of each vector."""
    first = 0
    for some in ids:
        n = len(some)
        columns = {
            "id": some,
            "shard": pa.array(np.full(n, shard, dtype=np.int32)),
            "subcluster": pa.array(holders[first : first + n]),
        }
        first += n
        yield _with_nulls(columns, some.type)


def _with_nulls(columns: dict[str, pa.Array], id_type: pa.DataType) -> pa.RecordBatch:
    """Return a batch with the columns of vectors and of pieces; those not given are null."""
    types = {"id": id_type, "shard": pa.int32(), "subcluster": pa.int64()}
    types |= {column.name: column.type for column in COLUMNS}
    n = len(next(iter(columns.values())))
    nulls = {name: pa.nulls(n, kind) for name, kind in types.items()}
    return pa.RecordBatch.from_pydict(nulls | columns)


def read_groups(batches: Iterable[pa.RecordBatch]) -> list[ShardGroup]:
    """Return the groups that the rows hold, in order of their numbers."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            rows.setdefault(row["part"], []).append(row)
    return [ShardGroup.from_pieces(number, rows.pop(number)) for number in sorted(rows)]


def join_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the work of each further round: join the groups of one pair."""
    groups = read_groups(batches)
    if groups:
        joined = groups[0]
        for group in groups[1:]:
            joined = joined.joined(group)
        yield from replace(joined, number=joined.number // 2).pieces()


def finish_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the work of the last round: rebuild the group if it has vectors."""
    for group in read_groups(batches):
        yield from group.finished().pieces()
