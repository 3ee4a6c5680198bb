"""`linkstream demo` and `linkstream --version`."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cli.command import json_lines, run, run_on_a_terminal
from linkstream import __version__, cli
from linkstream.data import voice_halves, voice_stream

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def piped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, run("demo", "--output", "voices.png", cwd=folder)


def test_the_demo_writes_a_line_for_each_vector_and_a_summary_to_a_pipe(piped):
    _, done = piped
    *decisions, last = json_lines(done.stdout)
    assert done.returncode == 0
    assert [line["vector"] for line in decisions] == list(range(801))
    assert set(decisions[0]) == {
        *("vector", "speaker", "cluster", "subcluster"),
        *("kind", "similarity", "threshold", "margin"),
        *("probability", "cluster_margin"),
    }
    assert {line["speaker"] for line in decisions} == set("ABCDE")
    assert list(last) == ["summary"]


def test_nine_of_ten_held_out_vectors_get_the_right_id(piped):
    summary = json_lines(piped[1].stdout)[-1]["summary"]
    assert summary["held_out_speakers"]["instant"] == pytest.approx(0.9426, abs=5e-5)
    assert summary["held_out_speakers"]["current"] == pytest.approx(0.9426, abs=5e-5)
    assert summary["tuned_on_speakers"]["instant"] == pytest.approx(0.9705, abs=5e-5)
    assert summary["tuned_on_speakers"]["current"] == pytest.approx(0.9705, abs=5e-5)
    assert "held out" in summary["split"]
    assert sum(cluster["size"] for cluster in summary["clusters"]) == 801


def test_the_picture_is_written(piped):
    folder, _ = piped
    assert (folder / "voices.png").read_bytes().startswith(PNG)


def test_without_a_terminal_plain_text_goes_to_stderr(piped):
    _, done = piped
    assert "\x1b" not in done.stdout + done.stderr
    for words in ("five held out", "0.943", "five tuned on", "0.971", "LibriSpeech"):
        assert words in done.stderr


def test_a_terminal_shows_ids_as_they_arrive(tmp_path):
    code, shown = run_on_a_terminal("demo", "--pace", "0", cwd=tmp_path)
    assert code == 0
    assert "\x1b[" in shown
    for words in ("ID given", "margin", "801/801", "five held out", "mostly speaker"):
        assert words in shown
    assert "{" not in shown
    assert (tmp_path / "linkstream-demo.png").exists()


@pytest.mark.parametrize("output", ["picture.txt", "nowhere/picture.png"])
def test_a_picture_that_cannot_be_written_is_refused_at_the_start(tmp_path, output):
    done = run("demo", "--output", output, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_the_halves_share_no_speaker_and_keep_the_order_of_arrival():
    stream, (tuning, held_out) = voice_stream(), voice_halves()
    assert not set(tuning.y) & set(held_out.y)
    assert len(tuning.X) + len(held_out.X) == len(stream.X)
    assert np.all(np.diff(held_out.t) > 0)
    np.testing.assert_allclose(np.linalg.norm(stream.X, axis=1), 1, rtol=1e-6)


def test_the_version_is_printed(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == f"linkstream {__version__}\n"


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_typer_or_rich_the_install_command_is_printed(monkeypatch, capsys, module):
    monkeypatch.delitem(sys.modules, "linkstream.cli.app", raising=False)
    monkeypatch.delattr(cli, "app", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    assert cli.run() == 3
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert 'pip install "linkstream[cli]"' in message
