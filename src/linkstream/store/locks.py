"""The writer lock: one process may write; the system releases the lock when it ends.

All processes must resolve a path in the same way, to use the same lock file.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

from linkstream.engine.atomic_files import lock, unlock
from linkstream.errors import ArgumentError, StoreLockedError
from linkstream.store.file import unusable

_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path without links; raise ArgumentError if it is no path."""
    try:
        if not os.fspath(path):
            raise ValueError("an empty path")
        return Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        if isinstance(error, TypeError) and _is_path(path):
            raise MemoryError("no memory to read a path") from None
        raise ArgumentError(
            f"path={path!r:.80} ({error})",
            expected="the path of a file",
            remedy="Give another path.",
        ) from None


def _is_path(path: Any) -> bool:
    """Return whether `os.fspath` takes a value; without memory it raises TypeError for a path."""
    convert = getattr(type(path), "__fspath__", None)
    try:
        return isinstance(path if convert is None else convert(path), str)
    except TypeError:
        return False


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
        self._handle = handle
        self._close = weakref.finalize(self, os.close, handle)  # also on garbage collection
        _held.add(self)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._close.alive:  # a forked child may not have closed its copy yet
            unlock(self._handle)
        self._close()

    def leave_to_parent(self) -> None:
        """Close the file in a forked child; the parent keeps the lock."""
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
    """Close the locks that a forked child has inherited."""
    for held in list(_held):
        held.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
