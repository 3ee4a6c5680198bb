"""Copying: a backup, while others go on."""

from __future__ import annotations

import contextlib
import sqlite3
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
    with (
        file.appearing(target) as name,
        file.guarded(path),
        contextlib.closing(file.connect(path, read_only=True)) as source,
        contextlib.closing(sqlite3.connect(str(name))) as copy,
    ):
        source.backup(copy)
