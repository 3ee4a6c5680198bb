"""Tables as bytes, block by block: the columns have one type in all blocks."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.store import tabular
from linkstream.tables import FORMATS, Column, check_format, encoded, frames
from linkstream.tables.frames import columns_of, make_frame
from store.operations import new, vectors

PAYLOADS = [
    None,
    {"a": 1, "b": True, "c": "x", "d": 1},
    {"a": 2, "c": 'y, "z"\n', "d": 2**60},
    "whole",
    {"a": 2.5, "b": False, "e": [1, {"f": None}]},
    {"late": "Dünya", "d": None, "vector": "taken"},
    {"e": 3},
]
X = vectors(np.random.default_rng(3), len(PAYLOADS))


@pytest.fixture
def store(path, monkeypatch):
    monkeypatch.setattr(tabular, "BLOCK", 2)
    with new(path) as opened:
        opened.add_many(X, payloads=PAYLOADS)
        yield opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.links"


def whole(store, form, **options):
    return b"".join(tabular.encoded_rows(store, form, **options))


def test_types_of_columns_are_those_of_all_blocks(store):
    frame = store.to_frame("arrow")
    assert pa.ipc.open_stream(whole(store, "arrow")).read_all().equals(frame)
    table = pq.read_table(io.BytesIO(whole(store, "parquet")))
    assert table.equals(frame)
    assert frame.schema.field("a").type == pa.float64()
    assert frame.schema.field("late").type == pa.string()


def test_rows_are_the_same_in_texts(store):
    frame = store.to_frame("arrow").to_pylist()
    assert [json.loads(line) for line in whole(store, "jsonl").splitlines()] == frame
    rows = list(csv.DictReader(io.StringIO(whole(store, "csv").decode(), newline="")))
    for row, expected in zip(rows, frame, strict=True):
        for name, value in expected.items():
            plain = value is not None and not isinstance(value, bool)
            words = {None: "", True: "true", False: "false"}
            assert row[name] == (str(value) if plain else words[value])


@pytest.mark.parametrize("form", FORMATS)
def test_a_table_without_rows_has_its_columns(store, form):
    data = whole(store, form, since=10**6, columns=["vector", "a"])
    if form == "csv":
        assert data == b"vector,a\n"
    elif form == "jsonl":
        assert data == b""
    else:
        table = (
            pq.read_table(io.BytesIO(data))
            if form == "parquet"
            else pa.ipc.open_stream(data).read_all()
        )
        assert (table.num_rows, table.column_names) == (0, ["vector", "a"])


def test_a_table_comes_in_parts(store):
    for form in ("csv", "jsonl", "arrow"):
        assert sum(map(bool, tabular.encoded_rows(store, form))) >= 4


def test_columns_come_back_from_arrow_as_they_were():
    times = np.array(["2026-05-04T08:30:00", "NaT"], dtype="datetime64[us]")
    columns = {
        "n": Column(np.array([1, 0]), np.array([False, True])),
        "share": Column(np.array([0.5, np.nan]), np.array([False, True])),
        "on": Column(np.array([True, False])),
        "text": Column.of_texts(["a", None]),
        "at": Column(times),
        "lists": Column(
            frames.objects([np.array([1, 2]), np.array([], dtype=np.int64)]), lists=True
        ),
    }
    data = b"".join(encoded(iter([columns]), "arrow"))
    again = columns_of(data)
    assert make_frame(again, "arrow").equals(make_frame(columns, "arrow"))
    assert (
        make_frame(again, "pandas")
        .drop(columns="lists")
        .equals(make_frame(columns, "pandas").drop(columns="lists"))
    )
    (first, second) = b"".join(encoded(iter([columns]), "jsonl")).splitlines()
    assert json.loads(first)["at"] == "2026-05-04T08:30:00.000000Z"
    assert json.loads(second)["at"] is None


def test_an_unknown_format_and_a_missing_package_are_named(monkeypatch):
    with pytest.raises(ArgumentError, match="xls"):
        check_format("xls")

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(frames.importlib, "import_module", missing)
    check_format("csv")
    with pytest.raises(MissingExtraError, match="pyarrow"):
        check_format("parquet")
