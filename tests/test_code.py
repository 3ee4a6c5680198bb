"""Rules for the source: short files and functions, no base-class stubs, documented parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import house

import documented

ROOT = Path(__file__).parents[1]


def test_no_file_is_longer_than_450_lines():
    long = {str(path.relative_to(ROOT)) for path, n in house.lines(ROOT).items() if n > 450}
    assert long == set()


def test_nine_of_ten_functions_have_at_most_16_lines():
    assert house.p90(house.function_lengths(ROOT)) <= 16


def test_no_base_class_has_stubs():
    assert house.stubs(ROOT) == []


def test_no_module_uses_a_private_name_of_another():
    assert house.foreign_underscores(ROOT) == []


def test_every_public_parameter_is_documented():
    assert documented.undocumented() == []


def test_every_option_and_argument_of_the_command_line_has_help():
    assert documented.without_help() == []


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        (None, set()),
        ("Return x.", set()),
        ("Add.\n\nArgs:\n    x: One vector.\n    a, b: Two of them.\n", {"x", "a", "b"}),
        (
            "Add.\n\n    Args:\n        x: One\n            more: y.\n        *rest: All.\n    ",
            {"x", "rest"},
        ),
        ("A pair.\n\nAttributes:\n    one (int): First.\n\nRaises:\n    Error: never\n", {"one"}),
    ],
)
def test_descriptions_of_parameters_are_found(docstring, names):
    assert documented.entries(docstring) == names


def test_measures_of_code_are_right_on_a_small_tree(tmp_path):
    package = tmp_path / "src" / "linkstream"
    package.mkdir(parents=True)
    (package / "a.py").write_text(
        "class A:\n"
        "    def __init__(self):\n"
        "        self._mine = 1\n\n"
        "    def ignore(self):\n"
        '        """Two lines\n'
        '        of documentation."""\n'
        "        raise NotImplementedError\n"
    )
    (package / "b.py").write_text("def f(a):\n    x = a._mine\n    return x\n")
    (package / "c.py").write_text("from linkstream.b import f\nf(errors='ignore')\n")
    assert sorted(house.lines(tmp_path).values()) == [2, 3, 8]
    assert house.function_lengths(tmp_path) == [1, 1, 2]
    assert house.stubs(tmp_path) == ["src/linkstream/a.py:8"]
    assert house.foreign_underscores(tmp_path) == ["src/linkstream/b.py:2 _mine"]
    assert house.spellings(tmp_path) == ["src/linkstream/a.py"]
