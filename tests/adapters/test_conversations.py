"""Test the benchmark of who spoke when on voices made of random numbers."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import conversation_bed as bed
from benchmarks import conversation_methods as methods
from benchmarks import conversations as benchmark

from linkstream import Links
from linkstream.adapters.diarization import Diarizer
from linkstream.turn_model import TimeModel

EXPECTED = 0.15  # confusion that every method stays below on these easy voices


@pytest.fixture(scope="module")
def beds():
    return benchmark.Beds.of(bed.made_up_voices(), counts=(5, 2), seconds=60.0)


def quick(method):
    changes = {"trials": 16} if hasattr(method, "trials") else {}
    if hasattr(method, "percentiles"):
        changes["percentiles"] = method.percentiles[1:2]
    return replace(method, **changes)


def test_tuning_and_judged_conversations_share_no_window(beds):
    tuning = {row.tobytes() for room in beds.tuning for row in room.talk.X}
    assert not tuning & {row.tobytes() for room in beds.judged for row in room.talk.X}


def test_all_methods_are_judged_at_all_moments_they_have(beds, capsys):
    found, chosen = benchmark.compare(beds, [quick(method) for method in benchmark.METHODS])
    assert capsys.readouterr().out.count("current, timed") == len(benchmark.METHODS)
    for name, columns in found.items():
        assert columns["current, timed"].mean() < EXPECTED, name
        online = name in ("one centroid", "linkscluster", "links, paper", "links, healed")
        assert len(columns) == (len(benchmark.COLUMNS) if online else 2), name
    text = benchmark.body(found, chosen, beds)
    for method in benchmark.METHODS:
        assert text.count(f"| {method.name} |") == (1 if method.name == benchmark.REFERENCE else 2)
    for floor in benchmark.FLOORS:
        assert f"| {floor} |" in text


def test_an_interval_is_that_of_the_mean():
    mean, half = benchmark.interval(np.array([0.01, 0.03] * 50))
    assert mean == pytest.approx(2.0)
    assert half == pytest.approx(0.196, rel=0.01)


def test_the_time_model_of_the_benchmark_is_that_of_the_diarizer(beds):
    room, thresholds = beds.judged[0], (0.4, 0.6, 0.6)
    diarizer = Diarizer(Links(*thresholds, mode="best", threads=1), delay=1.0)
    for span, x in zip(room.talk.spans.tolist(), room.X, strict=True):
        diarizer.add(*span, x)
    diarizer.finish()
    assert not diarizer.links.space.mean
    healed = methods.Clusters("", "", "best")
    parameters = {"similarity": 0.4, "join": (1 - 0.6) / 0.6, "pull": (0.6 - 0.16) / 0.84}
    assert methods.thresholds_of(parameters) == thresholds
    found = healed.run(room.X, parameters)
    assert diarizer._final == methods.delayed(room, found, 1.0, TimeModel()).tolist()
    assert np.array_equal(diarizer._current_ids(), methods.again(room, found.final, TimeModel()))


def test_labels_that_change_are_followed(beds):
    room = beds.judged[0]
    found = methods.Clusters("", "", "best").run(
        room.X, {"similarity": 0.4, "join": 0.7, "pull": 0.5}
    )
    followed = found.instant.copy()
    for changes in found.changes:
        for place, label in changes.items():
            followed[place] = label
    assert np.array_equal(followed, found.final)


def test_the_command_writes_its_page_and_needs_turns_in_the_folder(tmp_path, monkeypatch, capsys):
    few = (benchmark.METHODS[0], replace(benchmark.METHODS[3], trials=12))
    page = tmp_path / "page.md"
    page.write_text("<!-- conversations -->\nstale text\n<!-- /conversations -->\n")
    for name, value in {"METHODS": few, "TUNING": 3, "PAGE": page}.items():
        monkeypatch.setattr(benchmark, name, value)
    monkeypatch.setattr(benchmark, "load_voices", lambda folder: bed.made_up_voices())
    assert benchmark.main([str(tmp_path), "--count", "2", "--docs"]) == 0
    assert "stale text" not in page.read_text()
    assert "| one centroid |" in page.read_text()
    with pytest.raises(SystemExit):
        benchmark.main([str(tmp_path), "--turns", str(tmp_path)])
    assert "2 to 8 speakers" in capsys.readouterr().err
