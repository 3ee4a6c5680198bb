"""Interrupted at any moment, as by Ctrl-C, a store neither hangs nor forgets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Adds batches, each under a timer whose handler raises. What was acknowledged is written down.
WORK = """
import faulthandler, json, signal, sys
import numpy as np
sys.path[:0] = [sys.argv[1]]
from linkstream.errors import StoreClosedError
from linkstream.store import Store
from store.operations import THRESHOLDS, vectors

faulthandler.dump_traceback_later(40, exit=True)

def stop(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, stop)
path, seed, calls = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(seed)
X = vectors(rng, 3 * calls)
store = Store.open(path, thresholds=THRESHOLDS, threads=1)
told = {"acknowledged": {}, "interrupted": 0, "closed": 0}

def call(i, after):
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        ids = store.add_many(X[3 * i : 3 * i + 3], idempotency_key=str(i))
        if i % 5 == 0:
            store.labels()
        return ids.tolist()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

for i in range(calls):
    try:
        told["acknowledged"][i] = call(i, float(rng.exponential(0.0004)))
    except KeyboardInterrupt:
        told["interrupted"] += 1
    except StoreClosedError:
        told["closed"] += 1
        store.close()
        store = Store.open(path, threads=1)
store.close()
print(json.dumps(told))
"""


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 9))]
)
def test_an_interrupt_at_any_moment_neither_hangs_nor_loses_calls(folder, seed):
    from linkstream import Links
    from linkstream.store import Store
    from store.internals import told
    from store.operations import THRESHOLDS

    path, tests = folder / "people.links", Path(__file__).parents[1]
    command = [sys.executable, "-c", WORK, str(tests), str(path), str(seed), "1500"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["interrupted"] > 100
    assert len(record["acknowledged"]) > 100
    links, answers = Links.from_thresholds(THRESHOLDS, threads=1), {}
    with Store.open(path, threads=1) as store:
        for operation in told(store):
            answers[operation.key] = links.add_many(operation.vectors).tolist()
        assert store.state_hash() == links.state_hash()
        store.verify()
    acknowledged = record["acknowledged"]
    assert {key: answers.get(key) for key in acknowledged} == acknowledged
