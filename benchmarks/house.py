"""Measure the structure of a source tree: files, lines, public names, call paths, documentation.

    python benchmarks/house.py [TREE ...]

Prints a table with a column for each tree (the tree of this file if none is given). The names of
modules are found by search, so that older trees can be measured as well.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
THRESHOLDS = (0.7, 0.6, 0.9)
VERB = "ignore"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


# The text of the source


def modules(tree: Path) -> dict[Path, ast.Module]:
    """Parse every Python file of the package."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(sources(tree))}


def sources(tree: Path) -> list[Path]:
    """Return the Python files of the package."""
    return list((tree / "src").rglob("*.py"))


def lines(tree: Path) -> dict[Path, int]:
    """Return the number of lines of each file."""
    return {path: len(path.read_text("utf-8").splitlines()) for path in sources(tree)}


def function_lengths(tree: Path) -> list[int]:
    """Return the lines of the body of each function, without its docstring."""
    found = []
    for module in modules(tree).values():
        for node in ast.walk(module):
            if isinstance(node, FUNCTIONS):
                body = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
                found.append(node.end_lineno - body[0].lineno + 1 if body else 0)
    return sorted(found)


def p90(values: list[int]) -> int:
    """Return the 90th percentile of sorted values."""
    return values[int(0.9 * len(values))]


def stubs(tree: Path) -> list[str]:
    """Return the places that raise NotImplementedError."""
    return [
        f"{path.relative_to(tree)}:{node.lineno}"
        for path, module in modules(tree).items()
        for node in ast.walk(module)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
    ]


def spellings(tree: Path, verb: str = VERB) -> list[str]:
    """Return the modules that spell out a verb: define it, call it, or name it as a command."""
    return [
        str(path.relative_to(tree))
        for path, module in modules(tree).items()
        if any(spells(node, verb) for node in ast.walk(module))
    ]


def spells(node: ast.AST, verb: str) -> bool:
    """Return whether a node defines a function, class or field of this name, or uses the name.

    An option of another library, such as `numpy.errstate(over="ignore")`, is not a use.
    """
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return node.name.lower() == verb
    if isinstance(node, ast.Attribute):
        return node.attr == verb
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id == verb
    if isinstance(node, ast.keyword):
        return node.arg == verb
    names = [] if isinstance(node, ast.Call) and is_filter(node) else ast.iter_child_nodes(node)
    return any(isinstance(child, ast.Constant) and child.value == verb for child in names)


def is_filter(node: ast.Call) -> bool:
    """Return whether a call is one of `warnings.simplefilter` or `warnings.filterwarnings`."""
    return isinstance(node.func, ast.Attribute) and "filter" in node.func.attr


def foreign_underscores(tree: Path) -> list[str]:
    """Return uses of an underscore name of linkstream outside of the file that defines it."""
    parsed = modules(tree)
    defined = {path: set(private_names(module)) for path, module in parsed.items()}
    known = set().union(*defined.values())
    return [
        f"{path.relative_to(tree)}:{node.lineno} {name}"
        for path, module in parsed.items()
        for node, name in private_uses(module)
        if name in known - defined[path]
    ]


def is_private(name: str) -> bool:
    """Return whether a name starts with one underscore."""
    return name.startswith("_") and not name.startswith("__") and name != "_"


def private_names(module: ast.Module) -> Iterator[str]:
    """Yield the underscore names that a module defines."""
    for node in ast.walk(module):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and is_private(node.name):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and is_private(node.id):
            yield node.id
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and is_set(node):
            yield node.attr


def private_uses(module: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the underscore names that a module uses on other objects, or imports."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not own(node):
            yield node, node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("linkstream."):
            yield from ((node, alias.name) for alias in node.names if is_private(alias.name))


def own(node: ast.Attribute) -> bool:
    """Return whether an attribute is one of `self` or `cls`."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def is_set(node: ast.Attribute) -> bool:
    """Return whether a statement sets an attribute of `self` or `cls`."""
    return isinstance(node.ctx, ast.Store) and own(node)


# The running package


def use(tree: Path) -> None:
    """Import linkstream from a tree, whatever is installed."""
    sys.meta_path[:] = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
    for name in [name for name in sys.modules if name.split(".")[0] == "linkstream"]:
        del sys.modules[name]
    sys.path.insert(0, str(tree / "src"))
    import linkstream

    seen = Path(linkstream.__file__).resolve()
    if not seen.is_relative_to(tree):
        sys.exit(f"linkstream was imported from {seen}, not from {tree}")


def public_names(kind: type) -> int:
    """Return the number of public names of a class."""
    return len([name for name in dir(kind) if not name.startswith("_")])


class Trace:
    """Record the file of every call into linkstream, over all threads that start meanwhile."""

    def __init__(self, tree: Path) -> None:
        self.root = str(tree / "src")
        self.calls: list[str] = []
        self.recording = False

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        """Record a call; Python calls this at the start of every function."""
        if self.recording and frame.f_code.co_filename.startswith(self.root):
            self.calls.append(frame.f_code.co_filename)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Trace this thread, and the threads that start meanwhile."""
        threading.settrace(self)
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    def path(self, call: Callable[[], Any]) -> str:
        """Return the files and the changes from file to file that a call goes through."""
        self.calls = []
        self.recording = True
        call()
        self.recording = False
        jumps = sum(one != other for one, other in pairwise(self.calls))
        return f"{len(set(self.calls))} files, {jumps} jumps"


def vector(*first: float) -> list[float]:
    """Return a vector of dimension 8 that starts with the given numbers."""
    return [*first, *[0.0] * (8 - len(first))]


FIRST = [vector(1.0), vector(0.0, 1.0), vector(0.0, 0.0, 1.0)]
JOINS = vector(0.0, 0.05, 1.0)


def paths(tree: Path) -> dict[str, str]:
    """Trace four calls on the reference engine; every added vector joins a subcluster."""
    from linkstream import Links, Thresholds
    from linkstream.store import Store

    trace, found = Trace(tree), {}
    with tempfile.TemporaryDirectory() as folder, trace.installed():
        links = Links(*THRESHOLDS, engine="reference")
        for x in FIRST:
            links.add(x)
        found["Links.add"] = trace.path(lambda: links.add(JOINS))
        found["Links.same"] = trace.path(lambda: links.same(0, 1))
        at = Path(folder) / "a.links"
        with Store.open(at, thresholds=Thresholds(*THRESHOLDS), engine="reference") as store:
            for x in FIRST:
                store.add(x)
            found["Store.add"] = trace.path(lambda: store.add(JOINS))
        found["HTTP POST"] = posted(trace, Path(folder) / "data")
    return found


def posted(trace: Trace, data: Path) -> str:
    """Trace one POST of a vector to a service in a thread of this process."""
    settings = of_service("Settings")(data=data, port=0, threads=1, engine="reference")
    with of_service("background")(settings) as address:
        url = f"{address.rstrip('/')}/v1/namespaces/a"
        names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
        thresholds = dict(zip(names, THRESHOLDS, strict=True))
        send("PUT", url, {"thresholds": thresholds})
        for x in FIRST:
            send("POST", f"{url}/vectors", {"vector": x})
        return trace.path(lambda: send("POST", f"{url}/vectors", {"vector": JOINS}))


def of_service(name: str) -> Any:
    """Return a name of the service, from the module that defines it."""
    import linkstream.service as service

    for found in pkgutil.walk_packages(service.__path__, "linkstream.service."):
        value = getattr(importlib.import_module(found.name), name, None)
        if getattr(value, "__module__", None) == found.name:
            return value
    raise LookupError(f"linkstream.service defines no {name}")


def send(method: str, url: str, body: object) -> None:
    """Send one request, and read its answer."""
    content = {"Content-Type": "application/json"}
    text = json.dumps(body).encode()
    request = urllib.request.Request(url, text, content, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def documented() -> str:
    """Return the share of public parameters that are documented."""
    sys.path.insert(0, str(HERE / "tests"))
    import documented as check

    found = check.parameters()
    known = sum(parameter.documented for parameter in found)
    return f"{100 * known / len(found):.0f} % of {len(found)}"


def measure(tree: Path) -> dict[str, str]:
    """Return all measures of a tree."""
    length = lines(tree)
    found: dict[str, Any] = {
        "Python files of src": len(length),
        "files under 50 lines": sum(n < 50 for n in length.values()),
        "longest file": max(length.values()),
        "lines of src": sum(length.values()),
        "90th percentile of functions": p90(function_lengths(tree)),
        "base-class stubs": len(stubs(tree)),
        "foreign underscores": len(foreign_underscores(tree)),
        f"modules that spell out {VERB}": len(spellings(tree)),
    }
    use(tree)
    from linkstream import Links
    from linkstream.client import Client
    from linkstream.store import Store

    for kind in (Links, Store, Client):
        found[f"public names of {kind.__name__}"] = public_names(kind)
    found |= paths(tree)
    found["parameters documented"] = documented()
    return {name: str(value) for name, value in found.items()}


def table(trees: list[Path]) -> str:
    """Return the measures of the trees as a Markdown table; each runs in its own process."""
    columns = []
    for tree in trees:
        words = [sys.executable, "-W", "ignore", __file__, "--json", str(tree)]
        columns.append(json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout))
    lines = [
        f"| measure | {' | '.join(tree.name for tree in trees)} |",
        "|---|" + "---|" * len(trees),
    ]
    lines += [
        f"| {name} | {' | '.join(column[name] for column in columns)} |" for name in columns[0]
    ]
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """Print the table, or the measures of one tree as JSON."""
    if words[:1] == ["--json"]:
        print(json.dumps(measure(Path(words[1]).resolve())))
    else:
        print(table([Path(word).resolve() for word in words] or [HERE]))


if __name__ == "__main__":
    main(sys.argv[1:])
