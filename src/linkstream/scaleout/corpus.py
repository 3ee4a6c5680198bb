"""One large corpus: shards clustered in parallel, joined by a tree of `absorb`, and the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd
from pyspark import StorageLevel
from pyspark.sql import functions as f

from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.scaleout import shards
from linkstream.scaleout.shards import PIECES, Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVERYWHERE = 10_000_000  # rows of the map of subclusters that each worker is given


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """A corpus that was clustered.

    Attributes:
        ids: a row for each vector: its id, and `cluster`, the ID that it has now; null where the
            vector could not be used.
        links: the clusterer of all of it, without vectors: to ask, to save, to go on with.
        shards: how many there were.
    """

    ids: DataFrame
    links: Links
    shards: int
    _rows: DataFrame = field(repr=False)

    def release(self) -> None:
        """Let go of what Spark holds for the table; read it before."""
        self._rows.unpersist()


def check_ids(ids: DataFrame, name: str) -> int:
    """Return how many rows there are; ArgumentError if an id is null or two rows have it.

    Args:
        ids: a frame of one column, `id`.
        name: what the caller calls that column.
    """
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


def clustered(rows: DataFrame, id_name: str, begin: bytes, n_shards: int, *, mark: bool) -> Corpus:
    """Cluster rows of `shard`, `order`…, `id` and `vector`, spread by shard and in order there."""
    id_type = rows.schema["id"].dataType.simpleString()
    leaves = rows.select("shard", "id", "vector").mapInArrow(
        shards.cluster_shard(begin, mark=mark),
        f"id {id_type}, shard INT, subcluster BIGINT, {PIECES}",
    )
    leaves = leaves.persist(StorageLevel.MEMORY_AND_DISK)
    whole = _joined(leaves.where("body IS NOT NULL").drop("id", "shard", "subcluster"), n_shards)
    placed = leaves.where("body IS NULL").select("id", "shard", "subcluster")
    session = rows.sparkSession
    if whole is None:
        empty = placed.select(
            f.col("id").alias(id_name), f.lit(None).cast("bigint").alias("cluster")
        )
        return Corpus(empty, Links.from_bytes(begin).without_vectors(), n_shards, leaves)
    table = pd.DataFrame(
        {"shard": whole.shards, "subcluster": whole.numbers, "cluster": whole.clusters()}
    )
    holders = session.createDataFrame(table, "shard INT, subcluster BIGINT, cluster BIGINT")
    if len(table) <= EVERYWHERE:
        holders = f.broadcast(holders)
    found = placed.join(holders, ["shard", "subcluster"], "left")
    cluster = f.when(f.col("cluster") >= 0, f.col("cluster")).alias("cluster")
    return Corpus(found.select(f.col("id").alias(id_name), cluster), whole.links, n_shards, leaves)


def _joined(parts: DataFrame, n: int) -> Part | None:
    """All parts as one: two by two, round by round; None where there is none."""
    while n > 1:
        n = (n + 1) // 2
        pairs = parts.repartitionById(n, (f.col("part") / 2).cast("int"))
        parts = pairs.mapInArrow(shards.join_parts, PIECES)
    whole = shards.read_parts(parts.toArrow().to_batches())
    return whole[0] if whole else None
