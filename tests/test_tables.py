"""The benchmarks of presets and calibration: their samples and tables."""

from __future__ import annotations

import numpy as np
from benchmarks.calibration import PAIRS, cell, pairs, table
from benchmarks.presets import ENCODERS, together
from benchmarks.protocol import Half

from linkstream.presets import presets


def half(n, identities, seed=0):
    rng = np.random.default_rng(seed)
    return Half(rng.standard_normal((n, 4)).astype(np.float32), rng.integers(identities, size=n))


def test_pairs_are_of_one_identity_or_of_two_and_drawn_once():
    labelled = half(200, 5)
    drawn = pairs(labelled, seed=1)
    for name, alike in (("same", True), ("different", False)):
        first, second = drawn[name].T
        assert len({*zip(first.tolist(), second.tolist(), strict=True)}) == PAIRS
        assert np.all((labelled.y[first] == labelled.y[second]) == alike)


def test_combined_streams_keep_their_order_and_separate_identities():
    one, other = half(30, 3), half(90, 4, seed=1)
    both = together([one, other])
    assert len(both.y) == 120
    assert len(np.unique(both.y)) == 7
    places = [np.flatnonzero((row == both.X).all(axis=1))[0] for row in one.X]
    assert places == sorted(places)
    assert max(places) > 100


def test_undecided_calibrations_are_marked_and_excluded_from_the_mean():
    nan = float("nan")
    assert cell([nan]) == "cannot decide"
    assert cell([0.5, nan, 0.7]) == "0.600 (1 undecided)"
    shown = table({"a": ([0.8, 0.6], nan), "b": ([0.9, 0.9], 0.5)})
    assert "| a | 0.700 | cannot decide |" in shown
    assert "0.800 (2 sets) | 0.500 (1 sets) |" in shown


def test_every_encoder_of_the_benchmark_has_a_shipped_preset():
    shipped = presets()
    assert [encoder.name for encoder in ENCODERS] == list(shipped)
    for encoder in ENCODERS:
        assert shipped[encoder.name].made_from == encoder.sets
        assert shipped[encoder.name].heal == encoder.options["heal"]
