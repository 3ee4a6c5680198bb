"""Readers beside a writer: any number of them, and each sees whole commits only."""

from __future__ import annotations

import contextlib
import os
import signal

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import StoreClosedError, StoreError
from linkstream.store import Store
from store.crash_harness import Job, read, wait
from store.operations import THRESHOLDS, VERBS, Shadow, new, state_of, vectors

X = vectors(np.random.default_rng(0), 60)


def filled(path):
    with new(path) as store:
        store.add_many(X)
        return store.state_hash()


def test_many_readers_see_the_store_as_of_opening(path):
    links = Links.from_thresholds(THRESHOLDS)
    with new(path) as store:
        store.add_many(X[:20], payloads=list(range(20)))
        links.add_many(X[:20])
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(Store.open(path, read_only=True)) for _ in range(4)]
            store.add_many(X[20:40], payloads=list(range(20, 40)))
            store.name(0, "Ann")
            for reader in readers:
                assert reader.read_only
                assert reader.state_hash() == links.state_hash()
                assert reader.labels().tolist() == links.labels().tolist()
                assert reader.events() == links.events()
                assert list(reader.journal.events()) == links.events()
                assert reader.journal.n_operations == 1
                assert len(list(reader.journal.operations())) == 1
                assert reader.payloads([3]) == [3]
                with pytest.raises(ValueError, match="25"):
                    reader.payloads([25])[0]
            links.add_many(X[20:40])
            links.name(0, "Ann")
            for reader in readers:
                assert reader.refresh() == 2
                assert reader.refresh() == 0
                assert reader.state_hash() == links.state_hash()
                assert reader.payloads([3, 25]) == [3, 25]
                assert reader.named("Ann") == 0


def test_a_reader_from_before_a_compaction_gives_no_wrong_answer(path):
    with new(path) as store:
        store.add_many(X[:20], payloads=list(range(20)))
        with Store.open(path, read_only=True) as reader:
            store.remove(5)
            store.compact()
            for _ in range(2):
                with contextlib.suppress(StoreError):
                    assert np.array_equal(reader.vectors([5, 6]), X[5:7])
                with contextlib.suppress(StoreError):
                    assert reader.payloads([5, 6]) == [5, 6]
            reader.refresh()
            assert state_of(reader) == state_of(store)


def test_a_reader_refuses_every_change(path):
    before = filled(path)
    with Store.open(path, read_only=True) as reader:
        for change in (
            lambda: reader.add(X[0]),
            lambda: reader.add_many(X),
            lambda: reader.add_group(X[:2]),
            lambda: reader.enrol("Ann", X[:2]),
            lambda: list(reader.feed([X])),
            lambda: reader.same(0, 1),
            lambda: reader.name(0, "Ann"),
            lambda: reader.remove(0),
            reader.undo,
            lambda: reader.settle(apply=True),
            reader.compact,
        ):
            with pytest.raises(StoreError, match=r"people\.links"):
                change()
        assert reader.state_hash() == before
        assert reader.verify().vectors == len(X)


def test_a_reader_needs_no_right_to_write(path, tmp_path):
    before = filled(path)
    path.with_name("people.links.lock").unlink(missing_ok=True)
    data = path.read_bytes()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with Store.open(path, read_only=True) as reader:
            assert reader.state_hash() == before
            reader.verify()
    finally:
        tmp_path.chmod(0o755)
        path.chmod(0o644)
    assert path.read_bytes() == data


@pytest.mark.parametrize("turns", [12, pytest.param(200, marks=pytest.mark.long)])
def test_readers_see_only_committed_prefixes(harness, tmp_path, path, turns):
    verbs = VERBS | {"undo": 0, "undo_to": 0, "compact": 1}
    shadow, record = Shadow(21, verbs=verbs), tmp_path / "record"
    new(path).close()
    pid = harness.start(Job(str(path), str(record), 21, verbs=verbs, early=20))
    try:
        wait(record, answers=3)
        follow(path, record, shadow, turns)
    finally:
        os.kill(pid, signal.SIGKILL)
        assert harness.ended() == -signal.SIGKILL
    with Store.open(path, read_only=True, threads=1) as reader:  # beside nobody, after a kill
        count = len(read(record).answers)
        assert state_of(reader) in shadow.until(count + 1).states[count : count + 2]


def follow(path, record, shadow, turns):
    """Read beside a writer, now by a new reader, now by one that catches up."""
    reader, last = Store.open(path, read_only=True, threads=1), 0
    for turn in range(turns):
        low = len(read(record).answers)
        if turn % 3:
            reader.refresh()
        else:
            reader.close()
            reader = Store.open(path, read_only=True, threads=1)
        try:
            found = state_of(reader)
        except StoreError:  # compacted since: part of what the reader knows of is gone
            continue
        shadow.until(len(read(record).answers) + 1)
        places = [n for n, place in enumerate(shadow.states) if place == found]
        assert places, "what no commit has left"
        assert max(places) >= last, "it went back"
        assert max(places) >= low, "an acknowledged call is not seen"
        last = min(places)
        wait(record, answers=low + 2)
    reader.close()


def test_a_reader_after_a_kill_sees_everything_and_writes_nothing(harness, tmp_path, path):
    record = tmp_path / "record"
    pid = harness.start(Job(str(path), str(record), 3))
    wait(record, answers=5)
    os.kill(pid, signal.SIGKILL)
    harness.ended()
    count = len(read(record).answers)
    shadow = Shadow(3).until(count + 1)
    for _ in range(2):
        with Store.open(path, read_only=True, threads=1) as reader:
            assert state_of(reader) in shadow.states[count : count + 2]


def test_a_closed_reader_raises_store_closed_error(path):
    filled(path)
    reader = Store.open(path, read_only=True)
    reader.close()
    reader.close()
    with pytest.raises(StoreClosedError):
        reader.refresh()


def test_refresh_of_a_writer_does_nothing(path):
    with new(path) as store:
        store.add_many(X)
        try:
            assert store.refresh() == 0
        except StoreError as refused:
            assert "people.links" in str(refused)  # noqa: PT017 - either of the two
        assert store.n_vectors == len(X)


def test_an_up_to_date_reader_can_refresh_after_a_compaction(path):
    with new(path) as store:
        store.add_many(X[:20], payloads=list(range(20)))
        store.remove(5)
        with Store.open(path, read_only=True) as reader:
            store.compact()
            with pytest.raises(StoreError, match="compacted"):
                reader.payloads([6])[0]
            assert reader.refresh() == 0
            assert reader.payloads([6])[0] == 6
            store.add(X[20], payload="new")
            assert reader.refresh() == 1
            assert reader.payloads([20])[0] == "new"
            assert np.array_equal(reader.vectors([6, 20]), X[[6, 20]])
