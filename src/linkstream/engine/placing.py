"""Placing: a file appears under its name when it is whole; what a kill left over is swept away.

A file is written under a hidden name beside its own, and locked until it is in place. The lock
goes with the process, however that ends: a hidden file that nobody has locked is left over.
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
BESIDE = ("-wal", "-shm", "-journal")  # what SQLite puts beside a file
_LEFT_OVER = re.compile(rf"(\..+\.[a-z0-9_]{{8}}{re.escape(SUFFIX)})({'|'.join(BESIDE)})?")


@contextlib.contextmanager
def hidden(path: Path) -> Iterator[Path]:
    """An empty file beside a path, to be filled and moved; at the end it is gone."""
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
        with contextlib.suppress(OSError):  # another process may have swept it away just now
            lock(handle)
            if os.path.samestat(os.fstat(handle), os.stat(name)):
                return handle, name
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove hidden files in a folder whose process was killed; those in use stay."""
    with contextlib.suppress(OSError):  # it is only tidying
        found = {match[1] for name in os.listdir(folder) if (match := _LEFT_OVER.fullmatch(name))}
        for name in found:
            _sweep(str(folder / name))


def _sweep(name: str) -> None:
    try:
        handle = os.open(name, os.O_RDWR)
    except FileNotFoundError:  # only what lay beside it is left
        _remove(name)
        return
    try:
        lock(handle)
        _remove(name)
    except OSError:
        pass  # somebody is writing it
    finally:
        os.close(handle)


def _remove(name: str) -> None:
    for suffix in ("", *BESIDE):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name + suffix)


def lock(handle: int) -> None:
    """Take the lock of an open file for this process; OSError if another has it."""
    if os.name == "nt":
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    folder = path.is_dir()
    if folder and (os.name == "nt" or not os.access(path, os.R_OK)):
        return  # there is no way to
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, data: bytes) -> None:
    """Put bytes into a file, wholly or not at all, in a way that outlives a power cut."""
    with hidden(path) as name:
        with name.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    sync(path.parent)
