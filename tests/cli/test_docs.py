"""docs/cli.md shows every command and its true output."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from cli.command import shown
from cli.test_examples import example_of, store_with_doubts
from linkstream.cli import EXIT_CODES, demo
from linkstream.cli.app import COMMANDS

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
SESSION = [
    (line, told.strip("\n"))
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line, told in re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
]


def test_every_command_has_a_section_with_the_example_of_its_help():
    assert sorted(re.findall(r"^### (\w+)$", TEXT, re.MULTILINE)) == sorted(COMMANDS)
    lines = [shlex.split(line) for line, _ in SESSION]
    for name in COMMANDS:
        assert ["linkstream", *example_of(name)] in lines


def test_the_page_documents_every_exit_code():
    told = re.findall(r"^\| (\d+) \| (.*) \|$", TEXT, re.MULTILINE)
    assert {int(code): words.replace("\\|", "|") for code, words in told} == EXIT_CODES


def matches(seen, told):
    """Return whether a text equals that of the page, where … matches anything."""
    pattern = ".*".join(re.escape(part) for part in told.split("…"))
    return re.fullmatch(pattern, seen, re.DOTALL) is not None


@pytest.fixture
def fresh(template, tmp_path):
    for name in ("voices.npy", "voices.npz", "same.csv", "different.csv"):
        shutil.copy(template / name, tmp_path)
    shutil.copytree(template / "arrivals", tmp_path / "arrivals")
    return tmp_path


def test_the_session_of_the_page_runs_as_shown(fresh, monkeypatch):
    monkeypatch.setattr(demo, "PACE_ON_A_TERMINAL", 0.0)
    doubts = fresh / "doubts"
    doubts.mkdir()
    store_with_doubts(doubts / "people.links")
    for line, told in SESSION:
        words = shlex.split(line)[1:]
        seen = shown(*words, cwd=doubts if words[0] in ("accept", "held", "assign") else fresh)
        assert matches(seen, told), f"{line}\n{seen}"
