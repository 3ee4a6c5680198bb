"""Messages of the command line name commands and options, not Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from cli.command import refused, run
from linkstream.cli import outcome, phrasing

SOURCE = Path(phrasing.__file__).parents[1]
STORE = "people.links"

# A call, an argument by name, a class or a constant of Python, a module, an attribute.
PYTHON = re.compile(
    r"\w\(|(?<![?&\w])[a-z]\w*=(?!…)|\b(Links|Space|Store|Batch|None|True|False|"
    r"numpy|dtype|clusterer|Traceback|Error)\b|\b[a-z]+_[a-z_]+\b|`"
)
# Functions that make an error from seen, expected and remedy by position.
POSITIONAL = ("file_error", "usage_error")

# Said by hand: what --set and --scope are given.
ALLOWED = ("body_max=", "people=write", "ge2e_", "store.json", "shape (")

# What no command calls, or calls with values of its own.
ELSEWHERE = (
    *("adapters/", "client/", "scaleout/", "service/", "contingency.py", "metrics.py"),
    *("clusterer/absorb.py", "engine/choice.py", "engine/event_values.py", "paper/generative.py"),
    *("clusterer/confidence.py", "paper/lemmas.py", "paper/sphere.py"),
    *("plots/graphs.py", "plots/reliability.py", "plots/timelines.py"),
)
NEVER = (
    "Leave cluster= and weight= out: the clusterer knows both.",
    "Pass the parameters of the Links method of this name.",
    "Leave such vectors out, or ask about them with predict().",
    "Build it with linkstream.Space(mean=..., model=...).",
    "Build them with Thresholds(cluster_similarity, ...).",
    "None takes those of the clusterer.",
    "Absorb it as it is, into a clusterer made with track_vectors=True.",
    "Leave track_vectors=True; vectors are then kept too, unless you say otherwise.",
    "1 is a vector of full quality; 0 asks without learning.",
    "Vectors have keys of their own in a Store.",
    "Call prepare before the first row is read.",
    "Use a new key for each call, and the same key to retry a call.",
    "Use a new key for each call.",
    "Pass one array to add_many().",
    "Use None for a vector without a payload.",
    "Name the encoder, such as 'ge2e'.",
    "Pass the number of coordinates of a vector of the encoder.",
    "Leave dimension= out: the mean vector fixes it.",
    "to= undoes all changes from an event on",
    "Use the name of a command, not of a person",
    "Pass the path and open it there; backup() writes a copy of the file.",
    "Take vectors of many more identities of the same encoder",
)


def text_of(node):
    """Return the text of an expression; values known only at run time become a number."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "limit" if ast.unparse(node.value) == "name" else "7"
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.IfExp):
        return text_of(node.body)
    return "7"


def errors_of(path):
    """Return seen, expected and remedy of every error that a file raises."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            named = {word.arg: word.value for word in node.keywords}
            if {"expected", "remedy"} <= named.keys() and node.args:
                parts = [node.args[0], named["expected"], named["remedy"]]
                yield node.lineno, [text_of(part) for part in parts]
            elif getattr(node.func, "id", "") in POSITIONAL and len(node.args) == 3:
                yield node.lineno, [text_of(part) for part in node.args]


def library_errors():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(ELSEWHERE):
            for line, parts in errors_of(path):
                if not parts[2].startswith(NEVER):
                    yield f"{name}:{line}", parts


def python_in(words):
    for allowed in ALLOWED:
        words = words.replace(allowed, "")
    found = PYTHON.search(re.sub(r"'[^']*'", "''", words))
    return found and found[0]


def test_error_messages_of_commands_contain_no_python():
    running = outcome.begin()
    running.flags = {"limit": "--limit"}
    left = {}
    for place, (seen, expected, remedy) in library_errors():
        error = phrasing.LinkstreamError(seen, expected=expected, remedy=remedy)
        words = phrasing.sentence(error)
        if python_in(words):
            left[place] = (python_in(words), words)
    assert not left, "add these to the tables of linkstream/cli/phrasing.py"


def test_every_translated_phrase_occurs_in_an_error_of_the_library():
    said = "\n".join(
        re.sub(r'"\s*\n?\s*f?"', "", path.read_text("utf-8"))
        for path in SOURCE.rglob("*.py")
        if path.name != "phrasing.py"
    ).replace('\\"', '"')
    assert [words for words in phrasing.PHRASES if words not in said] == []


FAILING = [
    ("cluster", "."),
    ("cluster", "voices.npy"),
    ("cluster", "voices.npy", "--preset", "nope"),
    ("cluster", "voices.npy", "--preset", "ge2e", "--granularity", "window"),
    ("cluster", "voices.npy", "--preset", "ge2e", "--granularity", 7),
    ("cluster", "voices.npy", "--granularity", "windows"),
    ("cluster", "voices.npy", "--store", STORE, "--granularity", "windows"),
    ("levels", "voices.npy", "--preset", "arcface"),
    ("levels", "voices.npy", "--preset", "nope"),
    ("levels", "voices.npy", "--show", "text"),
    ("levels", "none.npy"),
    ("levels", "empty.csv"),
    ("calibrate", "voices.npy", "--preset", "nope"),
    ("calibrate", "voices.npy", "--preset", "arcface"),
    ("cluster", "none.npy", "--preset", "ge2e"),
    ("cluster", "voices.npy", "--store", STORE, "--preset", "arcface"),
    ("cluster", "voices.npy", "--store", STORE, "--heal", "join"),
    ("cluster", "voices.npy", "--store", STORE, "--heal", "never"),
    ("cluster", "voices.npy", "--store", STORE, "--evidence", "none"),
    ("cluster", "voices.npy", "--store", STORE, "--no-track"),
    ("cluster", "voices.npy", "--store", STORE, "--save", "saved"),
    ("cluster", "voices.npy", "--store", "no/where.links", "--preset", "ge2e"),
    ("cluster", "voices.npy", "--column", "text", "--preset", "ge2e"),
    ("cluster", "voices.npz", "--key", "Z", "--preset", "ge2e"),
    ("cluster", "other.npy", "--store", STORE),
    ("cluster", "voices.npy", "--preset", "ge2e", "--cluster-similarity", 0.5),
    ("import", "empty.csv", "new.links"),
    ("import", ".", "new.links"),
    ("import", "none", "new.links"),
    ("export", STORE, "table.xlsx"),
    ("export", STORE, "voices.npz"),
    ("export", STORE, "no/where.csv"),
    ("export", STORE, "table.csv", "--packing", "zip"),
    ("inspect", "missing.links"),
    ("inspect", "empty.csv"),
    ("inspect", "."),
    ("inspect",),
    ("inspect", STORE, "--cluster", 99999),
    ("inspect", STORE, "--limit", 0),
    ("name", STORE, 0),
    ("name", STORE, 0, ""),
    ("name", STORE, 1, "Ann"),
    ("name", STORE, 0, "Bob"),
    ("merge", STORE, "Zed", 1),
    ("merge", STORE, 0),
    ("merge", STORE, 0, 99999),
    ("merge", STORE, 0, 1, "--of", "people"),
    ("merge", STORE, 3, 6),
    ("split", STORE, 0, 0),
    ("split", STORE, 0, "x"),
    ("split", STORE, 0, 99999),
    ("move", STORE, 7, 99999),
    ("move", STORE, 99999, 0),
    ("move", STORE, "x", 0),
    ("forget", STORE),
    ("forget", STORE, 0),
    ("forget", STORE, "--vector", 99999, "--yes"),
    ("compact", STORE),
    ("undo", STORE, "--to", 99999),
    ("undo", "missing.links"),
    ("explain", STORE),
    ("explain", STORE, "[1,2]"),
    ("explain", STORE, "[1,"),
    ("explain", STORE, "--vector", 99999),
    ("explain", STORE, "voices.npy", "--row", 99999),
    ("enrol", STORE, "", "voices.npy"),
    ("enrol", STORE, "Bea", "none.npy"),
    ("enrol", STORE, "Bea", "other.npy"),
    ("calibrate", "voices.npy", "--same", "none.csv"),
    ("calibrate", "voices.npy", "--same", "same.csv"),
    ("calibrate", "voices.npy", "--confidence", 2),
    ("tune", "voices.npz", "--trials", 0),
    ("tune", "voices.npy"),
    ("tune", "voices.npz", "--labels", "X"),
    ("diagnose", "voices.npz", "--thresholds", 2, 0.5, 0.5),
    ("plot", STORE, "--kind", "gif"),
    ("plot", STORE, "--only", "faces"),
    ("backup", STORE, "voices.npy"),
    ("backup", STORE, "no/where.links"),
    ("repair", "missing.links"),
    ("watch", "none", "--store", "new.links"),
    ("events", STORE, "--since", -1),
    ("serve", "--set", "nothing"),
    ("token", "create", "stores"),
    ("token", "revoke", "none", "x"),
    ("bench", "--sizes", "many"),
    ("demo", "--output", "picture"),
    ("culster",),
    ("inspect", STORE, "--bogus"),
]


@pytest.fixture(scope="module")
def place(template, tmp_path_factory):
    import shutil

    folder = tmp_path_factory.mktemp("messages") / "work"
    shutil.copytree(template, folder)
    (folder / "empty.csv").touch()
    np.save(folder / "other.npy", np.eye(8, dtype=np.float32))
    for words in (("name", STORE, 0, "Ann"), ("split", STORE, 3, 6, "--of", "clusters")):
        assert run(*words, cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize("words", FAILING, ids=lambda words: " ".join(map(str, words)))
def test_a_failing_command_prints_no_python(place, words):
    before = {path: path.stat().st_size for path in place.rglob("*") if path.is_file()}
    told = refused(run(*words, cwd=place))
    assert python_in(told.removeprefix("error: ")) is None, told
    assert str(place) not in told  # files are named as they were typed
    after = {path: path.stat().st_size for path in place.rglob("*") if path.is_file()}
    assert {path: size for path, size in after.items() if path.suffix != ".lock"} == {
        path: size for path, size in before.items() if path.suffix != ".lock"
    }


def test_text_in_a_column_of_a_table_names_the_options_for_columns(tmp_path):
    (tmp_path / "rows.csv").write_text("id,x0,x1,x2\na,1,2,3\nb,2,3,4\n")
    words = refused(run("cluster", "rows.csv", "--preset", "ge2e", cwd=tmp_path))
    assert "line 2, cell 1: 'a'; expected a number" in words
    assert "--payload" in words
    assert "--column" in words


def test_too_little_memory_to_phrase_an_error_is_said_in_fixed_words(monkeypatch, capsys):
    def fail(error):
        raise MemoryError

    monkeypatch.setattr(phrasing, "sentence", fail)
    assert outcome.fail(ValueError("anything")) == 2
    assert capsys.readouterr().err == f"error: {outcome.NO_MEMORY}\n"
