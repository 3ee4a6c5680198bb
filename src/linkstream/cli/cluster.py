"""`linkstream cluster`: IDs for the vectors of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from linkstream.cli import screen
from linkstream.clusterer import Links
from linkstream.errors import ArgumentError, VectorError
from linkstream.io import read_vectors

BLOCK = 1024
SHOWN = 20
STDOUT = "-"

Advance = Callable[[int], None]


def cluster(
    file: Annotated[Path, typer.Argument(help="Vectors, one a row: .npy or .npz.")],
    cluster_similarity: Annotated[float | None, typer.Option(help="T_c, in (0, 1).")] = None,
    subcluster_similarity: Annotated[float | None, typer.Option(help="T_s, in (0, 1).")] = None,
    pair_similarity_max: Annotated[float | None, typer.Option(help="T_p, in [T_c², 1].")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Instead of thresholds: an encoder, such as arcface.")
    ] = None,
    evidence: Annotated[
        str | None, typer.Option(help="What decides: nearest or cluster.", show_default="nearest")
    ] = None,
    heal: Annotated[
        str | None, typer.Option(help="Put clusters right on the way: join or settle.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            help="IDs to a .npy, decisions to a .jsonl, or decisions to stdout: -.",
            show_default="a table on a terminal, else -",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Name of the array in a .npz.", show_default="X")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Save the clusterer, to go on later.")] = None,
) -> None:
    """Give every vector of a file an ID, in order of arrival.

    Thresholds belong to an encoder and have no defaults: give all three, or a preset. Into a pipe
    go JSON lines, one decision each: vector, cluster, subcluster, kind, similarity, threshold.

    Example: linkstream cluster voices.npy --cluster-similarity 0.766
    --subcluster-similarity 0.645 --pair-similarity-max 0.738 --output ids.npy
    """
    if output is None and screen.speaks_json(False):
        output = STDOUT
    _check_target(output, (".npy", ".jsonl"))
    if save is not None:
        _check_target(str(save), None)
    thresholds = (cluster_similarity, subcluster_similarity, pair_similarity_max)
    links = _clusterer(preset, thresholds, {"evidence": evidence, "heal": heal})
    X = read_vectors(file, key=key)
    with _progress(len(X)) as advance:
        if output is None:
            _ids(links, X, file, advance)
        elif output.endswith(".npy"):
            _write_ids(links, X, file, Path(output), advance)
        else:
            _write_decisions(links, X, file, output, advance)
    if save is not None:
        links.save(save)
    if output is None:
        _tell(links)


def _clusterer(
    preset: str | None, thresholds: tuple[float | None, ...], options: dict[str, Any]
) -> Links:
    """The clusterer that thresholds or a preset stand for; options of None are left out."""
    given = {name: value for name, value in options.items() if value is not None}
    if preset is not None and not any(thresholds):
        return Links.preset(preset, **given)
    t_c, t_s, t_p = thresholds
    if preset is not None or t_c is None or t_s is None or t_p is None:
        raise ArgumentError(
            f"preset {preset!r} and thresholds {thresholds}",
            expected="all three thresholds, or a preset and none of them",
            remedy="linkstream tune finds thresholds; docs/tuning.md lists the presets.",
        )
    return Links(t_c, t_s, t_p, **given)


def _check_target(output: str | None, suffixes: tuple[str, ...] | None) -> None:
    """Refuse a target that cannot be written, before the work and not after it."""
    if output is None or output == STDOUT:
        return
    if suffixes and Path(output).suffix not in suffixes:
        raise ArgumentError(
            f"output {output!r}",
            expected=f"a name that ends in {' or '.join(suffixes)}, or - for stdout",
            remedy="Try --output ids.jsonl.",
        )
    screen.check_writable(Path(output))


def _ids(links: Links, X: npt.NDArray[Any], file: Path, advance: Advance) -> npt.NDArray[np.int64]:
    ids = np.empty(len(X), dtype=np.int64)
    for start in range(0, len(X), BLOCK):
        block = X[start : start + BLOCK]
        with _row_of(file, start):
            ids[start : start + len(block)] = links.add_many(block)
        advance(len(block))
    return ids


def _write_ids(links: Links, X: npt.NDArray[Any], file: Path, path: Path, advance: Advance) -> None:
    with _whole_file(path, "wb") as stream:
        np.save(stream, _ids(links, X, file, advance), allow_pickle=False)


def _write_decisions(
    links: Links, X: npt.NDArray[Any], file: Path, output: str, advance: Advance
) -> None:
    if output == STDOUT:
        _decisions(links, X, file, None, advance)
        return
    with _whole_file(Path(output), "w") as stream:
        _decisions(links, X, file, stream, advance)


def _decisions(
    links: Links, X: npt.NDArray[Any], file: Path, to: IO[str] | None, advance: Advance
) -> None:
    for number, vector in enumerate(X):
        with _row_of(file, number):
            decision = links.add(vector)
        record = {
            "vector": decision.sequence,
            "cluster": decision.cluster,
            "subcluster": decision.subcluster,
            "kind": decision.kind,
            "similarity": decision.similarity,
            "threshold": decision.threshold,
        }
        screen.write_json(record, to)
        advance(1)


@contextmanager
def _row_of(file: Path, start: int) -> Iterator[None]:
    """Errors name the row of the file, not that of the block."""
    try:
        yield
    except VectorError as error:
        row = start + (error.row or 0)
        raise VectorError(
            f"{file}, row {row}: {error.seen.removeprefix(f'row {error.row} ')}",
            expected=error.expected,
            remedy="Drop or mend such rows and run again.",
            row=row,
        ) from error


@contextmanager
def _whole_file(path: Path, mode: str) -> Iterator[IO[Any]]:
    """A file that appears under its name only when it is complete."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open(mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _progress(total: int) -> Iterator[Advance]:
    console = screen.people(stderr=True)
    columns = (TextColumn("clustering"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("clustering", total=total)
        yield lambda n: progress.advance(task, n)


def _tell(links: Links) -> None:
    console = screen.people(stderr=False)
    console.print(
        f"{links.n_vectors} vectors, {links.n_subclusters} subclusters, "
        f"{links.n_clusters} clusters\n"
    )
    clusters = sorted(links.clusters(), key=lambda c: (-c.size, c.id))
    rows = screen.table("The biggest clusters", "ID", "vectors", "subclusters", "first", "last")
    for c in clusters[:SHOWN]:
        numbers = (c.id, c.size, len(c.subclusters), c.first_seen, c.last_seen)
        rows.add_row(*map(str, numbers))
    console.print(rows)
    console.print("\nFor the ID of every vector: --output ids.npy, or --output - for JSON lines.")
