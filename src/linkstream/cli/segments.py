"""Segments of speech for `linkstream diarize`: of a file with embeddings and times, or of sound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.cli.outcome import usage_error
from linkstream.errors import ArgumentError, LinkstreamError, VectorError

if TYPE_CHECKING:
    from linkstream.adapters.sound import Encoder, Window
    from linkstream.io import Source

Spans = list[tuple[float, float]]


class Segment(NamedTuple):
    """A segment of speech of one speaker."""

    start: float
    end: float
    embedding: npt.ArrayLike


class Segments(Protocol):
    """Segments in order of time, from a source with this name.

    Attributes:
        name: name of the source, for messages.
        n: how many there are; None if it is not known.
        progress: the share of the source that was read; None if it is not known.
    """

    name: str

    @property
    def n(self) -> int | None: ...  # noqa: D102
    @property
    def progress(self) -> float | None: ...  # noqa: D102
    def __iter__(self) -> Iterator[Segment]: ...


class FileSegments:
    """Rows of a file with embeddings.

    Args:
        rows: the file, open, with the columns of times as payloads.
        spans: times of the rows, if they come from elsewhere; None takes the columns.
        names: columns of start and end.
        length: seconds of a segment, if there are no ends.
    """

    def __init__(
        self, rows: Source, spans: Spans | None, names: tuple[str, str], length: float | None
    ) -> None:
        self.name = rows.name
        if spans is not None and rows.n is not None and len(spans) < rows.n:
            raise _too_few(len(spans), f"{rows.n}")
        self._rows, self._spans, self._names, self._length = rows, spans, names, length

    @property
    def n(self) -> int | None:
        """Number of rows, if it is known."""
        return self._rows.n

    @property
    def progress(self) -> float | None:
        """Share of the file that was read, if it is known."""
        return self._rows.progress

    def __iter__(self) -> Iterator[Segment]:
        """Yield the rows as segments."""
        for block in self._rows:
            for row, vector in enumerate(block.vectors, start=block.first_row):
                payload = None if block.payloads is None else block.payloads[row - block.first_row]
                with naming_times(self.name, row):
                    span = self._span(payload, row)
                yield Segment(*span, vector)

    def _span(self, payload: Any, row: int) -> tuple[float, float]:
        if self._spans is None:
            return _span_of(payload, self._names, self._length)
        if row >= len(self._spans):
            raise _too_few(row, "more")
        return self._spans[row]


class SoundSegments:
    """Windows of a sound file, each encoded when it is needed.

    Args:
        file: the sound file.
        windows: its windows of speech.
        encode: the encoder.
        encoder: name of the encoder, for messages.
    """

    progress = None

    def __init__(self, file: str, windows: list[Window], encode: Encoder, encoder: str) -> None:
        self.name, self.n = file, len(windows)
        self._windows, self._encode, self._encoder = windows, encode, encoder

    def __iter__(self) -> Iterator[Segment]:
        """Yield the windows with their embeddings."""
        for start, end, sound in self._windows:
            try:
                vector = self._encode(sound)
            except LinkstreamError:
                raise
            except Exception as error:
                raise usage_error(
                    f"the encoder {self._encoder} failed at {start:.1f} s"
                    f" ({type(error).__name__}: {error!s:.200})",
                    "a vector for each window",
                    "Mend the encoder; it gets samples at 16 kHz as float32.",
                ) from error
            yield Segment(start, end, vector)


def is_sound(file: str) -> bool:
    """Return whether a file is sound, by its name."""
    from linkstream.adapters.sound import SUFFIXES

    return file.lower().endswith(SUFFIXES)


def sound_segments(file: str, encoder: str, length: float | None) -> SoundSegments:
    """Return the windows of speech of a sound file, and load the encoder.

    Args:
        file: the sound file.
        encoder: "resemblyzer", or module:function.
        length: seconds of a window; None takes 1.6.
    """
    from linkstream.adapters import sound

    encode = sound.load_encoder(encoder)
    heard = sound.read_sound(Path(file))
    windows = sound.speech_windows(heard, length=sound.LENGTH if length is None else length)
    return SoundSegments(file, windows, encode, encoder)


def archive_spans(file: str, key: str, length: float | None) -> Spans:
    """Return the spans of the windows of an archive.

    Args:
        file: a .npz.
        key: its array of starts, or of starts and ends.
        length: seconds of a window, if there are no ends.

    Raises:
        ArgumentError: a row has times that cannot be used, so that no row is added before.
    """
    with np.load(file, allow_pickle=False) as arrays:
        if key not in arrays.files:
            raise usage_error(
                f"no array {key!r} in {file}, which has {', '.join(arrays.files)[:80]}",
                "an array of starts, or of starts and ends, in seconds",
                "Name it: --times NAME.",
            )
        times = np.asarray(arrays[key], dtype=np.float64)
    if times.ndim == 2 and times.shape[1] == 2:
        return _checked([(float(a), float(b)) for a, b in times.tolist()], file)
    if times.ndim != 1 or length is None:
        raise usage_error(
            f"times of shape {times.shape} without --length"
            if length is None
            else f"times of shape {times.shape}",
            "starts and ends, or starts and --length",
            "Give the seconds of a window: --length 1.6.",
        )
    return _checked([(each, each + length) for each in times.tolist()], file)


def _checked(spans: Spans, file: str) -> Spans:
    """Return spans; raise ArgumentError if one is none, or begins before the one above it."""
    from linkstream.adapters.rttm import check_span

    before = 0.0
    for row, span in enumerate(spans):
        with naming_times(file, row):
            check_span(*span)
            if span[0] < before:
                raise usage_error(
                    f"a segment from {span[0]:g} after one from {before:g}",
                    "segments in order of their starts",
                    "Sort the segments by their starts.",
                )
        before = span[0]
    return spans


def _too_few(times: int, rows: str) -> ArgumentError:
    return usage_error(f"{times} times for {rows} rows", "a time for each row", "Check --times.")


@contextmanager
def naming_times(name: str, row: int) -> Iterator[None]:
    """Let errors about the times of a row name the row.

    Args:
        name: name of the source.
        row: the row.
    """
    try:
        yield
    except VectorError:
        raise
    except ArgumentError as error:
        raise usage_error(
            f"{name}, row {row}: {error.seen}", error.expected, error.remedy
        ) from None


def _span_of(payload: Any, names: tuple[str, str], length: float | None) -> tuple[float, float]:
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
