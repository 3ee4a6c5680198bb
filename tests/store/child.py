"""What a harness runs: everything is imported once, then a child is forked for each job."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

import numpy as np

from linkstream.errors import StoreError
from linkstream.store import Store
from store.crash_harness import Job
from store.internals import EarlyMaintenance
from store.operations import DIMENSION, THRESHOLDS, VERBS, do, make_operation, state_of, vectors


class Session:
    """One child at work."""

    def __init__(self, job):
        self.job = job
        self._record = os.open(job.record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._store = None
        self._verb = job.way

    def note(self, name, value=None):
        os.write(self._record, json.dumps([name, value]).encode() + b"\n")  # at once: no buffer

    def run(self):
        job = self.job
        library = self._arm()
        if job.early is not None:
            EarlyMaintenance(job.early)
        try:
            options = job.options or {}
            self._store = Store.open(job.path, thresholds=THRESHOLDS, threads=1, **options)
            self.note("opened")
            getattr(self, job.way)()
            self.note("done", None if library is None else library.fault_synced())
            self._store.close()
            self.note("closed")
        except BaseException as error:
            self.note("error", [type(error).__module__, type(error).__name__, str(error)])
            if self._store is not None:
                self._afterwards()
        if library is not None:
            self.note("writes", library.fault_seen())

    def _arm(self):
        job = self.job
        if job.fault is None:
            return None
        library = ctypes.CDLL(None)
        library.fault_slow(ctypes.c_long(job.slow))
        library.fault_mirror((job.mirror or "").encode())
        name = Path(job.path).name.encode()
        library.fault_arm(name, ctypes.c_long(job.fault[0]), *job.fault[1:])
        return library

    # Ways to work

    def operations(self):
        job = self.job
        for number in range(job.first, job.last):
            what = make_operation(
                job.seed, number, self._store, sizes=job.sizes, verbs=job.verbs or VERBS
            )
            key = {"idempotency_key": str(number)} if job.keys else {}
            self._verb = what.verb
            self.note(number, do(self._store, what, **key))
            if job.mirror is not None:
                self._lose_power(Path(f"{job.mirror}.{number}"))

    def _lose_power(self, folder):
        """Lay down the files as the disk has them: what was forced to it, and nothing else."""
        folder.mkdir()
        library = ctypes.CDLL(None)
        library.fault_hold()
        for suffix in ("", "-wal"):
            file = Path(self.job.path + suffix)
            forced = Path(self.job.mirror) / str(file.stat().st_ino if file.exists() else "none")
            if forced.exists():
                shutil.copy(forced, folder / file.name)
        library.fault_release()

    def feed(self):
        job = self.job
        numbers = range(job.first, job.last)
        stream = self._store.feed(batch(job.seed, number, job.sizes) for number in numbers)
        for number, ids in zip(numbers, stream, strict=True):
            self.note(number, ids.tolist())

    def threads(self):
        with ThreadPoolExecutor(len(self.job.threads)) as pool:
            list(pool.map(self._thread, itertools.count(), self.job.threads))

    def _thread(self, thread, first):
        job = self.job
        for number in range(first, job.last):
            rows = batch(job.seed, (thread, number), job.sizes)
            key = f"{thread}:{number}"
            self.note(key, self._store.add_many(rows, idempotency_key=key).tolist())

    def _afterwards(self):
        """What the store still does once an error has come out of it."""
        self.note("in", self._verb)
        store = self._store
        row = [[1.0] * DIMENSION]
        calls = {
            "add_many": lambda: store.add_many(row) is None,
            "add": lambda: store.add(row[0]) is None,
            "undo": store.undo,
            "compact": store.compact,
            "read": lambda: json.dumps(state_of(store)),
            "close": store.close,
            "close again": store.close,
        }
        if self._verb == "backup":  # the store itself is sound
            calls = {name: call for name, call in calls.items() if name in ("read", "close")}
        for name, call in calls.items():
            self.note(f"then {name}", outcome(call))


def batch(seed, number, sizes):
    """The vectors of a batch, by its number alone."""
    rng = np.random.default_rng([seed, *np.atleast_1d(number)])
    return vectors(rng, int(rng.choice(sizes)))


def outcome(call):
    """What it answered, or "done"; the name of an error of the store's; of another, all."""
    try:
        answer = call()
    except StoreError as error:
        return type(error).__name__
    except BaseException as error:
        return [type(error).__module__, type(error).__name__, str(error)]
    return answer if isinstance(answer, (str, int)) else "done"


def main():
    for line in sys.stdin:
        fields = json.loads(line)
        fields["sizes"], fields["threads"] = tuple(fields["sizes"]), tuple(fields["threads"])
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                Session(Job(**fields)).run()
                status = 0
            finally:
                os._exit(status)
        say(pid)
        say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def say(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
