"""Test the benchmark of diarization on an easy recording, and its page."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import diarization as benchmark
from benchmarks.protocol import MOMENTS


def recording(seed=0, n=200):
    """Return four well separated speakers in turns of at least five windows."""
    rng = np.random.default_rng(seed)
    y = np.repeat(rng.permuted(np.arange(n // 5) % 4), 5)
    X = np.eye(8, dtype=np.float32)[y] + 0.1 * rng.normal(size=(n, 8)).astype(np.float32)
    t = 0.4 * np.arange(n)
    return benchmark.Recording(X, y, np.column_stack([t, t + 1.6]))


def test_the_truth_has_no_error_and_one_label_for_all_has_that_of_the_others():
    heard = recording()
    assert heard.error_rate(heard.y + 7) == 0
    assert heard.n_speakers(heard.y) == 4
    assert heard.error_rate(np.zeros(200, dtype=int)) == pytest.approx(0.75, abs=0.02)


def test_the_halves_of_four_speakers_are_all_six_and_of_more_two_opposites():
    pairs = benchmark.halves(np.arange(4))
    assert len({tuple(pair) for pair in pairs}) == 6
    one, other = benchmark.halves(np.arange(10))
    assert sorted([*one, *other]) == list(range(10))


def test_a_method_is_never_judged_as_unseen_on_speakers_that_it_was_tuned_on():
    class Spy:
        name, seen = "spy", None

        def tune(self, X, y):
            self.seen = X.argmax(axis=1)
            return {}

        def run(self, X, parameters):
            judged.append((set(self.seen), set(X.argmax(axis=1))))
            return {"settled": X.argmax(axis=1)}

    judged = []
    figures = benchmark.judge(Spy(), recording())
    assert figures["settled"]["unseen"] == [0] * 6
    assert sum(not tuned & scored for tuned, scored in judged) == 6


@pytest.mark.parametrize("method", benchmark.METHODS, ids=lambda method: method.name)
def test_every_method_tells_well_separated_speakers_apart(method):
    if hasattr(method, "trials"):
        method = replace(method, trials=16)
    heard = recording()
    parameters = method.tune(heard.X, heard.y)
    answer = method.run(heard.X, parameters)
    moments = [moment for moment in MOMENTS if moment in answer]
    assert moments
    for moment in moments:
        assert heard.error_rate(answer[moment]) < 0.1, moment


def test_the_page_shows_every_method_and_the_command_that_made_the_table():
    text = benchmark.PAGE.read_text("utf-8")
    table = text[text.index("<!-- der -->") : text.index("<!-- /der -->")]
    assert "python -m benchmarks.diarization FOLDER --docs" in table
    for method in benchmark.METHODS:
        assert table.count(f"| {method.name} |") >= 2
