"""A first look at a file, and rows that are left out with their reasons."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from tests.io.samples import KINDS, made, vectors

from linkstream.errors import InputFileError
from linkstream.io import open_vectors
from linkstream.io.columns import look_at
from linkstream.io.good_rows import BadRows, GoodRows

X = vectors(30)


def good(path, **given):
    """Return the good rows of a file, and the reasons for the others."""
    bad = BadRows()
    with open_vectors(path, block=7, bad_row=bad.note, **given) as source:
        blocks = list(GoodRows(source, bad))
    assert all(len(block) for block in blocks)
    numbers = [block.first_row for block in blocks]
    assert numbers == [sum(map(len, blocks[:place])) for place in range(len(blocks))]
    return np.concatenate([block.vectors for block in blocks]), bad


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "raw"])
def test_the_options_of_a_look_read_the_file(kind, tmp_path):
    path = made(tmp_path, kind, X)
    look = look_at(path)
    assert look.error is None
    assert look.dimension == X.shape[1]
    assert np.allclose(look.sample, X[:5], atol=1e-6)
    rows, bad = good(path, **look.options)
    assert np.allclose(rows, X, atol=1e-6)
    assert bad.count == 0


def test_numbered_columns_are_one_column_of_vectors(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,e_0,e_1,e_2\nAnn,1,2,3\nBob,3,2,1\n")
    look = look_at(path)
    assert (look.columns, look.vectors, look.others) == (["name", "e"], ["e"], ["name"])
    assert look.rows == [{"name": "Ann"}, {"name": "Bob"}]


def test_columns_of_numbers_with_names_of_their_own_are_the_vector(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,width,height\nAnn,1,2\nBob,3,2\n")
    look = look_at(path)
    assert (look.vectors, look.others, look.dimension) == ([], ["name"], 2)


def test_keys_and_times_are_recognised_by_name_and_values(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"id": i, "time": "2026-01-31T12:00:00Z", "date": "Monday", "v": x.tolist()}
        for i, x in enumerate(X)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    look = look_at(path)
    assert (look.column, look.id_column, look.time_column) == ("v", "id", "time")


def test_a_look_with_a_wrong_column_says_why_no_row_could_be_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "v": [1, 2]}\n')
    assert look_at(path, "text").dimension is None
    assert look_at(path, "v").dimension == 2


def test_wrong_lines_are_named_and_the_others_read(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [json.dumps(x.tolist()) for x in X]
    lines[0], lines[9], lines[20] = "{oops", "[1, 2]", json.dumps([0.0] * X.shape[1])
    path.write_text("\n".join(lines) + "\n")
    rows, bad = good(path)
    assert len(rows) == 27
    assert [each.seen.partition(",")[2][:8] for each in bad.first] == [
        " line 1 ",
        " line 10",
        " line 21",
    ]


def test_wrong_rows_of_a_parquet_file_are_named_by_their_places(tmp_path):
    cells = X.tolist()
    cells[0], cells[8], cells[29] = None, [1.0], [*cells[29][:-1], None]
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"v": pa.array(cells, pa.list_(pa.float32()))}), path)
    rows, bad = good(path)
    assert np.allclose(rows, np.delete(X, [0, 8, 29], axis=0))
    assert [
        "row 0" in bad.first[0].seen,
        "row 8" in bad.first[1].seen,
        "row 29" in bad.first[2].seen,
    ]


def test_unusable_keys_and_times_are_wrong_rows(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"id": f"k{i}", "at": 17.5, "v": x.tolist()} for i, x in enumerate(X[:6])]
    rows[1]["id"], rows[2]["at"], rows[3]["id"] = None, "yesterday", "a\nb"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, bad = good(path, id_column="id", time_column="at")
    assert (len(found), bad.count) == (3, 3)


def test_only_the_first_wrong_rows_are_described_and_all_counted(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((500, 4)) + np.eye(500, 4))
    rows, bad = good(path)
    assert (len(rows), bad.count, len(bad.first)) == (4, 496, 20)


def test_without_a_place_for_wrong_rows_they_are_errors(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("[1, 2]\n[1, 2, 3]\n")
    with pytest.raises(InputFileError, match="line 2"), open_vectors(path) as source:
        list(source)
