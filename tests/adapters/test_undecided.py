"""Segments whose vectors are held, and segments that an undo of the clusterer takes."""

from __future__ import annotations

import numpy as np
import pytest

from confidence.sure import HELD, NEW
from linkstream import Links, Thresholds
from linkstream.adapters.diarization import Diarizer, read_rttm
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Model
from linkstream.errors import ArgumentError
from linkstream.store import Store
from streams import lobes

THRESHOLDS = (0.7, 0.6, 0.9)
A, B, STRANGE = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.6, 0.5]
STREAM = lobes(np.random.default_rng(0), 260)


def holding(links):
    """Return a clusterer with a policy that holds every vector that is not surely its cluster's."""
    links.confidence.use(Model(setting(links.core), HELD, NEW, HELD, 40))
    return links


def unsure(n=260, sure=0.8, **options):
    """Return a diarizer that has heard n windows, some of which are held, and what came back."""
    links = holding(Links(*STREAM.thresholds))
    diarizer, told = Diarizer(links, **options), []
    for i, vector in enumerate(STREAM.vectors[:n]):
        told.append(diarizer.add(0.4 * i, 0.4 * i + 1.6, vector))
        if i == 0:
            links.accept(sure)
    assert 0 < len(links.held(limit=n)) < n
    return diarizer, told


def seconds(turns):
    return sum(turn.duration for turn in turns)


def waiting(diarizer):
    return sorted(each.vector for each in diarizer.links.held(limit=10_000))


@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_every_segment_becomes_final_once_where_a_policy_holds_vectors(delay):
    diarizer, told = unsure(delay=delay)
    final = [turn for turns in told for turn in turns] + diarizer.finish()
    heard = 0.4 * 259 + 1.6
    assert seconds(final) >= heard - 1e-6
    assert seconds(diarizer.final()) == pytest.approx(heard)
    assert diarizer.pending() == []
    assert {turn.cluster for turn in final} <= {each.id for each in diarizer.links.clusters()}


def test_current_turns_give_held_segments_to_speakers_by_time():
    diarizer, _ = unsure(delay=1.0)
    assert seconds(diarizer.current()) == pytest.approx(0.4 * 259 + 1.6)
    assert "speaker--1" not in diarizer.rttm()
    assert all(turn.cluster >= 0 for turn in diarizer.current())


def test_without_a_delay_a_held_segment_is_undecided_until_its_vector_is_decided():
    diarizer, told = unsure()
    held = waiting(diarizer)
    assert [told[i][0].speaker for i in held] == ["undecided"] * len(held)
    assert {told[i][0].cluster for i in held} == {-1}
    assert {turn.cluster for turn in diarizer.current() if turn.speaker == "undecided"} == {-1}
    assert seconds(diarizer.current()) == pytest.approx(0.4 * 259 + 1.6)
    diarizer.links.accept()
    assert all(turn.cluster >= 0 for turn in diarizer.current())
    assert seconds(diarizer.current()) == pytest.approx(0.4 * 259 + 1.6)
    assert any(turn.speaker == "undecided" for turn in diarizer.instant())  # as it was told
    spoken = {turn.speaker for turn in read_rttm(diarizer.rttm("instant"))["stream"]}
    assert "speaker--1" not in spoken


@pytest.mark.parametrize("delay", [None, 1.0])
def test_a_held_vector_that_is_removed_leaves_the_current_turns(delay):
    diarizer, _ = unsure(delay=delay)
    before = diarizer.current()
    held = waiting(diarizer)[-1]
    middle = 0.4 * held + 0.8
    assert any(turn.start <= middle < turn.end for turn in before)
    diarizer.links.remove(held)
    assert not any(turn.start <= middle < turn.end for turn in diarizer.current())
    diarizer.links.undo()
    assert diarizer.current() == before


def test_a_segment_that_is_held_before_there_is_a_speaker_is_undecided():
    links = holding(Links(*THRESHOLDS))
    links.add(A)
    links.accept(0.9)
    diarizer = Diarizer(links, delay=1.0)
    told = [turn for i in range(5) for turn in diarizer.add(i, i + 1, STRANGE)]
    told += diarizer.finish()
    assert [(turn.start, turn.speaker, turn.cluster) for turn in told] == [
        (i, "undecided", -1) for i in range(5)
    ]
    assert [turn.speaker for turn in diarizer.current()] == ["undecided"]
    diarizer.add(5, 6, A)
    assert [turn.cluster for turn in diarizer.current()] == [0]


def test_a_cluster_called_undecided_is_not_taken_for_held_segments():
    diarizer = Diarizer(Links(*THRESHOLDS))
    diarizer.add(0, 1, A)
    diarizer.links.name(0, "undecided")
    assert [turn.speaker for turn in diarizer.current()] == ["speaker-0"]


# Undo


def recorded(links, **options):
    """Return a diarizer with ten segments of A and ten of B."""
    diarizer = Diarizer(links, **options)
    for i in range(20):
        diarizer.add(i, i + 1, A if i < 10 else B)
    return diarizer


@pytest.mark.parametrize("delay", [None, 1.0])
@pytest.mark.parametrize("stored", [False, True])
def test_an_undone_segment_leaves_all_turns_and_a_redo_puts_it_back(tmp_path, delay, stored):
    links = Store.open(tmp_path / "a.links", thresholds=Thresholds(*THRESHOLDS)) if stored else None
    diarizer = recorded(links or Links(*THRESHOLDS), delay=delay)
    before = {moment: diarizer.turns(moment) for moment in ("instant", "current", "final")}
    diarizer.links.undo()
    assert len(diarizer.rttm()) > 0
    assert seconds(diarizer.current()) == seconds(diarizer.instant()) == 19.0
    if delay is not None:
        assert seconds(diarizer.final()) + seconds(diarizer.pending()) == 19.0
    assert len(diarizer) == 19
    diarizer.links.redo()
    assert {moment: diarizer.turns(moment) for moment in before} == before
    assert len(diarizer) == 20
    if stored:
        links.close()


@pytest.mark.parametrize("delay", [None, 1.0])
def test_a_stranger_who_gets_the_number_of_an_undone_segment_does_not_speak(delay):
    diarizer = recorded(Links(*THRESHOLDS), delay=delay)
    diarizer.links.undo()
    stranger = diarizer.links.enrol("Stranger", [[0.0, 0.0, 1.0], [0.0, 0.1, 1.0]])
    assert stranger not in {turn.cluster for turn in diarizer.current()}
    assert seconds(diarizer.current()) == 19.0
    diarizer.add(19, 20, B)  # the same segment again
    assert [(turn.start, turn.end, turn.cluster) for turn in diarizer.current()] == [
        (0, 10, 0),
        (10, 20, 1),
    ]


def test_turns_after_an_undo_are_those_of_a_recording_without_the_undone_segments():
    diarizer = recorded(Links(*THRESHOLDS), delay=1.0)
    first = next(each.sequence for each in diarizer.links.events() if each.vector == 12)
    diarizer.links.undo(to=first)
    other = Diarizer(Links(*THRESHOLDS), delay=1.0)
    for each in (diarizer, other):
        for i in range(0 if each is other else 12, 15):
            each.add(i, i + 1, A if i < 10 else B)
    for moment in ("instant", "current", "final"):
        assert diarizer.turns(moment) == other.turns(moment)
    assert diarizer.pending() == other.pending()
    assert diarizer.finish() == other.finish()


def test_an_undo_of_another_change_keeps_the_segments():
    diarizer = recorded(Links(*THRESHOLDS), delay=1.0)
    diarizer.links.name(0, "Ann")
    assert {turn.speaker for turn in diarizer.current()} == {"Ann", "speaker-1"}
    diarizer.links.undo()
    assert {turn.speaker for turn in diarizer.current()} == {"speaker-0", "speaker-1"}


def test_a_time_model_that_is_none_is_refused_without_a_delay_too():
    for delay in (None, 1.0):
        with pytest.raises(ArgumentError, match=r"model=3 for a diarizer"):
            Diarizer(Links(*THRESHOLDS), model=3, delay=delay)
