"""`linkstream cluster`: IDs for the vectors of a file, with or without a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from linkstream.cli import database_rows, outcome, outputs, screen, stores
from linkstream.cli.options import ClustererOptions, RowOptions, VectorFileOptions
from linkstream.cli.outcome import usage_error
from linkstream.cli.outputs import Advance, progress_bar
from linkstream.cli.screen import STDOUT
from linkstream.cli.signals import until_stopped
from linkstream.io.feeding import Piece, feed, naming_rows

if TYPE_CHECKING:
    from linkstream.clusterer import Links
    from linkstream.engine.contract import Decision
    from linkstream.io import Source
    from linkstream.store import Store

SHOWN = 20


def cluster(
    file: Annotated[
        str,
        "Vectors, one a row: .npy, .npz, .parquet, .arrow, .jsonl, .csv, or - for stdin; or an "
        "address, postgresql:// or qdrant://.",
    ],
    *,
    clusterer: ClustererOptions,
    store: Annotated[Path | None, "Keep the vectors in this store, made if it is missing."] = None,
    vectors: VectorFileOptions,
    kept: RowOptions,
    source: Annotated[str, "Name of the rows; under another name they are added again."] = "",
    live: Annotated[bool, "All rows are new: add them as they arrive, without a check."] = False,
    output: Annotated[
        str | None, "Write IDs to a .npy, decisions to a .jsonl, or decisions to stdout: -."
    ] = None,
    save: Annotated[Path | None, "Without a store: save the clusterer to this file."] = None,
    write_back: Annotated[str | None, "Database column or field for each row's current ID."] = None,
) -> None:
    """Give every vector of a file an ID, in order of arrival.

    Thresholds belong to an encoder and have no defaults: give all three, or a preset. An existing
    store has its own. With a store each row is added once: after a kill, or when the file has
    grown, the same command continues where it stopped. Without a store, memory is bounded by the
    subclusters, and a pipe gets JSON lines, one decision each. With --write-back, rows of a
    database get their current IDs; after corrections, the same command writes them again.

    Example: linkstream cluster voices.npy --store people.links --preset ge2e-windows
    """
    outputs.check(output)
    _check_files(store, save, kept)
    if write_back is not None:
        database_rows.check_write_back(file, write_back, store)
    with vectors.open(file, kept) as rows:
        clusterer.check_dimension(rows)
        if store is None:
            _without_store(rows, clusterer, output=output, save=save)
            return
        if write_back is not None:
            database_rows.prepare_write_back(rows, write_back, live=live)
        with stores.removed_if_empty(store):
            opened = stores.open_store(store, clusterer)
            _into_store(rows, opened, store, name=source, live=live, output=output)


def _check_files(store: Path | None, save: Path | None, kept: RowOptions) -> None:
    if save is not None:
        screen.check_writable(save)
    if store is not None and save is not None:
        raise usage_error(
            "--store and --save", "one of them", "Leave --save out: a store is saved all the time."
        )
    if store is None and kept.given() is not None:
        raise usage_error(
            f"{kept.given()} without --store", "a store to keep it in", "Add --store people.links."
        )


# Without a store: memory does not grow with the rows


def _without_store(
    source: Source, options: ClustererOptions, *, output: str | None, save: Path | None
) -> None:
    if output is None and screen.speaks_json():
        output = STDOUT
    links = new_clusterer(options, track_vectors=save is not None)
    with progress_bar("clustering", source, output=output) as advance:
        if output is None:
            _add(links, source, lambda _: None, advance)
        elif output.endswith(".npy"):
            with outputs.array(output) as append:
                _add(links, source, append, advance)
        else:
            _write_decisions(links, source, output, advance)
    if save is not None:
        links.save(save)
        also = outcome.current().changed
        outcome.note_change(f"{save} is written" if also is None else f"{also}, and so is {save}")
    if output is None:
        _show_clusters(links)


def new_clusterer(options: ClustererOptions, **defaults: Any) -> Links:
    """Return a clusterer with the thresholds, the preset and the settings that were given."""
    from linkstream.clusterer import Links

    settings = defaults | options.settings()
    thresholds = options.thresholds()
    if thresholds is None:
        return Links.preset(options.preset or "", **settings)
    return Links.from_thresholds(thresholds, **settings)


def _add(links: Links, source: Source, append: Callable[[Any], None], advance: Advance) -> None:
    for block in source:
        with naming_rows(source.name, block.first_row):
            append(links.add_many(block.vectors))
        advance(len(block))


def _write_decisions(links: Links, source: Source, output: str, advance: Advance) -> None:
    with outputs.lines(output) as write:
        for block in source:
            for row, vector in enumerate(block.vectors, start=block.first_row):
                with naming_rows(source.name, row):
                    decision = links.add(vector)
                write(_decision_record(decision))
            advance(len(block))


def _decision_record(decision: Decision) -> dict[str, Any]:
    names = ("cluster", "subcluster", "kind", "similarity", "threshold")
    return {"vector": decision.sequence} | {
        name: getattr(decision, name) for name in (*names, "cluster_margin", "probability")
    }


def _show_clusters(links: Links) -> None:
    console = screen.console()
    console.print(
        f"{links.n_vectors:,} vectors, {links.n_subclusters:,} subclusters, "
        f"{links.n_clusters:,} clusters\n"
    )
    clusters = sorted(links.clusters(), key=lambda c: (-c.size, c.id))
    rows = screen.table("The biggest clusters", "ID", "vectors", "subclusters", "first", "last")
    for c in clusters[:SHOWN]:
        numbers = (c.id, c.size, len(c.subclusters), c.first_seen, c.last_seen)
        rows.add_row(*map(str, numbers))
    console.print(rows)
    console.print("\nFor the ID of every vector: --output ids.npy, or --output - for JSON lines.")
    console.print("To keep them, and to continue another day: --store people.links.")


# Into a store: each row once


def _into_store(
    source: Source, store: Store, path: Path, *, name: str, live: bool, output: str | None
) -> None:
    """Add the rows of a source to a store, report it, and close the store."""
    there = fresh = 0
    with ExitStack() as stack:
        stack.enter_context(stores.noting_rows(store, path))
        stack.enter_context(store.step(outcome.current().command))
        database_rows.check_labels(store, source)
        write = stack.enter_context(_piece_writer(output, store))
        stopped = stack.enter_context(until_stopped())
        advance = stack.enter_context(progress_bar("clustering", source, output=output))
        for piece in feed(store, source, name=name, live=live, stopped=stopped):
            if piece.fresh and there and not fresh:
                screen.note(f"{source.name}: resuming at row {there:,}")
            there, fresh = piece.end, fresh + len(piece.ids) * piece.fresh
            write(piece)
            advance(len(piece.ids))
        if stopped():
            raise KeyboardInterrupt
        written = database_rows.write_back(store, source, name, stopped)
        record = {"store": str(path), **_record(store, source, rows=there, fresh=fresh)}
    if output is None:
        _show_result(record, written)


@contextmanager
def _piece_writer(output: str | None, store: Store) -> Iterator[Callable[[Piece], None]]:
    if output is None:
        yield lambda _: None
    elif output.endswith(".npy"):
        with outputs.array(output) as append:
            yield lambda piece: append(piece.ids)
    else:
        with outputs.lines(output) as write:

            def write_rows(piece: Piece) -> None:
                sure = store.how_sure(piece.first_vector, len(piece.ids))
                for place, cluster in enumerate(piece.ids.tolist()):
                    row, vector = piece.first_row + place, piece.first_vector + place
                    told = {name: column[place] for name, column in sure.items()}
                    write({"row": row, "vector": vector, "cluster": cluster, **told})

            yield write_rows


def _record(store: Store, source: Source, *, rows: int, fresh: int) -> dict[str, Any]:
    taken = {"rows": rows, "taken": fresh, "there_before": rows - fresh, "vectors": store.n_vectors}
    counts = {"subclusters": store.n_subclusters, "clusters": store.n_clusters}
    return {"source": source.name, **taken, **counts}


def _show_result(record: dict[str, Any], written: int | None) -> None:
    words = (
        f"{record['source']}: {record['rows']:,} rows, {record['taken']:,} of them new. "
        f"{record['store']}: {record['vectors']:,} vectors, {record['clusters']:,} clusters."
    )
    if written is not None:
        record |= {"written_back": written}
        words += f" IDs of {written:,} rows are written back."
    screen.answer(record, words)
