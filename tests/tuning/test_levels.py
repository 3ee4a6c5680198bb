"""`levels`: vectors at several levels; `calibrate` with a preset chooses a place on its line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linkstream import Links
from linkstream.data import voice_halves, voice_stream
from linkstream.errors import ArgumentError, DimensionError
from linkstream.metrics import accuracy
from linkstream.presets import preset, presets
from linkstream.tuning import calibrate, levels
from linkstream.tuning.granularity import PLACES


@pytest.fixture(scope="module")
def voices():
    return voice_stream()


@pytest.fixture(scope="module")
def shown(voices):
    return levels(voices.X[:600], "ge2e")


def pairs(y, n):
    """Return n pairs of one identity and n of two."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(y), size=(200 * n, 2))
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    alike = y[drawn[:, 0]] == y[drawn[:, 1]]
    return drawn[alike][:n], drawn[~alike][:n]


# What levels() shows


def test_each_level_shows_what_the_preset_at_that_level_gives(voices, shown):
    assert [each.name for each in shown.levels] == list(presets()["ge2e"].levels)
    for each in shown.levels:
        links = Links.preset("ge2e", granularity=each.name)
        links.add_many(voices.X[:600])
        sizes = np.unique(links.labels(), return_counts=True)[1]
        assert each.thresholds == links.thresholds
        assert (each.n_clusters, each.largest) == (len(sizes), sizes.max())
        assert (each.median, each.singles) == (np.median(sizes), np.sum(sizes == 1))
        assert accuracy(links.labels(), each.labels) == 1.0


def test_the_examples_are_the_clusters_of_the_same_vectors_at_every_level(shown):
    anchors = [example.rows[0] for example in shown.levels[0].examples]
    assert len({*anchors}) == 3
    for each in shown.levels:
        assert [example.rows[0] for example in each.examples] == anchors
        for example in each.examples:
            labels = each.labels[list(example.rows)]
            assert len({*labels.tolist()}) == 1
            assert example.size == np.sum(each.labels == labels[0])


def test_the_suggestion_is_one_of_the_levels_and_the_default_is_told(shown):
    assert shown.suggested in {each.name for each in shown.levels}
    assert shown.default == presets()["ge2e"].default
    assert shown.suggested in shown.advice
    assert shown[shown.suggested].name == shown.suggested
    assert shown.suggested in str(shown)


def test_the_record_is_plain(shown):
    record = json.loads(json.dumps(shown.to_dict()))
    assert (record["preset"], record["n_vectors"]) == ("ge2e", 600)
    assert record["levels"][0]["thresholds"]["cluster_similarity"] > 0
    assert "labels" not in record["levels"][0]


def test_numbers_and_names_choose_the_levels_to_show(voices):
    found = levels(voices.X[:100], "ge2e", granularities=[0.95, "windows"], examples=0)
    assert [each.name for each in found.levels] == ["windows", "0.95"]
    assert found.levels[1].thresholds == preset("ge2e", 0.95).thresholds
    assert found.levels[0].examples == ()


def test_without_a_preset_five_levels_are_made_from_the_vectors(voices):
    found = levels(voices.X[:400])
    assert (found.preset, found.default, len(found.levels)) == (None, None, 5)
    counts = [each.n_clusters for each in found.levels]
    assert counts[0] < 10 < counts[-1]


def test_noise_has_no_suggestion():
    noise = np.random.default_rng(0).standard_normal((80, 64))
    found = levels(noise)
    assert found.suggested is None
    assert "Cannot decide" in found.advice


def test_vectors_and_levels_that_do_not_fit_are_refused(voices):
    with pytest.raises(DimensionError, match="preset 'arcface' is for ArcFace"):
        levels(voices.X[:50], "arcface")
    with pytest.raises(ArgumentError, match="did you mean 'windows'"):
        levels(voices.X[:50], "ge2e", granularities=["window"])
    with pytest.raises(ArgumentError, match="examples=-1"):
        levels(voices.X[:50], "ge2e", examples=-1)
    with pytest.raises(ArgumentError, match="3 vectors"):
        levels(voices.X[:3], "ge2e")


# calibrate with a preset


def test_a_few_pairs_choose_a_level_that_suits_other_speakers():
    ours, others = voice_halves()
    same, different = pairs(ours.y, 40)
    found = calibrate(ours.X, same=same, different=different, preset="ge2e")
    assert (found.decided, found.source, found.preset) == (True, "pairs", "ge2e")
    assert found.granularity in PLACES
    assert found.thresholds == preset("ge2e", found.granularity).thresholds
    links = found.links()
    assert (links.evidence, links.space.model) == ("cluster", "ge2e")
    links.add_many(others.X)
    assert accuracy(others.y, links.labels()) > 0.85


def test_vectors_alone_choose_a_level_of_the_shipped_voices():
    ours, others = voice_halves()
    found = calibrate(ours.X, preset="ge2e")
    assert (found.decided, found.source) == (True, "unlabelled")
    assert "most separate" in found.advice
    links = found.links()
    links.add_many(others.X)
    assert accuracy(others.y, links.labels()) > 0.85
    assert found.to_dict()["granularity"] == found.granularity
    assert f"granularity                 {found.granularity:.2f}" in str(found)


def test_groups_choose_a_level(voices):
    X, y = voices.X[:400], voices.y[:400]
    keys = np.full(len(X), -1)
    for key in range(30):
        first = int(np.flatnonzero(keys < 0)[0])
        other = int(np.flatnonzero((keys < 0) & (y != y[first]))[0])
        keys[[first, other]] = key
    found = calibrate(X, groups=keys, preset="ge2e")
    assert (found.decided, found.source) == (True, "groups")
    assert found.granularity in PLACES


def test_vectors_without_clusters_cannot_choose_a_level():
    noise = np.random.default_rng(0).standard_normal((60, 512))
    found = calibrate(noise, preset="arcface")
    assert not found.decided
    assert (found.preset, found.granularity) == ("arcface", None)
    assert "Cannot decide: the clusters are separate at no level of the preset" in found.advice


def test_calibrate_refuses_an_unknown_preset():
    with pytest.raises(ArgumentError, match="did you mean 'ge2e'"):
        calibrate(np.eye(20), preset="ge2")
