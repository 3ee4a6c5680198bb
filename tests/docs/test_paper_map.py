"""docs/paper-map.md names every equation and paragraph, and only functions and tests that exist."""

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
# Sentences of each paragraph, counted by letters where they ask for several things.
PLACES = [
    *("3.1 a", "3.1 b", "3.1 c"),
    *("3.2 ¶1 a", "3.2 ¶1 b", "3.2 ¶1 c", "3.2 ¶2"),
    *("3.3 ¶1", "3.3 ¶2 a", "3.3 ¶2 b", "3.3 ¶2 c"),
    *("3.4 ¶1 a", "3.4 ¶1 b", "3.4 ¶1 c", "3.4 ¶2 a", "3.4 ¶2 b", "3.4 ¶2 c"),
    *("3.5 a", "3.5 b", "3.5 c"),
    *("3.6 a", "3.6 b", "3.6 c", "3.6 d"),
]


def rows():
    """Cells of each row of the page's two tables, headings left out."""
    lines = [line for line in MAP.read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("eq", "place")]


def named(cell):
    names = re.findall(r"`([^`]+)`", cell)
    assert names, f"no name in {cell!r}"
    return names


def test_every_equation_and_every_paragraph_of_section_3_has_its_row_in_order():
    assert [row[0] for row in rows()] == EQUATIONS + PLACES


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_function_named_exists(row):
    for name in named(row[2]):
        module, _, path = name.partition(":")
        found = reduce(getattr, path.split("."), importlib.import_module(f"linkstream.{module}"))
        assert callable(found)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_test_named_exists(row):
    for name in named(row[3]):
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
