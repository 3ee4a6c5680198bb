"""Pairs to ask about: the same each time, over the whole range, from many rows."""

from __future__ import annotations

import numpy as np

from linkstream.tuning.pair_questions import SAMPLE, pairs_to_ask

RNG = np.random.default_rng(7)
WHO = RNG.integers(0, 20, 400)
X = RNG.standard_normal((20, 24))[WHO] + 0.5 * RNG.standard_normal((400, 24))


def test_the_same_vectors_give_the_same_pairs():
    assert pairs_to_ask(X, 50) == pairs_to_ask(X, 50)
    assert pairs_to_ask(X, 50) != pairs_to_ask(X, 50, seed=1)


def test_a_pair_has_two_rows_and_their_cosine():
    for pair in pairs_to_ask(X, 30):
        a, b = X[pair.a], X[pair.b]
        assert pair.a < pair.b
        assert np.isclose(pair.similarity, a @ b / np.linalg.norm(a) / np.linalg.norm(b), atol=1e-5)


def test_few_answers_have_both_kinds():
    asked = pairs_to_ask(X, 60)
    same = [bool(WHO[pair.a] == WHO[pair.b]) for pair in asked]
    assert 10 <= sum(same) <= 50
    assert len({True, False} & set(same[:12])) == 2


def test_rows_seldom_come_up_twice():
    rows = [row for pair in pairs_to_ask(X, 60) for row in (pair.a, pair.b)]
    assert len(set(rows)) > 0.9 * len(rows)


def test_only_the_first_rows_are_used_and_too_few_give_no_pair():
    many = RNG.standard_normal((SAMPLE + 500, 8))
    assert max(pair.b for pair in pairs_to_ask(many, 40)) < SAMPLE
    assert pairs_to_ask(X[:1]) == []
    assert len(pairs_to_ask(X[:3], 60)) == 3
    assert pairs_to_ask(np.ones((5, 4)), 60)
