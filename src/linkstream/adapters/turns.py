"""Turns of segments, kept up to date: a change costs what it touches, not the whole recording.

`Cells` keeps what each segment keeps of its time where segments overlap. A new segment changes the
cells of those it overlaps, and no others.

`Told` joins the cells of one speaker that touch, or nearly, into turns. Whether a cell begins a
turn depends on when each speaker was last heard up to then, and of that only on the last `gap`
seconds. So cells lie in chunks, in order of time; each chunk keeps its turns and when the speakers
before it were last heard. A chunk is told again only if its cells changed, or what came before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from linkstream.adapters.rttm import Turn

_TOUCH = 1e-6  # seconds: what is nearer than this touches
_CHUNK = 64  # pieces; a chunk with twice as many is cut in two

Span = tuple[float, float]
Piece = tuple[float, float, int]  # start, end, and whose
Ends = dict[int, float]  # when each speaker was last heard


class Cells:
    """What each segment keeps of its time; together all that any of them covers.

    Args:
        overlaps: "cut" gives each moment to the segment whose middle is nearest (of two as near,
            the shorter; of two as long, the earlier); "keep" leaves segments as they are.
    """

    def __init__(self, overlaps: str) -> None:
        self.kept: list[list[Span]] = []
        self._cut = overlaps == "cut"
        self._spans: list[Span] = []
        self._lost: list[list[Span]] = []
        self._placed = _Chunks()

    def add(self, span: Span) -> list[int]:
        """Take one segment; the numbers of all segments that keep something else now."""
        new = len(self._spans)
        self._spans.append(span)
        self._lost.append([])
        self.kept.append([span])
        if not self._cut:
            return [new]
        met = list(self._placed.overlapping(span))
        for other in met:
            self._divide(*sorted((new, other), key=self._middle))
        self._placed.add((*span, new))
        for each in (*met, new):
            self.kept[each] = _without(self._spans[each], self._lost[each])
        return [*met, new]

    def _middle(self, segment: int) -> tuple[float, float, int]:
        """Order of two segments: the earlier middle first; of one middle, who loses first."""
        start, end = self._spans[segment]
        return start + end, start - end, -segment

    def _divide(self, early: int, late: int) -> None:
        """Give each moment that two segments share to the one whose middle is nearer."""
        one, other = self._spans[early], self._spans[late]
        start, end = max(one[0], other[0]), min(one[1], other[1])
        if sum(one) == sum(other):  # one middle: all of it to the later of the order
            self._lost[early].append((start, end))
            return
        border = (sum(one) + sum(other)) / 4  # half-way between the two middles
        if border < end:
            self._lost[early].append((max(start, border), end))
        if border > start:
            self._lost[late].append((start, min(end, border)))


def _without(span: Span, taken: list[Span]) -> list[Span]:
    """What is left of a segment, in order; splinters of rounding are not."""
    left, (start, end) = [], span
    for begin, stop in sorted(taken):
        if begin - start > _TOUCH:
            left.append((start, begin))
        start = max(start, stop)
    if end - start > _TOUCH:
        left.append((start, end))
    return left


class Told:
    """Turns of cells, in order of time; `gap` is the longest pause within a turn."""

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._chunks = _Chunks()
        self._held: dict[int, list[Piece]] = {}  # pieces of each segment

    def put(self, segment: int, cells: Iterable[Span], who: int) -> None:
        """Say what a segment keeps and who it is, in place of what was said before; −1: nobody."""
        pieces = [(*cell, who) for cell in cells] if who >= 0 else []
        before = self._held.get(segment, [])
        if pieces == before:
            return
        for piece in before:
            self._chunks.remove(piece)
        for piece in pieces:
            self._chunks.add(piece)
        self._held[segment] = pieces

    def rename(self, clusters: set[int]) -> None:
        """Tell anew the turns of clusters that are called something else now."""
        for chunk in self._chunks:
            if chunk.fold is not None and not clusters.isdisjoint(chunk.fold.places):
                chunk.fold = None

    def turns(self, call: Callable[[int], str]) -> list[Turn]:
        """All turns, in order of time; `call` gives the name of a cluster."""
        told: list[Turn] = []
        last: dict[int, int] = {}  # the place of each speaker's last turn
        ends: Ends = {}
        for chunk in self._chunks:
            fold = self._folded(chunk, ends, call)
            for who, end in fold.longer.items():
                told[last[who]] = replace(told[last[who]], end=end)
            last.update((who, len(told) + place) for who, place in fold.places.items())
            told += fold.turns
            ends = fold.after
        return told

    def _folded(self, chunk: _Chunk, ends: Ends, call: Callable[[int], str]) -> _Fold:
        """The turns of a chunk, as kept if nothing changed that bears on them."""
        start = chunk.pieces[0][0]
        near = {who: end for who, end in ends.items() if start - end <= self._gap + _TOUCH}
        if chunk.fold is None or chunk.fold.before != near:
            chunk.fold = _Fold(before=near, after=dict(near))
            for piece in chunk.pieces:
                chunk.fold.take(piece, self._gap, call)
        return chunk.fold


@dataclass(slots=True)
class _Fold:
    """The turns of one chunk.

    Attributes:
        before, after: when each speaker was last heard, before and after the chunk; before it,
            only those who may go on.
        longer: new ends of turns that began in an earlier chunk.
        turns: turns that begin here.
        places: the place of each speaker's last turn among them.
    """

    before: Ends
    after: Ends
    longer: Ends = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    def take(self, piece: Piece, gap: float, call: Callable[[int], str]) -> None:
        """Take the next piece: it lengthens its speaker's last turn, or begins one."""
        start, end, who = piece
        heard = self.after.get(who)
        if heard is None or not self._goes_on(start, who, heard, gap):
            self.places[who] = len(self.turns)
            self.turns.append(Turn(start, end, call(who), who))
            self.after[who] = end
            return
        self.after[who] = longer = max(heard, end)
        if who in self.places:
            place = self.places[who]
            self.turns[place] = replace(self.turns[place], end=longer)
        else:
            self.longer[who] = longer

    def _goes_on(self, start: float, who: int, heard: float, gap: float) -> bool:
        """Whether what starts now touches the speaker's last turn, or nobody spoke in the pause."""
        pause = start - heard
        return pause <= _TOUCH or (
            pause <= gap + _TOUCH
            and all(end <= heard + _TOUCH for other, end in self.after.items() if other != who)
        )


@dataclass(slots=True)
class _Chunk:
    """Some pieces, in order; `reach` is no less than the latest end among them."""

    pieces: list[Piece]
    reach: float
    fold: _Fold | None = None


class _Chunks:
    """Pieces in order, in chunks."""

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []

    def __iter__(self) -> Iterator[_Chunk]:
        return iter(self._chunks)

    def add(self, piece: Piece) -> None:
        """Take a piece to its place."""
        if not self._chunks:
            self._chunks.append(_Chunk([piece], piece[1]))
            return
        place = self._place(piece)
        chunk = self._chunks[place]
        insort(chunk.pieces, piece)
        chunk.reach, chunk.fold = max(chunk.reach, piece[1]), None
        if len(chunk.pieces) > 2 * _CHUNK:
            halves = chunk.pieces[:_CHUNK], chunk.pieces[_CHUNK:]
            self._chunks[place : place + 1] = [
                _Chunk(half, max(end for _, end, _ in half)) for half in halves
            ]

    def remove(self, piece: Piece) -> None:
        """Take a piece away that is there."""
        place = self._place(piece)
        chunk = self._chunks[place]
        del chunk.pieces[bisect_left(chunk.pieces, piece)]
        chunk.fold = None
        if not chunk.pieces:
            del self._chunks[place]

    def overlapping(self, span: Span) -> Iterator[int]:
        """Whose pieces share some time with a span."""
        start, end = span
        for chunk in self._chunks[: bisect_left(self._chunks, end, key=_start)]:
            if chunk.reach > start:
                yield from (who for a, b, who in chunk.pieces if a < end and b > start)

    def _place(self, piece: Piece) -> int:
        return max(bisect_right(self._chunks, piece, key=_first) - 1, 0)


def _first(chunk: _Chunk) -> Piece:
    return chunk.pieces[0]


def _start(chunk: _Chunk) -> float:
    return chunk.pieces[0][0]
