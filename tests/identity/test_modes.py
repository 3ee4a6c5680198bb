"""Modes: one name for evidence and healing, and what overrides it."""

from __future__ import annotations

import pytest

from linkstream import Links, Thresholds
from linkstream.clusterer import modes
from linkstream.errors import ArgumentError
from linkstream.identity.settling import Healing
from linkstream.store import Store
from streams import ENGINES, make

THRESHOLDS = Thresholds(0.7, 0.6, 0.9)


def options_of(links):
    return links.evidence, links.healing


def test_the_default_mode_is_the_algorithm_of_the_paper():
    assert options_of(Links(0.7, 0.6, 0.9)) == ("nearest", None)
    assert options_of(Links(0.7, 0.6, 0.9, mode="paper")) == ("nearest", None)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_best_mode_decides_as_its_two_options_do(engine):
    stream = make("lobes", 3)
    by_name = Links(*stream.thresholds, mode="best", engine=engine)
    spelled = Links(*stream.thresholds, evidence="cluster", heal="settle", engine=engine)
    assert by_name.add_many(stream.vectors).tolist() == spelled.add_many(stream.vectors).tolist()
    assert by_name.state_hash() == spelled.state_hash()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"mode": "best", "heal": False}, ("cluster", None)),
        ({"mode": "best", "heal": None}, ("cluster", Healing("settle"))),
        ({"mode": "best", "heal": "join"}, ("cluster", Healing("join"))),
        ({"mode": "best", "evidence": "nearest"}, ("nearest", Healing("settle"))),
        (
            {"mode": "best", "heal": Healing("settle", steadiness=0.03)},
            ("cluster", Healing("settle", steadiness=0.03)),
        ),
        ({"evidence": "cluster"}, ("cluster", None)),
        ({"heal": False}, ("nearest", None)),
    ],
)
def test_an_option_that_is_given_overrides_the_mode(given, meant):
    links = Links(0.7, 0.6, 0.9, **given)
    assert options_of(links) == meant
    again = Links(0.7, 0.6, 0.9, **modes.shortest_options(modes.Configuration(*meant)))
    assert options_of(again) == meant


@pytest.mark.parametrize("wrong", ["fast", "", None, 1, ["best"]])
def test_an_unknown_mode_is_refused(wrong):
    with pytest.raises(ArgumentError, match="expected 'paper' or 'best'"):
        Links(0.7, 0.6, 0.9, mode=wrong)


def test_a_mode_replaces_the_options_of_a_preset_and_none_does_not():
    assert options_of(Links.preset("facenet", mode="paper")) == ("nearest", None)
    assert options_of(Links.preset("facenet", heal=None)) == ("cluster", None)
    assert Links.preset("facenet", mode="paper").space.dimension == 128


def test_a_store_has_the_mode_it_was_made_with(tmp_path):
    path = tmp_path / "a.links"
    with Store.open(path, thresholds=THRESHOLDS, mode="best") as store:
        assert (store.info()["evidence"], store.info()["heal"]["mode"]) == ("cluster", "settle")
    for same in ({"mode": "best"}, {"evidence": "cluster", "heal": "settle"}, {}):
        Store.open(path, thresholds=THRESHOLDS, **same).close()
    with pytest.raises(ArgumentError, match="evidence='nearest'"):
        Store.open(path, thresholds=THRESHOLDS, mode="paper")
