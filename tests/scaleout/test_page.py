"""Run the code of docs/scale-out.md and compare its output."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path

from benchmarks.billion import table

PAGE = (Path(__file__).resolve().parents[2] / "docs/scale-out.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.M | re.S)


def test_the_code_runs_and_prints_what_the_page_shows(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known, there = {}, str(tmp_path)
    for (language, code), (following, shown) in pairwise([*BLOCKS, ("", "")]):
        if language != "py":
            continue
        # Spark resolves paths from where its JVM started.
        for name in ("voices", "checkpoint", "ids"):
            code = code.replace(f'"{name}"', f'"{there}/{name}"')
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/scale-out.md", "exec"), known)
        assert printed.getvalue().strip() == (shown.strip() if following == "text" else "")
    known["made"].release()
    assert len([language for language, _ in BLOCKS if language == "py"]) == 2


def test_the_table_of_a_billion_vectors_is_what_its_script_prints():
    assert table() in PAGE
    assert "72.7 h" in next(line for line in table().splitlines() if "2,000,000 | 3" in line)
    assert "11.4 h" in next(line for line in table().splitlines() if "2,000,000 | 1" in line)
