"""Open stores for a command, and find the cluster or vector that the user means."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from linkstream.cli import outcome
from linkstream.cli.options import ClustererOptions
from linkstream.cli.outcome import usage_error
from linkstream.cli.signals import until_stopped
from linkstream.cli.terminal_text import harmless
from linkstream.errors import LinkstreamError, StoreClosedError, StoreError

if TYPE_CHECKING:
    from linkstream.store import Store


@contextmanager
def reading(path: Path) -> Iterator[Store]:
    """Open a store read-only; other processes may write to it."""
    from linkstream.store import Store

    with Store.open(path, read_only=True) as store:
        yield store


@contextmanager
def writing(path: Path) -> Iterator[Store]:
    """Open an existing store for changes; no other process may write to it.

    All changes are one step for `linkstream undo`. Ctrl-C waits for a change that has begun. The
    number of changes is noted, also if the command fails.
    """
    from linkstream.store import Store

    command, before = outcome.current().command, -1
    try:
        with until_stopped(), Store.open(path) as store, store.step(command):
            before = store.journal.n_operations
            try:
                yield store
            finally:
                with suppress(LinkstreamError):  # a failed store cannot be read
                    _note_changes(path, store.journal.n_operations - before)
    except StoreClosedError:
        with suppress(LinkstreamError, OSError), reading(path) as again:
            outcome.current().unchanged = again.journal.n_operations == before
        raise


def _note_changes(path: Path, done: int) -> None:
    if done:
        also = outcome.current().changed
        words = f"{done:,} change{'s' * (done > 1)} made to {path}"
        outcome.note_change(words if also is None else f"{words}; {also}")


def perform(
    store: Store, verb: str, /, *, own: Mapping[str, Any] | None = None, **arguments: Any
) -> Any:
    """Perform a verb on a store; return what the method of the store returns.

    `own` are arguments that only the method of the store has, such as `step`.
    """
    from linkstream.clusterer.verbs import VERBS

    parsed = VERBS[verb].parse(arguments)
    given = {each.name: getattr(parsed, each.name) for each in fields(parsed)}
    return getattr(store, verb)(**given, **(own or {}))


def compact(store: Store, path: Path) -> None:
    """Erase removed vectors from the disk; note how far it got if that fails."""
    try:
        store.compact()
    except StoreError as error:
        if type(error) is StoreError:  # readers hold the log; the rest is done
            outcome.note_change(f"{path} is compacted, except its log")
        raise
    except (KeyboardInterrupt, OSError):
        outcome.note_change(f"all of {path}; run the same command again to compact it")
        raise
    outcome.note_change(f"{path} is compacted")


def confirm(what: str, *, yes: bool) -> None:
    """Ask before something is destroyed; without a terminal, --yes is needed.

    Raises:
        ArgumentError: there is no terminal, and no --yes.
        typer.Abort: the answer was no.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise usage_error(
            f"no terminal to ask on whether to {what}",
            "--yes",
            "Add --yes to do it without being asked.",
        )
    typer.confirm(f"{harmless(what[:1].upper() + what[1:])}?", abort=True, err=True)


# Stores that rows are added to


def open_store(path: Path, options: ClustererOptions) -> Store:
    """Open the store at a path, or make one with these options."""
    from linkstream.store import Store

    thresholds = options.thresholds_for_store()
    return Store.open(path, thresholds=thresholds, preset=options.preset, **options.settings())


@contextmanager
def removed_if_empty(path: Path) -> Iterator[None]:
    """Remove a store that is made inside the block, if the work fails before any row is added."""
    there = path.exists()
    try:
        yield
    except BaseException:
        if not there and outcome.current().changed is None:
            _remove_if_empty(path)
        raise


def _remove_if_empty(path: Path) -> None:
    from linkstream.store import Store
    from linkstream.store.locks import WriterLock

    if not path.is_file():  # the store was never made, and a lock would leave a file
        return
    with suppress(LinkstreamError, OSError):
        lock = WriterLock(path)
        try:
            with Store.open(path, read_only=True) as store:
                empty = store.journal.n_operations == 0
            for suffix in ("", "-wal", "-shm", ".lock") if empty else ():
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        finally:
            lock.release()


@contextmanager
def noting_rows(
    store: Store, path: Path, then: str = "the same command goes on after them"
) -> Iterator[None]:
    """Note how many rows are added inside the block, and close the store.

    `then` says what to do about them.
    """
    with store:
        before = store.n_vectors
        try:
            yield
        finally:
            with suppress(LinkstreamError):  # a failed store cannot be read
                added = store.n_vectors - before
                if added:
                    also = outcome.current().changed
                    words = f"{added:,} new row{'s are' if added > 1 else ' is'} in {path}; {then}"
                    outcome.note_change(words if also is None else f"{words}; {also}")


# Clusters, vectors and subclusters as they are typed


def cluster_id(store: Store, words: str) -> int:
    """Return the live cluster with this ID, with this earlier ID, or with this name."""
    if words.lstrip("-").isdecimal():
        live = store.resolve(int(words))
        return int(words) if live < 0 else live
    return store.named(words)


def numbered(store: Store, words: str, *, of: str) -> int:
    """Return the number of a vector or subcluster, or the ID of a cluster."""
    if of == "vectors":
        return vector(store, words)
    return cluster_id(store, words) if of == "clusters" else _number(words)


def vector(store: Store, words: str) -> int:
    """Return the number of a vector, given by its number or by its own key.

    Digits alone are a number; `id:` before a key makes digits a key.
    """
    from linkstream.store.own_columns import reference

    meant = reference(words)
    return store.number(meant) if isinstance(meant, str) else meant


def _number(words: str) -> int:
    if words.isdecimal():
        return int(words)
    raise usage_error(f"{words!r}", "a number", "linkstream inspect STORE shows numbers.")


def called(store: Store, cluster: int) -> str:
    """Return a cluster in words: its ID, and its name if it has one."""
    name = store.cluster(cluster).name if store.resolve(cluster) == cluster else None
    return f"cluster {cluster}" if name is None else f"cluster {cluster} ({name})"
