"""Test the time model: best paths, delays, re-estimation."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from linkstream.errors import ArgumentError
from linkstream.turn_model import LiveLabels, TimeModel, chain, fixed_point, reestimate, whole
from linkstream.turn_model.speakers import Window
from linkstream.turn_model.whole import Windows

MODEL = TimeModel()


def speech(pattern, *, noise=0.0, seed=0, dimension=16):
    """Return windows of 0.4 s of new speech, one for each letter, which is its speaker."""
    rng = np.random.default_rng(seed)
    letters = sorted(set(pattern))
    voices = np.eye(dimension)[[letters.index(letter) for letter in pattern]]
    rows = fixed_point(voices + noise * rng.normal(size=voices.shape))
    n = len(pattern)
    return Windows(rows, np.full(n, 400.0), np.full(n, 0.4))


def labels(pattern):
    return np.array([sorted(set(pattern)).index(letter) for letter in pattern])


def one_by_one(windows, given, *, delay, model=MODEL):
    """Return final labels, and how many were final after each window."""
    live, final, counts = LiveLabels(model, delay, windows.at), [], []
    for place, label in enumerate(given):
        window = window_of(windows, place)
        live.move(window, None, int(label))
        live.add(window)
        final += live.settled()
        counts.append(len(final))
    return final + live.settled(ended=True), counts


def window_of(windows, place):
    speech_time, end = int(windows.milliseconds[place]), 1.6 + 0.4 * place
    return Window(place, windows.rows[place], speech_time, 0.4, end)


# Paths


def path_score(path, scores, stay, change):
    total = scores[0, path[0]]
    for place in range(1, len(path)):
        step = stay[place] if path[place] == path[place - 1] else change[place]
        total += max(step, change[place]) + scores[place, path[place]]
    return total


@pytest.mark.parametrize("seed", range(20))
def test_the_path_is_the_best_of_all_paths(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-9, 9, size=(6, 3)).astype(float)
    stay, change = (
        -rng.integers(0, 3, size=6).astype(float),
        -rng.integers(3, 9, size=6).astype(float),
    )
    total = chain.forward(scores, stay, change, None) + chain.backward(scores, stay, change)
    found = path_score(total.argmax(axis=1), scores, stay, change)
    every = [path_score(path, scores, stay, change) for path in product(range(3), repeat=6)]
    reached = total.max(axis=1)
    alone = (total == reached[:, None]).sum(axis=1) == 1
    assert found == max(every) or not alone.all()
    best = [
        path
        for path, score in zip(product(range(3), repeat=6), every, strict=True)
        if score == max(every)
    ]
    for place in range(6):
        assert set(np.flatnonzero(total[place] == reached[place])) == {path[place] for path in best}


def test_blocks_give_the_path_of_the_whole():
    rng = np.random.default_rng(3)
    pattern = "".join(rng.choice(list("abcd")) * int(rng.integers(2, 30)) for _ in range(150))
    windows = speech(pattern, noise=0.25)
    scores = whole._scores(windows, labels(pattern), 4, MODEL)
    stay, change = MODEL.costs(windows.gaps, 4)
    total = chain.forward(scores, stay, change, None) + chain.backward(scores, stay, change)
    assert len(pattern) > 3 * whole._BLOCK
    assert np.array_equal(whole._path(windows, scores, MODEL), total.argmax(axis=1))


def test_of_equal_speakers_the_lower_number_wins():
    windows = speech("aaaa")
    scores = np.zeros((4, 3))
    assert whole._path(windows, scores, MODEL).tolist() == [0, 0, 0, 0]


def test_scores_do_not_depend_on_the_order_of_coordinates():
    windows = speech("aabbab", noise=0.3)
    order = np.random.default_rng(1).permutation(16)
    turned = Windows(windows.rows[:, order], windows.milliseconds, windows.gaps)
    given = labels("aabbab")
    for one in (windows, turned):
        scores = whole._scores(one, given, 2, MODEL)
        assert np.array_equal(scores, whole._scores(windows, given, 2, MODEL))
        assert np.array_equal(scores, np.rint(scores))


def test_the_score_is_the_formula_of_the_module():
    windows, given = speech("aaab", noise=0.3), labels("aaab")
    z, w = windows.rows / chain.SCALE, 0.4
    centres = np.array([w * z[:3].sum(axis=0) / (3 * w + 1), w * z[3] / (w + 1)])
    wanted = 100 * w * (z @ centres.T - (centres**2).sum(axis=1) / 2)
    seen = whole._scores(windows, given, 2, MODEL) / MODEL.grid
    assert np.allclose(seen, wanted, atol=0.05)


def test_costs_are_those_of_the_formula():
    stay, change = MODEL.cost(0.4, 3)
    assert stay / MODEL.grid == pytest.approx(-0.1, abs=1e-4)
    assert change / MODEL.grid == pytest.approx(np.log((1 - np.exp(-0.1)) / 2), abs=1e-4)


@pytest.mark.parametrize("bad", [{"hold": 0}, {"sharpness": "x"}, {"prior": np.nan}, {"least": -1}])
def test_a_parameter_out_of_range_is_refused(bad):
    with pytest.raises(ArgumentError):
        TimeModel(**bad)


# With a delay


def test_a_wrong_label_in_the_middle_of_a_turn_is_put_right():
    windows = speech("aaaaaaaaaaabbbbbbbbbb", noise=0.25)
    given = labels("aaaaaaaaaaabbbbbbbbbb")
    given[[5, 15]] = 1, 0
    final, _ = one_by_one(windows, given, delay=2.0)
    assert final[5:] == labels("aaaaaaaaaaabbbbbbbbbb")[5:].tolist()


@pytest.mark.parametrize(("delay", "behind"), [(0.0, 0), (0.4, 1), (1.0, 3), (2.0, 5)])
def test_a_window_is_final_after_the_delay_and_not_before(delay, behind):
    pattern = "aaaabbbbaaaabbbb"
    final, counts = one_by_one(speech(pattern, noise=0.2), labels(pattern), delay=delay)
    assert counts == [max(place + 1 - behind, 0) for place in range(len(pattern))]
    assert len(final) == len(pattern)


def test_final_labels_are_those_of_the_best_path_if_the_delay_is_the_whole_recording():
    pattern = "aaaabbbbccccaaaabbbb"
    windows = speech(pattern, noise=0.3)
    final, _ = one_by_one(windows, labels(pattern), delay=60.0)
    scores = whole._scores(windows, labels(pattern), 3, MODEL)
    assert final == whole._path(windows, scores, MODEL).tolist()


def test_a_final_label_binds_the_path_after_it():
    """The best path after a final window starts from the scores of that window."""
    pattern = "aaaabbbb"
    windows = speech(pattern, noise=0.2)
    early, _ = one_by_one(windows, labels(pattern), delay=0.0)
    assert early == labels(pattern).tolist()


def test_a_speaker_without_windows_is_no_longer_chosen():
    windows = speech("aaaaaa", noise=0.2)
    live = LiveLabels(MODEL, 0.4, windows.at)
    for place in range(6):
        window = window_of(windows, place)
        live.move(window, None, 7 if place < 3 else 9)
        live.add(window)
        live.settled()
        if place == 4:
            for earlier in range(3):
                live.move(window_of(windows, earlier), 7, 9)
    assert live.open_labels() == [9]


def test_open_labels_are_those_that_would_become_final():
    windows = speech("aaabbb", noise=0.2)
    live = LiveLabels(MODEL, 10.0, windows.at)
    for place, label in enumerate(labels("aaabbb").tolist()):
        live.move(window_of(windows, place), None, label)
        live.add(window_of(windows, place))
    assert live.n_open == 6
    told = live.open_labels()
    assert live.settled(ended=True) == told
    assert live.settled(ended=True) == live.open_labels() == []


# Afterwards


def test_names_of_speakers_do_not_matter():
    pattern = "aaaabbbbccccbbbbaaaa" * 3
    windows, given = speech(pattern, noise=0.35), labels(pattern)
    plain = reestimate(windows, given)
    for order in permutations([4, 9, 30]):
        assert np.array_equal(reestimate(windows, np.array(order)[given]), np.array(order)[plain])


def test_reestimation_repairs_labels_that_know_nothing_of_time():
    rng = np.random.default_rng(0)
    pattern = ("a" * 12 + "b" * 9 + "c" * 14) * 4
    windows, truth = speech(pattern, noise=0.3), labels(pattern)
    given = np.where(rng.random(len(truth)) < 0.2, rng.integers(0, 3, len(truth)), truth)
    assert (given != truth).mean() > 0.1
    assert (reestimate(windows, given) != truth).mean() < 0.02


def test_a_speaker_with_too_little_evidence_is_removed_unless_it_is_known():
    pattern = ("a" * 20 + "b" * 20) * 2
    windows, given = speech(pattern, noise=0.2), labels(pattern)
    given[8:10] = 5
    assert set(reestimate(windows, given).tolist()) == {0, 1}
    lasting = replace(MODEL, least=0.0, sharpness=200.0)
    assert set(reestimate(windows, given, lasting).tolist()) <= {0, 1, 5}


def test_windows_between_two_speakers_are_no_speaker_of_their_own():
    pattern = ("a" * 20 + "b" * 20) * 4
    windows, truth = speech(pattern, noise=0.25), labels(pattern)
    rows, given = windows.rows.copy(), truth.copy()
    for change in range(20, len(pattern), 20):
        rows[change : change + 2] = fixed_point(
            windows.rows[[change - 3]] + windows.rows[[change + 5]]
        )
        given[change : change + 2] = 2
    mixed = Windows(rows, windows.milliseconds, windows.gaps)
    assert set(reestimate(mixed, given).tolist()) == {0, 1}


def test_a_known_speaker_stays():
    pattern = "a" * 20 + "b" + "a" * 20
    windows = speech(pattern, noise=0.1)
    assert 1 not in reestimate(windows, labels(pattern))
    assert len(set(reestimate(windows, labels(pattern), known=[1]).tolist())) == 2


def test_one_window_and_one_speaker_need_no_model():
    assert reestimate(speech("a"), [3]).tolist() == [3]
    assert reestimate(speech("aaaa"), [3] * 4).tolist() == [3] * 4


def test_rows_are_whole_numbers_of_unit_length():
    rows = fixed_point(np.random.default_rng(0).normal(size=(50, 32)))
    assert np.array_equal(rows, np.rint(rows))
    assert np.allclose(np.linalg.norm(rows, axis=1), chain.SCALE, atol=4)
    assert not fixed_point(np.zeros((1, 4))).any()


def test_a_recording_whose_vectors_were_all_removed_has_no_speakers():
    windows = speech("aa")
    live = LiveLabels(MODEL, 1.0, windows.at)
    for place in range(2):
        live.move(window_of(windows, place), None, 0)
        live.add(window_of(windows, place))
    for place in range(2):
        live.move(window_of(windows, place), 0, None)
    assert live.open_labels() == [-1, -1]
    assert live.settled(ended=True) == [-1, -1]
