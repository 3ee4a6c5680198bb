"""Test Diarizer: turns, overlaps, pauses, names, objects of pyannote."""

import builtins
import itertools
import math

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.adapters.diarization import (
    Diarizer,
    Turn,
    read_rttm,
    to_annotation,
    turns_of,
)
from linkstream.data import voice_halves
from linkstream.errors import (
    ArgumentError,
    DimensionError,
    MissingExtraError,
    NotTrackedError,
)
from linkstream.metrics import accuracy
from linkstream.store import Store

THRESHOLDS = (0.7, 0.6, 0.9)
ANN, BOB, CAT = np.eye(3)


def meeting(**options):
    """Return a diarizer with Ann, Bob, Ann again, in five seconds."""
    diarizer = Diarizer(Links(*THRESHOLDS), **options)
    for start, end, who in ((0, 2, ANN), (2, 3, BOB), (3, 5, ANN)):
        diarizer.add(start, end, who)
    return diarizer


def splitting():
    """Return a diarizer whose cluster 0 is split by its last segment."""
    tie = math.radians(45.0)
    t_c = math.sqrt(math.cos(tie))
    diarizer = Diarizer(Links(t_c, math.cos(math.radians(22.0)), t_c * t_c))
    for second, degrees in enumerate([0, 0, 0, 40, 55]):
        angle = math.radians(degrees)
        diarizer.add(second, second + 1, [math.cos(angle), math.sin(angle)])
    return diarizer


def windows(stream, length=1.6):
    return [(t, t + length) for t in stream.t.tolist()]


def spoken(turns):
    return [(turn.start, turn.end, turn.cluster) for turn in turns]


def speakers_at(turns, moment):
    return sorted(turn.cluster for turn in turns if turn.start <= moment < turn.end)


# One by one


def test_add_returns_the_speaker_of_a_segment():
    diarizer = Diarizer(Links(*THRESHOLDS))
    assert diarizer.add(0.0, 1.0, ANN) == [Turn(0.0, 1.0, "speaker-0", 0)]
    assert diarizer.add(1.0, 2.5, BOB) == [Turn(1.0, 2.5, "speaker-1", 1)]
    assert len(diarizer) == 2


def test_without_segments_there_are_no_turns():
    diarizer = Diarizer(Links(*THRESHOLDS))
    assert diarizer.instant() == diarizer.current() == []
    assert diarizer.rttm() == ""


def test_the_ids_are_those_of_the_clusterer():
    stream, _ = voice_halves()
    links, diarizer = Links.preset("ge2e-windows"), Diarizer(Links.preset("ge2e-windows"))
    told = [
        diarizer.add(*span, x)[0].cluster for span, x in zip(windows(stream), stream.X, strict=True)
    ]
    assert told == links.add_many(stream.X).tolist()
    assert diarizer.current() == turns_of(windows(stream), links.labels())
    assert diarizer.instant() == turns_of(windows(stream), told)
    assert diarizer.current() != diarizer.instant()


def test_instant_turns_stay_and_current_turns_follow_a_split():
    diarizer = splitting()
    assert spoken(diarizer.instant())[0][2] == 0
    assert len(diarizer.links.clusters()) == 2
    assert spoken(diarizer.current()) == [(0, 3, 0), (3, 5, 1)]
    assert spoken(diarizer.instant()) != spoken(diarizer.current())


def test_current_turns_follow_corrections():
    diarizer = meeting()
    diarizer.links.same(0, 1)
    assert spoken(diarizer.current()) == [(0, 5, 0)]
    assert spoken(diarizer.instant()) == [(0, 2, 0), (2, 3, 1), (3, 5, 0)]


def test_a_segment_whose_vector_was_removed_is_left_out_of_the_current_turns():
    diarizer = meeting()
    diarizer.links.remove(1)
    assert spoken(diarizer.current()) == [(0, 2, 0), (3, 5, 0)]


def test_segments_of_one_group_are_different_speakers():
    diarizer = Diarizer(Links(*THRESHOLDS), overlaps="keep")
    told = [diarizer.add(0, 1, ANN, group="chunk 7")[0].cluster for _ in range(2)]
    assert told == [0, 1]


def test_a_store_keeps_speakers_and_names_between_recordings(tmp_path):
    path = tmp_path / "people.links"
    with Store.open(path, thresholds=Thresholds(*THRESHOLDS)) as store:
        yesterday = Diarizer(store)
        yesterday.add(0, 2, BOB)
        yesterday.add(2, 4, ANN)
        store.name(1, "Ann")
    with Store.open(path) as store:
        today = Diarizer(store)
        assert today.add(0, 1, ANN)[0].speaker == "Ann"
        today.add(1, 2, CAT)
        assert [turn.speaker for turn in today.current()] == ["Ann", "speaker-2"]


def test_without_tracking_there_are_instant_turns_only():
    diarizer = Diarizer(Links(*THRESHOLDS, track_vectors=False))
    diarizer.add(0, 1, ANN)
    assert spoken(diarizer.instant()) == [(0, 1, 0)]
    with pytest.raises(NotTrackedError):
        diarizer.current()


@pytest.mark.parametrize(
    "span", [(1, 1), (2, 1), (-1, 1), (0, math.nan), (0, math.inf), ("a", 1), (None, 1), ([1], 2)]
)
def test_a_segment_with_invalid_times_changes_nothing(span):
    diarizer = meeting()
    before = diarizer.links.state_hash()
    with pytest.raises(ArgumentError, match="a segment from"):
        diarizer.add(*span, ANN)
    assert (len(diarizer), diarizer.links.state_hash()) == (3, before)


def test_a_segment_with_a_bad_vector_changes_nothing():
    diarizer = meeting()
    turns = diarizer.current()
    with pytest.raises(DimensionError):
        diarizer.add(5, 6, [1.0, 0.0])
    assert len(diarizer) == 3
    assert diarizer.current() == turns


@pytest.mark.parametrize(
    "options", [{"overlaps": "mix"}, {"gap": -1}, {"gap": math.nan}, {"gap": True}, {"uri": ""}]
)
def test_invalid_options_are_refused(options):
    with pytest.raises(ArgumentError):
        Diarizer(Links(*THRESHOLDS), **options)


def test_an_unknown_moment_is_refused():
    with pytest.raises(ArgumentError, match="moment 'later'"):
        meeting().turns("later")


# Overlaps and pauses


def random_spans(rng, n):
    starts = rng.uniform(0, 10, n)
    return [(a, a + length) for a, length in zip(starts, rng.uniform(0.05, 6, n), strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_every_moment_goes_to_the_segment_with_the_nearest_middle(seed):
    rng = np.random.default_rng(seed)
    spans = random_spans(rng, 12)
    turns = turns_of(spans, np.arange(12))
    for moment in rng.uniform(0, 16, 300):
        near = [(abs(moment - (a + b) / 2), i) for i, (a, b) in enumerate(spans) if a <= moment < b]
        assert speakers_at(turns, moment) == ([min(near)[1]] if near else [])


@pytest.mark.parametrize("seed", range(5))
def test_cut_segments_never_overlap_and_cover_what_they_covered(seed):
    spans = random_spans(np.random.default_rng(seed), 30)
    turns = turns_of(spans, np.arange(30) % 4)
    for one, other in itertools.pairwise(turns):
        assert one.end <= other.start + 1e-9
    alone = turns_of(spans, np.zeros(30, dtype=int))
    assert sum(t.duration for t in turns) == pytest.approx(sum(t.duration for t in alone))


def test_windows_of_one_length_keep_the_time_around_their_middle():
    turns = turns_of([(0.24 * i, 0.24 * i + 1.44) for i in range(4)], [0, 1, 2, 3])
    borders = [turn.end for turn in turns[:-1]]
    assert borders == pytest.approx([0.84, 1.08, 1.32])


@pytest.mark.parametrize("ids", [[0, 1], [1, 0]])
def test_of_two_segments_with_one_middle_the_shorter_keeps_the_time(ids):
    spans = [(0.0, 10.0), (4.0, 6.0)]
    turns = turns_of([spans[i] for i in ids], ids)
    assert spoken(turns) == [(0, 4, 0), (4, 6, 1), (6, 10, 0)]


def test_of_two_equal_segments_the_first_keeps_the_time():
    assert spoken(turns_of([(0, 1), (0, 1)], [5, 3])) == [(0, 1, 5)]


def test_kept_overlaps_stay_as_they_are():
    spans, ids = [(0, 3), (1, 2), (2.5, 4)], [0, 1, 0]
    assert spoken(turns_of(spans, ids, overlaps="keep")) == [(0, 4, 0), (1, 2, 1)]


def test_segments_may_come_in_any_order_of_time():
    spans, ids = [(0, 1), (1, 2), (2, 3), (2.5, 4)], np.array([0, 0, 1, 1])
    for order in itertools.permutations(range(4)):
        assert turns_of([spans[i] for i in order], ids[list(order)]) == turns_of(spans, ids)


def test_a_short_pause_does_not_end_a_turn():
    spans, ids = [(0, 1), (1.4, 2), (3, 4)], [0, 0, 0]
    assert spoken(turns_of(spans, ids)) == [(0, 1, 0), (1.4, 2, 0), (3, 4, 0)]
    assert spoken(turns_of(spans, ids, gap=0.5)) == [(0, 2, 0), (3, 4, 0)]


@pytest.mark.parametrize("other", [(1, 1.4), (1.1, 1.2), (0.5, 1.2), (1.3, 9)])
def test_a_pause_in_which_another_speaks_ends_a_turn(other):
    spans = [(0, 1), other, (1.4, 2)]
    told = [turn for turn in turns_of(spans, [0, 1, 0], gap=1, overlaps="keep") if not turn.cluster]
    assert spoken(told) == [(0, 1, 0), (1.4, 2, 0)]


@pytest.mark.parametrize("ids", [[0], [0.0, 1.0], [[0, 1]]])
def test_labels_must_be_one_whole_number_a_segment(ids):
    with pytest.raises(ArgumentError, match="for 2 segments"):
        turns_of([(0, 1), (1, 2)], ids)


# Names


def test_a_speaker_is_called_by_the_name_of_the_cluster():
    diarizer = meeting()
    diarizer.links.name(0, "Ann")
    assert [turn.speaker for turn in diarizer.current()] == ["Ann", "speaker-1", "Ann"]
    assert [turn.speaker for turn in diarizer.instant()] == ["Ann", "speaker-1", "Ann"]


def test_a_name_that_looks_like_another_cluster_is_not_used():
    diarizer = meeting()
    diarizer.links.name(0, "speaker-1")
    assert [turn.speaker for turn in diarizer.current()] == ["speaker-0", "speaker-1", "speaker-0"]


def test_hostile_names_of_clusters_come_back_too():
    diarizer = meeting()
    diarizer.links.name(0, "Ann\nSPEAKER x 1 0 9 <NA> <NA> Eve <NA> <NA>")
    (turns,) = read_rttm(diarizer.rttm()).values()
    assert [turn.speaker for turn in turns] == [turn.speaker for turn in diarizer.current()]
    assert len(turns) == 3


# pyannote


@pytest.mark.parametrize("moment", ["instant", "current"])
def test_the_annotation_tells_the_same_turns(moment):
    diarizer = splitting()
    annotation = diarizer.annotation(moment)
    told = [(s.start, s.end, who) for s, _, who in annotation.itertracks(yield_label=True)]
    assert told == [(turn.start, turn.end, turn.speaker) for turn in diarizer.turns(moment)]
    assert annotation.uri == "stream"


def test_the_annotation_holds_two_speakers_at_one_time():
    turns = [Turn(0, 1, "Ann"), Turn(0, 1, "Bob Lee")]
    assert sorted(to_annotation(turns).labels()) == ["Ann", "Bob Lee"]


def test_pyannote_writes_the_rttm_that_we_write():
    diarizer = meeting(uri="a")
    assert diarizer.annotation().to_rttm() == diarizer.rttm()


def test_pyannote_is_asked_for_by_its_extra(monkeypatch):
    whole = builtins.__import__

    def without(name, *more):
        if name.startswith("pyannote"):
            raise ImportError(name)
        return whole(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"linkstream\[diarization\]"):
        meeting().annotation()


def test_the_error_rate_by_pyannote_is_one_less_the_accuracy_where_segments_are_of_one_length():
    from pyannote.metrics.diarization import DiarizationErrorRate

    _, stream = voice_halves()
    diarizer = Diarizer(Links.preset("ge2e-windows"))
    seconds = [(i, i + 1) for i in range(len(stream.X))]
    given = [diarizer.add(*span, x)[0].cluster for span, x in zip(seconds, stream.X, strict=True)]
    reference = to_annotation(turns_of(seconds, stream.y))
    for moment, ids in (("instant", given), ("current", diarizer.links.labels())):
        whole = reference.get_timeline().support()
        rate = DiarizationErrorRate()(reference, diarizer.annotation(moment), uem=whole)
        assert rate == pytest.approx(1 - accuracy(stream.y, ids))
