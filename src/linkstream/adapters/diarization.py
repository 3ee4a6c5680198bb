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
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.adapters.rttm import Turn, check_span, load_rttm, read_rttm, write_rttm
from linkstream.adapters.turns import Cells, Told
from linkstream.clusterer import Cluster
from linkstream.engine.contract import Decision
from linkstream.engine.events import Event
from linkstream.errors import ArgumentError, MissingExtraError, NotTrackedError

if TYPE_CHECKING:
    from pyannote.core import Annotation

__all__ = ["Diarizer", "Turn", "load_rttm", "read_rttm", "to_annotation", "turns_of", "write_rttm"]

MOMENTS = ("current", "instant")
OVERLAPS = ("cut", "keep")
_NUMBERED = re.compile(r"speaker-[0-9]+")
_FEW_EVENTS = 1000  # more than these are not looked at one by one
_ARRIVALS = {
    *("created", "joined", "linked", "merged", "severed", "rejoined", "split"),
    *("weighed", "grouped"),
}


class Clustering(Protocol):
    """What decides: a `Links` or a `Store`."""

    def add(self, x: npt.ArrayLike, *, group: str | None = None) -> Decision:
        """Take one vector."""

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector."""

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""

    @property
    def n_events(self) -> int:
        """Events so far."""

    def events(self, since: int = 0) -> list[Event]:
        """Events from a number on."""


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
        self._cells = Cells(overlaps)
        self._told = {moment: Told(gap) for moment in MOMENTS}
        self._stale: dict[str, set[int]] = {moment: set() for moment in MOMENTS}
        self._given: list[int] = []
        self._numbers = array("q")  # of each segment's vector
        self._labels: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)  # last told as current
        self._speakers = _Speakers(links)

    def __len__(self) -> int:
        """Segments so far."""
        return len(self._given)

    def add(
        self, start: float, end: float, embedding: npt.ArrayLike, *, group: str | None = None
    ) -> Turn:
        """Take one segment (seconds); say at once who it is. The turn is the segment, uncut.

        Segments of one `group` are different speakers, as of `Links.add`: those that a front end
        heard at the same time. Segments may come in any order of time.
        """
        span = check_span(start, end)
        decision = self.links.add(embedding, group=group)
        self._given.append(decision.cluster)
        self._numbers.append(decision.sequence)
        changed = self._cells.add(span)
        for stale in self._stale.values():
            stale.update(changed)
        self._follow_names()
        return Turn(*span, self._speakers(decision.cluster), decision.cluster)

    def instant(self) -> list[Turn]:
        """Turns by the IDs as they were given, in order of time; they never change.

        Only a name does: it is the one that the ID has now.
        """
        return self.turns("instant")

    def current(self) -> list[Turn]:
        """Turns by the IDs that the segments have now, after all splits and joins.

        A segment whose vector was removed since is left out. Told as often as wanted: a call
        compares the labels with those of the last call, and works out anew only what changed.
        """
        return self.turns("current")

    def turns(self, moment: str = "current") -> list[Turn]:
        """`current()` or `instant()`, by word."""
        _check_word("moment", moment, MOMENTS)
        ids = self._current_ids() if moment == "current" else self._given
        told, stale = self._told[moment], self._stale[moment]
        for segment in stale:
            told.put(segment, self._cells.kept[segment], int(ids[segment]))
        stale.clear()
        self._follow_names()
        return told.turns(self._speakers)

    def _current_ids(self) -> npt.NDArray[np.int64]:
        """The label of each segment now; segments that have another one than before are stale."""
        if not self._numbers:
            return self._labels
        before = self._labels
        now = self.links.labels()[np.frombuffer(self._numbers, dtype=np.int64)]
        changed = np.flatnonzero(now[: len(before)] != before)
        self._stale["current"].update(changed.tolist())
        self._labels = now
        return now

    def _follow_names(self) -> None:
        renamed = self._speakers.follow()
        if renamed:
            for told in self._told.values():
                told.rename(renamed)

    def rttm(self, moment: str = "current") -> str:
        """The turns as RTTM."""
        return write_rttm(self.turns(moment), uri=self.uri)

    def annotation(self, moment: str = "current") -> Annotation:
        """The turns as an `Annotation` of pyannote.core."""
        return to_annotation(self.turns(moment), uri=self.uri)


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
    cells, told = Cells(overlaps), Told(gap)
    for span in checked:
        cells.add(span)
    for segment, label in enumerate(labels.tolist()):
        told.put(segment, cells.kept[segment], label)
    return told.turns("speaker-{}".format)


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


class _Speakers:
    """What clusters are called. Names are read again only after events that may change them."""

    def __init__(self, links: Clustering) -> None:
        self._links = links
        self._names: dict[int, str] = {}
        self._seen: int | None = None  # events that were looked at

    def __call__(self, cluster: int) -> str:
        """The name of a cluster, or else `speaker-` and its ID."""
        return self._names.get(cluster, f"speaker-{cluster}")

    def follow(self) -> set[int]:
        """Read the names anew if they may have changed; the clusters that are called otherwise.

        A name that looks like the number of a cluster is not used: it would be taken for another.
        """
        if self._unchanged():
            return set()
        before, self._seen = self._names, self._links.n_events
        self._names = {
            each.id: each.name
            for each in self._links.clusters()
            if each.name and not _NUMBERED.fullmatch(each.name)
        }
        every = {*before, *self._names}
        return {each for each in every if before.get(each) != self._names.get(each)}

    def _unchanged(self) -> bool:
        """Whether all events since are of vectors that came; they change no name."""
        now = self._links.n_events
        if self._seen is None or not 0 <= now - self._seen <= _FEW_EVENTS:
            return False
        try:
            fresh = self._links.events(self._seen) if now > self._seen else []
        except NotTrackedError:  # the log no longer has them
            return False
        self._seen = now if not fresh else fresh[-1].sequence + 1
        return all(event.kind in _ARRIVALS for event in fresh)


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
