"""Test tables: they are read back unchanged, and are never incomplete."""

from __future__ import annotations

import csv
import json
import os

import numpy as np
import pyarrow.parquet as parquet
import pytest
from tests.io.samples import read, rows, vectors

from linkstream.errors import ArgumentError
from linkstream.io import atomic_file, write_table

X = vectors(30)
PAYLOADS = [None, "text\n", {"a": [1, None]}, 3.5, [True], 'quo"te,'] * 5
NAMES = ["Ann", None, "Bo, b\n"] * 10
SUFFIXES = (".parquet", ".npz", ".jsonl", ".csv")


def blocks(step=7):
    for start in range(0, 30, step):
        part = slice(start, start + step)
        yield {
            "vector": np.arange(30)[part],
            "name": NAMES[part],
            "payload": PAYLOADS[part],
            "embedding": X[part],
        }


def written(tmp_path, suffix, step=7):
    path = tmp_path / f"table{suffix}"
    assert write_table(path, blocks(step), encoded=["payload"]) == 30
    return path


def test_parquet_has_numbers_texts_and_vectors_in_columns_of_their_kind(tmp_path):
    made = parquet.read_table(written(tmp_path, ".parquet"))
    assert made["vector"].to_pylist() == list(range(30))
    assert made["name"].to_pylist() == NAMES
    assert [None if p is None else json.loads(p) for p in made["payload"].to_pylist()] == PAYLOADS
    assert np.array_equal(np.stack(made["embedding"].to_numpy()), X)


def test_jsonl_has_an_object_a_line(tmp_path):
    lines = written(tmp_path, ".jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"vector": v, "name": n, "payload": p, "embedding": x}
        for v, n, p, x in zip(range(30), NAMES, PAYLOADS, X.tolist(), strict=True)
    ]


def test_csv_has_a_line_of_names_and_arrays_in_cells(tmp_path):
    with written(tmp_path, ".csv").open(newline="") as stream:
        found = list(csv.DictReader(stream))
    assert [row["name"] or None for row in found] == NAMES
    assert [json.loads(row["payload"]) if row["payload"] else None for row in found] == PAYLOADS
    assert [json.loads(row["embedding"]) for row in found] == X.tolist()


def test_npz_has_arrays_and_texts_as_lines_of_json(tmp_path):
    with np.load(written(tmp_path, ".npz"), allow_pickle=False) as found:
        assert np.array_equal(found["embedding"], X)
        assert found["vector"].tolist() == list(range(30))
        for column, expected in (("name", NAMES), ("payload", PAYLOADS)):
            lines = found[column].tobytes().decode().splitlines()
            assert [json.loads(line) for line in lines] == expected


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back_whatever_the_blocks(tmp_path, suffix):
    for step in (1, 30):
        path = written(tmp_path, suffix, step)
        key = "embedding" if suffix == ".npz" else None
        assert np.array_equal(rows(read(path, key=key)).astype(np.float32), X)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file(tmp_path, suffix):
    path = written(tmp_path, suffix)
    before = path.read_bytes()

    def failing():
        yield from blocks()
        raise KeyError("on the way")

    with pytest.raises(KeyError, match="on the way"):
        write_table(path, failing(), encoded=["payload"])
    with pytest.raises(ArgumentError, match="all of one length"):
        write_table(path, [{"a": np.arange(2)}, {"a": np.arange(2), "b": np.arange(2)}])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_may_have_no_rows_but_needs_a_block(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    empty = {"embedding": X[:0], "name": []}
    assert write_table(path, [empty]) == 0
    with pytest.raises(ArgumentError, match="without a block"):
        write_table(path, [])


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"ends in \.parquet"):
        write_table(tmp_path / "table.xls", blocks())


def test_a_file_takes_its_name_only_when_it_is_complete(tmp_path):
    path = tmp_path / "new.txt"
    with atomic_file(path, "w") as stream:
        stream.write("all")
        assert not path.exists()
    assert path.read_text() == "all"
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to("there")
    with atomic_file(tmp_path / "link", "w") as stream:
        stream.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"


def test_a_path_that_cannot_be_written_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none" / "x", tmp_path / ("x" * 300)):
        with pytest.raises(ArgumentError, match="cannot be written"), atomic_file(path):
            raise AssertionError("the work has begun")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
