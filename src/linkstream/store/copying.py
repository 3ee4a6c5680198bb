"""Copying: a backup, while others go on."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

from linkstream.errors import ArgumentError
from linkstream.store import file


def backup(path: Path, target: Path) -> None:
    """A copy of one moment, which appears under its name only when it is whole."""
    if target.exists():
        raise ArgumentError(
            f"{target}: a file that is there",
            expected="a path that is free",
            remedy="Remove it first, or give another path.",
        )
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise file.unusable(target, error) from None
    os.close(handle)
    try:
        with (
            file.guarded(path),
            contextlib.closing(file.connect(path, read_only=True)) as source,
            contextlib.closing(sqlite3.connect(name)) as copy,
        ):
            source.backup(copy)
        file.settle(Path(name), target)
    except OSError as error:
        raise file.unusable(target, error) from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name + suffix)
