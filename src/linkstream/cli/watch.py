"""`linkstream watch`: add files of vectors as they arrive in a folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from linkstream.cli import outcome, screen, stores
from linkstream.cli.options import ClustererOptions, RowOptions, VectorFileOptions
from linkstream.cli.outcome import usage_error
from linkstream.cli.phrasing import sentence
from linkstream.cli.signals import until_stopped
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.io import Source
    from linkstream.store import Store

SUFFIXES = (
    *(".npy", ".npz", ".parquet", ".arrow", ".feather"),
    *(".jsonl", ".ndjson", ".csv", ".f32", ".raw", ".bin"),
)

Version = tuple[int, int]  # size and time of the last change of a file


def watch(
    folder: Annotated[Path, Argument(metavar="DIR", help="Where the files arrive.")],
    store: Annotated[Path, Option(help="The store, made if it is missing.")],
    *,
    clusterer: ClustererOptions,
    vectors: VectorFileOptions,
    kept: RowOptions,
    once: Annotated[bool, "Add the files that are there and end, as for cron."] = False,
    every: Annotated[float, Option(min=0.01, help="Seconds between two looks.")] = 1.0,
) -> None:
    """Add files of vectors as they arrive in a folder.

    A file is added when two looks find it unchanged, the oldest first. Hidden files and files with
    other suffixes are left alone. The store knows which rows of which file it has: after a restart
    nothing is added twice, and a file that grows continues with its new rows. A file that cannot be
    used is reported and left until it changes; with --once the exit code is then 2, or 6 if rows
    were added. Ctrl-C ends the command.

    Example: linkstream watch arrivals --store people.links --once --every 0.1
    """
    if not folder.is_dir():
        raise usage_error(
            f"{str(folder)!r} is not a folder", "an existing folder", "Make it first."
        )
    opened = stores.open_store(store, clusterer)
    with stores.noting_rows(opened, store), until_stopped(endless=True) as stopped:
        watcher = _Watcher(opened, lambda path: vectors.open(path, kept), stopped)
        _watch(folder, watcher, every, once=once)
    if once and watcher.failed:
        raise typer.Exit(outcome.REFUSED if outcome.current().changed is None else outcome.PARTLY)


class _Watcher:
    """Adds files, and knows the version of each file that it has added."""

    def __init__(
        self, store: Store, read: Callable[[Path], Source], stopped: Callable[[], bool]
    ) -> None:
        self.stopped = stopped
        self.failed = 0
        self._store, self._read = store, read
        self._done: dict[str, Version] = {}

    def waiting(self, folder: Path) -> dict[str, Version]:
        """Return the files whose present version was not added yet, the oldest first."""
        seen = {path.name: _version(path) for path in folder.iterdir() if _of_interest(path)}
        new = {
            name: found for name, found in seen.items() if found and self._done.get(name) != found
        }
        return dict(sorted(new.items(), key=lambda item: (item[1][1], item[0])))

    def take(self, path: Path, version: Version) -> None:
        """Add a file to the store; report a file that cannot be used."""
        from linkstream.io.feeding import feed

        rows = taken = 0
        error: Exception | None = None
        try:
            with self._read(path) as source, self._store.step("watch"):
                for piece in feed(self._store, source, name=path.name, stopped=self.stopped):
                    rows, taken = piece.end, taken + len(piece.ids) * piece.fresh
        except (ArgumentError, OSError) as failure:
            error = failure
        if error is None and self.stopped():
            return
        self._done[path.name] = version
        self._report({"file": path.name, "rows": rows, "taken": taken}, error)

    def _report(self, record: dict[str, Any], error: Exception | None) -> None:
        name, rows, taken = record.values()
        if error is not None:
            self.failed += 1
            reason = sentence(error)
            kept = f" {taken:,} rows before it are kept." if taken else ""
            screen.answer(record | {"error": reason}, f"{name}: left alone: {reason}{kept}")
            return
        record |= {"vectors": self._store.n_vectors, "clusters": self._store.n_clusters}
        screen.answer(
            record, f"{name}: {rows:,} rows, {taken:,} new; {record['clusters']:,} clusters"
        )


def _watch(folder: Path, watcher: _Watcher, every: float, *, once: bool) -> None:
    before = watcher.waiting(folder)
    while not watcher.stopped() and (before or not once):
        time.sleep(every)
        now = watcher.waiting(folder)
        for name, version in now.items():
            if before.get(name) == version and not watcher.stopped():
                watcher.take(folder / name, version)
        sys.stdout.flush()
        if once:
            return
        before = now


def _of_interest(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def _version(path: Path) -> Version | None:
    """Return the size and time of a file; None if it is gone, or no file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return (state.st_size, state.st_mtime_ns) if path.is_file() else None
