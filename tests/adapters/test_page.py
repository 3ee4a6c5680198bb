"""Run the code of docs/adapters.md and compare its output."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path

from benchmarks.topics import CONTENDERS, SETS

from linkstream.adapters.sklearn import NOT_APPLICABLE

PAGE = (Path(__file__).resolve().parents[2] / "docs/adapters.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.M | re.S)


def test_the_code_runs_and_prints_what_the_page_shows():
    known = {}
    for (language, code), (following, shown) in pairwise([*BLOCKS, ("", "")]):
        if language != "py":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/adapters.md", "exec"), known)
        assert printed.getvalue() == (shown if following == "text" else "")
    assert len([language for language, _ in BLOCKS if language == "py"]) >= 4


def test_the_page_names_each_check_that_does_not_apply():
    assert all(f"`{name}`" in PAGE for name in NOT_APPLICABLE)


def test_the_table_of_topics_is_that_of_the_command():
    head, rows = PAGE.split("| | text_", 1)[1].split("|---|---|---|---|\n", 1)
    assert f"text_{head}".split(" |")[:-1] == [SETS[0], *(f" {name}" for name in SETS[1:])]
    names = re.findall(r"^\| ([^|]+) \|", rows, flags=re.M)
    assert names == ["links, one setting", *CONTENDERS]
