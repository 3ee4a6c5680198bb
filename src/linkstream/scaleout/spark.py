"""Cluster on Spark: many streams with one clusterer a key, or one large corpus in shards.

`cluster_by_key` is for streams with a key (a camera, a customer, a meeting): each key has its own
clusterer, which Spark keeps between batches, exactly once. `cluster_corpus` is for a corpus that
takes too long on one machine: shards are clustered in parallel, then joined (docs/scale-out.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from linkstream.clusterer import Links
from linkstream.clusterer.checks import check_yes_no, whole_number
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.scaleout import environment
from linkstream.store.about import wanted

environment.check_packages()

from pyspark.sql import functions as f  # noqa: E402
from pyspark.sql.types import (  # noqa: E402 - after the check, which names what is missing
    ArrayType,
    DoubleType,
    IntegralType,
    LongType,
    StringType,
    StructType,
)

from linkstream.scaleout.columns import (  # noqa: E402
    NULLS,
    ColumnOrName,
    FoundColumn,
    WorkerColumns,
    all_but,
    find_column,
    find_columns,
    key_column,
)
from linkstream.scaleout.corpus import Corpus, check_ids, cluster_rows  # noqa: E402
from linkstream.scaleout.keyed import RESULTS, TOLD, VECTOR, KeyedLinks, Plan  # noqa: E402
from linkstream.scaleout.vectors import check_type  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD = 125_000  # vectors of a shard, unless the caller gives the number of shards
OUTPUT = (*RESULTS, "problem", "began")


def cluster_by_key(
    stream: DataFrame,
    key: ColumnOrName | Sequence[ColumnOrName],
    vector: ColumnOrName,
    *,
    thresholds: Thresholds | None = None,
    preset: str | None = None,
    begin: Links | None = None,
    order: ColumnOrName | Sequence[ColumnOrName] | None = None,
    once: bool = False,
    bad: str = "raise",
    keep: ColumnOrName | Sequence[ColumnOrName] | None = None,
    expire_after: timedelta | None = None,
    **options: Any,
) -> DataFrame:
    """Cluster a stream of vectors separately for each key; return each row with its ID.

    Each key has a `Links` of its own, which gives the same IDs as on one machine. Spark keeps its
    snapshot between batches; with a checkpoint each vector is added exactly once, even if processes
    are killed. A frame that does not stream is one batch.

    Columns are names, found as Spark finds them, or `Column` objects of the stream. A checkpoint
    keeps the settings: a query that starts from it with other settings fails at once.

    Args:
        stream: the frame; the state store of its session has to be RocksDB.
        key: one or more columns; rows of equal keys are clustered together.
        vector: the column of vectors: array<float>, array<double>, or binary (float32 bytes).
        thresholds: thresholds of each clusterer.
        preset: name of a preset, instead of `thresholds`.
        begin: clusterer that each key begins with, with the people it knows; instead of both.
        order: columns to sort the rows of a key in one batch by. Default: the order in which
            Spark delivers them, which may differ from run to run.
        once: drop a row at or below the last one that was added. `order` must then be one column
            of whole numbers that rise within a key, such as an offset.
        bad: "raise" stops the stream at an unusable vector; "mark" returns its row without an ID
            and with a `problem`.
        keep: columns to return. Default: all but the vector.
        expire_after: forget a key that has no vectors for this long; it begins again if it comes
            back, with another time in the column `began`. Default: never.
        options: `granularity` of the preset, and options of `Links`. `track_vectors` is False by
            default, so that the state grows with the subclusters and not with the stream.

    Returns:
        The kept columns, and `cluster` (the ID), `number` (the vector's number within its key),
        `kind` (joined, linked or new), `events` (its other events, such as merges and splits, as
        JSON), and `problem`. With `confidence=`, or a `begin` that has a model, also
        `cluster_margin` and `probability` (that the decision is right; null if unknown).
    """
    first = _first_links(thresholds, preset, begin, options)
    keys, vectors = find_columns(stream, key), find_column(stream, vector)
    orders = () if order is None else find_columns(stream, order)
    kept = all_but(stream, vectors) if keep is None else find_columns(stream, keep)
    model = first.confidence.model
    _check_columns(keys, orders, kept, vectors, OUTPUT if model is None else (*OUTPUT, *TOLD))
    passed = WorkerColumns.of((*orders, *kept))
    plan = Plan(
        begin=first.to_bytes(),
        order=tuple(map(passed.order, orders)),
        kept=(*passed.names(kept), NULLS),
        once=_checked_once(once, orders),
        mark=_marks(bad),
        ttl_ms=_milliseconds(expire_after),
        model=model,
    )
    environment.check_session(stream.sparkSession, streams=True)
    inner_keys = [key_column(each).alias(f"key{index}") for index, each in enumerate(keys)]
    results = (
        stream.select(*inner_keys, vectors.column.alias(VECTOR), *passed.encoded())
        .groupBy(*(f"key{index}" for index in range(len(keys))))
        .transformWithStateInPandas(
            KeyedLinks(plan),
            _schema(passed.schema(kept), plan),
            "Append",
            "None" if plan.ttl_ms is None else "ProcessingTime",
        )
    )
    output = [f.col(name) for name in (*RESULTS, *plan.told, "problem")]
    if plan.ttl_ms is not None:
        output.append(f.timestamp_millis("began").alias("began"))
    return results.select(*map(passed.decoded, kept), *output)


def cluster_corpus(
    corpus: DataFrame,
    id: ColumnOrName,
    vector: ColumnOrName,
    *,
    thresholds: Thresholds | None = None,
    preset: str | None = None,
    order: ColumnOrName | Sequence[ColumnOrName] | None = None,
    shards: int | None = None,
    bad: str = "raise",
    rebuild: bool = False,
    **options: Any,
) -> Corpus:
    """Cluster a corpus in shards, in parallel; return the cluster ID of each vector.

    The shard of a vector follows from its id, and its position there from `order`: the result
    depends on the data and on the number of shards, not on machines. The job runs at once; Spark
    shows its progress.

    Args:
        corpus: a frame that does not stream.
        id: the column of unique ids. Null, or an id that occurs twice, is refused before anything
            is clustered.
        vector: the column of vectors: array<float>, array<double>, or binary (float32 bytes).
        thresholds: thresholds of the clusterer.
        preset: name of a preset, instead of `thresholds`.
        order: columns to sort the vectors by. Default: the order of ids.
        shards: number of shards. Default: one for each 125,000 vectors. The fewer shards, the
            closer the result to that of one machine.
        bad: "raise" stops the job at an unusable vector; "mark" leaves it without a cluster.
        rebuild: rebuild the union at the end, as `Links.rebuild` does: the set of vectors alone
            then decides who shares a cluster, not `order` or `shards`. Vectors go from worker to
            worker, and the last one has all of them in memory.
        options: `granularity` of the preset, and options of `Links`.
    """
    tracked = {"track_vectors": True, "keep_vectors": _rebuilds(rebuild, options)}
    first = _first_links(thresholds, preset, None, options | tracked)
    mark = _marks(bad)
    ids, vectors = find_column(corpus, id), find_column(corpus, vector)
    orders = () if order is None else find_columns(corpus, order)
    check_type(vectors.name, vectors.type)
    _check_corpus(corpus, ids)
    if shards is not None:
        shards = whole_number("shards", shards, "in how many parts the corpus is clustered")
    environment.check_session(corpus.sparkSession, streams=False)
    n_rows = check_ids(corpus.select(ids.column.alias("id")), ids.name)
    n = shards or max(1, -(-n_rows // SHARD))
    rows = corpus.select(
        f.pmod(f.xxhash64(ids.column), f.lit(n)).cast("int").alias("shard"),
        ids.column.alias("id"),
        vectors.column.alias("vector"),
        *(each.column.alias(f"order{index}") for index, each in enumerate(orders)),
    )
    inner = [name for name in rows.columns if name.startswith("order")]
    rows = rows.repartitionById(n, f.col("shard")).sortWithinPartitions(*inner, "id")
    return cluster_rows(rows, ids.name, first.to_bytes(), n, mark=mark)


def _rebuilds(rebuild: bool, options: Mapping[str, Any]) -> bool:
    """Return whether to rebuild; raise ArgumentError if shards would drop vectors."""
    drops = [name for name in ("max_subclusters", "max_idle") if options.get(name) is not None]
    if check_yes_no("rebuild", rebuild) and drops:
        raise ArgumentError(
            f"rebuild=True with {drops[0]}={options[drops[0]]!r}",
            expected="no limit: which vectors a shard drops depends on their order",
            remedy=f"Leave {drops[0]} out, or do not rebuild.",
        )
    return bool(rebuild)


def _check_corpus(corpus: DataFrame, ids: FoundColumn) -> None:
    if corpus.isStreaming:
        raise ArgumentError(
            "a frame that streams",
            expected="one that ends",
            remedy="Use cluster_by_key for streams.",
        )
    if ids.name.lower() == "cluster":
        raise ArgumentError(
            f"ids in a column {ids.name!r}, which the result has too",
            expected="another name",
            remedy="Rename it: corpus.withColumnRenamed('cluster', 'id').",
        )


def _first_links(
    thresholds: Thresholds | None, preset: str | None, begin: Links | None, options: dict[str, Any]
) -> Links:
    """Return the clusterer that each key or shard begins with."""
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


def _marks(bad: str) -> bool:
    if bad not in ("raise", "mark"):
        raise ArgumentError(
            f"bad={bad!r}",
            expected="'raise' or 'mark'",
            remedy="'mark' returns rows with an unusable vector together with their problem.",
        )
    return bad == "mark"


def _milliseconds(expire_after: timedelta | None) -> int | None:
    if expire_after is None:
        return None
    if not isinstance(expire_after, timedelta) or expire_after < timedelta(milliseconds=1):
        raise ArgumentError(
            f"expire_after={expire_after!r}",
            expected="a timedelta above zero, or None",
            remedy="Pass how long to keep a key without vectors, such as timedelta(days=30).",
        )
    return expire_after // timedelta(milliseconds=1)


def _checked_once(once: bool, orders: Sequence[FoundColumn]) -> bool:
    if once and (len(orders) != 1 or not isinstance(orders[0].type, IntegralType)):
        raise ArgumentError(
            f"once=True with order={[each.name for each in orders]}",
            expected="one column of whole numbers that rise within a key",
            remedy="Order by an offset or a sequence number; times may be equal.",
        )
    return bool(once)


def _check_columns(
    keys: Sequence[FoundColumn],
    orders: Sequence[FoundColumn],
    kept: Sequence[FoundColumn],
    vector: FoundColumn,
    output: Sequence[str],
) -> None:
    check_type(vector.name, vector.type)
    other = {each.name.lower() for each in (*keys, *orders)}
    if not keys or vector.name.lower() in other:
        named = [[each.name for each in some] for some in (keys, orders)]
        raise ArgumentError(
            f"key {named[0]}, order {named[1]}, vector {vector.name!r}",
            expected="a key, and a column of vectors that is neither key nor order",
            remedy="Without a key use a constant column: one clusterer, one task.",
        )
    taken = sorted(each.name for each in kept if each.name.lower() in output)
    if taken:
        raise ArgumentError(
            f"columns {', '.join(taken)}, which the result has too",
            expected=f"other names than {', '.join(output)}",
            remedy="Rename them, or leave them out by keep=.",
        )


def _schema(kept: StructType, plan: Plan) -> StructType:
    """Return the schema of what workers return: the kept columns and the results."""
    schema = (
        StructType(list(kept.fields))
        .add("cluster", LongType())
        .add("number", LongType())
        .add("kind", StringType())
        .add("events", ArrayType(StringType()))
        .add("problem", StringType())
    )
    for name in plan.told:
        schema = schema.add(name, DoubleType())
    return schema if plan.ttl_ms is None else schema.add("began", LongType())
