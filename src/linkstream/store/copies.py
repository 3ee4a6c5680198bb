"""Copies of a store: backups, and the repaired file that replaces a store and its log.

SQLite must never open the new file together with the old log: it would write the pages of the log
over the new file. The old log must not be removed before the new file has its name. Therefore a
note beside the store holds the digest of the new file before anything is moved. Opening a store
with such a note removes the log if the file has that digest, and only the note if it has not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from pathlib import Path

from linkstream.engine import atomic_files
from linkstream.errors import ArgumentError, StoreLockedError
from linkstream.store import file
from linkstream.store.locks import WriterLock

_WAITS = 100  # hundredths of a second to wait for another process


def backup(path: Path, target: Path) -> None:
    """Copy a store as it is at one moment; the copy gets its name only when it is complete."""
    check_free(target)
    file.appear(target, lambda name: _copy(path, name))


def _copy(path: Path, name: Path) -> None:
    with (
        file.guarded(path),
        contextlib.closing(file.connect(path, read_only=True)) as source,
        contextlib.closing(sqlite3.connect(str(name))) as copy,
    ):
        source.backup(copy)


def check_free(target: Path) -> None:
    """Raise ArgumentError if a file has this name."""
    if target.exists():
        raise ArgumentError(
            f"{target}: the file exists",
            expected="a path without a file",
            remedy="Remove the file first, or give another path.",
        )


def install(made: Path, path: Path) -> None:
    """Replace a store by a new file and remove the log of the old one."""
    atomic_files.sync(made)
    note = _note(path)
    atomic_files.write(note, _digest(made).encode())
    try:
        os.replace(made, path)
    except BaseException:
        note.unlink(missing_ok=True)
        raise
    atomic_files.sync(path.parent)
    _remove_log(path)


def finish_install(path: Path) -> None:
    """Finish the work of a repair that was killed; the caller holds the writer lock."""
    note = _note(path)
    if not note.exists():
        return
    with file.usable(path):
        if _digest(path) == note.read_text():
            _remove_log(path)
        else:
            note.unlink(missing_ok=True)


def finish_install_as_reader(path: Path) -> None:
    """Finish the work of a repair that was killed; take the writer lock for a moment."""
    for _ in range(_WAITS):
        if not _note(path).exists():
            return
        with contextlib.suppress(StoreLockedError):
            lock = WriterLock(path)
            try:
                finish_install(path)
            finally:
                lock.release()
            return
        time.sleep(0.01)


def _remove_log(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    atomic_files.sync(path.parent)
    _note(path).unlink(missing_ok=True)
    atomic_files.sync(path.parent)


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.repaired")


def _digest(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as opened:
        while block := opened.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()
