"""Memory runs out: that is told as such, never as damage, and nothing is changed by it."""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import resource
import shutil
import threading

import numpy as np
import pytest

from linkstream.errors import StoreClosedError, StoreMemoryError
from linkstream.store import Store, repair, writer_thread
from linkstream.store import file as store_file
from store import internals
from store.operations import new

NAME = "people.links"
X = np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32)
MEGABYTES = (0.2, 1, 2, 4, 7, 11, 16)
SWEEP = [0.5 * step for step in range(40)]
LIMITS = pytest.mark.parametrize(
    "limits", [MEGABYTES, pytest.param(SWEEP, marks=pytest.mark.long)], ids=["some", "many"]
)


def in_a_child(work, *arguments):
    """What it returned, or the error it raised, as words; a crash fails the test.

    All is done in children: memory that this process had and gave back would be theirs, too.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work(*arguments)
        except BaseException as error:
            said = [type(error).__name__, isinstance(error, MemoryError), str(error)]
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read()
    assert os.waitpid(child, 0)[1] == 0, "the process crashed"
    return json.loads(said)


HOARD = []  # memory that the process had and did not use


def limited(megabytes):
    """Let the process have no more than so much on top of what it uses."""
    spare = [bytearray(1 << 15) for _ in range(8)]  # to set the second limit with
    limit(0)
    for size in (1 << power for power in range(26, 8, -1)):
        with contextlib.suppress(MemoryError):
            while True:
                HOARD.append(bytearray(size))
    spare.clear()
    limit(megabytes)


def limit(megabytes):
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + int(megabytes * 1e6), resource.RLIM_INFINITY))


def filled(path):
    store = new(path)
    for start in range(0, len(X), 300):
        store.add_many(X[start : start + 300])
    return store.journal.n_operations  # the process ends without closing it


def repaired(path, megabytes):
    limited(megabytes)
    return repair(path).to_dict()


def opened(path, megabytes, read_only):
    limited(megabytes)
    return Store.open(path, read_only=read_only, threads=1).journal.n_operations


def found(path):
    with Store.open(path, threads=1) as store:
        return [store.journal.n_operations, store.n_vectors, store.verify().operations]


def verified(path, megabytes):
    store = Store.open(path, read_only=True, threads=1)
    limited(megabytes)
    return store.verify().operations


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder with a sound store, its log, and the index of its log."""
    folder = tmp_path_factory.mktemp("sound")
    assert in_a_child(filled, folder / NAME) == 10
    return folder


@pytest.fixture
def copied(sound, tmp_path):
    """Makes a fresh copy of the store."""

    def copy():
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(sound, tmp_path / "copy")
        return tmp_path / "copy" / NAME

    return copy


def contents(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def assert_of_memory(said):
    kind, is_memory, words = said
    assert is_memory, (kind, words)
    assert "linkstream repair" not in words
    assert "memory ran out" in words or kind == "MemoryError"  # not even enough for words


WHOLE = [10, len(X), 10]


@LIMITS
def test_repair_of_a_sound_store_without_memory_changes_nothing(copied, limits):
    aborted = 0
    for megabytes in limits:
        path = copied()
        before = contents(path)
        said = in_a_child(repaired, path, megabytes)
        if isinstance(said, dict):
            assert (said["kept"], said["lost"]) == (10, 0)
        else:
            assert_of_memory(said)
            assert contents(path) == before
            aborted += 1
        assert in_a_child(found, path) == WHOLE
    assert aborted > 0
    assert isinstance(in_a_child(repaired, copied(), 500), dict)


@LIMITS
@pytest.mark.parametrize("read_only", [True, False])
def test_a_lack_of_memory_is_not_reported_as_damage(copied, limits, read_only):
    for megabytes in limits:
        path = copied()
        said = in_a_child(opened, path, megabytes, read_only)
        assert said == 10 or assert_of_memory(said) is None
        assert in_a_child(found, path) == WHOLE


@LIMITS
def test_a_lack_of_memory_in_verify_is_not_reported_as_damage(copied, limits):
    for megabytes in limits:
        said = in_a_child(verified, copied(), megabytes)
        assert said == 10 or assert_of_memory(said) is None


def test_memory_errors_of_sqlite_are_not_reported_as_damage(tmp_path):
    for error in (MemoryError(), MemoryError("out of memory")):
        with pytest.raises(StoreMemoryError, match=r"a\.links: memory ran out"):  # noqa: SIM117
            with store_file.guarded(tmp_path / "a.links"):
                raise error
        with pytest.raises(MemoryError):  # noqa: SIM117
            with store_file.distrusted(tmp_path / "a.links", "a snapshot"):
                raise error


# Threads need memory, too.


@pytest.fixture
def no_threads(monkeypatch):
    """Return a function after which only threads with some names can be started."""

    def forbid(*allowed):
        start = threading.Thread.start

        def refuse(thread):
            if thread.name not in allowed:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)

    return forbid


def test_a_store_adds_although_no_thread_can_be_started_beside_the_writer(
    tmp_path, no_threads, monkeypatch
):
    rows = np.tile(X, (1, 2))  # large enough to be written while they are decided
    with new(tmp_path / "free.links") as store:
        expected = [store.add_many(rows).tolist(), *(i.tolist() for i in store.feed([rows, rows]))]
    with internals.EarlyMaintenance(1), new(tmp_path / NAME) as store:
        no_threads()
        found = [store.add_many(rows).tolist(), *(i.tolist() for i in store.feed([rows, rows]))]
    assert found == expected
    monkeypatch.undo()
    with Store.open(tmp_path / NAME, threads=1) as store:
        assert store.verify().operations == 3


def test_work_that_no_thread_took_is_not_done_later(tmp_path, no_threads, monkeypatch):
    rows = np.tile(X, (1, 2))
    with new(tmp_path / NAME) as store:
        no_threads()
        store.add_many(rows)
        monkeypatch.undo()
        store.add_many(rows)
        store.add_many(rows)
        assert store.verify().operations == 3


def test_a_store_without_a_thread_of_its_own_is_not_opened_for_lack_of_memory(copied, no_threads):
    path = copied()
    before = {name: data for name, data in contents(path).items() if not name.endswith("-shm")}
    no_threads()
    for read_only in (True, False):
        with pytest.raises(StoreMemoryError, match="memory ran out"):
            Store.open(path, read_only=read_only)
    after = contents(path)
    assert {name: after[name] for name in before} == before


def test_a_write_that_failed_for_lack_of_memory_is_not_blamed_on_the_disk(tmp_path, monkeypatch):
    def fail(*arguments):
        raise MemoryError((2788, 2788))

    with new(tmp_path / NAME) as store:
        store.add_many(X[:10])
        with monkeypatch.context() as broken:
            broken.setattr("linkstream.store.model.Model.decide", fail)
            with pytest.raises(MemoryError):
                store.add_many(X[10:20])
        with pytest.raises(StoreClosedError, match=r"memory ran out.*enough memory") as closed:
            store.add_many(X[10:20])
        assert "disk" not in str(closed.value)
        assert store.n_vectors == 10


def test_a_thread_without_memory_to_begin_is_not_started(monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    thread = threading.Thread(target=int)
    with pytest.raises(MemoryError, match="Cannot allocate memory"):
        writer_thread.start(thread)
    assert thread.ident is None
