"""paper/algorithm.py by itself. tests/agreement compares both engines with it."""

import ast
import sys
from pathlib import Path

import numpy as np

from linkstream.paper import algorithm
from linkstream.paper.algorithm import PaperLinks, cosine, fixed_point
from linkstream.paper.generative import sample_stream

SOURCE = Path(algorithm.__file__).read_text("utf-8")


def imported(node):
    return [node.module] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]


def test_the_algorithm_imports_numpy_the_paper_and_no_engine():
    nodes = [n for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, (ast.Import, ast.ImportFrom))]
    modules = [module for node in nodes for module in imported(node)]
    ours = [module for module in modules if module.startswith("linkstream")]
    others = {module.partition(".")[0] for module in modules} - {"linkstream"}
    assert ours
    assert all(module.startswith("linkstream.paper.") for module in ours)
    assert others <= sys.stdlib_module_names | {"numpy"}


def test_the_algorithm_fits_in_one_reading():
    tree = ast.parse(SOURCE)
    statements = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    assert len(statements) <= 200
    assert len(SOURCE.splitlines()) <= 300


def test_it_finds_the_clusters_of_the_papers_own_model():
    X, y = sample_stream(5, 12, 64, 0.06, np.random.default_rng(0))
    links = PaperLinks(0.7, 0.6, 0.9)
    ids = [links.add(x).cluster for x in X]
    assert len(set(ids)) == len(set(zip(ids, y.tolist(), strict=True))) == 5
    assert links.labels() == ids


def test_a_split_gives_the_smaller_part_a_new_id():
    directions = [0, 0, 0, 40, 55]  # degrees; the last one pulls a subcluster away from the first
    edge = np.sqrt(np.cos(np.radians(45)))
    links = PaperLinks(edge, np.cos(np.radians(22)), edge * edge)
    answers = [links.add([np.cos(a), np.sin(a)]) for a in np.radians(directions)]
    assert [answer.cluster for answer in answers] == [0, 0, 0, 0, 1]
    assert links.labels() == [0, 0, 0, 1, 1]
    assert [event[0] for event in links.events][-3:] == ["joined", "severed", "split"]


def test_fixed_point_keeps_the_direction_to_thirty_bits():
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 37)).astype(np.float32).astype(np.float64)
    expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
    assert abs(cosine(fixed_point(x), fixed_point(y)) - expected) < 1e-8
    assert np.array_equal(fixed_point(4.0 * x), fixed_point(x))
