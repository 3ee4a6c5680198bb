"""The benchmarks of presets and calibration: their samples and tables."""

from __future__ import annotations

import numpy as np
from benchmarks.calibration import PAIRS, cell, pairs, table
from benchmarks.preset_points import point_of, together
from benchmarks.preset_tables import POINTS, left_out_table
from benchmarks.presets import ENCODERS, automatic, places
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
    assert [encoder.name for encoder in ENCODERS] == [
        each for each in shipped if each not in POINTS
    ]
    for encoder in ENCODERS:
        chosen = shipped[encoder.name]
        assert chosen.made_from == encoder.sets
        assert list(chosen.levels) == [rule.name for rule in encoder.levels]
        assert (chosen.line.coarse, chosen.line.fine) == encoder.ends


def peak(at):
    """Return accuracies that are best at one of the eleven places."""
    return 1 - np.abs(np.arange(11) / 10 - at)


def test_a_level_is_placed_by_the_sets_of_its_task_and_others_lie_between():
    text = next(encoder for encoder in ENCODERS if encoder.name == "minilm")
    table = {"text_clinc150": peak(0.5), "text_hwu64": peak(0.5), "text_pricerunner": peak(0.0)}
    found = places(text, table)
    assert list(found) == ["topics", "stories", "intents", "duplicates", "items"]
    assert list(found.values()) == [0.1, 0.3, 0.5, 0.7, 1.0]


def test_the_automatic_level_uses_no_labels():
    def runs(accuracy):
        return [
            {"instant": right, "current": right, "separation": float(apart)}
            for right, apart in zip(accuracy, peak(0.7), strict=True)
        ]

    assert automatic(runs(peak(0.1).tolist())) == automatic(runs(peak(0.9).tolist())) == 7


def test_every_set_of_a_preset_has_a_point_to_compare_with():
    for encoder in ENCODERS:
        for name in encoder.sets:
            point = point_of(name)[1]
            others = [each for each in point.sets if each != name]
            assert others or len(encoder.sets) == 1, name


def test_the_table_of_sets_left_out_ends_with_the_means():
    columns = ("point", "default", "automatic", "named", "best", "linkscluster")
    rows = {
        "text_a": {column: [0.2, 0.4, 0.9] for column in columns},
        "text_b": {column: [0.4, 0.8, 0.7] for column in columns},
    }
    shown = left_out_table(rows).splitlines()
    assert shown[2].startswith("| text a | 0.200 / 0.400 |")
    assert shown[2].endswith("| 0.900 |")
    assert shown[-1] == "| **mean of 2** |" + " 0.300 / 0.600 |" * len(columns) + " 0.800 |"
