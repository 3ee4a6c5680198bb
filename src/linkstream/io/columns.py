"""A first look at a file: its kind, its columns, what they may be, and the first rows."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from linkstream.engine import door
from linkstream.errors import LinkstreamError
from linkstream.io.arrow_files import (
    arrow,
    damaged,
    first_message,
    is_json,
    is_vectors,
    read_errors,
)
from linkstream.io.arrow_metadata import read_footer
from linkstream.io.bytestream import ByteStream
from linkstream.io.numpy_files import DEFAULT_KEY, read_array_names
from linkstream.io.opening import kind_of, open_regular, open_vectors
from linkstream.io.source import ALL, DEFAULT_COLUMNS, Block, moments
from linkstream.io.text_files import is_number, read_start
from linkstream.store.own_columns import check_key, microseconds

ROWS = 5  # rows that are shown
_NUMBERED = re.compile(r"(.+?)[_.]?\d+")
_KEYS = frozenset(("id", "key", "uuid", "ticket", "number"))
_TIMES = frozenset(("time", "timestamp", "date", "datetime", "created", "created_at", "at"))


@dataclass(slots=True)
class FileLook:
    """What a file holds, and which column is probably what.

    Attributes:
        kind: the kind of the file, such as "csv".
        columns: the names of its columns; of a .npz those of its arrays; numbered columns of one
            vector are one name.
        vectors: the columns that may hold the vectors.
        others: the columns that may be keys, times or payload.
        column: the column of the vectors that the rows were read with; None for a single array.
        id_column, time_column: columns that look like keys and times; None if none does.
        rows: the payloads of the first rows, with all columns but that of the vectors.
        sample: the vectors of the first rows.
        n: number of rows, or None if it is not known without reading the file.
        dimension: numbers in a vector, or None if no row could be read.
        error: why no row could be read, or None.
    """

    kind: str
    columns: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    column: str | None = None
    id_column: str | None = None
    time_column: str | None = None
    rows: list[Any] = field(default_factory=list)
    sample: list[list[float]] = field(default_factory=list)
    n: int | None = None
    dimension: int | None = None
    error: LinkstreamError | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `open_vectors` that read the vectors with all other columns."""
        if self.kind == "npz":
            return {"key": self.column}
        payload: Any = self.others
        if self.kind == "jsonl" and self.columns:
            payload = ALL
        return {"column": self.column, "payload": payload} if self.columns else {}

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON, without the error."""
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "error"
        }


def look_at(path: str | os.PathLike[str], column: str | None = None) -> FileLook:
    """Return what a file holds; reads its first rows only.

    Args:
        path: the file.
        column: the column of the vectors, or the array of a .npz; None (default) guesses.

    Raises:
        InputFileError: the file is of no kind that `open_vectors` reads, or its start is damaged.
    """
    path = Path(path)
    with open_regular(path) as file:
        look = _named(path, file)
    if look.columns:
        look.column = column or next(iter(look.vectors), None)
        look.others = [name for name in look.others if name != look.column]
    try:
        _read_start(path, look)
    except LinkstreamError as error:
        look.error = error
    return look


def _named(path: Path, file: IO[bytes]) -> FileLook:
    """Return the columns of a file."""
    look = FileLook(kind_of(path, file))
    if look.kind == "npz":
        look.columns = look.others = read_array_names(str(path), file)
        look.vectors = sorted(look.columns, key=lambda name: name != DEFAULT_KEY)
    elif look.kind in ("parquet", "arrow"):
        schema = _schema(path, file, look.kind)
        look.columns = list(schema.names)
        look.vectors = sorted((each.name for each in schema if is_vectors(each.type)), key=_usual)
        look.others = [each.name for each in schema if is_json(each.type)]
    elif look.kind in ("csv", "jsonl"):
        size = os.fstat(file.fileno()).st_size
        _name_texts(look, read_start(ByteStream(str(path), file, size=size), look.kind))
    return look


def _schema(path: Path, file: IO[bytes], kind: str) -> Any:
    try:
        if kind == "parquet":
            read_footer(str(path), file, "")  # before pyarrow reads it
            return arrow("pyarrow.parquet").read_schema(path)
        with arrow().memory_map(str(path)) as mapped:
            mapped.seek(first_message(str(path), mapped))
            return arrow("pyarrow.ipc").open_stream(mapped).schema
    except read_errors() as error:
        raise damaged(str(path), error) from None


def _name_texts(look: FileLook, start: dict[str, Any]) -> None:
    """Note the columns of a text, by its first row."""
    stems = _stems(list(start)) if look.kind == "csv" else {}
    arrays = [name for name, cell in start.items() if _is_array(cell)]
    look.columns = list(dict.fromkeys(stems.get(name, name) for name in start))
    look.vectors = sorted({*arrays, *stems.values()}, key=lambda name: (_usual(name), name))
    look.others = [name for name in look.columns if name not in stems.values()]
    if look.kind == "csv" and not look.vectors:  # each number has a column with a name of its own
        look.others = [name for name in look.columns if not is_number(start[name])]


def _is_array(cell: Any) -> bool:
    return isinstance(cell, list) or (isinstance(cell, str) and cell.lstrip().startswith("["))


def _stems(names: list[str]) -> dict[str, str]:
    """Return for each numbered column the name that all columns of its vector begin with."""
    found = {name: match[1] for name in names if (match := _NUMBERED.fullmatch(name))}
    counts = Counter(found.values())
    return {name: stem for name, stem in found.items() if counts[stem] > 1 and stem not in names}


def _usual(name: str) -> int:
    return DEFAULT_COLUMNS.index(name) if name in DEFAULT_COLUMNS else len(DEFAULT_COLUMNS)


def _read_start(path: Path, look: FileLook) -> None:
    """Read the first rows, and find keys and times among their columns."""
    with open_vectors(path, block=ROWS, bad_row=lambda _: None, **look.options) as source:
        look.n, look.dimension = source.n, source.dimension
        block = next(iter(source), None)
    if block is not None:
        good = door.have_direction(block.vectors)
        look.sample = block.vectors[good].astype(np.float32).tolist()
    if block is None or block.payloads is None:
        return
    look.rows = list(block.payloads)
    look.id_column = next((name for name in look.others if _is_key(name, look.rows)), None)
    look.time_column = next((name for name in look.others if _is_time(name, block)), None)


def _is_key(name: str, rows: list[Any]) -> bool:
    values = [row.get(name) for row in rows]
    if name.lower() not in _KEYS or None in values or len({*map(str, values)}) < len(values):
        return False
    try:
        return all(check_key(str(value)) for value in values)
    except LinkstreamError:
        return False


def _is_time(name: str, block: Block) -> bool:
    values = [row.get(name) for row in block.payloads or ()]
    if name.lower() not in _TIMES or None in values:
        return False
    try:
        return all(microseconds(value) is not None for value in moments(values))
    except LinkstreamError:
        return False
