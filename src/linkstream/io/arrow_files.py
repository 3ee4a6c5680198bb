"""`.parquet`, `.arrow` and `.feather`, read by pyarrow in batches.

A column of vectors is a column of lists of numbers, all of one length and none missing. pyarrow is
given a file only after `arrow_metadata` has compared what the file declares with its bytes.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from linkstream.engine.fixed_point import DIMENSION_MAX
from linkstream.errors import InputFileError
from linkstream.io.arrow_metadata import FILE_MAGIC, FILE_START, RowGroup, count_rows, read_footer
from linkstream.io.source import (
    ALL,
    BLOCK_BYTES,
    SAVE_AGAIN,
    ReadOptions,
    Rows,
    Source,
    Vectors,
    default_column,
    file_error,
    first_line,
    import_extra,
    quoted,
)
from linkstream.store import JsonLines, arrow_columns

_BUFFER = 2**20

# pyarrow is not typed; its objects are Any throughout.
RecordBatch = Any
PAYLOAD = "payload"
ROLES = {PAYLOAD: "texts", "weight": "float64", "at": "int64", "id": "texts"}  # and their types
Array = Any
Schema = Any


def arrow(module: str = "pyarrow") -> Any:
    """Import a module of pyarrow."""
    return import_extra(module, extra="files", purpose="A Parquet or Arrow file")


def read_errors() -> tuple[type[BaseException], ...]:
    """Return the exceptions that pyarrow raises on a damaged or hostile file."""
    kinds = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, RuntimeError)
    return (arrow().ArrowException, OSError, EOFError, struct.error, *kinds)


def damaged(name: str, error: BaseException) -> InputFileError:
    """Return the error for an exception of pyarrow; an InputFileError is returned unchanged."""
    if isinstance(error, InputFileError):
        return error
    return file_error(f"{name} cannot be read ({first_line(error)})", "a sound file", SAVE_AGAIN)


def open_parquet(path: Path, file: IO[bytes], options: ReadOptions) -> Source:
    """Open a Parquet file; row groups that are skipped are not read."""
    name = str(path)
    options.refuse(name, "key")
    pq = arrow("pyarrow.parquet")
    read_footer(name, file, "")  # before pyarrow reads it
    try:
        parquet = pq.ParquetFile(
            path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
        )
        schema = parquet.schema_arrow
    except read_errors() as error:
        raise damaged(name, error) from None
    try:
        columns = choose_columns(name, schema, options)
        groups = read_footer(name, file, columns[0])
        read = {
            "batch_size": _rows_of_batch(name, groups, options),
            "columns": [columns[0], *columns[1]],
            "use_threads": False,
        }
        seek = partial(_seek, parquet, groups, read)
        reader = _BatchReader(seek(0)[0], columns, seek)
        n = sum(group.rows for group in groups)
        source = _batch_source(name, options, reader, "parquet", n)
        source.resources.callback(parquet.close)
        return source
    except BaseException:
        parquet.close()
        raise


def _rows_of_batch(name: str, groups: list[RowGroup], options: ReadOptions) -> int:
    """Return the rows of a batch, by the longest vectors that a row group has on average."""
    longest = max((-(-group.values // max(1, group.rows)) for group in groups), default=1)
    if longest > DIMENSION_MAX:
        raise file_error(
            f"{name} has vectors of dimension {longest}",
            f"a dimension from 1 to {DIMENSION_MAX}",
            "Choose another column.",
        )
    return max(1, min(options.block, BLOCK_BYTES // (8 * max(1, longest))))


def _seek(
    parquet: Any, groups: list[RowGroup], options: dict[str, Any], row: int
) -> tuple[Iterator[RecordBatch], int]:
    """Return the batches from the row group of a row on, and the first row of that group."""
    start = group = 0
    while group < len(groups) and start + groups[group].rows <= row:
        start += groups[group].rows
        group += 1
    return parquet.iter_batches(row_groups=list(range(group, len(groups))), **options), start


def open_ipc(name: str, options: ReadOptions, body: bytes | None = None) -> Source:
    """Open an Arrow file or stream, by its path or from memory; skipped rows are read."""
    pa = arrow()
    try:
        mapped = pa.memory_map(name) if body is None else pa.BufferReader(body)
    except read_errors() as error:
        raise damaged(name, error) from None
    try:
        options.refuse(name, "key")
        try:
            start = first_message(name, mapped)
            n = count_rows(name, mapped, start, arrow("pyarrow.ipc"))
            reader = _ipc_batches(name, mapped, start, options)
        except read_errors() as error:
            raise damaged(name, error) from None
        source = _batch_source(name, options, reader, "arrow", n)
        source.resources.callback(mapped.close)
        return source
    except BaseException:
        mapped.close()
        raise


def first_message(name: str, mapped: Any) -> int:
    """Return the offset of the first message; raise InputFileError if a file has no end."""
    size = mapped.size()
    if mapped.read(len(FILE_MAGIC)) != FILE_MAGIC:
        return 0
    mapped.seek(max(0, size - len(FILE_MAGIC)))
    if size < 2 * FILE_START or mapped.read(len(FILE_MAGIC)) != FILE_MAGIC:
        raise file_error(f"{name} has no end", "a complete Arrow file", SAVE_AGAIN)
    return FILE_START


def _ipc_batches(name: str, mapped: Any, start: int, options: ReadOptions) -> _BatchReader:
    ipc = arrow("pyarrow.ipc")
    mapped.seek(start)
    schema = ipc.open_stream(mapped).schema
    roles = roles_of(name, schema) if options.payload == (ALL,) else {}
    columns = choose_columns(name, schema, options, without=tuple(roles.values()))
    wanted = (columns[0], *columns[1], *roles.values())
    fields = [schema.get_field_index(column) for column in wanted]
    read = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    mapped.seek(start)
    return _BatchReader(iter(ipc.open_stream(mapped, options=read)), columns, roles=roles)


def roles_of(name: str, schema: Schema) -> dict[str, str]:
    """Return the columns that a client of linkstream marked in their metadata, by role.

    A column marked `payload` holds the payloads as JSON texts; no other column is payload then.
    """
    found = {}
    for field in schema:
        role = (field.metadata or {}).get(b"linkstream", b"").decode("ascii", "replace")
        if role in ROLES:
            if role in found or not _fits_role(role, field.type):
                raise file_error(
                    f"column {field.name!r:.40} of {name}, marked {role!r}, is of {field.type}",
                    f"one column of {ROLES[role]}",
                    "Send the columns that the client of this version sends.",
                )
            found[role] = field.name
    return found


def _fits_role(role: str, type_: Any) -> bool:
    types = arrow("pyarrow.types")
    kinds = {"texts": types.is_large_string, "float64": types.is_float64, "int64": types.is_int64}
    return bool(kinds[ROLES[role]](type_))


def choose_columns(
    name: str, schema: Schema, options: ReadOptions, without: tuple[str, ...] = ()
) -> tuple[str, list[str]]:
    """Return the column of the vectors, and those of the payload."""
    names = list(schema.names)
    vectors = [field.name for field in schema if is_vectors(field.type)]
    seen = f"{name} has {len(vectors)} columns of lists of numbers"
    remedy = "Give the name of the vectors as column."
    column = options.column or default_column(names, vectors, seen, remedy)
    asked = options.payload_names(names, column, *without)
    for each in (column, *asked):
        if names.count(each) != 1 or (each == column and each in asked):
            raise file_error(
                f"no single column {each!r} in {name}",
                f"one of its columns: {quoted(names)}",
                "Check the name.",
            )
    if not is_vectors(schema.field(column).type):
        raise file_error(
            f"column {column!r} of {name} is of {schema.field(column).type}",
            "lists of numbers",
            "Choose another column.",
        )
    for each in asked:
        if not is_json(schema.field(each).type):
            raise file_error(
                f"column {each!r} of {name} is of {schema.field(each).type}",
                "types that JSON has: texts, numbers, times, lists",
                "Leave it out of the payload.",
            )
    return column, asked


def is_vectors(type_: Any) -> bool:
    """Return whether a type is lists of numbers."""
    types = arrow("pyarrow.types")
    if not (types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)):
        return False
    inner = type_.value_type
    return bool(types.is_floating(inner) or types.is_integer(inner))


def is_json(type_: Any) -> bool:
    """Return whether JSON has a type, or it becomes a text."""
    types = arrow("pyarrow.types")
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return _is_json_within(type_.value_type)
    if types.is_dictionary(type_):
        return is_json(type_.value_type) and not types.is_nested(type_.value_type)
    if types.is_struct(type_):
        inner = [type_.field(index).type for index in range(type_.num_fields)]
        return all(map(_is_json_within, inner))
    plain = (types.is_null, types.is_boolean, types.is_integer, types.is_floating)
    texts = (types.is_string, types.is_large_string)
    return any(is_kind(type_) for is_kind in (*plain, *texts)) or _becomes_text(type_)


def _is_json_within(type_: Any) -> bool:
    """Return whether JSON has a nested type; dictionaries could unpack to gigabytes."""
    dictionary = arrow("pyarrow.types").is_dictionary(type_)
    return is_json(type_) and not _becomes_text(type_) and not dictionary


def _becomes_text(type_: Any) -> bool:
    """Return whether values become texts: JSON has no times and no decimal numbers."""
    types = arrow("pyarrow.types")
    return bool(types.is_temporal(type_) or types.is_decimal(type_))


def _batch_source(
    name: str, options: ReadOptions, reader: _BatchReader, kind: str, n: int
) -> Source:
    source = Source(
        name, options, reader, kind=kind, n=n, payload_columns=len(reader.payload_columns)
    )
    reader.read_dimension(source)
    return source


class _BatchReader:
    """Reads rows from batches of pyarrow.

    `seek` returns the batches from a row on, and the row that the first of them begins with; it is
    None if skipped rows have to be read.
    """

    def __init__(
        self,
        batches: Iterator[RecordBatch],
        columns: tuple[str, list[str]],
        seek: Callable[[int], tuple[Iterator[RecordBatch], int]] | None = None,
        roles: dict[str, str] | None = None,
    ) -> None:
        self._roles = roles or {}
        self._column, self.payload_columns = columns
        self._batches = batches
        self._seek = seek
        self._batch: RecordBatch = None
        self._next = 0  # row of the batch
        self._row = 0  # row of the file that the next rows begin with, if wrong ones are left out

    def read_dimension(self, source: Source) -> None:
        """Set the dimension of the source to that of the first row."""
        if source.n and self._load(source.name):
            column = self._batch.column(self._column)
            if source.options.bad_row is not None:
                column = column.drop_null()
            first = column.slice(self._next, 1)
            if first.null_count or not len(first):
                raise _missing(source.name, 0)
            source.set_dimension(len(first[0]), f"{source.name}, row {source.row} has a vector")

    def skip(self, source: Source, rows: int) -> int:
        if self._seek is None:
            return self._drop(source.name, rows)
        target = source.row + rows
        try:
            self._batches, start = self._seek(target)
        except read_errors() as error:
            raise damaged(source.name, error) from None
        self._batch = None
        return self._drop(source.name, target - start) + start - source.row

    def _drop(self, name: str, rows: int) -> int:
        left = rows
        while left and self._load(name):
            count = min(left, self._batch.num_rows - self._next)
            self._next += count
            left -= count
        return rows - left

    def _load(self, name: str) -> bool:
        """Load the next batch if the current one is used up; return False at the end."""
        while self._batch is None or self._next >= self._batch.num_rows:
            try:
                self._batch = next(self._batches, None)
                if self._batch is not None:
                    self._batch.validate(full=True)
            except read_errors() as error:
                raise damaged(name, error) from None
            self._next = 0
            if self._batch is None:
                return False
        return True

    def take(self, source: Source, rows: int) -> Rows:
        pieces: list[Vectors] = []
        lines: list[bytes] = []
        done = 0
        source.places = None if source.options.bad_row is None else []
        while done < rows and self._load(source.name):
            count = min(rows - done, self._batch.num_rows - self._next)
            part = self._batch.slice(self._next, count)
            self._next += count
            if source.options.bad_row is not None:
                part = self._good(source, part)
                rows -= count - part.num_rows
            if part.num_rows:
                pieces.append(_vectors(source, part.column(self._column), source.row + done))
                lines += self._lines(source, part)
                done += part.num_rows
        if done < rows:
            raise file_error(
                f"{source.name} ends after {source.row + done} rows", f"{source.n}", SAVE_AGAIN
            )
        if not pieces:
            return np.empty((0, source.dimension or 0)), None
        vectors = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return vectors, JsonLines.of(lines) if lines else None

    def _good(self, source: Source, part: RecordBatch) -> RecordBatch:
        """Return the rows whose vectors can be read; note the others and take them off `n`."""
        assert isinstance(source.places, list)
        column = part.column(self._column)
        first, self._row = self._row, self._row + part.num_rows
        with contextlib.suppress(InputFileError):
            _vectors(source, column, first)
            source.places += range(first, self._row)
            return part
        good = []
        for row in range(part.num_rows):
            try:
                _vectors(source, column.slice(row, 1), first + row)
            except InputFileError as error:  # noqa: PERF203
                assert source.options.bad_row is not None
                source.options.bad_row(error)
            else:
                good.append(row)
        source.places += [first + row for row in good]
        if source.n is not None:
            source.n -= part.num_rows - len(good)
        return part.take(arrow().array(good, arrow().int64()))

    def _lines(self, source: Source, part: RecordBatch) -> list[bytes]:
        """Return the payloads as lines of JSON; note the columns that a client marked."""
        try:
            for role in self._roles.keys() - {PAYLOAD}:
                values = part.column(self._roles[role]).to_pylist()
                source.roles.setdefault(role, []).extend(values)
            if PAYLOAD in self._roles:
                texts = part.column(self._roles[PAYLOAD]).cast(arrow().large_binary()).to_pylist()
                return [text or b"" for text in texts]
            for name, column in source.options.own.items():
                source.own.setdefault(name, []).extend(_own_values(name, part.column(column)))
            wanted = [name for name in self.payload_columns if name not in source.options.hidden]
            return arrow_columns.lines(part.select(wanted)) if wanted else []
        except read_errors() as error:
            raise damaged(source.name, error) from None


def _own_values(name: str, column: Array) -> list[Any]:
    """Return keys, or times: those of a column of times as datetime64 in UTC."""
    pa, types = arrow(), arrow("pyarrow.types")
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if name == "at" and (types.is_timestamp(column.type) or types.is_date(column.type)):
        whole = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_pylist()
        return [None if each is None else np.datetime64(each, "us") for each in whole]
    values: list[Any] = column.to_pylist()
    return values


def _vectors(source: Source, column: Array, row: int) -> Vectors:
    """Return a column of lists as a table of numbers; `row` is the number of its first row."""
    if column.null_count:
        holes = column.is_null().to_numpy(zero_copy_only=False)
        raise _missing(source.name, row + int(np.argmax(holes)))
    lengths = _lengths(column)
    uneven = lengths != (source.dimension or lengths[0])
    if uneven.any():
        first = int(np.argmax(uneven))
        where = f"{source.name}, row {row + first} has a vector"
        source.set_dimension(int(lengths[first]), where)
    values = column.flatten()
    if values.null_count:
        holes = values.is_null().to_numpy(zero_copy_only=False)
        raise _missing(source.name, row + int(np.argmax(holes)) // max(1, int(lengths[0])))
    numbers: Vectors = values.to_numpy(zero_copy_only=False)
    return numbers.reshape(len(lengths), -1)


def _missing(name: str, row: int) -> InputFileError:
    return file_error(
        f"{name}, row {row}: the vector, or a number of it, is missing",
        "every number of every vector",
        "Drop such rows.",
    )


def _lengths(column: Array) -> Vectors:
    if arrow("pyarrow.types").is_fixed_size_list(column.type):
        return np.full(len(column), column.type.list_size)
    return np.asarray(np.diff(column.offsets.to_numpy(zero_copy_only=False)))
