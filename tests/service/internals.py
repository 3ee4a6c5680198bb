"""All accesses of the tests to internals of the service and the store."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import threading

from linkstream.store import commit_loop
from linkstream.store.reader import StoreReader


def get_stuck(where):
    """Make reviews, or the writer threads, run for ever from the first review on."""

    def spin(*_, **__):
        while True:
            pass

    def review_queue(self, limit=20, **_):
        return spin() if where == "reader" else self.handle.run(spin)

    StoreReader.review_queue = review_queue


def inject(*, stuck=None, **fault):
    """Inject a fault into this process: see `get_stuck` and `die`."""
    return die(**fault) if stuck is None else get_stuck(stuck)


def die(*, when, commit):
    """Make this process kill itself at its n-th commit.

    With "before", the commit is not made; with "after", it is on disk but not acknowledged. With
    "fail", the commit fails as on a full disk.
    """
    made, left = commit_loop.JournalWriter.commit, [commit]

    def commit_and_die(self, group):
        left[0] -= 1
        if left[0] == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if left[0] == 0 and when == "fail":
            raise sqlite3.OperationalError("database or disk is full")
        answer = made(self, group)
        if left[0] == 0 and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    commit_loop.JournalWriter.commit = commit_and_die


def store_of(service, name):
    """Return the store of a namespace of a service in this process."""
    return service.server.lifespan.state["sessions"].open[name].store


def session_of(service, path):
    """Return the session of a namespace, by its path, of a service in this process."""
    return service.server.lifespan.state["sessions"].open[path.rpartition("/")[2]]


def readers_of(service):
    """Return the number of open event streams."""
    return service.server.lifespan.state["sessions"].readers


@contextlib.contextmanager
def held_up(service, name):
    """Block the writer of a namespace inside the block."""
    service.get(f"/v1/namespaces/{name}")  # it is open
    begun, go_on = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert go_on.wait(60.0)

    thread = threading.Thread(target=store_of(service, name).handle.run, args=(wait,))
    thread.start()
    assert begun.wait(60.0)
    try:
        yield
    finally:
        go_on.set()
        thread.join()


def slow_reads_of(service):
    """Return the slow reads of a service in this process."""
    return service.server.lifespan.state["sessions"].slow


def recordings_of(service):
    """Return the recordings in memory of a service in this process."""
    return service.server.lifespan.state["sessions"].recordings
