"""Diarization: segments of speech with embeddings in, one by one; who spoke when out.

`Diarizer` stands before a clusterer or a store. Each segment gets its speaker at once (*instant*).
Later segments may show that a cluster was two, or two were one: *current* turns are told anew from
the labels of this moment. Both can be had at any time, as turns, as RTTM, and as an `Annotation` of
pyannote.

Encoders are often run over windows that overlap. With `overlaps="cut"` nobody speaks twice: each
moment goes to the segment, of those that cover it, whose middle is nearest (of two as near, the
shorter; of two as long, the earlier). Of windows of one length each keeps what is around its
middle. With `overlaps="keep"` segments stay as they are, for a front end that finds several
speakers at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.adapters.rttm import Turn, check_span, load_rttm, read_rttm, write_rttm
from linkstream.clusterer import Cluster
from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError, MissingExtraError

if TYPE_CHECKING:
    from pyannote.core import Annotation

__all__ = ["Diarizer", "Turn", "load_rttm", "read_rttm", "to_annotation", "turns_of", "write_rttm"]

MOMENTS = ("current", "instant")
OVERLAPS = ("cut", "keep")
_TOUCH = 1e-6  # seconds: what is nearer than this touches
_NUMBERED = re.compile(r"speaker-[0-9]+")

Span = tuple[float, float]


class Clustering(Protocol):
    """What decides: a `Links` or a `Store`."""

    def add(self, x: npt.ArrayLike, *, group: str | None = None) -> Decision:
        """Take one vector."""

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector."""

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""


class Diarizer:
    """Who speaks, segment by segment, by a clusterer or a store that may know people already.

    Args:
        links: a `Links` or a `Store`, empty or with the speakers of earlier recordings.
        uri: name of the recording, in what is written.
        overlaps: "cut" or "keep": what becomes of segments that overlap (see the module).
        gap: a pause of so many seconds within a turn does not end it, if nobody else speaks.

    A speaker is called by the name of the cluster, or else `speaker-` and its ID.

    >>> from linkstream import Links
    >>> diarizer = Diarizer(Links(0.7, 0.6, 0.9))
    >>> diarizer.add(0.0, 1.5, [1.0, 0.0, 0.1]).speaker, diarizer.add(1.5, 3.0, [0, 1, 0]).speaker
    ('speaker-0', 'speaker-1')
    >>> diarizer.links.name(0, "Ann")
    >>> print(diarizer.rttm(), end="")
    SPEAKER stream 1 0.000 1.500 <NA> <NA> Ann <NA> <NA>
    SPEAKER stream 1 1.500 1.500 <NA> <NA> speaker-1 <NA> <NA>
    """

    def __init__(
        self, links: Clustering, *, uri: str = "stream", overlaps: str = "cut", gap: float = 0.0
    ) -> None:
        write_rttm([], uri=uri)  # an uri that cannot be written is refused now, not at the end
        _check_rules(overlaps, gap)
        self.links = links
        self.uri = uri
        self._overlaps, self._gap = overlaps, gap
        self._spans: list[Span] = []
        self._given: list[int] = []
        self._numbers: list[int] = []
        self._cells: list[list[Span]] | None = None

    def __len__(self) -> int:
        """Segments so far."""
        return len(self._spans)

    def add(
        self, start: float, end: float, embedding: npt.ArrayLike, *, group: str | None = None
    ) -> Turn:
        """Take one segment (seconds); say at once who it is. The turn is the segment, uncut.

        Segments of one `group` are different speakers, as of `Links.add`: those that a front end
        heard at the same time. Segments may come in any order of time.
        """
        span = check_span(start, end)
        decision = self.links.add(embedding, group=group)
        self._spans.append(span)
        self._given.append(decision.cluster)
        self._numbers.append(decision.sequence)
        self._cells = None
        return Turn(*span, self._speakers([decision.cluster])[decision.cluster], decision.cluster)

    def instant(self) -> list[Turn]:
        """Turns by the IDs as they were given, in order of time; they never change.

        Only a name does: it is the one that the ID has now.
        """
        return self.turns("instant")

    def current(self) -> list[Turn]:
        """Turns by the IDs that the segments have now, after all splits and joins.

        A segment whose vector was removed since is left out.
        """
        return self.turns("current")

    def turns(self, moment: str = "current") -> list[Turn]:
        """`current()` or `instant()`, by word."""
        _check_word("moment", moment, MOMENTS)
        ids = self._given
        if moment == "current":
            ids = self.links.labels()[self._numbers].tolist() if self._numbers else []
        if self._cells is None:
            self._cells = _cells(self._spans, self._overlaps)
        return _told(self._cells, ids, self._speakers(ids), self._gap)

    def rttm(self, moment: str = "current") -> str:
        """The turns as RTTM."""
        return write_rttm(self.turns(moment), uri=self.uri)

    def annotation(self, moment: str = "current") -> Annotation:
        """The turns as an `Annotation` of pyannote.core."""
        return to_annotation(self.turns(moment), uri=self.uri)

    def _speakers(self, ids: Iterable[int]) -> dict[int, str]:
        """What each ID is called.

        A name that looks like the number of a cluster is not used: it would be taken for another.
        """
        names = {cluster.id: cluster.name for cluster in self.links.clusters() if cluster.name}
        usable = {i: name for i, name in names.items() if not _NUMBERED.fullmatch(name)}
        return {i: usable.get(i, f"speaker-{i}") for i in set(ids)}


def turns_of(
    spans: Iterable[Sequence[float]],
    ids: npt.ArrayLike,
    *,
    overlaps: str = "cut",
    gap: float = 0.0,
) -> list[Turn]:
    """Turns of segments whose speakers are known: labels of any method, or the truth.

    Overlaps and pauses are treated as by `Diarizer`; −1 is nobody.

    >>> [(turn.start, turn.end) for turn in turns_of([(0, 2), (1, 3), (2, 4)], [0, 0, 1])]
    [(0.0, 2.5), (2.5, 4.0)]
    """
    _check_rules(overlaps, gap)
    checked = [check_span(*span) for span in spans]
    labels = np.asarray(ids)
    if labels.shape != (len(checked),) or (len(checked) and labels.dtype.kind not in "iu"):
        raise ArgumentError(
            f"ids of shape {labels.shape} and dtype {labels.dtype} for {len(checked)} segments",
            expected="one whole number for each",
            remedy="Pass what add_many() or labels() returned.",
        )
    given = [int(label) for label in labels]
    return _told(_cells(checked, overlaps), given, {i: f"speaker-{i}" for i in set(given)}, gap)


def to_annotation(turns: Iterable[Turn], *, uri: str = "stream") -> Annotation:
    """Turns as an `Annotation` of pyannote.core, a track for each; names are not escaped there."""
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


def _cells(spans: list[Span], overlaps: str) -> list[list[Span]]:
    """What each segment keeps of its time, in order; together all that any of them covers."""
    if overlaps == "keep":
        return [[span] for span in spans]
    order = sorted(range(len(spans)), key=lambda i: spans[i])
    lost: list[list[Span]] = [[] for _ in spans]
    going: list[int] = []
    for i in order:
        going = [j for j in going if spans[j][1] > spans[i][0]]
        for j in going:
            near, far = sorted((i, j), key=lambda k: (sum(spans[k]), -_length(spans[k]), -k))
            # `near` has the earlier middle; up to half-way between the two middles it is nearer.
            _divide(spans, near, far, lost)
        going.append(i)
    return [_without(span, taken) for span, taken in zip(spans, lost, strict=True)]


def _divide(spans: list[Span], early: int, late: int, lost: list[list[Span]]) -> None:
    """Give each moment that two segments share to the one whose middle is nearer."""
    start = max(spans[early][0], spans[late][0])
    end = min(spans[early][1], spans[late][1])
    if sum(spans[early]) == sum(spans[late]):  # one middle: all of it to the later of the sort
        lost[early].append((start, end))
        return
    border = (sum(spans[early]) + sum(spans[late])) / 4
    if border < end:
        lost[early].append((max(start, border), end))
    if border > start:
        lost[late].append((start, min(end, border)))


def _length(span: Span) -> float:
    return span[1] - span[0]


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


def _told(
    cells: list[list[Span]], ids: Sequence[int], speakers: Mapping[int, str], gap: float
) -> list[Turn]:
    """Cells of one speaker that touch, or nearly, as one turn; in order of time."""
    pieces = sorted((*cell, i) for kept, i in zip(cells, ids, strict=True) for cell in kept)
    turns: list[Turn] = []
    last: dict[int, int] = {}  # the place of each speaker's last turn
    for start, end, i in pieces:
        if i < 0:
            continue
        before = turns[last[i]] if i in last else None
        if before is not None and _goes_on(before, start, gap, turns, last):
            turns[last[i]] = Turn(before.start, max(before.end, end), speakers[i], i)
        else:
            last[i] = len(turns)
            turns.append(Turn(start, end, speakers[i], i))
    return turns


def _goes_on(
    before: Turn, start: float, gap: float, turns: list[Turn], last: Mapping[int, int]
) -> bool:
    """Whether what starts now belongs to a turn: it touches it, or nobody spoke in the pause."""
    pause = start - before.end
    if pause <= _TOUCH:
        return True
    return pause <= gap + _TOUCH and all(
        turns[place].end <= before.end + _TOUCH for i, place in last.items() if i != before.cluster
    )


def _check_rules(overlaps: object, gap: Any) -> None:
    _check_word("overlaps", overlaps, OVERLAPS)
    number = isinstance(gap, (int, float, np.number)) and not isinstance(gap, bool)
    if not (number and 0 <= gap < np.inf):
        raise ArgumentError(
            f"gap {gap!r}",
            expected="seconds, 0 or more",
            remedy="It is the longest pause within a turn.",
        )


def _check_word(what: str, seen: object, words: Sequence[str]) -> None:
    if seen not in words:
        raise ArgumentError(
            f"{what} {seen!r}",
            expected=f"one of {', '.join(map(repr, words))}",
            remedy="See linkstream.adapters.diarization.",
        )
