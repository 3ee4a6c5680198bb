"""`tune`: the search for thresholds on labelled vectors."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict

import numpy as np
import optuna
import pytest

from linkstream import Links, Space, Thresholds, metrics
from linkstream.data import voice_halves
from linkstream.errors import ArgumentError, MissingExtraError, VectorError
from linkstream.tuning import TuneResult, tune
from linkstream.tuning.candidates import (
    Candidate,
    Point,
    best_neighbourhood,
    design,
    similarity_range,
)
from linkstream.tuning.inputs import LabelledVectors
from linkstream.tuning.objective import Objective, judge

QUICK = {"trials": 24, "orders": 2}


@pytest.fixture(scope="module")
def voices():
    """Return a short stream of five speakers with their labels, in fewer dimensions."""
    stream = voice_halves()[0]
    return stream.X[::3, :96], stream.y[::3]


@pytest.fixture(scope="module")
def tuned(voices):
    return tune(*voices, **QUICK)


def families(n_identities, size, *, seed=0, cone=0.0):
    """Return identities around random directions, in 24 dimensions, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_identities), size))
    centres = rng.normal(size=(n_identities, 24)) / np.sqrt(24)
    X = centres[y] + 0.6 * rng.normal(size=(len(y), 24)) / np.sqrt(24)
    X[:, 0] += cone
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def params(tuned):
    return [trial.params for trial in tuned.study.trials]


# The result


def test_thresholds_tuned_on_five_speakers_fit_five_others():
    tuning, held_out = voice_halves()
    links = tune(tuning.X, tuning.y, trials=64).links()
    assert metrics.accuracy(held_out.y, links.add_many(held_out.X)) > 0.8


def test_the_score_equals_that_of_a_clusterer_with_these_thresholds(voices, tuned):
    X, y = voices
    links = tuned.links()
    instant = metrics.accuracy(y, links.add_many(X))
    current = metrics.accuracy(y, links.labels())
    assert tuned.judgements[0].instant == instant
    assert tuned.judgements[0].current == current
    assert tuned.scores[0] == pytest.approx((instant + current) / 2)


def test_the_figures_agree_with_each_other(tuned):
    assert tuned.score == pytest.approx(np.mean(tuned.scores))
    assert tuned.score == pytest.approx((tuned.instant + tuned.current) / 2)
    assert tuned.spread.min <= tuned.score <= tuned.spread.max
    assert tuned.spread.std == pytest.approx(np.std(tuned.scores))
    assert len(tuned.scores) == QUICK["orders"]
    assert tuned.n_trials == QUICK["trials"]


def test_the_chosen_trial_was_judged_in_every_order(tuned):
    assert min(t.value for t in tuned.study.trials if t.value) <= tuned.score
    assert tuned.score <= tuned.study.best_value


def test_more_weight_on_conflation_gives_no_more_conflation(voices):
    X, y = voices
    parts = []
    for weight in (0.05, 20.0):
        links = tune(X, y, conflation_weight=weight, trials=48, orders=1).links()
        parts.append(metrics.conflation_fracture(y, links.add_many(X)))
    lax, strict = parts
    assert strict.conflation <= lax.conflation
    assert strict.fracture >= lax.fracture


def test_with_a_weight_the_score_is_the_weighted_score(voices):
    X, y = voices
    tuned = tune(X, y, fracture_weight=3.0, trials=8, orders=1)
    ids = tuned.links().add_many(X)
    weights = {"conflation_weight": 1.0, "fracture_weight": 3.0}
    assert tuned.judgements[0].instant == metrics.weighted_score(y, ids, **weights)
    assert "fracture 3" in tuned.objective.name


def test_settled_tuning_scores_the_labels_after_settling(voices):
    X, y = voices
    tuned = tune(X, y, objective="settled", mode="best", trials=8, orders=1)
    links = tuned.links()
    links.add_many(X)
    links.settle(apply=True)
    assert tuned.score == tuned.settled == metrics.accuracy(y, links.labels())
    assert dict(tuned.rows())["settled"] == f"{tuned.settled:.4f}"
    assert tuned.objective.name == "accuracy, settled"


def test_a_weight_of_stability_subtracts_the_share_that_moved(voices):
    X, y = voices
    tuned = tune(X, y, mode="best", stability_weight=0.5, trials=8, orders=1)
    links = tuned.links()
    ids = links.add_many(X)
    still = metrics.stability(links.resolve_many(ids), links.labels())
    assert tuned.still == still
    assert tuned.score == pytest.approx((tuned.instant + tuned.current) / 2 - 0.5 * (1 - still))
    assert tuned.settled is None


def test_more_weight_on_stability_moves_no_more_ids():
    X, y = families(12, 20, seed=3)
    free, still = (
        tune(X, y, mode="best", stability_weight=weight, trials=40, orders=1)
        for weight in (0.0, 1.0)
    )
    assert still.still >= free.still
    assert still.instant + still.current <= free.instant + free.current + 0.02


def test_a_mode_is_tuned_like_the_options_it_stands_for(voices):
    by_name = tune(*voices, mode="best", trials=8, orders=1)
    spelled = tune(*voices, evidence="cluster", heal="settle", trials=8, orders=1)
    assert by_name.to_dict() == spelled.to_dict()
    assert by_name.python.endswith("mode='best')")
    assert by_name.links().healing is not None


def test_names_of_identities_do_not_matter(voices, tuned):
    X, y = voices
    named = tune(X, [f"speaker {who}" for who in y], **QUICK)
    assert named.thresholds == tuned.thresholds


def test_vectors_need_not_be_of_unit_length(voices, tuned):
    X, y = voices
    assert tune(4.0 * X, y, **QUICK).thresholds == tuned.thresholds


# Reproducibility


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers_changes_nothing(voices, tuned, workers):
    other = tune(*voices, workers=workers, **QUICK)
    assert (other.thresholds, other.scores) == (tuned.thresholds, tuned.scores)
    assert params(other) == params(tuned)


def test_another_seed_tries_other_thresholds(voices, tuned):
    assert params(tune(*voices, seed=1, **QUICK)) != params(tuned)


@pytest.mark.parametrize(("mode", "trials"), [("paper", 200), ("best", 64)])
def test_two_thresholds_are_searched_with_fewer_trials_than_three(mode, trials):
    X, y = families(4, 5)
    assert tune(X, y, mode=mode, orders=1).n_trials == trials


def test_the_estimator_takes_over_after_the_design(voices):
    X, y = voices
    tuned = tune(X[:200], y[:200], trials=48, orders=1)
    found = similarity_range(*_rows(X[:200], y[:200]), Space(), seed=0)
    designed = [asdict(point) for point in design(found, 32, seed=0)]
    assert params(tuned)[:32] == designed
    assert all(trial not in designed for trial in params(tuned)[32:])


def _rows(X, y):
    examples = LabelledVectors.of(X, y)
    return examples.X, examples.y


def test_the_engines_agree(voices):
    X, y = voices
    few = {"trials": 4, "orders": 1}
    by_reference = tune(X[:60], y[:60], engine="reference", **few)
    assert by_reference.to_dict() == tune(X[:60], y[:60], **few).to_dict()


# Studies


def test_a_resumed_study_gives_the_result_of_an_uninterrupted_one(voices, tuned, tmp_path):
    path = tmp_path / "voices.study"
    first = tune(*voices, study=path, **(QUICK | {"trials": 8}))
    assert first.n_trials == 8
    resumed = tune(*voices, study=path, **QUICK)
    assert resumed.n_trials == QUICK["trials"]
    assert resumed.to_dict() == tuned.to_dict()


def test_a_complete_study_is_not_run_again(voices, tmp_path):
    path, calls = tmp_path / "voices.study", []
    first = tune(*voices, study=path, trials=8, orders=1)
    again = tune(*voices, study=path, trials=4, orders=1, progress=lambda *seen: calls.append(seen))
    assert not calls
    assert again.to_dict() == first.to_dict()


def test_open_trials_of_an_interrupted_run_are_tried_again(voices, tuned, tmp_path):
    path = tmp_path / "voices.study"

    def interrupt(done, total, best):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(*voices, study=path, progress=interrupt, **QUICK)
    left = tune(*voices, study=path, **(QUICK | {"trials": 8})).study
    left.ask()
    left.enqueue_trial({"pair": 0.5, "join": 0.5, "pull": 0.5})
    resumed = tune(*voices, study=path, **QUICK)
    assert resumed.to_dict() == tuned.to_dict()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"seed": 5}, "seed"),
        ({"orders": 1}, "orders"),
        ({"conflation_weight": 2.0}, "objective"),
        ({"space": Space(mean=np.full(96, 0.01))}, "space"),
    ],
)
def test_a_study_of_other_settings_is_refused(voices, tmp_path, changed, named):
    path = tmp_path / "voices.study"
    tune(*voices, study=path, trials=2, orders=2)
    with pytest.raises(ArgumentError, match=f"of other {named}"):
        tune(*voices, study=path, **({"trials": 2, "orders": 2} | changed))


def test_a_study_of_other_data_is_refused(voices, tmp_path):
    X, y = voices
    path = tmp_path / "voices.study"
    tune(X, y, study=path, trials=2, orders=1)
    with pytest.raises(ArgumentError, match="of other vectors, labels"):
        tune(X[1:], y[1:], study=path, trials=2, orders=1)


@pytest.mark.parametrize("content", [b"not a study\n", b"\x80\x93\xff\n", b'{"a": 1}\n', b"[]\n"])
def test_a_file_that_is_not_a_study_is_refused_and_unchanged(voices, tmp_path, content):
    path = tmp_path / "precious.txt"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match="not a study"):
        tune(*voices, study=path, trials=2)
    assert path.read_bytes() == content


def test_a_study_in_a_missing_folder_is_refused(voices, tmp_path):
    with pytest.raises(ArgumentError, match="a study at"):
        tune(*voices, study=tmp_path / "nowhere" / "voices.study", trials=2)


def test_optuna_logs_nothing_and_keeps_its_settings(voices, capfd):
    X, y = voices
    before = optuna.logging.get_verbosity()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune(X[:100], y[:100], trials=40, orders=1)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before


# Spaces


def test_the_space_given_is_used_for_all_trials(voices):
    X, y = voices
    space = Space(mean=X.mean(axis=0), model="ge2e")
    tuned = tune(X, y, space=space, trials=8, orders=1)
    assert tuned.space == space
    assert tuned.links().space == space
    assert "Space(mean=mean)" in tuned.python


def test_a_cone_of_many_identities_is_centred_if_that_scores_better():
    X, y = families(40, 8, cone=2.0)
    plain = tune(X, y, trials=40, orders=1)
    both = tune(X, y, trials=40, orders=1, search_space=True)
    assert both.space.mean is not None
    assert both.score > plain.score
    tried = [trial.user_attrs["space"] for trial in both.study.trials]
    assert tried.count("given") >= 16
    assert tried.count("centred") >= 16


def test_too_few_identities_are_not_centred(voices):
    tuned = tune(*voices, trials=8, orders=1, search_space=True)
    assert tuned.space.mean is None
    assert {trial.user_attrs["space"] for trial in tuned.study.trials} == {"given"}


def test_almost_identical_vectors_are_not_centred():
    X = np.ones((80, 3)) + 1e-4 * np.random.default_rng(0).normal(size=(80, 3))
    tuned = tune(X, np.arange(80) % 40, trials=4, orders=1, search_space=True)
    assert tuned.space.mean is None


# Points of the search


def test_every_point_gives_valid_thresholds():
    X, y = families(12, 5)
    rows, codes = _rows(X, y)
    found = similarity_range(rows, codes, Space(), seed=0)
    corners = [Point(a, b, c) for a in (0.0, 1.0) for b in (0.0, 1.0) for c in (0.0, 1.0)]
    for point in [*corners, *found.first_points()]:
        thresholds = found.thresholds(point)
        assert found.low <= thresholds.subcluster_similarity <= found.high
        assert thresholds.pair_similarity_max >= thresholds.cluster_similarity**2


def test_identical_vectors_can_be_tuned():
    X, y = np.ones((20, 3)), np.arange(20) % 2
    assert tune(X, y, trials=8, orders=1).n_trials == 8


def test_opposite_vectors_can_be_tuned():
    X = np.array([[1.0, 0.0], [-1.0, 0.0]] * 10)
    assert tune(X, np.arange(20) // 2, trials=8, orders=1).n_trials == 8


def test_the_first_points_do_not_depend_on_their_number():
    rows, codes = _rows(*families(12, 5))
    found = similarity_range(rows, codes, Space(), seed=0)
    assert design(found, 40, seed=0)[:12] == design(found, 12, seed=0)


# Choice of the trial


def test_a_good_trial_among_bad_neighbours_is_not_chosen():
    rng = np.random.default_rng(0)
    bad, good = 0.2 + 0.02 * rng.random((9, 3)), 0.7 + 0.02 * rng.random((9, 3))
    points = np.column_stack([np.zeros(18), np.vstack([bad, good])])
    scores = np.array([0.95, *[0.3] * 8, *[0.9] * 9])
    assert best_neighbourhood(points, scores, np.ones(18, dtype=bool)) >= 9


def test_a_pruned_trial_is_not_chosen():
    points = np.array([[0.0, 0.1, 0.1, 0.1], [0.0, 0.9, 0.9, 0.9]])
    assert best_neighbourhood(points, np.array([0.9, 0.2]), np.array([False, True])) == 1


def test_trials_in_another_space_are_not_neighbours():
    place = [0.5, 0.5, 0.5]
    points = np.array([[0.0, *place], [1.0, *place], [0.0, 0.1, 0.1, 0.1]])
    scores = np.array([0.8, 0.1, 0.7])
    assert best_neighbourhood(points, scores, np.ones(3, dtype=bool)) == 0


def test_bad_trials_are_not_run_in_every_order(tuned):
    states = [trial.state.name for trial in tuned.study.trials]
    assert set(states) == {"COMPLETE", "PRUNED"}
    best_first = max(t.user_attrs["figures"][0]["score"] for t in tuned.study.trials)
    for trial in tuned.study.trials:
        if trial.state.name == "PRUNED":
            assert len(trial.user_attrs["figures"]) == 1
            assert trial.user_attrs["figures"][0]["score"] < best_first - 0.04


# Candidates


def test_a_candidate_builds_the_clusterer_it_describes():
    thresholds, space = Thresholds(0.7, 0.6, 0.9), Space(model="ge2e")
    candidate = Candidate(thresholds, space, {"track_vectors": False})
    assert candidate.links().thresholds == thresholds
    assert candidate.links().space == space
    assert not candidate.links().track_vectors
    assert candidate.links(track_vectors=True).track_vectors


def test_the_score_is_the_mean_of_instant_and_current(voices):
    X, y = voices
    judgement = judge(Candidate(Thresholds(0.766, 0.645, 0.738)), X, y, Objective())
    links = Links(0.766, 0.645, 0.738)
    assert judgement.instant == metrics.accuracy(y, links.add_many(X))
    assert judgement.score == (judgement.instant + judgement.current) / 2


# Output


def test_progress_is_reported_after_each_batch(voices):
    calls = []
    tuned = tune(*voices, trials=20, orders=1, progress=lambda *seen: calls.append(seen))
    assert [done for done, _, _ in calls] == [8, 16, 20]
    assert {total for _, total, _ in calls} == {20}
    bests = [best for _, _, best in calls]
    assert bests == sorted(bests)
    assert bests[-1] == tuned.study.best_value


def test_the_figures_can_be_written_as_json(tuned):
    record = json.loads(json.dumps(tuned.to_dict(), allow_nan=False))
    assert Thresholds(**record["thresholds"]) == tuned.thresholds
    assert record["score"] == tuned.score


def test_the_text_contains_the_thresholds_and_the_score(tuned):
    text = str(tuned)
    assert f"{tuned.thresholds.cluster_similarity:.4f}" in text
    assert f"{tuned.score:.4f}" in text


def test_the_python_line_makes_the_same_clusterer(tuned):
    names = {"Links": Links}
    exec(tuned.python, names)
    assert names["links"].thresholds == tuned.thresholds


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_picture_is_drawn(tuned, tmp_path, ending):
    path = tmp_path / f"trials.{ending}"
    tuned.picture(path)
    assert path.stat().st_size > 1000


def test_a_picture_that_cannot_be_written_is_refused(tuned, tmp_path):
    for name in ("picture.xyz", "nowhere/picture.png"):
        with pytest.raises(ArgumentError):
            tuned.picture(tmp_path / name)


def test_the_picture_of_two_spaces_and_of_one_trial_is_drawn(tmp_path):
    X, y = families(32, 4, cone=1.0)
    tune(X, y, trials=20, orders=1, search_space=True).picture(tmp_path / "two.png")
    tune(X, y, trials=1, orders=1).picture(tmp_path / "one.png")


# Bad arguments


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"trials": 0}, "trials=0"),
        ({"trials": 2.5}, "trials=2.5"),
        ({"trials": True}, "trials=True"),
        ({"orders": 0}, "orders=0"),
        ({"seed": -1}, "seed=-1"),
        ({"workers": 0}, "workers=0"),
        ({"conflation_weight": -1.0}, "conflation_weight is -1"),
        ({"fracture_weight": float("nan")}, "fracture_weight is nan"),
        ({"conflation_weight": "much"}, "conflation_weight is 'much'"),
        ({"conflation_weight": 0.0, "fracture_weight": 0.0}, "both weights"),
        ({"objective": "speed"}, "objective='speed'"),
        ({"stability_weight": 1.5}, "stability_weight=1.5"),
        ({"stability_weight": float("nan")}, "stability_weight=nan"),
        ({"stability_weight": True}, "stability_weight=True"),
        ({"mode": "fast"}, "mode='fast'"),
        ({"space": "centred"}, "space is of type str"),
        ({"space": Space(mean=[0.1, 0.2])}, "dimension 2"),
        ({"engine": "steam"}, "steam"),
    ],
)
def test_bad_settings_are_refused(voices, settings, match):
    with pytest.raises(ArgumentError, match=match):
        tune(*voices, **settings)


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.arange(19) % 3, "20 vectors and 19 labels"),
        (np.zeros(20, dtype=int), "one identity"),
        (np.arange(20), "each seen once"),
        (np.arange(40).reshape(20, 2), "shape"),
        ([None] * 20, "y holds object"),
        ([0.0] * 19 + [float("nan")], "y is nan"),
    ],
)
def test_bad_labels_are_refused(labels, match):
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(ArgumentError, match=match):
        tune(X, labels)


def test_fewer_than_ten_vectors_are_refused():
    with pytest.raises(ArgumentError, match="9 vectors"):
        tune(np.eye(9), np.arange(9) % 2)


def test_a_vector_that_is_not_finite_is_refused_with_its_row():
    X = np.random.default_rng(0).normal(size=(20, 4))
    X[7, 2] = np.nan
    with pytest.raises(VectorError, match="row 7"):
        tune(X, np.arange(20) % 2)


def test_a_refused_input_writes_no_file(voices, tmp_path):
    X, y = voices
    with pytest.raises(ArgumentError):
        tune(X, y[:-1], study=tmp_path / "voices.study")
    assert not list(tmp_path.iterdir())


def test_without_optuna_the_error_has_the_install_line(voices, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"linkstream\[tune\]"):
        tune(*voices, trials=2)


def test_without_matplotlib_the_error_has_the_install_line(tuned, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"linkstream\[plots\]"):
        tuned.picture(tmp_path / "trials.png")


def test_the_result_cannot_be_changed(tuned):
    assert isinstance(tuned, TuneResult)
    with pytest.raises(AttributeError):
        tuned.study = None


def test_with_cluster_evidence_t_s_is_fixed_and_two_thresholds_are_searched(voices):
    tuned = tune(*voices, trials=20, orders=1, evidence="cluster", heal="settle")
    links = tuned.links()
    assert (links.evidence, links.healing.mode) == ("cluster", "settle")
    fine = {trial.params["join"] for trial in tuned.study.trials}
    assert fine == {1.0}
    at_arrival = links.add_many(voices[0])
    assert tuned.instant == pytest.approx(metrics.accuracy(voices[1], at_arrival))
    assert "mode='best'" in tuned.python
    assert json.loads(json.dumps(tuned.to_dict()))["options"] == {"mode": "best"}


def test_a_bad_heal_option_is_refused_before_any_work(voices):
    with pytest.raises(ArgumentError, match="mend"):
        tune(*voices, heal="mend")
