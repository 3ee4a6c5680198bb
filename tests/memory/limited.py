"""Scripts under a plain limit of the system (RLIMIT_AS), each a process of its own.

    python limited.py TASK BYTES PATH

BYTES is how much more memory the process may take than it has when the task begins. Prints one
line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

import numpy as np

from linkstream import Links, errors
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Store
from linkstream.store.repairing import repair

UNUSABLE = getattr(errors, "UnusableError", ())
BATCH, MOST, DIMENSION = 250, 12_000, 64
THRESHOLDS = (0.5, 0.6, 0.7)
X = np.random.default_rng(0).standard_normal((MOST, DIMENSION)).astype(np.float32)


def limited(more, call):
    """Call with so many bytes more; the error that was raised, or None."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    everything = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, everything[1]))
    try:
        call()
    except BaseException as error:
        return error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, everything)
    return None


def adding(engine):
    def run(more, path):
        links = Links(*THRESHOLDS, engine=engine, threads=1)
        links.add_many(X[:BATCH])
        whole = [BATCH]

        def add():
            for start in range(BATCH, MOST, BATCH):
                links.add_many(X[start : start + BATCH])
                whole[0] = start + BATCH

        raised = limited(more, add)
        report = {"raised": type(raised).__name__, "taken": whole[0]}
        try:
            return report | compared(links, whole[0], engine)
        except UNUSABLE:
            return report | {"refuses": True}

    return run


def compared(links, taken, engine):
    """How the clusterer and one that took the same batches without a limit compare."""
    other = Links(*THRESHOLDS, engine=engine, threads=1)
    other.add_many(X[:taken])
    links.state().check()
    same = [links.n_vectors == taken, links.state_hash() == other.state_hash()]
    end = min(taken + 4 * BATCH, MOST)
    ids = [each.add_many(X[taken:end]).tolist() for each in (links, other)]
    later = [ids[0] == ids[1], links.state_hash() == other.state_hash()]
    return {"state as before": all(same), "later answers the same": all(later)}


def fill(more, path):
    """A store of ten batches that is not closed: opening it decides all of them again."""
    store = Store.open(path, thresholds=Thresholds(*THRESHOLDS), threads=1)
    for start in range(0, 10 * BATCH, BATCH):
        store.add_many(X[start : start + BATCH])
    return {"operations": store.info()["operations"], "hash": store.state_hash()}


def on_file(call):
    def run(more, path):
        raised = limited(more, lambda: call(path))
        text = "" if raised is None else str(raised)[:200]
        return {"raised": type(raised).__name__, "text": text}

    return run


def look(more, path):
    with Store.open(path, threads=1) as store:
        store.verify()
        return {"operations": store.info()["operations"], "hash": store.state_hash()}


TASKS = {
    "add native": adding("native"),
    "add reference": adding("reference"),
    "fill": fill,
    "open": on_file(lambda path: Store.open(path, threads=1)),
    "open to read": on_file(lambda path: Store.open(path, threads=1, read_only=True)),
    "repair": on_file(repair),
    "look": look,
}


def main():
    task, more, path = sys.argv[1:]
    report = TASKS[task](int(more), Path(path))
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()
    os._exit(0)  # no store is closed: as at a kill


if __name__ == "__main__":
    main()
