"""docs/first-session.md: run every command of the page and compare the output."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np

from cli.command import on_a_terminal
from linkstream.store import Store

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/first-session.md").read_text("utf-8")
LINES = [
    (line, told)
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, flags=re.M | re.S)
    for line, told in re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |\Z)", block, flags=re.M | re.S)
]


def typed(line, *, cwd):
    """Run a line in a shell on a terminal; return its exit code and output."""
    here = str(Path(sys.executable).parent)
    environment = os.environ | {"TERM": "dumb", "COLUMNS": "100"}
    environment["PATH"] = here + os.pathsep + environment["PATH"]
    code, seen = on_a_terminal(["bash", "-c", line], cwd, environment)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r[^\n]*\r(?!\n)", "", seen)
    lines = [part.rsplit("\r", 1)[-1].rstrip() for part in plain.replace("\r\n", "\n").split("\n")]
    return code, "\n".join(line for line in lines if line)


def matches(seen, told):
    """Return whether an output matches the page; line breaks are ignored, … is any text."""
    parts = " ".join(told.split()).split("…")
    pattern = ".*".join(re.escape(part.strip()) for part in parts)
    return re.fullmatch(pattern, " ".join(seen.split()), flags=re.S) is not None


def test_the_session_has_every_step():
    said = " ".join(line for line, _ in LINES)
    for word in ("cluster", "inspect", "plot", "merge", "name", "KILL", "undo", "export", "verify"):
        assert word in said


def test_every_command_gives_the_output_shown(tmp_path):
    for line, told in LINES:
        code, seen = typed(line, cwd=tmp_path)
        assert code in ((-9, 137) if "KILL" in line else (0,)), f"{line}\n{seen}"
        assert matches(seen, told), f"{line}\n{seen}"
    with Store.open(tmp_path / "people.links", read_only=True) as store:
        assert store.n_vectors == 1581 + 60 * 1581
        more = np.load(tmp_path / "more.npy")
        assert np.array_equal(store.vectors([1581, store.n_vectors - 1]), more[[0, -1]])
