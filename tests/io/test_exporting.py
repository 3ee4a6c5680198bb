"""Test export and import of stores."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from tests.io.samples import read, rows, vectors

from linkstream import Space, Thresholds
from linkstream.errors import (
    ArgumentError,
    InputFileError,
    LinkstreamError,
    NotTrackedError,
    StoreError,
)
from linkstream.io import export, import_store
from linkstream.store import Store

X = vectors(60, 8)
THRESHOLDS = Thresholds(0.7, 0.6, 0.9)


def filled(path, **options):
    """Return a store on which every verb was called."""
    store = Store.open(path, thresholds=THRESHOLDS, threads=1, **options)
    store.add_many(X[:30], payloads=[{"photo": row} for row in range(30)], idempotency_key="first")
    store.enrol("Ann", X[30:33])
    store.add(X[33], weight=0.0)
    store.add(X[34], payload="text")
    store.undo()
    store.add(X[35], payload="other text")
    store.add_many(X[36:40], weight=[1, 0, 0.5, 1])
    store.add_group(X[40:43], group="room")
    store.name(0, "Bob")
    store.same(0, 1, of="clusters")
    labels = store.labels().tolist()
    store.move(3, next(label for label in labels if label not in (-1, labels[3])))
    store.remove(2)
    store.forget(5)
    store.settle(apply=True)
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    space = Space(mean=np.linspace(0, 0.2, 8), model="encoder")
    folder = tmp_path_factory.mktemp("store")
    with filled(folder / "a.links", space=space, heal="join") as made:
        yield made


@pytest.fixture(scope="module")
def folder(store, tmp_path_factory):
    target = tmp_path_factory.mktemp("exported") / "people"
    export(store, target)
    return target


@pytest.mark.parametrize("packing", ["npz", "parquet"])
def test_an_imported_store_equals_the_exported_one(store, tmp_path, packing):
    export(store, tmp_path / "out", packing=packing)
    import_store(tmp_path / "out", tmp_path / "b.links", threads=1)
    with Store.open(tmp_path / "b.links", threads=1) as again:
        assert again.state_hash() == store.state_hash()
        assert np.array_equal(again.labels(), store.labels())
        assert again.events() == store.events()
        assert again.payloads([20])[0] == store.payloads([20])[0]
        assert [c.name for c in again.clusters()] == [c.name for c in store.clusters()]
        assert np.array_equal(
            again.add_many(X[:30] + 1, idempotency_key="second"),
            answer_of_the_exported(store, X[:30] + 1),
        )


def answer_of_the_exported(store, more):
    """Return the result that the exported store gives."""
    store.backup(store.path.with_name("copy.links"))
    with Store.open(store.path.with_name("copy.links"), threads=1) as copy:
        ids = copy.add_many(more)
    for left in store.path.parent.glob("copy.links*"):
        left.unlink()
    return ids


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".jsonl", ".csv"])
def test_a_table_has_a_row_for_each_remaining_vector(store, tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    export(store, path, vectors=True)
    there = np.flatnonzero(store.labels() >= 0)
    key = "embedding" if suffix == ".npz" else None
    assert np.array_equal(rows(read(path, key=key)).astype(np.float32), store.vectors(there))
    if suffix == ".npz":
        with np.load(path) as found:
            assert np.array_equal(found["cluster"], store.labels()[there])


def test_a_table_has_instant_and_current_ids_names_and_payloads(store, tmp_path):
    export(store, tmp_path / "table.jsonl")
    lines = (tmp_path / "table.jsonl").read_text().splitlines()
    found = {row["vector"]: row for row in map(json.loads, lines)}
    labels, names = store.labels(), {c.id: c.name for c in store.clusters()}
    answered = next(store.journal.operations())
    ids = np.frombuffer(answered.result, dtype="<i8")
    assert list(found) == np.flatnonzero(labels >= 0).tolist()
    for vector, row in found.items():
        assert row["cluster"] == labels[vector]
        assert row["name"] == names[row["cluster"]]
        assert row["payload"] == store.payloads([vector])[0]
        assert row["instant"] == ids[vector] if vector < 30 else row["instant"] >= 0
        assert "embedding" not in row
    enrolled = [row for vector, row in found.items() if 30 <= vector < 33]
    assert len({row["instant"] for row in enrolled}) == 1


def test_an_empty_store_is_exported_and_imported(tmp_path):
    with Store.open(tmp_path / "a.links", thresholds=THRESHOLDS) as empty:
        export(empty, tmp_path / "out")
        export(empty, tmp_path / "table.csv")
    import_store(tmp_path / "out", tmp_path / "b.links")
    with Store.open(tmp_path / "b.links") as again:
        assert again.n_vectors == 0
    assert (tmp_path / "table.csv").read_text() == "vector,instant,cluster,name,id,time,payload\n"


def test_missing_vectors_raise_before_anything_is_written(tmp_path):
    with Store.open(tmp_path / "a.links", thresholds=THRESHOLDS, keep_vectors=False) as store:
        store.add_many(X)
        with pytest.raises(NotTrackedError):
            export(store, tmp_path / "table.csv", vectors=True)
        export(store, tmp_path / "without.csv")
    assert "table.csv" not in os.listdir(tmp_path)


def test_a_compacted_store_cannot_be_exported_to_a_folder(tmp_path):
    with filled(tmp_path / "a.links") as store:
        store.compact()
        with pytest.raises(StoreError, match=r"cannot be replayed.*backup"):
            export(store, tmp_path / "out")
        export(store, tmp_path / "table.csv")


def test_existing_targets_are_refused(store, folder, tmp_path):
    with pytest.raises(ArgumentError, match="already exists"):
        export(store, folder)
    with pytest.raises(ArgumentError, match="already exists"):
        import_store(folder, store.path)
    with pytest.raises(ArgumentError, match="packing"):
        export(store, tmp_path / "out", packing="zip")
    with pytest.raises(ArgumentError, match="cannot be made"):
        export(store, tmp_path / "none" / "out")


def changed(folder, tmp_path, name, change):
    shutil.copytree(folder, tmp_path / "changed")
    path = tmp_path / "changed" / name
    lines = path.read_text().splitlines(keepends=True)
    change(lines)
    path.write_text("".join(lines))
    return tmp_path / "changed"


def _other_answer(lines):
    record = json.loads(lines[0])
    record["result"][3] += 1
    lines[0] = json.dumps(record) + "\n"


def _other_verb(lines):
    lines[1] = lines[1].replace('"enrol"', '"close"')


def _other_name(lines):
    lines[8] = lines[8].replace("Bob", "Rob")


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("operations.jsonl", _other_answer, "operation 1: its result differs"),
        ("operations.jsonl", _other_verb, "operation 2: it cannot be replayed .*verb 'close'"),
        ("operations.jsonl", _other_name, "event .*: it differs"),
        ("operations.jsonl", lambda lines: lines.pop(), "ends after operation"),
        ("operations.jsonl", lambda lines: lines.pop(0), "operation 1: "),
        ("operations.jsonl", lambda lines: lines.append("{}\n"), "cannot be replayed"),
        ("operations.jsonl", lambda lines: lines.append("[[[\n"), "line .* is not JSON|not JSON"),
        ("payloads.jsonl", lambda lines: lines.pop(), "operation .*: it cannot be replayed"),
        ("payloads.jsonl", lambda lines: lines.append("1\n"), "left over"),
        ("events.jsonl", lambda lines: lines.pop(), "event .*: it differs"),
        ("events.jsonl", lambda lines: lines.append("{}\n"), "events now"),
        ("store.json", lambda lines: lines.append("x"), "not JSON"),
        ("store.json", lambda lines: lines.__setitem__(1, '"export": 3,\n'), "format 3"),
        (
            "store.json",
            lambda lines: lines.__setitem__(1, '"export": "x",\n'),
            "does not describe a store",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_changed_export_is_refused_with_the_position_of_the_change(
    folder, tmp_path, name, change, match
):
    with pytest.raises(StoreError, match=match):
        import_store(changed(folder, tmp_path, name, change), tmp_path / "b.links", threads=1)
    assert os.listdir(tmp_path) == ["changed"]


@pytest.mark.parametrize(
    "name", ["store.json", "operations.jsonl", "payloads.jsonl", "events.jsonl", "vectors.npz"]
)
def test_an_export_without_one_of_its_files_is_refused(folder, tmp_path, name):
    shutil.copytree(folder, tmp_path / "changed")
    (tmp_path / "changed" / name).unlink()
    with pytest.raises((StoreError, InputFileError)):
        import_store(tmp_path / "changed", tmp_path / "b.links", threads=1)
    assert os.listdir(tmp_path) == ["changed"]


def test_vectors_that_were_changed_give_a_typed_error(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "changed")
    path = tmp_path / "changed" / "vectors.npz"
    data = bytearray(path.read_bytes())
    data[400] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(LinkstreamError):
        import_store(tmp_path / "changed", tmp_path / "b.links", threads=1)
    assert os.listdir(tmp_path) == ["changed"]
