"""Columns of a table, and how the fields of payloads become columns.

A column has one type: whole numbers, numbers, yes or no, text, times, or lists of whole numbers.
The type of a field depends on all its values, never on the blocks in which they were read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError

RESERVED = (
    *("vector", "id", "time", "cluster", "name", "payload"),
    *("cluster_margin", "probability"),
)
PREFIX = "payload."
FIELDS_MAX = 1_000
_EXACT = 2**53  # whole numbers up to here are exact as floats

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """The values of a column, and which of them are missing (None: none is).

    `values` is an array of int64, float64, bool, datetime64[us] in UTC, or of objects: texts or
    None, or, with `lists`, arrays of int64. A missing value is 0, NaN, False, NaT or None there.
    """

    values: npt.NDArray[Any]
    missing: Flags | None = None
    lists: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of_texts(cls, values: Iterable[str | None]) -> Column:
        """Return a column of texts; None for a missing one."""
        return cls(objects(list(values)))


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return an array with one object a place, also if the objects are lists."""
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def title_of(field: str) -> str:
    """Return the name of the column for a field: the field's, or with a prefix if that is taken."""
    return PREFIX + field if field in RESERVED or field.startswith(PREFIX) else field


def fields_for(columns: Collection[str]) -> frozenset[str]:
    """Return the fields of payloads that columns of these names may be made of."""
    bare = {name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX)}
    return frozenset(bare | {name for name in columns if title_of(name) == name})


class PayloadColumns:
    """Turns payloads, added block by block, into columns.

    Each field of payloads that are objects becomes a column, see `title_of`. Payloads of another
    type become the column `payload`. A field that is missing and a field that is null are the same.

    Args:
        fields: the fields to keep; None for all.
        whole: whether to keep payloads that are no objects.
        keep: whether to keep values; False only finds out the columns, for `blank`.
    """

    def __init__(
        self, fields: Collection[str] | None = None, *, whole: bool = True, keep: bool = True
    ) -> None:
        self._wanted, self._keeps_whole, self._keep = fields, whole, keep
        self._fields: dict[str, _Values] = {}
        self._whole = _Values(keep=keep)
        self._rows = 0

    def blank(self) -> PayloadColumns:
        """Return columns without rows, of the names and types of these."""
        made = PayloadColumns(self._wanted, whole=self._keeps_whole)
        made._whole = self._whole.blank()
        made._fields = {field: values.blank() for field, values in self._fields.items()}
        return made

    def add(self, payloads: Sequence[Any]) -> None:
        """Add the payloads of the next rows; None for a row without one."""
        found: dict[str, tuple[list[int], list[Any]]] = {}
        whole: tuple[list[int], list[Any]] = [], []
        for row, payload in enumerate(payloads, self._rows):
            if isinstance(payload, dict):
                for field, value in payload.items():
                    if value is not None and (self._wanted is None or field in self._wanted):
                        rows, values = found.setdefault(field, ([], []))
                        rows.append(row)
                        values.append(value)
            elif payload is not None:
                whole[0].append(row)
                whole[1].append(payload)
        for field, (rows, values) in found.items():
            self._values_of(field).add(rows, values)
        if self._keeps_whole:
            self._whole.add(*whole)
        self._rows += len(payloads)

    def _values_of(self, field: str) -> _Values:
        if field not in self._fields and len(self._fields) == FIELDS_MAX:
            raise ArgumentError(
                f"payloads with more than {FIELDS_MAX:,} different fields",
                expected=f"at most {FIELDS_MAX:,}, one for each column",
                remedy='Name the columns that you need, as columns=["vector", "file"].',
            )
        return self._fields.setdefault(field, _Values(keep=self._keep))

    def columns(self) -> dict[str, Column]:
        """Return the columns by name: `payload` if there is one, then the fields as first seen."""
        found = {"payload": self._whole} if self._whole.kinds else {}
        found |= {title_of(field): values for field, values in self._fields.items()}
        return {title: values.column(self._rows) for title, values in found.items()}


class _Values:
    """The values of one field, in blocks of typed arrays, with the rows they belong to."""

    def __init__(self, kinds: Iterable[str] = (), *, keep: bool = True) -> None:
        self.kinds = set(kinds)
        self._keep = keep
        self._rows: list[Integers] = [np.empty(0, dtype=np.int64)]
        self._blocks: list[npt.NDArray[Any]] = []

    def blank(self) -> _Values:
        """Return no values, of the kinds of these."""
        return _Values(self.kinds)

    def add(self, rows: list[int], values: list[Any]) -> None:
        """Add values of the next rows."""
        if not rows:
            return
        kinds = {_kind(value) for value in values}
        self.kinds |= kinds
        if not self._keep:
            return
        dtype = _DTYPES.get(next(iter(kinds))) if len(kinds) == 1 else None
        block = objects(values) if dtype is None else np.array(values, dtype=dtype)
        self._blocks.append(block)
        self._rows.append(np.array(rows, dtype=np.int64))

    def column(self, n: int) -> Column:
        """Return the column of a table of n rows."""
        rows = np.concatenate(self._rows)
        values = self._typed()
        missing = np.ones(n, dtype=np.bool_)
        missing[rows] = False
        made = np.full(n, _NOTHING[values.dtype.kind], dtype=values.dtype)
        made[rows] = values
        return Column(made, missing if len(rows) < n and values.dtype != object else None)

    def _typed(self) -> npt.NDArray[Any]:
        """Return all values with one type: that of their kind, or text of JSON."""
        kinds = self.kinds
        if kinds <= {"whole", "exact", "number"}:
            if "number" not in kinds:
                return self._joined(np.int64)
            if "whole" not in kinds:
                return self._joined(np.float64)
        if len(kinds) == 1 and kinds <= {"yes or no", "text"}:
            return self._joined(np.bool_ if "yes or no" in kinds else np.object_)
        return objects([as_json(value) for block in self._blocks for value in block.tolist()])

    def _joined(self, dtype: Any) -> npt.NDArray[Any]:
        """Return all values as one array."""
        blocks = [block.astype(dtype, copy=False) for block in self._blocks]
        return np.concatenate([np.empty(0, dtype=dtype), *blocks])


# Blocks whose values all have one of these kinds are arrays of numbers. "exact" is a whole number
# that is exact as a float, "whole" another one that fits in 64 bits.
_DTYPES: dict[str, Any] = {
    "whole": np.int64,
    "exact": np.int64,
    "number": np.float64,
    "yes or no": np.bool_,
}
_NOTHING: dict[str, Any] = {"i": 0, "f": np.nan, "b": False, "O": None}


def _kind(value: Any) -> str:
    kind = type(value)
    if kind is int:
        if -_EXACT <= value <= _EXACT:
            return "exact"
        return "whole" if -(2**63) <= value < 2**63 else "other"
    return {str: "text", float: "number", bool: "yes or no"}.get(kind, "other")


def as_json(value: Any) -> str:
    """Return a value as text of JSON."""
    return json.dumps(value, ensure_ascii=False)
