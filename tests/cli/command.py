"""The command line as its users meet it: a process, with pipes or with a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

# Warnings are errors in the commands, too.
COMMAND = [sys.executable, "-W", "error", "-c", "from linkstream.cli import main; main()"]


def run(*arguments, cwd):
    """Run a command into pipes."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def run_on_a_terminal(*arguments, cwd):
    """Run a command on a terminal: exit code, and all that was shown."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    return process.wait(timeout=60), shown.decode()


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]
