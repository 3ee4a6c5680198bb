"""docs/choices.md: each entry gives a reason and names tests that exist; tests of some entries."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from linkstream import Links, Space
from linkstream.engine import events
from linkstream.engine.fixed_point import squared_norms
from linkstream.engine.log import UNTRACKED_LIMIT, EventLog
from linkstream.errors import NotTrackedError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "linkstream"


def entries():
    """Return the title and text of each entry of the page."""
    parts = re.split(r"^### (.+)\n", (ROOT / "docs/choices.md").read_text("utf-8"), flags=re.M)
    texts = [re.split(r"^## ", text, flags=re.M)[0] for text in parts[2::2]]
    return dict(zip(parts[1::2], texts, strict=True))


@pytest.mark.parametrize("title", entries())
def test_each_choice_says_why_and_names_tests_that_exist(title):
    what, _, rest = entries()[title].partition("*Why:*")
    why, _, pinned = rest.partition("*Pinned by*")
    assert len(what.split()) > 5
    assert len(why.split()) > 5
    names = re.findall(r"`([^`]+)`", pinned)
    assert names
    for name in names:
        file, _, test = name.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


def test_each_choice_that_the_code_refers_to_is_there():
    titles = {title.lower() for title in entries()}
    code = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    cited = re.findall(r'choices\.md, "([^"]+)"', code)
    assert cited
    assert {title.lower() for title in cited} <= titles


# Tests of entries that belong to no other suite.


def test_the_norm_is_summed_by_folding_halves():
    rows = np.random.default_rng(0).standard_normal((200, 5)).astype(np.float32).astype(np.float64)
    a, b, c, d, e = (rows * rows).T
    assert np.array_equal(squared_norms(rows), ((a + e) + c) + (b + d))
    assert not np.array_equal(squared_norms(rows), (((a + b) + c) + d) + e)


def test_the_space_is_not_learnt_from_the_stream():
    mean = np.array([0.25, 0.0, 0.5])
    links = Links(0.7, 0.6, 0.9, space=Space(mean=mean, model="encoder"))
    links.add_many(np.random.default_rng(1).standard_normal((50, 3)))
    assert links.space == Space(mean=mean, model="encoder")
    assert Links.from_bytes(links.to_bytes()).space == links.space


def test_the_codes_of_events_are_append_only():
    kinds = [event.kind for event in events.CLASSES]
    first = ["created", "joined", "linked", "merged", "severed", "rejoined", "split"]
    assert kinds[: len(first)] == first


def test_without_tracking_the_newest_hundred_thousand_events_are_kept():
    tracked, untracked = EventLog.keeping(True), EventLog.keeping(False)
    for number in range(UNTRACKED_LIMIT + 5):
        tracked.append((events.CREATED, number, number, number))
        untracked.append((events.CREATED, number, number, number))
    assert UNTRACKED_LIMIT == 100_000
    assert len(tracked.rows()) == UNTRACKED_LIMIT + 5
    assert untracked.rows()[:, 1].tolist() == list(range(5, UNTRACKED_LIMIT + 5))
    with pytest.raises(NotTrackedError, match="5 or later"):
        untracked.since(4)


def test_the_digest_leaves_the_log_out():
    links = Links(0.7, 0.6, 0.9)
    links.add_many(np.random.default_rng(2).standard_normal((20, 4)))
    state = links.state()
    parts = state.arrays() | {"events": state.events[10:]}
    forgetful = type(state).from_parts(state.scalars(), parts)
    assert len(forgetful.events) < len(state.events)
    assert forgetful.digest() == state.digest()


def test_the_core_needs_numpy_alone():
    project = pyproject()["project"]
    assert [re.split(r"\W", need)[0] for need in project["dependencies"]] == ["numpy"]
    assert {"metrics", "plots", "cli", "test"} <= set(project["optional-dependencies"])


def test_no_verb_enters_errstate():
    rooms = ("engine", "identity", "clusterer", "store")
    files = [path for room in rooms for path in (SOURCE / room).rglob("*.py")]
    assert [path.name for path in files if "errstate" in path.read_text("utf-8")] == []


def test_a_failed_build_falls_back_to_plain_python():
    overrides = pyproject()["tool"]["scikit-build"]["overrides"]
    conditions = [rule["if"] for rule in overrides if rule["wheel"] == {"cmake": False}]
    assert {"failed": True} in conditions
    assert {"env": {"LINKSTREAM_PURE_PYTHON": True}} in conditions


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
