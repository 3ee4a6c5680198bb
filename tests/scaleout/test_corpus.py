"""Test cluster_corpus: one ID a vector, independent of machines and order of rows."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as f

from linkstream import Links, Thresholds
from linkstream.errors import ArgumentError, VectorError
from linkstream.scaleout.spark import cluster_corpus
from streams import make

N, SHARDS = 400, 5
STREAM = make("lobes", 21, n=N)
THRESHOLDS = Thresholds(*STREAM.thresholds)
NAMES = [f"photo {(place * 7) % N}" for place in range(N)]  # ids in another order than `at`
WITHOUT = {17, 230}  # rows with unusable vectors


@pytest.fixture(scope="module")
def photos(spark):
    rows = [
        (name, place // 3, [*map(float, vector)])
        for place, (name, vector) in enumerate(zip(NAMES, STREAM.vectors, strict=True))
    ]
    return spark.createDataFrame(rows, "`photo.id` STRING, at INT, vector ARRAY<FLOAT>").persist()


@pytest.fixture(scope="module")
def by_hand(photos):
    """Return the IDs and the clusterer of the same tree of absorbs in this process."""
    shard = f.pmod(f.xxhash64("`photo.id`"), f.lit(SHARDS)).cast("int")
    parts = [[] for _ in range(SHARDS)]
    for row in photos.select("`photo.id`", "at", shard.alias("shard")).collect():
        parts[row.shard].append((row.at, row["photo.id"]))
    vectors = dict(zip(NAMES, STREAM.vectors, strict=True))

    def leaf(rows):
        names = [name for _, name in sorted(rows)]
        links = Links.from_thresholds(THRESHOLDS, threads=1, heal="join")
        links.add_many(np.stack([vectors[name] for name in names]))
        return links, names

    def joined(one, other):
        moved = one[0].absorb(other[0])
        assert sorted(moved.vectors) == list(range(len(one[1]), one[0].n_vectors))
        came = [other[1][place] for place in np.argsort(moved.vectors)]
        return one[0], one[1] + came

    round_ = [leaf(rows) for rows in parts]
    while len(round_) > 1:
        pairs = [round_[first : first + 2] for first in range(0, len(round_), 2)]
        round_ = [joined(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    ((links, names),) = round_
    return dict(zip(names, links.labels().tolist(), strict=True)), links


def clustered(frame, **options):
    asked = {"thresholds": THRESHOLDS, "order": "at", "shards": SHARDS, "heal": "join"} | options
    return cluster_corpus(frame, "photo.id", "vector", **asked)


def ids_of(corpus):
    rows = corpus.ids.collect()
    found = {row["photo.id"]: row.cluster for row in rows}
    assert len(found) == len(rows)  # each id once
    return found


def test_ids_are_those_of_the_same_tree_of_absorbs_in_one_process(photos, by_hand):
    corpus = clustered(photos)
    ids, links = by_hand
    assert ids_of(corpus) == ids
    assert len(set(ids.values())) > 1
    assert corpus.ids.schema.names == ["photo.id", "cluster"]
    assert corpus.shards == SHARDS
    assert corpus.links.state_hash() == links.without_vectors().state_hash()
    assert (corpus.links.n_vectors, corpus.links.track_vectors) == (N, False)
    assert {cluster.id for cluster in corpus.links.clusters()} == set(ids.values())
    corpus.release()
    assert not corpus._rows.is_cached


def test_neither_the_order_of_rows_nor_their_partitions_nor_their_type_matters(photos, by_hand):
    other = photos.withColumn("vector", f.col("vector").cast("array<double>"))
    mixed = other.orderBy(f.rand(seed=3)).repartition(7)
    corpus = clustered(mixed)
    assert ids_of(corpus) == by_hand[0]
    corpus.release()


def test_a_map_too_large_for_every_worker_gives_the_same_table(photos, by_hand, monkeypatch):
    monkeypatch.setattr("linkstream.scaleout.corpus.BROADCAST_MAX", 0)
    corpus = clustered(photos)
    assert "strategy=broadcast" not in corpus.ids._jdf.queryExecution().optimizedPlan().toString()
    assert ids_of(corpus) == by_hand[0]
    corpus.release()


def test_one_shard_is_one_run(photos):
    corpus = clustered(photos, shards=None, heal=None)
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    names = [name for _, name in sorted((place // 3, name) for place, name in enumerate(NAMES))]
    vectors = dict(zip(NAMES, STREAM.vectors, strict=True))
    links.add_many(np.stack([vectors[name] for name in names]))
    assert corpus.shards == 1
    assert ids_of(corpus) == dict(zip(names, links.labels().tolist(), strict=True))
    assert corpus.links.state_hash() == links.without_vectors().state_hash()
    corpus.release()


def test_rows_that_cannot_be_used_have_no_cluster_and_the_others_do(spark):
    rows = [
        (place, None if place in WITHOUT else vector.tobytes())
        for place, vector in enumerate(STREAM.vectors)
    ]
    frame = spark.createDataFrame(rows, "id INT, vector BINARY")
    corpus = cluster_corpus(frame, "id", "vector", thresholds=THRESHOLDS, shards=3, bad="mark")
    found = {row.id: row.cluster for row in corpus.ids.collect()}
    assert len(found) == N
    assert {place for place, cluster in found.items() if cluster is None} == WITHOUT
    assert corpus.links.n_vectors == N - len(WITHOUT)
    corpus.release()
    with pytest.raises((PythonException, VectorError), match="null"):
        cluster_corpus(frame, "id", "vector", thresholds=THRESHOLDS, shards=3)


def partition(ids):
    found = {}
    for name, cluster in ids.items():
        found.setdefault(cluster, set()).add(name)
    return sorted(map(sorted, found.values()))


def test_a_rebuilt_corpus_has_the_partition_of_one_run_whatever_shards_and_order(photos, by_hand):
    whole = Links.from_thresholds(THRESHOLDS)
    whole.add_many(STREAM.vectors)
    whole.rebuild(apply=True)
    expected = partition(dict(zip(NAMES, whole.labels().tolist(), strict=True)))
    for options in ({"shards": 1}, {"shards": 4}, {"order": "`photo.id`", "heal": None}):
        corpus = clustered(photos, rebuild=True, **options)
        ids = ids_of(corpus)
        assert partition(ids) == expected
        assert not corpus.links.track_vectors
        assert {cluster.id for cluster in corpus.links.clusters()} == set(ids.values())
        corpus.release()
    assert partition(by_hand[0]) != expected


def test_a_rebuilt_corpus_leaves_out_rows_that_cannot_be_used(spark):
    rows = [
        (place, None if place in WITHOUT else vector.tobytes())
        for place, vector in enumerate(STREAM.vectors)
    ]
    frame = spark.createDataFrame(rows, "id INT, vector BINARY")
    options = {"thresholds": THRESHOLDS, "shards": 3, "bad": "mark", "rebuild": True}
    corpus = cluster_corpus(frame, "id", "vector", **options)
    found = {row.id: row.cluster for row in corpus.ids.collect()}
    assert {place for place, cluster in found.items() if cluster is None} == WITHOUT
    assert corpus.links.n_vectors == N - len(WITHOUT)
    corpus.release()


def test_a_corpus_whose_shards_drop_vectors_cannot_be_rebuilt(photos):
    with pytest.raises(ArgumentError, match="max_subclusters=5"):
        clustered(photos, rebuild=True, max_subclusters=5)


def test_more_shards_than_rows_leave_none_out(spark):
    frame = spark.createDataFrame(
        [(i, row) for i, row in enumerate(np.eye(3).tolist())], "id LONG, v ARRAY<DOUBLE>"
    )
    corpus = cluster_corpus(frame, "id", "v", thresholds=THRESHOLDS, shards=11)
    assert sorted(row.cluster for row in corpus.ids.collect()) == [0, 1, 2]
    assert corpus.links.n_vectors == 3
    corpus.release()


@pytest.mark.parametrize("shards", [None, 4])
def test_an_empty_corpus_gives_an_empty_table(spark, shards):
    frame = spark.createDataFrame([], "id LONG, v ARRAY<FLOAT>")
    corpus = cluster_corpus(frame, "id", "v", thresholds=THRESHOLDS, shards=shards)
    assert corpus.ids.collect() == []
    assert corpus.ids.schema.simpleString() == "struct<id:bigint,cluster:bigint>"
    assert corpus.links.n_vectors == 0
    assert corpus.links.add([1.0, 0.0]).cluster == 0  # it can continue
    corpus.release()


def test_a_corpus_of_bad_vectors_alone_is_a_table_of_nulls(spark):
    frame = spark.createDataFrame([(1, None), (2, [0.0, 0.0])], "id LONG, v ARRAY<FLOAT>")
    corpus = cluster_corpus(frame, "id", "v", thresholds=THRESHOLDS, bad="mark")
    assert sorted(map(tuple, corpus.ids.collect())) == [(1, None), (2, None)]
    corpus.release()


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"thresholds": None}, "no thresholds"),
        ({"preset": "arcface"}, "thresholds and preset"),
        ({"bad": "skip"}, "bad='skip'"),
        ({"id": "name"}, "a column 'name'"),
        ({"vector": "at"}, "of type int"),
        ({"order": ["at", "when"]}, "a column 'when'"),
        ({"shards": 0}, "shards=0"),
        ({"shards": 2.5}, "shards=2.5"),
        ({"shards": True}, "shards=True"),
        ({"id": "cluster"}, "cluster"),
    ],
)
def test_invalid_arguments_are_refused_at_once(photos, asked, word):
    plain = {"id": "photo.id", "vector": "vector", "thresholds": THRESHOLDS}
    frame = photos.withColumn("cluster", f.lit(1))
    with pytest.raises(ArgumentError) as said:
        cluster_corpus(frame, **plain | asked)
    assert word in said.value.seen


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1, None, 2, None, None], ["null in 3 rows"]),
        ([7, 5, 5, 4, 4, 4, 9], ["2 ids that 5 rows share, such as 4"]),
        ([None, 5, 5], ["null in 1 rows", "1 ids that 2 rows share, such as 5"]),
    ],
)
@pytest.mark.parametrize("bad", ["raise", "mark"])
def test_null_and_repeated_ids_are_refused_before_anything_is_clustered(
    spark, monkeypatch, ids, words, bad
):
    monkeypatch.delattr("linkstream.scaleout.spark.cluster_rows")
    rows = [(name, [1.0, float(place)]) for place, name in enumerate(ids)]
    frame = spark.createDataFrame(rows, "`photo.id` LONG, v ARRAY<FLOAT>")
    with pytest.raises(ArgumentError) as said:
        cluster_corpus(frame, "photo.id", "v", thresholds=THRESHOLDS, shards=2, bad=bad)
    assert "'photo.id'" in said.value.seen
    for word in words:
        assert word in said.value.seen
    assert ("null" in said.value.seen) == (None in ids)
    assert ("share" in said.value.seen) == (5 in ids)


def test_the_remedy_for_null_and_repeated_ids_helps(spark):
    rows = [(1, [1.0, 0.0]), (None, [0.0, 1.0]), (1, [1.0, 0.0]), (2, [0.0, -1.0])]
    frame = spark.createDataFrame(rows, "id LONG, v ARRAY<FLOAT>")
    once = frame.dropna(subset=["id"]).dropDuplicates(["id"])
    corpus = cluster_corpus(once, "id", "v", thresholds=THRESHOLDS)
    assert sorted(row.id for row in corpus.ids.collect()) == [1, 2]
    corpus.release()


def test_a_frame_that_streams_is_refused(spark, tmp_path):
    stream = spark.readStream.schema("id LONG, v ARRAY<FLOAT>").parquet(str(tmp_path))
    with pytest.raises(ArgumentError, match="cluster_by_key"):
        cluster_corpus(stream, "id", "v", thresholds=THRESHOLDS)
