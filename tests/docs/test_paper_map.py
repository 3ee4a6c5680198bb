"""docs/paper-map.md names every equation and sentence, and only code and tests that exist."""

import ast
import importlib
import math
import re
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from linkstream.paper.generative import log_density, sample_cluster
from linkstream.paper.sphere import angle, centroid, normalise, spherical_mean

ROOT = Path(__file__).resolve().parents[2]
MAP = ROOT / "docs" / "paper-map.md"

EQUATIONS = [str(number) for number in range(1, 26)]
# The rows of each paragraph of section 3: one a sentence, but 3.2 ¶2 (reasons) has one row, two
# sentences of 3.3 ¶2 share a row, and the equations of 3.5 have rows of their own.
SENTENCES = {"3.1": 4, "3.2 ¶1": 4, "3.3 ¶1": 4, "3.3 ¶2": 5, "3.4 ¶1": 4, "3.4 ¶2": 4, "3.6": 5}
ALGORITHM = (ROOT / "src/linkstream/paper/algorithm.py").read_text("utf-8")
HEADERS = ROOT / "cpp" / "include" / "linkstream"


def table(heading):
    """Return the cells of each row of the section with this heading, without the table's head."""
    text = MAP.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


EQUATION_ROWS = table("Equations")
SENTENCE_ROWS = table("Section 3, sentence by sentence")
each_row = pytest.mark.parametrize("row", EQUATION_ROWS + SENTENCE_ROWS, ids=lambda row: row[0])
each_sentence = pytest.mark.parametrize("row", SENTENCE_ROWS, ids=lambda row: row[0])


def named(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_every_equation_has_a_row_in_order():
    assert [row[0] for row in EQUATION_ROWS] == EQUATIONS


def test_every_sentence_of_section_3_has_a_row():
    places = [row[0] for row in SENTENCE_ROWS]
    for paragraph, count in SENTENCES.items():
        found = [place for place in places if place.startswith(f"{paragraph} s")]
        assert len(found) == count, paragraph
        assert found == sorted(found)
    assert sum(place.startswith(("3.2 ¶2", "3.5 ")) for place in places) == 6
    assert {f"eq {number}" for number in range(19, 26)} == set(re.findall(r"eq \d+", str(places)))


@each_row
def test_each_python_function_named_exists(row):
    cell = row[2] if row in EQUATION_ROWS else row[3]
    assert named(cell)
    for name in named(cell):
        module, _, path = name.partition(":")
        *owner, last = path.split(".")
        home = reduce(getattr, owner, importlib.import_module(f"linkstream.{module}"))
        assert callable(vars(home)[last]), name  # defined here, not in a base class


@each_sentence
def test_each_part_of_the_algorithm_named_exists(row):
    for name in named(row[2]):
        assert re.search(rf"def {name}\(|self\.{name}\b.* = ", ALGORITHM), name


@each_sentence
def test_each_part_of_the_compiled_engine_named_exists(row):
    for name in named(row[4]):
        header, _, part = name.partition(":")
        code = re.sub(r"//.*", "", (HEADERS / header).read_text("utf-8"))
        defined = rf"(?:class|struct) {part}\b|^ *[\w:<>&*\[\] ]* [&*]?{part}\([^;]*{{"
        assert re.search(defined, code, flags=re.M), name


@each_row
def test_each_test_named_exists(row):
    assert named(row[-1])
    for name in named(row[-1]):
        file, _, test = name.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


def test_the_likelihood_of_equation_5_is_greatest_at_the_spherical_mean():
    rng = np.random.default_rng(5)
    X = sample_cluster(rng.standard_normal(6), 40, 0.2, rng)
    best = spherical_mean(X)

    def log_likelihood(center):
        return float(log_density(angle(X, center), 0.2, 6).sum())

    for size in (1e-3, 1e-2, 0.1, 1.0):
        for step in rng.standard_normal((20, 6)):
            assert log_likelihood(normalise(best + size * step)) < log_likelihood(best)


def test_the_centroid_tends_to_the_centre_as_equation_14_says():
    rng = np.random.default_rng(14)
    center = normalise(rng.standard_normal(64))
    X = sample_cluster(center, 40_000, 0.1, rng)
    angles = [float(angle(centroid(X[:k]), center)) for k in (1, 100, 40_000)]
    # The error shrinks as one over the root of k.
    assert angles[1] < angles[0] / 5
    assert angles[2] < angles[1] / 10
    assert math.cos(angles[2]) > 0.9999
