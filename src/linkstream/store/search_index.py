"""The search index of a store: which payloads have which words, as a table of SQLite's FTS5.

Row `operation * 4194304 + row` has the words of the payload of a row of an operation, so the index
follows from the journal alone: undo, redo and removal do not change it. It has words, not texts.
Each hit is compared with the stored payload before it counts, and `verify` compares all of it.
"""

from __future__ import annotations

import functools
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from linkstream.engine.linkage import Progress
from linkstream.errors import StoreError
from linkstream.store import blocks
from linkstream.store.file import damaged
from linkstream.store.journal import Journal, Operation
from linkstream.store.payloads import Lines, value_of
from linkstream.store.schema import SEARCH, SEARCH_TABLE
from linkstream.store.words import code_of, fields_in, words_in

ROWS = blocks.ROWS_MAX  # rows of an operation
_SUM = 1 << 64
_ALL = 2**62  # above every row
_INSERT = f"INSERT INTO {SEARCH_TABLE} (rowid, words, fields) VALUES (?, ?, ?)"

Document = tuple[int, str, str]  # row of the index, words, codes of fields


@functools.cache
def is_available() -> bool:
    """Return whether the SQLite of this Python has FTS5."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(SEARCH)
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def check_available() -> None:
    """Raise StoreError if the SQLite of this Python has no FTS5."""
    if not is_available():
        raise StoreError(
            f"a search index, which SQLite {sqlite3.sqlite_version} of this Python cannot use",
            expected="a SQLite with FTS5",
            remedy="Use a Python whose SQLite has FTS5, or a store without search.",
        )


def exists(connection: sqlite3.Connection) -> bool:
    """Return whether a store has an index."""
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(query, (SEARCH_TABLE,)).fetchone() is not None


def create(connection: sqlite3.Connection) -> None:
    """Make an empty index; the caller commits."""
    check_available()
    connection.execute(SEARCH)


def drop(connection: sqlite3.Connection) -> None:
    """Delete the index; the caller commits."""
    check_available()
    connection.execute(f"DROP TABLE {SEARCH_TABLE}")


# Writing


def write(connection: sqlite3.Connection, operation: int, lines: Lines, first: int = 0) -> None:
    """Add the payloads of an operation, from a row on, as lines of JSON; the caller commits."""
    connection.executemany(_INSERT, _documents(operation, lines, first))


def _documents(operation: int, lines: Iterable[bytes], first: int) -> Iterator[Document]:
    start = operation * ROWS + first
    for number, line in enumerate(lines, start):
        if line:
            payload = value_of(line)
            words, fields = words_in(payload), map(code_of, fields_in(payload))
            document = " ".join(words), " ".join(fields)
            if any(document):
                yield number, *document


def rebuild(
    connection: sqlite3.Connection, path: Path, last: int, progress: Progress = lambda _: None
) -> None:
    """Make the index of an existing table again from the journal; the caller commits."""
    connection.execute(f"INSERT INTO {SEARCH_TABLE} ({SEARCH_TABLE}) VALUES ('delete-all')")
    for operation, first, lines in payloads_of(Journal(connection, path), last):
        write(connection, operation.number, lines, first)
        progress(operation.number / last)


def payloads_of(journal: Journal, last: int) -> Iterator[tuple[Operation, int, Lines]]:
    """Yield the payloads of all operations in blocks: operation, first row, lines of JSON."""
    for operation in journal.operations(0, last):
        for block in range(blocks.count(operation.n_rows)) if operation.has_payloads else ():
            yield operation, block * blocks.ROWS, journal.payload_lines(operation, block) or []


# Reading


def hits(connection: sqlite3.Connection, expression: str, below: int, limit: int) -> list[int]:
    """Return rows that match, the newest first, below a row number."""
    query = (
        f"SELECT rowid FROM {SEARCH_TABLE} WHERE {SEARCH_TABLE} MATCH ? AND rowid < ? "
        "ORDER BY rowid DESC LIMIT ?"
    )
    return [row for (row,) in connection.execute(query, (expression, below, limit))]


def check(connection: sqlite3.Connection, path: Path, last: int) -> None:
    """Raise DamagedStoreError unless the index has the words of all payloads and no others."""
    expected = _sum(
        (word, number, column, place)
        for operation, first, lines in payloads_of(Journal(connection, path), last)
        for number, *document in _documents(operation.number, lines, first)
        for column, words in zip(("words", "fields"), document, strict=True)
        for place, word in enumerate(words.split(" ") if words else ())
    )
    for kind in ("instance", "col"):
        connection.execute(
            f"CREATE VIRTUAL TABLE temp.{kind} USING fts5vocab(main, {SEARCH_TABLE}, {kind})"
        )
    try:
        found = _sum(connection.execute("SELECT term, doc, col, offset FROM temp.instance"))
        if found != expected or not all(
            map(functools.partial(_is_reached, connection), _terms(connection))
        ):
            raise damaged(path, "the search index differs from the payloads")
    finally:
        for kind in ("instance", "col"):
            connection.execute(f"DROP TABLE temp.{kind}")


def _terms(connection: sqlite3.Connection) -> Iterator[tuple[str, str, int]]:
    """Yield each word with its column and the number of rows that have it."""
    yield from connection.execute("SELECT term, col, doc FROM temp.col")


def _is_reached(connection: sqlite3.Connection, term: tuple[str, str, int]) -> bool:
    """Return whether a search for a word finds all its rows, in falling order."""
    word, column, count = term
    query = f"SELECT rowid FROM {SEARCH_TABLE} WHERE {SEARCH_TABLE} MATCH ? ORDER BY rowid DESC"
    last = _ALL
    for (row,) in connection.execute(query, (f'{column} : "{word}"',)):
        if row >= last:
            return False
        last, count = row, count - 1
    return count == 0


def _sum(places: Iterable[tuple[object, ...]]) -> tuple[int, int]:
    """Return the number of places of words, and a sum of their digests, whatever their order."""
    count = total = 0
    for place in places:
        count += 1
        digest = hashlib.blake2b(repr(place).encode(), digest_size=8).digest()
        total += int.from_bytes(digest, "little")
    return count, total % _SUM
