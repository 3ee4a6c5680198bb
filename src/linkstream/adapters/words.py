"""Give the words of a transcript their speakers.

A transcript is that of WhisperX and of others like it: `{"segments": [{"start": 0.1, "end": 1.9,
"text": "…", "words": [{"word": "…", "start": 0.1, "end": 0.4}, …]}, …]}`. A word gets the speaker
with most of its time. A word that nobody speaks in gets the speaker of the nearest turn, if it is
near enough. A segment gets the speaker of most of its words' time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from linkstream.adapters.rttm import Turn
from linkstream.errors import ArgumentError

NEAR = 1.0  # seconds


def words_with_speakers(
    transcript: Mapping[str, Any], turns: Sequence[Turn], *, near: float = NEAR
) -> dict[str, Any]:
    """Return a copy of a transcript in which segments and words have a "speaker".

    Words without times, as WhisperX leaves numbers, get the speaker of the word before them, or
    else of their segment. Nothing else is changed.

    Args:
        transcript: a mapping with "segments", as parsed from JSON.
        turns: the turns of the recording.
        near: longest distance in seconds from a word to a turn that may still be its own.

    >>> turns = [Turn(0.0, 1.0, "Ann"), Turn(1.0, 2.0, "Bob")]
    >>> told = {"segments": [{"start": 0.8, "end": 1.9, "words": [{"start": 1.1, "end": 1.4}]}]}
    >>> words_with_speakers(told, turns)["segments"][0]["words"][0]["speaker"]
    'Bob'
    """
    segments = transcript.get("segments") if isinstance(transcript, Mapping) else None
    if not isinstance(segments, Sequence) or isinstance(segments, str):
        raise ArgumentError(
            f"a transcript without a list of segments: {str(transcript)[:60]!r}",
            expected='{"segments": [{"start": …, "end": …, "words": […]}, …]}',
            remedy="Pass what WhisperX returned, or json.load of its file.",
        )
    lookup = _Lookup(turns, near)
    return {**transcript, "segments": [_with_speakers(each, lookup) for each in segments]}


class _Lookup:
    """Finds the speaker of a span of time."""

    def __init__(self, turns: Sequence[Turn], near: float) -> None:
        self._turns = sorted(turns, key=lambda turn: turn.start)
        self._starts = [turn.start for turn in self._turns]
        self._longest = max((turn.duration for turn in self._turns), default=0.0)
        self._near = near

    def shares(self, start: float, end: float) -> dict[str, float]:
        """Return the seconds of each speaker in a span; of the nearest turn, 0 if it is near."""
        reach = max(self._near, 1e-6)
        first = bisect_left(self._starts, start - self._longest - reach)
        last = bisect_left(self._starts, end + reach)
        found: dict[str, float] = {}
        nearest: tuple[float, str] | None = None
        for turn in self._turns[first:last]:
            shared = min(end, turn.end) - max(start, turn.start)
            if shared > 0:
                found[turn.speaker] = found.get(turn.speaker, 0.0) + shared
            elif -shared <= self._near and (nearest is None or -shared < nearest[0]):
                nearest = -shared, turn.speaker
        return found or ({nearest[1]: 0.0} if nearest else {})


def _with_speakers(segment: Mapping[str, Any], lookup: _Lookup) -> dict[str, Any]:
    """Return a segment with speakers."""
    made = dict(segment)
    totals: dict[str, float] = {}
    words = []
    last = None
    for word in segment.get("words") or ():
        span = _span(word)
        shares = lookup.shares(*span) if span else {}
        for who, seconds in shares.items():
            totals[who] = totals.get(who, 0.0) + seconds
        last = _most(shares) if span else last
        words.append(word if last is None else {**word, "speaker": last})
    span = _span(segment)
    speaker = _most(totals or (lookup.shares(*span) if span else {}))
    if speaker is not None:
        made["speaker"] = speaker
        words = [
            word if "speaker" in word or _span(word) else {**word, "speaker": speaker}
            for word in words
        ]
    if "words" in segment:
        made["words"] = words
    return made


def _span(item: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return start and end of a word or segment, or None if it has no usable times."""
    times = item.get("start"), item.get("end")
    if not all(isinstance(time, (int, float)) and math.isfinite(time) for time in times):
        return None
    start, end = float(times[0] or 0.0), float(times[1] or 0.0)
    return (start, end) if start <= end else None


def _most(shares: Mapping[str, float]) -> str | None:
    """Return the speaker with most seconds; of equals, the first by name."""
    return min(shares, key=lambda who: (-shares[who], who)) if shares else None
