"""Payloads become typed columns, whatever they hold and however they are cut into blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkstream.errors import ArgumentError
from linkstream.tables import make_frame
from linkstream.tables.columns import (
    FIELDS_MAX,
    RESERVED,
    PayloadColumns,
    as_json,
    fields_for,
    title_of,
)


def columns(payloads, *, size=None, **options):
    made = PayloadColumns(**options)
    size = size or len(payloads) or 1
    for start in range(0, len(payloads), size):
        made.add(payloads[start : start + size])
    return made.columns()


def plain(payloads, **options):
    """Return the columns as lists of Python's values, by way of Arrow."""
    return make_frame(columns(payloads, **options), "arrow").to_pydict()


def test_each_field_becomes_a_column_in_the_order_first_seen():
    found = plain([{"b": 1, "a": "x"}, {"c": True, "a": "y"}])
    assert found == {"b": [1, None], "a": ["x", "y"], "c": [None, True]}
    assert list(found) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2, 3], "int64"),
        ([1, 2**62, -(2**63)], "int64"),
        ([1.5, 2.0, 0.1], "float64"),
        ([1, 2.5, 3], "float64"),
        ([True, False, True], "bool"),
        (["a", "", "1"], "object"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_field_of_one_kind_has_its_type(values, dtype, size):
    column = columns([{"f": value} for value in values], size=size)["f"]
    assert column.values.dtype == dtype
    assert column.missing is None
    assert column.values.tolist() == values


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        [True, 1],
        [2**63, 1],
        [2**60 + 1, 0.5],
        [[1, 2], {"x": None}],
        [[], "[]"],
        ["a", 1.0, None],
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [1, 2])
def test_any_other_field_has_text_of_json(values, size):
    told = columns([{"f": value} for value in values], size=size)["f"].values.tolist()
    assert told == [None if value is None else as_json(value) for value in values]


def test_a_missing_field_and_null_are_the_same():
    payloads = [{"n": 1, "x": 0.5, "on": True}, {"n": None, "x": None, "on": None}, {}, None]
    found = columns(payloads)
    assert [each.missing.tolist() for each in found.values()] == [[False, True, True, True]] * 3
    frame = make_frame(found, "pandas")
    assert frame.dtypes.astype(str).tolist() == ["Int64", "float64", "boolean"]
    assert frame["n"].tolist()[0] == 1
    assert frame.isna().sum().tolist() == [3, 3, 3]
    masked = make_frame(found, "numpy")["n"]
    assert masked.tolist() == [1, None, None, None]


def test_a_field_that_no_row_has_a_value_for_is_no_column():
    assert columns([{"a": None}, {}]) == {}


def test_payloads_that_are_no_objects_are_the_column_payload():
    assert plain(["photo.jpg", None, "b"]) == {"payload": ["photo.jpg", None, "b"]}
    found = plain([7, {"payload": 8, "name": "x"}, [1]])
    assert found == {
        "payload": ["7", None, "[1]"],
        "payload.payload": [None, 8, None],
        "payload.name": [None, "x", None],
    }


HOSTILE = [*RESERVED, "payload.", "payload.name", "", "x"]


def test_no_two_fields_share_a_column_and_none_hides_a_column_of_the_table():
    fields = [*HOSTILE, *(title_of(field) for field in HOSTILE)]
    fields = list(dict.fromkeys(fields))
    titles = [title_of(field) for field in fields]
    assert len(set(titles)) == len(fields)
    assert not {"vector", "id", "time", "cluster", "name", "payload"} & set(titles)
    for field in fields:
        assert field in fields_for([title_of(field)])


def test_only_wanted_fields_are_kept():
    payloads = [{"a": 1, "name": 2, "c": 3}, "whole"]
    found = plain(payloads, fields=fields_for(["a", "payload.name"]), whole=False)
    assert found == {"a": [1, None], "payload.name": [2, None]}


def test_too_many_fields_are_refused_with_a_remedy():
    payloads = [{f"f{i}": i} for i in range(FIELDS_MAX)]
    assert len(columns(payloads)) == FIELDS_MAX
    with pytest.raises(ArgumentError, match="columns="):
        columns([*payloads, {"more": 1}])
    assert len(columns([*payloads, {"more": 1}], fields=["more"])) == 1


def test_half_of_a_surrogate_pair_is_spelt_out_for_arrow_and_kept_for_pandas():
    found = columns([{"f": "a\ud800", "\udc00": 1}, {"f": None}])
    table = make_frame(found, "arrow")
    assert table.column_names == ["f", "\\udc00"]
    assert table["f"].to_pylist() == ["a\\ud800", None]
    assert make_frame(found, "pandas")["f"].tolist() == ["a\ud800", None]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)
PAYLOADS = st.lists(
    VALUES | st.dictionaries(st.sampled_from(HOSTILE), VALUES, max_size=4), max_size=12
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(PAYLOADS, st.integers(1, 5))
def test_the_cut_into_blocks_changes_nothing(payloads, size):
    at_once, in_blocks = columns(payloads), columns(payloads, size=size)
    assert list(at_once) == list(in_blocks)
    for name, column in at_once.items():
        other = in_blocks[name]
        assert column.values.dtype == other.values.dtype
        np.testing.assert_array_equal(column.values, other.values)
        np.testing.assert_array_equal(column.missing, other.missing)
    assert isinstance(make_frame(at_once, "arrow"), pa.Table)
    if at_once:
        assert len(make_frame(at_once, "pandas")) == len(payloads)
