"""Columns that come out of a worker as they went in.

Workers see rows through pandas, which has no null among whole numbers (it rounds them, where there
is one), takes NaN for null, and knows the years from 1678 to 2262; and PySpark changes names that
are no Python names. So columns go in under names of ours, those types without nulls, and beside
them one column that says where nulls were: a text, "0" or "1" for each column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

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

from linkstream.scaleout.chosen import Chosen

NULLS = "nulls"
_UNSAFE = (IntegralType, TimestampType, FloatType, DoubleType)


def key_column(chosen: Chosen) -> Column:
    """A column of the key as a worker is given it: equal where the key is, and only there."""
    value, kind = chosen.column, chosen.type
    if isinstance(kind, TimestampType):
        value = f.unix_micros(value)
    return value.cast("string") if isinstance(kind, _UNSAFE) else value


@dataclass(frozen=True, slots=True)
class Order:
    """A column that says which row comes first: in a worker, to the caller, among the flags."""

    column: str
    name: str
    place: int


@dataclass(frozen=True, slots=True)
class Carried:
    """Columns of a frame that workers are given, each once."""

    columns: tuple[Chosen, ...]

    @classmethod
    def of(cls, chosen: Iterable[Chosen]) -> Carried:
        """These columns of a frame."""
        return cls(tuple(dict.fromkeys(chosen)))

    def place(self, chosen: Chosen) -> int:
        """Where the flag of a column is in the column of nulls."""
        return self.columns.index(chosen)

    def inner(self, chosen: Iterable[Chosen]) -> tuple[str, ...]:
        """What columns are called in a worker, each once."""
        return tuple(f"column{self.place(each)}" for each in dict.fromkeys(chosen))

    def order(self, chosen: Chosen) -> Order:
        """A column that says which row comes first."""
        (inner,) = self.inner([chosen])
        return Order(inner, chosen.name, self.place(chosen))

    def there(self) -> list[Column]:
        """What a worker is given: the columns, and where they are null."""
        given = [
            _without_nulls(each).alias(f"column{place}") for place, each in enumerate(self.columns)
        ]
        nulls = [each.column.isNull() for each in self.columns]
        flags = f.concat(*(f.when(null, "1").otherwise("0") for null in nulls), f.lit(""))
        return [*given, flags.alias(NULLS)]

    def schema(self, chosen: Iterable[Chosen]) -> StructType:
        """What a worker gives back of these columns, each once, and the flags."""
        schema = StructType()
        for each in dict.fromkeys(chosen):
            schema = schema.add(f"column{self.place(each)}", _inner_type(each.type))
        return schema.add(NULLS, StringType())

    def back(self, chosen: Chosen) -> Column:
        """A column as it was, from what a worker gave back."""
        place = self.place(chosen)
        kind, value = chosen.type, f.col(f"column{place}")
        if isinstance(kind, (FloatType, DoubleType)):
            value = f.coalesce(value, f.lit(math.nan).cast(kind))
        elif isinstance(kind, TimestampType):
            value = f.timestamp_micros(value)
        if isinstance(kind, _UNSAFE):
            value = f.when(f.substring(NULLS, place + 1, 1) == "0", value)
        return value.alias(chosen.name)


def _without_nulls(chosen: Chosen) -> Column:
    value, kind = chosen.column, chosen.type
    if isinstance(kind, TimestampType):
        value = f.unix_micros(value)
    if isinstance(kind, _UNSAFE):
        value = f.coalesce(value, f.lit(0).cast(_inner_type(kind)))
    return value


def _inner_type(kind: DataType) -> DataType:
    return LongType() if isinstance(kind, TimestampType) else kind
