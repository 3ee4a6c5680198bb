"""The file: one SQLite database, what is in it, how it is made and opened.

SQLite's write-ahead log with synchronous=FULL: a commit that has returned survives the loss of
power. SQLite has no checksums of its own, so every row of ours bears one, rows are found by their
number alone (an index could lie), and numbers follow one another without gaps.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from linkstream.engine import placing
from linkstream.engine.placing import sync
from linkstream.errors import (
    ArgumentError,
    DamagedStoreError,
    LinkstreamError,
    SnapshotError,
    StoreError,
    StoreMemoryError,
)
from linkstream.store.schema import SCHEMA

APPLICATION = 0x4C4E4B53  # "LNKS"
FORMAT = 1
PAGE = 4096  # of new stores: a commit writes whole pages to the log
BUSY = 10_000  # milliseconds to wait for others of SQLite's
_CACHE = 256  # KiB: what is larger is written while the rest is still being decided
_READ_LEAST = 1 << 22  # bytes of a value, however small the file says it is

# From each older format to the next. Format 1 is the first.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}


def resolved(path: str | os.PathLike[str]) -> Path:
    """Where a store lies, by one name: the lock beside it must be the same for all who come."""
    try:
        if not os.fspath(path):
            raise ValueError("an empty name")
        return Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise ArgumentError(
            f"path={path!r:.80} ({error})", expected="the name of a file", remedy="Give another."
        ) from None


def make(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """A new store, filled by the caller, that appears under its name only when it is whole."""
    with appearing(path) as name, guarded(path):
        fill_new(name, fill)


def fill_new(name: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make a store in an empty file: its tables, and what the caller puts into them."""
    with contextlib.closing(_connection(str(name))) as connection:
        connection.execute(f"PRAGMA page_size={PAGE}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA cache_size=-{_CACHE}")
        with transaction(connection):
            for statement in SCHEMA.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id={APPLICATION}")
            connection.execute(f"PRAGMA user_version={FORMAT}")
            fill(connection)
        # Closing would move the log into the file, too, and not tell if that failed.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """The name of a file to be made beside a path; it takes its place there when it is whole.

    What is still in a log by then is lost: the caller moves it into the file.
    """
    with prepared(path) as name:
        yield name
        _settle(name, path)


@contextlib.contextmanager
def prepared(path: Path) -> Iterator[Path]:
    """The name of a file to be made beside a path; at the end it is gone, unless it was moved."""
    with usable(path), placing.hidden(path) as name:
        yield name


def _settle(made: Path, path: Path) -> None:
    """Give a whole file its name, if that is still free, in a way that outlives a power cut."""
    sync(made)
    try:
        os.link(made, path)
    except FileExistsError:
        raise StoreError(
            f"{path}: a file that appeared meanwhile",
            expected="a name that is free",
            remedy="Open it, or give another path.",
        ) from None
    except OSError:  # a file system without links
        os.rename(made, path)
    sync(path.parent)


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """An open database of ours, or a typed error that names the file."""
    check_file(path)
    connection = _open_sqlite(path, read_only=read_only)
    try:
        with guarded(path):
            connection.execute("PRAGMA trusted_schema=OFF")
            bound(connection, path)
            _check(connection, path, read_only=read_only)
            if not read_only:
                for pragma in (
                    "synchronous=FULL",
                    "wal_autocheckpoint=0",
                    "journal_mode=WAL",
                    f"cache_size=-{_CACHE}",
                ):
                    connection.execute(f"PRAGMA {pragma}")
                _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _connection(name: str, **options: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = sqlite3.connect(
        name, isolation_level=None, check_same_thread=False, timeout=BUSY / 1000, **options
    )
    return connection


def _open_sqlite(path: Path, *, read_only: bool) -> sqlite3.Connection:
    uri = path.absolute().as_uri() + "?mode="
    with guarded(path):
        if not read_only:
            return _connection(uri + "rw", uri=True)
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            connection = _connection(uri + "rw", uri=True)  # so that the last to leave tidies up
            connection.execute("PRAGMA query_only=ON")
            return connection
        if path.with_name(path.name + "-wal").exists():
            return _connection(uri + "ro", uri=True)
        # Nobody may write here: with no log beside it the file is all there is.
        return _connection(uri + "ro&immutable=1", uri=True)


def bound(connection: sqlite3.Connection, path: Path) -> None:
    """No value may be longer than what is there; a length that lies must not cost memory."""
    if hasattr(connection, "setlimit"):  # from Python 3.11 on
        there = sum(size_of(path))
        limit = min(max(_READ_LEAST, 2 * there), 10**9)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)


def unbound(connection: sqlite3.Connection) -> None:
    """Let larger values in again, once what is there has been read."""
    if hasattr(connection, "setlimit"):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10**9)


def size_of(path: Path) -> tuple[int, int]:
    """Bytes of the file, and of the log beside it."""
    log = path.with_name(path.name + "-wal")
    return path.stat().st_size, log.stat().st_size if log.exists() else 0


def identity(path: Path) -> tuple[int, int]:
    """Which file it is, whatever its name."""
    found = path.stat()
    return found.st_dev, found.st_ino


def check_same(path: Path, expected: tuple[int, int]) -> None:
    """StoreError where the file under this name is another than it was, or none."""
    try:
        same = identity(path) == expected
    except OSError:
        same = False
    if not same:
        raise StoreError(
            f"{path}: removed, or replaced by another file, while it was open",
            expected="the file that was opened",
            remedy="Open it again.",
        )


def check_file(path: Path) -> None:
    """StoreError unless there is a file with something in it."""
    if path.is_file() and path.stat().st_size:
        return
    if not path.exists():
        raise StoreError(
            f"{path}: no store there",
            expected="a file that Store.open wrote",
            remedy="Pass thresholds= or preset= to make a new one.",
        )
    if path.is_file():
        raise damaged(path, "an empty file beside a log")
    raise no_store(path, "not a file")


def no_store(path: Path, seen: str) -> StoreError:
    """The error for a path at which there is something that is no store."""
    return StoreError(
        f"{path}: {seen}",
        expected="a file that linkstream wrote",
        remedy="Give another path; if a store was there, use a backup.",
    )


def _check(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise damaged(path, f"the header has application ID {application:#x}")
    if version > FORMAT:
        raise StoreError(
            f"{path}: a store of format {version}",
            expected=f"format {FORMAT} or older",
            remedy="Upgrade linkstream to open it.",
        )
    if version != FORMAT and version not in MIGRATIONS:
        raise damaged(path, f"format {version}, which there never was")
    if version != FORMAT and read_only:
        raise StoreError(
            f"{path}: a store of format {version}, to be read only",
            expected=f"format {FORMAT}",
            remedy="Open it once for writing, which brings it up to date.",
        )
    if version == FORMAT and _schema(connection) != _expected_schema():
        raise damaged(path, "tables, triggers or views that linkstream did not make")


def _schema(connection: sqlite3.Connection) -> list[Any]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
    return connection.execute(query).fetchall()


@functools.cache
def _expected_schema() -> list[Any]:
    with contextlib.closing(_connection(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return _schema(connection)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring an older store to the format of today, step by step, each wholly or not at all."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for step in range(version, FORMAT):
        with transaction(connection):
            MIGRATIONS[step](connection)
            connection.execute(f"PRAGMA user_version={step + 1}")


def begin(connection: sqlite3.Connection, how: str = "IMMEDIATE") -> None:
    """Begin a transaction. One that failed, without memory to be rolled back, goes first."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    connection.execute(f"BEGIN {how}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it, on the disk, or nothing."""
    begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def view(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is read in it is of one moment."""
    begin(connection, "DEFERRED")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[None]:
    """What SQLite and the system complain of, as errors of ours. No memory is no damage."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(path, error) from error
    except sqlite3.OperationalError as error:
        if _lacks_memory(error):
            raise out_of_memory(path, error) from error
        raise unusable(path, error) from error
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise damaged(path, f"SQLite says: {str(error) or type(error).__name__}") from error


def _lacks_memory(error: sqlite3.Error) -> bool:
    """Whether SQLite failed because it got no memory, or none to share with others."""
    name = getattr(error, "sqlite_errorname", "")  # from Python 3.11 on
    return name in _NO_MEMORY or str(error) == "out of memory"


_NO_MEMORY = ("SQLITE_NOMEM", "SQLITE_IOERR_NOMEM", "SQLITE_IOERR_SHMMAP", "SQLITE_IOERR_MMAP")
_STRANGE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


@contextlib.contextmanager
def distrusted(path: Path, what: str) -> Iterator[None]:
    """Bytes with a right checksum may still be of somebody's making: what they break is named."""
    try:
        yield
    except SnapshotError as error:
        raise damaged(path, f"{what}: {error.seen}") from error
    except LinkstreamError:
        raise
    except _STRANGE as error:
        raise damaged(path, f"{what} is none of linkstream's ({error!r:.200})") from error


def out_of_memory(path: Path, error: BaseException) -> StoreMemoryError:
    """The error for memory that ran out, which says nothing about the bytes."""
    if isinstance(error, StoreMemoryError):
        return error
    return StoreMemoryError(
        f"{path}: memory ran out ({str(error) or type(error).__name__})",
        expected="enough memory to read the store",
        remedy="Free some, or raise the limit of the process, and try again; nothing was changed.",
    )


@contextlib.contextmanager
def usable(path: Path) -> Iterator[None]:
    """What the system complains of, as an error of ours that names the file."""
    try:
        yield
    except OSError as error:
        raise unusable(path, error) from None


def unusable(path: Path, error: Exception) -> StoreError:
    """The error for a file that cannot be worked with, whatever is in it."""
    return StoreError(
        f"{path}: {error}",
        expected="a folder and a file that can be read and written",
        remedy="Check the path, its rights and the room on the disk.",
    )


def damaged(path: Path, what: str) -> DamagedStoreError:
    """The error for bytes that are not what was written."""
    return DamagedStoreError(
        f"{path}: {what}",
        expected="what linkstream wrote",
        remedy="Use a backup; `linkstream repair` copies it aside and saves what can be read.",
    )


def sealed(table: str, *values: object, blob_crc: int | None = None) -> tuple[object, ...]:
    """The values of a row and their checksum, which holds for that table alone.

    Of its only blob the caller may know the CRC already.
    """
    return *values, _crc(table, values, blob_crc)


def intact(table: str, row: tuple[object, ...] | None) -> bool:
    """Whether a row is there, and as it was sealed."""
    return row is not None and _crc(table, row[:-1], None) == row[-1]


def _crc(table: str, values: tuple[object, ...], blob_crc: int | None) -> int:
    """Over the table's name and the values as JSON; a blob stands as its length and its CRC."""
    plain = [
        [len(value), zlib.crc32(value) if blob_crc is None else blob_crc]
        if isinstance(value, (bytes, memoryview))
        else value
        for value in values
    ]
    return zlib.crc32(json.dumps([table, plain]).encode())
