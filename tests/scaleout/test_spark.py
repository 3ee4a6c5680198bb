"""Test cluster_by_key: each row once, with the IDs of a run on one machine."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
import time

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException, StreamingQueryException

from confidence import sure
from linkstream import Links, Thresholds
from linkstream.errors import ArgumentError, EngineUnavailableError
from linkstream.scaleout.environment import PROVIDER, ROCKSDB
from linkstream.scaleout.spark import cluster_by_key
from scaleout.streaming import ROWS, Stream, table
from streams import make

THRESHOLDS = Thresholds(0.6, 0.5, 0.8)


def frame(spark, keys, rows, numbers=None):
    numbers = range(len(rows)) if numbers is None else numbers
    values = ([*map(float, row)] if row is not None else None for row in rows)
    return spark.createDataFrame(list(zip(keys, numbers, values, strict=True)), ROWS)


def fresh(**options):
    return Links.from_thresholds(THRESHOLDS, threads=1, **options)


# One stream with all features, whose result several tests use

BIG = 2**60 + 1
CAMERAS = [(BIG, "hall"), (BIG, "yard"), (BIG + 1, "hall"), (None, "hall"), (7, None)]
END = dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.timezone.utc)
SCHEMA = (
    "`camera.id` LONG, room STRING, n LONG, big LONG, score DOUBLE, until TIMESTAMP, "
    "tags ARRAY<STRING>, unused STRING, vector BINARY"
)
RESTLESS = Thresholds(0.8, 0.9, 0.95)  # merges, cuts and splits
KINDS = ("lobes", "drifting", "generative", "chains", "lobes")
EACH = 60


def everything():
    """Return rows of all cameras in order; every 13th vector of a camera is unusable."""
    rows = []
    for (camera, room), kind in zip(CAMERAS, KINDS, strict=True):
        vectors = make(kind, 11, n=EACH).vectors
        for n, vector in enumerate(vectors):
            rows.append(
                {
                    "camera.id": camera,
                    "room": room,
                    "n": BIG + n,
                    "big": None if n % 5 == 0 else BIG + n,
                    "score": [None, math.nan, 0.5][n % 3],
                    "until": None if n % 4 == 0 else END,
                    "tags": None if n % 7 == 0 else ["a", None],
                    "unused": "x",
                    "vector": b"\x01\x02" if n % 13 == 5 else vector.tobytes(),
                }
            )
    return rows


@pytest.fixture(scope="module")
def cameras(spark, tmp_path_factory):
    """Return input and output, by camera and room, in order."""
    stream = Stream(spark, tmp_path_factory.mktemp("cameras"), SCHEMA)
    rows, rng = everything(), np.random.default_rng(5)
    for first, last in ((0, 25), (25, 26), (26, EACH)):
        some = [row for row in rows if first <= row["n"] - BIG < last]
        mixed = pa.Table.from_pylist([some[place] for place in rng.permutation(len(some))])
        when = mixed.schema.get_field_index("until")
        kind = pa.timestamp("us", "UTC")
        stream.put(mixed.set_column(when, "until", mixed["until"].cast(kind)))
    out = stream.run(
        ["camera.id", "room"],
        "vector",
        thresholds=RESTLESS,
        order="n",
        bad="mark",
        keep=["room", "camera.id", "n", "big", "score", "until", "tags"],
        expire_after=dt.timedelta(hours=1),
    )
    grouped = {}
    for row in sorted(out, key=lambda row: row["n"]):
        grouped.setdefault((row["camera.id"], row["room"]), []).append(row)
    return rows, grouped


def good(rows):
    return [row for row in rows if row["problem"] is None]


def test_each_row_comes_out_once_under_its_key(cameras):
    _, out = cameras
    assert set(out) == set(CAMERAS)
    for rows in out.values():
        assert [row["n"] - BIG for row in rows] == list(range(EACH))


def test_ids_numbers_kinds_and_events_are_those_of_runs_on_one_machine(cameras):
    rows, out = cameras
    told = set()
    for camera, answers in out.items():
        mine = [row for row in rows if (row["camera.id"], row["room"]) == camera]
        vectors = [row["vector"] for row in mine if len(row["vector"]) > 2]
        links = Links.from_thresholds(RESTLESS, threads=1)
        ids = links.add_many(np.stack([np.frombuffer(vector, "<f4") for vector in vectors]))
        taken = good(answers)
        assert [row["cluster"] for row in taken] == ids.tolist()
        assert [row["number"] for row in taken] == list(range(len(ids)))
        kinds = [links.last_decisions.at(place).kind for place in range(len(ids))]
        assert [row["kind"] for row in taken] == kinds
        seen = [json.loads(text) for row in taken for text in row["events"] or []]
        plain = ("created", "joined", "linked")
        expected = [event.to_dict() for event in links.events() if event.kind not in plain]
        assert seen == expected
        told |= {event["kind"] for event in seen}
    assert {"merged", "severed", "rejoined", "split"} <= told


def test_vectors_that_cannot_be_used_come_out_with_their_problem(cameras):
    _, out = cameras
    for rows in out.values():
        bad = [row for row in rows if row["problem"] is not None]
        assert [row["n"] - BIG for row in bad] == [5, 18, 31, 44, 57]
        assert all("2 bytes" in row["problem"] for row in bad)
        assert {row["cluster"] for row in bad} == {None}


def test_columns_come_out_as_they_went_in_and_in_the_order_asked_for(cameras):
    rows, out = cameras
    given = {(row["camera.id"], row["room"], row["n"]): row for row in rows}
    for row in (row for rows in out.values() for row in rows):
        names = ["room", "camera.id", "n", "big", "score", "until", "tags"]
        assert list(row)[:7] == names
        assert list(row)[7:] == ["cluster", "number", "kind", "events", "problem", "began"]
        went_in = given[row["camera.id"], row["room"], row["n"]]
        assert repr([row[name] for name in names if name != "until"]) == repr(
            [went_in[name] for name in names if name != "until"]
        )
        assert (row["until"] is None) == (went_in["until"] is None)
        assert row["until"] in (None, END)


def test_a_key_that_is_not_forgotten_began_once_and_just_now(cameras):
    _, out = cameras
    now = dt.datetime.now(dt.timezone.utc)
    for rows in out.values():
        (began,) = {row["began"] for row in rows}
        assert dt.timedelta(0) <= now - began < dt.timedelta(minutes=10)


# Repeated batches and expiry


def test_a_batch_that_spark_delivers_twice_is_ignored(spark, tmp_path):
    stream = Stream(spark, tmp_path, ROWS)
    vectors = make("drifting", 3, n=40).vectors
    first = stream.put(table(["a", "b"] * 20, range(40), vectors))
    options = {"order": "n", "once": True, "thresholds": THRESHOLDS}
    before = stream.run("key", "vector", **options)
    shutil.copy(first, tmp_path / "in" / "again.parquet")
    stream.files += 1
    stream.put(table(["b"] * 3, [39, 40, 40], vectors[:3]))  # one old row, one new, one repeated
    after = stream.run("key", "vector", **options)
    assert len(before) == 40
    new = [row for row in after if row not in before]
    assert len(after) == 41
    links = fresh()
    links.add_many(vectors[1::2])
    expected = int(links.add(vectors[1]).cluster)
    assert [(row["n"], row["cluster"], row["number"]) for row in new] == [(40, expected, 20)]


def test_an_expired_key_begins_again(spark, tmp_path):
    stream = Stream(spark, tmp_path, ROWS)
    options = {"order": "n", "thresholds": THRESHOLDS, "expire_after": dt.timedelta(seconds=2)}
    stream.put(table(["a", "a", "b"], [0, 1, 2], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    stream.run("key", "vector", **options)
    assert kept_keys(spark, tmp_path) == {"a", "b"}
    time.sleep(2.1)
    stream.put(table(["b", "c"], [3, 4], [[0, 0, 1, 1], [1, 0, 0, 0]]))  # another encoder
    rows = stream.run("key", "vector", **options)
    lives = {(row["key"], row["began"], row["cluster"], row["number"]) for row in rows}
    old, new = ({life for life in lives if life[1] == when} for when in began(rows))
    assert {life[::2] for life in old} == {("a", 0), ("a", 1), ("b", 0)}
    assert {(key, *rest) for key, _, *rest in new} == {("b", 0, 0), ("c", 0, 0)}
    assert kept_keys(spark, tmp_path) == {"b", "c"}  # the state of the expired key is deleted


def began(rows):
    first, second = sorted({row["began"] for row in rows})
    assert second - first >= dt.timedelta(seconds=2)
    return first, second


def kept_keys(spark, folder):
    reader = spark.read.format("statestore").option("stateVarName", "links")
    state = reader.load(str(folder / "checkpoint"))
    return {row[0] for row in state.select("key.key0").collect()}


def test_a_bad_vector_stops_the_stream_and_names_its_key(spark, tmp_path):
    stream = Stream(spark, tmp_path, ROWS)
    stream.put(table(["hall", "yard"], [0, 1], [[1, 0], [0, 0]]))
    with pytest.raises(StreamingQueryException, match="yard") as stopped:
        stream.run("key", "vector", thresholds=THRESHOLDS, order="n")
    assert "row 0 is too short" in str(stopped.value)
    assert "bad='mark'" in str(stopped.value)
    stream.run(
        "key", "vector", thresholds=THRESHOLDS, order="n", bad="mark"
    )  # the stream continues
    problems = {row["key"]: row["problem"] for row in stream.seen()}
    assert problems["hall"] is None
    assert "too short" in problems["yard"]


def test_with_a_model_the_result_says_how_sure_each_decision_is(spark, nothing):
    options = {"thresholds": sure.THRESHOLDS, "confidence": sure.MODEL}
    answer = cluster_by_key(nothing, "key", "vector", keep=["day"], **options)
    told = ["cluster_margin", "probability"]
    expected = ["day", "cluster", "number", "kind", "events", *told, "problem"]
    assert answer.schema.names == expected
    vectors = sure.STREAM.vectors[:60]
    given = frame(spark, ["a"] * 60, vectors, list(range(60)))
    rows = cluster_by_key(given, "key", "vector", order="n", keep="n", **options).collect()
    found = {row["n"]: row.probability for row in rows}
    decided = sure.links().decide_many(vectors).probability.tolist()
    assert [found[n] for n in range(60)] == [None if p != p else p for p in decided]
    taken = given.withColumnRenamed("n", "probability")
    with pytest.raises(ArgumentError, match="probability"):
        cluster_by_key(taken, "key", "vector", **options)
    assert "probability" in cluster_by_key(taken, "key", "vector", thresholds=THRESHOLDS).columns


# Frames that do not stream


def test_a_frame_that_does_not_stream_is_one_batch_however_it_lies_and_is_called(spark):
    stream, rng = make("chains", 9, n=90), np.random.default_rng(9)
    mixed = rng.permutation(90)
    keys = np.array(["a", "b", "c"])[np.arange(90) % 3]
    begin = Links(*stream.thresholds, track_vectors=False, threads=1)
    begin.add(stream.vectors[0])
    begin.name(0, "Ann")
    given = frame(spark, keys[mixed].tolist(), stream.vectors[mixed], mixed.tolist())
    odd = given.withColumnsRenamed({"key": "from", "n": "_n", "vector": "a vector"})  # to Python
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        rows = cluster_by_key(
            odd.repartition(5), "from", "a vector", order="_n", begin=begin, keep="_n"
        ).collect()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    seen = {row["_n"]: row.cluster for row in rows}
    assert len(rows) == 90
    for first in range(3):
        links = Links.from_bytes(begin.to_bytes())
        expected = links.add_many(stream.vectors[first::3])
        assert [seen[n] for n in range(first, 90, 3)] == expected.tolist()


def test_a_row_without_its_order_stops_the_work(spark):
    answers = cluster_by_key(
        frame(spark, ["hall"] * 2, np.eye(2), [1, None]),
        "key",
        "vector",
        order="n",
        preset="arcface",
    )
    with pytest.raises(PythonException, match=r"hall.*without 'n'"):
        answers.collect()


# Invalid arguments


@pytest.fixture(scope="module")
def nothing(spark):
    schema = "key STRING, other LONG, day DATE, cluster INT, vector ARRAY<FLOAT>, v ARRAY<INT>"
    return spark.createDataFrame([], schema)


NAMED = Links(0.6, 0.5, 0.8)


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"thresholds": None}, "no thresholds"),
        ({"preset": "arcface"}, "thresholds and preset"),
        ({"begin": NAMED}, "begin, and thresholds"),
        ({"thresholds": None, "begin": NAMED, "heal": "join"}, "begin, and thresholds"),
        ({"thresholds": None, "begin": b"snapshot"}, "begin of type bytes"),
        ({"thresholds": (0.6, 0.5, 0.8)}, "thresholds of type tuple"),
        ({"bad": "skip"}, "bad='skip'"),
        ({"key": "camera"}, "a column 'camera'"),
        ({"key": ["key", "camera"]}, "a column 'camera'"),
        ({"key": []}, "key"),
        ({"key": "KEYS"}, "a column 'KEYS'"),
        ({"key": 7}, "a column 7"),
        ({"key": "nothing.key"}, "a column 'nothing.key'"),
        ({"key": "*"}, "a column '*'"),
        ({"key": "vector"}, "neither key nor order"),
        ({"order": "vector"}, "neither key nor order"),
        ({"vector": "other"}, "of type bigint"),
        ({"vector": "v"}, "array<int>"),
        ({"vector": "nowhere"}, "a column 'nowhere'"),
        ({"order": "when"}, "a column 'when'"),
        ({"keep": ["what"]}, "a column 'what'"),
        ({"keep": "what"}, "a column 'what'"),
        ({"keep": None}, "columns cluster"),
        ({"keep": ["cluster"]}, "columns cluster"),
        ({"keep": ["CLUSTER"]}, "columns CLUSTER"),
        ({"once": True}, "once=True"),
        ({"once": True, "order": "day"}, "once=True"),
        ({"once": True, "order": "when"}, "a column 'when'"),
        ({"once": True, "order": ["other", "key"]}, "once=True"),
        ({"expire_after": 60}, "expire_after=60"),
        ({"expire_after": dt.timedelta(0)}, "expire_after"),
        ({"expire_after": -dt.timedelta(days=1)}, "expire_after"),
        ({"expire_after": dt.timedelta(microseconds=999)}, "expire_after"),
        ({"heal": "wounds"}, "wounds"),
    ],
)
def test_invalid_arguments_are_refused_at_once(nothing, asked, word):
    plain = {"key": "key", "vector": "vector", "thresholds": THRESHOLDS, "keep": ["key"]}
    with pytest.raises(ArgumentError) as said:
        cluster_by_key(nothing, **plain | asked)
    assert word in said.value.seen + said.value.expected


def test_another_state_store_is_refused_at_once(spark, nothing):
    spark.conf.unset(PROVIDER)
    try:
        with pytest.raises(EngineUnavailableError, match="RocksDB"):
            cluster_by_key(nothing, "key", "vector", thresholds=THRESHOLDS, keep=["key"])
    finally:
        spark.conf.set(PROVIDER, ROCKSDB)


def test_the_result_has_the_kept_columns_and_its_own(nothing):
    answer = cluster_by_key(
        nothing, "key", "vector", thresholds=THRESHOLDS, keep=["day", "vector", "other"]
    )
    kept = ["day", "vector", "other"]
    assert answer.schema.names == [*kept, "cluster", "number", "kind", "events", "problem"]
    assert [answer.schema[name].dataType for name in kept] == [
        nothing.schema[name].dataType for name in kept
    ]
