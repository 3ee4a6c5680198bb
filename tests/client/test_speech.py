"""Both clients add segments to recordings and follow their turns."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.adapters.diarization import Diarizer, Turn
from linkstream.client.endpoint import Retries
from linkstream.client.errors import AnswerError, ExistsError, NotFoundError
from linkstream.client.event_stream import Follower
from linkstream.client.speech import TurnFollower
from linkstream.data import voice_halves
from linkstream.errors import ArgumentError, DimensionError, IdempotencyError, VectorError
from linkstream.turn_model import TimeModel

STREAM = voice_halves()[1]
N = 300  # more than one request
X = STREAM.X[:N]
TIMES = np.column_stack([STREAM.t[:N], STREAM.t[:N] + 1.6]).round(3)


def expected(**options):
    diarizer = Diarizer(Links.preset("ge2e-turns"), **options)
    final = [diarizer.add(*span, x) for span, x in zip(TIMES.tolist(), X, strict=True)]
    return diarizer, [rounded(turn) for each in final for turn in each]


def rounded(turn):
    return Turn(round(turn.start, 3), round(turn.end, 3), turn.speaker, turn.cluster)


def test_turns_are_those_of_a_diarizer(talk, service, name):
    model = TimeModel(hold=3.0)
    diarizer, final = expected(gap=0.25, delay=2.0, model=model)
    with talk(None, service, name) as people:
        people.create(preset="ge2e-turns")
        options = {"gap": 0.25, "delay": 2.0, "model": model}
        assert people.add_segments("monday", TIMES, X, **options) == final
        found = people.turns("monday")
        assert found.turns == tuple(map(rounded, diarizer.final()))
        assert found.pending == tuple(map(rounded, diarizer.pending()))
        assert (found.segments, found.finished) == (N, False)
        assert (found.delay, found.gap, found.model) == (2.0, 0.25, model)
        current = people.turns("monday", "current").turns
        assert current == tuple(map(rounded, diarizer.current()))
        assert people.finish_recording("monday") == list(map(rounded, diarizer.finish()))
        (listed,) = people.recordings()
        assert (listed.recording, listed.finished, listed.turns) == ("monday", True, ())


def test_the_same_call_with_the_same_key_counts_once(talk, service, name):
    with talk(None, service, name) as people:
        people.create(preset="ge2e-turns")
        once = people.add_segments("monday", TIMES, X, idempotency_key="a")
        assert people.add_segments("monday", TIMES, X, idempotency_key="a") == once
        assert people.info().n_vectors == N
        with pytest.raises(IdempotencyError):
            people.add_segments("monday", TIMES + 1, X, idempotency_key="a")


def test_errors_are_those_of_the_library(talk, service, name):
    with talk(None, service, name) as people:
        people.create(preset="ge2e-turns")
        for wrong in (".a", "a/b", "", 7):
            with pytest.raises(ArgumentError, match="the recording"):
                people.turns(wrong)
        with pytest.raises(NotFoundError):
            people.turns("monday")
        with pytest.raises(NotFoundError):
            people.finish_recording("monday")
        with pytest.raises(VectorError, match="finite"):
            people.add_segments("monday", TIMES[:1], np.full((1, 256), np.nan))
        with pytest.raises(ArgumentError, match="end"):
            people.add_segments("monday", [(1, 0)], X[:1])
        with pytest.raises(ArgumentError, match="1 times"):
            people.add_segments("monday", TIMES[:1], X[:2])
        people.add_segments("monday", TIMES[:2], X[:2])
        with pytest.raises(DimensionError):
            people.add_segments("monday", TIMES[2:3], X[:1, :9])
        with pytest.raises(ExistsError, match="delay"):
            people.add_segments("monday", TIMES[2:3], X[:1], delay=3.0)


def test_segments_of_one_group_have_different_speakers(talk, service, name):
    with talk(None, service, name) as people:
        people.create(preset="ge2e-turns")
        both = people.add_segments(
            "monday", [(0, 1), (0, 1)], X[:2], groups=["0", "0"], delay=None, overlaps="keep"
        )
        assert len({turn.cluster for turn in both}) == 2


def test_the_stream_of_turns_yields_each_once(talk, service, name):
    with talk(None, service, name) as people:
        people.create(preset="ge2e-turns")
        final = people.add_segments("monday", TIMES, X)
        assert people.first("follow_turns", len(final), "monday") == final
        assert people.first("follow_turns", 3, "monday", 7) == final[7:10]


def test_a_follower_resumes_and_refuses_what_is_no_turn():
    follower = TurnFollower("monday", 0, Retries())
    assert isinstance(follower, Follower)
    told = b'data: {"kind":"final","number":%d,"start":0,"end":1,"speaker":"A","cluster":0}\n\n'
    assert list(follower.read(told % 0 + b'data: {"kind":"pending","turns":[]}\n\n')) == [
        Turn(0.0, 1.0, "A", 0)
    ]
    request = follower.request()
    assert request.path == "turns/monday/stream"
    assert (request.query, request.headers["Last-Event-ID"]) == ({"since": 1}, "0")
    assert list(follower.read(told % 0)) == []
    for wrong in (b"data: 7\n\n", b'data: {"kind":"final"}\n\n', b"data: {\n\n"):
        with pytest.raises(AnswerError, match="no turn"):
            list(follower.read(wrong))
