"""Frames of pandas, tables of Arrow and dicts of arrays, made of columns.

Neither pandas nor pyarrow is needed to import linkstream.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.tables.columns import Column, objects

KINDS = ("pandas", "arrow", "numpy")
_MODULES = {"pandas": "pandas", "arrow": "pyarrow", "numpy": "numpy"}


def check_kind(kind: str) -> None:
    """Raise ArgumentError for an unknown kind, MissingExtraError if it is not installed.

    Args:
        kind: "pandas", "arrow" or "numpy".
    """
    if kind not in KINDS:
        raise ArgumentError(
            f"kind {kind!r:.80}",
            expected=" or ".join(map(repr, KINDS)),
            remedy="Choose one of these.",
        )
    _module(kind)


def _module(kind: str) -> Any:
    name = _MODULES[kind]
    try:
        return importlib.import_module(name)
    except ImportError:
        raise _missing(name, kind) from None


def _missing(name: str, kind: str) -> MissingExtraError:
    """Return the error for a kind that is not installed; it names those that are."""
    others = [each for each in KINDS if each != kind and find_spec(_MODULES[each])]
    instead = f"pass kind={' or '.join(map(repr, others))}"
    return MissingExtraError(
        name, extra="frames", purpose=f"A frame with kind={kind!r}", instead=instead
    )


def make_frame(columns: Mapping[str, Column], kind: str) -> Any:
    """Return columns as a pandas DataFrame, a pyarrow Table, or a dict of NumPy arrays.

    Args:
        columns: columns of one length, by name.
        kind: "pandas", "arrow" or "numpy".
    """
    module = _module(kind)
    if kind == "numpy":
        return {name: _array(each) for name, each in columns.items()}
    if kind == "pandas":
        return module.DataFrame({name: _series(module, each) for name, each in columns.items()})
    arrays = [_arrow(module, each) for each in columns.values()]
    return module.table(arrays, names=[_encodable(name) for name in columns])


def columns_of(data: bytes) -> dict[str, Column]:
    """Return the columns of a table that `make_frame` made, from a stream of Arrow."""
    pa = _module("arrow")
    table = importlib.import_module("pyarrow.ipc").open_stream(data).read_all()
    return {name: _column(pa, table[name].combine_chunks()) for name in table.column_names}


def _column(pa: Any, values: Any) -> Column:
    if pa.types.is_string(values.type):
        return Column.of_texts(values.to_pylist())
    if pa.types.is_list(values.type):
        return Column(
            objects([np.array(v, dtype=np.int64) for v in values.to_pylist()]), lists=True
        )
    if pa.types.is_timestamp(values.type):
        return Column(values.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False))
    missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    if pa.types.is_floating(values.type):
        return Column(values.to_numpy(zero_copy_only=False), missing)
    filled = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
    return Column(filled.to_numpy(zero_copy_only=False), missing)


def _array(column: Column) -> Any:
    """Return a column as an array; masked if whole numbers or flags are missing."""
    if column.missing is None or column.values.dtype.kind == "f":
        return column.values
    return np.ma.MaskedArray(column.values, mask=column.missing)


def _series(pd: Any, column: Column) -> Any:
    """Return a column for pandas; whole numbers and flags with gaps have its nullable types."""
    values, missing = column.values, column.missing
    if values.dtype.kind == "M":
        return pd.Series(values).dt.tz_localize("UTC")
    if missing is None or values.dtype.kind == "f":
        return values
    nullable = pd.arrays.BooleanArray if values.dtype.kind == "b" else pd.arrays.IntegerArray
    return nullable(values, missing)


def _arrow(pa: Any, column: Column) -> Any:
    """Return a column for Arrow."""
    values, missing = column.values, column.missing
    if values.dtype.kind == "M":
        return pa.array(values.astype("datetime64[us]")).cast(pa.timestamp("us", tz="UTC"))
    if values.dtype != object:
        return pa.array(values, mask=missing)
    if column.lists:
        return _lists(pa, values)
    try:
        return pa.array(values, type=pa.string())
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON may hold
        return pa.array([None if v is None else _encodable(v) for v in values], type=pa.string())


def _lists(pa: Any, values: Any) -> Any:
    ends = np.cumsum([0, *map(len, values)])
    flat = np.concatenate([np.empty(0, dtype=np.int64), *values])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(flat))


def _encodable(text: str) -> str:
    """Return a text that UTF-8 can hold: half of a surrogate pair is spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()
