"""Ctrl-C at any moment: one line, exit code 130, no half-written file."""

from __future__ import annotations

import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import COMMAND, begin, read_to_end, run, run_apart
from linkstream.cli import EXIT_CODES
from linkstream.store import Store

PROGRAM = str(Path(__file__).with_name("interrupted.py"))
LINE = re.compile(r"Interrupted\. (Nothing was changed|Kept: [^\n]+)\.\n")
STORE = "people.links"

# Commands that read, cluster, write, draw, erase.
COMMANDS = {
    "cluster": ("cluster", "voices.npz", "--store", "new.links", "--preset", "ge2e-windows"),
    "cluster without a store": (
        *("cluster", "voices.npy", "--preset", "ge2e-windows", "--output", "ids.npy"),
    ),
    "inspect": ("inspect", STORE),
    "events": ("events", STORE),
    "merge": ("merge", STORE, "0", "1"),
    "export": ("export", STORE, "table.csv"),
    "backup": ("backup", STORE, "copy.links"),
    "erase": ("forget", STORE, "0", "--erase", "--yes"),
    "plot": ("plot", STORE, "--only", "sizes"),
    "presets": ("presets",),
    "levels": ("levels", "arrivals/monday.npy", "--preset", "ge2e"),
}


@pytest.fixture
def fresh(template, tmp_path):
    """Return a function that makes a fresh copy of the folder."""

    def make():
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "work"))

    return make


def pressed(moment, words, folder):
    """Run a command and interrupt it at a moment; 0 for never."""
    line = [sys.executable, "-W", "error", PROGRAM, str(moment), str(folder), *words]
    return subprocess.run(
        line, cwd=folder, capture_output=True, text=True, timeout=120, check=False, stdin=-3
    )


def check_end(done, folder):
    """Check for one line or a normal end, and no half-written file."""
    if done.returncode == 130:
        assert LINE.fullmatch(done.stderr), done.stderr
    else:
        assert (done.returncode, done.stderr) == (0, "")
    assert not [path for path in folder.iterdir() if path.name.endswith((".partial", ".new"))]
    return done.stderr


def check_kept(told, words, folder):
    """Check that exactly the changes that the line names were kept."""
    with Store.open(folder / STORE) as store:  # no lock is left behind
        assert store.journal.n_operations == 1 + ("made to" in told)
    if "rows are in" in told:
        with Store.open(folder / "new.links", read_only=True) as store:
            rows = int(re.search(r"Kept: ([\d,]+) new rows", told)[1].replace(",", ""))
            assert store.n_vectors == rows
    elif told:
        assert not (folder / "new.links").exists()
    for name in ("table.csv", "ids.npy", "copy.links"):
        if told and name in words:
            assert (folder / name).exists() == (f"{name} is written" in told)


def moments(calls, n, seed):
    """Return moments of the whole run, and as many of its last part, after the imports."""
    rng = random.Random(seed)
    whole = [rng.randint(1, calls) for _ in range(n - n // 2)]
    return whole + [rng.randint(calls - calls // 25, calls) for _ in range(n // 2)]


def hammered(fresh, name, n):
    words = COMMANDS[name]
    folder = fresh()
    assert pressed(0, words, folder).returncode == 0
    calls = int((folder / "calls").read_text())
    for moment in moments(calls, n, seed=name):
        folder = fresh()
        done = pressed(moment, words, folder)
        check_kept(check_end(done, folder), words, folder)


@pytest.mark.parametrize("name", ["cluster", "merge", "export"])
def test_an_interrupt_at_any_moment_is_reported_in_one_line(fresh, name):
    hammered(fresh, name, 2)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_200_interrupts_at_any_moment_are_reported_in_one_line(fresh, name):
    hammered(fresh, name, 20)


def test_an_interrupt_before_any_row_leaves_no_store(fresh):
    folder = fresh()
    process = begin(
        *("cluster", "-", "--dimension", 256, "--store", "new.links", "--preset", "ge2e", "--live"),
        cwd=folder,
        stdin=subprocess.PIPE,
    )
    process.stdin.write("half a row")
    process.stdin.flush()
    while not (folder / "new.links").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)  # it waits for the rest, which never comes
    process.wait(timeout=60)
    process.stdin.close()
    assert (process.returncode, process.stderr.read()) == (
        130,
        "Interrupted. Nothing was changed.\n",
    )
    process.stdout.close(), process.stderr.close()
    assert not list(folder.glob("new.links*"))


def test_an_interrupt_at_a_question_is_reported_once(fresh):
    ours, theirs = pty.openpty()
    line = [*COMMAND, "forget", STORE, "0"]
    process = subprocess.Popen(line, cwd=fresh(), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"Forget cluster 0?" not in shown:
        shown += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    shown += read_to_end(ours)
    assert process.wait(timeout=60) == 130
    os.close(ours)
    assert shown.count(b"Interrupted. Nothing was changed.") == 1
    assert b"Not done" not in shown


def test_changes_are_reported_if_the_output_fails(fresh, monkeypatch):
    from linkstream.cli import screen

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(screen, "write_json", full)
    done = run("merge", STORE, 0, 1, cwd=fresh())
    assert done.returncode == 6
    told = "error: No space left on device. Kept: 1 change made to people.links.\n"
    assert done.stderr == told
    assert EXIT_CODES[6].startswith("failed after a part")


# OpenBLAS sends SIGINT to its own process if it cannot start its threads.


@pytest.mark.parametrize(
    ("press", "code", "line"),
    [
        ("signal.raise_signal(signal.SIGINT)", 2, "error: there is not enough memory."),
        (
            "os.waitpid(os.fork() or os.kill(os.getppid(), signal.SIGINT) or os._exit(0), 0)",
            *(130, "Interrupted. Nothing was changed."),
        ),
    ],
    ids=["by OpenBLAS", "by Ctrl-C"],
)
def test_a_lack_of_memory_in_openblas_does_not_pass_for_ctrl_c(tmp_path, press, code, line):
    (tmp_path / "numpy.py").write_text(f"import os, signal\n{press}\n")
    found = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run_apart("inspect", STORE, cwd=tmp_path, env=found)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1
