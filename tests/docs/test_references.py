"""Every file, module, class and attribute of ours that a page names in code font exists."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

import linkstream
from linkstream.adapters.diarization import Diarizer
from linkstream.client import AsyncClient, Client
from linkstream.engine.contract import Candidate, Decision
from linkstream.paper.algorithm import PaperLinks
from linkstream.store import Store

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md"]
SOURCES = ("src", "cpp", "tests", "docs", "benchmarks", "examples", ".ci")
# Pages name files from the root, or from one of these folders.
BASES = ["", "src/linkstream", "src/linkstream/service", "cpp/include/linkstream", "tests", "docs"]
CLASSES = {
    each.__name__: each
    for each in (
        linkstream.Links,
        linkstream.Thresholds,
        linkstream.Space,
        AsyncClient,
        Candidate,
        Client,
        Decision,
        Diarizer,
        PaperLinks,
        Store,
    )
}
FILE = r"[\w./-]*\w\.(?:py|pyi|hpp|cpp|js|css|toml)"


def files():
    return {path.name for folder in SOURCES for path in (ROOT / folder).rglob("*.*")}


FILE_NAMES = files() | {path.name for path in ROOT.iterdir()}


def code_spans(page):
    """Return the inline code of a page, without its fenced blocks."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", prose)


def is_there(name):
    """Return whether a file of this name is in the project; a bare name may be in any folder."""
    if "/" not in name:
        return name in FILE_NAMES
    return any((ROOT / base / name).exists() for base in BASES)


def found(dotted):
    """Return whether a dotted name below `linkstream` can be imported."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            reduce(getattr, parts[cut:], module)
        except AttributeError:
            return False
        return True
    return False


def has(owner, name):
    """Return whether a class has an attribute, or an annotation for it."""
    annotated = {key for each in owner.__mro__ for key in getattr(each, "__annotations__", {})}
    return hasattr(owner, name) or name in annotated


each_page = pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.name)


@each_page
def test_every_source_file_that_a_page_names_exists(page):
    named = [span for span in code_spans(page) if re.fullmatch(FILE, span)]
    assert [name for name in named if not is_there(name)] == []


@each_page
def test_every_module_and_symbol_that_a_page_names_exists(page):
    spans = " ".join(code_spans(page))
    named = set(re.findall(r"(?<![\w/.-])linkstream(?:\.[A-Za-z_]\w*)+", spans))
    assert sorted(name for name in named if not found(name)) == []


@each_page
def test_every_attribute_of_a_class_that_a_page_names_exists(page):
    pattern = rf"(?<![\w.])({'|'.join(CLASSES)})\.([a-z]\w*)"
    named = {match for span in code_spans(page) for match in re.findall(pattern, span)}
    assert sorted((owner, name) for owner, name in named if not has(CLASSES[owner], name)) == []


@each_page
def test_every_private_name_that_a_page_mentions_is_in_the_sources(page):
    named = {span for span in code_spans(page) if re.fullmatch(r"_[a-z]\w+", span)}
    code = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert sorted(name for name in named if not re.search(rf"\b{name}\b", code)) == []


@each_page
def test_every_benchmark_that_a_page_runs_exists(page):
    named = set(re.findall(r"python -m (benchmarks\.\w+)", page.read_text("utf-8")))
    paths = [ROOT / f"{name.replace('.', '/')}.py" for name in sorted(named)]
    assert [path.name for path in paths if not path.exists()] == []


@each_page
def test_every_make_target_that_a_page_names_exists(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.M))
    named = {target for span in code_spans(page) for target in re.findall(r"^make ([\w-]+)", span)}
    assert named - targets == set()
