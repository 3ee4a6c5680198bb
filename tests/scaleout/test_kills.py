"""Killed with −9 in mid-batch: an executor, a Python worker, the driver. Each vector counts once.

200 keys of 500 vectors go through a driver in a process of its own, on a cluster of two executors
that are processes, too. A batch is under way when Spark has written what is in it (offsets), tasks
have begun files that no batch of the sink lists, and neither the sink nor the query has committed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from linkstream import Links
from scaleout import driver as script

KEYS, EACH, DIMENSION = 200, 500, 16
SOURCE = Path(script.__file__).parents[2] / "src"
PATIENCE = 240  # seconds that one step may take on a busy machine


# Processes


def children():
    """Return the children of each process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it has just ended
        found.setdefault(parent, []).append(int(stat.parent.name))
    return found


def below(pid):
    """Return all descendants of a process, with command lines and parents."""
    tree, found, waiting = children(), {}, [pid]
    while waiting:
        parent = waiting.pop()
        for child in tree.get(parent, []):
            try:
                line = Path(f"/proc/{child}/cmdline").read_bytes().decode().replace("\0", " ")
            except OSError:
                continue
            found[child] = (line, parent)
            waiting.append(child)
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Driver:
    """The driver script in a process group of its own."""

    def __init__(self, folder):
        self.folder, self.log = folder, folder / "driver.log"
        paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, script.__file__, str(folder), "local-cluster[2,1,1024]"],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                    "SPARK_HOME": str(spark_home(folder)),
                },
            )
        self.pid = self.process.pid

    def runs(self):
        if self.process.poll() not in (None, 0):
            raise AssertionError(self.log.read_text(errors="replace")[-4_000:])
        return self.process.returncode is None

    def executors(self):
        return sorted(
            pid for pid, (line, _) in below(self.pid).items() if "CoarseGrainedExecutorBack" in line
        )

    def workers(self):
        """Return the Python processes that run tasks: the children of a daemon."""
        there = below(self.pid)
        daemons = {pid for pid, (line, _) in there.items() if "pyspark.daemon" in line}
        return sorted(pid for pid in daemons if there[pid][1] in daemons)

    def kill(self):
        """Kill the driver and its descendants with −9."""
        others = below(self.pid)  # Python's daemons are groups of their own
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        for pid in others:
            kill(pid)

    def end(self):
        if self.process.poll() is None:
            self.kill()


def spark_home(folder):
    """Return the home of Spark, with a temporary folder for workers."""
    home = folder / "spark"
    if not home.exists():
        home.mkdir()
        (home / "work").mkdir()
        for part in Path(pyspark.__file__).parent.iterdir():
            if part.name != "work":
                (home / part.name).symlink_to(part)
    return home


# Batches in the checkpoint and the sink


def numbers(folder):
    """Return the batches in a log of Spark."""
    if not folder.is_dir():
        return set()
    return {int(path.name.split(".")[0]) for path in folder.iterdir() if path.name[0].isdigit()}


def under_way(folder):
    """Return the batch that has begun and is not committed, or None."""
    begun = numbers(folder / "checkpoint" / "offsets")
    done = numbers(folder / "checkpoint" / "commits") | numbers(folder / "out" / "_spark_metadata")
    open_ = begun - done
    assert len(open_) <= 1
    return open_.pop() if open_ else None


def listed(folder):
    """Return the files that the batches of the sink list."""
    logs = (folder / "out" / "_spark_metadata").glob("[0-9]*")
    lines = [line for log in logs for line in log.read_text().splitlines()[1:]]
    return {Path(json.loads(line)["path"]).name for line in lines}


def unlisted(folder):
    """Return the files of tasks that no batch of the sink lists."""
    return {path.name for path in (folder / "out").glob("*.parquet")} - listed(folder)


class Round:
    """One run of the stream and its kills."""

    def __init__(self, folder):
        self.folder, self.driver, self.kills = folder, Driver(folder), []

    def wait_until(self, holds):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = holds()
            if found is not None:
                return found
            if not self.driver.runs():
                raise AssertionError("the driver came to its end before")
            time.sleep(0.01)
        raise AssertionError(self.driver.log.read_text(errors="replace")[-4_000:])

    def mid_batch(self, after, before):
        """Wait until tasks of a batch after `after` write; return its number."""
        batch = under_way(self.folder)
        return (
            batch
            if batch is not None and batch > after and unlisted(self.folder) - before
            else None
        )

    def kill(self, what, delay=0.0):
        """Kill something in the middle of the next batch."""
        after = max((batch for _, batch in self.kills), default=0)  # the first batch warms up
        before = unlisted(self.folder)
        self.wait_until(lambda: self.mid_batch(after, before))
        time.sleep(delay)
        batch = under_way(self.folder)
        if what == "driver":
            self.driver.kill()
        else:
            there = self.driver.executors() if what == "executor" else self.driver.workers()
            assert there, f"no {what} there"
            # A single Python worker may be idle: kill all of them.
            killed = [kill(pid) for pid in (there[:1] if what == "executor" else there)]
            assert any(killed)
        if batch is not None and under_way(self.folder) == batch:  # it was, and it still is
            self.kills.append((what, batch))
        if what == "driver":
            self.driver = Driver(self.folder)

    def finish(self):
        self.wait_until(lambda: None if self.driver.runs() else True)


def stream(folder, files, seed=0):
    """Return vectors by key, and the same vectors mixed in files."""
    rng = np.random.default_rng(seed)
    people = rng.normal(size=(KEYS, 5, DIMENSION))
    people /= np.linalg.norm(people, axis=2, keepdims=True)
    who = rng.integers(5, size=(KEYS, EACH))
    noise = 0.9 * rng.normal(size=(KEYS, EACH, DIMENSION)) / np.sqrt(DIMENSION)
    vectors = (people[np.arange(KEYS)[:, None], who] + noise).astype(np.float32)
    (folder / "in").mkdir(parents=True)
    key, sequence = np.divmod(np.arange(KEYS * EACH), EACH)
    for place, some in enumerate(np.array_split(np.arange(EACH), files)):
        rows = rng.permutation(np.flatnonzero(np.isin(sequence, some)))
        columns = {
            "key": key[rows],
            "sequence": sequence[rows],
            "vector": pa.array(list(vectors[key[rows], sequence[rows]]), pa.list_(pa.float32())),
        }
        pq.write_table(pa.table(columns), folder / "in" / f"{place:03}.parquet")
    return vectors


@pytest.fixture
def begin(tmp_path):
    """Start a run of the stream; end its processes with the test."""
    begun = []

    def begin(folder, files):
        vectors = stream(tmp_path / folder, files)
        begun.append(Round(tmp_path / folder))
        return begun[-1], vectors

    yield begin
    for each in begun:
        each.driver.end()


def check_each_vector_once_with_the_ids_of_one_machine(folder, vectors):
    seen = pq.read_table(folder / "seen").sort_by([("key", "ascending"), ("sequence", "ascending")])
    assert seen["key"].to_pylist() == np.repeat(np.arange(KEYS), EACH).tolist()
    assert seen["sequence"].to_pylist() == list(range(EACH)) * KEYS
    assert seen["number"].to_pylist() == list(range(EACH)) * KEYS
    ids = seen["cluster"].to_numpy().reshape(KEYS, EACH)
    wrong = []
    for key in range(KEYS):
        links = Links.from_thresholds(script.THRESHOLDS, threads=1)
        if ids[key].tolist() != links.add_many(vectors[key]).tolist():
            wrong.append(key)
    assert wrong == []
    assert ids.max() > 5  # keys with something to decide


def test_killing_executor_worker_and_driver_in_mid_batch_changes_no_result(begin):
    run, vectors = begin("stream", files=7)
    left_behind = set()
    for what in ("executor", "driver", "worker"):
        run.kill(what)
        if not run.kills or run.kills[-1][0] != what:
            run.kill(what)  # the batch had ended just before
        left_behind |= unlisted(run.folder) if what == "driver" else set()
    run.finish()
    # Each of them in the middle of a batch of its own, by what was on the disk then.
    assert [what for what, _ in run.kills] == ["executor", "driver", "worker"]
    assert len({batch for _, batch in run.kills}) == 3
    assert "exited with code 137" in run.driver.log.read_text(errors="replace")  # 128 + 9
    said = [log.read_text(errors="replace") for log in (run.folder / "spark").rglob("stderr")]
    assert any("Python worker exited unexpectedly" in each for each in said)
    assert not left_behind & listed(run.folder)  # files of tasks that were cut off
    assert numbers(run.folder / "checkpoint" / "commits") == set(range(7))
    check_each_vector_once_with_the_ids_of_one_machine(run.folder, vectors)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_any_moment_change_no_result(begin, seed):
    rng = np.random.default_rng(seed)
    run, vectors = begin("stream", files=20)
    for what in rng.permutation(["executor", "driver", "worker"] * 4).tolist():
        run.kill(what, delay=float(rng.uniform(0.0, 1.0)))
    run.finish()
    in_time = Counter(what for what, _ in run.kills)
    assert min(in_time["executor"], in_time["driver"], in_time["worker"]) >= 1
    assert in_time.total() >= 6
    check_each_vector_once_with_the_ids_of_one_machine(run.folder, vectors)
