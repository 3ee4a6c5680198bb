"""Test words with speakers."""

import json

import pytest

from linkstream.adapters.rttm import Turn
from linkstream.adapters.words import words_with_speakers
from linkstream.errors import ArgumentError

TURNS = [Turn(0.0, 2.0, "Ann"), Turn(2.0, 4.0, "Bob"), Turn(10.0, 12.0, "Ann")]


def word(text, start=None, end=None):
    times = {} if start is None else {"start": start, "end": end}
    return {"word": text, **times, "score": 0.9}


def told(*words, **segment):
    answer = words_with_speakers({"segments": [{"words": list(words), **segment}]}, TURNS)
    return [each.get("speaker") for each in answer["segments"][0]["words"]]


def test_a_word_gets_the_speaker_with_most_of_its_time():
    assert told(word("one", 0.5, 1.0), word("two", 1.7, 2.2), word("three", 1.9, 2.4)) == [
        "Ann",
        "Ann",
        "Bob",
    ]


def test_a_word_in_a_pause_gets_the_nearest_speaker_within_a_second():
    assert told(word("near", 4.5, 4.8), word("before", 9.4, 9.6), word("far", 6.0, 6.5)) == [
        "Bob",
        "Ann",
        None,
    ]


def test_a_word_without_times_gets_the_speaker_before_it_or_of_its_segment():
    words = (word("2026"), word("was", 2.5, 2.8), word("42"))
    assert told(*words, start=0.0, end=3.0) == ["Bob", "Bob", "Bob"]


def test_a_segment_gets_the_speaker_of_most_of_its_words_or_else_of_its_time():
    segments = [
        {"words": [word("a", 1.0, 1.8), word("b", 2.0, 2.4)], "start": 1.0, "end": 4.0},
        {"start": 2.0, "end": 3.9, "text": "no words"},
        {"start": 50.0, "end": 51.0, "text": "nobody"},
        {"text": "no times"},
    ]
    answer = words_with_speakers({"segments": segments, "language": "en"}, TURNS)
    assert [each.get("speaker") for each in answer["segments"]] == ["Ann", "Bob", None, None]
    assert answer["language"] == "en"


def test_the_transcript_that_was_given_is_not_changed_and_json_stays_json():
    given = {"segments": [{"start": 0, "end": 1, "words": [word("a", 0, 1)]}], "word_segments": []}
    before = json.dumps(given)
    answer = words_with_speakers(given, TURNS)
    assert json.dumps(given) == before
    assert json.loads(json.dumps(answer)) == answer
    assert answer["segments"][0]["words"][0]["score"] == 0.9


def test_of_two_speakers_with_equal_time_the_first_name_wins():
    turns = [Turn(0, 1, "Bob"), Turn(0, 1, "Ann")]
    answer = words_with_speakers({"segments": [{"start": 0, "end": 1}]}, turns)
    assert answer["segments"][0]["speaker"] == "Ann"


def test_without_turns_nobody_spoke():
    answer = words_with_speakers({"segments": [{"words": [word("a", 0, 1)]}]}, [])
    assert "speaker" not in answer["segments"][0]


@pytest.mark.parametrize("wrong", [{}, [], {"segments": "text"}, None, {"segments": None}])
def test_what_is_no_transcript_is_refused(wrong):
    with pytest.raises(ArgumentError, match="segments"):
        words_with_speakers(wrong, TURNS)
