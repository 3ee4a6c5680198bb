"""The command line as a whole: help, exit codes, completion."""

from __future__ import annotations

import ast
import inspect
import os
import shlex
import signal
import subprocess
import sys

import pytest

from cli.command import COMMAND, begin, refused, run, run_apart, run_before_people
from linkstream.cli import EXIT_CODES
from linkstream.cli.app import COMMANDS, PANELS, function_of
from linkstream.store import Store


def test_the_help_lists_every_command_with_its_first_line(tmp_path):
    shown = " ".join(run("--help", cwd=tmp_path).stdout.split())
    for panel, commands in PANELS.items():
        assert panel in shown
        for name, words in commands.items():
            assert inspect.getdoc(function_of(name)).splitlines()[0] == words
            assert name in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example(tmp_path, name):
    done = run(name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"Example: linkstream {name}" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_help_imports_no_command_and_no_slow_module(tmp_path):
    words = (
        "import sys; from linkstream.cli import main; sys.argv = ['linkstream', '--help']\n"
        "try: main()\n"
        "except SystemExit: print([m for m in sys.modules if m.startswith("
        "('linkstream.cli.', 'linkstream.store', 'linkstream.io', 'numpy', 'matplotlib', 'scipy',"
        " 'optuna', 'sqlite3', 'pyarrow'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    few = ("app", "outcome", "signals", "terminal_text")
    expected = [f"linkstream.cli.{name}" for name in few]
    assert sorted(ast.literal_eval(done.stdout.splitlines()[-1])) == expected


def test_an_unknown_command_or_option_is_a_wrong_argument(tmp_path):
    assert run("culster", cwd=tmp_path).returncode == 2
    assert run("inspect", "--no-such", cwd=tmp_path).returncode == 2


# How it ends


def test_a_missing_store_is_not_created(tmp_path):
    for name in ("inspect", "events", "verify", "undo", "plot", "compact"):
        refused(run(name, "none.links", cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_locked_store_has_its_own_exit_code(folder):
    with Store.open(folder / "people.links"):
        message = refused(run("name", "people.links", 0, "Ann", cwd=folder), code=4)
        assert run("inspect", "people.links", cwd=folder).returncode == 0
    assert "another writer" in message


def test_a_damaged_store_has_its_own_exit_code(folder):
    path = folder / "people.links"
    data = bytearray(path.read_bytes())
    data[40_000:80_000] = bytes(40_000)
    path.write_bytes(data)
    assert "people.links" in refused(run("verify", "people.links", cwd=folder), code=5)


def test_a_missing_extra_has_its_own_exit_code(folder, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install" in refused(run("plot", "people.links", cwd=folder), code=3)


def test_a_full_disk_stops_the_command(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "compact", full)
    told = refused(run("compact", "people.links", "--yes", cwd=folder), code=6)
    assert "No space left" in told
    assert "Kept: all of people.links; " in told


def test_closing_the_pipe_early_is_not_an_error(folder):
    words = " ".join(f"'{word}'" for word in [*COMMAND, "events", "people.links"])
    script = f"set -o pipefail; {words} | head -1"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    # What fits into the pipe may all be written before the reader leaves.
    assert done.returncode in (0, 141)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


@pytest.mark.parametrize(
    "words", [("inspect",), ("inspect", "--format=text"), ("held", "--format=text")]
)
def test_a_closed_pipe_has_its_own_exit_code(folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    command, *options = words
    streams = {"capture_output": False, "stdout": writer, "stderr": -1}
    done = run_apart(command, "people.links", *options, cwd=folder, **streams)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_ends_a_command_quietly(tmp_path):
    process = begin("demo", "--pace", "1", cwd=tmp_path)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in out + err


def test_every_exit_code_in_use_is_documented():
    assert sorted(EXIT_CODES) == [0, 1, 2, 3, 4, 5, 6, 130, 141]


# Names are anybody's text

HOSTILE = "\x1b[2J[red]Ann[/red] \u202e$\\frac{1}$ :boom: \x07\n日本"


def test_control_characters_of_a_name_are_escaped(folder):
    assert run("name", "people.links", 0, HOSTILE, cwd=folder).returncode == 0
    for words in (
        ("inspect", "people.links"),
        ("inspect", "people.links", "--cluster", "0"),
        ("events", "people.links", "--since", "300"),
        ("forget", "people.links", "0", "--yes"),
        ("undo", "people.links"),
        ("name", "people.links", 0, "Bob"),  # refused: the error quotes the name
        ("plot", "people.links", "--output", "pictures"),
    ):
        done = run_before_people(*words, cwd=folder)
        shown = done.stdout + done.stderr
        for harm in ("\x1b[2J", "\u202e", "\x07", "\U0001f4a5"):
            assert harm not in shown
        if words[0] in ("inspect", "forget"):
            assert "\\x1b[2J[red]Ann[/red]" in shown


def test_a_name_that_is_not_valid_text_is_refused(folder):
    name = b"\xff\xfe".decode(errors="surrogateescape")
    assert run("name", "people.links", 0, name, cwd=folder).returncode == 2


# Completion


def test_bash_completes_commands_and_options(tmp_path):
    line = f"{shlex.join(COMMAND)} --show-completion; true"  # bash stays, to be found as the shell
    shown = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "_LINKSTREAM_COMPLETE=complete_bash" in shown.stdout, shown.stderr
    for words, expected in (("linkstream ver", "verify"), ("linkstream watch --on", "--once")):
        asked = {
            "_LINKSTREAM_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        done = run_apart(cwd=tmp_path, env=os.environ | asked)
        assert done.stdout.split() == [expected]
