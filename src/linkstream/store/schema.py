"""The tables of a store, format 2, described in docs/file-format.md.

The text is part of the format: SQLite stores it with its comments, and opening compares it.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from typing import Any

FORMAT_1 = """
CREATE TABLE meta (                  -- one row: what the store is, for people and other programs
    number INTEGER PRIMARY KEY,
    body TEXT NOT NULL,              -- JSON
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE operations (            -- each acknowledged call: 1, 2, ...
    number INTEGER PRIMARY KEY,
    verb TEXT NOT NULL,              -- method of Links
    arguments TEXT NOT NULL,         -- JSON
    first_vector INTEGER NOT NULL,   -- vectors taken before it
    first_event INTEGER NOT NULL,    -- events before it
    first_piece INTEGER NOT NULL,    -- of its vectors
    rows INTEGER NOT NULL,           -- vectors it brought
    dimension INTEGER NOT NULL,      -- of these
    payloads INTEGER NOT NULL,       -- 1: it has a row among the payloads
    events BLOB NOT NULL,            -- what was decided: rows of six int64, little-endian
    result BLOB NOT NULL,            -- what was answered: IDs as int64, or JSON
    key TEXT,                        -- idempotency key
    digest BLOB,                     -- SHA-256 of vectors and payloads, where there is a key
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE vectors (               -- as they were given: float32, little-endian, row by row
    piece INTEGER PRIMARY KEY,
    body BLOB NOT NULL,
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE payloads (              -- what people attached to the vectors of an operation
    operation INTEGER PRIMARY KEY,
    body TEXT NOT NULL,              -- JSON list, one value a vector
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY,
    operation INTEGER NOT NULL,      -- the last one it includes
    first_chunk INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    size INTEGER NOT NULL,           -- bytes in all
    split INTEGER NOT NULL,          -- bytes of the clusterer; the rest is the index
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY,
    body BLOB NOT NULL,
    crc INTEGER NOT NULL
) STRICT;
CREATE VIEW names AS                 -- for people who look with SQL: who was named what
    SELECT number AS operation, json_extract(arguments, '$.cluster') AS cluster,
           json_extract(arguments, '$.name') AS name
    FROM operations WHERE verb IN ('name', 'rename', 'enrol');
CREATE VIEW constraints AS           -- and which corrections were made
    SELECT number AS operation, verb, json_extract(arguments, '$.of') AS of,
           json_extract(arguments, '$.a') AS a, json_extract(arguments, '$.b') AS b
    FROM operations WHERE verb IN ('same', 'different');
"""

# Format 2 adds blocks of 256 vectors, see `linkstream.store.blocks`. The column `payloads` of an
# operation is a sum: 1 for a list of format 1, 2 for payload blocks, 4 for times, 8 for keys.
ADDED_2 = """
CREATE TABLE payload_blocks (        -- what people attached to the vectors of an operation
    block INTEGER PRIMARY KEY,       -- operation * 16384 + row / 256
    body BLOB NOT NULL,              -- JSON, one line a vector; empty: none
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE vector_times (          -- the vectors' own times
    block INTEGER PRIMARY KEY,
    body BLOB NOT NULL,              -- microseconds since 1970 as int64; the least one: none
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE vector_keys (           -- the vectors' own keys
    block INTEGER PRIMARY KEY,
    body BLOB NOT NULL,              -- UTF-8, one line a vector; empty: none
    crc INTEGER NOT NULL
) STRICT;
"""

SCHEMA = FORMAT_1 + ADDED_2

Entry = tuple[str, str, str, str | None]

# A store with search has one more table, and those that FTS5 makes for it.
SEARCH_TABLE = "search"
SEARCH = (
    "CREATE VIRTUAL TABLE search USING "
    "fts5(words, fields, content='', columnsize=0, tokenize='ascii')"
)
_MADE_BY_FTS5 = {
    "search_config": "(k PRIMARY KEY, v) WITHOUT ROWID",
    "search_data": "(id INTEGER PRIMARY KEY, block BLOB)",
    "search_idx": "(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
}
_OF_SEARCH: list[Entry] = [
    ("table", SEARCH_TABLE, SEARCH_TABLE, SEARCH),
    *(("table", n, n, f"CREATE TABLE '{n}'{columns}") for n, columns in _MADE_BY_FTS5.items()),
]

# A store in which a migration to another encoder is under way has one more table.
REENCODED_TABLE = "reencoded"
REENCODED = """CREATE TABLE reencoded (             -- what the other encoder has seen so far
    number INTEGER PRIMARY KEY,      -- of the vector
    migration INTEGER NOT NULL,      -- number of the migration
    operation INTEGER NOT NULL,      -- that brought the vector
    body BLOB NOT NULL,              -- float32, little-endian
    crc INTEGER NOT NULL
) STRICT"""
_OF_MIGRATION: list[Entry] = [("table", REENCODED_TABLE, REENCODED_TABLE, REENCODED)]


def is_as_written(connection: sqlite3.Connection, statements: str) -> bool:
    """Return whether a store has the tables and views of some statements.

    Those of search and of a migration may be there as well.
    """
    expected = _expected(statements)
    kinds: list[list[Entry]] = [[], _OF_SEARCH, _OF_MIGRATION, [*_OF_SEARCH, *_OF_MIGRATION]]
    return _entries(connection) in [sorted([*expected, *more], key=_name) for more in kinds]


def _entries(connection: sqlite3.Connection) -> list[Entry]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    return sorted(connection.execute(query).fetchall(), key=_name)


def _name(entry: Any) -> str:
    return str(entry[1])


@functools.cache
def _expected(statements: str) -> list[Entry]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(statements)
        return _entries(connection)
