"""The writer lock: one process may write; the system releases the lock when it ends."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from linkstream.engine.atomic_files import lock
from linkstream.errors import StoreLockedError
from linkstream.store.file import unusable

_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """A lock of the operating system on a file beside the store."""

    def __init__(self, path: Path) -> None:
        beside = path.with_name(path.name + ".lock")
        try:
            handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise unusable(path, error) from None
        try:
            lock(handle)
        except OSError:
            os.close(handle)
            raise StoreLockedError(
                f"{path}: another writer has the store open",
                expected="one writer at a time",
                remedy="Close the other one, or open with read_only=True.",
            ) from None
        self._close = weakref.finalize(self, os.close, handle)  # also on garbage collection
        _held.add(self)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._close()


def has_writer(path: Path) -> bool:
    """Return whether a process has the store open for writing. Leaves no file behind."""
    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR)
    except OSError:
        return False
    try:
        lock(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _leave_to_parent() -> None:
    """Release the locks that a forked child has inherited."""
    for held in list(_held):
        held.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
