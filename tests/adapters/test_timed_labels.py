"""Test Diarizer with a delay: final turns, pending turns, turns of the whole recording."""

from contextlib import suppress

import numpy as np
import pytest
from benchmarks import conversation_bed as bed

from linkstream import Links, Thresholds
from linkstream.adapters.diarization import Diarizer, Turn, turns_of
from linkstream.data import voice_stream
from linkstream.errors import ArgumentError, LinkstreamError
from linkstream.store import Store
from linkstream.turn_model import TimeModel, chapters

THRESHOLDS = (0.7, 0.6, 0.9)
ANN, BOB, CAT = np.eye(3)
LENGTH, STEP = 1.6, 0.4


def windows(pattern, first=0):
    """Yield start, end and vector of overlapping windows: one for each letter of a, b, c."""
    for place, letter in enumerate(pattern, start=first):
        start = round(STEP * place, 3)
        yield start, round(start + LENGTH, 3), np.eye(3)["abc".index(letter)]


def heard(pattern, **options):
    """Return a diarizer that has heard a pattern, and the turns that became final on the way."""
    diarizer = Diarizer(Links(*THRESHOLDS), **({"delay": 1.0} | options))
    final = [turn for window in windows(pattern) for turn in diarizer.add(*window)]
    return diarizer, final


def spoken(turns):
    return [(round(turn.start, 3), round(turn.end, 3), turn.cluster) for turn in turns]


def seconds(turns):
    return sum(turn.duration for turn in turns)


def test_a_segment_is_final_after_the_delay_and_pending_until_then():
    diarizer = Diarizer(Links(*THRESHOLDS), delay=1.0)
    told = [diarizer.add(*window) for window in windows("aaaaaa")]
    assert [spoken(turns) for turns in told[:4]] == [[], [], [], [(0.0, 1.0, 0)]]
    assert spoken(told[4]) == [(1.0, 1.4, 0)]
    assert spoken(diarizer.pending()) == [(1.8, 3.6, 0)]
    assert spoken(diarizer.finish()) == [(1.8, 2.2, 0), (2.2, 2.6, 0), (2.6, 3.6, 0)]
    assert diarizer.pending() == diarizer.finish() == []


def test_final_turns_are_what_add_and_finish_returned():
    diarizer, final = heard("aaaaabbbbbbbaaaacccccc")
    final += diarizer.finish()
    assert seconds(diarizer.final()) == pytest.approx(seconds(final))
    assert spoken(diarizer.final()) == spoken(
        turns_of([(t.start, t.end) for t in final], [t.cluster for t in final])
    )
    assert diarizer.rttm("final").count("\n") == len(diarizer.final())


def test_final_and_pending_turns_cover_all_that_was_heard():
    diarizer, _ = heard("aaaaabbbbbb")
    assert seconds(diarizer.final()) + seconds(diarizer.pending()) == pytest.approx(5.6)


def test_a_window_that_contradicts_its_neighbours_goes_to_their_speaker():
    links = Links(*THRESHOLDS)
    diarizer = Diarizer(links, delay=2.0)
    pattern = "a" * 12 + "b" * 12 + "aaaaaa"
    for place, (start, end, x) in enumerate(windows(pattern)):
        noisy = 0.68 * ANN + 0.73 * BOB if place == 4 else x
        diarizer.add(start, end, noisy)
    diarizer.finish()
    assert len({turn.cluster for turn in diarizer.instant()}) >= 2
    assert [turn.cluster for turn in diarizer.final()] == [0, links.labels()[12], 0]


def test_final_turns_do_not_change_when_clusters_do():
    diarizer, _ = heard("aaaaaaaabbbbbbbb")
    before = spoken(diarizer.final())
    diarizer.links.same(0, 1, of="clusters")
    assert spoken(diarizer.final()) == before
    assert {turn.cluster for turn in diarizer.current()} == {0}


def test_a_join_of_clusters_is_followed_by_the_windows_after_it():
    diarizer, _ = heard("aaaaaaaabbbbbbbb")
    diarizer.links.same(0, 1, of="clusters")
    later = [turn for window in windows("bbbbbbbb", 16) for turn in diarizer.add(*window)]
    assert {turn.cluster for turn in later[3:]} == {0}


def test_a_removed_vector_is_in_no_current_turn():
    diarizer, _ = heard("aaaaaaaabbbbbbbb")
    before = seconds(diarizer.current())
    for vector in range(8):
        diarizer.links.remove(vector)
    assert {turn.cluster for turn in diarizer.current()} == {1}
    assert seconds(diarizer.current()) < before


def test_names_are_those_of_the_clusters_at_every_moment():
    diarizer, _ = heard("aaaaaaaabbbbbbbb")
    diarizer.links.name(0, "Ann")
    for moment in ("instant", "final", "current"):
        assert diarizer.turns(moment)[0].speaker == "Ann"
    assert [turn.speaker for turn in diarizer.pending()] == ["speaker-1"]
    diarizer.links.rename(0, "Bea")
    assert diarizer.current()[0].speaker == diarizer.final()[0].speaker == "Bea"


def test_a_cluster_of_one_window_is_no_speaker_in_the_current_turns_unless_it_has_a_name():
    diarizer, _ = heard("a" * 20 + "c" + "a" * 20)
    assert {turn.cluster for turn in diarizer.instant()} == {0, 1}
    assert {turn.cluster for turn in diarizer.current()} == {0}
    diarizer.links.name(1, "Cat")
    assert {turn.cluster for turn in diarizer.current()} == {0, 1}


def test_current_turns_may_be_asked_for_at_any_time_and_do_not_change_what_becomes_final():
    quiet, told = heard("aaaabbbbccccaaaabbbb")
    asked = Diarizer(Links(*THRESHOLDS), delay=1.0)
    seen = []
    for window in windows("aaaabbbbccccaaaabbbb"):
        seen += asked.add(*window)
        asked.current()
        asked.pending()
    assert seen == told
    assert asked.current() == quiet.current()


def test_without_a_delay_every_segment_is_final_at_once():
    diarizer = Diarizer(Links(*THRESHOLDS))
    assert diarizer.add(0, 2, ANN) == [Turn(0.0, 2.0, "speaker-0", 0)]
    assert diarizer.final() == diarizer.instant()
    assert diarizer.pending() == diarizer.finish() == []


def test_a_store_keeps_names_for_the_next_recording(tmp_path):
    path = tmp_path / "people.links"
    with Store.open(path, thresholds=Thresholds(*THRESHOLDS)) as store:
        monday = Diarizer(store, delay=1.0)
        for window in windows("aaaabbbb"):
            monday.add(*window)
        store.name(1, "Bob")
        tuesday = Diarizer(store, delay=1.0)
        for window in windows("ccccccbbbbbb"):
            tuesday.add(*window)
        tuesday.finish()
        assert [turn.speaker for turn in tuesday.final()] == ["speaker-2", "Bob"]
        assert [turn.speaker for turn in tuesday.current()] == ["speaker-2", "Bob"]


def test_without_tracking_final_turns_follow_joins():
    diarizer = Diarizer(Links(*THRESHOLDS, track_vectors=False), delay=1.0)
    for window in windows("aaaabbbbbb"):
        diarizer.add(*window)
    assert {turn.cluster for turn in diarizer.final()} == {0, 1}
    assert {turn.cluster for turn in diarizer.current()} == {0, 1}


@pytest.mark.parametrize("delay", [-1, np.nan, np.inf, "1", True, 1e9])
def test_a_delay_that_is_no_number_of_seconds_is_refused(delay):
    with pytest.raises(ArgumentError, match="delay"):
        Diarizer(Links(*THRESHOLDS), delay=delay)


def test_with_a_delay_segments_arrive_in_order_and_without_groups():
    diarizer, _ = heard("aaaa")
    before = diarizer.links.state_hash()
    with pytest.raises(ArgumentError, match="in order of their starts"):
        diarizer.add(0.1, 1.0, ANN)
    with pytest.raises(ArgumentError, match="one speaker at a time"):
        diarizer.add(9.0, 10.0, ANN, group="chunk")
    assert (len(diarizer), diarizer.links.state_hash()) == (4, before)


@pytest.mark.parametrize("model", [None, TimeModel(hold=8.0, sharpness=50.0)])
def test_real_voices_have_fewer_errors_with_evidence_of_time(model):
    stream = voice_stream()
    space = Links.preset("ge2e-windows").space
    links = Links(0.41, 0.94, 0.52, mode="best", space=space)  # tuned for labels of other voices
    diarizer = Diarizer(links, delay=2.0, model=model)
    half = len(stream.y) // 2
    for start, x in zip(stream.t[:half].tolist(), stream.X, strict=False):
        diarizer.add(start, start + LENGTH, x)
    diarizer.finish()
    rates = {
        moment: errors(diarizer.turns(moment), stream, half)
        for moment in ("instant", "final", "current")
    }
    assert rates["final"] < rates["instant"]
    assert rates["current"] < min(rates["final"], 0.04)


def errors(turns, stream, half):
    """Return the share of windows whose middle lies in a turn of a wrong speaker."""
    middles = stream.t[:half] + LENGTH / 2
    labels = np.full(half, -1)
    for turn in turns:
        labels[(middles >= turn.start) & (middles < turn.end)] = turn.cluster
    spans = np.column_stack([stream.t[:half], stream.t[:half] + LENGTH])
    people = np.unique(stream.y[:half], return_inverse=True)[1]
    truth = np.eye(people.max() + 1)[people]
    whole = bed.Conversation(stream.X[:half], spans, truth, np.ones(half), people)
    return whole.confusion(labels)


def test_the_turns_of_a_prefix_do_not_depend_on_what_follows():
    pattern = "aaaabbbbaaaaccccbbbb"
    _, told = heard(pattern)
    for length in range(1, len(pattern)):
        _, prefix = heard(pattern[:length])
        assert prefix == told[: len(prefix)]


def test_the_first_window_after_a_pause_counts_as_much_as_those_after_it():
    diarizer, _ = heard("aaaa")
    for window in windows("bbbb", 30):
        diarizer.add(*window)
    assert list(diarizer._timed._milliseconds) == [400] * 8


@pytest.mark.parametrize("seed", range(6))
def test_turns_do_not_depend_on_when_and_how_often_they_were_asked_for(seed, monkeypatch):
    """Corrections included: they are made at the same moments, the questions are not."""
    monkeypatch.setattr(chapters, "CHAPTER", 12)
    rng = np.random.default_rng(seed)
    X = np.eye(6)[rng.integers(0, 3, 30).repeat(4)] + 0.4 * rng.normal(size=(120, 6))
    deeds = rng.choice(["", "name", "same", "different", "undo", "remove"], 120, p=DEED_SHARES)
    targets = rng.random((120, 2))
    answers = []
    for chance in (0.0, 0.3, 1.0):
        asks = np.random.default_rng([seed, 1]).random((120, 4)) < chance
        answers.append(told(X, deeds, targets, asks))
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0][2]) > 5


DEED_SHARES = (0.8, 0.05, 0.04, 0.04, 0.04, 0.03)


def told(X, deeds, targets, asks):
    """Return final, pending and current turns of a recording with corrections and questions."""
    diarizer = Diarizer(Links(*THRESHOLDS, mode="best"), delay=1.0)
    questions = (diarizer.current, diarizer.pending, diarizer.final, diarizer.instant)
    final = []
    for n, x in enumerate(X):
        final += diarizer.add(0.4 * n, 0.4 * n + LENGTH, x)
        ask(questions, asks[n])
        places = (targets[n] * (n + 1)).astype(int).tolist()
        before = diarizer.links.n_events
        correct(diarizer.links, deeds[n], *places)
        if deeds[n] == "undo" and diarizer.links.n_events > before:
            ask(questions, asks[n])
            diarizer.links.undo()
        ask(questions, asks[n])
    return final, diarizer.pending(), diarizer.current(), diarizer.final()


def ask(questions, wanted):
    for question, now in zip(questions, wanted, strict=True):
        if now:
            question()


def correct(links, deed, one, other):
    """Correct something, if that is possible."""
    with suppress(LinkstreamError):
        if deed == "name":
            links.name(int(links.labels()[one]), f"person {one}")
        elif deed in ("same", "undo"):
            links.same(one, other)
        elif deed == "different":
            links.different(one, other)
        elif deed == "remove":
            links.remove(one)


def test_a_fragment_of_a_known_voice_is_no_speaker_in_final_turns():
    """Windows across borders are clusters of their own, at once; with a delay they are nobody."""
    ann_bob = (ANN + BOB) / np.sqrt(2)
    diarizer = Diarizer(Links(0.8, 0.8, 0.9), delay=1.0)
    vectors = ([ANN] * 20 + [ann_bob] * 2 + [BOB] * 20 + [ann_bob] * 2) * 2
    for n, x in enumerate(vectors):
        diarizer.add(0.4 * n, 0.4 * n + LENGTH, x)
    diarizer.finish()
    assert len({turn.cluster for turn in diarizer.instant()}) == 3
    assert len({turn.cluster for turn in diarizer.final()}) == 2


# Runs: segments known to be of one speaker


def test_a_run_is_one_observation():
    diarizer = Diarizer(Links(*THRESHOLDS), delay=1.0)
    noisy = 0.75 * ANN + 0.66 * BOB
    runs = [[ANN, ANN, noisy, ANN], [BOB, BOB, BOB], [noisy, ANN, ANN]]
    told, place = [], 0
    for run in runs:
        spans = [(0.4 * (place + n), 0.4 * (place + n) + LENGTH) for n in range(len(run))]
        told += diarizer.add_run([(*s, x) for s, x in zip(spans, run, strict=True)])
        place += len(run)
    told += diarizer.finish()
    assert diarizer.links.n_vectors == 3
    assert [turn.cluster for turn in diarizer.instant()] == [0, 1, 0]
    assert len(diarizer) == 10
    assert seconds(told) == pytest.approx(seconds(diarizer.final()))
    diarizer.links.remove(1)
    assert {turn.cluster for turn in diarizer.current()} == {0}


def test_a_run_of_one_segment_is_that_segment():
    one, other = (Diarizer(Links(*THRESHOLDS), delay=0.4) for _ in range(2))
    for start, end, x in windows("aabbbaaacc"):
        assert one.add(start, end, x) == other.add_run([(start, end, x)])
    assert one.current() == other.current()


@pytest.mark.parametrize(
    "run",
    [
        [],
        [(1.0, 2.0, ANN), (0.0, 1.0, ANN)],
        [(9.0, 10.0, ANN), (10.0, 11.0, [1.0, 0.0])],
        [(9.0, 10.0, ANN), (10.0, 11.0, 0.0 * ANN)],
        [(9.0, 10.0, ANN), (10.0, 11.0, [np.nan, 0.0, 0.0])],
        [(0.0, 10.0, ANN)],
    ],
)
def test_a_run_that_is_none_changes_nothing(run):
    diarizer, _ = heard("aaabbb")
    before = diarizer.links.state_hash()
    with pytest.raises(ArgumentError):
        diarizer.add_run(run)
    assert (len(diarizer), diarizer.links.state_hash()) == (6, before)
