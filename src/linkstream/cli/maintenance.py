"""Commands that maintain store files: verify, repair, backup, export, import, compact."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument

from linkstream.cli import outcome, screen, stores
from linkstream.cli.options import StorePath, Yes
from linkstream.cli.outcome import usage_error
from linkstream.cli.screen import STDOUT


def verify(store: StorePath) -> None:
    """Read all of a store and decide everything again.

    Every checksum is tested, and every stored answer is compared with the one decided now. If
    anything differs, the exit code is 5 and the message names the place. It takes about as long as
    adding the vectors did.

    Example: linkstream verify people.links
    """
    with stores.reading(store) as opened:
        found = opened.verify()
    names = ("operations", "vectors", "events", "snapshots")
    record = {"sound": True} | {name: getattr(found, name) for name in names}
    words = (
        f"Sound: {found.operations:,} operations, {found.vectors:,} vectors, "
        f"{found.events:,} events and {found.snapshots} snapshots read and decided again."
    )
    screen.answer(record, words)


def repair(
    store: StorePath,
    copy: Annotated[Path | None, "Where to copy the damaged files; else beside the store."] = None,
) -> None:
    """Save what can be read of a damaged store, after copying it.

    The files are copied before anything is removed. The repaired store holds the longest sound
    beginning, with every answer as it was given; it opens and verifies. If nothing can be saved, or
    memory or the disk runs out, the exit code says so and nothing was changed.

    Example: linkstream repair people.links
    """
    from linkstream.store import repair as repair_store

    with outcome.note_if_stopped(f"the files of {store}; run repair again to be sure of it"):
        done = repair_store(store, copy=copy)
    words = f"Saved: {done}. The files as they were: {done.copy}."
    screen.answer(done.to_dict(), words)


def backup(
    store: StorePath,
    target: Annotated[Path, Argument(metavar="TARGET", help="A file that does not exist.")],
) -> None:
    """Copy a store while it is in use.

    The copy is a store, and holds everything that was acknowledged when it began. An existing file
    is never replaced.

    Example: linkstream backup people.links people-monday.links
    """
    if str(target) == STDOUT:
        raise usage_error(
            "a copy to stdout", "the name of a new file", f"Try {store.stem}-copy{store.suffix}."
        )
    with stores.reading(store) as opened:
        opened.backup(target)
        outcome.note_change(f"{target} is written")
        record = {"backup": str(target), "vectors": opened.n_vectors}
        words = f"Copied to {target}: {opened.n_vectors:,} vectors."
    screen.answer(record, words)


def export(
    store: StorePath,
    target: Annotated[
        str,
        Argument(metavar="TARGET", help="A .parquet, .npz, .jsonl, .csv, stdout as -, or folder."),
    ],
    vectors: Annotated[bool, "In a table: the vectors themselves, too."] = False,
    packing: Annotated[str, "Format of the vectors in a folder: npz or parquet."] = "npz",
    force: Annotated[bool, "Replace an existing table."] = False,
    clusters: Annotated[bool, "A table with one row for each cluster instead."] = False,
) -> None:
    """Write a store as plain files that other programs read.

    A table has one row for each vector: its number, cluster, name and payload. A folder holds
    everything, and `linkstream import` makes the same store from it. With --clusters, the table has
    one row for each cluster: its name, size, first and last vector, and its newest vectors.

    Example: linkstream export people.links people.jsonl
    """
    from linkstream.io import export as export_store
    from linkstream.io import export_lines

    _check_target(target, force=force)
    if clusters:
        _export_clusters(store, target, vectors=vectors)
        return
    with stores.reading(store) as opened:
        if target == STDOUT:
            for line in export_lines(opened, vectors=vectors):
                sys.stdout.write(line)
            return
        export_store(opened, target, vectors=vectors, packing=packing)
        outcome.note_change(f"{target} is written")
        record = {"target": target, "vectors": opened.n_vectors}
        words = f"Written: {target}, {opened.n_vectors:,} vectors."
    screen.answer(record, words)


def _export_clusters(store: Path, target: str, *, vectors: bool) -> None:
    from linkstream.io import export_clusters

    if vectors or target == STDOUT:
        seen = f"--clusters with {'--vectors' if vectors else 'stdout'}"
        raise usage_error(seen, "--clusters and a file", "Try clusters.csv.")
    with stores.reading(store) as opened:
        export_clusters(opened, target)
        outcome.note_change(f"{target} is written")
        record = {"target": target, "clusters": opened.n_clusters}
        words = f"Written: {target}, {opened.n_clusters:,} clusters."
    screen.answer(record, words)


def _check_target(target: str, *, force: bool) -> None:
    """Raise ArgumentError for an unknown suffix or an existing file."""
    from linkstream.io.writing import SUFFIXES

    if target == STDOUT:
        return
    path = Path(target)
    folder = target.endswith(("/", os.sep))
    if not folder and path.suffix and path.suffix.lower() not in SUFFIXES:
        raise usage_error(
            f"a target that ends in {path.suffix}",
            f"{', '.join(SUFFIXES)}; or a folder",
            f"Try {path.with_suffix('.csv')} for a spreadsheet, or {target}/ for a folder.",
        )
    if path.is_file() and not force:
        raise usage_error(
            f"{target} exists already", "a new name, or --force", "Add --force to replace it."
        )


def import_(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="What export wrote.")], store: StorePath
) -> None:
    """Make a store from files that export wrote.

    Every call is repeated in its order and must give the same answer: the new store is the same,
    and gives the same IDs from now on. The store must not exist yet.

    Example: linkstream import people-files restored.links
    """
    from linkstream.io import import_store

    _check_folder(folder, store)
    import_store(folder, store)
    outcome.note_change(f"{store} is made")
    with stores.reading(store) as opened:
        record = {"store": str(store), "vectors": opened.n_vectors, "clusters": opened.n_clusters}
    words = f"Made: {store}, {record['vectors']:,} vectors in {record['clusters']:,} clusters."
    screen.answer(record, words)


def _check_folder(folder: Path, store: Path) -> None:
    """Raise ArgumentError if export did not write this folder."""
    if folder.is_dir() and (folder / "store.json").is_file():
        return
    missing = "is not a folder" if folder.exists() else "does not exist"
    cluster = f"linkstream cluster {folder} --store {store} --preset NAME"
    raise usage_error(
        f"{folder} {'has no store.json' if folder.is_dir() else missing}",
        "a folder that linkstream export wrote",
        f"To cluster the vectors of a file: {cluster}." if folder.is_file() else "Check it.",
    )


def compact(store: StorePath, yes: Yes = False) -> None:
    """Erase removed vectors from the disk, and shrink the file.

    No byte of removed or forgotten vectors and their payloads is left in the files. Earlier changes
    cannot be undone afterwards; IDs and names stay as they are. The command asks first; without a
    terminal, --yes is needed.

    Example: linkstream compact people.links --yes
    """
    with stores.reading(store):  # fail before asking if it is no store
        pass
    stores.confirm(f"erase what was removed from {store}, and end all undo before it", yes=yes)
    with stores.writing(store) as opened:
        before = int(opened.info()["bytes"])
        stores.compact(opened, store)
        after = int(opened.info()["bytes"])
    words = f"Compacted: {before:,} bytes before, {after:,} now."
    screen.answer({"bytes_before": before, "bytes": after}, words)
