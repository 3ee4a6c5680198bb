"""Texts become words in one way; a query is built of words alone, whatever was typed."""

from __future__ import annotations

import sqlite3

import pytest

from linkstream.errors import ArgumentError
from linkstream.store import search_index
from linkstream.store.schema import SEARCH
from linkstream.store.words import (
    BETWEEN,
    TERMS_MAX,
    TEXT_MAX,
    WORD_MAX,
    fields_in,
    query_of,
    words_in,
    words_of,
)

HOSTILE = (
    '"',
    'red "car',
    '""',
    "NEAR(red car, 2)",
    "words : red",
    "- red",
    "{words fields} : red",
    "red AND OR NOT",
    "^red",
    "red + car",
    "red*car**",
    "a\0b red",
    "red\ud800",
    "(((((",
    "'; DROP TABLE search; --",
    "red\nAND\ncar",
    f"red {BETWEEN} car",
    "x" * TEXT_MAX,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Red CAR img_001.JPG", ["red", "car", "img", "001", "jpg"]),
        ("Ångström naïve Straße İstanbul", ["angstrom", "naive", "straße", "istanbul"]),
        ("don’t—stop «now»", ["don", "t", "stop", "now"]),
        ("東京タワー, Москва", ["東", "京", "タ", "ワ", "ー", "москва"]),
        ("हिन्दी العربية ไทย", ["हिन्दी", "العربية", "ไทย"]),
        ("a\0b\ue000c\t\u2003d", ["a", "b", "c", "d"]),
        ("...", []),
        ("", []),
    ],
)
def test_a_text_becomes_small_words_without_accents(text, words):
    assert words_of(text) == words


def test_a_long_word_is_known_by_its_beginning():
    assert words_of("x" * 10_000) == ["x" * WORD_MAX]
    assert query_of("x" * 100, None).share("y " + "x" * 900) == 0.5


def test_texts_at_any_depth_give_words_and_numbers_give_none():
    payload = {"a": "one two", "b": [{"c": "three"}, 4, None, True, ["five"]], "d": 6.5}
    words = [word for word in words_in(payload) if word != BETWEEN]
    assert words == ["one", "two", "three", "five"]
    assert words_in(7) == words_in(None) == []


def test_fields_are_compared_as_texts_and_a_list_has_each_of_its_values():
    payload = {"page": 3, "share": 2.0, "on": True, "tags": ["a", 1], "none": None, "in": {"x": 1}}
    found = fields_in(payload)
    assert found == {("page", "3"), ("share", "2"), ("on", "true"), ("tags", "a"), ("tags", "1")}
    for where in ({"page": "3"}, {"page": 3.0}, {"on": True}, {"tags": "a"}):
        assert query_of(None, where).share(payload) == 0.0
    assert query_of(None, {"page": 4}).share(payload) is None
    assert query_of(None, {"page": float("inf"), "share": float("nan")}).share(payload) is None


@pytest.mark.parametrize(
    ("text", "payload", "share"),
    [
        ("car red", "a red car", 2 / 3),
        ('"red car"', "red car", 1.0),
        ('"red car"', "car red", None),
        ('"red car"', {"a": "red", "b": "car"}, None),
        ("re* car", "red cars, ready car", 3 / 4),
        ("ca*", "scar", None),
        ("img_001", "img 002 001", None),
        ("img_001*", "IMG_0017.jpg", 2 / 3),
        ("red", {"a": 1}, None),
    ],
)
def test_a_payload_matches_if_it_has_all_words_phrases_and_beginnings(text, payload, share):
    assert query_of(text, None).share(payload) == pytest.approx(share)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_syntax_for_the_index(text):
    connection = sqlite3.connect(":memory:")
    connection.execute(SEARCH)
    search_index.write(connection, 1, [b'"a red car"', b'{"file": "red"}'])
    try:
        query = query_of(text, {'x"y" : *': 'NEAR("'})
    except ArgumentError:
        return
    assert search_index.hits(connection, query.expression(), 2**62, 10) == []
    words = [word for term in query.terms for word in term.words]
    assert all(word.isalnum() and word == word.casefold() for word in words)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (None, None),
        ("", {}),
        ("!!! ...", None),
        ("x" * (TEXT_MAX + 1), None),
        ("a" * 100_000, None),
        ("a " * (TERMS_MAX + 1), None),
        (7, None),
        (b"red", None),
        ("r*", None),
        ("red", {"file": None}),
        ("red", {"file": ["a"]}),
        ("red", {1: "a"}),
        ("red", "file"),
        ("red", {"file": "a" * TEXT_MAX}),
    ],
)
def test_a_query_that_cannot_be_used_is_refused(text, where):
    with pytest.raises(ArgumentError):
        query_of(text, where)


def test_a_beginning_is_found_in_the_index_as_in_the_payload():
    connection = sqlite3.connect(":memory:")
    connection.execute(SEARCH)
    payloads = [b'"reds"', b'"red"', b'"ready"', b'"bred"', b'{"red": "green"}', b'{"n": 5}']
    search_index.write(connection, 1, payloads)
    first = search_index.ROWS
    for text, rows in (("red*", [1, 0]), ("re*", [2, 1, 0]), ("red", [1])):
        found = search_index.hits(connection, query_of(text, None).expression(), 2**62, 10)
        assert [row - first for row in found] == rows
