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
from linkstream.clusterer.checks import whole_number
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

from linkstream.scaleout.carried import NULLS, Carried, key_column  # noqa: E402
from linkstream.scaleout.chosen import Choice, Chosen, all_but, choose, choose_all  # noqa: E402
from linkstream.scaleout.corpus import Corpus, check_ids, clustered  # noqa: E402
from linkstream.scaleout.keyed import SAID, VECTOR, KeyedLinks, Plan  # noqa: E402
from linkstream.scaleout.vectors import check_type  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD = 125_000  # vectors in one, unless the caller says how many shards there are
ANSWERS = (*SAID, "problem", "began")


def cluster_by_key(
    stream: DataFrame,
    key: Choice | Sequence[Choice],
    vector: Choice,
    *,
    thresholds: Thresholds | None = None,
    preset: str | None = None,
    begin: Links | None = None,
    order: Choice | Sequence[Choice] | None = None,
    once: bool = False,
    bad: str = "raise",
    keep: Choice | Sequence[Choice] | None = None,
    expire_after: timedelta | None = None,
    **options: Any,
) -> DataFrame:
    """Cluster a stream of vectors, each key by itself; each row comes out with its ID.

    Each key has a `Links` of its own, which gives the IDs that it would give on one machine. Spark
    keeps its snapshot between batches; with a checkpoint each vector is taken exactly once, whoever
    is killed. Works on frames that do not stream, too: they are one batch.

    Columns are names, found as Spark finds them, or `Column` objects of the stream. A checkpoint
    keeps the settings that decide: a query that starts from it with others fails at once.

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
    pattern = _pattern(thresholds, preset, begin, options)
    keys, vectors = choose_all(stream, key), choose(stream, vector)
    orders = () if order is None else choose_all(stream, order)
    kept = all_but(stream, vectors) if keep is None else choose_all(stream, keep)
    _check_columns(keys, orders, kept, vectors)
    carried = Carried.of((*orders, *kept))
    plan = Plan(
        begin=pattern.to_bytes(),
        order=tuple(map(carried.order, orders)),
        kept=(*carried.inner(kept), NULLS),
        once=_checked_once(once, orders),
        mark=_marks(bad),
        ttl_ms=_milliseconds(expire_after),
    )
    environment.check_session(stream.sparkSession, streams=True)
    inner_keys = [key_column(each).alias(f"key{place}") for place, each in enumerate(keys)]
    answers = (
        stream.select(*inner_keys, vectors.column.alias(VECTOR), *carried.there())
        .groupBy(*(f"key{place}" for place in range(len(keys))))
        .transformWithStateInPandas(
            KeyedLinks(plan),
            _schema(carried.schema(kept), plan),
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
    id: Choice,  # noqa: A002 - what people call it
    vector: Choice,
    *,
    thresholds: Thresholds | None = None,
    preset: str | None = None,
    order: Choice | Sequence[Choice] | None = None,
    shards: int | None = None,
    bad: str = "raise",
    **options: Any,
) -> Corpus:
    """Cluster a corpus: shards in parallel, joined two by two; vector → the ID that it has now.

    A vector's shard follows from its id, and its place there from `order`: the answer depends on
    the data and on how many shards there are, not on machines. Runs at once; progress is Spark's.

    Args:
        corpus: a frame that does not stream.
        id: the column that names a vector, each one once. Null, or an id that two rows have, is
            refused before anything is clustered.
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
    mark = _marks(bad)
    names, vectors = choose(corpus, id), choose(corpus, vector)
    orders = () if order is None else choose_all(corpus, order)
    check_type(vectors.name, vectors.type)
    _check_corpus(corpus, names)
    if shards is not None:
        shards = whole_number("shards", shards, "in how many parts the corpus is clustered")
    environment.check_session(corpus.sparkSession, streams=False)
    n_rows = check_ids(corpus.select(names.column.alias("id")), names.name)
    n = shards or max(1, -(-n_rows // SHARD))
    rows = corpus.select(
        f.pmod(f.xxhash64(names.column), f.lit(n)).cast("int").alias("shard"),
        names.column.alias("id"),
        vectors.column.alias("vector"),
        *(each.column.alias(f"order{place}") for place, each in enumerate(orders)),
    )
    inner = [name for name in rows.columns if name.startswith("order")]
    rows = rows.repartitionById(n, f.col("shard")).sortWithinPartitions(*inner, "id")
    return clustered(rows, names.name, pattern.to_bytes(), n, mark=mark)


def _check_corpus(corpus: DataFrame, ids: Chosen) -> None:
    if corpus.isStreaming:
        raise ArgumentError(
            "a frame that streams",
            expected="one that ends",
            remedy="For streams there is cluster_by_key.",
        )
    if ids.name.lower() == "cluster":
        raise ArgumentError(
            f"ids in a column {ids.name!r}, which the answer has too",
            expected="another name",
            remedy="Rename it: corpus.withColumnRenamed('cluster', 'id').",
        )


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


def _checked_once(once: bool, orders: Sequence[Chosen]) -> bool:
    if once and (len(orders) != 1 or not isinstance(orders[0].type, IntegralType)):
        raise ArgumentError(
            f"once=True with order={[each.name for each in orders]}",
            expected="one column of whole numbers that rise within a key",
            remedy="An offset or a sequence number tells repetitions; a time does not.",
        )
    return bool(once)


def _check_columns(
    keys: Sequence[Chosen], orders: Sequence[Chosen], kept: Sequence[Chosen], vector: Chosen
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
    taken = sorted(each.name for each in kept if each.name.lower() in ANSWERS)
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
