"""`linkstream watch`: files of vectors, taken as they arrive in a folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstream.cli import call, choosing, ending, screen
from linkstream.cli.options import (
    ClusterSimilarity,
    Column,
    Dimension,
    Evidence,
    Heal,
    Key,
    MaxIdle,
    MaxSubclusters,
    NoTrack,
    PairSimilarityMax,
    Payload,
    Preset,
    SubclusterSimilarity,
)
from linkstream.cli.phrasing import spoken
from linkstream.cli.stopping import until_stopped
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.store import Store

SUFFIXES = (
    *(".npy", ".npz", ".parquet", ".arrow", ".feather"),
    *(".jsonl", ".ndjson", ".csv", ".f32", ".raw", ".bin"),
)

Mark = tuple[int, int]  # size and time of the last change: what tells that a file has changed


def watch(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files arrive.")],
    store: Annotated[Path, typer.Option(help="The store; made if it is not there.")],
    cluster_similarity: ClusterSimilarity = None,
    subcluster_similarity: SubclusterSimilarity = None,
    pair_similarity_max: PairSimilarityMax = None,
    preset: Preset = None,
    evidence: Evidence = None,
    heal: Heal = None,
    no_track: NoTrack = False,
    max_subclusters: MaxSubclusters = None,
    max_idle: MaxIdle = None,
    column: Column = None,
    key: Key = None,
    dimension: Dimension = None,
    payload: Payload = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take what is there and end, as for cron.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.01, help="Seconds between two looks.")] = 1.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON lines, as into a pipe.")
    ] = False,
) -> None:
    """Take files of vectors as they arrive in a folder.

    A file is taken when two looks find it unchanged, the oldest first; hidden files and other
    endings are left alone. The store remembers which rows of which file it has: after a restart
    nothing is taken twice, and a file that grows goes on with its new rows. A file that cannot be
    used is told and left until it changes; with --once the exit code is then 2, or 6 if rows were
    taken. Ctrl-C ends it.

    Example: linkstream watch arrivals --store people.links --once --every 0.1
    """
    if not folder.is_dir():
        raise ArgumentError(
            f"{str(folder)!r} is not a folder",
            expected="a folder that is there",
            remedy="Make it first.",
        )
    from linkstream.cli import storing

    three = (cluster_similarity, subcluster_similarity, pair_similarity_max)
    chosen = choosing.options(
        evidence=evidence,
        heal=heal,
        track_vectors=False if no_track else None,
        max_subclusters=max_subclusters,
        max_idle=max_idle,
    )
    where = {"column": column, "key": key, "dimension": dimension}
    where["payload"] = () if payload is None else payload.split(",")  # type: ignore[assignment]
    opened = storing.open_store(store, preset, three, chosen)
    with storing.new_rows(opened, store), until_stopped(endless=True) as stopped:
        look = _Look(opened, where, stopped, as_json=as_json)
        failed = _once(folder, look, every) if once else _on_and_on(folder, look, every)
    if once and failed:
        raise typer.Exit(ending.REFUSED if call.now().kept is None else ending.PARTLY)


class _Look:
    """Takes files, and knows which it has seen and how they were then."""

    def __init__(
        self,
        store: Store,
        where: dict[str, Any],
        stopped: Callable[[], bool],
        *,
        as_json: bool,
    ) -> None:
        self.stopped = stopped
        self.failed = 0
        self._store, self._where = store, where
        self._as_json = as_json
        self._done: dict[str, Mark] = {}

    def waiting(self, folder: Path) -> dict[str, Mark]:
        """Files that were not taken yet as they are now, the oldest first."""
        seen = {path.name: _mark(path) for path in folder.iterdir() if _of_interest(path)}
        changed = {
            name: mark for name, mark in seen.items() if mark and self._done.get(name) != mark
        }
        return dict(sorted(changed.items(), key=lambda item: (item[1][1], item[0])))

    def take(self, path: Path, mark: Mark) -> None:
        """Bring a file into the store; one that cannot be used is told and left."""
        from linkstream.cli.feeding import feed
        from linkstream.io import open_vectors

        rows = taken = 0
        try:
            with open_vectors(path, **self._where) as source, self._store.step("watch"):
                for piece in feed(self._store, source, name=path.name, stopped=self.stopped):
                    rows, taken = piece.end, taken + len(piece.ids) * piece.fresh
        except (ArgumentError, OSError) as error:
            self.failed += 1
            self._done[path.name] = mark
            told = spoken(error)
            record = {"file": path.name, "rows": rows, "taken": taken, "error": told}
            kept = f" {taken:,} rows before it are kept." if taken else ""
            screen.answer(record, f"{path.name}: left alone: {told}{kept}", as_json=self._as_json)
            return
        if self.stopped():
            return
        self._done[path.name] = mark
        record = {"file": path.name, "rows": rows, "taken": taken}
        figures = {"vectors": self._store.n_vectors, "clusters": self._store.n_clusters}
        words = f"{path.name}: {rows:,} rows, {taken:,} new; {figures['clusters']:,} clusters"
        screen.answer(record | figures, words, as_json=self._as_json)


def _once(folder: Path, look: _Look, every: float) -> int:
    before = look.waiting(folder)
    if before:
        time.sleep(every)
    for name, mark in look.waiting(folder).items():
        if before.get(name) == mark and not look.stopped():
            look.take(folder / name, mark)
    return look.failed


def _on_and_on(folder: Path, look: _Look, every: float) -> int:
    before: dict[str, Mark] = {}
    while not look.stopped():
        now = look.waiting(folder)
        for name, mark in now.items():
            if before.get(name) == mark and not look.stopped():
                look.take(folder / name, mark)
        sys.stdout.flush()
        before = now
        time.sleep(every)
    return look.failed


def _of_interest(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def _mark(path: Path) -> Mark | None:
    """Size and time of a file; None where it is gone, or no file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return (state.st_size, state.st_mtime_ns) if path.is_file() else None
