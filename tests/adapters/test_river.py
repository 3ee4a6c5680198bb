"""Test LinksRiver: river's own checks, and equality with `Links`."""

from __future__ import annotations

import copy
import pickle
import pickletools
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import checks, compose, metrics, preprocessing, stream
from river.checks import common

from confidence import sure
from linkstream import Links
from linkstream.adapters.river import LinksRiver
from linkstream.data import voice_stream
from linkstream.errors import ArgumentError, DimensionError, MissingExtraError, VectorError
from linkstream.presets import preset
from linkstream.tuning import Tuned
from streams import make

THRESHOLDS = (0.7, 0.6, 0.9)
MODELS = {
    "plain": LinksRiver(*THRESHOLDS),
    "tracked": LinksRiver(*THRESHOLDS, track_vectors=True, engine="reference"),
    "whole clusters": LinksRiver(*THRESHOLDS, evidence="cluster", max_subclusters=40),
}
GIVEN = [
    pytest.param(model, check, id=f"{kind}-{check.__name__}-{number}")
    for kind, model in MODELS.items()
    for number, check in enumerate(checks.yield_checks(model))
]

# river has no data for checks of clusterers; these are the checks of other models. Those
# of older rivers give every model a target to learn, which no clusterer takes.
TAKES_NO_TARGET = hasattr(common, "_learn")
ON_DATA = [
    "check_learn_one",
    "check_pickling",
    "check_shuffle_features_no_impact",
    "check_emerging_features",
    "check_disappearing_features",
    "check_radically_disappearing_features",
    "check_predict_one_pure",
    "check_predict_one_before_any_learn",
    "check_no_state_aliasing_with_input",
    "check_clone_is_independent",
    "check_bounded_memory_growth",
]
NOT_APPLICABLE = LinksRiver(*THRESHOLDS)._unit_test_skips()


def dictionaries(X):
    return [{f"e{number}": float(value) for number, value in enumerate(x)} for x in X]


def learnt(model, vectors):
    """Return the model and its prediction of each vector right after learning it."""
    said = []
    for x in vectors:
        model.learn_one(x)
        said.append(model.predict_one(x))
    return said


@pytest.fixture
def vectors():
    return make("lobes", 3).vectors


@pytest.mark.parametrize(("model", "check"), GIVEN)
def test_rivers_own_checks_pass(model, check):
    check(model.clone())


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", ON_DATA if TAKES_NO_TARGET else [])
def test_rivers_checks_on_data_pass_for_vectors_that_have_all_their_features(model, name):
    data = [(x, 0) for x in dictionaries(make("lobes", 5).vectors)]
    if name in NOT_APPLICABLE:
        with pytest.raises(VectorError, match=r"missing|new"):
            getattr(common, name)(model.clone(), dataset=data)
        return
    getattr(common, name)(model.clone(), dataset=data)


def test_each_check_that_does_not_apply_is_one_of_rivers():
    assert set(ON_DATA) >= NOT_APPLICABLE
    checks.check_estimator(LinksRiver(*THRESHOLDS))


def test_the_probabilities_are_those_of_links():
    names = [f"x{i}" for i in range(sure.STREAM.vectors.shape[1])]
    model, links = (
        LinksRiver(**Tuned(sure.THRESHOLDS, confidence=sure.MODEL).parameters()),
        sure.links(),
    )
    for x in sure.STREAM.vectors[:100]:
        model.learn_one(dict(zip(names, x, strict=True)))
        links.add(x)
    asked = sure.STREAM.vectors[100:130]
    found = [model.predict_proba_one(dict(zip(names, x, strict=True))) for x in asked]
    assert found == links.predict_proba(asked)
    assert sum(map(bool, found)) > 20
    assert model.clone(include_attributes=True).predict_proba_one(asked[0]) == found[0]
    assert LinksRiver(*THRESHOLDS).predict_proba_one(asked[0]) == {}


@pytest.mark.parametrize("kind", ["lobes", "drifting", "hub"])
def test_the_ids_are_those_of_links_for_dictionaries_and_arrays(kind):
    X, thresholds = make(kind, 1)
    links, said = Links(*thresholds), []
    for x in X:
        links.add(x)
        said.append(int(links.predict(x[np.newaxis])[0]))
    assert learnt(LinksRiver(*thresholds), X) == said
    assert learnt(LinksRiver(*thresholds), dictionaries(X)) == said


@pytest.mark.parametrize(
    "batch",
    [
        lambda X: X,
        lambda X: X.tolist(),
        dictionaries,
        lambda X: pd.DataFrame(dictionaries(X)),
        lambda X: pl.DataFrame(dictionaries(X)),
        lambda X: pa.Table.from_pylist(dictionaries(X)),
        lambda X: pd.DataFrame(dictionaries(X)).iloc[:, ::-1],
    ],
    ids=["array", "lists", "dictionaries", "pandas", "polars", "pyarrow", "columns turned round"],
)
def test_learn_many_equals_learn_one(batch, vectors):
    one, many = LinksRiver(*THRESHOLDS), LinksRiver(*THRESHOLDS)
    for x in dictionaries(vectors):
        one.learn_one(x)
    many.learn_one(dictionaries(vectors)[0])  # determines the order of the features
    for start in range(1, len(vectors), 40):
        many.learn_many(batch(vectors[start : start + 40]))
    assert many.links.state_hash() == one.links.state_hash()
    assert many.predict_many(batch(vectors)).tolist() == one.links.predict(vectors).tolist()


def test_a_vector_that_would_be_new_is_predicted_minus_one_even_before_the_first():
    model = LinksRiver(*THRESHOLDS)
    assert model.predict_one({"a": 1.0, "b": 0.0}) == -1
    assert model.predict_one({"c": 1.0, "d": 0.0, "e": 0.0}) == -1
    model.learn_one({"a": 1.0, "b": 0.0})
    assert model.predict_one({"b": 1.0, "a": 0.0}) == -1
    assert model.predict_one({"b": 0.1, "a": 1.0}) == 0


def test_the_first_vector_determines_the_features():
    model = LinksRiver(*THRESHOLDS)
    model.learn_one({"b": 1.0, "a": 0.0})
    assert model.predict_one([1.0, 0.0]) == 0  # arrays are in the order of the first
    for wrong, named in (
        ({"a": 1.0}, "'b' missing"),
        ({"a": 1.0, "b": 0.0, "c": 0.0}, "'c' new"),
        ({"a": 1.0, "c": 0.0}, "'b' missing; 'c' new"),
    ):
        for ask in (model.learn_one, model.predict_one):
            with pytest.raises(VectorError, match=named):
                ask(wrong)
        with pytest.raises(VectorError, match=named):
            model.learn_many([{"a": 1.0, "b": 1.0}, wrong])
    with pytest.raises(DimensionError):
        model.learn_one([1.0, 0.0, 0.0])
    assert model.links.n_vectors == 1


def test_a_feature_that_is_there_twice_is_refused():
    frame = pd.DataFrame([[1.0, 0.0, 0.0]], columns=["a", "b", "a"])
    with pytest.raises(VectorError, match="'a' there twice"):
        LinksRiver(*THRESHOLDS).learn_many(frame)


def test_the_features_of_an_array_are_its_indices():
    model = LinksRiver(*THRESHOLDS)
    model.learn_one(np.array([1.0, 0.0]))
    assert model.predict_one({1: 0.0, 0: 1.0}) == 0
    with pytest.raises(VectorError, match="'a' new"):
        model.predict_one({0: 1.0, "a": 1.0})


@pytest.mark.parametrize("bad", [{"a": 0.0, "b": 0.0}, {"a": "x", "b": 1.0}, {"a": None, "b": 1.0}])
def test_a_refused_first_vector_determines_nothing(bad):
    model = LinksRiver(*THRESHOLDS)
    for learn in (model.learn_one, lambda x: model.learn_many([{"a": 1.0, "b": 1.0}, x])):
        with pytest.raises(VectorError):
            learn(bad)
    model.learn_one({"c": 1.0, "d": 0.0, "e": 0.0})
    assert model.links.n_vectors == 1


def test_an_empty_batch_changes_nothing():
    model = LinksRiver(*THRESHOLDS)
    model.learn_many([])
    model.learn_many(pd.DataFrame())
    assert model.links.n_vectors == 0
    assert model.predict_many([]).tolist() == []


@pytest.mark.parametrize(
    "batch",
    [
        None,
        (x for x in [[1.0, 0.0]]),
        pl.DataFrame({"a": [1.0], "b": [0.0]}).lazy(),
        [[1.0, 0.0], [1.0]],
        [{"a": 1.0, "b": 0.0}, [1.0, 0.0]],
        pd.DataFrame({"a": [1.0], "b": ["x"]}),
        [1.0, 0.0],
    ],
    ids=["nothing", "generator", "lazy", "ragged", "mixed", "words", "one vector"],
)
def test_an_invalid_batch_raises_a_vector_error(batch):
    model = LinksRiver(*THRESHOLDS)
    for ask in (model.learn_many, model.predict_many):
        with pytest.raises(VectorError):
            ask(batch)
    assert model.links.n_vectors == 0


def test_wrong_parameters_are_refused_at_once():
    with pytest.raises(ArgumentError, match="or a preset"):
        LinksRiver()
    with pytest.raises(ArgumentError, match="pair_similarity_max"):
        LinksRiver(0.9, 0.6, 0.2)


def test_a_preset_brings_its_options():
    links = LinksRiver(preset="ge2e-windows").links
    chosen = preset("ge2e-windows")
    assert (links.thresholds, links.space) == (chosen.thresholds, chosen.space)
    assert links.healing.mode == chosen.heal
    assert LinksRiver(preset="ge2e-windows", heal=False).links.healing is None


def test_a_pickle_continues_with_the_same_decisions(vectors):
    whole, half = LinksRiver(*THRESHOLDS), LinksRiver(*THRESHOLDS)
    whole.learn_many(pd.DataFrame(dictionaries(vectors)))
    half.learn_many(pd.DataFrame(dictionaries(vectors[:70])))
    for copied in (pickle.loads(pickle.dumps(half)), copy.deepcopy(half)):
        for x in dictionaries(vectors[70:]):
            copied.learn_one(x)
        assert copied.links.state_hash() == whole.links.state_hash()
    assert half.links.n_vectors == 70


def test_a_pickle_holds_a_snapshot_and_no_object_of_ours_but_the_model(vectors):
    model = LinksRiver(*THRESHOLDS)
    model.learn_many(vectors)
    data = pickle.dumps(model, protocol=2)
    named = {arg for code, arg, _ in pickletools.genops(data) if code.name == "GLOBAL"}
    assert {name for name in named if "linkstream" in name or "nanobind" in name} == {
        "linkstream.adapters.river LinksRiver"
    }


def test_a_clone_with_attributes_continues_and_shares_nothing(vectors):
    model = LinksRiver(*THRESHOLDS)
    model.learn_many(vectors[:100])
    before = model.links.state_hash()
    copied = model.clone(include_attributes=True)
    assert (copied.links.state_hash(), copied._features) == (before, model._features)
    copied.learn_many(vectors[100:])
    assert model.links.state_hash() == before
    model.learn_many(vectors[100:])
    assert copied.links.state_hash() == model.links.state_hash()
    assert model.clone().links.n_vectors == 0


def test_a_clone_with_attributes_takes_no_new_parameters(vectors):
    model = LinksRiver(*THRESHOLDS)
    model.learn_many(vectors)
    with pytest.raises(ArgumentError, match="new cluster_similarity"):
        model.clone({"cluster_similarity": 0.9}, include_attributes=True)
    assert model.clone({"cluster_similarity": 0.9}).links.thresholds.cluster_similarity == 0.9


def test_a_copy_learns_alone(vectors):
    model = LinksRiver(*THRESHOLDS)
    model.learn_many(vectors[:100])
    before = model.links.state_hash()
    for copied in (copy.copy(model), copy.deepcopy(model)):
        copied.learn_many(vectors[100:])
        assert model.links.state_hash() == before


def test_a_preset_refuses_vectors_of_another_dimension_by_the_name_of_its_encoder():
    model = LinksRiver(preset="arcface")
    for verb, given in ((model.learn_one, np.ones(256)), (model.learn_many, np.ones((2, 256)))):
        with pytest.raises(DimensionError, match="512: preset 'arcface' is for ArcFace"):
            verb(given)
    assert model.predict_many([]).tolist() == []
    model.learn_one(np.ones(512))


def test_it_works_at_the_end_of_a_pipeline(vectors):
    model = compose.Pipeline(preprocessing.Normalizer(), LinksRiver(*THRESHOLDS))
    for x, _ in stream.iter_array(vectors):
        model.learn_one(x)
    links = Links(*THRESHOLDS)
    links.add_many(vectors)
    assert model["LinksRiver"].links.n_clusters == links.n_clusters
    assert model.predict_one(dict(enumerate(vectors[0].tolist()))) == links.predict(vectors[:1])[0]


def test_rivers_metrics_follow_it_along_a_stream_of_voices():
    model, rand = LinksRiver(preset="ge2e-windows", threads=1), metrics.AdjustedRand()
    voices = voice_stream()
    for x, who in zip(voices.X[:600], voices.y[:600].tolist(), strict=True):
        model.learn_one(x)
        rand.update(who, model.predict_one(x))
    assert rand.get() > 0.7


def test_what_the_engine_holds_is_counted_and_is_little_unless_vectors_are_tracked(vectors):
    sizes = {}
    for tracked in (False, True):
        model = LinksRiver(*THRESHOLDS, track_vectors=tracked)
        for _ in range(20):
            model.learn_many(vectors)
        sizes[tracked] = model._raw_memory_usage
        assert sizes[tracked] > sum(a.nbytes for a in model.links.state().arrays().values())
    assert sizes[True] - sizes[False] > 20 * vectors.nbytes


def test_without_river_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "linkstream.adapters.river")
    with pytest.raises(MissingExtraError, match=r"linkstream\[river\]"):
        __import__("linkstream.adapters.river")
