"""Presets: measured, sound, and ready to use."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.data import voice_halves
from linkstream.errors import ArgumentError
from linkstream.metrics import accuracy
from linkstream.presets import presets

NAMES = ("ge2e", "ge2e-windows", "xvector", "facenet", "arcface", "minilm", "minilm-items")


def test_every_encoder_measured_has_a_preset():
    assert tuple(presets()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_a_clusterer_with_its_thresholds_and_the_name_of_its_encoder(name):
    links = Links.preset(name)
    assert links.thresholds == presets()[name].thresholds
    assert links.space.model == name
    assert links.evidence == presets()[name].evidence
    assert links.healing is not None


@pytest.mark.parametrize("name", NAMES)
def test_each_preset_says_what_made_it_and_what_it_scores_elsewhere(name):
    preset = presets()[name]
    assert set(preset.figures) >= set(preset.made_from)
    for figures in preset.figures.values():
        for instant, current in (figures["as shipped"], figures["tuned"]):
            assert 0 < instant <= 1
            assert 0 < current <= 1


def test_options_come_before_those_of_the_preset():
    assert Links.preset("ge2e", heal=None, evidence="nearest").healing is None


def test_the_voices_that_are_shipped_are_told_apart_by_the_preset():
    for half in voice_halves():
        links = Links.preset("ge2e-windows")
        links.add_many(half.X)
        assert accuracy(half.y, links.labels()) > 0.85


def test_an_encoder_without_a_preset_is_refused_with_those_there_are():
    with pytest.raises(ArgumentError, match="'ge2e', 'ge2e-windows'"):
        Links.preset("word2vec")


def test_vectors_of_another_dimension_join_no_preset_that_has_a_mean():
    for name, preset in presets().items():
        if preset.space.mean is not None:
            with pytest.raises(ArgumentError):
                Links.preset(name).add(np.ones(7))
