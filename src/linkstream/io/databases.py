"""Vectors in a database: addresses, sources, and writing cluster IDs back.

An address states where the vectors are: `postgresql://host/people?table=faces&order=id`,
`qdrant://host:6333/faces`. Passwords and keys stay in the address: the name of a source does not
contain them, and no error message repeats a text that could.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import IO, Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import numpy as np
import numpy.typing as npt

from linkstream.errors import InputFileError, LinkstreamError, NotTrackedError
from linkstream.io.source import Reader, ReadOptions, Source, Vectors, file_error, first_line

ROWS_PER_WRITE = 1000
REMOVED = -1  # label of a vector that was removed
MASK = "***"
EXAMPLES = (
    "postgresql://user@host:5432/people?table=faces&column=embedding&order=id, "
    "qdrant://host:6333/faces, or qdrant:///folder?collection=faces"
)

_ADDRESS = re.compile(r"(postgresql|postgres|qdrant):/", re.IGNORECASE)
_ANY_WITH_USER = re.compile(r"[a-z][a-z0-9+.-]*:/.*@", re.IGNORECASE | re.DOTALL)


def is_address(source: object) -> bool:
    """Return whether a text is the address of a database, well formed or not."""
    return isinstance(source, str) and _ADDRESS.match(source) is not None


def refuse_address(path: str | os.PathLike[str]) -> None:
    """Raise InputFileError if a path is an address; the message does not repeat the address."""
    text = os.fspath(path)
    if is_address(text) or _ANY_WITH_USER.match(text):
        raise file_error(
            "an address, where a file is read",
            f"the path of a file; or, for `linkstream cluster` and open_vectors, {EXAMPLES}",
            "Check it; open_vectors takes an address as a text, not as a path.",
        )


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address; its representation shows no secrets."""

    given: str = field(repr=False)  # without the words that linkstream reads
    parts: SplitResult = field(repr=False)
    options: dict[str, str]  # the words after the `?` that linkstream reads
    others: tuple[str, ...]  # names of all other words after the `?`

    @classmethod
    def parse(cls, text: str, *known: str) -> Address:
        """Parse an address; `known` are the words after the `?` that linkstream reads."""
        try:
            parts = urlsplit(text)
            pairs = [(*parse_qsl(one, True, True)[0], one) for one in parts.query.split("&") if one]
            parts.port  # noqa: B018 - a property that raises
        except (ValueError, IndexError):
            raise unreadable() from None
        # An @ after the host belongs to a password with a / or a ? in it.
        late = "@" in parts.path or any("@" in name for name, _, _ in pairs)
        if not text[len(parts.scheme) :].startswith("://") or parts.fragment or late:
            raise unreadable()
        names = [name for name, _, _ in pairs]
        twice = [name for name in known if names.count(name) > 1]
        if twice:
            raise file_error(
                f"an address with {twice[0]} twice", "each word once", "Leave one out."
            )
        query = "&".join(raw for name, _, raw in pairs if name not in known)
        given = f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")
        options = {name: value for name, value, _ in pairs if name in known}
        others = tuple(name for name in names if name not in known)
        return cls(given, parts, options, others)

    @property
    def host(self) -> str:
        """The host and the port, without the user."""
        return self.parts.netloc.rpartition("@")[2]

    @property
    def path(self) -> str:
        """The path after the host, unquoted."""
        return unquote(self.parts.path)

    def with_column(self, options: ReadOptions) -> ReadOptions:
        """Return the options of the caller with the column of the address."""
        options.refuse("a database", "key")
        given = self.options.get("column")
        if given and options.column and given != options.column:
            raise file_error(
                f"column {options.column!r}, and {given!r} in the address",
                "one of them",
                "Leave one out.",
            )
        return replace(options, column=given or options.column)

    def refuse_others(self, known: Container[str], database: str, expected: str, more: str) -> None:
        """Raise InputFileError if the address has a word that the database does not know."""
        for word in self.others:
            if word not in known:
                if not word.isidentifier():  # it may be a part of a password
                    raise unreadable()
                raise file_error(
                    f"{word!r} in an address of {database}", expected, f"Check its spelling{more}."
                )


def unreadable() -> InputFileError:
    """Return the error for an address that cannot be parsed; it may hold a password."""
    return file_error(
        "an address of a database that cannot be read",
        EXAMPLES,
        "Write odd characters of names and passwords as %XX: / is %2F, @ is %40.",
    )


def masked(text: str, secret: str | None) -> str:
    """Return the first line of a database's message, without the secret."""
    text = text.strip()
    return first_line(RuntimeError(text.replace(secret, MASK) if secret else text)).rstrip(".")


@contextmanager
def translated_errors(
    name: str,
    secret: str | None,
    kinds: tuple[type[BaseException], ...],
    *,
    expected: str,
    remedy: str,
    message: Callable[[BaseException], str] = str,
) -> Iterator[None]:
    """Raise exceptions of a database driver as InputFileError, without secrets."""
    try:
        yield
    except kinds as error:
        if isinstance(error, LinkstreamError):
            raise
        text = masked(message(error) or type(error).__name__, secret)
        raise file_error(f"{name}: {text}", expected, remedy) from None


class DatabaseReader(Reader, Protocol):
    """Reads the rows of a database and writes cluster IDs back."""

    def prepare(self, source: DatabaseSource, field: str) -> None:
        """Check or create the column or field of the IDs."""

    def write(self, source: DatabaseSource, keys: list[Any], labels: list[int]) -> None:
        """Write the IDs of some rows, all or none."""


class DatabaseSource(Source):
    """Rows of a database, in a stated order.

    `location` names the table or collection and the column, but not the host: one host may have
    several names.

    Attributes:
        reader: reads the rows and writes IDs back.
        field: column or field that IDs are written back to; None before `prepare`.
    """

    reader: DatabaseReader
    field: str | None = None
    _key_file: IO[str] | None = None

    def prepare(self, field: str) -> None:
        """Prepare to write IDs back. Call it before the first row is read.

        Args:
            field: name of the column or field for the IDs; it is created if it does not exist.

        Raises:
            InputFileError: the column or field exists and does not hold IDs.
        """
        self.reader.prepare(self, field)
        self.field = field
        # The keys of all rows, on disk: memory holds one block however many rows there are.
        self._key_file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - kept
        self.resources.callback(self._key_file.close)

    @property
    def is_prepared(self) -> bool:
        """Whether `prepare` was called."""
        return self._key_file is not None

    def note_keys(self, keys: Sequence[Any]) -> None:
        """Store the keys of rows that were read, as JSON, if IDs are to be written back."""
        if self._key_file is not None:
            self._key_file.writelines(json.dumps(key) + "\n" for key in keys)

    def write_back(self, labels: npt.NDArray[np.int64]) -> Iterator[int]:
        """Write the IDs of the rows that were read; yield how many are done after each thousand.

        Values that are already right are not written again.

        Args:
            labels: one ID for each row read; −1 removes the ID of a row.

        Raises:
            InputFileError: the database refused.
        """
        if self._key_file is None or len(labels) > self.row:
            raise NotTrackedError(
                f"{len(labels)} labels for {self.name}, of which {self.row} rows were read",
                expected="prepare(field), then reading, then a label for each row read",
                remedy="Call prepare before the first row is read.",
            )
        self._key_file.seek(0)
        done = 0
        while done < len(labels):
            some = labels[done : done + ROWS_PER_WRITE].tolist()
            keys = [json.loads(line) for line in islice(self._key_file, len(some))]
            self.reader.write(self, keys, some)
            done += len(some)
            yield done


def skip_by_reading(reader: Reader, source: Source, rows: int) -> int:
    """Skip rows by reading them; return how many there were."""
    done = 0
    while done < rows:
        some = len(reader.take(source, min(rows - done, source.rows_per_block()))[0])
        if not some:
            break
        done += some
    return done


def vectors_of(source: Source, rows: Sequence[Any]) -> Vectors:
    """Return rows of one length as a table of numbers; set the dimension of the source."""
    dimension = source.dimension or len(rows[0])
    for row, vector in enumerate(rows, start=source.row):
        if len(vector) != dimension:
            raise file_error(
                f"{source.name}, row {row} has a vector of dimension {len(vector)}",
                f"dimension {dimension}",
                "Correct the row, or choose another column.",
            )
    try:
        table = np.array(rows)
    except ValueError:
        table = np.empty((0, 0), dtype=object)
    if table.ndim != 2 or table.dtype.kind not in "fiu":
        raise file_error(
            f"{source.name}: rows from {source.row} on do not hold numbers alone",
            "one list of numbers a row",
            "Choose another column.",
        )
    source.set_dimension(dimension, f"{source.name}, row {source.row} has a vector")
    return table
