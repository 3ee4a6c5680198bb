"""A process with everything imported that forks a child for each session on a store.

A child applies the operations of a seed in order and records each answer after the call has
returned: every recorded answer was acknowledged. It ends where it is told to, where a write fails,
or where it is killed. Jobs are lines of JSON on its input; it prints the pid and the exit status of
each child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
FAIL_ONCE, FAIL_FROM_HERE_ON, DIE_BEFORE, DIE_HALFWAY, SHORT_ONCE, SHORT_THEN_FAIL = range(6)


@dataclass(frozen=True)
class Job:
    """Operations from a number on; with a fault, the write that fails."""

    path: str
    record: str
    seed: int
    first: int = 0
    last: int = 10**6
    way: str = (
        "operations"  # one after the other; "feed": as one stream; "threads": several at once
    )
    sizes: tuple[int, ...] = (1, 7, 100)
    verbs: dict[str, int] | None = None
    keys: bool = False  # each operation has an idempotency key: its number
    options: dict[str, object] | None = None  # of the store
    early: int | None = None  # calls, after which snapshots come
    threads: tuple[int, ...] = ()  # of each, how many batches it has added before
    fault: tuple[int, int, int] | None = None  # which write, error number, way
    slow: int = 0  # microseconds that forcing to disk takes
    mirror: str | None = None  # a folder for what was forced to disk, after each answer


class CrashHarness:
    """One harness, from here."""

    def __init__(self, *, preload=None):
        library = {} if preload is None else {"LD_PRELOAD": str(preload)}
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("child.py")],
            env=os.environ | library | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, job):
        """The pid of a child that now works."""
        print(json.dumps(asdict(job)), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def ended(self):
        """Wait for the child; its exit status, negative for a signal."""
        return int(self._process.stdout.readline())

    def run(self, job):
        self.start(job)
        return self.ended()

    def close(self):
        self._process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


@dataclass(frozen=True)
class Record:
    """What a child wrote down: whether the store opened, answers by number, what ended it."""

    opened: bool
    answers: dict[int, object]
    notes: dict[str, object]

    @property
    def of_threads(self):
        """Answers by thread and number, in order."""
        pairs = [(name.split(":"), ids) for name, ids in self.notes.items() if ":" in name]
        return {(int(thread), int(number)): ids for (thread, number), ids in pairs}


def read(record):
    path = Path(record)
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # whole ones only
    pairs = [json.loads(line) for line in lines]
    answers = {name: value for name, value in pairs if isinstance(name, int)}
    notes = {name: value for name, value in pairs if isinstance(name, str)}
    return Record("opened" in notes, answers, notes)


def wait(record, answers=-1):
    """Wait until a child has opened its store and given `answers` answers; fail on its error."""
    start = time.monotonic()
    while True:
        seen = read(record)
        if seen.opened and len(seen.answers) + len(seen.of_threads) >= answers:
            return
        assert "error" not in seen.notes, seen.notes["error"]
        assert time.monotonic() - start < 60, "the child does nothing"
        time.sleep(0.001)
