"""The linear map between two encoders."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from linkstream.engine.fixed_point import quantise
from linkstream.identity import translation

Fixed = npt.NDArray[np.int32]


def pairs(n: int, d: int, m: int, noise: float = 0.0) -> tuple[Fixed, Fixed]:
    rng = np.random.default_rng(n + d)
    rows = rng.standard_normal((n, d))
    turned = np.linalg.qr(rng.standard_normal((max(d, m),) * 2))[0][:d, :m]
    images = rows @ turned + noise * rng.standard_normal((n, m))
    return quantise(rows)[0], quantise(images)[0]


def test_a_rotation_is_found():
    ones, others = pairs(300, 24, 40)
    found = translation.fitted([(ones[:200], others[:200])], 200)
    assert found.cosine > 0.9999
    images = found.map(ones[200:])
    assert np.allclose(images, others[200:] / 2.0**30, atol=1e-3)
    assert np.allclose(np.linalg.norm(images, axis=1), 1.0, atol=1e-6)


def test_the_map_solves_the_equations_of_least_squares():
    ones, others = pairs(500, 16, 12, noise=0.5)
    moments = translation._Moments.of(16, 12)
    moments.add(translation._coordinates(ones), translation._coordinates(others))
    found = moments.fitted(1e-2).weights
    X, Y = ones / 2.0**30, others / 2.0**30
    squares = X.T @ X
    wanted = np.linalg.solve(squares + 1e-2 * np.trace(squares) / 16 * np.eye(16), X.T @ Y)
    assert np.allclose(found / np.abs(found).max(), wanted / np.abs(wanted).max(), atol=1e-5)


def test_sums_of_products_are_exact_in_any_order():
    ones, others = pairs(4096, 8, 8)
    left, right = translation._coordinates(ones), translation._coordinates(others)
    moments = translation._Moments.of(8, 8)
    moments.add(left, right)
    exact = left.astype(np.int64).T @ right.astype(np.int64)
    assert np.array_equal(moments.products, exact)
    order = np.random.default_rng(0).permutation(4096)
    again = translation._Moments.of(8, 8)
    again.add(left[order], right[order])
    assert np.array_equal(again.products, moments.products)


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_blocks_do_not_change_the_map(cut):
    ones, others = pairs(237, 10, 14, noise=0.3)
    whole = translation.fitted([(ones, others)], 237)
    blocks = [(ones[i : i + cut], others[i : i + cut]) for i in range(0, 237, cut)]
    parts = translation.fitted(blocks, 237)
    assert np.array_equal(whole.map.weights, parts.map.weights)
    assert np.array_equal(whole.held_out, parts.held_out)
    assert whole.cosine == parts.cosine


def test_images_are_products_of_whole_numbers():
    ones, others = pairs(100, 33, 5, noise=0.2)
    weights = translation.fitted([(ones, others)], 100).map.weights
    coordinates = translation._coordinates(ones)
    assert np.array_equal(weights, np.rint(weights))
    greatest = np.abs(coordinates).max() * np.abs(weights).max() * 33
    assert greatest < 2.0**53
    exact = coordinates.astype(np.int64) @ weights.astype(np.int64)
    assert np.array_equal(exact, coordinates @ weights)


def test_the_map_commutes_with_sums():
    ones, others = pairs(200, 12, 20, noise=0.1)
    weights = translation.fitted([(ones, others)], 200).map.weights
    whole = ones.astype(np.int64).sum(axis=0)
    assert np.allclose(whole @ weights, (ones @ weights).sum(axis=0), rtol=1e-9)


def test_held_out_pairs_show_what_noise_costs():
    clean, noisy = (translation.fitted([pairs(400, 20, 20, noise)], 400) for noise in (0.0, 0.5))
    assert clean.cosine > 0.999
    assert 0.8 < noisy.cosine < 0.95
    few = translation.fitted([pairs(12, 64, 64)], 12)
    assert few.cosine < 0.6


@pytest.mark.parametrize("other", [24, 40])
def test_directions_that_no_pair_has_keep_their_similarities(other):
    ones, others = pairs(300, 24, other)
    known = ones.copy()
    known[:, 12:] = 0
    rotation = translation.fitted([(ones, others)], 300).map
    some = quantise(known.astype(np.float32))[0]
    found = translation.fitted([(some, quantise(rotation(some))[0])], 300).map
    rng = np.random.default_rng(5)
    strangers = np.zeros((50, 24), dtype=np.float32)
    strangers[:, 12:] = rng.standard_normal((50, 12))
    fixed = quantise(strangers)[0]
    units, images = fixed / 2.0**30, found(fixed).astype(np.float64)
    assert np.abs(images @ images.T - units @ units.T).max() < 0.02
