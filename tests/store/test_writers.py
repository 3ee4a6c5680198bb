"""One writes: a second writer is told so at once, and nobody writes beside another."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from linkstream.errors import StoreClosedError, StoreError, StoreLockedError
from linkstream.store import Store, repair
from linkstream.store.file import BUSY
from store.operations import THRESHOLDS, new, state_of, vectors

X = vectors(np.random.default_rng(0), 60)

HOLD = """
import sys
from linkstream.store import Store
store = Store.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def filled(path):
    with new(path) as store:
        store.add_many(X)
        return store.state_hash()


@contextlib.contextmanager
def holder(path):
    """Another process that has a store open until its input ends."""
    command = [sys.executable, "-c", HOLD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "open\n"
        yield process


def assert_locked(path, **options):
    start = time.monotonic()
    with pytest.raises(StoreLockedError, match=r"people\.links"):
        Store.open(path, **options)
    assert time.monotonic() - start < BUSY / 2_000  # it has not waited as SQLite would


def test_a_second_opening_in_one_process_is_refused_at_once(path):
    with new(path) as store:
        store.add_many(X)
        assert_locked(path)
        assert_locked(path, thresholds=THRESHOLDS)
        assert_locked(os.path.relpath(path))
        store.add_many(X)  # and the first goes on
    with Store.open(path) as store:
        assert len(store.labels()) == 2 * len(X)


def test_a_second_process_is_refused_until_the_first_is_killed(path):
    before = filled(path)
    with holder(path) as process:
        assert_locked(path)
        with pytest.raises(StoreLockedError):
            repair(path)
        process.kill()
        process.wait()
        assert path.with_name("people.links.lock").exists()
        with Store.open(path) as store:
            assert store.state_hash() == before


def test_a_store_under_another_name_has_the_same_writer(path, tmp_path):
    before = filled(path)
    link = tmp_path / "other.links"
    link.symlink_to(path)
    with Store.open(path) as store:
        with pytest.raises(StoreLockedError):
            Store.open(link)
        store.add_many(X)
    with Store.open(link) as store:
        assert store.state_hash() != before
        assert store.n_vectors == 2 * len(X)
        assert_locked(path)


def test_a_failed_opening_releases_the_lock(path):
    filled(path)
    for _ in range(3):
        with pytest.raises(ValueError, match="engine"):
            Store.open(path, engine="no such engine")
    with Store.open(path) as store:
        assert len(store.labels()) == len(X)


def test_a_garbage_collected_store_can_be_opened_again(path):
    store = new(path)
    store.add_many(X)
    before = store.state_hash()
    del store  # as a program does that forgets to close
    gc.collect()
    with Store.open(path) as again:
        assert again.state_hash() == before


def test_two_writers_after_a_removed_lock_do_not_both_succeed(path):
    first = new(path)
    first.add_many(X[:10])
    path.with_name("people.links.lock").unlink()  # by somebody who took it for a stale one
    second = Store.open(path)
    assert len(second.add_many(X[10:20])) == 10
    with pytest.raises(StoreClosedError):
        first.add_many(X[20:30])
    first.close()
    second.add_many(X[30:40])
    before = state_of(second)
    second.close()
    with Store.open(path) as store:
        assert state_of(store) == before
        store.verify()


@pytest.mark.parametrize("replaced", [False, True])
def test_no_call_is_acknowledged_after_the_file_is_removed(path, replaced):
    store = new(path)
    store.add_many(X[:10])
    path.rename(path.with_name("moved.links"))
    if replaced:
        path.write_bytes(b"something else")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"people\.links"):
            store.add_many(X[10:20])
    store.close()


# Fork: the child holds nothing that is its parent's.


def in_child(work):
    """What a forked child answers, by way of a pipe."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(send, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def outcome(call):
    try:
        call()
    except StoreError as error:
        return type(error).__name__
    except BaseException as error:
        return [type(error).__name__, str(error)]
    return "done"


def test_a_forked_child_cannot_write_to_the_store_of_its_parent(path):
    with new(path) as store:
        store.add_many(X[:30])
        answers = in_child(
            lambda: [
                outcome(lambda: store.add(X[30])),
                outcome(lambda: store.name(0, "Ann")),
                outcome(lambda: Store.open(path)),
                outcome(store.close),
                outcome(lambda: Store.open(path)),
            ]
        )
        assert answers[:2] == ["StoreClosedError"] * 2
        assert answers[2] == answers[4] == "StoreLockedError"
        assert_locked(path)  # still its parent's
        store.add_many(X[30:])
        before = state_of(store)
    with Store.open(path) as store:
        assert state_of(store) == before
        store.verify()


def test_a_forked_child_does_not_keep_the_lock(path):
    receive, send = os.pipe()
    store = new(path)
    store.add_many(X)
    pid = os.fork()
    if pid == 0:
        os.close(send)
        os.read(receive, 1)  # until the parent is done
        os._exit(0)
    os.close(receive)
    store.close()
    try:
        with Store.open(path) as again:
            assert again.n_vectors == len(X)
    finally:
        os.close(send)
        os.waitpid(pid, 0)
