"""Test finding columns by name and by Column objects."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as f

from linkstream import Links, Thresholds
from linkstream.errors import ArgumentError
from linkstream.scaleout.columns import all_but, find_column, find_columns
from linkstream.scaleout.spark import cluster_by_key, cluster_corpus
from streams import make

N = 60
STREAM = make("lobes", 4, n=N)
THRESHOLDS = Thresholds(*STREAM.thresholds)


@pytest.fixture(scope="module")
def rows(spark):
    given = [
        (["a", "b"][n % 2], N - n, {"at": n}, [*map(float, vector)])
        for n, vector in enumerate(STREAM.vectors)
    ]
    schema = "camera STRING, later LONG, `seen.by` STRUCT<at: LONG>, voice ARRAY<FLOAT>"
    return spark.createDataFrame(given, schema).persist()


def expected():
    """Return the IDs by camera, in the order of `later`."""
    found = {}
    for camera, first in (("a", 0), ("b", 1)):
        links = Links.from_thresholds(THRESHOLDS, threads=1)
        places = [*range(first, N, 2)][::-1]
        ids = links.add_many(STREAM.vectors[places])
        found |= dict(zip([(camera, N - place) for place in places], ids.tolist(), strict=True))
    return found


def ways(rows):
    """Return equivalent arguments: frame, key, vectors, order, kept columns."""
    return [
        (rows, "CAMERA", "Voice", "LATER", ["camera", "later"]),
        (rows.alias("r"), "r.camera", "r.voice", "r.later", ["r.camera", "r.later"]),
        (rows, rows.camera, rows["voice"], f.col("later"), [f.col("camera"), rows.later]),
        (rows, "`camera`", "`VOICE`", -f.col("`seen.by`")["at"], rows["camera", "later"].columns),
        (
            rows.alias("r"),
            f.upper("CAMERA").alias("camera"),
            f.col("r.voice").cast("array<double>"),
            (rows.later * 2).alias("later"),  # another column than the one that is kept
            ("camera", f.col("R.later")),
        ),
    ]


def clustered(way):
    frame, key, vector, order, keep = way
    return cluster_by_key(frame, key, vector, order=order, keep=keep, thresholds=THRESHOLDS)


def test_columns_are_names_in_any_case_names_after_an_alias_and_column_objects(rows):
    assert len(set(expected().values())) > 1
    answers = [clustered(way) for way in ways(rows)]
    for answer in answers:
        assert [name.lower() for name in answer.columns[:3]] == ["camera", "later", "cluster"]
    found = {(row.camera, row.later): row.cluster for row in answers[-1].collect()}
    assert found == expected()


@pytest.mark.long
def test_each_way_to_name_columns_gives_the_same_ids(rows):
    for way in ways(rows):
        found = {(row.camera, row.later): row.cluster for row in clustered(way).collect()}
        assert found == expected()


def test_by_default_all_columns_but_the_vector_are_kept(rows):
    frame = rows.alias("rows")
    for given in ("VOICE", rows.voice, f.col("rows.voice"), f.col("voice").cast("array<double>")):
        names = [each.name for each in all_but(frame, find_column(frame, given))]
        assert names == ["camera", "later", "seen.by"]


def test_the_result_has_the_column_names_of_spark(rows):
    keep = ["Camera", "seen.by", f.col("later").alias("late"), f.col("`seen.by`")["at"]]
    answer = cluster_by_key(rows, "camera", "voice", keep=keep, thresholds=THRESHOLDS)
    assert answer.columns[:4] == ["Camera", "seen.by", "late", "seen.by.at"]
    kinds = [kind for _, kind in answer.dtypes[:4]]
    assert kinds == ["string", "struct<at:bigint>", "bigint", "bigint"]


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (lambda _: {"key": f.col("nowhere")}, "Column<'nowhere'>"),
        (lambda _: {"key": f.col("*")}, "4 columns"),
        (lambda _: {"key": "rows.camera"}, "'rows.camera'"),
        (lambda rows: {"vector": rows.camera}, "of type string"),
        (lambda rows: {"key": rows["VOICE"]}, "neither key nor order"),
        (lambda _: {"keep": [f.col("camera").alias("Kind")]}, "columns Kind"),
        (lambda _: {"once": True, "order": f.col("camera")}, "once=True"),
    ],
)
def test_invalid_arguments_are_refused_at_once(rows, asked, word):
    plain = {"key": "camera", "vector": "voice", "thresholds": THRESHOLDS}
    with pytest.raises(ArgumentError) as said:
        cluster_by_key(rows, **plain | asked(rows))
    assert word in said.value.seen + said.value.expected


def test_a_name_that_could_be_two_columns_is_refused(rows):
    doubled = rows.withColumn("later again", f.lit(1)).select("*", f.col("later").alias("LATER"))
    with pytest.raises(ArgumentError, match="AMBIGUOUS"):
        find_column(doubled, "later")
    assert find_column(doubled, "later again").name == "later again"


def test_columns_of_one_name_are_the_same_and_column_objects_are_each_their_own(rows):
    one, other, column, again = find_columns(rows, ["later", "later", rows.later, rows.later])
    assert one == other
    assert len({one, column, again}) == 3


def test_a_corpus_takes_column_objects_and_names_in_any_case(rows):
    corpus = cluster_corpus(
        rows.alias("rows"),
        f.col("rows.later").alias("photo"),
        "VOICE",
        order=-f.col("later"),
        thresholds=THRESHOLDS,
        shards=1,
    )
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    links.add_many(STREAM.vectors)
    assert corpus.ids.columns == ["photo", "cluster"]
    found = {row.photo: row.cluster for row in corpus.ids.collect()}
    assert [found[N - n] for n in range(N)] == links.labels().tolist()
    corpus.release()
