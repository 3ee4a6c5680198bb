"""A store with the clustered voices of five speakers."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from cli.command import run
from linkstream.data import voice_halves

ROWS = 300


def write_pairs(folder, y, n=40):
    """Write pairs of rows of one speaker and of two, for `linkstream calibrate`."""
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(len(y), size=(20 * n, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    alike = y[pairs[:, 0]] == y[pairs[:, 1]]
    for name, chosen in (("same", pairs[alike]), ("different", pairs[~alike])):
        few = rng.permutation(chosen)[:n]
        lines = "".join(f"{a},{b}\n" for a, b in few.tolist())
        (folder / f"{name}.csv").write_text(f"one,other\n{lines}")


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("template")
    voices = voice_halves()[1]
    np.save(folder / "voices.npy", voices.X[:ROWS])
    np.savez(folder / "voices.npz", X=voices.X, y=voices.y, t=voices.t)
    (folder / "arrivals").mkdir()
    np.save(folder / "arrivals" / "monday.npy", voices.X[ROWS : ROWS + 40])
    write_pairs(folder, voices.y[:ROWS])
    with (folder / "voices.jsonl").open("w") as lines:
        for number, x in enumerate(voices.X[:ROWS].tolist()):
            record = {"embedding": x, "text": f"window {number}", "file": "five.wav"}
            lines.write(json.dumps(record) + "\n")
    options = ("--store", "people.links", "--preset", "ge2e-windows", "--payload", "text,file")
    done = run("cluster", "voices.jsonl", *options, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture
def folder(template, tmp_path):
    """Return a folder with the store people.links of 300 vectors and its source files."""
    shutil.copytree(template, tmp_path / "work")
    return tmp_path / "work"
