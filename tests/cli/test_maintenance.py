"""`verify`, `repair`, `compact`, `backup`, `export`, `import`, `plot`, `bench`."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from cli.command import json_lines, refused, run, run_on_a_terminal
from linkstream.store import Store

STORE = "people.links"


def said(folder, *words):
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def hash_of(path):
    with Store.open(path, read_only=True) as store:
        return store.state_hash()


def test_verify_reports_what_it_read(folder):
    record = said(folder, "verify", STORE)
    assert (record["sound"], record["vectors"], record["operations"]) == (True, 300, 1)
    _, shown = run_on_a_terminal("verify", STORE, cwd=folder)
    assert "Sound: 1 operations, 300 vectors" in shown


def test_repair_makes_a_copy_and_keeps_the_valid_records(folder):
    run("cluster", "arrivals/monday.npy", "--store", STORE, cwd=folder)
    path = folder / STORE
    before = path.read_bytes()
    record = said(folder, "repair", STORE, "--copy", "aside.links")
    assert record["vectors"] == 340
    assert (folder / record["copy"]).exists() or list(folder.glob("aside*"))
    assert before in [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert said(folder, "verify", STORE)["vectors"] == 340


@pytest.mark.parametrize("command", ["inspect", "verify", "repair"])
@pytest.mark.parametrize("name", ["voices.npy", "voices.jsonl"])
def test_a_file_that_is_not_a_store_is_refused_and_leaves_no_files(folder, command, name):
    before = {file.name for file in folder.iterdir()}
    done = run(command, name, cwd=folder)
    assert done.returncode == 2
    assert "not a linkstream store" in done.stderr
    assert {file.name for file in folder.iterdir()} == before


def test_a_damaged_log_has_its_own_exit_code_and_can_be_repaired(folder):
    with Store.open(folder / STORE) as store:
        store.remove(0)
        store.remove(1)
        log = bytearray((folder / f"{STORE}-wal").read_bytes())
        files = {f"{STORE}-wal": log, STORE: (folder / STORE).read_bytes()}
    log[100] ^= 1
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for command in ("inspect", "verify"):
        done = run(command, STORE, cwd=folder)
        assert done.returncode == 5
        assert "the log" in done.stderr
    assert said(folder, "repair", STORE)["kept"] >= 1
    assert said(folder, "verify", STORE)["sound"]


def left_open(folder):
    """Make a store whose process ended without closing it; its calls are in the log."""
    child = os.fork()
    if child == 0:
        store = Store.open(folder / "left.links", preset="ge2e-windows")
        store.add_many(np.load(folder / "voices.npy")[:40])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return folder / "left.links"


def test_verify_and_inspect_of_a_damaged_store_keep_its_log_and_repair_uses_it(folder):
    path = left_open(folder)
    with path.open("r+b") as file:  # its last page is in the log as well
        file.truncate(path.stat().st_size // 2)
    log = path.with_name("left.links-wal")
    before = path.read_bytes(), log.read_bytes()
    for command in ("verify", "inspect", "events"):
        assert run(command, "left.links", cwd=folder).returncode == 5
        assert (path.read_bytes(), log.read_bytes()) == before
    record = said(folder, "repair", "left.links")
    assert (record["kept"], record["lost"], record["vectors"]) == (1, 0, 40)
    assert said(folder, "verify", "left.links")["sound"]


def test_a_repair_that_saves_nothing_fails_and_does_not_advise_repair(folder):
    path = left_open(folder)
    log = path.with_name("left.links-wal")
    row = np.load(folder / "voices.npy")[0].tobytes()[:64]
    log.write_bytes(log.read_bytes().replace(row, bytes(64)))
    before = path.read_bytes(), log.read_bytes()
    done = run("repair", "left.links", cwd=folder)
    assert (done.returncode, done.stdout) == (5, "")
    assert "nothing can be saved" in done.stderr
    assert "linkstream repair" not in done.stderr
    assert (path.read_bytes(), log.read_bytes()) == before


def test_compact_reports_how_much_it_saved(folder):
    said(folder, "forget", STORE, 0, "--yes")
    record = said(folder, "compact", STORE, "--yes")
    assert record["bytes"] <= record["bytes_before"]
    refused(run("undo", STORE, cwd=folder))


def test_a_backup_is_the_same_store_and_replaces_nothing(folder):
    said(folder, "backup", STORE, "copy.links")
    assert hash_of(folder / "copy.links") == hash_of(folder / STORE)
    refused(run("backup", STORE, "copy.links", cwd=folder))


def test_a_backup_to_stdout_is_refused_and_makes_no_file(folder):
    done = refused(run("backup", STORE, "-", cwd=folder))
    assert "stdout" in done
    assert not (folder / "-").exists()


def test_an_export_to_stdout_ignores_a_file_named_with_a_dash(folder):
    (folder / "-").write_text("mine")
    done = run("export", STORE, "-", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json_lines(done.stdout)) == 300
    assert (folder / "-").read_text() == "mine"


def test_an_export_is_imported_as_the_same_store(folder):
    said(folder, "name", STORE, 0, "Ann")
    said(folder, "export", STORE, "files")
    record = said(folder, "import", "files", "again.links")
    assert (record["vectors"], hash_of(folder / "again.links")) == (300, hash_of(folder / STORE))
    refused(run("import", "files", "again.links", cwd=folder))


@pytest.mark.parametrize("name", ["table.jsonl", "table.csv", "table.npz", "table.parquet"])
def test_a_table_has_a_row_for_each_vector(folder, name):
    assert said(folder, "export", STORE, name)["vectors"] == 300
    assert (folder / name).stat().st_size > 1000


def test_a_table_can_include_the_vectors(folder):
    said(folder, "export", STORE, "with.npz", "--vectors")
    with np.load(folder / "with.npz", allow_pickle=False) as table:
        assert any(array.shape == (300, 256) for array in table.values())


def test_plot_writes_four_pictures_or_the_requested_ones(folder):
    written = said(folder, "plot", STORE, "--output", "pictures")["pictures"]
    assert [path.rpartition("-")[2] for path in written] == [
        *("graph.png", "timeline.png", "sizes.png", "margins.png")
    ]
    for path in written:
        assert (folder / path).read_bytes().startswith(b"\x89PNG")
    assert said(folder, "plot", STORE, "--only", "sizes", "--kind", "svg")["pictures"] == [
        "people-sizes.svg"
    ]


@pytest.mark.parametrize("words", [("--only", "graph,faces"), ("--kind", "gif")])
def test_plot_refuses_unknown_pictures(folder, words):
    refused(run("plot", STORE, *words, cwd=folder))


@pytest.mark.parametrize("output", ["voices.npy", "voices.npy/pictures"])
def test_plot_into_a_file_says_that_a_folder_is_expected(folder, output):
    words = refused(run("plot", STORE, "--output", output, cwd=folder))
    assert "is a file; expected a folder" in words
    assert "Choose another folder." in words


def test_bench_measures_and_leaves_nothing_behind(tmp_path):
    words = ("bench", "--vectors", 1000, "--dimension", 16, "--sizes", "10,50")
    lines = json_lines(run(*words, cwd=tmp_path).stdout)
    assert [line["what"] for line in lines] == 2 * ["add", "add_many", "store", "store, one by one"]
    assert {line["subclusters"] for line in lines[:4]} == {10}
    assert all(line["vectors_per_s"] > 0 for line in lines)
    assert list(tmp_path.iterdir()) == []
    refused(run("bench", "--sizes", "many", cwd=tmp_path))
