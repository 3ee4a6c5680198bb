"""Test unusable vectors in files: the error names the row, and nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.io.samples import KINDS, made, options, read, rows, vectors

from linkstream import Links
from linkstream.errors import ArgumentError, InputFileError, VectorError

X = vectors(20).astype(np.float64)
TEXT = ("jsonl", "jsonl-arrays", "csv", "csv-plain")
BAD = {"nan": np.nan, "inf": np.inf, "minus-inf": -np.inf}


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_is_not_finite_is_reported_with_its_row_before_any_change(
    tmp_path, kind, value
):
    bad = X.astype(np.float32)
    bad[13, 2] = BAD[value]
    path = made(tmp_path, kind, bad)
    links = Links(0.7, 0.6, 0.9, threads=1)
    with pytest.raises(ArgumentError) as caught:
        links.add_many(rows(read(path, **options(kind))))
    if kind in TEXT:
        line = {"jsonl": 27, "jsonl-arrays": 14, "csv": 15, "csv-plain": 14}[kind]
        assert isinstance(caught.value, InputFileError)
        assert f"line {line} " in str(caught.value)
    else:
        assert isinstance(caught.value, VectorError)
        assert caught.value.row == 13
    assert links.n_vectors == 0


@pytest.mark.parametrize("factor", [0.0, 1e-42, 1e20, 1e39], ids=str)
@pytest.mark.parametrize("kind", ["npy", "parquet-fixed", "jsonl", "csv-plain"])
def test_vectors_too_short_or_too_long_are_reported_with_their_row(tmp_path, kind, factor):
    bad = X.copy()
    bad[7] = np.sign(bad[7]) * factor
    path = made(tmp_path, kind, bad)
    links = Links(0.7, 0.6, 0.9, threads=1)
    with pytest.raises(VectorError) as caught:
        links.add_many(rows(read(path)))
    assert caught.value.row == 7
    assert links.n_vectors == 0


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8", "|i1", "<i4", "<u2"])
@pytest.mark.parametrize("kind", ["npy", "npy-fortran", "npz-packed"])
def test_numbers_of_any_width_and_byte_order_give_the_ids_of_the_array(tmp_path, kind, dtype):
    given = np.rint(np.abs(X) * 40 + 1).astype(dtype)
    path = made(tmp_path, kind, given)
    links, expected = Links(0.7, 0.6, 0.9, threads=1), Links(0.7, 0.6, 0.9, threads=1)
    ids = [links.add_many(block.vectors) for block in read(path, block=6)]
    assert np.array_equal(np.concatenate(ids), expected.add_many(given))
    assert links.state_hash() == expected.state_hash()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_ids_of_the_array(tmp_path, kind):
    exact = X.astype(np.float32)
    links, expected = Links(0.7, 0.6, 0.9, threads=1), Links(0.7, 0.6, 0.9, threads=1)
    expected.add_many(exact)
    for block in read(made(tmp_path, kind, exact), block=7, **options(kind)):
        links.add_many(block.vectors)
    assert links.state_hash() == expected.state_hash()
