"""Stores, opened for a command, and what people call a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from linkstream.cli import RUNNING, screen
from linkstream.errors import StoreError

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

    All that the command does to it is one step for `linkstream undo`.
    """
    from linkstream.store import Store

    with Store.open(path) as store, store.step(RUNNING.get()):
        yield store


def compact(store: Store) -> None:
    """Forget for good; where readers hold the log, say so and break off: much is done already."""
    try:
        store.compact()
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        screen.note(f"error: {error}")
        raise typer.Exit(1) from None


def cluster_id(store: Store, words: str) -> int:
    """The live cluster that a person means: by its ID, one that it had, or its name."""
    if words.lstrip("-").isdecimal():
        live = store.resolve(int(words))
        return int(words) if live < 0 else live
    return store.named(words)


def called(store: Store, cluster: int) -> str:
    """A cluster as people know it: its ID, and its name if it has one."""
    name = next((c.name for c in store.clusters() if c.id == cluster), None)
    return f"cluster {cluster}" if name is None else f"cluster {cluster} ({name})"
