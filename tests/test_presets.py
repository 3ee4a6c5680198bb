"""Presets: their levels, scores, options, and vectors of another dimension."""

from __future__ import annotations

import re
from dataclasses import astuple

import numpy as np
import pytest

from linkstream import Links, Space
from linkstream.adapters.sklearn import LinksClusterer
from linkstream.data import voice_halves
from linkstream.errors import ArgumentError, DimensionError
from linkstream.metrics import accuracy
from linkstream.presets import aliases, preset, presets
from linkstream.store import Store

NAMES = ("ge2e", "ge2e-windows", "ge2e-turns", "xvector", "facenet", "arcface", "minilm")
POINTS = ("ge2e-windows", "ge2e-turns")  # presets of one point
LEVELS = [(name, level) for name, each in presets().items() for level in each.levels]


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
def test_each_preset_names_its_sets_and_its_scores_on_sets_left_out(name):
    chosen = presets()[name]
    assert set(chosen.figures) >= set(chosen.made_from)
    for figures in chosen.figures.values():
        assert set(figures["levels"]) == set(chosen.levels)
        for seen in (*figures["levels"].values(), figures["default"], figures["automatic"]):
            assert len(seen) == (2 if name in POINTS else 3)
            assert all(0 < value <= 1 for value in seen)


# Levels


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_the_thresholds_of_a_level_lie_on_the_line(name, level):
    chosen = preset(name, level)
    line, at = chosen.line, chosen.levels[level]
    t_c = line.coarse + at * (line.fine - line.coarse)
    t_p = t_c**2 + line.pull * (1 - t_c**2)
    expected = (t_c, 1 - line.join * (1 - t_c), t_p)
    assert astuple(chosen.thresholds) == pytest.approx(expected, abs=5e-5)
    assert (chosen.level, chosen.granularity) == (level, at)
    assert Links.preset(name, granularity=level).thresholds == chosen.thresholds


@pytest.mark.parametrize("name", NAMES)
def test_levels_go_from_coarse_to_fine_and_one_is_the_default(name):
    chosen = presets()[name]
    places = list(chosen.levels.values())
    assert places == sorted({*places})
    assert places[0] >= 0
    assert places[-1] <= 1
    assert chosen.level == chosen.default
    assert set(chosen.words) == set(chosen.levels)


def test_a_number_chooses_a_place_between_two_levels():
    ends = [preset("minilm", place).thresholds.cluster_similarity for place in (0, 0.37, 1)]
    assert ends == sorted(ends)
    between = preset("minilm", 0.37)
    assert between.level is None
    assert preset("minilm", "0.37").thresholds == between.thresholds  # as a command line says it


def test_a_finer_level_makes_more_clusters():
    X = voice_halves()[0].X
    counts = []
    for level in presets()["ge2e"].levels:
        links = Links.preset("ge2e", granularity=level)
        links.add_many(X)
        counts.append(links.n_clusters)
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_an_older_name_stands_for_a_level():
    assert aliases() == {"minilm-items": ("minilm", "items")}
    assert preset("minilm-items").thresholds == preset("minilm", "items").thresholds
    assert Links.preset("minilm-items").space.model == "minilm"
    assert preset("minilm-items", 0.0).granularity == 0.0


def test_a_preset_of_one_point_has_the_same_thresholds_everywhere():
    expected = (0.5946, 0.6066, 0.6872)
    assert astuple(preset("ge2e-windows").thresholds) == expected
    assert astuple(preset("ge2e-windows", 0.9).thresholds) == expected
    assert Links.preset("ge2e-windows").evidence == "nearest"
    assert astuple(preset("ge2e-turns", 0.1).thresholds) == (0.378, 0.9689, 0.5893)
    assert Links.preset("ge2e-turns").evidence == "cluster"


def test_an_unknown_level_is_refused_with_the_known_ones_and_the_nearest():
    with pytest.raises(ArgumentError, match=r"did you mean 'topics'\?.*'stories', 'intents'"):
        Links.preset("minilm", granularity="topic")


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), True, "", [0.5], "1.5"])
def test_a_granularity_outside_the_line_is_refused(wrong):
    with pytest.raises(ArgumentError, match="or a number from 0 to 1"):
        Links.preset("minilm", granularity=wrong)


def test_an_unknown_preset_is_refused_with_the_nearest_name():
    with pytest.raises(ArgumentError, match=r"did you mean 'minilm'\?"):
        Links.preset("minillm")


def test_a_granularity_without_a_preset_is_refused(tmp_path):
    thresholds = preset("arcface").thresholds
    with pytest.raises(ArgumentError, match="granularity 'strict' without a preset"):
        Store.open(tmp_path / "x.links", thresholds=thresholds, granularity="strict")
    with pytest.raises(ArgumentError, match=r"granularity 0\.5 without a preset"):
        LinksClusterer(granularity=0.5).fit(np.eye(3))


def test_a_store_knows_the_level_that_it_was_made_with(tmp_path):
    path = tmp_path / "texts.links"
    with Store.open(path, preset="minilm", granularity="topics") as store:
        assert store.thresholds == preset("minilm", "topics").thresholds
    Store.open(path, preset="minilm", granularity="topics").close()
    told = "preset 'minilm' of granularity 'items' for .* made with preset 'minilm' of granularity "
    with pytest.raises(ArgumentError, match=f"{told}'topics'"):
        Store.open(path, preset="minilm", granularity="items")
    with pytest.raises(ArgumentError, match="made with preset 'minilm' of granularity 'topics'"):
        Store.open(path, preset="arcface")


def test_an_adapter_takes_a_granularity():
    X = np.eye(4, 384)
    model = LinksClusterer(preset="minilm", granularity="items").fit(X)
    assert model.links_.thresholds == preset("minilm", "items").thresholds


# Options, scores and dimensions


def test_given_options_override_those_of_the_preset():
    assert Links.preset("ge2e", heal=None, evidence="nearest").healing is None


def test_the_preset_separates_the_shipped_voices():
    for half in voice_halves():
        links = Links.preset("ge2e", granularity="windows")
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
