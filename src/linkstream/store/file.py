"""The SQLite file of a store: creating, opening, transactions, checksums, errors.

The write-ahead log with synchronous=FULL makes a commit that has returned survive a power cut.
SQLite has no checksums, so every row has one, rows are found by number alone (an index could be
damaged), and numbers have no gaps.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from linkstream.engine import atomic_files
from linkstream.engine.atomic_files import sync
from linkstream.errors import (
    DamagedStoreError,
    LinkstreamError,
    SnapshotError,
    StoreError,
    StoreMemoryError,
)
from linkstream.store.schema import ADDED_2, FORMAT_1, SCHEMA, is_as_written

T = TypeVar("T")
APPLICATION = 0x4C4E4B53  # "LNKS"
FORMAT = 2
PAGE = 4096  # bytes; a commit writes whole pages to the log
BUSY = 10_000  # milliseconds to wait for other connections
_CACHE = 256  # KiB; larger transactions are written while they grow
_READ_LEAST = 1 << 22  # bytes that a value may always have


def _run_all(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)


# The function that brings each older format to the next one, and the older formats that a reader
# takes as they are. Format 1 is the first; format 2 only adds tables.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {
    1: lambda connection: _run_all(connection, ADDED_2)
}
READABLE = {1: FORMAT_1}


def make(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Write a new store, filled by the caller; it gets its name only when it is complete."""

    def written(name: Path) -> None:
        with guarded(path):
            fill_new(name, fill)

    appear(path, written)


def fill_new(name: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Write the tables into an empty file and let the caller fill them."""
    with contextlib.closing(_connection(str(name))) as connection:
        connection.execute(f"PRAGMA page_size={PAGE}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA cache_size=-{_CACHE}")
        with transaction(connection):
            _run_all(connection, SCHEMA)
            connection.execute(f"PRAGMA application_id={APPLICATION}")
            connection.execute(f"PRAGMA user_version={FORMAT}")
            fill(connection)
        # Closing the connection checkpoints, too, but does not report a failure.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def appear(path: Path, fill: Callable[[Path], object]) -> None:
    """Let a function fill a hidden file beside a path; then rename the file to the path.

    The function must checkpoint the log of the new file. If one allocation fails, this either
    raises and leaves no file, or goes on.
    """

    def made(name: Path) -> None:
        fill(name)
        _settle(name, path)

    prepare(path, made)


def prepare(path: Path, use: Callable[[Path], T]) -> T:
    """Call a function with a hidden file beside a path; then a file of that name is removed."""
    try:
        return atomic_files.hidden(path, use)
    except OSError as error:
        raise unusable(path, error) from None


def _settle(made: Path, path: Path) -> None:
    """Give a complete file its name durably; raise StoreError if the name is taken."""
    sync(made)
    names = str(made), str(path)  # without memory `os` may raise TypeError for a Path
    try:
        os.link(*names)
    except FileExistsError:
        raise StoreError(
            f"{path}: another process made this file meanwhile",
            expected="a path without a file",
            remedy="Open that file, or give another path.",
        ) from None
    except OSError:  # a file system without links
        os.rename(*names)
    try:
        sync(path.parent)
    except MemoryError:  # the file has its name, so this must not fail for a single allocation
        sync(path.parent)


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the database of a store; raise StoreError if it is none."""
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


def keep_log(path: Path) -> sqlite3.Connection:
    """Return a connection; until it is closed, closing others does not remove the log."""
    connection = _open_sqlite(path, read_only=True)
    try:
        with guarded(path):
            connection.execute("PRAGMA schema_version").fetchone()  # takes the shared lock
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
        if _log_of(path).exists() or _is_writable(path):
            return _connection(uri + "ro", uri=True, factory=_reader_of(path))
        # Nobody can write here, and there is no log: the file holds everything.
        return _connection(uri + "ro&immutable=1", uri=True)


def _reader_of(path: Path) -> type[sqlite3.Connection]:
    """Return a class of connections that never write the log into the file.

    SQLite does so when the last connection is closed, and then removes the log: a damaged store
    would lose what its log holds. A connection with mode=ro cannot, and leaves an empty log behind
    as well, which is removed here.
    """

    class Reader(sqlite3.Connection):
        def close(self) -> None:
            super().close()
            _remove_empty_log(path)

    return Reader


def _remove_empty_log(path: Path) -> None:
    """Let SQLite remove a log without content, unless another connection uses it."""
    with contextlib.suppress(OSError, sqlite3.Error):
        if _log_of(path).stat().st_size == 0 and _is_writable(path):
            uri = path.absolute().as_uri() + "?mode=rw"
            with contextlib.closing(_connection(uri, uri=True)) as last:
                last.execute("PRAGMA schema_version").fetchone()


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def bound(connection: sqlite3.Connection, path: Path) -> None:
    """Limit the length of values to the file size, so that a damaged length costs no memory."""
    if hasattr(connection, "setlimit"):  # from Python 3.11 on
        there = sum(size_of(path))
        limit = min(max(_READ_LEAST, 2 * there), 10**9)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)


def unbound(connection: sqlite3.Connection) -> None:
    """Remove the limit of `bound`, once the file has been read."""
    if hasattr(connection, "setlimit"):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10**9)


def size_of(path: Path) -> tuple[int, int]:
    """Return the sizes of the file and of its log in bytes."""
    log = _log_of(path)
    return path.stat().st_size, log.stat().st_size if log.exists() else 0


def identity(path: Path) -> tuple[int, int]:
    """Return the device and inode of a file."""
    found = path.stat()
    return found.st_dev, found.st_ino


def check_same(path: Path, expected: tuple[int, int]) -> None:
    """Raise StoreError if the file was removed or replaced."""
    try:
        same = identity(path) == expected
    except OSError:
        same = False
    if not same:
        raise StoreError(
            f"{path}: removed, or replaced by another file, while it was open",
            expected="the file that was opened",
            remedy="Open the store again.",
        )


def check_file(path: Path) -> None:
    """Raise StoreError unless there is a file that is not empty."""
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
    """Return the error for a path that is no store."""
    return StoreError(
        f"{path}: {seen}",
        expected="a file that linkstream wrote",
        remedy="Give another path, or restore the store from a backup.",
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
            remedy="Upgrade linkstream to open the store.",
        )
    if version != FORMAT and version not in MIGRATIONS:
        raise damaged(path, f"format {version}, which does not exist")
    if version != FORMAT and read_only and version not in READABLE:
        raise StoreError(
            f"{path}: a store of format {version}, opened read-only",
            expected=f"format {FORMAT}",
            remedy="Open it once for writing, which updates the format.",
        )
    expected = SCHEMA if version == FORMAT else READABLE.get(version)
    if expected is not None and not is_as_written(connection, expected):
        raise damaged(path, "tables, triggers or views that linkstream did not create")


def _migrate(connection: sqlite3.Connection) -> None:
    """Update an older store format by format, each in one transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for step in range(version, FORMAT):
        with transaction(connection):
            MIGRATIONS[step](connection)
            connection.execute(f"PRAGMA user_version={step + 1}")


def begin(connection: sqlite3.Connection, how: str = "IMMEDIATE") -> None:
    """Begin a transaction, after rolling back one that was left open."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    connection.execute(f"BEGIN {how}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one durable transaction."""
    begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # the first error is the one to report
                connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def view(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one read transaction."""
    begin(connection, "DEFERRED")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Convert errors of SQLite to StoreError, DamagedStoreError or StoreMemoryError."""
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
    """Return whether SQLite failed for lack of memory or of shared memory."""
    name = getattr(error, "sqlite_errorname", "")  # from Python 3.11 on
    return name in _NO_MEMORY or str(error) == "out of memory"


_NO_MEMORY = ("SQLITE_NOMEM", "SQLITE_IOERR_NOMEM", "SQLITE_IOERR_SHMMAP", "SQLITE_IOERR_MMAP")
_STRANGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


@contextlib.contextmanager
def distrusted(path: Path, what: str) -> Iterator[None]:
    """Raise DamagedStoreError if values with a correct checksum cannot be used."""
    try:
        yield
    except SnapshotError as error:
        raise damaged(path, f"{what}: {error.seen}") from error
    except LinkstreamError:
        raise
    except _STRANGE as error:
        raise damaged(path, f"{what} was not written by linkstream ({error!r:.200})") from error


def out_of_memory(path: Path, error: BaseException) -> StoreMemoryError:
    """Return the error for a lack of memory."""
    if isinstance(error, StoreMemoryError):
        return error
    return StoreMemoryError(
        f"{path}: memory ran out ({str(error) or type(error).__name__})",
        expected="enough memory to read the store",
        remedy="Free memory or raise the limit, then try again; nothing was changed.",
    )


@contextlib.contextmanager
def usable(path: Path) -> Iterator[None]:
    """Convert OSError to StoreError, which names the file."""
    try:
        yield
    except OSError as error:
        raise unusable(path, error) from None


def unusable(path: Path, error: Exception) -> StoreError:
    """Return the error for a file that cannot be read or written."""
    return StoreError(
        f"{path}: {error}",
        expected="a folder and a file that can be read and written",
        remedy="Check the path, its permissions and the free space of the disk.",
    )


def damaged(path: Path, what: str) -> DamagedStoreError:
    """Return the error for bytes that are not what was written."""
    return DamagedStoreError(
        f"{path}: {what}",
        expected="the bytes that linkstream wrote",
        remedy="Use a backup, or `linkstream repair`, which saves what can be read.",
    )


def sealed(table: str, *values: object, blob_crc: int | None = None) -> tuple[object, ...]:
    """Return the values of a row followed by their checksum.

    `blob_crc` is the CRC of the only blob among them, if the caller knows it.
    """
    return *values, _crc(table, values, blob_crc)


def intact(table: str, row: tuple[object, ...] | None) -> bool:
    """Return whether a row exists and matches its checksum."""
    return row is not None and _crc(table, row[:-1], None) == row[-1]


def _crc(table: str, values: tuple[object, ...], blob_crc: int | None) -> int:
    """Return the CRC of the table and the values as JSON; a blob counts as length and CRC."""
    plain = [
        [len(value), zlib.crc32(value) if blob_crc is None else blob_crc]
        if isinstance(value, (bytes, memoryview))
        else value
        for value in values
    ]
    return zlib.crc32(json.dumps([table, plain]).encode())
