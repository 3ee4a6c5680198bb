"""The commands confidence and judge."""

from __future__ import annotations

import pytest

from cli.command import json_lines, refused, run, shown
from confidence.sure import MODEL, STREAM, THRESHOLDS
from linkstream.store import Store

STORE = "people.links"


@pytest.fixture
def folder(tmp_path):
    with Store.open(tmp_path / STORE, thresholds=THRESHOLDS, confidence=MODEL) as opened:
        opened.add_many(STREAM.vectors[:60], ids=[f"v{i}" for i in range(60)])
    return tmp_path


def test_a_vector_is_judged_by_number_and_by_key(folder):
    told = json_lines(run("judge", STORE, "5", cwd=folder).stdout)
    assert told == [{"vector": 5, "right": True}]
    told = json_lines(run("judge", STORE, "v7", "--wrong", cwd=folder).stdout)
    assert told == [{"vector": 7, "right": False}]
    assert shown("judge", STORE, "8", cwd=folder) == "Vector 8 was right."
    with Store.open(folder / STORE, read_only=True) as opened:
        judged = [event for event in opened.events() if event.kind == "judged"]
    assert [(event.member, event.verdict % 2) for event in judged] == [(5, 1), (7, 0), (8, 1)]


def test_confidence_shows_why_answers_and_drift(folder):
    (before,) = json_lines(run("confidence", STORE, cwd=folder).stdout)
    assert before == {
        "why": "",
        "identities": 40,
        "answers": 0,
        "check": None,
        "drifted": False,
    }
    with Store.open(folder / STORE) as opened:
        for vector in range(1, 37):
            opened.judge(vector, False)
    (after,) = json_lines(run("confidence", STORE, cwd=folder).stdout)
    assert after["answers"] == 30
    assert after["check"]["right"] == 0
    words = " ".join(shown("confidence", STORE, cwd=folder).split())
    assert "Fitted to 40 identities, 30 answers." in words
    assert "0.000 were right" in words


def test_confidence_says_why_probabilities_are_unknown(folder):
    Store.open(folder / "plain.links", thresholds=THRESHOLDS).close()
    words = shown("confidence", "plain.links", cwd=folder)
    assert words.startswith("Probabilities are unknown: no model")


def test_confidence_draws_a_picture(folder):
    run("judge", STORE, "5", cwd=folder)
    (record,) = json_lines(run("confidence", STORE, "--plot", "sure.png", cwd=folder).stdout)
    assert record["picture"] == "sure.png"
    assert (folder / "sure.png").read_bytes()[:4] == b"\x89PNG"


def test_another_kind_of_picture_is_refused(folder):
    assert "sure.doc" in refused(run("confidence", STORE, "--plot", "sure.doc", cwd=folder))
