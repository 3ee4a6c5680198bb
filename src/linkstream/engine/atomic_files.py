"""Write files atomically: a file appears under its name only when it is complete.

A file is written under a hidden name in the same folder, and locked until it is renamed. The lock
ends with the process, so a hidden file without a lock was left by a killed process: `sweep` removes
it.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

if os.name == "nt":
    import msvcrt
else:
    import fcntl

SUFFIX = ".linkstream"  # of hidden files
BESIDE = ("-wal", "-shm", "-journal")  # suffixes of the files that SQLite writes beside a file
_LEFT_OVER = re.compile(rf"(\..+\.[a-z0-9_]{{8}}{re.escape(SUFFIX)})({'|'.join(BESIDE)})?")


@contextlib.contextmanager
def hidden(path: Path) -> Iterator[Path]:
    """Yield an empty hidden file in the folder of a path, to fill and rename; then remove it."""
    sweep(path.parent)
    handle, name = _locked(path)
    try:
        yield Path(name)
    finally:
        _remove(name)
        os.close(handle)


def _locked(path: Path) -> tuple[int, str]:
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=SUFFIX, dir=path.parent)
        with contextlib.suppress(OSError):  # another process may have swept the file
            lock(handle)
            if os.path.samestat(os.fstat(handle), os.stat(name)):
                return handle, name
        os.close(handle)


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
        _remove(name)
        return
    try:
        lock(handle)
        _remove(name)
    except OSError:
        pass  # another process is writing the file
    finally:
        os.close(handle)


def _remove(name: str) -> None:
    for suffix in ("", *BESIDE):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name + suffix)


def lock(handle: int) -> None:
    """Lock an open file for this process; raise OSError if another process has the lock."""
    if os.name == "nt":
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    folder = path.is_dir()
    if folder and (os.name == "nt" or not os.access(path, os.R_OK)):
        return  # not possible for folders there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, data: bytes) -> None:
    """Write bytes to a file completely or not at all, so that they survive a power failure."""
    with hidden(path) as name:
        with name.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    sync(path.parent)
