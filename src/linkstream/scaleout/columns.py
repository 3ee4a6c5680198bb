"""Columns of a Spark frame: found as Spark finds them, and passed through workers unchanged.

Workers see rows through pandas. pandas has no null among whole numbers (it rounds them if there is
one), reads NaN as null, and knows the years from 1678 to 2262 only; PySpark changes names that are
no Python names. So columns go in under names of our own, without nulls in those types, beside one
column that tells where the nulls were: a text with "0" or "1" for each column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NULLS = "nulls"
_UNSAFE = (IntegralType, TimestampType, FloatType, DoubleType)

ColumnOrName = str | Column


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """One column of a frame.

    Attributes:
        column: how to select it.
        name: its name in Spark when it is selected.
        type: type of its values.
        origin: equal if the same column was found twice; only names can be compared.
    """

    column: Column = field(compare=False)
    name: str
    type: DataType
    origin: object


def find_column(frame: DataFrame, given: ColumnOrName) -> FoundColumn:
    """Find a column by name or by `Column`; raise ArgumentError if there is none.

    A name that the frame has may hold any characters. Other texts are read as Spark reads them: in
    another case, after the alias of a frame ("voices.key"), within a struct.
    """
    names = frame.columns
    if isinstance(given, str) and _is_the_only(given, names):
        return FoundColumn(_quoted(given), given, frame.schema[given].dataType, given)
    if not isinstance(given, Column) and not _may_exist(given, names):
        raise _no_column(given, names)
    if isinstance(given, Column):
        wanted: Column = given
    else:
        wanted = _quoted(given) if given in names else f.col(given)
    try:
        found = frame.select(wanted).schema.fields
    except AnalysisException as error:
        raise _no_column(given, names, error.getCondition()) from None
    if len(found) != 1:
        raise _no_column(given, names, f"it stands for {len(found)} columns")
    origin = object() if isinstance(given, Column) else given
    return FoundColumn(wanted, found[0].name, found[0].dataType, origin)


def find_columns(
    frame: DataFrame, given: ColumnOrName | Sequence[ColumnOrName]
) -> tuple[FoundColumn, ...]:
    """Find one column or several."""
    if isinstance(given, (str, Column)) or not isinstance(given, Iterable):
        return (find_column(frame, given),)
    return tuple(find_column(frame, each) for each in given)


def all_but(frame: DataFrame, found: FoundColumn) -> tuple[FoundColumn, ...]:
    """Find every column of a frame but one."""
    names = frame.drop(found.column).columns
    return find_columns(frame, [name for name in names if name != found.name])


def _quoted(name: str) -> Column:
    return f.col("`" + name.replace("`", "``") + "`")


def _is_the_only(given: str, names: Sequence[str]) -> bool:
    """Return whether a frame has a column of this name, and none that differs in case alone."""
    return given in names and [name.lower() for name in names].count(given.lower()) == 1


def _may_exist(given: object, names: Sequence[str]) -> bool:
    """Return whether to ask Spark, which logs a long stack trace for an unknown name."""
    if not isinstance(given, str):
        return False
    return "." in given or "`" in given or given.lower() in {name.lower() for name in names}


def _no_column(given: Any, names: Sequence[str], why: str | None = None) -> ArgumentError:
    return ArgumentError(
        f"a column {given!r}" + (f" ({why})" if why else ""),
        expected=f"one of {', '.join(names)}",
        remedy="Name columns of the frame, or pass Column objects of it, such as frame.camera.",
    )


def key_column(found: FoundColumn) -> Column:
    """Return a key column in a form for workers that is equal exactly if the keys are equal."""
    value, kind = found.column, found.type
    if isinstance(kind, TimestampType):
        value = f.unix_micros(value)
    return value.cast("string") if isinstance(kind, _UNSAFE) else value


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A column to sort by: its name in a worker, its name for the caller, the index of its flag."""

    column: str
    name: str
    flag: int


@dataclass(frozen=True, slots=True)
class WorkerColumns:
    """Columns of a frame that are passed to workers, each once."""

    columns: tuple[FoundColumn, ...]

    @classmethod
    def of(cls, found: Iterable[FoundColumn]) -> WorkerColumns:
        """Collect columns; one that occurs twice is passed once."""
        return cls(tuple(dict.fromkeys(found)))

    def _index(self, found: FoundColumn) -> int:
        return self.columns.index(found)

    def names(self, found: Iterable[FoundColumn]) -> tuple[str, ...]:
        """Return the names of columns in a worker, each once."""
        return tuple(f"column{self._index(each)}" for each in dict.fromkeys(found))

    def order(self, found: FoundColumn) -> OrderColumn:
        """Return a column to sort by."""
        (name,) = self.names([found])
        return OrderColumn(name, found.name, self._index(found))

    def encoded(self) -> list[Column]:
        """Return what a worker is given: the columns without nulls, and the flags of nulls."""
        given = [
            _without_nulls(each).alias(f"column{index}") for index, each in enumerate(self.columns)
        ]
        nulls = [each.column.isNull() for each in self.columns]
        flags = f.concat(*(f.when(null, "1").otherwise("0") for null in nulls), f.lit(""))
        return [*given, flags.alias(NULLS)]

    def schema(self, found: Iterable[FoundColumn]) -> StructType:
        """Return the schema of what a worker returns of columns, each once, and of the flags."""
        schema = StructType()
        for each in dict.fromkeys(found):
            schema = schema.add(f"column{self._index(each)}", _worker_type(each.type))
        return schema.add(NULLS, StringType())

    def decoded(self, found: FoundColumn) -> Column:
        """Return a column as it was, from what a worker returned."""
        index = self._index(found)
        kind, value = found.type, f.col(f"column{index}")
        if isinstance(kind, (FloatType, DoubleType)):
            value = f.coalesce(value, f.lit(math.nan).cast(kind))
        elif isinstance(kind, TimestampType):
            value = f.timestamp_micros(value)
        if isinstance(kind, _UNSAFE):
            value = f.when(f.substring(NULLS, index + 1, 1) == "0", value)
        return value.alias(found.name)


def _without_nulls(found: FoundColumn) -> Column:
    value, kind = found.column, found.type
    if isinstance(kind, TimestampType):
        value = f.unix_micros(value)
    if isinstance(kind, _UNSAFE):
        value = f.coalesce(value, f.lit(0).cast(_worker_type(kind)))
    return value


def _worker_type(kind: DataType) -> DataType:
    return LongType() if isinstance(kind, TimestampType) else kind
