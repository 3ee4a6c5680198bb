"""Helpers that run the command line with pipes or with a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from unittest import mock

from linkstream.cli import run as run_command
from linkstream.store import Store

# Warnings are errors in the commands, too.
COMMAND = [sys.executable, "-W", "error", "-c", "from linkstream.cli import main; main()"]
STORE = "people.links"  # in the fixture `folder`


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments, cwd, stdin=b""):
    """Run a command with pipes, within this process, which is quicker."""
    out, err = io.StringIO(), io.StringIO()
    words = ["linkstream", *map(str, arguments)]
    given = io.TextIOWrapper(io.BytesIO(stdin))
    before = os.getcwd()
    os.chdir(cwd)
    try:
        with (
            mock.patch.object(sys, "argv", words),
            mock.patch.object(sys, "stdin", given),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_command()
    finally:
        os.chdir(before)
    return Done(code, out.getvalue(), err.getvalue())


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        return True


def run_before_people(*arguments, cwd):
    """Run a command on a pretended terminal, within this process."""
    looks = {"TERM": "dumb", "COLUMNS": "100", "LINES": "50"}
    with mock.patch.dict(os.environ, looks), mock.patch.object(io, "StringIO", Terminal):
        return run(*arguments, cwd=cwd)


def shown(*arguments, cwd):
    """Return what a successful command shows on a terminal, without control sequences."""
    done = run_before_people(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stdout).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def run_apart(*arguments, cwd, **options):
    """Run a command with pipes, in a process of its own."""
    words = [*COMMAND, *map(str, arguments)]
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False} | options
    return subprocess.run(words, cwd=cwd, **options)


def begin(*arguments, cwd, **options):
    """Start a command with pipes, in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], cwd=cwd, **pipes | options)


def run_on_a_terminal(*arguments, cwd, typed=""):
    """Run a command on a terminal; return the exit code and the text shown."""
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    return on_a_terminal([*COMMAND, *map(str, arguments)], cwd, environment, typed)


def on_a_terminal(words, cwd, environment, typed=""):
    """Run any program on a terminal; return the exit code and the text shown."""
    ours, theirs = pty.openpty()
    pipes = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(words, cwd=cwd, env=environment, **pipes)
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = read_to_end(ours)
    os.close(ours)
    return process.wait(timeout=60), shown.decode()


def read_to_end(terminal):
    """Return the rest of what a terminal shows, until the command has closed its side."""
    shown = b""
    with contextlib.suppress(OSError):  # Linux answers EIO at the end
        while block := os.read(terminal, 65536):
            shown += block
    return shown


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def refused(done, code=2):
    """Return the error of a refused command; check that it is one line."""
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def said(folder, *words):
    """Return the JSON that a command prints; fail if the command does."""
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def opened(folder):
    """Return the store of the folder, open for reading."""
    return Store.open(folder / STORE, read_only=True)
