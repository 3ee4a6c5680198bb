"""All verbs in any order, with reopening, compacting, readers and crashes between, on one store.

Beside it stands a plain clusterer that nothing happens to. Hypothesis drives both to find the
smallest failure; a plain generator drives them for the bulk.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from linkstream import Links
from linkstream.store import Store
from store.internals import EarlyMaintenance, still
from store.operations import THRESHOLDS, VERBS, Shadow, do, make_operation, state_of
from streams import ENGINES

PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None
OPTIONS = (
    {},
    {},
    {"evidence": "cluster"},
    {"max_subclusters": 9},
    {"heal": "settle", "min_size": 2},
)


@pytest.fixture(autouse=True)
def _early():
    with EarlyMaintenance(20):
        yield


class Course:
    """A store and its shadow, on the same course."""

    def __init__(self, seed):
        self.folder = Path(tempfile.mkdtemp(dir=PLACE))
        self.path = self.folder / "people.links"
        options = OPTIONS[seed % len(OPTIONS)]
        self.store = Store.open(self.path, thresholds=THRESHOLDS, threads=1, **options)
        links = Links.from_thresholds(THRESHOLDS, threads=1, **options)
        self.shadow = Shadow(seed, links=links)
        self.readers = []  # with the place each was opened or refreshed at
        self.floor = 0  # events that can no longer be undone
        self.number = self.crashes = 0

    def do(self, verb):
        """One operation, to both."""
        links = self.shadow.links
        what = make_operation(
            self.shadow.seed, self.number, links, sizes=(1, 3, 9), verbs={verb: 1}
        )
        self.number += 1
        keyed = {"idempotency_key": str(self.number)} if self.number % 3 == 0 else {}
        answer = do(self.store, what, **keyed)
        if answer == "UndoError" and self.floor:
            return  # it lies before a compaction; nothing has changed
        self.shadow.answers.append(do(links, what))
        self.shadow.note(what)
        assert answer == self.shadow.answers[-1], what.verb
        assert self.store.state_hash() == links.state_hash(), what.verb
        if keyed and not isinstance(answer, str):
            assert do(self.store, what, **keyed) == answer, "a retry"
            assert self.store.state_hash() == links.state_hash()

    def check(self):
        assert state_of(self.store) == self.shadow.state()

    def reopen(self):
        self.store.close()
        engine = ENGINES[self.number % len(ENGINES)]
        self.store = Store.open(self.path, engine=engine, threads=1)
        self.check()

    def crash(self):
        """Go on from a copy of the files as they are: what a kill at this moment would leave."""
        self.crashes += 1
        folder = self.folder / str(self.crashes)
        folder.mkdir()
        with still(self.store):
            for file in self.folder.glob("people.links*"):
                if file.suffix != ".links-shm":
                    shutil.copy(file, folder)
        self.close()
        for file in self.folder.glob("people.links*"):
            file.unlink()
        for file in folder.iterdir():
            file.rename(self.folder / file.name)
        self.store = Store.open(self.path, threads=1)
        self.check()

    def compact(self):
        self.check()
        self.store.compact()
        self.floor = self.shadow.links.state().n_events
        self.check()

    def back_and_forth(self):
        """Some undos, with anything that changes no answer between them, and as many redos."""
        before, done = state_of(self.store), 0
        while done < 2 and self.store.n_vectors >= 3:
            n = self.store.n_events
            self.do("undo")
            if self.store.n_events == n:
                break  # it lies before a compaction
            done += 1
            (self.reopen, self.crash, self.verify)[self.number % 3]()
        for _ in range(done):
            self.do("redo")
        assert state_of(self.store)[::2] == before[::2]  # all but the number of events
        self.check()

    def read(self):
        """A new reader; at most three."""
        if len(self.readers) == 3:
            self.readers.pop(0)[0].close()
        reader = Store.open(self.path, read_only=True, threads=1)
        self.readers.append((reader, self.shadow.state()))
        assert state_of(reader) == self.readers[-1][1]

    def refresh(self):
        for i, (reader, place) in enumerate(self.readers):
            assert reader.state_hash() == place[0]
            reader.refresh()
            self.readers[i] = (reader, self.shadow.state())
            assert state_of(reader) == self.readers[i][1]

    def verify(self):
        self.store.verify()

    def close(self):
        self.store.close()
        for reader, _ in self.readers:
            reader.close()
        self.readers.clear()

    def finish(self):
        self.check()
        self.reopen()
        self.store.verify()
        self.close()
        shutil.rmtree(self.folder)


CARE = {"reopen": 3, "crash": 3, "compact": 1, "read": 2, "refresh": 3, "verify": 1, "check": 3}
CARE |= {"back_and_forth": 2}


class StoreMachine(RuleBasedStateMachine):
    """A rule for each verb and each kind of care."""

    operations = 0

    @initialize(seed=st.integers(0, 10**6))
    def begin(self, seed):
        self.course = Course(seed)
        self.course.do("add_many")

    def teardown(self):
        if hasattr(self, "course"):
            self.course.finish()


def rule_of(verb, care):
    @rule()
    def operate(self):
        getattr(self.course, verb)() if care else self.course.do(verb)
        type(self).operations += 1

    operate.__name__ = f"{verb}_it"
    return operate


for _verb in VERBS:
    setattr(StoreMachine, f"{_verb}_it", rule_of(_verb, care=False))
for _care in CARE:
    setattr(StoreMachine, f"{_care}_it", rule_of(_care, care=True))


def test_hypothesis_finds_no_failing_sequence_of_operations():
    class Machine(StoreMachine):
        pass

    Machine.TestCase.settings = settings(
        max_examples=15, stateful_step_count=25, deadline=None, print_blob=True
    )
    Machine.TestCase().runTest()
    assert Machine.operations >= 100


def run(seed, steps):
    """A random course of so many steps."""
    rng = np.random.default_rng([seed, 6])
    weights = VERBS | CARE
    odds = np.array(list(weights.values())) / sum(weights.values())
    course = Course(seed)
    course.do("add_many")
    for verb in rng.choice(list(weights), size=steps, p=odds).tolist():
        getattr(course, verb)() if verb in CARE else course.do(verb)
    course.finish()


@pytest.mark.parametrize("seed", range(4))
def test_a_store_has_the_state_of_a_plain_clusterer_after_any_operations(seed):
    run(seed, 70)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_a_store_has_the_state_of_a_plain_clusterer_in_long_runs(seed):
    run(seed, 600)
