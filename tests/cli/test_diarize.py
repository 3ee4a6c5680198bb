"""`linkstream diarize`: turns from embeddings with times."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.command import refused, run, said, shown
from linkstream import Links
from linkstream.adapters.diarization import Diarizer, load_rttm
from linkstream.data import voice_halves
from linkstream.store import Store

PRESET = ("--preset", "ge2e-windows")
N = 150


@pytest.fixture
def voices(tmp_path):
    """Return a folder with the same windows as arrays and as JSON lines."""
    stream = voice_halves()[1]
    X, t = stream.X[:N], np.round(stream.t[:N], 3)
    np.savez(tmp_path / "voices.npz", X=X, t=t, both=np.column_stack([t, t + 1.6]))
    with (tmp_path / "voices.jsonl").open("w") as lines:
        for start, x in zip(t.tolist(), X.tolist(), strict=True):
            lines.write(json.dumps({"embedding": x, "start": start, "end": start + 1.6}) + "\n")
    columns = {"embedding": X.tolist(), "start": t, "end": t + 1.6}
    pq.write_table(pa.table(columns), tmp_path / "voices.parquet")
    return tmp_path


def expected(delay=1.0):
    stream = voice_halves()[1]
    diarizer = Diarizer(Links.preset("ge2e-windows"), gap=0.5, delay=delay)
    final = []
    for start, x in zip(np.round(stream.t[:N], 3).tolist(), stream.X, strict=False):
        final += diarizer.add(start, start + 1.6, x)
    return diarizer, final + diarizer.finish()


def record(turn):
    times = {"start": round(turn.start, 3), "end": round(turn.end, 3)}
    return {**times, "speaker": turn.speaker, "cluster": turn.cluster}


def lines_of(done):
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        ("voices.npz", "--length", 1.6),
        ("voices.npz", "--times", "both"),
        ("voices.jsonl",),
        ("voices.jsonl", "--length", 1.6),
        ("voices.parquet",),
    ],
)
def test_turns_are_those_of_the_diarizer(voices, words):
    seen = lines_of(run("diarize", *words, *PRESET, cwd=voices))
    assert seen == [record(turn) for turn in expected()[0].current()]


def test_segments_are_written_when_they_are_final(voices):
    words = ("voices.jsonl", *PRESET, "--live", "--delay", 2)
    assert lines_of(run("diarize", *words, cwd=voices)) == [record(t) for t in expected(2.0)[1]]


def test_files_hold_the_turns(voices):
    outputs = ("--output", "a.rttm", "--picture", "a.png", "--uri", "monday talk")
    shown("diarize", "voices.jsonl", *PRESET, *outputs, cwd=voices)
    turns = expected()[0].current()
    (read,) = load_rttm(voices / "a.rttm").values()
    assert [turn.speaker for turn in read] == [turn.speaker for turn in turns]
    assert (voices / "a.png").stat().st_size > 5000
    run("diarize", "voices.jsonl", *PRESET, "--output", "a.json", cwd=voices)
    told = json.loads((voices / "a.json").read_text())
    assert told == {"uri": "stream", "turns": [record(turn) for turn in turns]}


def test_a_terminal_gets_a_table_of_speakers(voices):
    text = shown("diarize", "voices.jsonl", *PRESET, cwd=voices)
    turns = expected()[0].current()
    assert text.startswith(f"{len(turns)} turns, {len({turn.speaker for turn in turns})} speakers")


def test_a_store_keeps_names_for_the_next_recording(voices):
    keep = ("diarize", "voices.jsonl", *PRESET, "--store", "people.links")
    first = lines_of(run(*keep, cwd=voices))
    longest = max(first, key=lambda turn: turn["end"] - turn["start"])
    said(voices, "name", "people.links", longest["cluster"], "Ann")
    again = lines_of(run(*keep, cwd=voices))
    assert "Ann" in {turn["speaker"] for turn in again}
    with Store.open(voices / "people.links", read_only=True) as store:
        assert store.n_vectors == 2 * N


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("voices.npz",), "--length"),
        (("voices.npz", "--times", "nothing", "--length", 1.6), "no array 'nothing'"),
        (("voices.jsonl", "--start", "begin"), "begin"),
        (("voices.jsonl", "--output", "a.txt"), "a.txt"),
        (("short.npz", "--length", 1.6), "2 times for 150 rows"),
        (("back.npz", "--times", "both"), "a segment from"),
    ],
)
def test_times_that_cannot_be_used_are_refused(voices, words, reason):
    with np.load(voices / "voices.npz") as arrays:
        np.savez(voices / "short.npz", X=arrays["X"], t=arrays["t"][:2])
        np.savez(voices / "back.npz", X=arrays["X"], both=arrays["both"][:, ::-1])
    assert reason in refused(run("diarize", *words, *PRESET, cwd=voices))


def bad_rows(folder):
    """Write files of which row 3 has bad times, or none."""
    rows = [json.loads(line) for line in (folder / "voices.jsonl").read_text().splitlines()][:9]
    bad = {"end": {"end": None}, "back": {"start": 9.0}, "empty": {"end": 0.1}, "nan": {"end": "x"}}
    for name, change in bad.items():
        lines = [json.dumps(row | (change if i == 3 else {})) for i, row in enumerate(rows)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return [f"{name}.jsonl" for name in bad]


def test_rows_before_a_row_with_bad_times_are_told_as_kept_with_exit_code_6(voices):
    for name in bad_rows(voices):
        done = run("diarize", name, *PRESET, "--store", f"{name}.links", cwd=voices)
        error = refused(done, 6)
        assert f"{name}, row 3: " in error
        assert f"Kept: 3 new rows are in {name}.links; linkstream undo {name}.links" in error
        with Store.open(voices / f"{name}.links", read_only=True) as store:
            assert store.n_vectors == 3
        said(voices, "undo", f"{name}.links")
        with Store.open(voices / f"{name}.links", read_only=True) as store:
            assert store.n_vectors == 0
    assert "row 3" in refused(run("diarize", name, *PRESET, cwd=voices), 2)


def test_an_archive_with_bad_times_adds_no_row(voices):
    with np.load(voices / "voices.npz") as arrays:
        X, both = arrays["X"], arrays["both"]
    for change, said_of in (((5, 1, np.nan), "row 5"), ((7, 0, 1.0), "row 7"), (None, "2 times")):
        times = both[:2] if change is None else both.copy()
        if change is not None:
            times[change[:2]] = change[2]
        np.savez(voices / "bad.npz", X=X, both=times)
        words = ("bad.npz", "--times", "both", *PRESET, "--store", "b.links")
        assert said_of in refused(run("diarize", *words, cwd=voices), 2)
        assert not (voices / "b.links").exists()


def test_advice_on_order_names_no_option_that_the_command_does_not_have(voices):
    bad_rows(voices)
    assert "delay=" not in refused(run("diarize", "back.jsonl", *PRESET, cwd=voices), 2)
