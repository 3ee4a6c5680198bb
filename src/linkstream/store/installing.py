"""Installing: a repaired file takes the place of a store and of its log, whenever a kill comes.

The new file and the old log must never be opened together: SQLite would write the pages of the
one over the other. The log must not go before the new file is there. So a note beside the store
names the new file by its digest before anything is moved. Who opens a store that has such a note
removes the log if the new file is in place, and the note alone if it is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from linkstream.engine import placing
from linkstream.errors import StoreLockedError
from linkstream.store import file
from linkstream.store.locks import WriterLock

_WAITS = 100  # hundredths of a second, for another process to finish


def install(made: Path, path: Path) -> None:
    """Put a whole store in the place of another, and remove the log of the old one."""
    placing.sync(made)
    note = _note(path)
    placing.write(note, _digest(made).encode())
    try:
        os.replace(made, path)
    except BaseException:
        note.unlink(missing_ok=True)
        raise
    placing.sync(path.parent)
    _remove_log(path)


def finish(path: Path) -> None:
    """Finish what a repair that was killed had begun; the caller has the writer's lock."""
    note = _note(path)
    if not note.exists():
        return
    with file.usable(path):
        if _digest(path) == note.read_text():
            _remove_log(path)
        else:
            note.unlink(missing_ok=True)


def finish_for_reader(path: Path) -> None:
    """The same for one without the lock, which is taken for a moment."""
    for _ in range(_WAITS):
        if not _note(path).exists():
            return
        with contextlib.suppress(StoreLockedError):
            lock = WriterLock(path)
            try:
                finish(path)
            finally:
                lock.release()
            return
        time.sleep(0.01)


def _remove_log(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    placing.sync(path.parent)
    _note(path).unlink(missing_ok=True)
    placing.sync(path.parent)


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.repaired")


def _digest(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as opened:
        while block := opened.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()
