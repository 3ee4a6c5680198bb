"""`linkstream diarize`: who spoke when, from embeddings with times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Option

from linkstream.cli import outcome, outputs, screen, stores
from linkstream.cli.cluster import new_clusterer
from linkstream.cli.feeding import naming_rows
from linkstream.cli.options import ClustererOptions, RowOptions, VectorFileOptions
from linkstream.cli.outcome import usage_error

if TYPE_CHECKING:
    from linkstream.adapters.diarization import Diarizer, Turn
    from linkstream.io import Source

SUFFIXES = (".rttm", ".json")
SHOWN = 20

Spans = Iterator[tuple[float, float]]


def diarize(
    file: Annotated[
        str, "Embeddings, one a row, in order of time: .npz, .parquet, .arrow, .jsonl, .csv, or -."
    ],
    *,
    clusterer: ClustererOptions,
    store: Annotated[
        Path | None, "Keep the speakers in this store, for the next recording."
    ] = None,
    vectors: VectorFileOptions,
    times: Annotated[str, "Array of a .npz with starts, or with starts and ends."] = "t",
    start: Annotated[str, "Column of starts in seconds, in a file with columns."] = "start",
    end: Annotated[str, "Column of ends."] = "end",
    length: Annotated[
        float | None, Option(min=0.001, help="Seconds of a window, if there are no ends.")
    ] = None,
    delay: Annotated[
        float, Option(min=0.0, help="Seconds until a speaker is final, with --live.")
    ] = 1.0,
    gap: Annotated[float, Option(min=0.0, help="Longest pause within a turn, in seconds.")] = 0.5,
    uri: Annotated[str, "Name of the recording in RTTM."] = "stream",
    live: Annotated[bool, "Write each segment as a JSON line as soon as it is final."] = False,
    output: Annotated[Path | None, "Write the turns to a .rttm or a .json."] = None,
    picture: Annotated[Path | None, "Draw the turns: .png, .svg or .pdf."] = None,
) -> None:
    """Tell who spoke when: turns from embeddings of speech with times.

    Each row is a segment of speech with one speaker: its embedding, its start, and its end or
    --length. Speakers are told from the clusters of the embeddings and from time: a speaker mostly
    goes on speaking. The turns are those that the whole recording gives; with --live, each segment
    is also written when its speaker is final. With --store, names of an earlier recording hold;
    each run adds its rows.

    Example: linkstream diarize voices.npz --preset ge2e-turns --length 1.6 --output monday.rttm
    """
    from linkstream.adapters.diarization import Diarizer

    for path, suffixes in ((output, SUFFIXES), (picture, screen.PICTURES)):
        if path is not None:
            screen.check_target(path, suffixes)
    with ExitStack() as stack:
        archive = file.endswith(".npz")
        columns = RowOptions(payload=None if archive else _columns(start, end, length))
        rows = stack.enter_context(vectors.open(file, columns))
        clusterer.check_dimension(rows)
        spans = _archive_spans(file, times, length) if archive else None
        if store is None:
            links: Any = new_clusterer(clusterer)
        else:
            stack.enter_context(stores.removed_if_empty(store))
            links = stack.enter_context(stores.open_store(store, clusterer))
            stack.enter_context(links.step(outcome.current().command))
        diarizer = Diarizer(links, uri=uri, gap=gap, delay=delay)
        _add(diarizer, rows, spans, names=(start, end), length=length, live=live)
        _report(diarizer, output=output, picture=picture, live=live)


def _columns(start: str, end: str, length: float | None) -> str:
    return start if length is not None else f"{start},{end}"


def _archive_spans(file: str, key: str, length: float | None) -> Spans:
    """Yield the spans of the windows of an archive."""
    with np.load(file, allow_pickle=False) as arrays:
        if key not in arrays.files:
            raise usage_error(
                f"no array {key!r} in {file}, which has {', '.join(arrays.files)[:80]}",
                "an array of starts, or of starts and ends, in seconds",
                "Name it: --times NAME.",
            )
        times = np.asarray(arrays[key], dtype=np.float64)
    if times.ndim == 2 and times.shape[1] == 2:
        return iter([(float(a), float(b)) for a, b in times.tolist()])
    if times.ndim != 1 or length is None:
        raise usage_error(
            f"times of shape {times.shape} without --length"
            if length is None
            else f"times of shape {times.shape}",
            "starts and ends, or starts and --length",
            "Give the seconds of a window: --length 1.6.",
        )
    return iter([(each, each + length) for each in times.tolist()])


def _add(
    diarizer: Diarizer,
    rows: Source,
    spans: Spans | None,
    *,
    names: tuple[str, str],
    length: float | None,
    live: bool,
) -> None:
    """Add all rows; with `live`, write segments as they become final."""
    shown = screen.STDOUT if live else None
    with outputs.progress_bar("listening", rows, output=shown) as advance:
        for block in rows:
            for place, vector in enumerate(block.vectors):
                row = block.first_row + place
                with naming_rows(rows.name, row):
                    payload = None if block.payloads is None else block.payloads[place]
                    span = _span(payload, names, length) if spans is None else _next(spans, row)
                    _write(diarizer.add(span[0], span[1], vector), live=live)
            advance(len(block))
    _write(diarizer.finish(), live=live)


def _next(spans: Spans, row: int) -> tuple[float, float]:
    span = next(spans, None)
    if span is None:
        raise usage_error(f"{row} times for more rows", "a time for each row", "Check --times.")
    return span


def _span(payload: Any, names: tuple[str, str], length: float | None) -> tuple[Any, Any]:
    """Return start and end of a row with columns."""
    values = [_number(payload.get(name), name) for name in names[: 1 if length else 2]]
    return (values[0], values[0] + length) if length else (values[0], values[1])


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise usage_error(
            f"{value!r:.60} in column {name!r}", "seconds", "Name the column: --start NAME."
        ) from None


def _write(turns: list[Turn], *, live: bool) -> None:
    if live:
        for turn in turns:
            screen.write_json(_record(turn))


def _record(turn: Turn) -> dict[str, Any]:
    times = {"start": round(turn.start, 3), "end": round(turn.end, 3)}
    return {**times, "speaker": turn.speaker, "cluster": turn.cluster}


def _report(diarizer: Diarizer, *, output: Path | None, picture: Path | None, live: bool) -> None:
    """Write the files, and the turns to the screen."""
    from linkstream.io import atomic_file

    turns = diarizer.current()
    if output is not None:
        with atomic_file(str(output), "w") as stream:
            if output.suffix == ".rttm":
                stream.write(diarizer.rttm())
            else:
                told = {"uri": diarizer.uri, "turns": [_record(turn) for turn in turns]}
                stream.write(json.dumps(told, indent=1) + "\n")
        outcome.note_change(f"{output} is written")
    if picture is not None:
        from linkstream import plots

        plots.save(plots.speakers(turns, title=diarizer.uri), picture)
    if not live and not screen.wrote_json(_record(turn) for turn in turns):
        _show(turns, picture)


def _show(turns: list[Turn], picture: Path | None) -> None:
    seconds: dict[str, float] = {}
    counts: dict[str, int] = {}
    for turn in turns:
        seconds[turn.speaker] = seconds.get(turn.speaker, 0.0) + turn.duration
        counts[turn.speaker] = counts.get(turn.speaker, 0) + 1
    console = screen.console()
    rows = screen.table(f"{len(turns):,} turns, {len(seconds):,} speakers", "speaker", "turns", "s")
    for who in sorted(seconds, key=lambda who: (-seconds[who], who))[:SHOWN]:
        rows.add_row(screen.figure(who), f"{counts[who]:,}", f"{seconds[who]:,.1f}")
    console.print(rows)
    if picture is None:
        console.print("\nTo see them: --picture turns.png. To keep them: --output turns.rttm.")
