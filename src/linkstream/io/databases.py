"""Vectors that lie in a database: where they are, and how IDs are written back beside them.

An address says all: `postgresql://host/people?table=faces&order=id`, `qdrant://host:6333/faces`.
What it says of passwords and keys stays in the address: a source is named without them, and no
error of ours repeats what could hold one.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import IO, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import numpy as np
import numpy.typing as npt

from linkstream.errors import InputFileError, NotTrackedError
from linkstream.io.faults import fault, reason
from linkstream.io.source import ALL, Payloads, Source, Vectors, Wanted

AT_ONCE = 1000  # rows that are written together
REMOVED = -1  # the label of a vector that is no longer there
MASKED = "***"
EXAMPLES = (
    "postgresql://user@host:5432/people?table=faces&column=embedding&order=id, "
    "qdrant://host:6333/faces, or qdrant:///folder?collection=faces"
)

_ADDRESS = re.compile(r"(postgresql|postgres|qdrant):/", re.IGNORECASE)
_ANY_WITH_USER = re.compile(r"[a-z][a-z0-9+.-]*:/.*@", re.IGNORECASE | re.DOTALL)

Ids = npt.NDArray[np.int64]


def is_address(source: object) -> bool:
    """Whether a text is the address of a database, well formed or not."""
    return isinstance(source, str) and _ADDRESS.match(source) is not None


def check_no_address(path: str | os.PathLike[str]) -> None:
    """Refuse an address where a file is wanted, without repeating what it holds."""
    words = os.fspath(path)
    if is_address(words) or _ANY_WITH_USER.match(words):
        raise fault(
            "an address, where a file is read",
            f"the path of a file; or, for `linkstream cluster` and open_vectors, {EXAMPLES}",
            "Check it; open_vectors takes an address as a text, not as a path.",
        )


@dataclass(frozen=True, slots=True)
class Address:
    """An address, taken apart. What it holds of secrets is not shown."""

    given: str = field(repr=False)  # as it was, less what is ours
    parts: SplitResult = field(repr=False)
    options: dict[str, str]
    others: tuple[str, ...]

    @classmethod
    def of(cls, text: str, *ours: str) -> Address:
        """Take an address apart; `ours` are the words after the `?` that linkstream reads."""
        try:
            parts = urlsplit(text)
            pairs = [(*parse_qsl(one, True, True)[0], one) for one in parts.query.split("&") if one]
            parts.port  # noqa: B018 - a property that raises
        except (ValueError, IndexError):
            raise unreadable() from None
        # An @ that comes late is one of a password with a / or a ? in it.
        late = "@" in parts.path or any("@" in name for name, _, _ in pairs)
        if not text[len(parts.scheme) :].startswith("://") or parts.fragment or late:
            raise unreadable()
        names = [name for name, _, _ in pairs]
        twice = [name for name in ours if names.count(name) > 1]
        if twice:
            raise fault(f"an address with {twice[0]} twice", "each word once", "Leave one out.")
        query = "&".join(raw for name, _, raw in pairs if name not in ours)
        given = f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")
        options = {name: value for name, value, _ in pairs if name in ours}
        others = tuple(name for name in names if name not in ours)
        return cls(given, parts, options, others)

    @property
    def host(self) -> str:
        """The host and the port, without who asks."""
        return self.parts.netloc.rpartition("@")[2]

    @property
    def path(self) -> str:
        """What comes after the host, as it is meant."""
        return unquote(self.parts.path)

    def column(self, wanted: Wanted) -> Wanted:
        """What is wanted, with the column of the address."""
        given = self.options.get("column")
        if given and wanted.column and given != wanted.column:
            raise fault(
                f"column {wanted.column!r}, and {given!r} in the address",
                "one of them",
                "Leave one out.",
            )
        return replace(wanted, column=given or wanted.column)


def unreadable() -> InputFileError:
    """An address that cannot be taken apart; it may hold a password, so it is not shown."""
    return fault(
        "an address of a database that cannot be read",
        EXAMPLES,
        "Write odd characters of names and passwords as %XX: / is %2F, @ is %40.",
    )


def told(error: BaseException, *secrets: str | None) -> str:
    """The first words of a database's error, without secrets."""
    words = reason(RuntimeError(_masked(str(error).strip() or type(error).__name__, secrets)))
    return words.rstrip(".")


def _masked(words: str, secrets: Sequence[str | None]) -> str:
    for secret in secrets:
        if secret:
            words = words.replace(secret, MASKED)
    return words


class DatabaseSource(Source):
    """Rows of a database, in the order that was stated.

    `place` is what they are known by from run to run: the table or collection and the column,
    but not the host, which may be called by several names.
    """

    def __init__(
        self, name: str, wanted: Wanted, *, kind: str, n: int | None, dimension: int | None
    ) -> None:
        wanted.refuse(name, "key")
        super().__init__(name, wanted, kind=kind, n=n, dimension=dimension)
        self._field: str | None = None
        self._spool: IO[str] | None = None

    def prepare(self, field: str) -> None:
        """Say that IDs will be written back; before the first row is read.

        Raises:
            InputFileError: there is such a column or field, and it is not one of IDs.
        """
        self._prepare(field)
        self._field = field
        # Which row is which, on the disk: memory holds one block however many rows there are.
        self._spool = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - kept
        self._owned.callback(self._spool.close)

    @property
    def is_prepared(self) -> bool:
        """Whether IDs can be written back."""
        return self._spool is not None

    def write_back(self, labels: Ids) -> Iterator[int]:
        """Write the IDs of the rows that were read; how many are done, after each thousand.

        Rows of label −1 lose their ID. What is there already is not written again.

        Raises:
            InputFileError: the database refused.
        """
        if self._spool is None or len(labels) > self.row:
            raise NotTrackedError(
                f"{len(labels)} labels for {self.name}, of which {self.row} rows were read",
                expected="prepare(field), then reading, then a label for each row read",
                remedy="Call prepare before the first row is read.",
            )
        self._spool.seek(0)
        done = 0
        while done < len(labels):
            some = labels[done : done + AT_ONCE].tolist()
            keys = [json.loads(line) for line in islice(self._spool, len(some))]
            self._write(keys, some)
            done += len(some)
            yield done

    def _note_keys(self, keys: Sequence[Any]) -> None:
        """Remember which rows were read, if that was asked for."""
        if self._spool is not None:
            self._spool.writelines(json.dumps(key) + "\n" for key in keys)

    def _rest(self, names: Sequence[str], *but: str | None) -> list[str]:
        """The payload columns: those asked for, or all the others."""
        if self._wanted.payload != (ALL,):
            return list(self._wanted.payload)
        return [name for name in names if name not in but]

    @abstractmethod
    def _prepare(self, field: str) -> None:
        """Check or make the place of the IDs."""

    @abstractmethod
    def _write(self, keys: list[Any], labels: list[int]) -> None:
        """Write the IDs of some rows, all or none."""


def as_vectors(source: DatabaseSource, rows: Sequence[Any], first_row: int) -> tuple[Vectors, int]:
    """Vectors of one length as a table of numbers, and that length."""
    lengths = {len(row) for row in rows}
    dimension = source.dimension or len(rows[0])
    if lengths - {dimension}:
        place = next(at for at, row in enumerate(rows) if len(row) != dimension)
        raise fault(
            f"{source.name}, row {first_row + place} has a vector of dimension {len(rows[place])}",
            f"dimension {dimension}",
            "Mend the row, or choose another column.",
        )
    try:
        table = np.array(rows)
    except ValueError:
        table = np.empty((0, 0), dtype=object)
    if table.ndim != 2 or table.dtype.kind not in "fiu":
        raise fault(
            f"{source.name}: rows from {first_row} on hold more, or less, than numbers",
            "one list of numbers a row",
            "Choose another column.",
        )
    return table, dimension


__all__ = [
    "REMOVED",
    "Address",
    "DatabaseSource",
    "Ids",
    "Payloads",
    "as_vectors",
    "check_no_address",
    "is_address",
    "told",
    "unreadable",
]
