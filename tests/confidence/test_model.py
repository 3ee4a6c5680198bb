"""Models of confidence: two curves, what they are valid for, and when they say unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linkstream.confidence.curve import sigmoid
from linkstream.confidence.model import IDENTITIES, Examples, Model, Pairs, Setting
from linkstream.engine.decisions import JOINED, LINKED, NEW

PAIRS = Pairs(np.linspace(-0.5, 0.1, 200), np.arange(200) % 200 > 120)
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
    ):
        with pytest.raises(ValueError, match=r"curve|model|setting|identities"):
            Model.from_plain(wrong)


def test_two_clusters_are_one_identity_the_more_likely_the_greater_their_margin():
    model = Model.fit(examples(), PAIRS, SETTING)
    told = model.one_identity(np.array([-0.6, -0.5, -0.2, 0.1, 0.3]))
    assert np.isnan(told[0])
    assert (np.diff(told[1:]) >= 0).all()
    assert told[1] < 0.2 < 0.8 < told[-1]
    few = Model.fit(examples(identities=IDENTITIES - 1), PAIRS, SETTING)
    assert np.isnan(few.one_identity(np.zeros(2))).all()
    both = Pairs.joined([PAIRS, PAIRS])
    assert (len(both.margin), both.same.sum()) == (400, 2 * PAIRS.same.sum())
