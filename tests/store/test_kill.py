"""Killed at any moment, a store has all that was acknowledged, and goes on as uninterrupted."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import StoreError
from linkstream.store import Store
from store.child import batch
from store.crash_harness import DIE_BEFORE, DIE_HALFWAY, Job, read, wait
from store.internals import AHEAD, told
from store.operations import THRESHOLDS, VERBS, Operation, Shadow, do, new, state_of

SIZES = (1, 32, 1_000)
# Undoing goes over the whole log, so it is rare where there are many vectors.
MANY = VERBS | {"add": 20, "add_many": 60, "undo": 1, "undo_to": 1, "settle": 0, "rebuild": 0}
CARED = MANY | {"undo": 0, "undo_to": 0, "compact": 15, "backup": 10}  # compacting ends undoing


@dataclass
class Ingest:
    """One store, killed again and again, beside a clusterer that nothing happens to."""

    folder: object
    seed: int
    verbs: dict = field(default_factory=lambda: MANY)
    way: str = "operations"
    options: dict = field(default_factory=dict)
    turns: int = 0
    done: int = 0
    acknowledged: int = 0  # calls
    vectors: int = 0  # of these
    early: int = 0  # kills before anything was done

    def __post_init__(self):
        how = {"sizes": SIZES, "verbs": self.verbs}
        if self.way == "feed":
            how = {"sizes": SIZES, "verbs": None}
        self.how, self.path = how, self.folder / "people.links"
        self.rng = np.random.default_rng([self.seed, 1])
        links = Links.from_thresholds(THRESHOLDS, threads=1, **self.options)
        kind = Shadow if self.way == "operations" else Fed
        self.shadow = kind(self.seed, links=links, **how)

    def kill(self, harness):
        """Start a child, kill it some time after its store has opened, compare."""
        record = str(self.folder / f"{self.turns}.record")
        job = Job(
            str(self.path),
            record,
            self.seed,
            self.done,
            way=self.way,
            early=400,
            options=self.options,
            **self.how,
        )
        pid = harness.start(job)
        wait(record, answers=int(self.rng.integers(-1, 9)))
        time.sleep(self.rng.exponential(0.02))
        os.kill(pid, signal.SIGKILL)
        assert harness.ended() == -signal.SIGKILL, read(record).notes
        self.turns += 1
        before, self.done = self.done, check(read(record), self.shadow, self.path, self.done)
        self.early += self.done - before <= 1
        answers = read(record).answers.values()
        self.acknowledged += len(answers)
        self.vectors += sum(vectors_in(answer) for answer in answers)

    def go_on(self, n):
        """All later answers are those of the uninterrupted run."""
        assert self.early < self.turns, "no child got anything done: nothing was tested"
        with Store.open(self.path, threads=1) as store:
            for number in range(self.done, self.done + n):
                answer = self.shadow.do(store, number)
                assert answer == self.shadow.until(number + 1).answers[number], number
            assert state_of(store) == self.shadow.states[self.done + n]
            store.verify()


def vectors_in(answer):
    """How many vectors an answer speaks of: IDs, or one decision."""
    if not isinstance(answer, list):
        return 0
    return len(answer) if all(isinstance(value, int) for value in answer) else 1


class Fed(Shadow):
    """The clusterer beside a store that is fed batches."""

    def step(self, number):
        rows = batch(self.seed, number, SIZES)
        self.answers.append(self.links.add_many(rows).tolist())
        self.note(Operation("add_many", rows))

    def do(self, store, number):
        return store.add_many(batch(self.seed, number, SIZES)).tolist()


def check(record, shadow, path, done):
    """Compare the acknowledged calls with the uninterrupted run; return the number of operations.

    Operations up to `done` were there before. One call more than acknowledged may be in the store;
    of a feed, those that were submitted.
    """
    count = done + len(record.answers)
    ahead = AHEAD if isinstance(shadow, Fed) else 1
    assert list(record.answers) == list(range(done, count))
    shadow.until(count + ahead)
    for number, answer in record.answers.items():
        assert answer == shadow.answers[number], number
    with Store.open(path, threads=1) as store:
        found = state_of(store)
    possible = shadow.states[count : count + ahead + 1]
    assert found in possible, "lost, or more than was done"
    return count + possible.index(found)


INGESTS = {
    "operations": {},
    "with care": {"verbs": CARED},
    "fed": {"way": "feed"},
    "fed, and no vectors kept": {"way": "feed", "options": {"keep_vectors": False}},
    "fed, and bounded": {
        "way": "feed",
        "options": {"track_vectors": False, "max_subclusters": 200},
    },
}


@pytest.mark.parametrize("how", INGESTS.values(), ids=INGESTS)
def test_a_kill_at_any_moment_loses_nothing_acknowledged(harness, tmp_path, how):
    ingest = Ingest(tmp_path, 1, **how)
    for _ in range(4):
        ingest.kill(harness)
    ingest.go_on(20)


def test_a_backup_that_was_never_acknowledged_is_made_again(tmp_path):
    """The check above repeats what was not acknowledged: its backup may be complete already."""
    backup = Operation("backup", None, {"to": 1})
    with new(tmp_path / "people.links") as store:
        store.add_many(batch(1, 0, SIZES))
        for _ in range(2):
            assert do(store, backup) is None
        store.add_many(batch(1, 1, SIZES))
        with pytest.raises(AssertionError):  # an older backup is not one of this state
            do(store, backup)


@pytest.mark.long
def test_200_kills_lose_nothing_acknowledged(harness, tmp_path, capsys):
    kills = acknowledged = vectors = 0
    for seed in range(100, 105):
        for name, how in INGESTS.items():
            folder = tmp_path / f"{seed} {name}"
            folder.mkdir()
            ingest = Ingest(folder, seed, **how)
            for _ in range(10):
                ingest.kill(harness)
            ingest.go_on(10)
            kills += ingest.turns
            acknowledged += ingest.acknowledged
            vectors += ingest.vectors
    with capsys.disabled():
        calls = f"{acknowledged} calls with {vectors} vectors acknowledged"
        print(f"\n{kills} kills, {calls}, 0 lost")  # noqa: T201
    assert kills >= 200


# Several threads at once: the order is the store's, and each answer is right in that order.


def replayed(path, seed):
    """Decide all operations of a store again; answers by thread and number of the batch."""
    links, found = Links.from_thresholds(THRESHOLDS, threads=1), {}
    with Store.open(path, threads=1) as store:
        for operation in told(store):
            thread, number = map(int, operation.key.split(":"))
            rows = batch(seed, (thread, number), SIZES)
            assert np.array_equal(operation.vectors, rows)
            assert (thread, number) not in found, "twice"
            found[thread, number] = links.add_many(rows).tolist()
        assert store.state_hash() == links.state_hash()
        assert store.n_vectors == links.n_vectors
    return found


def killed_threads(harness, folder, seed, kills):
    path, rng, total = folder / "people.links", np.random.default_rng([seed, 2]), 0
    starts = [0] * 4
    for turn in range(kills):
        record = str(folder / f"{turn}.record")
        ways = {"way": "threads", "threads": tuple(starts), "sizes": SIZES}
        pid = harness.start(Job(str(path), record, seed, early=400, **ways))
        wait(record, answers=int(rng.integers(12)))
        time.sleep(rng.exponential(0.02))
        os.kill(pid, signal.SIGKILL)
        assert harness.ended() == -signal.SIGKILL, read(record).notes
        acknowledged, found = read(record).of_threads, replayed(path, seed)
        assert {key: found.get(key) for key in acknowledged} == acknowledged
        total += len(acknowledged)
        for thread, before in enumerate(starts):
            mine = sorted(number for t, number in found if t == thread)
            assert mine == list(range(len(mine))), "a batch is missing among those of a thread"
            known = sum(t == thread for t, _ in acknowledged)
            assert before + known <= len(mine) <= before + known + 1
            starts[thread] = len(mine)
    assert total > kills
    return total


def test_threads_that_are_killed_lose_nothing_acknowledged(harness, tmp_path):
    killed_threads(harness, tmp_path, 3, kills=5)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300, 304))
def test_threads_that_are_killed_lose_nothing_acknowledged_at_length(
    harness, tmp_path, capsys, seed
):
    total = killed_threads(harness, tmp_path, seed, kills=20)
    with capsys.disabled():
        print(f"\n20 kills of four threads, {total} calls acknowledged, 0 lost")  # noqa: T201


# Every moment there is: killed before the k-th write, or halfway through it.


SHORT = VERBS | {"compact": 3, "backup": 2, "undo": 0, "undo_to": 0}


def short(folder, k, way, **more):
    """A short session from nothing to the close, that ends with its k-th write."""
    path, record = folder / f"{way}-{k}.links", folder / f"{way}-{k}.record"
    ends = {"first": 0, "last": 14, "early": 3, "verbs": SHORT}
    return Job(str(path), str(record), 5, fault=(k, 0, way), **ends, **more)


@pytest.mark.parametrize("way", [DIE_BEFORE, DIE_HALFWAY], ids=["before", "halfway"])
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.long)])
def test_a_store_opens_after_a_kill_in_any_write(faulty, folder, way, step):
    whole = short(folder, -1, way)
    assert faulty.run(whole) == 0
    assert "closed" in read(whole.record).notes, read(whole.record).notes
    writes = read(whole.record).notes["writes"]
    assert writes > 40
    shadow = Shadow(5, verbs=SHORT).until(14)
    # All of the first, in which the store is made; then some.
    for k in sorted({*range(min(writes, 24)), *range(24 + way, writes, step)}):
        job = short(folder, k, way)
        killed, record = faulty.run(job) == -signal.SIGKILL, read(job.record)
        # Snapshots come by time: a session may close with fewer writes than the whole one made.
        assert killed or ("closed" in record.notes and record.notes["writes"] <= k), record.notes
        if record.opened:
            check(record, shadow, job.path, 0)
        else:
            assert_makes_a_store(job.path, shadow)


def assert_makes_a_store(path, shadow):
    """Killed while it was made: there is none, or an empty one; making it again works."""
    try:
        with Store.open(path) as store:
            assert state_of(store) == shadow.states[0]
    except StoreError:
        pass
    with Store.open(path, thresholds=THRESHOLDS) as store:
        assert state_of(store) == shadow.states[0]
        assert shadow.do(store, 0) == shadow.answers[0]


@pytest.mark.parametrize("kills", [6, pytest.param(60, marks=pytest.mark.long)])
def test_a_store_killed_during_creation_can_be_created_again(harness, tmp_path, kills):
    rng = np.random.default_rng(0)
    for turn in range(kills):
        path, record = tmp_path / f"{turn}.links", tmp_path / f"{turn}.record"
        pid = harness.start(Job(str(path), str(record), 5, verbs=SHORT))
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(pid, signal.SIGKILL)
        harness.ended()
        if not read(record).opened:
            assert_makes_a_store(path, Shadow(5, verbs=SHORT).until(1))


# The power goes: the disk has what was forced to it, and nothing else.


def test_acknowledged_calls_were_synced_to_disk_before(faulty, folder):
    mirror, operations = folder / "mirror", 20
    mirror.mkdir()
    job = short(folder, -1, DIE_BEFORE, mirror=str(mirror))
    assert faulty.run(job) == 0
    shadow = Shadow(5, verbs=SHORT).until(operations)
    name = f"{DIE_BEFORE}--1.links"
    for number, answer in read(job.record).answers.items():
        assert answer == shadow.answers[number]
        with Store.open(f"{mirror}.{number}/{name}", threads=1) as store:
            assert state_of(store) == shadow.states[number + 1], number
