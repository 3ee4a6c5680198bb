"""The compiled module by itself: its stub, misuse, threads, signals.

What the bindings promise. Arrays of another dtype, shape or layout, and states that do not hang
together, are an exception before anything has changed; values are trusted (`door.py` and
`State.check` look at them). A call on an engine waits for the one before it and runs without the
GIL. It cannot be interrupted: a signal that comes meanwhile (Ctrl-C) is handled when the call
returns, so that a batch is in wholly, or was never begun. Only memory or threads running out within
a call leave an engine half changed; use the last snapshot then.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import linkstream
from linkstream import Links
from linkstream.errors import ArgumentError, VectorError
from streams import ENGINES, make

if "native" not in ENGINES:
    pytest.skip("installed without the compiled core on purpose", allow_module_level=True)

from linkstream import _core

STUB = Path(linkstream.__file__).parent / "_core.pyi"
UNIT = 2**30


def engine(dimension=4, **options):
    given = {"track_vectors": True, "cluster_evidence": False, "threads": 1}
    given |= {"kernel": "", "check_all_edges": False}
    return _core.Engine(0.7, 0.6, 0.9, dimension=dimension, **(given | options))


def vectors(n=4):
    return np.tile(np.eye(4, dtype=np.int32) * UNIT, (-(-n // 4), 1))[:n].copy()


def run(code, said=""):
    """Run code where a crash would harm nobody; what it printed."""
    words, alone = [sys.executable, "-W", "error", "-c", code], {"OMP_NUM_THREADS": "1"}
    options = {"input": said, "capture_output": True, "text": True, "env": os.environ | alone}
    done = subprocess.run(words, timeout=120, check=False, **options)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_stub_is_what_the_module_generates(tmp_path):
    made = tmp_path / "_core.pyi"
    words = [sys.executable, "-m", "nanobind.stubgen", "-m", "linkstream._core", "-o", str(made)]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    assert made.read_text() == STUB.read_text(), "run `make stubs`"


# Misuse. Each case runs in a process of its own, forked from one that has run these lines.

BEGIN = """
import sys
import numpy as np
from linkstream import _core

def engine(dimension=4, **options):
    given = dict(
        track_vectors=True, cluster_evidence=False, threads=1, kernel="", check_all_edges=False
    )
    return _core.Engine(0.7, 0.6, 0.9, dimension=dimension, **(given | options))

def vectors(n=4, dtype=np.int32):
    return np.tile(np.eye(4) * 2**30, (-(-n // 4), 1))[:n].astype(dtype)

def filled(**options):
    made = engine(**options)
    made.add(vectors(8))
    return made

def state(**changes):
    return filled().state() | changes

def restored(**changes):
    made = engine()
    made.restore(state(**changes))
    made.add(vectors(8))
    return made.labels(), made.state()

whole = np.int64
"""
FORK = """
import json, os
ended = {}
for case, code in json.load(sys.stdin).items():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        exec(code)
        sys.exit()
    os.close(writer)
    with open(reader) as said:
        words = said.read()
    ended[case] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), words
print(json.dumps(ended))
"""

MISUSE = {
    "float64 for int32": "engine().add(vectors(dtype=np.float64))",
    "float32 for int32": "engine().add(vectors(dtype=np.float32))",
    "int64 for int32": "engine().add(vectors(dtype=np.int64))",
    "uint32 for int32": "engine().add(vectors(dtype=np.uint32))",
    "asking with float64": "filled().ask(vectors(dtype=np.float64))",
    "ranking by float64": "filled().ranked(vectors(1, np.float64), 3)",
    "quantising float64": "_core.quantise(np.eye(3))",
    "quantising integers": "_core.quantise(vectors())",
    "a list": "engine().add(vectors().tolist())",
    "nothing": "engine().add(None)",
    "one dimension": "engine().add(vectors()[0])",
    "three dimensions": "engine().add(vectors()[np.newaxis])",
    "columns first": "engine().add(vectors().T)",
    "every other column": "engine().add(np.repeat(vectors(), 2, axis=1)[:, ::2])",
    "every other row": "engine().add(vectors(8)[::2])",
    "too narrow": "engine().add(vectors()[:, :3].copy())",
    "too wide": "engine(3).ask(vectors())",
    "ranking by no vector": "filled().ranked(vectors()[:0], 3)",
    "ranking by two vectors": "filled().ranked(vectors(2), 3)",
    "ranking by a narrow vector": "filled().ranked(vectors(1)[:, :3].copy(), 3)",
    "a negative limit": "filled().ranked(vectors(1), -1)",
    "no dimension": "engine(0)",
    "one coordinate": "engine(1)",
    "a negative dimension": "engine(-1)",
    "a dimension beyond the door's": "engine(2**16 + 1)",
    "a dimension whose bytes wrap round": "engine(2**59)",
    "a negative number of threads": "engine(threads=-1)",
    "more threads than there could be": "engine(threads=2**40)",
    "an unknown kernel": "engine(kernel='sse9')",
    "events before the beginning": "filled().event_rows(-1)",
    "events long before the beginning": "filled().event_rows(-2**63)",
    "events no longer kept": "e = engine(track_vectors=False); e.add(vectors(120_000)); "
    "e.event_rows(e.oldest_event() - 1)",
    "a state of nothing": "engine().restore({})",
    "a state that is no dict": "engine().restore(None)",
    "too few clusters": "restored(clusters=np.zeros(3, whole))",
    "too few counts": "restored(counts=np.ones(1, whole))",
    "too many first seen": "restored(first_seen=np.zeros(5, whole))",
    "too few last seen": "restored(last_seen=np.zeros(0, whole))",
    "too few sums": "restored(sums=np.ones((3, 4), whole))",
    "sums too narrow": "restored(sums=np.ones((4, 3), whole))",
    "sums of floats": "restored(sums=np.ones((4, 4)))",
    "numbers out of order": "restored(numbers=np.array([3, 2, 1, 0]))",
    "numbers never given": "restored(numbers=np.array([0, 1, 2, 99]))",
    "negative numbers": "restored(numbers=np.array([-1, 1, 2, 3]))",
    "no counts": "restored(counts=np.zeros(4, whole))",
    "an edge to nobody": "restored(edges=np.array([[0, 77]]))",
    "an edge to a negative": "restored(edges=np.array([[-5, 1]]))",
    "an edge to itself": "restored(edges=np.array([[1, 1]]))",
    "edges of three ends": "restored(edges=np.ones((1, 3), whole))",
    "a vector of nobody": "restored(vectors=np.full(8, 10**6))",
    "a vector of a negative": "restored(vectors=np.full(8, -2))",
    "too few vectors": "restored(vectors=np.zeros(3, whole))",
    "events of five columns": "restored(events=np.zeros((8, 5), whole))",
    "more events than there were": "restored(n_events=3)",
    "a negative counter": "restored(next_subcluster=-1)",
    "a counter too small": "restored(next_subcluster=2)",
    "a counter beyond 64 bits": "restored(n_vectors=2**64)",
    "a counter of text": "restored(next_cluster='7')",
    "a second state": "e = engine(); e.restore(state()); e.restore(state())",
    "a state after vectors": "filled().restore(state())",
}


def misused(*before, last):
    return "\n".join(
        [
            *before,
            "try:",
            f"    made = {last}",
            "except (TypeError, ValueError, KeyError, RuntimeError, MemoryError) as error:",
            "    print(type(error).__name__, error)",
            "else:",
            "    sys.exit(f'taken: {made!r:.200}')",
        ]
    )


@pytest.fixture(scope="module")
def ended():
    """How the process of each case ended, and what it said."""
    lines = {case: code.split("; ") for case, code in MISUSE.items()}
    codes = {case: misused(*before, last=last) for case, (*before, last) in lines.items()}
    return json.loads(run(BEGIN + FORK, json.dumps(codes)))


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_an_exception_and_no_crash(ended, case):
    code, words = ended[case]
    assert code == 0, f"exit code {code}\n{words}"
    assert words


@pytest.mark.parametrize("name", list(engine().state()))
def test_a_state_that_lacks_a_part_is_a_key_error(name):
    state = engine().state()
    del state[name]
    with pytest.raises(KeyError, match=name):
        engine().restore(state)


def test_what_a_refused_state_was_meant_for_is_as_good_as_new():
    whole = engine()
    whole.add(vectors(8))
    state = whole.state()
    fresh = engine()
    with pytest.raises(ValueError, match=r"\S"):
        fresh.restore(state | {"edges": np.array([[0, 77]])})
    fresh.restore(state)
    assert fresh.labels().tolist() == whole.labels().tolist()


def test_a_refused_array_changes_nothing():
    made = engine()
    made.add(vectors(4))
    with pytest.raises(ValueError, match="dimension"):
        made.add(vectors(4)[:, :3].copy())
    assert (made.n_vectors, len(made.event_rows(0))) == (4, 4)


def test_edges_of_what_may_be_asked_are_answers_and_no_errors():
    made = engine()
    assert made.ranked(vectors(1), 3) == []
    assert made.ask(vectors(4)[:0])[1].shape == (0,)
    assert made.event_rows(0).shape == (0, 6)
    made.add(vectors(4))
    assert made.ranked(vectors(1), 0) == []
    assert len(made.ranked(vectors(1), 2**63)) == 4
    assert made.event_rows(4).shape == made.event_rows(2**63 - 1).shape == (0, 6)
    assert made.add(vectors(4)[:0])[1].shape == (0,)


def test_nothing_handed_out_is_the_engines_own_memory():
    made = engine()
    made.add(vectors(4))
    before = made.state()
    for value in made.state().values():
        if isinstance(value, np.ndarray):
            value[...] = -7
    made.labels()[...] = -7
    made.event_rows(0)[...] = -7
    for name, value in made.state().items():
        np.testing.assert_array_equal(value, before[name])


def test_the_callers_array_is_left_as_it_was():
    given = vectors(8)
    given.flags.writeable = False
    made = engine()
    made.add(given)
    made.ask(given)
    assert given.tolist() == vectors(8).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_masked_vector_is_refused_by_the_short_way_too(dtype):
    links = Links(0.7, 0.6, 0.9, engine="native")
    links.add(np.array([1, 0, 0], dtype=dtype))
    with pytest.raises(VectorError, match="masked"):
        links.add(np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype=dtype))
    assert links.n_vectors == 1


# Threads.


ARRIVALS = ("created", "joined", "linked")


def at_once(*works):
    """Run each work in a thread of its own, all begun together; what they raised."""
    start, errors = threading.Barrier(len(works)), []

    def guarded(work):
        start.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    return errors


def test_threads_at_one_clusterer_lose_nothing_and_harm_nothing():
    stream = make("drifting", 3, n=4_001)
    links = Links(*stream.thresholds, engine="native", threads=2)
    links.add(stream.vectors[0])  # fixes the dimension
    halves, given = (stream.vectors[1::2], stream.vectors[2::2]), ([], [])

    def add(place):
        for batch in np.split(halves[place], 40):
            given[place].extend(links.add_many(batch[:25]).tolist())
            given[place].extend(links.add(x).cluster for x in batch[25:])

    def ask():
        for batch in np.split(stream.vectors[1:], 40):
            asked = links.predict(batch)
            state = links.state()
            state.check()
            assert -1 <= asked.min() <= asked.max() < state.next_cluster
            assert 1 <= links.n_clusters <= links.n_subclusters <= links.n_vectors <= 4_001
            links.explain(batch[0])

    assert not at_once(lambda: add(0), lambda: add(1), ask)
    links.state().check()
    assert links.n_vectors == links.state().counts.sum() == 4_001
    assert [len(part) for part in given] == [2_000, 2_000]
    arrivals = [event.vector for event in links.events() if event.kind in ARRIVALS]
    assert arrivals == list(range(4_001))


def test_other_threads_go_on_while_vectors_are_added():
    """With a switch interval of minutes, another thread moves only if the GIL is given up."""
    rows = np.repeat(vectors(4), 20_000, axis=0)
    made, count, stop = engine(), [0], threading.Event()

    def tick():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    ticking = threading.Thread(target=tick)
    try:
        sys.setswitchinterval(600.0)
        ticking.start()
        moved, deadline = 0, time.monotonic() + 60.0
        while not moved and time.monotonic() < deadline:
            before = count[0]
            made.add(rows)
            moved = count[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        ticking.join()
    assert moved


def test_an_engine_gone_takes_its_threads_along():
    code = BEGIN + (
        "import os\n"
        "count = lambda: len(os.listdir('/proc/self/task')) if os.path.isdir('/proc') else 0\n"
        "rng = np.random.default_rng(0)\n"
        "rows = _core.quantise(rng.standard_normal((4_000, 64)).astype(np.float32))[0]\n"
        "before = count()\n"
        "for _ in range(3):\n"
        "    made = engine(64, threads=4)\n"
        "    made.add(rows)\n"
        "    made.ask(rows)\n"
        "    del made\n"
        "assert count() == before, (count(), before)\n"
        "print('gone')\n"
    )
    assert run(code) == "gone\n"


FORKED = """
import os, signal, sys, time, warnings
import numpy as np
from linkstream import Links

warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons advise against it
rows = np.random.default_rng(0).standard_normal((4_000, 64)).astype(np.float32)
links = Links(0.7, 0.93, 0.9, engine="native", threads=2)
links.add_many(rows)
asked = links.predict(rows).tolist()
child = os.fork()
if child == 0:
    os._exit(0 if links.predict(rows).tolist() == asked else 1)
for _ in range(600):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.1)
else:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    sys.exit("the forked process waits for threads it has not got")
assert links.predict(rows).tolist() == asked
print("exit code", status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_answers_though_threads_are_not_forked():
    assert run(FORKED) == "exit code 0\n"


# Signals.

INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from linkstream import Links

rng = np.random.default_rng(0)
rows = rng.standard_normal((20_000, 64)).astype(np.float32)
for delay in (0.0, 0.01, 0.03, 0.1):
    links = Links(0.7, 0.6, 0.9, engine="native", threads=2)
    links.add(rows[0])
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        links.add_many(rows)
        timer.join()
        time.sleep(1.0)
    except KeyboardInterrupt:
        pass
    taken = links.n_vectors - 1
    links.state().check()
    whole = Links(0.7, 0.6, 0.9, engine="native", threads=2)
    whole.add_many(np.concatenate([rows[:1], rows[:taken]]))
    assert links.state_hash() == whole.state_hash(), taken
    assert not taken or len(links.last_decisions.cluster) == taken
    links.add_many(rows[taken:])
    whole.add_many(rows[taken:])
    assert links.state_hash() == whole.state_hash(), taken
print("sound")
"""


def test_an_interrupt_leaves_a_prefix_of_the_batch():
    assert run(INTERRUPTED) == "sound\n"


@pytest.mark.parametrize("threads", [0, -1, 1025, 10**9, 1.5, "2"])
def test_a_number_of_threads_out_of_bounds_is_refused(threads):
    with pytest.raises(ArgumentError, match="threads"):
        Links(0.7, 0.6, 0.9, threads=threads)


def test_more_vectors_than_can_be_numbered_are_refused_before_any_change(monkeypatch):
    monkeypatch.setattr("linkstream.clusterer.core.VECTORS_MAX", 5)
    links = Links(0.7, 0.6, 0.9)
    rows = np.eye(6, dtype=np.float32)
    links.add_many(rows[:3])
    before = links.state_hash()
    with pytest.raises(ArgumentError, match="3 vectors after 3"):
        links.add_many(rows[3:])
    assert links.state_hash() == before
    assert len(links.add_many(rows[3:5])) == 2


def test_single_vectors_wait_for_the_change_of_another_thread():
    links = Links(0.7, 0.6, 0.9, heal="join")
    plain = Links(0.7, 0.6, 0.9)
    rows = np.float32(np.random.default_rng(0).standard_normal((400, 8)))
    for each in (links, plain):
        each.add_many(rows[:20])
        many = threading.Thread(target=lambda to=each: [to.add_many(rows[:50]) for _ in range(40)])
        many.start()
        for row in rows:
            each.add(row)
        many.join()
        assert each.n_vectors == 20 + 40 * 50 + 400
        each.state().check()


def test_threads_that_bring_the_first_vectors_at_once_lose_none():
    for _ in range(20):
        links = Links(0.7, 0.6, 0.9)
        rows = np.float32(np.random.default_rng(0).standard_normal((40, 8)))
        threads = [threading.Thread(target=links.add_many, args=(rows,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert links.n_vectors == 160
