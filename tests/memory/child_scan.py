"""The process whose memory runs short, and the children it forks, one for each allocation point.

Jobs come as lines of JSON, reports go the same way. A scenario is prepared once, here; each child
starts from it, has its memory fail at one place, and says in one line what came of it. A child
that crashes or hangs is seen by how it ended.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import tempfile
import zlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

PATIENCE = 30  # seconds after which a child is said to hang
SEED = "LINKSTREAM_MEMORY_SEED"  # another one takes other places where not all are tried
CPP, PYTHON, LIBRARIES = 1, 2, 4
KINDS = {"core": CPP, "arrays": LIBRARIES, "python": PYTHON, "any": CPP | PYTHON | LIBRARIES}
WATCHED = (b"_multiarray_umath", b"sqlite3")


class Shortage:
    """The library that makes allocations fail, in this process."""

    def __init__(self):
        self._library = library = ctypes.CDLL(None)
        assert library.scarce_hook_python(), "Python's allocators were not found"
        for part in WATCHED:
            library.scarce_watch(part)
        # A plain byte: to end a shortage must take no memory.
        self.switch = memoryview((ctypes.c_ubyte * 1).in_dll(library, "scarce_armed")).cast("B")

    def during(self, call, shortfall, k):
        """Call while the k-th allocation fails (-1: none does): what it answered or raised."""
        kinds = KINDS[shortfall.kind]
        self._library.scarce_set(kinds, ctypes.c_long(k), int(shortfall.for_good))
        switch, answer, raised = self.switch, None, None
        try:
            switch[0] = 1
            answer = call()
            switch[0] = 0
        except BaseException as error:
            switch[0] = 0
            raised = error
        return answer, raised

    @property
    def seen(self):
        return int(self._library.scarce_seen())


@dataclass(frozen=True)
class Shortfall:
    """The kind of memory that fails, once or for good, at how many places (None: at all)."""

    kind: str
    for_good: bool
    points: int | None = None
    at: tuple[int, ...] = ()  # these places alone

    def places(self, total, name):
        """Which allocations fail: all, or every so many from a place that the name gives."""
        if self.at:
            return list(self.at)
        if self.points is None or self.points >= total:
            return list(range(total))
        stride = total / self.points
        seed = os.environ.get(SEED, "0")
        text = f"{name}/{self.kind}/{self.for_good}/{seed}"
        offset = zlib.crc32(text.encode()) % 1000 / 1000
        return sorted({int((i + offset) * stride) for i in range(self.points)})


@dataclass(frozen=True)
class Job:
    """A scenario, on which engine, and the shortages to try it with."""

    world: str  # "links" or "store"
    scenario: str
    engine: str
    shortfalls: tuple[Shortfall, ...]
    workers: int = 1

    @classmethod
    def of(cls, fields):
        given = tuple(
            Shortfall(**{**each, "at": tuple(each["at"])}) for each in fields.pop("shortfalls")
        )
        return cls(**fields, shortfalls=given)


def forked(work):
    """Start a child that does some work and says what came of it: its pid, and where it says so."""
    reading, writing = os.pipe()
    noise = tempfile.TemporaryFile(dir=_memory())  # noqa: SIM115 - `ended` closes it
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading, noise
    try:
        os.close(reading)
        os.dup2(noise.fileno(), 2)
        signal.alarm(PATIENCE)
        said = work()
    except BaseException as error:
        said = ["BAD", f"the check raised {type(error).__name__}: {error}"[:300]]
    os.write(writing, json.dumps(said).encode())
    os._exit(0)


def ended(pid, reading, noise):
    """What a child said; or how it ended, if it said nothing."""
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with noise:
        noise.seek(0)
        text = noise.read().decode(errors="replace"); import re as _re; last = " < ".join(_re.findall(r"line \d+ in \w+|site-packages/[^\"]*|linkstream/[^\"]*", text)[:8])
    if status == -signal.SIGALRM:
        return ["BAD", "hangs"]
    if status or not said:
        name = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        return ["BAD", f"crashes: {name} {last}".strip()]
    return json.loads(said)


def run(job, shortage):
    """Try a scenario with each shortage; see `tries`."""
    from memory import on_links, on_store

    world = {"links": on_links, "store": on_store}[job.world]
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        case = world.Case(job, shortage, Path(folder))
        case.expected = ended(*forked(case.oracle))
        if isinstance(case.expected, list):
            broken = {f"BAD: no oracle: {case.expected[1]}": [1, 0]}
            return [{"kind": "none", "for_good": False, "verdicts": broken}]
        return [tries(case, shortfall, job) for shortfall in job.shortfalls]


def tries(case, shortfall, job):
    """Try one shortage; how often each thing was seen, and at which place first."""
    total = ended(*forked(lambda: case.count(shortfall)))
    chosen = shortfall.places(total, f"{job.scenario}/{job.engine}")
    verdicts = {}
    flight = deque()
    for k in [*chosen, *[None] * job.workers]:
        if len(flight) >= job.workers or (k is None and flight):
            at, child = flight.popleft()
            count = verdicts.setdefault(": ".join(ended(*child)), [0, at])
            count[0] += 1
        if k is not None:
            flight.append((k, forked(lambda k=k: case.tried(shortfall, k))))
    how = {"kind": shortfall.kind, "for_good": shortfall.for_good}
    return how | {"total": total, "tried": len(chosen), "verdicts": verdicts}


def _memory():
    """A folder in memory, where there is one: thousands of small files come and go."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main():
    from memory import on_links, on_store  # noqa: F401 - before children are forked

    shortage = Shortage()
    gc.collect()
    gc.freeze()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        report = run(Job.of(json.loads(line)), shortage)
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
