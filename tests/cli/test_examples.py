"""The example of every help text runs."""

from __future__ import annotations

import inspect
import shlex

import numpy as np
import pytest

from cli.command import run
from linkstream.cli.app import COMMANDS, function_of
from linkstream.store import Store
from store.operations import DIMENSION, MODEL, THRESHOLDS


def example_of(name):
    """Return the words of the example, which can span several lines."""
    text = inspect.getdoc(function_of(name))
    return shlex.split(text.partition("Example: linkstream ")[2].partition("\n\n")[0])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_the_help_runs(folder, name):
    words = example_of(name)
    assert words[0] == name
    if name == "cluster":
        (folder / "people.links").unlink()
    if name == "search":
        run("search", "people.links", "--on", cwd=folder)
    if name in ("undo", "redo"):
        run("name", "people.links", 0, "Ann", cwd=folder)
    if name == "redo":
        run("undo", "people.links", cwd=folder)
    if name in ("confidence", "judge"):
        with Store.open(folder / "tuned.links", preset="ge2e-windows", confidence=True) as store:
            store.add_many(np.load(folder / "voices.npy")[:40])
    if name == "import":
        run("export", "people.links", "people-files", cwd=folder)
    if name in ("accept", "held", "assign"):
        store_with_doubts(folder / "people.links")
    before = {path.name for path in folder.iterdir()}
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr if name != "demo" else "") == (0, "")
    assert done.stdout
    made = {path.name for path in folder.iterdir()} - before
    for target in {word for word in words if word not in before} & MADE:
        assert target in made


def store_with_doubts(path):
    """Replace a store by one with a model, in which vector 7 is held."""
    path.unlink(missing_ok=True)
    rows = np.eye(DIMENSION, dtype=np.float32)
    rows[7] = 0.75 * rows[0] + 0.66 * rows[7]
    with Store.open(path, thresholds=THRESHOLDS, confidence=MODEL) as store:
        store.add(rows[0])
        store.accept(0.95, new=0)
        assert store.add_many(rows[1:]).tolist() == [1, 2, 3, 4, 5, 6, -1]


# What examples make must be there afterwards.
MADE = {
    *("people.links", "people.jsonl", "people-monday.links", "restored.links"),
    *("pictures", "voices.png", "landscape.png", "monday.rttm"),
}
