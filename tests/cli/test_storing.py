"""`linkstream cluster --store`: each row is added exactly once."""

from __future__ import annotations

import json
import signal
import time

import numpy as np
import pytest

from cli.command import begin, json_lines, refused, run, run_on_a_terminal
from linkstream import Links, Thresholds
from linkstream.data import voice_halves
from linkstream.store import Store

THREE = (0.766, 0.645, 0.738)
OPTIONS = (
    *("--cluster-similarity", THREE[0]),
    *("--subcluster-similarity", THREE[1]),
    *("--pair-similarity-max", THREE[2]),
)


@pytest.fixture(scope="module")
def voices():
    """Return 3,204 vectors, which are several blocks."""
    X = voice_halves()[1].X
    noise = np.random.default_rng(0).standard_normal((4, *X.shape)) * 0.02
    return (X + noise).reshape(-1, X.shape[1]).astype(np.float32)


def cluster(folder, source, *options):
    done = run("cluster", source, "--store", "new.links", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--output" not in options else done, done.stderr


def labels_of(folder):
    with Store.open(folder / "new.links", read_only=True) as store:
        return store.labels()


def test_a_new_store_equals_a_clusterer_of_the_same_rows(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices)
    record, _ = cluster(tmp_path, "voices.npy", *OPTIONS)
    links = Links(*THREE)
    links.add_many(voices)
    assert (record["rows"], record["taken"], record["there_before"]) == (3204, 3204, 0)
    assert record["clusters"] == links.n_clusters
    np.testing.assert_array_equal(labels_of(tmp_path), links.labels())


def test_the_same_rows_are_added_once_in_any_file_format(tmp_path, voices):
    np.save(tmp_path / "one.npy", voices)
    np.savez(tmp_path / "other.npz", X=voices)
    cluster(tmp_path, "one.npy", *OPTIONS)
    for source in ("one.npy", "other.npz"):
        record, words = cluster(tmp_path, source)
        assert (record["taken"], record["there_before"], words) == (0, 3204, "")
    assert len(labels_of(tmp_path)) == 3204


def test_rows_under_another_source_name_are_added_again(tmp_path, voices):
    np.save(tmp_path / "one.npy", voices[:50])
    cluster(tmp_path, "one.npy", *OPTIONS)
    record, _ = cluster(tmp_path, "one.npy", "--source", "second reel")
    assert (record["taken"], record["vectors"]) == (50, 100)


def test_only_the_new_rows_of_a_grown_file_are_added(tmp_path, voices):
    for rows in (30, 1030, 1031, 3204):
        np.save(tmp_path / "voices.npy", voices[:rows])
        record, words = cluster(tmp_path, "voices.npy", *OPTIONS)
        assert record["vectors"] == rows
    assert words == "voices.npy: resuming at row 1,031\n"
    links = Links(*THREE)
    links.add_many(voices)
    np.testing.assert_array_equal(labels_of(tmp_path), links.labels())


def test_a_changed_file_resumes_after_its_last_unchanged_block(tmp_path, voices):
    np.save(tmp_path / "one.npy", voices)
    cluster(tmp_path, "one.npy", *OPTIONS)
    changed = voices.copy()
    changed[1500, 0] += 0.1
    np.save(tmp_path / "one.npy", changed)
    record, words = cluster(tmp_path, "one.npy")
    assert record["there_before"] == 1024
    assert "resuming at row 1,024" in words


def begun(folder, voices, rows):
    """Return a command that has added some rows of a stream and waits for more."""
    words = ("cluster", "-", "--dimension", 256, "--store", "new.links", *OPTIONS)
    process = begin(*words, cwd=folder, stdin=-1, text=False)
    process.stdin.write(voices[:rows].tobytes())
    process.stdin.flush()
    while not (folder / "new.links").exists() or len(labels_of(folder)) < 1024:
        time.sleep(0.01)
    return process


def test_a_killed_command_loses_and_repeats_no_row(tmp_path, voices):
    process = begun(tmp_path, voices, 1500)
    process.kill()
    process.communicate()
    there = len(labels_of(tmp_path))
    np.save(tmp_path / "voices.npy", voices)
    record, words = cluster(tmp_path, "voices.npy", *OPTIONS)
    assert (record["vectors"], record["rows"], record["there_before"]) == (3204, 3204, there)
    assert words == f"voices.npy: resuming at row {there:,}\n"
    links = Links(*THREE)
    links.add_many(voices)
    np.testing.assert_array_equal(labels_of(tmp_path), links.labels())


def test_ctrl_c_stops_between_two_batches_and_says_how_to_continue(tmp_path, voices):
    process = begun(tmp_path, voices, 1500)
    process.send_signal(signal.SIGINT)
    process.stdin.write(voices[1500:1600].tobytes())
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.startswith(b"Interrupted. Kept: 1,")
    assert b"the same command goes on" in err
    assert err.count(b"\n") == 1
    done = run(
        *("cluster", "-", "--dimension", 256, "--store", "new.links"),
        cwd=tmp_path,
        stdin=voices.tobytes(),
    )
    record = json.loads(done.stdout)
    assert record["there_before"] >= 1024
    assert record["vectors"] == 3204


def test_the_output_has_the_ids_at_arrival_also_of_earlier_rows(tmp_path, voices):
    expected = Links(*THREE).add_many(voices)
    np.save(tmp_path / "voices.npy", voices[:2000])
    cluster(tmp_path, "voices.npy", *OPTIONS)
    np.save(tmp_path / "voices.npy", voices)
    cluster(tmp_path, "voices.npy", "--output", "ids.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "ids.npy", allow_pickle=False), expected)
    done, _ = cluster(tmp_path, "voices.npy", "--output", "-")
    lines = json_lines(done.stdout)
    assert [line["row"] for line in lines] == [line["vector"] for line in lines]
    assert [line["cluster"] for line in lines] == expected.tolist()


def test_rows_of_a_live_source_are_always_added(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices[:20])
    for n in (20, 40):
        record, _ = cluster(tmp_path, "voices.npy", "--live", *OPTIONS)
        assert (record["taken"], record["vectors"]) == (20, n)


def test_payloads_are_stored_with_the_vectors(folder):
    with Store.open(folder / "people.links", read_only=True) as store:
        assert store.payloads([7])[0] == {"text": "window 7", "file": "five.wav"}


def test_a_bad_row_is_named_and_earlier_batches_are_kept(tmp_path, voices):
    bad = voices.copy()
    bad[2100] = np.nan
    np.save(tmp_path / "voices.npy", bad)
    done = run("cluster", "voices.npy", "--store", "new.links", *OPTIONS, cwd=tmp_path)
    told = refused(done, code=6)
    assert "voices.npy, row 2100 is not finite" in told
    assert "Kept: 2,048 new rows are in new.links; the same command goes on after them.\n" in told
    assert len(labels_of(tmp_path)) == 2048
    np.save(tmp_path / "voices.npy", voices)
    record, words = cluster(tmp_path, "voices.npy")
    assert (record["vectors"], words) == (3204, "voices.npy: resuming at row 2,048\n")


def test_rows_of_another_dimension_are_refused(folder):
    np.save(folder / "other.npy", np.eye(8, dtype=np.float32))
    done = run("cluster", "other.npy", "--store", "people.links", cwd=folder)
    assert "other.npy, row 0" in refused(done)


def test_a_new_store_needs_thresholds(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices[:5])
    refused(run("cluster", "voices.npy", "--store", "new.links", cwd=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["voices.npy"]


def test_thresholds_that_differ_from_the_store_are_refused(folder):
    done = run("cluster", "voices.npy", "--store", "people.links", *OPTIONS, cwd=folder)
    assert "thresholds" in refused(done)


@pytest.mark.parametrize(
    "options", [("--store", "x.links", "--save", "y"), ("--payload", "text"), ("--store", "no/x")]
)
def test_options_that_exclude_each_other_are_refused(folder, options):
    refused(run("cluster", "voices.jsonl", *options, *OPTIONS, cwd=folder))


def test_a_terminal_shows_a_progress_bar_with_rate_and_a_summary(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices)
    words = ("cluster", "voices.npy", "--store", "new.links", *OPTIONS)
    code, shown = run_on_a_terminal(*words, cwd=tmp_path)
    assert code == 0
    for expected in ("3,204/3,204", "/s", "3,204 rows, 3,204 of them new"):
        assert expected in shown


def test_memory_does_not_grow_with_the_length_of_a_stream(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((20, 64)).astype(np.float32)
    process = begin(
        *("cluster", "-", "--dimension", 64, "--output", "ids.npy", *OPTIONS),
        cwd=tmp_path,
        stdin=-1,
        text=False,
    )
    peaks = []
    for _ in range(2):
        for _ in range(60):
            X = centres[rng.integers(0, 20, 1024)] + 0.05 * rng.standard_normal((1024, 64))
            process.stdin.write(X.astype("<f4").tobytes())
        process.stdin.flush()
        peaks.append(peak_of(process.pid))
    process.communicate(timeout=60)
    assert len(np.load(tmp_path / "ids.npy", allow_pickle=False)) == 2 * 60 * 1024
    assert peaks[1] - peaks[0] < 4096  # KiB; the rows alone are 15 MiB


def peak_of(process):
    with open(f"/proc/{process}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_equal_thresholds_can_be_given_again(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices[:10])
    cluster(tmp_path, "voices.npy", *OPTIONS)
    cluster(tmp_path, "voices.npy", *OPTIONS)
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        assert store.thresholds == Thresholds(*THREE)


def test_a_store_can_be_made_without_tracking_vectors(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices)
    options = ("--no-track", "--max-subclusters", 5, "--max-idle", 500)
    record, _ = cluster(tmp_path, "voices.npy", *OPTIONS, *options)
    assert record["subclusters"] <= 5
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        assert not store.track_vectors
    record, _ = cluster(tmp_path, "voices.npy")
    assert (record["taken"], record["there_before"]) == (0, 3204)
    for words in (("inspect", "new.links"), ("inspect", "new.links", "--cluster", 0)):
        assert run(*words, cwd=tmp_path).returncode == 0
    assert "--no-track" in refused(run("undo", "new.links", cwd=tmp_path))
    assert run("plot", "new.links", cwd=tmp_path).returncode == 0


def test_a_progress_bar_is_shown_for_an_unknown_number_of_rows(folder):
    words = ("cluster", "voices.jsonl", *OPTIONS)
    code, shown = run_on_a_terminal(*words, cwd=folder)
    assert code == 0
    assert "clustering" in shown
    assert "300 vectors" in shown
