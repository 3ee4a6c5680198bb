"""Streaming diarization: segments of speech with embeddings in, who spoke when out.

`Diarizer` uses a clusterer or a store. Each segment gets its speaker at once (*instant*). Later
segments may split or join clusters: *current* turns follow the current labels. Both are available
at any time, as turns, as RTTM, and as an `Annotation` of pyannote.

Encoders are often run over windows that overlap. With `overlaps="cut"` each moment belongs to one
segment: the one with the nearest middle (the shorter of two as near, the earlier of two as long).
Windows of equal length thus keep the time around their middle. With `overlaps="keep"` segments stay
unchanged, for a front end that finds several speakers at once.

With `delay=1.0` evidence of time is used as well (`turn_model`): a speaker mostly goes on speaking.
A segment is *final* once a second has been heard after its end, and *current* turns are estimated
again from the whole recording.

A clusterer with a policy may hold a vector (docs/confidence.md). Its segment is the speech of
nobody yet: evidence of time gives it to one of the speakers that are there, and without a delay,
or while there is no speaker, it is a turn of `undecided`, cluster −1.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linkstream.adapters.log_reading import (
    UNDECIDED,
    Leaving,
    LogReader,
    Names,
    News,
    Segment,
    arrival_of,
    may_miss_undo,
)
from linkstream.adapters.rttm import (
    Turn,
    check_span,
    load_rttm,
    read_rttm,
    to_annotation,
    write_rttm,
)
from linkstream.adapters.timed_labels import (
    TimedLabels,
    check_delay,
    check_model,
    mean_direction,
)
from linkstream.adapters.turn_confidence import Told, with_confidence
from linkstream.adapters.turns import SegmentTimes, Span, TurnList, check_rules, check_word
from linkstream.errors import ArgumentError
from linkstream.turn_model import TimeModel

if TYPE_CHECKING:
    from pyannote.core import Annotation

    from linkstream.clusterer import Links
    from linkstream.store import Store

__all__ = ["Diarizer", "Turn", "load_rttm", "read_rttm", "to_annotation", "turns_of", "write_rttm"]

MOMENTS = ("current", "final", "instant")


class Diarizer:
    """Assign speakers to segments of a recording, segment by segment.

    The name of a speaker is the name of the cluster, or else `speaker-` and its ID. A segment whose
    vector is held and that has no speaker yet is of `undecided`, cluster −1. An undo of `links`
    takes the segments of its vectors out of all turns, and a redo puts them back.

    Args:
        links: a `Links` or a `Store`, empty or with the speakers of earlier recordings.
        uri: name of the recording in RTTM and annotations.
        overlaps: "cut" or "keep": how to treat segments that overlap (see the module).
        gap: a pause of up to this many seconds does not end a turn, if nobody else speaks.
        delay: seconds after the end of a segment until its speaker is final, such as 1.0, with
            evidence of time; segments then arrive in order of their starts. None decides on each
            segment by itself, at once.
        model: parameters of the evidence of time; None takes the defaults.

    >>> from linkstream import Links
    >>> diarizer = Diarizer(Links(0.7, 0.6, 0.9))
    >>> [turn.speaker for turn in diarizer.add(0.0, 1.5, [1.0, 0.0, 0.1])]
    ['speaker-0']
    >>> [turn.speaker for turn in diarizer.add(1.5, 3.0, [0.0, 1.0, 0.0])]
    ['speaker-1']
    >>> diarizer.links.name(0, "Ann")
    >>> print(diarizer.rttm(), end="")
    SPEAKER stream 1 0.000 1.500 <NA> <NA> Ann <NA> <NA>
    SPEAKER stream 1 1.500 1.500 <NA> <NA> speaker-1 <NA> <NA>
    """

    def __init__(
        self,
        links: Links | Store,
        *,
        uri: str = "stream",
        overlaps: str = "cut",
        gap: float = 0.0,
        delay: float | None = None,
        model: TimeModel | None = None,
    ) -> None:
        write_rttm([], uri=uri)  # raises now if the uri cannot be written
        check_rules(overlaps, gap)
        self.links = links
        self.uri = uri
        self._overlaps, self._gap, self._model = overlaps, gap, check_model(model)
        self._delay = None if delay is None else check_delay(delay)
        self._speakers, self._log, self._leaving = Names(links), LogReader(links), Leaving()
        self._finished = False
        self._begin()

    def _begin(self) -> None:
        """Begin without segments."""
        self._times = SegmentTimes(self._overlaps)
        self._turns = {moment: TurnList(self._gap) for moment in MOMENTS}
        self._stale: dict[str, set[int]] = {moment: set() for moment in MOMENTS}
        self._given: list[int] = []
        self._numbers = array("q")  # vector number of each segment
        self._arrivals = array("q")  # event with which the vector came
        self._held: list[int] = []  # segments whose vector was held
        self._sure: dict[int, float] = {}  # probability of the decision on a segment, if known
        self._labels = np.empty(0, dtype=np.int64)  # of the last call of current()
        self._final: list[int] = []
        self._timed: TimedLabels | None = None
        if self._delay is not None:
            self._timed = TimedLabels(self.links.space, self._delay, self._model)

    def __len__(self) -> int:
        """Return the number of segments so far."""
        return len(self._given)

    def add(
        self, start: float, end: float, embedding: npt.ArrayLike, *, group: str | None = None
    ) -> list[Turn]:
        """Add one segment; return the segments whose speaker is final from now on, as turns.

        Without a delay that is the segment itself, uncut. With a delay it is each segment that
        ended so long ago; a later segment may still cut the end of one that it overlaps. Each
        segment becomes final once, also if its vector is held.

        Args:
            start: start in seconds. Without a delay segments may arrive in any order of time.
            end: end in seconds.
            embedding: vector of the segment.
            group: segments of one group have different speakers, as for `Links.add`: those that a
                front end heard at the same time. Not with a delay.
        """
        span = check_span(start, end)
        self._update()
        if self._timed is not None:
            self._timed.check(span, group)
        return self._take([(span, embedding)], group)

    def add_run(self, segments: Iterable[tuple[float, float, npt.ArrayLike]]) -> list[Turn]:
        """Add segments of one speaker; return the segments that are final from now on, as `add`.

        For front ends that know where a speaker begins and ends. The clusterer gets one vector,
        the mean of the embeddings at unit length, and decides once for all segments: they are one
        observation, one vector to correct or remove, and one subcluster at most. With a delay,
        evidence of time may still give single segments to another speaker.

        Args:
            segments: start, end and embedding of each segment, in order of their starts.

        >>> from linkstream import Links
        >>> diarizer = Diarizer(Links(0.7, 0.6, 0.9))
        >>> run = [(0.0, 1.5, [1.0, 0.0, 0.1]), (1.5, 3.0, [0.9, 0.3, 0.0])]
        >>> [turn.speaker for turn in diarizer.add_run(run)]
        ['speaker-0', 'speaker-0']
        """
        heard = [(check_span(start, end), embedding) for start, end, embedding in segments]
        starts = [span[0] for span, _ in heard]
        if not heard or starts != sorted(starts):
            raise ArgumentError(
                f"a run of {len(heard)} segments" + (" out of order" if heard else ""),
                expected="at least one segment, in order of their starts",
                remedy="Sort the segments of a run.",
            )
        self._update()
        if self._timed is not None:
            self._timed.check(heard[0][0], group=None)
        return self._take(heard)

    def _take(
        self, heard: list[tuple[Span, npt.ArrayLike]], group: str | None = None
    ) -> list[Turn]:
        """Add segments as one vector; return those that are final from now on."""
        vectors = [embedding for _, embedding in heard]
        vector = vectors[0] if len(vectors) == 1 else mean_direction(vectors)
        decision = self.links.add(vector, group=group)
        news = self._log.read()
        arrival = arrival_of(news, decision.sequence)
        cluster = UNDECIDED if decision.cluster < 0 else decision.cluster
        sure = None if cluster == UNDECIDED else decision.probability
        rows = [None] * len(heard) if self._timed is None else [*map(self._timed.row, vectors)]
        for (span, _), row in zip(heard, rows, strict=True):
            self._put(Segment(span, decision.sequence, arrival, cluster, sure, row))
        self._finished = False
        self._follow(news)
        if self._timed is None:
            return [self._turn(span, cluster, sure) for span, _ in heard]
        return self._make_final(self._timed.settled(self._speakers.named()))

    def _put(self, segment: Segment) -> None:
        """Append a segment."""
        place = len(self._given)
        if segment.sure is not None:
            self._sure[place] = segment.sure
        if segment.cluster == UNDECIDED:
            self._held.append(place)
        self._given.append(segment.cluster)
        self._numbers.append(segment.number)
        self._arrivals.append(segment.arrival)
        changed = self._times.add(segment.span)
        for stale in self._stale.values():
            stale.update(changed)
        if self._timed is not None and segment.row is not None:
            self._timed.add(segment.span, segment.row, segment.cluster)

    def _turn(self, span: Span, speaker: int, sure: float | None) -> Turn:
        return Turn(*span, self._speakers(speaker), max(speaker, -1), sure)

    # The log

    def _update(self) -> None:
        """Follow what happened to the clusterer since the last call."""
        self._follow(self._log.read())

    def _follow(self, news: News) -> None:
        """Follow new events: other names, other labels, vectors that an undo took."""
        self._speakers.note(news)
        for event in news or ():
            self._keep(self._leaving.after(event, self._segments))
        if may_miss_undo(news):
            n = self.links.n_vectors
            gone = any(number >= n for number in self._numbers)
            self._keep([each for each in self._segments() if each.number < n] if gone else None)
        renamed = self._speakers.update()
        if renamed:
            for turns in self._turns.values():
                turns.rename(renamed)
        if self._timed is not None and self._timed.is_stale(news):
            self._timed.follow(self._cluster_ids())

    def _segments(self) -> list[Segment]:
        """Return all segments as they came."""
        rows = [None] * len(self) if self._timed is None else self._timed.rows()
        numbers, arrivals, spans = self._numbers, self._arrivals, self._times.spans
        return [
            Segment(spans[i], numbers[i], arrivals[i], self._given[i], self._sure.get(i), rows[i])
            for i in range(len(self))
        ]

    def _keep(self, segments: list[Segment] | None) -> None:
        """Begin again with the segments that stand; None: all of them."""
        if segments is None:
            return
        self._begin()
        for segment in segments:
            self._put(segment)
            if self._timed is not None:
                self._make_final(self._timed.settled(self._speakers.named()))
        if self._finished:
            self.finish()

    def finish(self) -> list[Turn]:
        """Make all segments final, as at the end of a recording; return those that were not."""
        self._update()
        self._finished = True
        if self._timed is None:
            return []
        return self._make_final(self._timed.settled(self._speakers.named(), ended=True))

    def pending(self) -> list[Turn]:
        """Return the turns of the segments that are not final, by what is known so far."""
        self._update()
        turns, first = TurnList(self._gap), len(self._final)
        labels = self._timed.open_labels(self._speakers.named()) if self._timed else []
        for segment, label in enumerate(labels, start=first):
            turns.put(segment, self._times.kept[segment], label)
        return turns.turns(self._speakers)

    def _make_final(self, labels: list[int]) -> list[Turn]:
        """Store labels as final; return the spans of these segments as turns."""
        first = len(self._final)
        self._final += labels
        self._stale["final"].update(range(first, len(self._final)))
        return [
            self._turn(span, label, self._decided(segment, label))
            for segment, label in enumerate(labels, start=first)
            for span in self._times.kept[segment]
        ]

    def _decided(self, segment: int, speaker: int) -> float | None:
        """Return how probably a speaker is right, if the decision on the segment said so."""
        return self._sure.get(segment) if self._given[segment] == speaker else None

    def instant(self) -> list[Turn]:
        """Return the turns by the IDs as first given, in order of time, with current names."""
        return self.turns("instant")

    def current(self) -> list[Turn]:
        """Return the turns by the current IDs, after all splits and joins, in order of time.

        With a delay the turns are estimated again from the whole recording: a window between two
        speakers goes to one of them, and a cluster that explains less than a second of speech
        better than the other speakers do is no speaker, unless it has a name.

        A segment whose vector was removed is left out. A call compares the labels with those of
        the last call and computes only what changed.
        """
        return self.turns("current")

    def final(self) -> list[Turn]:
        """Return the turns of the segments that are final, by their final IDs, in order of time.

        Without a delay they are those of `instant()`.
        """
        return self.turns("final")

    def turns(self, moment: str = "current") -> list[Turn]:
        """Return `current()`, `final()` or `instant()`.

        Args:
            moment: "current", "final" or "instant".
        """
        check_word("moment", moment, MOMENTS)
        self._update()
        ids = self._ids(moment)
        turns, stale = self._turns[moment], self._stale[moment]
        for segment in sorted(stale):
            if segment < len(ids):
                turns.put(segment, self._times.kept[segment], int(ids[segment]))
                stale.remove(segment)
        found = turns.turns(self._speakers)
        return with_confidence(found, self._told(ids)) if self._sure else found

    def _told(self, ids: Sequence[int] | npt.NDArray[np.int64]) -> Iterator[Told]:
        """Yield the spans of segments, their speakers, and how probably these are right.

        That is unknown where the speaker is not the cluster that the decision was about.
        """
        given = self._given[: len(ids)]
        decided = self.links.resolve_many([max(each, -1) for each in given]).tolist()
        for segment, speaker in enumerate(map(int, ids)):
            same = speaker in (given[segment], decided[segment])
            probability = self._sure.get(segment) if same else None
            for span in self._times.kept[segment] if speaker != -1 else ():
                yield span, max(speaker, -1), probability

    def _ids(self, moment: str) -> Sequence[int] | npt.NDArray[np.int64]:
        """Return the speaker of each segment at a moment; fewer than segments for "final"."""
        if moment == "current":
            return self._current_ids()
        return self._final if moment == "final" and self._timed else self._given

    def _current_ids(self) -> npt.NDArray[np.int64]:
        """Return the current label of each segment; mark segments whose label changed."""
        if not self._numbers:
            return self._labels
        now = self._cluster_ids()
        if self._timed is not None:
            self._timed.follow(now)
            now = self._timed.whole(now, self._speakers.named())
        changed = np.flatnonzero(now[: len(self._labels)] != self._labels)
        self._stale["current"].update(changed.tolist())
        self._labels = now
        return now

    def _cluster_ids(self) -> npt.NDArray[np.int64]:
        """Return the present cluster of each segment, −1 if its vector was removed.

        UNDECIDED if it is held.
        """
        if self._timed is not None and not self.links.track_vectors:
            return self.links.resolve_many(self._given)
        found = self.links.labels()[np.array(self._numbers, dtype=np.int64)]
        for segment in self._held:
            waits = found[segment] < 0 and not self._leaving.was_removed(self._numbers[segment])
            if waits:
                found[segment] = UNDECIDED
        return found

    def rttm(self, moment: str = "current") -> str:
        """Return the turns as RTTM.

        Args:
            moment: "current", "final" or "instant".
        """
        return write_rttm(self.turns(moment), uri=self.uri)

    def annotation(self, moment: str = "current") -> Annotation:
        """Return the turns as an `Annotation` of pyannote.core.

        Args:
            moment: "current", "final" or "instant".
        """
        return to_annotation(self.turns(moment), uri=self.uri)


def turns_of(
    spans: Iterable[Sequence[float]], ids: npt.ArrayLike, *, overlaps: str = "cut", gap: float = 0.0
) -> list[Turn]:
    """Return the turns of segments whose speakers are known.

    Args:
        spans: start and end of each segment, in seconds.
        ids: speaker of each segment, −1 for none: labels of any method, or the truth.
        overlaps: "cut" or "keep", as for `Diarizer`.
        gap: longest pause within a turn, as for `Diarizer`.

    >>> [(turn.start, turn.end) for turn in turns_of([(0, 2), (1, 3), (2, 4)], [0, 0, 1])]
    [(0.0, 2.5), (2.5, 4.0)]
    """
    check_rules(overlaps, gap)
    checked = [check_span(*span) for span in spans]
    labels = np.asarray(ids)
    if labels.shape != (len(checked),) or (len(checked) and labels.dtype.kind not in "iu"):
        raise ArgumentError(
            f"ids of shape {labels.shape} and dtype {labels.dtype} for {len(checked)} segments",
            expected="one whole number for each",
            remedy="Pass what add_many() or labels() returned.",
        )
    times, turns = SegmentTimes(overlaps), TurnList(gap)
    for span in checked:
        times.add(span)
    for segment, label in enumerate(labels.tolist()):
        turns.put(segment, times.kept[segment], label)
    return turns.turns("speaker-{}".format)
