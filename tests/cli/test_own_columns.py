"""Commands store the vectors' own keys and times, show them, and take keys for numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli.command import json_lines, run
from linkstream.store import Store

OPTIONS = (
    *("--cluster-similarity", 0.75),
    *("--subcluster-similarity", 0.9),
    *("--pair-similarity-max", 0.9),
)
X = np.random.default_rng(2).standard_normal((2100, 8)).astype(np.float32)


def write(path, n, *, keys=lambda i: f"t-{i}"):
    rows = (
        {"embedding": X[i].tolist(), "ticket": keys(i), "when": f"2026-01-31T12:00:{i % 60:02}Z"}
        for i in range(n)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def cluster(folder, *more):
    own = ("--id-column", "ticket", "--time-column", "when")
    return run("cluster", "a.jsonl", "--store", "new.links", *own, *OPTIONS, *more, cwd=folder)


@pytest.fixture
def made(tmp_path):
    write(tmp_path / "a.jsonl", 30)
    assert cluster(tmp_path).returncode == 0
    return tmp_path


def test_rows_get_their_keys_and_times_once_also_when_a_file_has_grown(tmp_path):
    write(tmp_path / "a.jsonl", 1500)
    assert cluster(tmp_path).returncode == 0
    write(tmp_path / "a.jsonl", 2100)
    assert cluster(tmp_path).returncode == 0
    assert cluster(tmp_path).returncode == 0
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        assert store.n_vectors == 2100
        assert store.keys(range(2100)) == [f"t-{i}" for i in range(2100)]
        assert store.number("t-1777") == 1777
        assert str(store.times([61])[0]) == "2026-01-31T12:00:01.000000"
        store.verify()


def test_a_bad_key_is_refused_with_the_row_of_the_file(tmp_path):
    write(tmp_path / "a.jsonl", 2050, keys=lambda i: "t-3" if i == 2049 else f"t-{i}")
    done = cluster(tmp_path)
    assert done.returncode != 0
    assert "a.jsonl, row 2049 has the key 't-3' of vector 3" in done.stderr
    write(tmp_path / "a.jsonl", 2060, keys=lambda i: "\t" if i == 2055 else f"t-{i}")
    done = cluster(tmp_path, "--source", "other")
    assert "row 0 has the key 't-0' of vector 0" in done.stderr
    (tmp_path / "new.links").unlink()
    assert "a.jsonl, row 2055 has the key '\\t'" in cluster(tmp_path).stderr


def test_keys_need_a_store(tmp_path):
    write(tmp_path / "a.jsonl", 3)
    done = run("cluster", "a.jsonl", "--id-column", "ticket", *OPTIONS, cwd=tmp_path)
    assert done.returncode != 0
    assert "--id-column without --store" in done.stderr


def test_commands_take_keys_for_numbers(made):
    def store():
        return Store.open(made / "new.links", read_only=True)

    with store() as opened:
        labels = opened.labels()
    other = int(np.flatnonzero(labels != labels[0])[0])
    (told,) = json_lines(run("move", "new.links", f"t-{other}", int(labels[0]), cwd=made).stdout)
    assert (told["vector"], told["cluster"]) == (other, int(labels[0]))
    (pair,) = json_lines(
        run("explain", "new.links", "--pair", "t-0", f"t-{other}", cwd=made).stdout
    )
    assert pair["clusters"][0] == pair["clusters"][1]
    assert run("explain", "new.links", "--vector", "id:t-3", cwd=made).returncode == 0
    assert run("split", "new.links", "t-0", f"t-{other}", cwd=made).returncode == 0
    assert run("merge", "new.links", "t-5", "6", "--of", "vectors", cwd=made).returncode == 0
    (gone,) = json_lines(run("forget", "new.links", "--vector", "t-9", "--yes", cwd=made).stdout)
    assert gone["vector"] == 9
    with store() as opened:
        assert opened.labels()[9] == -1
        assert opened.labels()[5] == opened.labels()[6]
    done = run("forget", "new.links", "--vector", "t-9", "--yes", cwd=made)
    assert done.returncode != 0
    assert "no vector has" in done.stderr


def test_inspect_events_and_export_show_keys_and_times(made):
    with Store.open(made / "new.links", read_only=True) as store:
        cluster_of = int(store.labels()[3])
    (told,) = json_lines(run("inspect", "new.links", "--cluster", cluster_of, cwd=made).stdout)
    member = next(each for each in told["members"] if each["vector"] == 3)
    assert (member["id"], member["time"]) == ("t-3", "2026-01-31T12:00:03Z")
    shown = run("inspect", "new.links", "--cluster", cluster_of, "--format", "text", cwd=made)
    assert "t-3" in shown.stdout
    assert "2026-01-31T12:00:03Z" in shown.stdout
    rows = json_lines(run("export", "new.links", "-", cwd=made).stdout)
    assert [(row["id"], row["time"]) for row in rows[:2]] == [
        ("t-0", "2026-01-31T12:00:00Z"),
        ("t-1", "2026-01-31T12:00:01Z"),
    ]
    events = json_lines(run("events", "new.links", cwd=made).stdout)
    arrivals = [each for each in events if each["kind"] in ("created", "joined", "linked")]
    assert [each["id"] for each in arrivals] == [f"t-{i}" for i in range(30)]
    assert "id 't-4'" in run("events", "new.links", "--format", "text", cwd=made).stdout


def test_an_exported_table_is_read_back_with_its_keys_and_times(made):
    assert run("export", "new.links", "b.jsonl", "--vectors", cwd=made).returncode == 0
    own = ("--id-column", "id", "--time-column", "time")
    done = run("cluster", "b.jsonl", "--store", "b.links", *own, *OPTIONS, cwd=made)
    assert done.returncode == 0, done.stderr
    with (
        Store.open(made / "new.links", read_only=True) as one,
        Store.open(made / "b.links", read_only=True) as other,
    ):
        assert one.described(range(30)) == other.described(range(30))


def test_events_name_the_key_of_the_vector_that_they_are_about(made):
    assert run("forget", "new.links", "--vector", "t-9", "--yes", cwd=made).returncode == 0
    assert run("undo", "new.links", cwd=made).returncode == 0
    with Store.open(made / "new.links") as store:
        store.undo(step=True)  # the file
        store.add_many(X[100:103], ids=["new", None, "t-2"])
        events = store.events()
        keys = store.event_keys(events)
    arrivals = [
        (event.sequence, key)
        for event, key in zip(events, keys, strict=True)
        if event.kind in ("created", "joined", "linked")
    ]
    assert [key for _, key in arrivals] == [None] * 30 + ["new", None, "t-2"]
