"""The search for thresholds of a rebuild: the grid, the score, and what it chooses."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream.engine.choice import choose
from linkstream.engine.fixed_point import quantise
from linkstream.identity.content import Content
from linkstream.identity.rebuild_search import PAIRS, PULLS, Examples, Grid, agreement, grouped
from streams import ENGINES, around, unit


def content_of(X):
    n = len(X)
    zeros = np.zeros(n, dtype=np.int64)
    return Content(np.arange(n), quantise(np.float32(X))[0], zeros)


def labelled(seed, n=60, identities=8, d=12, cosine=0.85):
    """Return vectors around identities, some twice, and their identities."""
    rng = np.random.default_rng(seed)
    who = rng.integers(identities, size=n)
    X = around(rng, unit(rng.standard_normal((identities, d)))[who], cosine)
    X[-3:], who[-3:] = X[:3], who[:3]
    return X, who


def naive_agreement(labels, groups, shares):
    """B-cubed precision and recall, vector by vector."""
    n, precision, recall = range(len(labels)), 0.0, 0.0
    for i in n:
        both = sum(shares[j] for j in n if labels[i] == labels[j] and groups[i] == groups[j])
        precision += shares[i] * both / sum(shares[j] for j in n if groups[i] == groups[j])
        recall += shares[i] * both / sum(shares[j] for j in n if labels[i] == labels[j])
    precision, recall = precision / sum(shares), recall / sum(shares)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("seed", range(5))
def test_agreement_is_the_f1_of_b_cubed_precision_and_recall(seed):
    rng = np.random.default_rng(seed)
    labels, groups = rng.integers(4, size=30) * 7, rng.integers(6, size=30) - 3
    shares = rng.choice([0.25, 1.0, 4.0], size=30)
    examples = Examples(np.zeros((30, 2), np.int64), np.ones(30), labels, shares)
    expected = naive_agreement(labels.tolist(), groups.tolist(), shares.tolist())
    assert agreement(examples, groups) == pytest.approx(expected)
    assert agreement(examples, labels + 5) == 1.0


def test_every_place_of_the_grid_has_thresholds_in_their_ranges():
    grid = Grid.over(0.01, 0.98)
    found = [grid.at(place) for place in range(len(PAIRS) * len(PULLS))]
    squares = np.array([each.cluster_similarity**2 for each in found])
    assert np.all(np.diff(squares) >= 0)
    assert all(each.pair_similarity_max <= 1 for each in found)
    assert {each.subcluster_similarity for each in found} == {0.98}
    assert Grid.over(0.2, 0.8, join=0.9).at(5).subcluster_similarity == 0.9


def test_a_good_neighbourhood_goes_before_one_lucky_place():
    grid = Grid.over(0.1, 0.9)
    scores = np.zeros(grid.shape)
    scores[5:8, 3:6] = 0.8
    scores[12, 9] = 0.9
    assert divmod(grid.best([scores.ravel()]), len(PULLS)) == (6, 4)
    assert grid.best([np.ones(scores.size)]) == 1


def test_the_lower_limit_of_t_p_is_tried_and_not_chosen():
    grid = Grid.over(0.1, 0.9)
    scores = np.zeros(grid.shape)
    scores[5:9, 0] = 0.9  # half of the neighbourhood is beyond the limit
    scores[6:10, 5:8] = 0.7
    assert divmod(grid.best([scores.ravel()]), len(PULLS))[1] == 6
    assert grid.at(grid.best([np.ones(scores.size)])).pair_similarity_max > 0.1 + 0.04 * 0.8


def test_the_range_goes_from_strangers_to_the_closest_of_one_label():
    X, who = labelled(1, identities=4)
    low, high = Examples.of(content_of(X), who).similarity_range()
    similarity = X @ X.T
    apart = who[:, np.newaxis] != who
    assert low == pytest.approx(max(np.median(similarity[apart]), 0.01), abs=1e-6)
    assert np.quantile(similarity[~apart], 0.5) < high <= 0.98
    assert Examples.of(content_of(X[:1]), who[:1]).similarity_range() == (0.01, 0.999)


def test_the_range_is_not_empty_in_a_narrow_cone():
    X, who = labelled(4, identities=4)
    low, high = Examples.of(content_of(unit(X + 4.0)), who).similarity_range()
    assert 0.97 < low < high - 0.1 * (1 - low) + 1e-9
    grid = Grid.over(0.998, 0.999)
    assert all(grid.at(place).pair_similarity_max <= 1 for place in range(187))


def test_scores_do_not_depend_on_the_engine_or_the_order():
    X, who = labelled(2)
    found = set()
    for engine in ENGINES:
        for seed in range(2):
            order = np.random.default_rng(seed).permutation(len(X))
            examples = Examples.of(content_of(X[order]), who[order])
            grid = Grid.over(*examples.similarity_range())
            scores = grid.scores(examples, choose(engine, 1).unions, agreement)
            found.add((scores.tobytes(), grid.best([scores])))
    assert len(found) == 1


def test_the_thresholds_found_fit_other_identities_of_the_same_kind():
    unite = choose("auto", 1).unions
    X, who = labelled(3, n=200, identities=25, d=48)
    ours = who < 12
    examples = Examples.of(content_of(X[ours]), who[ours])
    grid, shares = Grid.over(*examples.similarity_range()), []
    scores = grid.scores(examples, unite, agreement, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    others = Examples.of(content_of(X[~ours]), who[~ours])
    assert agreement(others, grouped(others, grid.at(grid.best([scores])), unite)) > 0.95
    assert agreement(others, grouped(others, grid.at(0), unite)) < 0.5
