"""Test vectors of columns: all encodings give the same numbers, bad rows an error."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, BinaryType, DoubleType, FloatType, IntegerType, StructType

from linkstream import Links
from linkstream.errors import ArgumentError, DimensionError, VectorError
from linkstream.scaleout import vectors
from linkstream.scaleout.columns import find_column

ROWS = np.random.default_rng(7).normal(size=(9, 5)).astype(np.float32)
FLOATS = pa.list_(pa.float32())


def objects(*values):
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def lists(rows=ROWS, kind=FLOATS):
    return pa.array([None if row is None else list(row) for row in rows], type=kind)


def in_bytes(rows=ROWS, kind=None):
    kind = kind or pa.binary()
    return pa.array([None if row is None else np.float32(row).tobytes() for row in rows], kind)


def fresh():
    return Links(0.6, 0.5, 0.8, threads=1, track_vectors=False)


# Columns of objects


@pytest.mark.parametrize(
    "written",
    [
        list,
        tuple,
        np.asarray,
        np.float64,
        lambda row: row.tobytes(),
        lambda row: bytearray(row.tobytes()),
    ],
)
def test_lists_arrays_and_bytes_are_the_same_vectors(written):
    seen = vectors.rows(objects(*(written(row) for row in ROWS)))
    assert seen.dtype == np.float32
    assert np.array_equal(seen, ROWS)


def test_bytes_are_little_endian_on_any_machine():
    value = np.array([1.0, -2.5], dtype="<f4").tobytes()
    assert vectors.one(value).tolist() == [1.0, -2.5]


@pytest.mark.parametrize(
    ("value", "word"), [(None, "null"), (b"\x00" * 7, "7 bytes"), (bytearray(5), "5 bytes")]
)
def test_a_value_that_is_no_vector_is_named_in_the_error(value, word):
    with pytest.raises(VectorError, match=word):
        vectors.rows(objects(ROWS[0], value))


def test_vectors_of_several_dimensions_are_named():
    with pytest.raises(VectorError, match="dimensions 2, 3, 5"):
        vectors.rows(objects([1, 2, 3], ROWS[0], [1, 2], [3, 2, 1]))


def test_a_null_within_a_vector_is_no_number():
    assert np.isnan(vectors.rows(objects([1.0, None, 2.0]))[0, 1])


def test_numbers_too_large_for_float32_are_infinite_without_a_warning():
    assert np.isinf(vectors.rows(objects([1e300, 0.0]))[0, 0])
    assert np.isinf(vectors.block(lists([[1e300, 0.0]], pa.list_(pa.float64())))[0, 0])


def test_no_rows_are_an_empty_block():
    assert len(vectors.rows(objects())) == 0
    assert len(fresh().add_many(vectors.rows(objects()))) == 0


# Columns of Arrow

KINDS = [
    lists,
    lambda rows=ROWS: lists(rows, pa.list_(pa.float64())),
    lambda rows=ROWS: lists(rows, pa.large_list(pa.float32())),
    in_bytes,
    lambda rows=ROWS: in_bytes(rows, pa.large_binary()),
]
written_each_way = pytest.mark.parametrize(
    "column", KINDS, ids=["floats", "doubles", "large lists", "bytes", "large bytes"]
)


@written_each_way
def test_a_column_is_a_block(column):
    seen = vectors.block(column())
    assert seen.dtype == np.float32
    assert np.array_equal(seen, ROWS)


@written_each_way
@pytest.mark.parametrize(("first", "n"), [(0, 4), (3, 4), (8, 1), (2, 7)])
def test_a_slice_is_its_own_rows_and_no_others(column, first, n):
    assert np.array_equal(vectors.block(column().slice(first, n)), ROWS[first : first + n])


@written_each_way
def test_a_slice_beside_nulls_and_other_dimensions_is_whole(column):
    around = column([None, [1.0, 2.0], *ROWS, None, [3.0]])
    assert np.array_equal(vectors.block(around.slice(2, len(ROWS))), ROWS)
    assert np.array_equal(vectors.block(around.slice(3, 2).slice(1)), ROWS[2:3])


@written_each_way
def test_a_batch_that_came_through_the_wire_in_pieces_is_the_same(column):
    table = pa.table({"vector": pa.chunked_array([column().slice(0, 2), column().slice(2, 7)])})
    pieces = [vectors.block(batch["vector"]) for batch in table.to_batches(max_chunksize=3)]
    assert np.array_equal(np.concatenate(pieces), ROWS)


@written_each_way
def test_an_empty_column_is_an_empty_block(column):
    assert len(vectors.block(column().slice(0, 0))) == 0
    assert len(vectors.block(column([]))) == 0


@written_each_way
def test_a_null_is_refused(column):
    with pytest.raises(VectorError, match="null"):
        vectors.block(column([ROWS[0], None, ROWS[1]]))


@written_each_way
def test_ragged_rows_are_refused(column):
    with pytest.raises(VectorError, match="dimensions 2, 5"):
        vectors.block(column([ROWS[0], [1.0, 2.0]]))


def test_rows_whose_lengths_sum_up_are_still_ragged():
    with pytest.raises(VectorError, match="dimensions 1, 2, 3"):
        vectors.block(lists([[1, 2], [1], [1, 2, 3], [4, 5]]))


def test_a_null_within_a_row_is_no_number_and_no_shift():
    seen = vectors.block(lists([[1.0, None, 3.0], [4.0, 5.0, 6.0]]))
    assert np.isnan(seen[0, 1])
    assert seen[1].tolist() == [4.0, 5.0, 6.0]


def test_floats_are_not_copied():
    column = lists()
    assert np.shares_memory(vectors.block(column), column.flatten().to_numpy())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.integers(0, 30), min_size=2, max_size=2),
    st.booleans(),
    st.booleans(),
)
def test_any_slice_of_any_column_agrees_with_its_list(dimension, ends, doubles, binary):
    rows = np.random.default_rng(dimension).normal(size=(30, dimension)).astype(np.float32)
    first, last = sorted(ends)
    kind = pa.list_(pa.float64() if doubles else pa.float32())
    column = in_bytes(rows) if binary else lists(rows, kind)
    seen = vectors.block(column.slice(first, last - first))
    assert seen.shape[0] == last - first
    assert seen.tolist() == rows[first:last].tolist()


# Usable vectors


def test_all_good_vectors_are_usable():
    taken, problems = vectors.usable(fresh(), objects(*ROWS))
    assert np.array_equal(taken, ROWS)
    assert problems == [None] * len(ROWS)


def test_each_bad_row_has_its_own_problem_and_good_ones_keep_their_order():
    bad = [
        None,
        b"123",
        [np.nan] * 5,
        np.zeros(5),
        [1.0, 2.0],
        [],
        [np.inf, 0, 0, 0, 0],
        [None] * 5,
    ]
    values = objects(bad[0], ROWS[0], *bad[1:5], ROWS[1], *bad[5:], ROWS[2])
    taken, problems = vectors.usable(fresh(), values)
    assert np.array_equal(taken, ROWS[:3])
    good = [place for place, problem in enumerate(problems) if problem is None]
    assert good == [1, 6, 10]
    words = ["null", "3 bytes", "not finite", "too short", "dimension 2", "dimension 0"]
    said = [problem for problem in problems if problem is not None]
    assert all(word in problem for word, problem in zip(words, said, strict=False))


def test_the_first_usable_vector_determines_the_dimension():
    taken, problems = vectors.usable(fresh(), objects([0.0, 0.0], [1.0, 2.0, 3.0], [1.0, 2.0]))
    assert taken.shape == (1, 3)
    assert [problem is None for problem in problems] == [False, True, False]
    assert "dimension 3" in problems[2]


def test_a_clusterer_that_has_a_dimension_keeps_it():
    links = fresh()
    links.add([1.0, 0.0])
    taken, problems = vectors.usable(links, objects([1.0, 2.0, 3.0], [1.0, 2.0]))
    assert taken.tolist() == [[1.0, 2.0]]
    assert problems[1] is None


def test_checking_vectors_adds_none():
    links = fresh()
    links.add_many(ROWS)
    before = links.state_hash()
    vectors.usable(links, objects(None, ROWS[0], np.zeros(5)))
    assert links.state_hash() == before


def test_without_usable_vectors_the_block_is_empty():
    taken, problems = vectors.usable(fresh(), objects(None, [np.nan, 1.0]))
    assert len(taken) == 0
    assert all(problems)


# Columns of a frame

NUMBERS = StructType().add("id", IntegerType()).add("v", ArrayType(FloatType()))


@pytest.mark.parametrize(
    "kind",
    [ArrayType(FloatType()), ArrayType(DoubleType(), containsNull=False), BinaryType()],
)
def test_columns_of_vectors_are_accepted(kind):
    vectors.check_type("v", kind)


@pytest.mark.parametrize("kind", [IntegerType(), ArrayType(IntegerType()), NUMBERS])
def test_other_columns_are_refused_with_their_type(kind):
    with pytest.raises(ArgumentError, match=kind.simpleString()[:7]):
        vectors.check_type("v", kind)


@pytest.mark.parametrize("given", ["x", "idd", 7, None, ""])
def test_a_missing_column_is_refused_with_the_existing_columns(given):
    """Check that Spark, which would log its stack, is not asked."""
    with pytest.raises(ArgumentError) as said:
        find_column(SimpleNamespace(columns=["id", "v"]), given)
    assert said.value.seen == f"a column {given!r}"
    assert said.value.expected == "one of id, v"


def test_a_refused_dimension_is_still_a_vector_error():
    """Check that errors of the clusterer are VectorErrors, which marking catches."""
    links = fresh()
    links.add([1.0, 0.0])
    assert issubclass(DimensionError, VectorError)
    with pytest.raises(VectorError):
        links.predict(np.ones((1, 3)))
