"""Write files atomically: a file appears under its name only when it is complete.

A file is written under a hidden name in the same folder, and locked until it is renamed. The lock
ends with the process, so a hidden file without a lock was left by a killed process: `sweep` removes
it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

if os.name == "nt":
    import msvcrt
else:
    import fcntl

T = TypeVar("T")
SUFFIX = ".linkstream"  # of hidden files
BESIDE = ("-wal", "-shm", "-journal")  # suffixes of the files that SQLite writes beside a file
_LEFT_OVER = re.compile(rf"(\..+\.[a-z0-9_]{{8}}{re.escape(SUFFIX)})({'|'.join(BESIDE)})?")


def hidden(path: Path, use: Callable[[Path], T]) -> T:
    """Call a function with an empty hidden file in the folder of a path; then remove the file.

    The function fills the file and renames it. If one allocation fails, no hidden file is left.
    Therefore this is no context manager, which needs memory to end, and does not use
    `tempfile.mkstemp`, which needs memory after it made the file.
    """
    sweep(path.parent)
    handle = -1
    try:
        while handle < 0:  # another process may have swept the file
            names = _names(os.path.abspath(path.with_name(_random_name(path))))
            handle = _locked(names)
        return use(Path(names[0]))
    finally:
        if handle >= 0:
            try:
                _remove(names)
            except MemoryError:  # a single allocation may have failed
                _remove(names)
            os.close(handle)


def _random_name(path: Path) -> str:
    return f".{path.name}.{os.urandom(4).hex()}{SUFFIX}"


def _locked(names: tuple[str, ...]) -> int:
    """Create a file and lock it; return its handle, or -1 if another process has that file."""
    try:
        handle = os.open(names[0], os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return -1
    try:
        lock(handle)
        if os.path.samestat(os.fstat(handle), os.stat(names[0])):
            return handle
    except OSError:
        pass
    except BaseException:
        os.close(handle)
        _remove(names)
        raise
    os.close(handle)
    return -1


def sweep(folder: Path) -> None:
    """Remove hidden files that killed processes left in a folder; keep those in use."""
    with contextlib.suppress(OSError):  # the sweep is optional
        found = {match[1] for name in os.listdir(folder) if (match := _LEFT_OVER.fullmatch(name))}
        for name in found:
            _sweep(str(folder / name))


def _sweep(name: str) -> None:
    try:
        handle = os.open(name, os.O_RDWR)
    except FileNotFoundError:  # only the files of SQLite beside it are left
        _remove(_names(name))
        return
    try:
        lock(handle)
        _remove(_names(name))
    except OSError:
        pass  # another process is writing the file
    finally:
        os.close(handle)


def _names(name: str) -> tuple[str, ...]:
    """Return the name of a hidden file and those of the files that SQLite writes beside it."""
    return name, *(name + suffix for suffix in BESIDE)


def _remove(names: tuple[str, ...]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def lock(handle: int) -> None:
    """Lock an open file for this process; raise OSError if another process has the lock."""
    if os.name == "nt":
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(handle: int) -> None:
    """End the lock of an open file, also for forked children that have inherited the file."""
    if os.name != "nt":  # closing ends it there
        fcntl.flock(handle, fcntl.LOCK_UN)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    name = str(path)  # without memory `os` may raise TypeError for a Path
    folder = os.path.isdir(name)
    if folder and (os.name == "nt" or not os.access(name, os.R_OK)):
        return  # not possible for folders there
    handle = os.open(name, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, data: bytes) -> None:
    """Write bytes to a file completely or not at all, so that they survive a power failure."""

    def replace(name: Path) -> None:
        with name.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)

    hidden(path, replace)
    sync(path.parent)
