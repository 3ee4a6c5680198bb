"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from linkstream.errors import ArgumentError


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: Literal["w", "wb"] = "wb") -> Iterator[IO[Any]]:
    """A stream to write to; its file takes its name when all is written and on the disk.

    Where writing fails, what was there under the name before is there still. A link is followed:
    the file it leads to is replaced.

    Raises:
        ArgumentError: no file can be written there; told before anything is.
    """
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.partial")
    try:
        if not stat.S_ISREG(_mode(path)):
            raise ValueError("it is no file")
        stream = partial.open(mode[0].replace("w", "x") + mode[1:], **_as_text(mode))
    except (OSError, ValueError) as error:
        raise _cannot(path, getattr(error, "strerror", None) or str(error)) from None
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _mode(path: Path) -> int:
    """What is there, or a file where nothing is."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return stat.S_IFREG


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:  # a system that does not open folders
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _as_text(mode: str) -> dict[str, Any]:
    return {} if "b" in mode else {"encoding": "utf-8", "newline": ""}


def _cannot(path: Path, why: str) -> ArgumentError:
    return ArgumentError(
        f"{str(path)!r} cannot be written ({why})",
        expected="a file in a folder that is there and may be written to",
        remedy="Make the folder first, or choose another one.",
    )
