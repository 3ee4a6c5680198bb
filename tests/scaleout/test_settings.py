"""Test that a query with other settings than its checkpoint is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException

from linkstream import Links, Space, Thresholds
from linkstream.errors import ArgumentError
from linkstream.scaleout.keyed import (
    KeyedLinks,
    Plan,
    check_settings,
    schema_of,
    settings_of,
)
from scaleout.streaming import ROWS, Stream, table
from streams import make

THRESHOLDS = Thresholds(0.6, 0.5, 0.8)


def made(three=(0.6, 0.5, 0.8), **options):
    return Links(*three, threads=1, **{"track_vectors": False} | options)


OTHERS = {
    "cluster_similarity": made((0.61, 0.5, 0.8)),
    "subcluster_similarity": made((0.6, 0.500001, 0.8)),
    "pair_similarity_max": made((0.6, 0.5, 0.81)),
    "evidence": made(evidence="cluster"),
    "heal": made(heal="join"),
    "model": made(space=Space(model="another encoder")),
    "mean": made(space=Space(mean=np.array([0.25, 0.0, 0.5]))),
    "max_subclusters": made(max_subclusters=50),
    "max_idle": made(max_idle=1000),
    "min_size": made(min_size=3),
    "track_vectors": made(track_vectors=True),
}


def types(links):
    """Return the types of the fields with fixed names."""
    fields = schema_of(settings_of(links)).fields
    return {field.name: field.dataType for field in fields if field.name.startswith("digest")}


@pytest.mark.parametrize("name", OTHERS)
def test_another_setting_gives_another_schema_that_shows_its_value(name):
    """Spark compares types and shows names."""
    one, other = (schema_of(settings_of(links)) for links in (made(), OTHERS[name]))
    assert types(made()) != types(OTHERS[name])
    assert types(made()).keys() == types(OTHERS[name]).keys()
    assert len({*one.names} - {*other.names}) in (1, 2)  # keep_vectors goes with track_vectors
    assert any(field.startswith(name) for field in {*other.names} - {*one.names})
    for field in other.names:  # what every encoding of the state takes for a name
        assert field.isascii()
        assert field.isidentifier()


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_clusterer_learns_does_not_change_its_settings(name):
    links = Links.from_bytes(OTHERS[name].to_bytes())
    links.add_many(make("lobes", 1, n=40).vectors[:, :3] + np.float32(0.5))
    links.name(0, "Ann")
    later = Links.from_bytes(links.to_bytes(history=False))
    assert settings_of(later) == settings_of(OTHERS[name])


def test_the_type_of_known_settings_does_not_change_with_versions():
    """Another type would refuse every checkpoint that an older version wrote."""
    schema = schema_of(settings_of(made(heal="join"))).simpleString()
    assert schema == GOLDEN


GOLDEN = (
    "struct<"
    "linkstream_settings:boolean,"
    "cluster_similarity_0_6:boolean,"
    "subcluster_similarity_0_5:boolean,"
    "pair_similarity_max_0_8:boolean,"
    "model_None:boolean,"
    "mean_None:boolean,"
    "evidence__nearest:boolean,"
    "heal__first_50_growth_1_3_min_size_5_mode_join:boolean,"
    "max_subclusters_None:boolean,"
    "max_idle_None:boolean,"
    "min_size_1:boolean,"
    "track_vectors_False:boolean,"
    "keep_vectors_False:boolean,"
    "digest_0:array<array<string>>,"
    "digest_1:boolean,"
    "digest_2:array<boolean>,"
    "digest_3:string,"
    "digest_4:array<array<boolean>>,"
    "digest_5:double,"
    "digest_6:array<boolean>,"
    "digest_7:double,"
    "digest_8:array<double>,"
    "digest_9:array<string>,"
    "digest_10:array<double>,"
    "digest_11:array<array<boolean>>,"
    "digest_12:array<boolean>,"
    "digest_13:array<array<double>>>"
)


@pytest.mark.parametrize("name", OTHERS)
def test_a_key_that_is_held_with_another_setting_is_refused_and_both_are_named(name):
    """Also where Spark does not compare: spark.sql.streaming.stateStore.stateSchemaCheck."""
    plan = Plan(OTHERS[name].to_bytes(), order=(), kept=(), once=False, mark=False, ttl_ms=None)
    held = made()
    held.add([1.0, 0.0, 0.0])
    state = SimpleNamespace(get=lambda: (held.to_bytes(history=False), None, None))
    processor = KeyedLinks(plan)
    processor.init(SimpleNamespace(getValueState=lambda *_: state))
    with pytest.raises(ArgumentError, match="camera 7") as said:
        list(processor.handleInputRows(("camera 7",), iter([None]), None))
    values = [settings_of(links)[name] for links in (OTHERS[name], held)]
    assert f"{name}={values[0]}" in said.value.seen
    assert f"{name}={values[1]}" in said.value.seen


def test_a_key_with_the_same_settings_is_accepted():
    held = made(heal="join")
    held.add_many(np.eye(3))
    check_settings(settings_of(made(heal="join")), held, "camera 7")


@pytest.fixture(params=["unsaferow", pytest.param("avro", marks=pytest.mark.long)])
def encoding(spark, request):
    """How Spark writes the state."""
    name = "spark.sql.streaming.stateStore.encodingFormat"
    spark.conf.set(name, request.param)
    yield request.param
    spark.conf.unset(name)


@pytest.mark.usefixtures("encoding")
def test_other_thresholds_under_an_old_checkpoint_are_refused_at_start_even_for_new_keys(
    spark, tmp_path
):
    stream = Stream(spark, tmp_path, ROWS)
    vectors = make("drifting", 3, n=40).vectors
    stream.put(table(["old"] * 20, range(20), vectors[:20]))
    before = stream.run("key", "vector", order="n", thresholds=THRESHOLDS)
    stream.put(table(["new"] * 20, range(20, 40), vectors[20:]))
    with pytest.raises(StreamingQueryException) as said:
        stream.run("key", "vector", order="n", thresholds=Thresholds(0.65, 0.5, 0.8))
    assert "cluster_similarity_0_6," in str(said.value)
    assert "cluster_similarity_0_65," in str(said.value)
    assert stream.seen() == before
    after = stream.run("key", "vector", order="n", thresholds=THRESHOLDS)  # the stream continues
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    new = sorted((row["n"], row["cluster"]) for row in after if row["key"] == "new")
    assert [cluster for _, cluster in new] == links.add_many(vectors[20:]).tolist()
