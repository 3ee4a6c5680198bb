"""How sure a turn is: from the probabilities of the decisions on its segments."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from linkstream.adapters.rttm import Turn
from linkstream.adapters.turns import Span

KNOWN_MIN = 0.5  # of the time of a turn

Told = tuple[Span, int, float | None]  # a span, its speaker, and how probably that is right


def with_confidence(turns: Sequence[Turn], told: Iterable[Told]) -> list[Turn]:
    """Return turns with their confidence: the mean over their spans, weighted by time.

    A turn whose spans are unknown for more than half of their time has none.

    Args:
        turns: turns in order of time.
        told: the spans that the turns are made of.
    """
    of_speaker: dict[int | None, list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        of_speaker[turn.cluster].append(place)
    starts = {who: [turns[i].start for i in places] for who, places in of_speaker.items()}
    seconds, known, right = ([0.0] * len(turns) for _ in range(3))
    for (start, end), speaker, probability in told:
        if speaker not in starts:
            continue
        after = bisect_right(starts[speaker], start)
        place = of_speaker[speaker][max(after - 1, 0)]
        seconds[place] += end - start
        if probability is not None:
            known[place] += end - start
            right[place] += probability * (end - start)
    return [
        replace(turn, confidence=right[i] / known[i])
        if known[i] > 0.0 and known[i] >= KNOWN_MIN * seconds[i]
        else turn
        for i, turn in enumerate(turns)
    ]
