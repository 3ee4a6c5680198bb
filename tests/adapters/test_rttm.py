"""Test RTTM: names are escaped, and the reader is strict."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkstream.adapters.rttm import Turn, load_rttm, read_rttm, write_rttm
from linkstream.errors import ArgumentError, InputFileError

LINE = "SPEAKER a 1 0 1 <NA> <NA> x <NA> <NA>"
NAMES = st.text(min_size=1, max_size=40)
HOSTILE = [
    "Ann Lee",
    "Ann\nSPEAKER x 1 0 9 <NA> <NA> Eve <NA> <NA>",
    "\t",
    "a\u00a0b\u2028c\u0085d",
    "100% Ann%20Lee",
    "<NA>",
    ";; Ann",
    "\u202eeve",
    "安娜",
    "\x00",
    "a" * 5000,
]


def random_turns(rng, n):
    starts = rng.uniform(0, 10, n)
    ends = starts + rng.uniform(0.05, 6, n)
    names = rng.choice(["Ann", "Bob", "Cat Lee"], n).tolist()
    return [Turn(*turn) for turn in zip(starts.tolist(), ends.tolist(), names, strict=True)]


# Writing


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_one_field_of_one_line_and_comes_back(name):
    text = write_rttm([Turn(0.0, 1.0, name), Turn(1.0, 2.0, "Bob")], uri=name)
    assert [len(line.split()) for line in text.splitlines()] == [10, 10]
    (recording, turns), *others = read_rttm(text).items()
    assert (recording, [turn.speaker for turn in turns], others) == (name, [name, "Bob"], [])


def test_different_names_are_different_fields():
    names = ["a b", "a%20b", "a\tb", "a_b", "<NA>", "%3CNA>"]
    lines = [write_rttm([Turn(0, 1, name)]) for name in names]
    assert len(set(lines)) == len(names)


@pytest.mark.parametrize(
    "name",
    ["100%", "%", "50%off", "a%2", "%zz", "O'Neil", "安娜", "علی\u200cرضا", "a\u00adb", "<na>"],
)
def test_a_name_without_blanks_is_written_as_it_is(name):
    text = write_rttm([Turn(0, 1, name)], uri=name)
    assert text == f"SPEAKER {name} 1 0.000 1.000 <NA> <NA> {name} <NA> <NA>\n"
    assert [*read_rttm(text).items()] == [(name, [Turn(0, 1, name)])]


def test_only_a_percent_sign_that_would_be_read_as_a_blank_is_written_otherwise():
    names = {"a%20b": "a%2520b", "%%41": "%%2541", "% 41": "%%2041", "50% a": "50%%20a"}
    for name, field in names.items():
        line = write_rttm([Turn(0, 1, name)])
        assert line.split()[7] == field
        assert read_rttm(line)["stream"][0].speaker == name


# Reading


OTHERS = """\
SPKR-INFO a 1 <NA> <NA> <NA> unknown x <NA>
SEGMENT a 1 0 9 <NA> eval <NA> <NA>
NOSCORE a 1 3 1 <NA> <NA> <NA> <NA> <NA>
NO_RT_METADATA a 1 3 1 <NA> <NA> <NA> <NA> <NA>
LEXEME a 1 0.1 0.2 hello lex x 0.9 <NA>
NON-LEX a 1 0.3 0.2 <NA> laugh x <NA> <NA>
NON-SPEECH a 1 5 1 <NA> noise <NA> <NA> <NA>
FILLER a 1 0 1 uh filled_pause x <NA>
EDIT a 1 0 1 <NA> repetition x <NA>
SU a 1 0 1 <NA> statement x <NA>
IP a 1 0.5 <NA> <NA> edit x <NA>
CB a 1 0.5 <NA> <NA> coordinating x <NA>
A/P a 1 0.5 <NA> <NA> <NA> x <NA>
"""


def test_lines_of_other_types_that_other_tools_write_are_passed_over():
    assert read_rttm(OTHERS + LINE + "\n" + OTHERS) == {"a": [Turn(0, 1, "x")]}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read_to_the_millisecond(seed):
    turns = random_turns(np.random.default_rng(seed), 40)
    (read,) = read_rttm(write_rttm(turns)).values()
    for turn, other in zip(turns, read, strict=True):
        assert turn.speaker == other.speaker
        assert abs(turn.start - other.start) < 6e-4
        assert abs(turn.end - other.end) < 6e-4
    assert write_rttm(read) == write_rttm(turns)


def test_turns_that_touch_still_touch_when_written():
    turns = [Turn(i * 0.3333, (i + 1) * 0.3333, "Ann") for i in range(1000)]
    (read,) = read_rttm(write_rttm(turns)).values()
    assert all(one.end == other.start for one, other in itertools.pairwise(read))


def test_a_turn_of_less_than_a_millisecond_is_not_written():
    assert write_rttm([Turn(1.0, 1.0001, "Ann")]) == ""


def test_comments_and_empty_lines_are_passed_over():
    line = "SPEAKER a 1 0.5 1 <NA> <NA> x <NA>"
    text = f"\ufeff;; made by hand\r\n\n  \n{line}\r\nSPKR-INFO a 1 <NA> <NA> <NA> unknown x <NA>\n"
    assert read_rttm(text) == {"a": [Turn(0.5, 1.5, "x")]}


def test_recordings_are_kept_apart():
    text = write_rttm([Turn(0, 1, "x")], uri="a") + write_rttm([Turn(0, 2, "x")], uri="b")
    assert {name: turns[0].end for name, turns in read_rttm(text).items()} == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "line",
    [
        "SPEAKER a 1 0 1 <NA> <NA> x",
        "SPEAKER a 1 0 1 <NA> <NA> Ann Lee <NA> <NA>",
        "speaker a 1 0 1 <NA> <NA> x <NA> <NA>",
        "LEXEMES a 1 0 1 hello lex x <NA> <NA>",
        "NONSPEECH a 1 0 1 <NA> <NA> <NA> <NA> <NA>",
        "SPEAKER a 1 -1 1 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 0 -1 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 0 0.000 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 nan 1 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 0 inf <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 0 1e999 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 1_0 1 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 ١ 1 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 1e300 1 <NA> <NA> x <NA> <NA>",
        "SPEAKER a 1 0 1 <NA> <NA> <NA> <NA> <NA>",
        "0.0 1.0 Ann",
    ],
)
def test_a_line_that_is_not_whole_is_refused_by_its_number(line):
    with pytest.raises(InputFileError, match="RTTM line 2"):
        read_rttm(f"{LINE}\n{line}\n{LINE}\n")


def test_a_file_is_read_and_one_that_cannot_be_says_why(tmp_path):
    path = tmp_path / "a.rttm"
    path.write_text(LINE, "utf-8")
    assert load_rttm(path) == {"a": [Turn(0, 1, "x")]}
    path.write_bytes(b"SPEAKER \xff")
    for bad in (path, tmp_path / "none.rttm", tmp_path):
        with pytest.raises(InputFileError, match=bad.name):
            load_rttm(bad)
    with pytest.raises(ArgumentError, match="load_rttm"):
        read_rttm(b"SPEAKER")


@settings(deadline=None)
@given(NAMES, NAMES)
def test_any_two_names_are_one_line_each_and_come_back(one, other):
    text = write_rttm([Turn(0, 1, one), Turn(1, 2, other)])
    (turns,) = read_rttm(text).values()
    assert [turn.speaker for turn in turns] == [one, other]
    assert len(text.splitlines()) == 2


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_turns_or_an_error_of_ours(text):
    for damaged in (text, LINE.replace("x", text), LINE.replace("0", text)):
        try:
            recordings = read_rttm(damaged)
        except InputFileError:
            continue
        for turn in itertools.chain.from_iterable(recordings.values()):
            assert 0 <= turn.start < turn.end
            assert turn.speaker
