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
    StructField,
    StructType,
    TimestampType,
)

NULLS = "nulls"
_UNSAFE = (IntegralType, TimestampType, FloatType, DoubleType)


def column(name: str) -> Column:
    """The column of this name, whatever characters it has."""
    return f.col("`" + name.replace("`", "``") + "`")


def key_column(field: StructField) -> Column:
    """A column of the key as a worker is given it: equal where the key is, and only there."""
    value, kind = column(field.name), field.dataType
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

    fields: tuple[StructField, ...]

    @classmethod
    def of(cls, schema: StructType, names: Iterable[str]) -> Carried:
        """These columns of a frame."""
        return cls(tuple(schema[name] for name in dict.fromkeys(names)))

    def place(self, name: str) -> int:
        """Where the flag of a column is in the column of nulls."""
        return [field.name for field in self.fields].index(name)

    def inner(self, names: Iterable[str]) -> tuple[str, ...]:
        """What columns are called in a worker."""
        return tuple(f"column{self.place(name)}" for name in names)

    def order(self, name: str) -> Order:
        """A column that says which row comes first."""
        (inner,) = self.inner([name])
        return Order(inner, name, self.place(name))

    def there(self) -> list[Column]:
        """What a worker is given: the columns, and where they are null."""
        given = [
            _without_nulls(field).alias(f"column{place}") for place, field in enumerate(self.fields)
        ]
        nulls = [column(field.name).isNull() for field in self.fields]
        flags = f.concat(*(f.when(null, "1").otherwise("0") for null in nulls), f.lit(""))
        return [*given, flags.alias(NULLS)]

    def schema(self, names: Iterable[str]) -> StructType:
        """What a worker gives back of these columns, and the flags."""
        schema = StructType()
        for place in map(self.place, names):
            schema = schema.add(f"column{place}", _inner_type(self.fields[place].dataType))
        return schema.add(NULLS, StringType())

    def back(self, name: str) -> Column:
        """A column as it was, from what a worker gave back."""
        place = self.place(name)
        kind, value = self.fields[place].dataType, f.col(f"column{place}")
        if isinstance(kind, (FloatType, DoubleType)):
            value = f.coalesce(value, f.lit(math.nan).cast(kind))
        elif isinstance(kind, TimestampType):
            value = f.timestamp_micros(value)
        if isinstance(kind, _UNSAFE):
            value = f.when(f.substring(NULLS, place + 1, 1) == "0", value)
        return value.alias(name)


def _without_nulls(field: StructField) -> Column:
    value, kind = column(field.name), field.dataType
    if isinstance(kind, TimestampType):
        value = f.unix_micros(value)
    if isinstance(kind, _UNSAFE):
        value = f.coalesce(value, f.lit(0).cast(_inner_type(kind)))
    return value


def _inner_type(kind: DataType) -> DataType:
    return LongType() if isinstance(kind, TimestampType) else kind
