"""`linkstream diarize`: who spoke when, from embeddings with times, or from sound."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from linkstream.cli import outcome, outputs, screen, segments, stores
from linkstream.cli.cluster import new_clusterer
from linkstream.cli.options import ClustererOptions, RowOptions, VectorFileOptions
from linkstream.cli.outcome import usage_error
from linkstream.io.feeding import naming_rows

if TYPE_CHECKING:
    from linkstream.adapters.diarization import Diarizer, Turn

SUFFIXES = (".rttm", ".json")
SHOWN = 20
RESEMBLYZER, DEFAULT_PRESET = "resemblyzer", "ge2e-turns"


def diarize(
    file: Annotated[
        str,
        "Embeddings, one a row, in order of time: .npz, .parquet, .arrow, .jsonl, .csv, or -; or "
        "sound: .wav, .flac, .ogg or .mp3.",
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
    encoder: Annotated[
        str | None,
        Option(
            help="Encoder of a sound file: resemblyzer, or module:function.",
            show_default="resemblyzer",
        ),
    ] = None,
    delay: Annotated[
        float, Option(min=0.0, help="Seconds until a speaker is final, with --live.")
    ] = 1.0,
    gap: Annotated[float, Option(min=0.0, help="Longest pause within a turn, in seconds.")] = 0.5,
    uri: Annotated[
        str | None,
        Option(help="Name of the recording in RTTM.", show_default="stream, or the sound file"),
    ] = None,
    live: Annotated[bool, "Write each segment as a JSON line as soon as it is final."] = False,
    output: Annotated[Path | None, "Write the turns to a .rttm or a .json."] = None,
    picture: Annotated[Path | None, "Draw the turns: .png, .svg or .pdf."] = None,
) -> None:
    """Tell who spoke when: turns from embeddings of speech with times.

    Each row is a segment of speech with one speaker: its embedding, its start, and its end or
    --length. A sound file is cut into windows, which an encoder turns into embeddings. Speakers are
    told from the clusters of the embeddings and from time: a speaker mostly goes on speaking. The
    turns are those that the whole recording gives; with --live, each segment is also written when
    its speaker is final. With --store, names of an earlier recording hold; each run adds its rows.

    Example: linkstream diarize voices.npz --preset ge2e-turns --length 1.6 --output monday.rttm
    """
    from linkstream.adapters.diarization import Diarizer

    for path, suffixes in ((output, SUFFIXES), (picture, screen.PICTURES)):
        if path is not None:
            screen.check_target(path, suffixes)
    sound = segments.is_sound(file)
    with ExitStack() as stack:
        heard: segments.Segments
        if sound:
            heard = segments.sound_segments(file, encoder or RESEMBLYZER, length)
            clusterer = _for_encoder(clusterer, encoder or RESEMBLYZER, store)
        else:
            _check_no_encoder(file, encoder)
            archive = file.endswith(".npz")
            columns = RowOptions(payload=None if archive else _columns(start, end, length))
            rows = stack.enter_context(vectors.open(file, columns))
            clusterer.check_dimension(rows)
            spans = segments.archive_spans(file, times, length) if archive else None
            heard = segments.FileSegments(rows, spans, (start, end), length)
        if store is None:
            links: Any = new_clusterer(clusterer)
        else:
            stack.enter_context(stores.removed_if_empty(store))
            links = stores.open_store(store, clusterer)
            back = f"linkstream undo {store} takes them back, a run of all rows adds them again"
            stack.enter_context(stores.noting_rows(links, store, back))
            stack.enter_context(links.step(outcome.current().command))
        if uri is None:
            uri = Path(file).stem if sound else "stream"
        diarizer = Diarizer(links, uri=uri, gap=gap, delay=delay)
        _add(diarizer, heard, live=live)
        _report(diarizer, output=output, picture=picture, live=live)


def _for_encoder(clusterer: ClustererOptions, encoder: str, store: Path | None) -> ClustererOptions:
    """Return the options with the preset of Resemblyzer, if it is used and they have none."""
    if encoder != RESEMBLYZER or (store is not None and store.exists()):
        return clusterer
    return clusterer.or_preset(DEFAULT_PRESET)


def _columns(start: str, end: str, length: float | None) -> str:
    return start if length is not None else f"{start},{end}"


def _check_no_encoder(file: str, encoder: str | None) -> None:
    if encoder is not None:
        raise usage_error(
            f"--encoder {encoder} and {file}",
            "a sound file for an encoder: .wav, .flac, .ogg or .mp3",
            "Leave --encoder out for a file of embeddings.",
        )


def _add(diarizer: Diarizer, heard: segments.Segments, *, live: bool) -> None:
    """Add all segments; with `live`, write them as they become final."""
    shown = screen.STDOUT if live else None
    with outputs.progress_bar("listening", heard, output=shown) as advance:
        for row, (start, end, embedding) in enumerate(heard):
            with naming_rows(heard.name, row), segments.naming_times(heard.name, row):
                final = diarizer.add(start, end, embedding)
            _write(final, live=live)
            advance(1)
    _write(diarizer.finish(), live=live)


def _write(turns: list[Turn], *, live: bool) -> None:
    if live:
        for turn in turns:
            screen.write_json(_record(turn))


def _record(turn: Turn) -> dict[str, Any]:
    times = {"start": round(turn.start, 3), "end": round(turn.end, 3)}
    sure = {} if turn.confidence is None else {"confidence": round(turn.confidence, 4)}
    return {**times, "speaker": turn.speaker, "cluster": turn.cluster, **sure}


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
