"""The code of each page runs and prints the output shown; all relative links are valid."""

import contextlib
import io
import re
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


class Block(NamedTuple):
    language: str
    text: str


def blocks(page):
    """Return the fenced blocks of a page, in order."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), flags=re.M | re.S)
    return [Block(language, text) for language, text in fences]


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)


def run(page):
    """Run a page's Python blocks in one namespace; yield the output and the output shown."""
    namespace = {}
    for block, following in pairwise([*blocks(page), Block("", "")]):
        if block.language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, str(page), "exec"), namespace)
        yield printed.getvalue(), following.text if following.language == "text" else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for printed, shown in run(page):
        assert printed == shown


def test_readme_shows_code_with_output():
    languages = [block.language for block in blocks(README)]
    assert languages[:3] == ["bash", "python", "text"]


def test_the_first_30_lines_hold_sentence_picture_install_line_and_code():
    start = "\n".join(README.read_text("utf-8").splitlines()[:30])
    assert re.search(r"^linkstream clusters .*\.$", start, flags=re.M)
    assert re.search(r"^!\[.+\]\(docs/img/\w+\.png\)$", start, flags=re.M)
    assert "\npip install " in start
    code = re.search(r"^```python\n(.*?)^```$", start, flags=re.M | re.S)
    assert code is not None
    assert len([line for line in code[1].splitlines() if line]) <= 6
    assert re.search(r"^```text\n.+^```$", start, flags=re.M | re.S)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page), flags=re.M)
    return {re.sub(r"\s", "-", plain(heading)) for heading in headings}


def plain(heading):
    kept = (c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
    return "".join(kept)


def links(page):
    return re.findall(r"\]\(([^)\s]+)\)", without_code(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file_and_a_heading(page):
    for link in links(page):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_has_an_alternative_text(page):
    for words in re.findall(r"!\[([^\]]*)\]", without_code(page)):
        assert len(words.split()) >= 5
