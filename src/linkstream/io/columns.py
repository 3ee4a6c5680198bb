"""Columns of Arrow: which of them are the vectors, and how they become rows of numbers.

What `.parquet` and `.arrow` have in common. A column of vectors is one of lists of numbers, all
of one length and none missing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from linkstream.errors import InputFileError
from linkstream.io.faults import SAVE_AGAIN, extra_module, fault, reason
from linkstream.io.source import ALL, DEFAULT_COLUMNS, Payloads, Source, Vectors, Wanted

# pyarrow is not typed; its objects are Any throughout.
RecordBatch = Any
Array = Any
Schema = Any


def arrow(module: str = "pyarrow") -> Any:
    """A module of pyarrow, taken up when it is needed."""
    return extra_module(module, extra="files", purpose="A Parquet or Arrow file")


def damage() -> tuple[type[BaseException], ...]:
    """What pyarrow raises on a file that is damaged or made up."""
    kinds = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, RuntimeError)
    return (arrow().ArrowException, OSError, EOFError, struct.error, *kinds)


def damaged(name: str, error: BaseException) -> InputFileError:
    """The error for what pyarrow said; one of ours stays as it is."""
    if isinstance(error, InputFileError):
        return error
    return fault(f"{name} cannot be read ({reason(error)})", "a sound file", SAVE_AGAIN)


def chosen_columns(name: str, schema: Schema, wanted: Wanted) -> tuple[str, list[str]]:
    """The column of the vectors, and those of the payload."""
    names = list(schema.names)
    column = wanted.column or _usual_column(name, schema)
    rest = [each for each in names if each != column]
    asked = rest if wanted.payload == (ALL,) else list(wanted.payload)
    for each in (column, *asked):
        if names.count(each) != 1 or (each == column and each in asked):
            shown = ", ".join(repr(each[:40]) for each in names[:10])
            raise fault(
                f"no single column {each!r} in {name}", f"one of its columns: {shown}", "Check it."
            )
    if not _is_vectors(schema.field(column).type):
        raise fault(
            f"column {column!r} of {name} is of {schema.field(column).type}",
            "lists of numbers",
            "Choose another column.",
        )
    for each in asked:
        if not _is_json(schema.field(each).type):
            raise fault(
                f"column {each!r} of {name} is of {schema.field(each).type}",
                "what JSON can say: texts, numbers, times, lists",
                "Leave it out of the payload.",
            )
    return column, asked


def _usual_column(name: str, schema: Schema) -> str:
    usual = [each for each in DEFAULT_COLUMNS if each in schema.names]
    lists = [field.name for field in schema if _is_vectors(field.type)]
    if usual or len(lists) == 1:
        return str((usual or lists)[0])
    raise fault(
        f"{name} has {len(lists)} columns of lists of numbers",
        f"one, or a column {' or '.join(map(repr, DEFAULT_COLUMNS))}",
        "Give the name of the vectors as column.",
    )


def _is_vectors(type_: Any) -> bool:
    types = arrow("pyarrow.types")
    if not (types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)):
        return False
    inner = type_.value_type
    return bool(types.is_floating(inner) or types.is_integer(inner))


def _is_json(type_: Any) -> bool:
    types = arrow("pyarrow.types")
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return _is_json_within(type_.value_type)
    if types.is_dictionary(type_):
        return _is_json(type_.value_type) and not types.is_nested(type_.value_type)
    if types.is_struct(type_):
        inner = [type_.field(place).type for place in range(type_.num_fields)]
        return all(map(_is_json_within, inner))
    plain = (types.is_null, types.is_boolean, types.is_integer, types.is_floating)
    texts = (types.is_string, types.is_large_string)
    return any(is_kind(type_) for is_kind in (*plain, *texts)) or _is_told(type_)


def _is_json_within(type_: Any) -> bool:
    """The same within another value; but no dictionary, of which bytes can become gigabytes."""
    dictionary = arrow("pyarrow.types").is_dictionary(type_)
    return _is_json(type_) and not _is_told(type_) and not dictionary


def _is_told(type_: Any) -> bool:
    """Whether values become texts: times and decimal numbers, which JSON does not have."""
    types = arrow("pyarrow.types")
    return bool(types.is_temporal(type_) or types.is_decimal(type_))


class BatchSource(Source):
    """Rows of batches, as pyarrow gives them; each batch is turned into rows as it is needed."""

    def __init__(
        self, name: str, wanted: Wanted, *, kind: str, n: int, columns: tuple[str, list[str]]
    ) -> None:
        wanted.refuse(name, "key")
        super().__init__(name, wanted, kind=kind, n=n, dimension=None)
        self._column, self._payload = columns
        self._batches: Iterator[RecordBatch] = iter(())
        self._batch: RecordBatch = None
        self._place = 0  # next row of the batch

    @property
    def payload_columns(self) -> int:
        """How many columns make the payload of a row."""
        return len(self._payload)

    def _pass_over(self, rows: int) -> int:
        return self._drop(rows)

    def _drop(self, rows: int) -> int:
        """Read over rows; how many there were."""
        left = rows
        while left and self._load():
            count = min(left, self._batch.num_rows - self._place)
            self._place += count
            left -= count
        return rows - left

    def _begin(self) -> None:
        """The dimension is that of the first row."""
        if self.n and self._load():
            first = self._batch.column(self._column).slice(self._place, 1)
            if first.null_count:
                raise self._hole(0)
            self._settle_dimension(len(first[0]), f"{self.name}, row {self.row} has a vector")

    def _load(self) -> bool:
        """Have rows at hand, unless there are none left."""
        while self._batch is None or self._place >= self._batch.num_rows:
            try:
                self._batch = next(self._batches, None)
                if self._batch is not None:
                    self._batch.validate(full=True)
            except damage() as error:
                raise damaged(self.name, error) from None
            self._place = 0
            if self._batch is None:
                return False
        return True

    def _take(self, rows: int) -> tuple[Vectors, Payloads | None]:
        pieces: list[Vectors] = []
        payloads: Payloads = []
        done = 0
        while done < rows and self._load():
            count = min(rows - done, self._batch.num_rows - self._place)
            part = self._batch.slice(self._place, count)
            pieces.append(self._vectors(part.column(self._column), self.row + done))
            if self._payload:
                payloads += self._payloads(part)
            self._place += count
            done += count
        if done < rows:
            raise fault(f"{self.name} ends after {self.row + done} rows", f"{self.n}", SAVE_AGAIN)
        vectors = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return vectors, payloads if self._wanted.payload else None

    def _vectors(self, column: Array, row: int) -> Vectors:
        if column.null_count:
            raise self._hole(row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))))
        lengths = _lengths(column)
        uneven = lengths != (self.dimension or lengths[0])
        if uneven.any():
            place = int(np.argmax(uneven))
            where = f"{self.name}, row {row + place} has a vector"
            self._settle_dimension(int(lengths[place]), where)
        values = column.flatten()
        if values.null_count:
            holes = values.is_null().to_numpy(zero_copy_only=False)
            raise self._hole(row + int(np.argmax(holes)) // max(1, int(lengths[0])))
        numbers: Vectors = values.to_numpy(zero_copy_only=False)
        return numbers.reshape(len(lengths), -1)

    def _hole(self, row: int) -> InputFileError:
        return fault(
            f"{self.name}, row {row}: the vector, or a number of it, is missing",
            "every number of every vector",
            "Drop such rows.",
        )

    def _payloads(self, part: RecordBatch) -> Payloads:
        try:
            columns = [_values(part.column(name)) for name in self._payload]
        except damage() as error:
            raise damaged(self.name, error) from None
        return [dict(zip(self._payload, row, strict=True)) for row in zip(*columns, strict=True)]


def _lengths(column: Array) -> Vectors:
    if arrow("pyarrow.types").is_fixed_size_list(column.type):
        return np.full(len(column), column.type.list_size)
    lengths: Vectors = np.diff(column.offsets.to_numpy(zero_copy_only=False))
    return lengths


def _values(column: Array) -> list[Any]:
    if arrow("pyarrow.types").is_dictionary(column.type):
        # One object for each value, however often it is pointed at.
        values = _values(column.dictionary)
        return [None if place is None else values[place] for place in column.indices.to_pylist()]
    if _is_told(column.type):
        column = column.cast(arrow().string())
    return [_without_nan(value) for value in column.to_pylist()]


def _without_nan(value: Any) -> Any:
    """NaN is how tables say that nothing is there; JSON says null."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isinf(value):
            raise ValueError("an infinite number in the payload")
        return None
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    return value
