"""Structure of the code: private names stay in their module, every parameter is documented."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import linkstream
from linkstream import Links

SOURCE = Path(linkstream.__file__).parent

# Private names of other packages, and of the standard library.
OUTSIDE = {
    ("adapters/bertopic.py", "topic_model._create_topic_vectors"),
    ("adapters/sklearn.py", "estimator._validate_data"),
    ("cli/interrupts.py", "os._exit"),
    ("engine/native.py", "linkstream._core"),
    ("tuning/tuned.py", "self.spread._asdict"),
}
# Modules that are being rebuilt; to be emptied.
TEMPORARY = {"engine/reference.py"}


def private(name):
    return name.startswith("_") and not name.startswith("__")


def is_self(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def own_names(tree):
    """Names that a module defines itself: functions, classes, variables, attributes of self."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    stored = [n for n in ast.walk(tree) if isinstance(getattr(n, "ctx", None), ast.Store)]
    found |= {node.id for node in stored if isinstance(node, ast.Name)}
    return found | {n.attr for n in stored if isinstance(n, ast.Attribute) and is_self(n.value)}


def foreign(path):
    """Accesses of private names that the module does not define."""
    tree = ast.parse(path.read_text())
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{n.name}" for n in node.names if private(n.name))
        elif not isinstance(node, ast.Attribute) or is_self(node.value) or node.attr in own:
            continue
        elif private(node.attr):
            yield ast.unparse(node)


def test_no_module_uses_a_private_name_of_another():
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in sorted(SOURCE.rglob("*.py"))
        for name in foreign(path)
    }
    assert {each for each in found if each[0] not in TEMPORARY} == OUTSIDE


def test_no_method_is_a_stub_of_a_base_class():
    stubs = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted((SOURCE / "clusterer").rglob("*.py"))
        if "NotImplementedError" in path.read_text()
    ]
    assert stubs == []


def documented(method):
    section = re.search(r"^Args:\n((?:(?:    .*)?\n?)+)", inspect.getdoc(method) or "", re.M)
    return set(re.findall(r"^    (\w+): ", section[1] if section else "", re.M))


def methods(kind):
    return [
        name
        for name, _ in inspect.getmembers(kind, callable)
        if not name.startswith("_") or name == "__init__"
    ]


@pytest.mark.parametrize("name", methods(Links))
def test_every_parameter_of_links_is_documented(name):
    method = getattr(Links, name)
    parameters = set(inspect.signature(method).parameters) - {"self"}
    assert parameters == documented(method)
