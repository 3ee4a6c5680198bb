"""Clustering into a store: each row once, and on from where it was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkstream.cli import RUNNING, call, choosing, opening, outputs, places, screen
from linkstream.cli.choosing import Three
from linkstream.cli.feeding import Piece, feed
from linkstream.cli.progress import of_source
from linkstream.cli.stopping import until_stopped
from linkstream.errors import LinkstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkstream.io import Source
    from linkstream.store import Store


def open_store(path: Path, preset: str | None, three: Three, options: dict[str, Any]) -> Store:
    """The store at a path, or a new one with these thresholds."""
    from linkstream.store import Store

    thresholds = choosing.of_store(preset, three)
    return Store.open(path, thresholds=thresholds, preset=preset, **options)


@contextmanager
def made_for_rows(path: Path) -> Iterator[None]:
    """Remove a store that is made within, if the work fails before any row is taken."""
    there = path.exists()
    try:
        yield
    except BaseException:
        if not there and call.now().kept is None:
            opening.remove_if_empty(path)
        raise


@contextmanager
def new_rows(store: Store, path: Path) -> Iterator[None]:
    """Note how many rows a store has taken within, and close the store."""
    with store:
        before = store.n_vectors
        try:
            yield
        finally:
            _note_rows(store, path, before)


def _note_rows(store: Store, path: Path, before: int) -> None:
    with suppress(LinkstreamError):  # a store that failed says no more
        taken = store.n_vectors - before
        if taken:
            call.keep(f"{taken:,} new rows are in {path}; the same command goes on after them")


def cluster(
    source: Source,
    opened: Store,
    path: Path,
    *,
    name: str,
    live: bool,
    output: str | None,
) -> None:
    """Bring the rows of a source into a store, from where it was broken off, and tell of it.

    The store is closed in the end.
    """
    there = fresh = 0
    with ExitStack() as stack:
        store = opened
        stack.enter_context(new_rows(store, path))
        stack.enter_context(store.step(RUNNING.get()))
        places.check_labels(store, source)
        write = stack.enter_context(_written(output))
        stopped = stack.enter_context(until_stopped())
        advance = stack.enter_context(of_source("clustering", source, output=output))
        for piece in feed(store, source, name=name, live=live, stopped=stopped):
            if piece.fresh and there and not fresh:
                screen.note(f"{source.name}: resuming at row {there:,}")
            there, fresh = piece.end, fresh + len(piece.ids) * piece.fresh
            write(piece)
            advance(len(piece.ids))
        if stopped():
            raise KeyboardInterrupt
        written = places.write_back(store, source, name, stopped)
        record = {"store": str(path), **_record(store, source, rows=there, fresh=fresh)}
        if written is not None:
            record["written_back"] = written
    if output is None:
        _tell(record)


@contextmanager
def _written(output: str | None) -> Iterator[Callable[[Piece], None]]:
    if output is None:
        yield lambda _: None
    elif output.endswith(".npy"):
        with outputs.array(output) as append:
            yield lambda piece: append(piece.ids)
    else:
        with outputs.lines(output) as write:

            def each(piece: Piece) -> None:
                for place, cluster in enumerate(piece.ids.tolist()):
                    row, vector = piece.first_row + place, piece.first_vector + place
                    write({"row": row, "vector": vector, "cluster": cluster})

            yield each


def _record(store: Store, source: Source, *, rows: int, fresh: int) -> dict[str, Any]:
    return {
        "source": source.name,
        "rows": rows,
        "taken": fresh,
        "there_before": rows - fresh,
        "vectors": store.n_vectors,
        "subclusters": store.n_subclusters,
        "clusters": store.n_clusters,
    }


def _tell(record: dict[str, Any]) -> None:
    words = (
        f"{record['source']}: {record['rows']:,} rows, {record['taken']:,} of them new. "
        f"{record['store']}: {record['vectors']:,} vectors, {record['clusters']:,} clusters."
    )
    if "written_back" in record:
        words += f" IDs of {record['written_back']:,} rows are written back."
    screen.answer(record, words)
