"""Turns say how sure they are, by the decisions on their segments; RTTM keeps it."""

from __future__ import annotations

import numpy as np
import pytest

from confidence import sure
from linkstream import Links
from linkstream.adapters.diarization import Diarizer
from linkstream.adapters.rttm import Turn, read_rttm, write_rttm
from linkstream.adapters.turn_confidence import with_confidence

X = sure.STREAM.vectors[:80]


def heard(**options):
    """Return a diarizer that has heard windows of 1.5 seconds, one each second, and decisions."""
    diarizer, links = Diarizer(sure.links(), **options), sure.links()
    for i, x in enumerate(X):
        diarizer.add(float(i), i + 1.5, x)
    return diarizer, [links.add(x) for x in X]


def test_a_turn_has_the_mean_of_its_spans_by_time_where_most_of_it_is_known():
    turns = [Turn(0.0, 4.0, "a", 0), Turn(4.0, 5.0, "b", 1), Turn(5.0, 9.0, "a", 0)]
    told = [
        *(((0.0, 3.0), 0, 0.9), ((3.0, 4.0), 0, 0.5), ((4.0, 5.0), 1, None)),
        *(((5.0, 6.5), 0, 1.0), ((6.5, 9.0), 0, None), ((1.0, 2.0), 7, 0.1)),
    ]
    found = with_confidence(turns, told)
    assert [each.confidence for each in found] == [pytest.approx(0.8), None, None]
    assert [(each.start, each.speaker) for each in found] == [(t.start, t.speaker) for t in turns]


def test_instant_turns_have_the_probabilities_of_their_decisions():
    diarizer, decisions = heard(overlaps="keep")
    spans = [(float(i), i + 1.5) for i in range(len(X))]
    for turn in diarizer.instant():
        mine = [
            each
            for each, (start, end) in zip(decisions, spans, strict=True)
            if each.cluster == turn.cluster and turn.start <= start and end <= turn.end
        ]
        known = [each.probability for each in mine if each.probability is not None]
        expected = np.mean(known) if known and 2 * len(known) >= len(mine) else None
        assert turn.confidence == (expected if expected is None else pytest.approx(expected))
    assert sum(each.confidence is not None for each in diarizer.current()) > 5


def test_a_speaker_that_time_gave_a_segment_is_not_what_the_decision_was_about():
    diarizer, _ = heard(delay=1.0)
    diarizer.finish()
    for moment in ("current", "final", "instant"):
        for turn in diarizer.turns(moment):
            assert turn.confidence is None or 0.0 <= turn.confidence <= 1.0
    instant = sum(turn.confidence is not None for turn in diarizer.instant())
    assert instant > 0
    told = list(diarizer._told([10**6] * len(X)))
    assert all(probability is None for _, _, probability in told)


def test_without_a_model_no_turn_says_how_sure_it_is():
    diarizer = Diarizer(Links(*sure.STREAM.thresholds))
    turns = [turn for i, x in enumerate(X[:20]) for turn in diarizer.add(i, i + 1, x)]
    assert all(turn.confidence is None for turn in (*turns, *diarizer.current()))
    assert "<NA> <NA>\n" in diarizer.rttm()


def test_rttm_keeps_the_confidence():
    turns = [Turn(0.0, 1.0, "Ann Lee", confidence=0.98765), Turn(1.0, 2.0, "Bob")]
    text = write_rttm(turns)
    assert text.splitlines()[0] == "SPEAKER stream 1 0.000 1.000 <NA> <NA> Ann%20Lee 0.9877 <NA>"
    [again] = read_rttm(text).values()
    assert [turn.confidence for turn in again] == [0.9877, None]
    assert write_rttm(again) == text


@pytest.mark.parametrize("field", ["<NA>", "-0.5", "1.5", "nan", "high", "1e999"])
def test_what_is_no_probability_is_read_as_unknown(field):
    line = f"SPEAKER a 1 0.5 1.5 <NA> <NA> Ann {field} <NA>"
    assert read_rttm(line)["a"][0].confidence is None
    assert read_rttm(f"SPEAKER a 1 0.5 1.5 <NA> <NA> Ann {field}")["a"][0].confidence is None
