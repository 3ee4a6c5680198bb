"""Test LinksClusterer: scikit-learn's own checks, and equality with `Links`."""

from __future__ import annotations

import copy
import os
import pickle
import pickletools
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.utils import estimator_checks

from confidence import sure
from confidence.sure import model_for
from linkstream import Links, Space
from linkstream.adapters.bertopic import LinksTopics
from linkstream.adapters.sklearn import NOT_APPLICABLE, LinksClusterer
from linkstream.data import voice_halves
from linkstream.errors import (
    ArgumentError,
    DimensionError,
    MissingExtraError,
    SnapshotError,
    VectorError,
)
from linkstream.metrics import accuracy
from linkstream.presets import preset
from linkstream.tuning import Tuned
from streams import make

THRESHOLDS = (0.7, 0.6, 0.9)
KINDS = ("lobes", "drifting", "hub", "generative")
ESTIMATORS = {
    "plain": LinksClusterer(*THRESHOLDS),
    "whole clusters": LinksClusterer(*THRESHOLDS, evidence="cluster", engine="reference"),
    "topics": LinksTopics(*THRESHOLDS, evidence="nearest"),
    "with probabilities": LinksClusterer(*THRESHOLDS, confidence=model_for(THRESHOLDS)),
}


def generated(estimator):
    """Return every check of the installed scikit-learn, with its name."""
    if hasattr(estimator_checks, "estimator_checks_generator"):
        checks = estimator_checks.estimator_checks_generator(estimator)
    else:  # before 1.6
        checks = estimator_checks.check_estimator(estimator, generate_only=True)
    return [(check.func.__name__, check) for _, check in checks]


CHECKS = [
    pytest.param(estimator, name, check, id=f"{kind}-{name}-{number}")
    for kind, estimator in ESTIMATORS.items()
    for number, (name, check) in enumerate(generated(estimator))
]

# In a process of its own: the array API has to be switched on before SciPy is imported.
WITH_THE_ARRAY_API = """
from adapters.test_sklearn import ESTIMATORS, generated
for estimator in ESTIMATORS.values():
    for name, check in generated(estimator):
        if name == "check_array_api_input":
            check(estimator)
"""


@pytest.fixture
def stream():
    return make("lobes", 3).vectors


@pytest.mark.parametrize(("estimator", "name", "check"), CHECKS)
def test_scikit_learns_own_checks_pass(estimator, name, check):
    if name in NOT_APPLICABLE:
        with pytest.raises(VectorError, match=r"\[0\. 0\. 0\. 0\. 0\.\]"):
            check(clone(estimator))
        return
    try:
        check(clone(estimator))
    except SkipTest:
        assert name == "check_array_api_input"  # run by the test below


def test_the_check_of_the_array_api_passes_where_that_is_switched_on():
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", WITH_THE_ARRAY_API],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(
    not hasattr(estimator_checks, "estimator_checks_generator"),
    reason="before scikit-learn 1.6 check_estimator could not be told of checks that do not apply",
)
def test_check_estimator_passes_as_the_page_says():
    model = LinksClusterer(*THRESHOLDS)
    with warnings.catch_warnings():
        # That of the array API is skipped, with a warning; the test above runs it.
        warnings.simplefilter("ignore", SkipTestWarning)
        told = estimator_checks.check_estimator(model, expected_failed_checks=NOT_APPLICABLE)
    failed = {each["check_name"] for each in told if each["status"] not in ("passed", "skipped")}
    assert failed == set(NOT_APPLICABLE)


def test_each_check_that_does_not_apply_is_one_of_scikit_learns_and_has_a_reason():
    names = {param.values[1] for param in CHECKS}
    assert set(NOT_APPLICABLE) <= names
    assert all(len(reason.split()) > 5 for reason in NOT_APPLICABLE.values())


def test_rows_of_every_dtype_are_taken_where_none_is_zero():
    X = 1 + 3 * np.random.default_rng(0).uniform(size=(20, 5))
    for dtype in (np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8):
        rows = X.astype(dtype)
        assert LinksClusterer(*THRESHOLDS).fit_predict(rows).tolist() == by_links(rows).tolist()


def by_links(X, **options):
    links = Links(*THRESHOLDS, **options)
    links.add_many(X)
    return links.labels()


@pytest.mark.parametrize("kind", KINDS)
def test_the_labels_are_those_of_links(kind):
    X, thresholds = make(kind, 1)
    links = Links(*thresholds)
    links.add_many(X)
    model = LinksClusterer(*thresholds)
    assert np.array_equal(model.fit_predict(X), links.labels())
    assert model.labels_.dtype == np.int64
    assert np.array_equal(model.predict(X[:40]), links.predict(X[:40]))


@pytest.mark.parametrize("kind", KINDS)
def test_partial_fit_equals_one_fit(kind):
    X, thresholds = make(kind, 2)
    whole, pieces = LinksClusterer(*thresholds).fit(X), LinksClusterer(*thresholds)
    for start in range(0, len(X), 17):
        pieces.partial_fit(X[start : start + 17])
    assert np.array_equal(whole.labels_, pieces.labels_)
    assert whole.links_.state_hash() == pieces.links_.state_hash()


def test_fit_starts_again(stream):
    model = LinksClusterer(*THRESHOLDS).fit(stream)
    assert model.fit(stream[:30]).labels_.tolist() == by_links(stream[:30]).tolist()


def test_a_vector_that_would_be_new_is_predicted_minus_one():
    model = LinksClusterer(*THRESHOLDS).fit([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert model.predict([[0.9, 0.1, 0.0], [0.0, 0.0, 1.0]]).tolist() == [0, -1]
    assert len(model.labels_) == 2


def test_the_labels_are_current_after_a_correction(stream):
    model = LinksClusterer(*THRESHOLDS).fit(stream)
    first, last = model.labels_[0], model.labels_.max()
    assert first != last
    model.links_.same(0, int(np.argmax(model.labels_ == last)))
    assert len(set(model.labels_[[0, int(np.argmax(by_links(stream) == last))]])) == 1


def test_thresholds_are_asked_for_by_fit_and_not_before(stream):
    model = LinksClusterer(pair_similarity_max=0.9)
    with pytest.raises(ArgumentError, match="no cluster_similarity, subcluster_similarity"):
        model.fit(stream)
    with pytest.raises(NotFittedError):
        model.predict(stream)
    assert model.set_params(cluster_similarity=0.7, subcluster_similarity=0.6).fit(stream)


def test_a_preset_brings_all_its_options_and_names_that_are_given_go_before_it():
    X = voice_halves()[1].X[:80]
    chosen = preset("ge2e")
    links = LinksClusterer(preset="ge2e").fit(X).links_
    assert (links.thresholds, links.space) == (chosen.thresholds, chosen.space)
    assert (links.evidence, links.healing.mode) == (chosen.evidence, chosen.heal)
    own = Space(model="own")
    model = LinksClusterer(0.75, preset="ge2e", heal=False, evidence="nearest", space=own).fit(X)
    assert model.links_.thresholds.cluster_similarity == 0.75
    assert model.links_.thresholds.pair_similarity_max == chosen.thresholds.pair_similarity_max
    assert (model.links_.healing, model.links_.evidence) == (None, "nearest")
    assert model.links_.space == own


def test_every_option_reaches_the_clusterer(stream):
    options = {
        "heal": "join",
        "evidence": "cluster",
        "min_size": 3,
        "max_subclusters": 50,
        "max_idle": 1000,
        "keep_vectors": False,
        "engine": "reference",
        "threads": 1,
    }
    links = LinksClusterer(*THRESHOLDS, **options).fit(stream).links_
    assert (links.healing.mode, links.evidence) == ("join", "cluster")
    assert (links.limits.max_subclusters, links.limits.max_idle) == (50, 1000)
    assert (links.min_size, links.keep_vectors, links.engine) == (3, False, "reference")


def test_a_clone_has_the_parameters_and_nothing_learnt(stream):
    model = LinksClusterer(preset="ge2e", space=Space(mean=np.full(12, 0.1), model="encoder"))
    model.fit(stream)
    copied = clone(model)
    assert copied.get_params().keys() == model.get_params().keys()
    assert copied.space == model.space
    assert not hasattr(copied, "links_")
    assert np.array_equal(copied.fit_predict(stream), model.labels_)


@pytest.mark.parametrize(
    "changed",
    [
        {"cluster_similarity": 0.9},
        {"heal": "settle"},
        {"min_size": 3, "max_idle": 50},
        {"space": Space(model="another")},
        {"threads": 1},
    ],
)
@pytest.mark.parametrize("kind", [LinksClusterer, LinksTopics])
def test_parameters_set_after_fit_are_refused_by_partial_fit_and_taken_by_fit(
    kind, changed, stream
):
    model = kind(*THRESHOLDS).fit(stream[:100])
    before = {name: getattr(model, name) for name in changed}
    model.set_params(**changed)
    state = model.links_.state_hash()
    with pytest.raises(ArgumentError, match=f"{next(iter(changed))}=.*fit") as caught:
        model.partial_fit(stream[100:])
    assert all(name in caught.value.seen for name in changed)
    assert model.links_.state_hash() == state
    model.set_params(**before).partial_fit(stream[100:])
    assert len(model.links_.labels()) == len(stream)
    model.set_params(**changed).fit(stream[:100]).partial_fit(stream[100:])
    made = kind(*THRESHOLDS).set_params(**changed).fit(stream)
    assert model.links_.state_hash() == made.links_.state_hash()


def test_a_fit_that_failed_leaves_the_parameters_of_the_one_before(stream):
    model = LinksClusterer(*THRESHOLDS).fit(stream[:100])
    with pytest.raises(ArgumentError):
        model.set_params(cluster_similarity=7.0).fit(stream)
    model.set_params(cluster_similarity=THRESHOLDS[0]).partial_fit(stream[100:])
    assert np.array_equal(model.labels_, by_links(stream))


def test_a_copy_of_a_fitted_model_learns_alone(stream):
    model = LinksClusterer(*THRESHOLDS).fit(stream[:100])
    before = model.links_.state_hash()
    for copied in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        copied.partial_fit(stream[100:])
        assert model.links_.state_hash() == before
        assert np.array_equal(copied.labels_, by_links(stream))


def test_a_preset_refuses_rows_of_another_dimension_by_the_name_of_its_encoder(stream):
    model = LinksClusterer(preset="arcface")
    with pytest.raises(DimensionError, match="512: preset 'arcface' is for ArcFace"):
        model.fit(stream)
    assert not hasattr(model, "links_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_are_taken_with_their_column_names(frame, stream):
    names = [f"e{number}" for number in range(stream.shape[1])]
    columns = dict(zip(names, stream.T, strict=True))
    model = LinksClusterer(*THRESHOLDS).fit(frame(columns))
    assert model.n_features_in_ == len(names)
    assert np.array_equal(model.labels_, by_links(stream))
    assert np.array_equal(model.predict(frame(columns)), model.links_.predict(stream))
    if not hasattr(Normalizer().fit(frame(columns)), "feature_names_in_"):
        assert frame is pl.DataFrame  # before 1.9, scikit-learn cannot tell the names of polars 2
        return
    assert model.feature_names_in_.tolist() == names
    turned = {name: columns[name] for name in reversed(names)}
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame(turned))
    assert len(model.labels_) == len(stream)


def test_what_is_refused_changes_nothing(stream):
    model = LinksClusterer(*THRESHOLDS).fit(stream)
    before, state = model.links_.state_hash(), pickle.dumps(model)
    bad = stream.copy()
    bad[7] = 0.0
    for refused in (bad, bad[:, :3], np.full((3, 5), np.nan)):
        with pytest.raises(ValueError, match=r"row 7|features|NaN"):
            model.partial_fit(refused)
    with pytest.raises(VectorError, match="row 7"):
        model.fit(np.ascontiguousarray(bad[:, ::2]) * (np.arange(len(bad)) != 7)[:, np.newaxis])
    assert model.links_.state_hash() == before
    assert pickle.dumps(model) == state


def test_a_pickle_continues_with_the_same_decisions(stream):
    whole = LinksClusterer(*THRESHOLDS).fit(stream)
    half = LinksClusterer(*THRESHOLDS).fit(stream[:70])
    for copied in (pickle.loads(pickle.dumps(half)), copy.deepcopy(half), copy.copy(half)):
        assert np.array_equal(copied.partial_fit(stream[70:]).labels_, whole.labels_)
        assert copied.links_.state_hash() == whole.links_.state_hash()
    assert len(half.labels_) == 70


def test_a_pickle_holds_a_snapshot_and_no_object_of_ours_but_the_estimator(stream):
    data = pickle.dumps(LinksClusterer(*THRESHOLDS).fit(stream), protocol=2)
    named = {arg for code, arg, _ in pickletools.genops(data) if code.name == "GLOBAL"}
    assert {name for name in named if name.startswith("linkstream")} == {
        "linkstream.adapters.sklearn LinksClusterer"
    }
    assert not any("nanobind" in name or "_core" in name for name in named)


def test_damaged_bytes_in_a_pickle_are_refused(stream):
    state = LinksClusterer(*THRESHOLDS).fit(stream).__getstate__()
    damaged = bytearray(state["links_"])
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(SnapshotError):
        LinksClusterer().__setstate__(state | {"links_": bytes(damaged)})


def test_the_probabilities_are_those_of_links_in_the_columns_of_the_classes():
    X = sure.STREAM.vectors
    model = LinksClusterer(*sure.STREAM.thresholds, confidence=sure.MODEL).fit(X[:120])
    links = sure.links()
    links.add_many(X[:120])
    asked = np.concatenate([X[120:180], -X[:3]])
    shares, classes = model.predict_proba(asked), model.classes_
    assert classes.tolist() == [-1, *(each.id for each in links.clusters())]
    for row, found in zip(shares, links.predict_proba(asked), strict=True):
        told = {int(classes[i]): row[i] for i in np.flatnonzero(row > 0)}
        assert told == found
        assert np.isnan(row).all() if not found else row.sum() == pytest.approx(1.0)
    known = np.isfinite(shares[:, 0])
    assert known.sum() > 30
    decided = np.searchsorted(classes, model.predict(asked))
    right = sure.MODEL.probabilities(*kinds_and_margins(links, asked))
    np.testing.assert_allclose(shares[known, decided[known]], right[known])


def kinds_and_margins(links, X):
    asked = links.core.running().ask(links.core.quantised(X.astype(np.float32)))
    return asked.kind, asked.cluster_margin


def test_there_are_no_probabilities_without_a_model(stream):
    model = LinksClusterer(*THRESHOLDS).fit(stream)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(LinksTopics(*THRESHOLDS).fit(stream), "probabilities_")
    other = LinksClusterer(0.8, 0.7, 0.95, confidence=model_for(THRESHOLDS)).fit(stream)
    assert np.isnan(other.predict_proba(stream[:3])).all()
    assert other.links_.confidence.why.startswith("fitted with other thresholds")


def test_topics_have_the_probability_of_each_document_of_the_last_call():
    X = sure.STREAM.vectors
    options = {"confidence": sure.MODEL, "evidence": "nearest"}
    topics = LinksTopics(*sure.STREAM.thresholds, **options).fit(X[:50])
    topics.partial_fit(X[50:120])
    links = sure.links()
    links.add_many(X[:50])
    expected = links.decide_many(X[50:120]).probability
    np.testing.assert_array_equal(topics.probabilities_, expected)
    np.testing.assert_array_equal(copy.deepcopy(topics).probabilities_, expected)


def test_a_tuning_gives_the_parameters(tmp_path):
    tuned = Tuned(sure.links().thresholds, confidence=sure.MODEL)
    model = LinksClusterer(**tuned.parameters()).fit(sure.STREAM.vectors)
    assert clone(model).confidence == sure.MODEL
    assert model.links_.confidence.why == ""


def test_it_works_at_the_end_of_a_pipeline(stream):
    shifted = make_pipeline(
        FunctionTransformer(lambda X: X - 0.05), Normalizer(), LinksClusterer(*THRESHOLDS)
    )
    assert np.array_equal(shifted.fit_predict(stream), by_links(stream - 0.05))
    assert np.array_equal(
        shifted.predict(stream[:9]), shifted[-1].links_.predict(stream[:9] - 0.05)
    )


def test_a_grid_search_finds_thresholds_by_our_accuracy():
    voices = voice_halves()[0]
    search = GridSearchCV(
        make_pipeline(Normalizer(), LinksClusterer(preset="ge2e-windows", heal=False, threads=1)),
        {"linksclusterer__cluster_similarity": [0.2, 0.6, 0.82]},
        scoring=make_scorer(accuracy),
        cv=StratifiedKFold(3),
        error_score="raise",
    ).fit(voices.X[::2], voices.y[::2])
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max() > scores.min()
    assert search.best_score_ > 0.8
    assert search.predict(voices.X[1::2]).shape == voices.y[1::2].shape


def test_the_tags_describe_the_accepted_input():
    if not hasattr(sklearn.utils, "get_tags"):  # before 1.6
        assert LinksClusterer()._get_tags()["no_validation"] is False
        return
    tags = sklearn.utils.get_tags(LinksClusterer())
    assert tags.estimator_type == "clusterer"
    assert tags.requires_fit
    assert not tags.non_deterministic
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan


def test_without_scikit_learn_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "linkstream.adapters.sklearn")
    with pytest.raises(MissingExtraError, match=r"linkstream\[sklearn\]"):
        __import__("linkstream.adapters.sklearn")
