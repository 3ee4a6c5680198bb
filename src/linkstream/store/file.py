"""The file: one SQLite database, how it is opened, what is in it, and who may write.

SQLite's write-ahead log with synchronous=FULL: a commit that has returned survives the loss of
power. Every row with a blob bears a CRC of its own, since SQLite has none for its pages.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

from linkstream.errors import DamagedStoreError, StoreError, StoreLockedError

APPLICATION = 0x4C4E4B53  # "LNKS"
FORMAT = 1

_SCHEMA = """
CREATE TABLE operations (
    number INTEGER PRIMARY KEY,      -- 1, 2, ...: each acknowledged call
    verb TEXT NOT NULL,              -- method of Links
    arguments TEXT NOT NULL,         -- JSON
    vectors BLOB,                    -- float32, little-endian, one row a vector; NULL: none
    dimension INTEGER NOT NULL,      -- of these
    first_vector INTEGER NOT NULL,   -- number of the first of them
    first_event INTEGER NOT NULL,    -- sequence of the first event it led to
    events BLOB NOT NULL,            -- what was decided: rows of six int64, little-endian
    result BLOB NOT NULL,            -- what was answered: IDs as int64, or JSON
    key TEXT UNIQUE,                 -- idempotency key
    crc INTEGER NOT NULL
) STRICT;
CREATE INDEX operations_by_vector ON operations (first_vector);
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY,
    operation INTEGER NOT NULL,      -- the last one it includes
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL
) STRICT;
CREATE TABLE pieces (
    snapshot INTEGER NOT NULL,
    place INTEGER NOT NULL,
    body BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (snapshot, place)
) STRICT;
CREATE TABLE payloads (
    vector INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    crc INTEGER NOT NULL
) STRICT;
"""


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """An open database of ours, or a typed error that names the file."""
    new = not path.exists() or path.stat().st_size == 0
    if new and not create:
        raise StoreError(
            f"no store at {path}",
            expected="a file that Store.open wrote",
            remedy="Pass thresholds= or preset= to make a new one.",
        )
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        with guarded(path):
            if new:
                _make(connection)
            _check(connection, path)
            for pragma in ("synchronous=FULL", "secure_delete=ON", "trusted_schema=OFF"):
                connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[None]:
    """SQLite's complaints about a damaged file, as ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "disk" in str(error):
            raise
        raise DamagedStoreError(
            f"{path}: {error}",
            expected="a sound SQLite database",
            remedy="Use a backup; `linkstream repair` copies it aside and saves what can be read.",
        ) from None


def crc(*parts: object) -> int:
    """A checksum over values of a row, each with its length."""
    value = 0
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        value = zlib.crc32(data, zlib.crc32(str(len(data)).encode(), value))
    return value


def _make(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION}")
    connection.execute(f"PRAGMA user_version={FORMAT}")
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise DamagedStoreError(
            f"{path}: a database of another program",
            expected="a file that Store.open wrote",
            remedy="Give another path.",
        )
    if version > FORMAT:
        raise StoreError(
            f"{path}: a store of format {version}",
            expected=f"format {FORMAT} or older",
            remedy="Upgrade linkstream to open it.",
        )
    if version != FORMAT:
        raise DamagedStoreError(
            f"{path}: format {version}", expected=f"format {FORMAT}", remedy="Use a backup."
        )


class WriterLock:
    """Only one writes. The lock goes with the process that holds it, however that ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._handle)
        except OSError:
            os.close(self._handle)
            raise StoreLockedError(
                f"{path}: another writer has it open",
                expected="one writer at a time",
                remedy="Close the other one, or open with read_only=True.",
            ) from None

    def release(self) -> None:
        """Let others write."""
        os.close(self._handle)


def _lock(handle: int) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
