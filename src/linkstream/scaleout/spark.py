"""Spark: many streams at once, one clusterer a key; and one large corpus, in shards.

`cluster_by_key` is for endless streams with a key (a camera, a customer, a meeting): each key has
its own clusterer, kept by Spark between batches, exactly once. `cluster_corpus` is for one corpus
that one machine would be too long about: shards in parallel, then joined (docs/scale-out.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from linkstream.clusterer import Links
from linkstream.clusterer.base import whole_number
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.scaleout import environment
from linkstream.store.about import wanted

environment.check_packages()

from pyspark.sql import functions as f  # noqa: E402
from pyspark.sql.types import (  # noqa: E402 - what is missing is said in our words first
    ArrayType,
    IntegralType,
    LongType,
    StringType,
    StructType,
)

from linkstream.scaleout.carried import NULLS, Carried, column, key_column  # noqa: E402
from linkstream.scaleout.corpus import Corpus, clustered  # noqa: E402
from linkstream.scaleout.keyed import SAID, VECTOR, KeyedLinks, Plan  # noqa: E402
from linkstream.scaleout.vectors import check_columns  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD = 125_000  # vectors in one, unless the caller says how many shards there are
ANSWERS = (*SAID, "problem", "began")


def cluster_by_key(
    stream: DataFrame,
    key: str | Sequence[str],
    vector: str,
    *,
    thresholds: Thresholds | None = None,
    preset: str | None = None,
    begin: Links | None = None,
    order: str | Sequence[str] | None = None,
    once: bool = False,
    bad: str = "raise",
    keep: Sequence[str] | None = None,
    expire_after: timedelta | None = None,
    **options: Any,
) -> DataFrame:
    """Cluster a stream of vectors, each key by itself; each row comes out with its ID.

    Each key has a `Links` of its own, which gives the IDs that it would give on one machine. Spark
    keeps its snapshot between batches; with a checkpoint each vector is taken exactly once, whoever
    is killed. Works on frames that do not stream, too: they are one batch.

    Args:
        stream: the caller's; the session's state store has to be RocksDB.
        key: one or more columns; rows of equal keys are clustered together.
        vector: the column of vectors: array<float>, array<double>, or binary (float32 bytes).
        thresholds: of each clusterer.
        preset: instead of thresholds, a preset by name.
        begin: instead of both, the clusterer that each key begins as, with the people it knows.
        order: columns that say which of a key's rows in one batch comes first. None: as Spark
            happens to bring them, which is not the same in each run.
        once: `order` is one whole number that rises within a key (an offset, say): a row at or
            below the last one taken is a repetition, and left out.
        bad: a vector that cannot be used stops the stream ("raise") or comes out without an ID
            and with its `problem` ("mark").
        keep: columns that come out again; None: all but the vector.
        expire_after: a key without vectors for so long is forgotten, and begins anew if it comes
            again; the column `began` tells such lives apart.
        options: those of `Links`. `track_vectors` is False unless you say otherwise: state then
            grows with the subclusters, not with the stream.

    Returns:
        The kept columns, and `cluster` (the ID), `number` (the vector's place in its key), `kind`
        (joined, linked or new), `events` (JSON of what else it brought about: merges, splits), and
        `problem`.
    """
    keys, orders = _names(key), _names(order or ())
    kept = [name for name in stream.schema.names if name != vector] if keep is None else keep
    kept = _names(kept)
    pattern = _pattern(thresholds, preset, begin, options)
    _check_columns(stream.schema, keys, orders, kept, vector)
    carried = Carried.of(stream.schema, (*orders, *kept))
    plan = Plan(
        begin=pattern.to_bytes(),
        order=tuple(map(carried.order, orders)),
        kept=(*dict.fromkeys(carried.inner(kept)), NULLS),
        once=_checked_once(stream.schema, once, order),
        mark=_marks(bad),
        ttl_ms=_milliseconds(expire_after),
    )
    environment.check_session(stream.sparkSession, streams=True)
    inner_keys = [
        key_column(stream.schema[name]).alias(f"key{place}") for place, name in enumerate(keys)
    ]
    answers = (
        stream.select(*inner_keys, column(vector).alias(VECTOR), *carried.there())
        .groupBy(*(f"key{place}" for place in range(len(keys))))
        .transformWithStateInPandas(
            KeyedLinks(plan),
            _schema(carried.schema(dict.fromkeys(kept)), plan),
            "Append",
            "None" if plan.ttl_ms is None else "ProcessingTime",
        )
    )
    told = [f.col(name) for name in ANSWERS if name != "began"]
    if plan.ttl_ms is not None:
        told.append(f.timestamp_millis("began").alias("began"))
    return answers.select(*map(carried.back, kept), *told)


def cluster_corpus(
    corpus: DataFrame,
    id: str,  # noqa: A002 - what people call it
    vector: str,
    *,
    thresholds: Thresholds | None = None,
    preset: str | None = None,
    order: str | Sequence[str] | None = None,
    shards: int | None = None,
    bad: str = "raise",
    **options: Any,
) -> Corpus:
    """Cluster a corpus: shards in parallel, joined two by two; vector → the ID that it has now.

    A vector's shard follows from its id, and its place there from `order`: the answer depends on
    the data and on how many shards there are, not on machines. Runs at once; progress is Spark's.

    Args:
        corpus: a frame that does not stream.
        id: the column that names a vector, each one once.
        vector: the column of vectors: array<float>, array<double>, or binary (float32 bytes).
        thresholds: of the clusterer.
        preset: instead of thresholds, a preset by name.
        order: columns that say which vector came first; None: the order of ids.
        shards: how many; None: one for each 125,000 vectors. Fewer are closer to one run.
        bad: a vector that cannot be used stops the work ("raise") or has no cluster ("mark").
        options: those of `Links`.
    """
    tracked = {"track_vectors": True, "keep_vectors": False}
    pattern = _pattern(thresholds, preset, None, options | tracked)
    mark, names = _marks(bad), _names(order or ())
    check_columns(corpus.schema, vector, (id, *names))
    if id == "cluster":
        raise ArgumentError(
            "ids in a column 'cluster', which the answer has too",
            expected="another name",
            remedy="Rename it: corpus.withColumnRenamed('cluster', 'id').",
        )
    environment.check_session(corpus.sparkSession, streams=False)
    n = _n_shards(corpus, shards)
    rows = corpus.select(
        f.pmod(f.xxhash64(column(id)), f.lit(n)).cast("int").alias("shard"),
        column(id).alias("id"),
        column(vector).alias("vector"),
        *(column(name).alias(f"order{place}") for place, name in enumerate(names)),
    )
    inner = [name for name in rows.columns if name.startswith("order")]
    rows = rows.repartitionById(n, f.col("shard")).sortWithinPartitions(*inner, "id")
    return clustered(rows, id, pattern.to_bytes(), n, mark=mark)


def _n_shards(corpus: DataFrame, shards: int | None) -> int:
    if corpus.isStreaming:
        raise ArgumentError(
            "a frame that streams",
            expected="one that ends",
            remedy="For streams there is cluster_by_key.",
        )
    if shards is None:
        return max(1, -(-corpus.count() // SHARD))
    return whole_number("shards", shards, "in how many parts the corpus is clustered")


def _pattern(
    thresholds: Thresholds | None,
    preset: str | None,
    begin: Links | None,
    options: dict[str, Any],
) -> Links:
    """What each clusterer begins as."""
    if begin is not None and (thresholds is not None or preset is not None or options):
        raise ArgumentError(
            "begin, and thresholds, a preset or options beside it",
            expected="begin alone, which has all of them",
            remedy="Make the clusterer as it should be, and pass it.",
        )
    asked = begin or wanted(thresholds, preset, {"track_vectors": False} | options)
    if not isinstance(asked, Links):
        raise ArgumentError(
            "no thresholds" if asked is None else f"begin of type {type(asked).__name__}",
            expected="thresholds=, preset= or begin=",
            remedy="Thresholds belong to an encoder: take a preset, or linkstream.tuning.tune.",
        )
    return asked


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _marks(bad: str) -> bool:
    if bad not in ("raise", "mark"):
        raise ArgumentError(
            f"bad={bad!r}",
            expected="'raise' or 'mark'",
            remedy="'mark' lets rows whose vector cannot be used come out with their problem.",
        )
    return bad == "mark"


def _milliseconds(expire_after: timedelta | None) -> int | None:
    if expire_after is None:
        return None
    if not isinstance(expire_after, timedelta) or expire_after < timedelta(milliseconds=1):
        raise ArgumentError(
            f"expire_after={expire_after!r}",
            expected="a timedelta above zero, or None",
            remedy="timedelta(days=30), say: how long a key without vectors is remembered.",
        )
    return expire_after // timedelta(milliseconds=1)


def _checked_once(schema: StructType, once: bool, order: str | Sequence[str] | None) -> bool:
    names = _names(order or ())
    if once and (
        len(names) != 1
        or names[0] not in schema.names
        or not isinstance(schema[names[0]].dataType, IntegralType)
    ):
        raise ArgumentError(
            f"once=True with order={order!r}",
            expected="one column of whole numbers that rise within a key",
            remedy="An offset or a sequence number tells repetitions; a time does not.",
        )
    return bool(once)


def _check_columns(
    schema: StructType, key: Sequence[str], order: Sequence[str], kept: Sequence[str], vector: str
) -> None:
    check_columns(schema, vector, (*key, *order, *kept))
    if not key or vector in (*key, *order):
        raise ArgumentError(
            f"key {key}, order {order}, vector {vector!r}",
            expected="a key, and a column of vectors that is neither key nor order",
            remedy="Without a key use a constant column: one clusterer, one task.",
        )
    taken = sorted(set(kept) & set(ANSWERS))
    if taken:
        raise ArgumentError(
            f"columns {', '.join(taken)}, which the answer has too",
            expected=f"other names than {', '.join(ANSWERS)}",
            remedy="Rename them, or leave them out by keep=.",
        )


def _schema(kept: StructType, plan: Plan) -> StructType:
    """What workers give: the columns that they carry, and their answers."""
    schema = (
        StructType(list(kept.fields))
        .add("cluster", LongType())
        .add("number", LongType())
        .add("kind", StringType())
        .add("events", ArrayType(StringType()))
        .add("problem", StringType())
    )
    return schema if plan.ttl_ms is None else schema.add("began", LongType())
