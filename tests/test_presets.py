"""Presets: their scores, their options, and vectors of another dimension."""

from __future__ import annotations

import re

import numpy as np
import pytest

from linkstream import Links, Space
from linkstream.data import voice_halves
from linkstream.errors import ArgumentError, DimensionError
from linkstream.metrics import accuracy
from linkstream.presets import presets
from linkstream.store import Store

NAMES = ("ge2e", "ge2e-windows", "xvector", "facenet", "arcface", "minilm", "minilm-items")


def test_every_measured_encoder_has_a_preset():
    assert tuple(presets()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_makes_a_clusterer_with_its_thresholds_and_model(name):
    links = Links.preset(name)
    assert links.thresholds == presets()[name].thresholds
    assert links.space.model == name
    assert links.evidence == presets()[name].evidence
    assert links.healing is not None


@pytest.mark.parametrize("name", NAMES)
def test_each_preset_names_its_sets_and_its_scores_elsewhere(name):
    preset = presets()[name]
    assert set(preset.figures) >= set(preset.made_from)
    for figures in preset.figures.values():
        for instant, current in (figures["as shipped"], figures["tuned"]):
            assert 0 < instant <= 1
            assert 0 < current <= 1


def test_given_options_override_those_of_the_preset():
    assert Links.preset("ge2e", heal=None, evidence="nearest").healing is None


def test_the_preset_separates_the_shipped_voices():
    for half in voice_halves():
        links = Links.preset("ge2e-windows")
        links.add_many(half.X)
        assert accuracy(half.y, links.labels()) > 0.85


def test_an_unknown_preset_is_refused_with_the_known_names():
    with pytest.raises(ArgumentError, match="'ge2e', 'ge2e-windows'"):
        Links.preset("word2vec")


@pytest.mark.parametrize("name", NAMES)
def test_the_error_for_another_dimension_names_the_encoder_of_the_preset(name):
    chosen = presets()[name]
    links = Links.preset(name)
    told = rf"dimension 100; expected dimension {chosen.dimension}: preset '{name}' is for"
    for verb in (links.add_many, links.predict, links.add_group):
        with pytest.raises(DimensionError, match=told) as caught:
            verb(np.ones((3, 100)))
        assert chosen.model in str(caught.value)
    with pytest.raises(DimensionError, match=told):
        links.explain(np.ones(100))
    assert links.n_vectors == 0
    links.add(np.ones(chosen.dimension))
    with pytest.raises(DimensionError, match=told):  # and not "as the ones before"
        links.add(np.ones(100))


def test_arcface_refuses_256_d_voices():
    with pytest.raises(DimensionError, match=r"256; expected dimension 512: .* ArcFace"):
        Links.preset("arcface").add_many(voice_halves()[0].X)


@pytest.mark.parametrize("name", NAMES)
def test_the_dimension_and_model_of_a_preset_match_its_description(name):
    chosen = presets()[name]
    assert f"{chosen.dimension}-d" in chosen.encoder
    assert set(re.findall(r"\w+", chosen.model)) <= set(re.findall(r"\w+", chosen.encoder))
    assert chosen.space.dimension == chosen.dimension
    if chosen.space.mean is not None:
        assert len(chosen.space.mean) == chosen.dimension


def test_a_saved_clusterer_remembers_the_dimension_before_its_first_vector():
    links = Links.from_bytes(Links.preset("arcface").to_bytes())
    assert links.dimension == 512
    with pytest.raises(DimensionError, match="preset 'arcface'"):
        links.add(np.ones(256))


def test_a_store_made_with_a_preset_refuses_vectors_of_another_dimension(tmp_path):
    path = tmp_path / "faces.links"
    for _ in range(2):  # made, and opened again
        with Store.open(path, preset="arcface") as store:
            with pytest.raises(DimensionError, match="preset 'arcface' is for ArcFace"):
                store.add_many(np.ones((3, 256)))
            assert (store.dimension, store.n_vectors) == (512, 0)


def test_a_store_of_an_older_version_opens_with_its_preset(tmp_path):
    path, chosen = tmp_path / "faces.links", presets()["arcface"]
    options = chosen.options | {"space": Space(model="arcface")}  # it said no dimension
    with Store.open(path, thresholds=chosen.thresholds, **options) as store:
        store.add_many(np.eye(4, 512))
        before = store.state_hash()
    with Store.open(path, preset="arcface") as store:
        assert store.state_hash() == before
        links = Links.preset("arcface")
        links.add_many(np.eye(4, 512))
        assert links.state_hash() == before


def test_a_given_space_replaces_that_of_the_preset_and_its_dimension():
    links = Links.preset("arcface", space=Space(model="ours", dimension=64))
    with pytest.raises(DimensionError, match="expected dimension 64: model 'ours' makes them"):
        links.add(np.ones(512))
    assert Links.preset("arcface", space=Space()).add(np.ones(7)).cluster == 0
