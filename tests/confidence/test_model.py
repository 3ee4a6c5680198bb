"""Models of confidence: two curves, what they are valid for, and when they say unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linkstream.confidence.answers import FOUNDED, HELD
from linkstream.confidence.curve import sigmoid
from linkstream.confidence.model import (
    ANSWERS,
    CHECKED,
    IDENTITIES,
    KEPT,
    Examples,
    Model,
    Pairs,
    Setting,
)
from linkstream.engine.decisions import JOINED, LINKED, NEW

SIZES = np.arange(200) % 7 + 1  # of the smaller clusters
PAIRS = Pairs(np.linspace(-0.5, 0.1, 200), SIZES, np.arange(200) % 200 > 120)
SETTING = Setting((0.7, 0.6, 0.9), "nearest", "none", "0123")


def examples(n=3000, identities=40, seed=0):
    """Decisions that are surer by a greater margin, and new clusters by a smaller one."""
    rng = np.random.default_rng(seed)
    kind = rng.choice([JOINED, LINKED, NEW], n).astype(np.int8)
    margin = rng.normal(0.0, 0.3, n)
    odds = np.where(kind == NEW, 1.0 - 4.0 * margin, 1.0 + 8.0 * margin)
    return Examples(kind, margin, rng.random(n) < sigmoid(odds), identities)


def test_each_kind_has_a_curve_of_its_own():
    model = Model.fit(examples(), PAIRS, SETTING)
    kinds, margins = np.array([JOINED, LINKED, NEW], dtype=np.int8), np.full(3, 0.2)
    joined, linked, new = model.probabilities(kinds, margins)
    assert joined == linked == pytest.approx(sigmoid(np.array(2.6)), abs=0.05)
    assert new == pytest.approx(sigmoid(np.array(0.2)), abs=0.05)
    assert model.why == ""


def test_probabilities_match_the_share_that_is_right():
    model, fresh = Model.fit(examples(), PAIRS, SETTING), examples(seed=9)
    found = model.probabilities(fresh.kind, fresh.margin)
    seen = ~np.isnan(found)
    assert seen.mean() > 0.99
    for part in np.array_split(np.flatnonzero(seen)[np.argsort(found[seen])], 6):
        assert found[part].mean() == pytest.approx(fresh.right[part].mean(), abs=0.06)


def test_few_identities_are_unknown():
    few = Model.fit(examples(identities=IDENTITIES - 1), PAIRS, SETTING)
    assert np.isnan(few.probabilities(np.zeros(4, dtype=np.int8), np.zeros(4))).all()
    assert f"{IDENTITIES - 1} identities" in few.why
    assert Model.fit(examples(identities=IDENTITIES), PAIRS, SETTING).is_known


def test_one_kind_without_errors_leaves_the_other_known():
    given = examples()
    sure = replace(given, right=given.right | (given.kind == NEW))
    model = Model.fit(sure, PAIRS, SETTING)
    kinds = np.array([JOINED, NEW], dtype=np.int8)
    assert np.isnan(model.probabilities(kinds, np.zeros(2))).tolist() == [False, True]
    assert model.why.startswith("new: ")
    assert "0 wrong" in model.why


def test_a_decision_without_a_margin_is_unknown_and_is_left_out():
    given = examples()
    holes = replace(given, margin=np.where(np.arange(len(given.kind)) % 7, given.margin, np.nan))
    model = Model.fit(holes, PAIRS, SETTING)
    assert (
        model.held.right + model.held.wrong + model.new.right + model.new.wrong
        == np.isfinite(holes.margin).sum()
    )
    assert np.isnan(model.probabilities(given.kind[:1], np.array([np.nan]))).all()


def test_runs_are_put_together():
    one, other = examples(seed=1), examples(100, identities=50, seed=2)
    both = Examples.joined([one, other])
    assert len(both.kind) == len(both.margin) == len(both.right) == 3100
    assert both.identities == 50


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("thresholds", (0.7, 0.6, 0.91)),
        ("evidence", "cluster"),
        ("healing", "settle"),
        ("space", "4567"),
    ],
)
def test_another_setting_is_named(name, value):
    assert SETTING.difference(SETTING) == ""
    assert SETTING.difference(replace(SETTING, **{name: value})) == name


def test_a_model_survives_json_and_wrong_parts_are_refused():
    plain = Model.fit(examples(), PAIRS, SETTING).to_plain()
    assert Model.from_plain(plain).to_plain() == plain
    for wrong in (
        None,
        {},
        plain | {"identities": -1},
        plain | {"identities": True},
        plain | {"held": None},
        plain | {"setting": [[0.7, 0.6], "a", "b", "c"]},
        plain | {"setting": [[0.7, 0.6, 0.9], "a", "b", 1]},
        plain | {"setting": "paper"},
        plain | {"more": 1},
        plain | {"answers": None},
        plain | {"answers": [[True, 0.1]]},
        plain | {"answers": [[1, float("nan"), True, 0]]},
        plain | {"answers": [[True, 0.1, True, 0]]},
        plain | {"answers": [[3, 0.1, True, 0]]},
        plain | {"answers": [[1, 0.1, True, -1]]},
    ):
        with pytest.raises(ValueError, match=r"curve|model|setting|identities|answer"):
            Model.from_plain(wrong)


def test_two_clusters_are_one_identity_the_more_likely_the_greater_their_margin():
    model = Model.fit(examples(), PAIRS, SETTING)
    told = model.one_identity(np.array([-0.6, -0.5, -0.2, 0.1, 0.3]), np.ones(5))
    assert np.isnan(told[0])
    assert (np.diff(told[1:]) >= 0).all()
    assert told[1] < 0.2 < 0.8 < told[-1]
    few = Model.fit(examples(identities=IDENTITIES - 1), PAIRS, SETTING)
    assert np.isnan(few.one_identity(np.zeros(2), np.ones(2))).all()
    both = Pairs.joined([PAIRS, PAIRS])
    assert (len(both.margin), both.same.sum()) == (400, 2 * PAIRS.same.sum())


def test_two_large_clusters_of_one_margin_are_less_often_one_where_the_tuning_saw_it():
    margin = np.tile(np.linspace(-0.3, 0.1, 100), 2)
    smaller = np.repeat([1, 30], 100)
    same = margin > np.where(smaller == 1, -0.2, 0.0)
    model = Model.fit(examples(), Pairs(margin, smaller, same), SETTING)
    small, usual, large, larger = model.one_identity(np.full(4, -0.1), [1, 5, 30, 10**6])
    assert small > 0.8 > usual > 0.2 > large >= larger > 0.0
    assert model.same.even == pytest.approx(-0.1, abs=0.02)  # of the usual size
    assert Model.from_plain(model.to_plain()) == model
    right = [(2, float(m), bool(s), int(k)) for m, s, k in zip(margin, same, smaller, strict=True)]
    again = model.answered(right).one_identity(np.full(2, -0.1), [1, 30])
    assert again[0] > small
    assert again[1] < large


def shifted(n, seed):
    """Decisions of another source: surer margins, and fewer are right."""
    rng = np.random.default_rng(seed)
    kind = rng.choice([JOINED, NEW], n).astype(np.int8)
    margin = rng.normal(0.1, 0.3, n)
    odds = np.where(kind == NEW, -4.0 * margin, -1.0 + 4.0 * margin)
    return Examples(kind, margin, rng.random(n) < sigmoid(odds), 30)


def error(model, given):
    """The mean gap between probability and share that was right, in eight parts."""
    told = model.probabilities(given.kind, given.margin)
    known = np.flatnonzero(np.isfinite(told))
    parts = np.array_split(known[np.argsort(told[known])], 8)
    return np.mean([abs(told[part].mean() - given.right[part].mean()) for part in parts])


def answers_of(given):
    return list(
        zip(
            np.where(given.kind == NEW, FOUNDED, HELD).tolist(),
            given.margin.tolist(),
            given.right.tolist(),
            range(len(given.right)),
            strict=True,
        )
    )


def test_answers_correct_a_model_that_was_fitted_to_another_source():
    model, fresh = Model.fit(examples(), PAIRS, SETTING), shifted(4000, seed=3)
    errors = [
        error(model.answered(answers_of(shifted(n, seed=4)) if n else []), fresh)
        for n in (0, 50, 400)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05
    few = model.answered(answers_of(shifted(4, seed=5)))
    assert few.held.intercept == model.held.intercept
    assert few.curves[0].intercept == pytest.approx(model.held.intercept, abs=0.6)


def test_without_a_tuning_only_many_answers_make_a_model():
    empty = Model.empty(SETTING)
    given = answers_of(shifted(400, seed=6))
    few = empty.answered(given[: ANSWERS - 1])
    assert not few.is_known
    assert f"there are {ANSWERS - 1}" in few.why
    model = empty.answered(given)
    assert model.is_known
    assert error(model, shifted(4000, seed=7)) < 0.08
    assert np.isnan(model.one_identity(np.zeros(2), np.ones(2))).all()
    assert Model.from_plain(model.to_plain()) == model


def test_only_the_newest_answers_are_kept():
    model = Model.empty(SETTING).answered([(HELD, float(i), True, i) for i in range(KEPT + 7)])
    assert len(model.answers) == KEPT
    assert model.answers[0][1] == 7.0


def test_a_tuning_that_no_longer_holds_is_found_by_answers():
    model = Model.fit(examples(), PAIRS, SETTING)
    assert model.check() is None
    assert model.answered(answers_of(shifted(CHECKED - 1, seed=8))).check() is None
    good = model.answered(answers_of(examples(300, seed=8))).check()
    bad = model.answered(answers_of(shifted(300, seed=8))).check()
    assert not good.has_drifted
    assert abs(good.told - good.right) < 0.06
    assert bad.has_drifted
    assert bad.deviation < 0
    assert bad.told > bad.right
    assert bad.answers > 290
    untuned = Model.empty(SETTING).answered(answers_of(examples(300, seed=8)))
    assert untuned.check() is None
