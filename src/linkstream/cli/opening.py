"""Stores, opened for a command, and what people call a cluster."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from linkstream.cli import RUNNING, call
from linkstream.cli.stopping import until_stopped
from linkstream.cli.words import harmless
from linkstream.errors import ArgumentError, LinkstreamError, StoreError

if TYPE_CHECKING:
    from linkstream.store import Store


@contextmanager
def reading(path: Path) -> Iterator[Store]:
    """A store to look at; others may write to it meanwhile."""
    from linkstream.store import Store

    with Store.open(path, read_only=True) as store:
        yield store


@contextmanager
def writing(path: Path) -> Iterator[Store]:
    """A store that is there, to be changed; no other process may.

    All that the command does to it is one step for `linkstream undo`. Ctrl-C lets a change that has
    begun end. What was changed is noted, whatever happens next.
    """
    from linkstream.store import Store

    with until_stopped(), Store.open(path) as store, store.step(RUNNING.get()):
        before = store.journal.n_operations
        try:
            yield store
        finally:
            with contextlib.suppress(LinkstreamError):  # a store that failed says no more
                done = store.journal.n_operations - before
                if done:
                    also = call.now().kept
                    words = f"{done:,} change{'s' * (done > 1)} made to {path}"
                    call.keep(words if also is None else f"{words}; {also}")


def compact(store: Store, path: Path) -> None:
    """Erase for good what was removed; where readers hold the log, that is told."""
    try:
        store.compact()
    except StoreError as error:
        if type(error) is StoreError:  # much is done already
            call.keep(f"{path} is compacted, but for its log")
        raise
    except (KeyboardInterrupt, OSError):
        call.keep(f"all of {path}; whether it is compacted, the same command will see")
        raise
    call.keep(f"{path} is compacted")


def confirm(what: str, *, yes: bool) -> None:
    """Ask before something is destroyed; without a terminal to ask on, --yes is needed.

    Raises:
        ArgumentError: there is no terminal, and no --yes.
        typer.Abort: the answer was no.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ArgumentError(
            f"no terminal to ask on whether to {what}",
            expected="--yes",
            remedy="Add --yes to do it without being asked.",
        )
    typer.confirm(f"{harmless(what[:1].upper() + what[1:])}?", abort=True, err=True)


def remove_if_empty(path: Path) -> None:
    """Remove a store that was made for nothing, unless it holds something after all."""
    from linkstream.store import Store
    from linkstream.store.locks import WriterLock

    if not path.is_file():  # it was never made; a lock would leave a file
        return
    with contextlib.suppress(LinkstreamError, OSError):
        lock = WriterLock(path)
        try:
            with Store.open(path, read_only=True) as store:
                empty = store.journal.n_operations == 0
            for suffix in ("", "-wal", "-shm", ".lock") if empty else ():
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        finally:
            lock.release()


def cluster_id(store: Store, words: str) -> int:
    """The live cluster that a person means: by its ID, one that it had, or its name."""
    if words.lstrip("-").isdecimal():
        live = store.resolve(int(words))
        return int(words) if live < 0 else live
    return store.named(words)


def numbered(store: Store, words: str, *, of: str) -> int:
    """The number of a vector or subcluster, or the cluster that a person means."""
    return cluster_id(store, words) if of == "clusters" else number(words)


def number(words: str) -> int:
    """The number of a vector or subcluster."""
    if words.isdecimal():
        return int(words)
    raise ArgumentError(
        f"{words!r}", expected="a number", remedy="linkstream inspect STORE shows numbers."
    )


def called(store: Store, cluster: int) -> str:
    """A cluster as people know it: its ID, and its name if it has one."""
    name = next((c.name for c in store.clusters() if c.id == cluster), None)
    return f"cluster {cluster}" if name is None else f"cluster {cluster} ({name})"
