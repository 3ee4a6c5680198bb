"""`diagnose`: cones, copies, lengths, and thresholds that do not fit the vectors."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from linkstream import Space, Thresholds
from linkstream.data import voice_halves, voice_stream
from linkstream.errors import ArgumentError, DimensionError, MissingExtraError, VectorError
from linkstream.paper.generative import sample_stream, sigma_of
from linkstream.paper.sphere import normalise
from linkstream.tuning.diagnosis import diagnose
from linkstream.tuning.sample_runs import bytes_per_subcluster

DIMENSION, T_C = 128, 0.75
SIGMA = sigma_of(np.arccos(T_C), DIMENSION)
GOOD = Thresholds(T_C - 0.05, T_C**2 - 0.1, 0.9)


def model_sample(clusters=30, each=20, seed=0):
    return sample_stream(clusters, each, DIMENSION, SIGMA, np.random.default_rng(seed))


def in_a_cone(X, tilt=0.09):
    return normalise(X + tilt)


def severities(diagnosis):
    return {found.title: found.severity for found in diagnosis.findings}


@pytest.fixture(scope="module")
def healthy():
    X, y = model_sample()
    return diagnose(X, GOOD, y=y)


def test_a_sample_of_the_model_with_thresholds_that_fit_gets_no_warning(healthy):
    assert healthy.warnings == ()
    assert severities(healthy)["About as many clusters as identities"] == "ok"
    assert healthy.headline().endswith("with labels: no warnings")


def test_the_three_lemmas_hold_on_a_sample_of_the_model(healthy):
    groups = healthy.groups
    assert groups.strangers.mean == pytest.approx(0.0, abs=0.02)
    assert groups.strangers.dimensions == pytest.approx(DIMENSION, rel=0.3)
    assert groups.residuals.dimensions == pytest.approx(DIMENSION, rel=0.3)
    assert groups.angles.spread < 0.1
    assert groups.pair == pytest.approx(T_C**2, abs=0.03)


def test_without_labels_groups_of_neighbours_say_nearly_the_same(healthy):
    blind = diagnose(model_sample()[0], GOOD)
    assert not blind.labelled
    assert blind.groups.pair == pytest.approx(healthy.groups.pair, abs=0.05)
    assert blind.warnings == ()
    assert "not on labels" in blind.text()


@pytest.mark.parametrize("labelled", [False, True])
def test_a_cone_is_reported_with_advice_to_use_a_space(labelled):
    X, y = model_sample()
    found = diagnose(in_a_cone(X), y=y if labelled else None)
    assert found.cone.warranted
    assert found.cone.wide_enough
    assert abs(found.cone.centred_strangers) < 0.05
    assert severities(found)["Strangers are similar: a cone"] == "warning"
    assert "Space.fit(X)" in found.text()


def test_a_space_is_not_advised_on_five_identities():
    found = diagnose(in_a_cone(model_sample(clusters=5, each=80)[0]))
    assert not found.cone.wide_enough
    assert "do not fit it on these" in found.text()


def test_no_cone_is_reported_if_there_is_none(healthy):
    assert not healthy.cone.warranted
    assert "Strangers are similar: a cone" not in severities(healthy)


def test_the_fitted_space_removes_the_cone():
    X = in_a_cone(model_sample()[0])
    found = diagnose(X, space=Space.fit(X))
    assert found.centred
    assert abs(found.cone.strangers) < 0.05


def test_a_space_of_another_encoder_is_reported():
    X = in_a_cone(model_sample()[0])
    found = diagnose(X, space=Space(mean=-X.mean(axis=0)))
    assert "despite the space" in found.warnings[0].title


def test_a_t_s_well_above_t_c_squared_is_reported_as_too_high():
    found = diagnose(model_sample()[0], (0.7, 0.85, 0.9))
    assert found.cliff.at.alone > 0.95
    assert severities(found)["T_s is too high"] == "warning"
    assert severities(found)["T_s lies well above T_c²"] == "warning"
    assert severities(found)["Subclusters grow with the stream"] == "warning"


def test_subclusters_rise_from_few_to_all_with_t_s(healthy):
    curve = healthy.cliff.curve
    assert curve[0].subclusters < 0.2
    assert curve[-1].subclusters > 0.95
    assert T_C**2 - 0.1 < healthy.cliff.edge < T_C**2 + 0.25
    assert np.all(np.diff([run.subcluster_similarity for run in curve]) > 0)


def test_many_new_identities_are_not_reported_as_a_high_t_s():
    X, y = model_sample(clusters=400, each=4)
    run = diagnose(X[:500], GOOD, y=y[:500]).cliff.at
    assert run.subclusters > 0.5
    assert run.alone < 0.2


def test_thresholds_too_high_to_link_anything_are_reported():
    found = diagnose(model_sample()[0], (0.97, 0.95, 0.98))
    assert severities(found)["Hardly any vector finds its cluster"] == "warning"


def test_a_t_c_that_is_too_high_is_reported():
    X, y = model_sample()
    found = diagnose(X, (0.92, 0.5, 0.95), y=y)
    assert severities(found)["T_c rejects a group's own vectors"] == "warning"


def test_a_t_c_that_accepts_strangers_is_reported():
    X, y = model_sample()
    found = diagnose(in_a_cone(X), (0.4, 0.4, 0.9), y=y)
    assert severities(found)["Strangers pass the lowest threshold"] == "warning"


def test_with_labels_merged_and_split_identities_are_reported():
    X, y = model_sample()
    together = diagnose(in_a_cone(X), (0.4, 0.3, 0.9), y=y)
    apart = diagnose(X, (0.92, 0.9, 0.95), y=y)
    assert severities(together)["Identities are merged"] == "warning"
    assert severities(apart)["Identities are split"] == "warning"


def test_a_t_p_above_the_similarity_of_two_halves_is_reported():
    rng = np.random.default_rng(2)
    centres = normalise(rng.standard_normal((20, DIMENSION)))
    lobes = normalise(
        np.concatenate([centres, centres + 0.09 * rng.standard_normal((20, DIMENSION))])
    )
    y = np.tile(np.arange(20), 2).repeat(30)
    X = normalise(lobes.repeat(30, axis=0) + 0.02 * rng.standard_normal((1200, DIMENSION)))
    title = "T_p is above the similarity of two halves"
    assert severities(diagnose(X, (0.7, 0.6, 0.98), y=y))[title] == "warning"
    assert title not in severities(diagnose(X, (0.7, 0.6, 0.5), y=y))


def test_exact_copies_are_counted_exactly():
    X, _ = model_sample()
    copied = np.concatenate([X, X[:37], X[:5], -X[:1] * 0.0 + X[9]])
    assert diagnose(copied).copies.exact == 43
    assert diagnose(X).copies.exact == 0


def test_near_copies_are_counted_apart_from_exact_ones():
    X, _ = model_sample(clusters=10)
    near = normalise(X + 1e-4 * np.random.default_rng(0).standard_normal(X.shape))
    found = diagnose(np.concatenate([X, near])).copies
    assert (found.exact, found.near) == (0, 1.0)
    assert diagnose(np.concatenate([X, X])).copies.near == 0.0


def test_lengths_that_vary_widely_are_a_warning():
    X, _ = model_sample()
    scaled = X * np.random.default_rng(0).lognormal(0.0, 0.5, (len(X), 1))
    found = diagnose(scaled)
    lengths = np.linalg.norm(scaled, axis=1)
    assert found.lengths.least == pytest.approx(lengths.min())
    assert found.lengths.median == pytest.approx(np.median(lengths))
    assert severities(found)["Lengths vary widely"] == "warning"


def test_zero_vectors_are_counted_and_ignored(healthy):
    X, y = model_sample()
    holes = np.insert(X, [0, 100, 600], 0.0, axis=0)
    found = diagnose(holes, GOOD, y=np.insert(y, [0, 100, 600], 0))
    assert found.lengths.zeros == 3
    assert found.vectors == len(X) + 3
    assert found.groups == healthy.groups
    assert severities(found)["There are zero vectors"] == "warning"


def test_the_effective_dimension_equals_that_of_the_subspace():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((DIMENSION, 8)))[0]
    X = rng.standard_normal((800, 8)) @ basis.T
    found = diagnose(X)
    assert found.spectrum.effective_dimension == pytest.approx(8.0, abs=0.5)
    assert severities(found)["Few directions in use"] == "warning"


def test_the_forecast_of_a_stream_in_which_nothing_joins_is_every_vector():
    found = diagnose(model_sample()[0], (0.7, 0.95, 0.96)).growth
    assert found.exponent == pytest.approx(1.0)
    last = found.forecasts[-1]
    assert last.subclusters > 0.9 * last.vectors
    assert last.low <= last.subclusters <= last.high <= last.vectors
    assert last.bytes_held == last.subclusters * bytes_per_subcluster(DIMENSION)


def test_the_forecast_of_a_stream_of_known_identities_stays_small(healthy):
    last = healthy.growth.forecasts[-1]
    assert last.vectors == 1_000_000
    assert last.subclusters < 1000


def test_identities_missing_from_the_sample_are_grouped_too():
    X, _ = model_sample(clusters=300, each=10)
    found = diagnose(X, sample=200)
    assert found.groups.count > 50
    assert found.groups.pair == pytest.approx(T_C**2, abs=0.05)


def test_identities_of_few_vectors_leave_lemmas_two_and_three_untested():
    X, _ = model_sample(clusters=400, each=2)
    found = diagnose(X)
    assert found.groups.angles is None
    assert severities(found)["Lemmas 2 and 3 not tested"] == "note"


def test_the_same_seed_gives_the_same_diagnosis():
    X, _ = model_sample(clusters=40, each=60)
    assert diagnose(X, GOOD, seed=1, sample=300) == diagnose(X, GOOD, seed=1, sample=300)


def test_the_given_array_is_not_changed():
    X = (3.0 * model_sample(clusters=5)[0]).astype(np.float32)
    before = X.copy()
    diagnose(X, GOOD)
    np.testing.assert_array_equal(X, before)


def test_the_diagnosis_can_be_written_as_json(healthy):
    record = json.loads(json.dumps(healthy.to_dict(), allow_nan=False))
    assert record["thresholds"]["cluster_similarity"] == GOOD.cluster_similarity
    assert [each["title"] for each in record["findings"]] == list(severities(healthy))


def test_the_text_contains_every_finding_with_warnings_first():
    found = diagnose(in_a_cone(model_sample()[0]), (0.7, 0.95, 0.96))
    text = found.text()
    places = [text.index(each.title) for each in found.findings]
    assert places == sorted(places)
    order = [each.severity for each in found.findings]
    assert order == sorted(order, key=["warning", "note", "ok"].index)
    assert str(found) == text
    assert max(map(len, text.splitlines())) <= 100


def test_real_voices_lie_in_a_cone_and_five_speakers_are_too_few():
    _, held_out = voice_halves()
    found = diagnose(held_out.X, (0.766, 0.645, 0.738), y=held_out.y)
    assert 0.4 < found.cone.strangers < 0.6
    assert not found.cone.wide_enough
    assert severities(found)["T_s is low enough"] == "ok"


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture_is_drawn_with_and_without_thresholds(tmp_path, healthy, suffix):
    healthy.picture(tmp_path / f"with.{suffix}")
    X = np.concatenate([voice_stream().X[:200], 2.0 * voice_stream().X[200:400]])
    diagnose(X).picture(tmp_path / f"without.{suffix}")
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())


def test_without_matplotlib_the_error_has_the_install_line(healthy, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"linkstream\[plots\]"):
        healthy.picture(tmp_path / "no.png")


def test_bad_vectors_labels_and_spaces_are_refused():
    X, y = model_sample(clusters=5)
    bad = X.copy()
    bad[7, 3] = np.nan
    with pytest.raises(VectorError, match="row 7 is not finite"):
        diagnose(bad)
    with pytest.raises(VectorError, match="at least three"):
        diagnose(X[:2])
    with pytest.raises(VectorError, match="too short"):
        diagnose(np.zeros((5, 4)))
    with pytest.raises(DimensionError):
        diagnose(X, space=Space(mean=[0.1, 0.2]))
    with pytest.raises(ArgumentError, match="labels of shape"):
        diagnose(X, y=y[:-1])


@pytest.mark.parametrize("thresholds", [(0.7, 0.6), (0.7, 1.6, 0.9), ("a", "b", "c")])
def test_bad_thresholds_are_refused(thresholds):
    with pytest.raises(ArgumentError):
        diagnose(model_sample(clusters=3)[0], thresholds)


@pytest.mark.parametrize("sample", [0, 2.5, True])
def test_a_sample_must_be_a_number_of_vectors(sample):
    with pytest.raises(ArgumentError, match="sample="):
        diagnose(model_sample(clusters=3)[0], sample=sample)


@pytest.mark.parametrize("count", [3, 4, 11])
def test_a_few_vectors_can_be_diagnosed(count):
    X, y = model_sample(clusters=2)
    assert diagnose(X[:count], GOOD, y=y[:count]).vectors == count
    assert diagnose(np.repeat(X[:1], count, axis=0), GOOD).copies.exact == count - 1
