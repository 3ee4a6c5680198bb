"""Locks: only one writes, and the lock goes with the process that holds it, however that ends."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from linkstream.engine.placing import lock
from linkstream.errors import StoreLockedError
from linkstream.store.file import unusable

_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """The right to write to a store: a lock of the system on a file beside it."""

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
                f"{path}: another writer has it open",
                expected="one writer at a time",
                remedy="Close the other one, or open with read_only=True.",
            ) from None
        self._close = weakref.finalize(self, os.close, handle)  # forgotten is released, too
        _held.add(self)

    def release(self) -> None:
        """Let others write; a second time does nothing."""
        self._close()


def has_writer(path: Path) -> bool:
    """Whether somebody has a store open for writing just now. Leaves no file behind."""
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
    """A forked child must not keep alive what its parent lets go of."""
    for held in list(_held):
        held.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
