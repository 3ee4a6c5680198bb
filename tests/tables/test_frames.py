"""to_frame and clusters_frame: the same tables from Links and Store, in every kind."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pyarrow as pa
import pytest

from linkstream import Links
from linkstream.errors import ArgumentError, MissingExtraError, NotTrackedError, UnknownIdError
from linkstream.store import Store
from linkstream.store import tabular as store_tabular
from linkstream.tables import make_frame, rows
from linkstream.tables.columns import Column
from store.operations import THRESHOLDS, state_of, vectors
from streams import ENGINES

X = vectors(np.random.default_rng(3), 60)
PAYLOADS = [{"file": f"{i}.jpg", "name": i, "box": [i, 1]} if i % 3 else None for i in range(60)]
T = (0.7, 0.6, 0.9)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "people.links", thresholds=THRESHOLDS, threads=1) as store:
        yield store


def fill(target, **payloads):
    target.add_many(X, **payloads)
    ids = np.unique(target.labels())
    target.name(int(ids[0]), "Ann")
    target.name(int(ids[-1]), "Bob")
    target.ignore(int(ids[1]))
    target.remove(3)
    target.same(int(ids[2]), int(ids[3]), of="clusters")


def twin(engine="auto", **options):
    return Links.from_thresholds(THRESHOLDS, engine=engine, **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_for_each_vector_that_is_there(engine):
    links = twin(engine)
    fill(links)
    labels, names = links.labels(), {each.id: each.name for each in links.clusters()}
    there = np.flatnonzero(labels >= 0)
    frame = links.to_frame()
    assert list(frame) == ["vector", "cluster", "name"]
    assert frame["vector"].tolist() == there.tolist()
    assert frame["cluster"].tolist() == labels[there].tolist()
    assert frame["name"].tolist() == [names[label] for label in labels[there].tolist()]
    assert 3 not in frame["vector"].tolist()


def test_a_store_gives_the_table_of_links_and_the_fields_of_payloads(store):
    links = twin()
    fill(links)
    fill(store, payloads=PAYLOADS)
    frame = store.to_frame()
    assert list(frame) == ["vector", "cluster", "name", "id", "time", "file", "payload.name", "box"]
    assert frame[["vector", "cluster", "name"]].equals(links.to_frame())
    row = frame[frame["vector"] == 4].iloc[0]
    assert (row["file"], row["payload.name"], row["box"]) == ("4.jpg", 4, "[4, 1]")
    assert frame[frame["vector"] == 6][["file", "payload.name", "box"]].isna().all(axis=None)


def test_formats_have_the_same_values(store):
    fill(store, payloads=PAYLOADS)
    frame, table, arrays = (store.to_frame(each) for each in ("pandas", "arrow", "numpy"))
    assert isinstance(table, pa.Table)
    assert table.column_names == list(frame) == list(arrays)
    told = table.to_pydict()
    for name, values in told.items():
        seen = frame[name].astype(object).where(frame[name].notna(), None).tolist()
        assert seen == arrays[name].tolist() == values
    assert table.schema.field("payload.name").type == pa.int64()
    assert str(frame["payload.name"].dtype) == "Int64"


def test_filters_by_cluster_vector_and_column(store):
    fill(store, payloads=PAYLOADS)
    whole = store.to_frame()
    cluster = int(whole["cluster"].iloc[0])
    mine = store.to_frame(cluster=cluster)
    assert mine.equals(whole[whole["cluster"] == cluster].reset_index(drop=True)[list(mine)])
    late = store.to_frame(since=40, columns=["file", "vector"])
    assert list(late) == ["file", "vector"]
    assert late["vector"].tolist() == whole[whole["vector"] >= 40]["vector"].tolist()
    both = store.to_frame(cluster=cluster, since=int(mine["vector"].iloc[1]), columns=["vector"])
    assert both["vector"].tolist() == mine["vector"].tolist()[1:]
    assert len(store.to_frame(since=10**9)) == 0


def test_an_earlier_id_of_a_joined_cluster_selects_the_one_that_stands_for_it():
    links = twin()
    fill(links)
    gone = next(i for i in range(100) if links.resolve(i) != i)
    frame = links.to_frame(cluster=gone)
    assert set(frame["cluster"]) == {links.resolve(gone)}
    assert frame.equals(links.to_frame(cluster=links.resolve(gone)))


def test_one_cluster_is_read_without_the_labels_of_all(monkeypatch):
    links = twin()
    fill(links)
    expected = links.to_frame(cluster=0)
    monkeypatch.setattr("linkstream.clusterer.views.labels", None)
    assert links.to_frame(cluster=0).equals(expected)


def test_payloads_are_read_only_if_a_column_needs_them_and_once_a_row(store, monkeypatch):
    fill(store, payloads=PAYLOADS)
    seen = []
    read = store.payloads
    monkeypatch.setattr(store, "payloads", lambda numbers: seen.extend(numbers) or read(numbers))
    monkeypatch.setattr(store_tabular, "BLOCK", 7)
    store.to_frame(columns=["vector", "cluster", "name"])
    assert seen == []
    frame = store.to_frame(cluster=0)
    assert seen == frame["vector"].tolist()
    seen.clear()
    assert store.to_frame("numpy")["vector"].tolist() == seen


def test_a_large_store_is_read_in_blocks(tmp_path, monkeypatch):
    n = 20_000
    rng = np.random.default_rng(0)
    near = np.eye(16, dtype=np.float32)[rng.integers(16, size=n)]
    with Store.open(tmp_path / "large.links", thresholds=THRESHOLDS, threads=1) as store:
        for start in range(0, n, 5_000):
            numbers = range(start, start + 5_000)
            store.add_many(near[start : start + 5_000], payloads=[{"row": i} for i in numbers])
        sizes = []
        read = store.payloads
        monkeypatch.setattr(store, "payloads", lambda ns: sizes.append(len(ns)) or read(ns))
        frame = store.to_frame("numpy")
    assert sizes == [8_192, 8_192, n - 2 * 8_192]
    assert frame["row"].dtype == np.int64
    np.testing.assert_array_equal(frame["row"], frame["vector"])
    assert len(frame["cluster"]) == n


def test_a_vector_removed_while_the_table_is_read_has_no_payload(store, monkeypatch):
    store.add_many(X, payloads=[{"row": i} for i in range(len(X))])
    read = store.payloads

    def payloads(numbers):
        if len(numbers) > 1:
            monkeypatch.setattr(store, "payloads", read)
            store.remove(5)
        return read(numbers)

    monkeypatch.setattr(store, "payloads", payloads)
    row = store.to_frame()["row"].tolist()
    assert row[:5] + row[6:] == [*range(5), *range(6, len(X))]
    assert str(row[5]) == "<NA>"


def test_empty_clusterers_give_empty_tables_with_all_columns(store):
    for target in (twin(), store):
        own = ["id", "time"] if target is store else []
        for kind in ("pandas", "arrow", "numpy"):
            assert list(_names(target.to_frame(kind))) == ["vector", "cluster", "name", *own]
            assert len(_names(target.clusters_frame(kind))) == 8
        assert len(target.to_frame()) == len(target.clusters_frame()) == 0
        assert list(target.to_frame(columns=["file", "vector"])) == ["file", "vector"]
        table = target.clusters_frame("arrow")
        assert table.schema.field("exemplars").type == pa.list_(pa.int64())


def _names(frame):
    return frame.column_names if isinstance(frame, pa.Table) else list(frame)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "excel"}, "'pandas' or 'arrow'"),
        ({"columns": "vector"}, "a list"),
        ({"columns": []}, "a list"),
        ({"columns": ["vector", "vector"]}, "different names"),
        ({"columns": ["vector", 3]}, "a list"),
        ({"columns": ["vector", "colour"]}, "colour"),
        ({"since": -1}, "whole number"),
        ({"since": True}, "whole number"),
    ],
)
def test_arguments_that_make_no_table_are_refused(store, options, words):
    fill(store)
    before = state_of(store)
    with pytest.raises(ArgumentError, match=words):
        store.to_frame(**options)
    assert state_of(store) == before


def test_unknown_clusters_and_untracked_vectors_are_refused():
    with pytest.raises(UnknownIdError):
        twin().to_frame(cluster=0)
    links = Links(*T, track_vectors=False)
    links.add_many(X)
    with pytest.raises(NotTrackedError):
        links.to_frame()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_for_each_cluster_as_clusters_tells(engine):
    links = twin(engine, min_size=3)
    fill(links)
    frame = links.clusters_frame()
    told = links.clusters()
    assert frame["cluster"].tolist() == [each.id for each in told]
    for name in ("name", "size", "pending", "ignored"):
        assert frame[name].tolist() == [getattr(each, name) for each in told], name
    for row in frame.itertuples():
        members = links.members(row.cluster)
        assert (row.last_seen, row.first_seen) == (members[0], members[-1])
        assert row.exemplars.tolist() == members[:3].tolist()


def test_clusters_come_in_the_order_asked_for_and_a_store_agrees(store):
    links = twin()
    fill(links)
    fill(store)
    keys = {
        "id": lambda each: each.id,
        "size": lambda each: (-each.size, each.id),
        "recent": lambda each: (-each.last_seen, each.id),
    }
    for order, key in keys.items():
        expected = [each.id for each in sorted(links.clusters(), key=key)][:4]
        options = {"order": order, "limit": 4, "exemplars": 1}
        table = links.clusters_frame("arrow", **options)
        assert table["cluster"].to_pylist() == expected
        assert table.equals(store.clusters_frame("arrow", **options))
    assert links.clusters_frame("arrow", exemplars=0)["exemplars"].to_pylist()[0] == []
    for wrong in ({"order": "name"}, {"limit": 0}, {"exemplars": -1}, {"kind": 3}):
        with pytest.raises(ArgumentError):
            links.clusters_frame(**wrong)


def test_clusters_of_untracked_vectors_have_no_exemplars():
    links = twin(track_vectors=False)
    links.add_many(X)
    frame = links.clusters_frame()
    told = links.clusters()
    assert frame["size"].tolist() == [each.size for each in told]
    assert frame["last_seen"].tolist() == [each.last_seen for each in told]
    assert {len(each) for each in frame["exemplars"]} == {0}


def test_the_table_of_clusters_copies_no_sums(monkeypatch):
    links = twin()
    fill(links)
    monkeypatch.setattr(type(links.core), "state", None)
    assert len(links.clusters_frame()) == links.n_clusters


def test_times_are_of_utc():
    at = np.array(["2024-05-01T12:00:00", "NaT"], dtype="datetime64[us]")
    columns = {"at": Column(at)}
    table = make_frame(columns, "arrow")
    assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert table["at"].null_count == 1
    frame = make_frame(columns, "pandas")
    assert str(frame["at"].dtype) == "datetime64[us, UTC]"
    assert frame["at"].iloc[0].isoformat() == "2024-05-01T12:00:00+00:00"


@pytest.mark.parametrize(("kind", "module"), [("pandas", "pandas"), ("arrow", "pyarrow")])
def test_a_format_that_is_not_installed_is_refused_with_the_remedy(monkeypatch, kind, module):
    real = builtins.__import__

    def importing(name, *rest):
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(builtins, "__import__", importing)
    links = twin()
    links.add_many(X)
    with pytest.raises(MissingExtraError, match=r'pip install "linkstream\[frames\]", or') as error:
        links.to_frame(kind)
    assert "'numpy'" in str(error.value)
    assert list(links.to_frame("numpy")) == ["vector", "cluster", "name"]


def test_rows_of_one_name_share_one_object():
    names = rows.names_of({1: "A name"}, np.array([1, 2, 1]))
    assert names.tolist() == ["A name", None, "A name"]
    assert names[0] is names[2]


def test_keys_and_times_are_columns_of_a_store(store):
    at = ["2026-01-31T12:00:00Z", None, "2026-01-31T12:00:00.25+01:00"]
    store.add_many(X[:3], ids=["a", None, "c"], at=at, payloads=[{"id": 1, "time": 2}] * 3)
    frame = store.to_frame(columns=["vector", "time", "id", "payload.id"])
    assert frame["id"].tolist() == ["a", None, "c"]
    assert frame["time"].isna().tolist() == [False, True, False]
    assert frame["time"].iloc[2].isoformat() == "2026-01-31T11:00:00.250000+00:00"
    assert frame["payload.id"].tolist() == [1, 1, 1]
    table = store.to_frame("arrow", columns=["time"])
    assert table.schema.field("time").type == pa.timestamp("us", tz="UTC")
