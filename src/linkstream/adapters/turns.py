"""Turns of segments, updated incrementally: a change costs what it touches, not all segments.

`SegmentTimes` divides the time that segments share. A new segment changes only the segments it
overlaps.

`TurnList` joins pieces of one speaker that touch, or nearly touch, into turns. Whether a piece
begins a turn depends on when each speaker spoke last, within the last `gap` seconds. So pieces are
kept in chunks, in order of time; each chunk stores its turns and when the speakers before it spoke
last. A chunk is computed again only if its pieces changed, or that end state before it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkstream.adapters.rttm import Turn
from linkstream.errors import ArgumentError

OVERLAPS = ("cut", "keep")
_TOUCH = 1e-6  # seconds: spans nearer than this touch
_CHUNK = 64  # pieces; a chunk with twice as many is divided

Span = tuple[float, float]
Piece = tuple[float, float, int]  # start, end, speaker or segment
Ends = dict[int, float]  # when each speaker spoke last


class SegmentTimes:
    """The spans that each segment keeps; together they cover all segments.

    Args:
        overlaps: "cut" gives each moment to the segment with the nearest middle (the shorter of
            two as near, the earlier of two as long); "keep" leaves segments unchanged.
    """

    def __init__(self, overlaps: str) -> None:
        self.kept: list[list[Span]] = []
        self.spans: list[Span] = []  # as they came
        self._cut = overlaps == "cut"
        self._lost: list[list[Span]] = []
        self._segments = _Chunks()

    def add(self, span: Span) -> list[int]:
        """Add a segment; return the numbers of all segments whose spans changed."""
        new = len(self.spans)
        self.spans.append(span)
        self._lost.append([])
        self.kept.append([span])
        if not self._cut:
            return [new]
        others = list(self._segments.overlapping(span))
        for other in others:
            self._divide(*sorted((new, other), key=self._middle))
        self._segments.add((*span, new))
        for each in (*others, new):
            self.kept[each] = _without(self.spans[each], self._lost[each])
        return [*others, new]

    def _middle(self, segment: int) -> tuple[float, float, int]:
        """Return the sort key of a segment: by middle; for equal middles, the loser first."""
        start, end = self.spans[segment]
        return start + end, start - end, -segment

    def _divide(self, early: int, late: int) -> None:
        """Divide the time that two segments share at the border between their middles."""
        one, other = self.spans[early], self.spans[late]
        start, end = max(one[0], other[0]), min(one[1], other[1])
        if sum(one) == sum(other):  # equal middles: `late` gets all of it
            self._lost[early].append((start, end))
            return
        border = (sum(one) + sum(other)) / 4  # halfway between the middles
        if border < end:
            self._lost[early].append((max(start, border), end))
        if border > start:
            self._lost[late].append((start, min(end, border)))


def _without(span: Span, taken: list[Span]) -> list[Span]:
    """Return what is left of a span, in order, without rounding errors."""
    left, (start, end) = [], span
    for begin, stop in sorted(taken):
        if begin - start > _TOUCH:
            left.append((start, begin))
        start = max(start, stop)
    if end - start > _TOUCH:
        left.append((start, end))
    return left


class TurnList:
    """Turns of segments, in order of time.

    Args:
        gap: longest pause within a turn, in seconds.
    """

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._chunks = _Chunks()
        self._held: dict[int, list[Piece]] = {}  # pieces of each segment

    def put(self, segment: int, spans: Iterable[Span], speaker: int) -> None:
        """Set the spans and the speaker of a segment; −1 for no speaker, or UNDECIDED."""
        pieces = [(*span, speaker) for span in spans] if speaker != -1 else []
        before = self._held.get(segment, [])
        if pieces == before:
            return
        for piece in before:
            self._chunks.remove(piece)
        for piece in pieces:
            self._chunks.add(piece)
        self._held[segment] = pieces

    def rename(self, clusters: set[int]) -> None:
        """Compute the turns of renamed clusters again."""
        for chunk in self._chunks:
            if chunk.result is not None and not clusters.isdisjoint(chunk.result.last):
                chunk.result = None

    def turns(self, name_of: Callable[[int], str]) -> list[Turn]:
        """Return all turns, in order of time; `name_of` returns the name of a cluster."""
        turns: list[Turn] = []
        last: dict[int, int] = {}  # index of each speaker's last turn
        ends: Ends = {}
        for chunk in self._chunks:
            result = self._result(chunk, ends, name_of)
            for speaker, end in result.longer.items():
                turns[last[speaker]] = replace(turns[last[speaker]], end=end)
            last.update((speaker, len(turns) + index) for speaker, index in result.last.items())
            turns += result.turns
            ends = result.after
        return turns

    def _result(self, chunk: _Chunk, ends: Ends, name_of: Callable[[int], str]) -> _ChunkTurns:
        """Return the turns of a chunk; compute them only if something changed."""
        start = chunk.pieces[0][0]
        near = {who: end for who, end in ends.items() if start - end <= self._gap + _TOUCH}
        if chunk.result is None or chunk.result.before != near:
            chunk.result = _ChunkTurns(before=near, after=dict(near))
            for piece in chunk.pieces:
                chunk.result.add(piece, self._gap, name_of)
        return chunk.result


@dataclass(slots=True)
class _ChunkTurns:
    """The turns of one chunk.

    Attributes:
        before: when each speaker spoke last before the chunk, if the turn may continue.
        after: when each speaker spoke last after the chunk.
        longer: new ends of turns that began in an earlier chunk.
        turns: turns that begin in this chunk.
        last: index of each speaker's last turn in `turns`.
    """

    before: Ends
    after: Ends
    longer: Ends = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)

    def add(self, piece: Piece, gap: float, name_of: Callable[[int], str]) -> None:
        """Extend the speaker's last turn by the next piece, or begin a new turn."""
        start, end, speaker = piece
        before = self.after.get(speaker)
        if before is None or not self._continues(start, speaker, before, gap):
            self.last[speaker] = len(self.turns)
            self.turns.append(Turn(start, end, name_of(speaker), max(speaker, -1)))
            self.after[speaker] = end
            return
        self.after[speaker] = longer = max(before, end)
        if speaker in self.last:
            index = self.last[speaker]
            self.turns[index] = replace(self.turns[index], end=longer)
        else:
            self.longer[speaker] = longer

    def _continues(self, start: float, speaker: int, before: float, gap: float) -> bool:
        """Return whether the speaker's last turn touches, or nobody spoke in a short pause."""
        pause = start - before
        return pause <= _TOUCH or (
            pause <= gap + _TOUCH
            and all(end <= before + _TOUCH for who, end in self.after.items() if who != speaker)
        )


@dataclass(slots=True)
class _Chunk:
    """Pieces in order; no piece ends after `reach`."""

    pieces: list[Piece]
    reach: float
    result: _ChunkTurns | None = None


class _Chunks:
    """Pieces in order, in chunks."""

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._longest = 0.0  # length of the longest piece so far

    def __iter__(self) -> Iterator[_Chunk]:
        return iter(self._chunks)

    def add(self, piece: Piece) -> None:
        """Insert a piece."""
        self._longest = max(self._longest, piece[1] - piece[0])
        if not self._chunks:
            self._chunks.append(_Chunk([piece], piece[1]))
            return
        index = self._index(piece)
        chunk = self._chunks[index]
        insort(chunk.pieces, piece)
        chunk.reach, chunk.result = max(chunk.reach, piece[1]), None
        if len(chunk.pieces) > 2 * _CHUNK:
            halves = chunk.pieces[:_CHUNK], chunk.pieces[_CHUNK:]
            self._chunks[index : index + 1] = [
                _Chunk(half, max(end for _, end, _ in half)) for half in halves
            ]

    def remove(self, piece: Piece) -> None:
        """Remove a piece."""
        index = self._index(piece)
        chunk = self._chunks[index]
        del chunk.pieces[bisect_left(chunk.pieces, piece)]
        chunk.result = None
        if not chunk.pieces:
            del self._chunks[index]

    def overlapping(self, span: Span) -> Iterator[int]:
        """Yield the segments of the pieces that overlap a span."""
        start, end = span
        first = bisect_left(self._chunks, start - self._longest, key=_first_start) - 1
        last = bisect_left(self._chunks, end, key=_first_start)
        for chunk in self._chunks[max(first, 0) : last]:
            if chunk.reach > start:
                yield from (who for a, b, who in chunk.pieces if a < end and b > start)

    def _index(self, piece: Piece) -> int:
        return max(bisect_right(self._chunks, piece, key=lambda chunk: chunk.pieces[0]) - 1, 0)


def _first_start(chunk: _Chunk) -> float:
    return chunk.pieces[0][0]


def check_rules(overlaps: object, gap: Any) -> None:
    """Raise ArgumentError unless overlaps and gap are what a `Diarizer` takes."""
    check_word("overlaps", overlaps, OVERLAPS)
    number = isinstance(gap, (int, float, np.number)) and not isinstance(gap, bool)
    if not (number and 0 <= gap < math.inf):
        raise ArgumentError(
            f"gap {gap!r}",
            expected="seconds, 0 or more",
            remedy="It is the longest pause within a turn.",
        )


def check_word(what: str, seen: object, words: Sequence[str]) -> None:
    """Raise ArgumentError unless a word is one of some."""
    if seen not in words:
        raise ArgumentError(
            f"{what} {seen!r}",
            expected=f"one of {', '.join(map(repr, words))}",
            remedy="See linkstream.adapters.diarization.",
        )
