"""Read and write RTTM, a text format for who spoke when.

A line has ten fields between blanks: SPEAKER, the recording, channel 1, start, duration, the
speaker in the eighth, and in the ninth the probability that it is right, if that is known; the
others are `<NA>`. In names, blanks and control characters are written as `%` and two hexadecimal
digits for each byte of UTF-8, as in web addresses: `Ann Lee` becomes `Ann%20Lee`. Reading reverses
this. So that different names stay different, `<NA>` and a `%` before two hexadecimal digits are
escaped, too.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from linkstream.errors import ArgumentError, InputFileError, MissingExtraError

if TYPE_CHECKING:
    from pyannote.core import Annotation

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_FIELDS = (9, 10)  # the older form has no tenth
_EMPTY = "<NA>"
# Other types of RTTM lines: words, sounds, sentences. They are no turns.
_OTHER_TYPES = {
    *("SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH"),
    *("FILLER", "EDIT", "SU", "IP", "CB", "A/P", "SPKR-INFO"),
}
_LOOKS_ESCAPED = re.compile("%(?=[0-9A-Fa-f]{2})")
_BOM = "\ufeff"  # some editors write it at the beginning of a file


@dataclass(frozen=True, slots=True)
class Turn:
    """A time span in which one speaker speaks.

    Attributes:
        start: start in seconds.
        end: end in seconds.
        speaker: name of the speaker.
        cluster: cluster ID of the speaker; None if it is not known, as in a file.
        confidence: probability that the speaker is right: that of the decisions on the segments of
            the turn, weighted by their time; None if it is unknown.
    """

    start: float
    end: float
    speaker: str
    cluster: int | None = None
    confidence: float | None = None

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start


def write_rttm(turns: Iterable[Turn], *, uri: str = "stream") -> str:
    """Return turns as RTTM, one a line, in the order given.

    Times are rounded to milliseconds; turns that touch still touch. A turn that becomes empty is
    not written.

    Args:
        turns: the turns.
        uri: name of the recording.

    >>> print(write_rttm([Turn(0.5, 2.0, "Ann Lee")], uri="monday"), end="")
    SPEAKER monday 1 0.500 1.500 <NA> <NA> Ann%20Lee <NA> <NA>
    """
    recording = _field("uri", uri)
    lines = []
    for turn in turns:
        start, end = _milliseconds(turn.start), _milliseconds(turn.end)
        speaker = _field("speaker", turn.speaker)
        if end > start:
            lines.append(
                f"SPEAKER {recording} 1 {_seconds(start)} {_seconds(end - start)} "
                f"{_EMPTY} {_EMPTY} {speaker} {_told(turn)} {_EMPTY}\n"
            )
    return "".join(lines)


def read_rttm(text: str) -> dict[str, list[Turn]]:
    """Return the turns of every recording of an RTTM text, in the order of its lines.

    Empty lines, comments (`;;`) and other types of RTTM lines, such as LEXEME, NON-SPEECH and
    SPKR-INFO, are skipped.

    Args:
        text: lines of RTTM.

    Raises:
        InputFileError: a line is not a complete SPEAKER line; the message names the line.

    >>> read_rttm("SPEAKER monday 1 0.5 1.5 <NA> <NA> Ann%20Lee <NA> <NA>")
    {'monday': [Turn(start=0.5, end=2.0, speaker='Ann Lee', cluster=None, confidence=None)]}
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"RTTM of type {type(text).__name__}",
            expected="text",
            remedy="load_rttm(path) reads a file.",
        )
    recordings: dict[str, list[Turn]] = {}
    for number, line in enumerate(text.removeprefix(_BOM).split("\n"), start=1):
        fields = line.split()
        if not fields or fields[0].startswith(";;") or fields[0] in _OTHER_TYPES:
            continue
        recording, turn = _turn(fields, number)
        recordings.setdefault(recording, []).append(turn)
    return recordings


def to_annotation(turns: Iterable[Turn], *, uri: str = "stream") -> Annotation:
    """Return turns as an `Annotation` of pyannote.core, one track a turn, names unescaped.

    Args:
        turns: the turns.
        uri: name of the recording.
    """
    try:
        from pyannote.core import Annotation, Segment
    except ImportError as missing:
        raise MissingExtraError(
            "pyannote.core", extra="diarization", purpose="An Annotation"
        ) from missing
    annotation = Annotation(uri=uri)
    for track, turn in enumerate(turns):
        annotation[Segment(turn.start, turn.end), track] = turn.speaker
    return annotation


def load_rttm(path: str | os.PathLike[str]) -> dict[str, list[Turn]]:
    """Return `read_rttm` of a file.

    Args:
        path: a file of RTTM lines in UTF-8.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(
            f"{os.fspath(path)}: {getattr(error, 'strerror', None) or error}",
            expected="a file of RTTM lines in UTF-8",
            remedy="Check the path, and how the file was written.",
        ) from None
    return read_rttm(text)


def check_span(start: object, end: object) -> tuple[float, float]:
    """Return the times of a segment; raise ArgumentError if they are no span of time."""
    try:
        times = float(start), float(end)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        times = math.nan, math.nan
    if not (all(map(math.isfinite, times)) and 0 <= times[0] < times[1]):
        raise ArgumentError(
            f"a segment from {start!r} to {end!r}",
            expected="seconds, 0 <= start < end",
            remedy="Count from the beginning of the recording; leave empty segments out.",
        )
    return times


def escaped(text: str) -> str:
    """Return a text with all characters escaped that could end a field or a line."""
    if text == _EMPTY:
        return _hexadecimal("<") + text[1:]
    marked = _LOOKS_ESCAPED.sub(_hexadecimal("%"), text)
    return "".join(_hexadecimal(letter) if _breaks(letter) else letter for letter in marked)


def _breaks(letter: str) -> bool:
    """Return whether a character is a blank, a control character or a lone surrogate."""
    return letter.isspace() or unicodedata.category(letter) in ("Cc", "Cs")


def _hexadecimal(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _unescaped(field: str) -> str:
    """Return a field unescaped; return a field of another writer unchanged."""
    try:
        return unquote(field, errors="strict")
    except UnicodeDecodeError:
        return field


def _field(what: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ArgumentError(
            f"{what} {value!r}",
            expected="a text that is not empty",
            remedy="Every recording and every speaker needs a name in RTTM.",
        )
    return escaped(value)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _told(turn: Turn) -> str:
    """Return the confidence of a turn for its field."""
    return _EMPTY if turn.confidence is None else f"{turn.confidence:.4f}"


def _confidence(field: str) -> float | None:
    """Return the confidence in a field; None if there is no number from 0 to 1."""
    told = float(field) if _NUMBER.fullmatch(field) else math.nan
    return told if 0.0 <= told <= 1.0 else None


def _turn(fields: list[str], number: int) -> tuple[str, Turn]:
    """Return the recording and the turn of a line."""
    if fields[0] != "SPEAKER" or len(fields) not in _FIELDS:
        raise _line_error(number, f"{len(fields)} fields, the first {fields[0][:40]!r}")
    for time in fields[3:5]:
        if not _NUMBER.fullmatch(time) or not math.isfinite(float(time)):
            raise _line_error(number, f"{time[:40]!r} for a time")
    start, duration = float(fields[3]), float(fields[4])
    if duration == 0 or fields[7] == _EMPTY:
        raise _line_error(number, f"duration {fields[4]} and speaker {fields[7][:40]!r}")
    end = (_milliseconds(start) + _milliseconds(duration)) / 1000
    if not start < end or abs(end - (start + duration)) > 1e-9 * (1 + end):
        end = start + duration  # finer than milliseconds
    if not (math.isfinite(end) and start < end):
        raise _line_error(number, f"start {fields[3]} and duration {fields[4]}")
    speaker, told = _unescaped(fields[7]), _confidence(fields[8])
    return _unescaped(fields[1]), Turn(start, end, speaker, confidence=told)


def _line_error(number: int, seen: str) -> InputFileError:
    return InputFileError(
        f"RTTM line {number}: {seen}",
        expected="SPEAKER recording channel start duration <NA> <NA> speaker <NA> [<NA>], "
        "times in seconds, the duration above 0",
        remedy="Correct or remove the line.",
    )
