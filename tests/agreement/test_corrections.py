"""User operations of the engines: weights, given outcomes, withdrawals, moves, locks and claims.

After any operations in any order, both engines have the same state and events bit for bit, and
every sum is that of the shares of the vectors in it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linkstream import Thresholds
from linkstream.engine import events
from linkstream.engine.contract import JOINED, LINKED, NEW
from linkstream.engine.corrections import share
from linkstream.engine.fixed_point import quantise
from linkstream.engine.forest import FULL, LOCKED, PINNED
from linkstream.engine.reference import ReferenceEngine
from linkstream.engine.state import State
from linkstream.engine.vector_store import ReferenceVectorStore
from streams import ENGINES, KINDS, around, make, unit

if "native" not in ENGINES:
    pytest.skip("built without the compiled core on purpose", allow_module_level=True)

from linkstream import _core
from linkstream.engine import native

KERNELS = sorted({"portable", _core.kernels()[-1]})


def assert_same(expected, seen):
    """All of two states, history too."""
    assert expected.scalars() == seen.scalars()
    for name, array in expected.arrays().items():
        assert array.dtype == seen.arrays()[name].dtype
        np.testing.assert_array_equal(array, seen.arrays()[name], err_msg=name)


def checked(state):
    """The state as it comes out of a file."""
    return State.from_parts(state.scalars(), state.arrays())


def attempt(do, engine):
    """What an engine answers, or that it refuses vectors that cancel out."""
    try:
        return do(engine)
    except ValueError as error:
        if "sum to zero" not in str(error):
            raise
        return "refused"


class Operations:
    """Random operations on several engines; the first is a reference engine that tracks vectors.

    `missing_weight` holds, for each vector, what it lacks to the full weight where it is.
    """

    def __init__(self, stream, seed, monkeypatch, *, evidence=False, kernels=KERNELS):
        self.rng = np.random.default_rng([seed, 5])
        self.patch = monkeypatch
        self.kernels = kernels
        self.fixed = quantise(np.asarray(stream.vectors, dtype=np.float32))[0]
        self.missing_weight = []
        dimension = self.fixed.shape[1]
        start = State(Thresholds(*stream.thresholds), dimension, cluster_evidence=evidence)
        self.stores = []
        self.engines = self.made(start, replace(start, track_vectors=False))

    def made(self, tracked, untracked):
        """A reference of each kind, then compiled ones of each kind for each kernel."""
        engines = []
        for state in (tracked, untracked):
            store = self.store(ReferenceVectorStore)
            engines.append(ReferenceEngine.from_state(state, store))
            for kernel in self.kernels:
                self.patch.setenv(native.KERNEL_VARIABLE, kernel)
                store = self.store(native.NativeVectorStore)
                engines.append(native.NativeEngine.from_state(state, store, threads=1))
                assert engines[-1].kernel == kernel
        return engines

    def store(self, kind):
        store = kind(self.fixed.shape[1])
        store.append(self.fixed[: len(self.missing_weight)])
        self.stores.append(store)
        return store

    @property
    def guide(self):
        return self.engines[0]

    @property
    def groups(self):
        half = len(self.engines) // 2
        return self.engines[:half], self.engines[half:]

    def compare(self):
        for group in self.groups:
            expected, *others = (checked(engine.state()) for engine in group)
            for seen in others:
                assert_same(expected, seen)
            for engine in group[1:]:
                assert engine.n_clusters == group[0].n_clusters
                assert engine.n_subclusters == group[0].n_subclusters
                assert engine.n_cluster_ids == group[0].n_cluster_ids
                assert engine.oldest_event() == group[0].oldest_event()
                for number in range(-1, self.guide.state().free_subcluster + 1):
                    assert engine.cluster_of(number) == self.guide.cluster_of(number)
                if engine.track_vectors:
                    holders = [engine.holder(member) for member in range(len(self.missing_weight))]
                    assert holders == self.guide.state().vectors.tolist()
                    np.testing.assert_array_equal(engine.labels(), self.guide.labels())
        self.assert_sums()

    def assert_sums(self):
        """Sums, counts and weights are those of the vectors that are there."""
        state = self.guide.state()
        for row, number in enumerate(state.numbers):
            members = np.flatnonzero(state.vectors == number)
            shares = [share(self.fixed[i], self.missing_weight[i]) for i in members]
            np.testing.assert_array_equal(np.sum(shares, axis=0), state.sums[row])
            assert state.counts[row] == len(members)
            assert state.missing_weight[row] == sum(self.missing_weight[i] for i in members)

    def exchange(self):
        """Each engine goes on from another's state, with numbers skipped as an undo would."""
        ours, theirs = (group[-1].state() for group in self.groups)
        skip = self.rng.integers(3, size=2).tolist()
        tracked, untracked = (
            replace(
                checked(state),
                free_subcluster=state.free_subcluster + skip[0] + skip[1],
                free_cluster=state.free_cluster + skip[1],
            )
            for state in (ours, theirs)
        )
        for kept in self.stores:
            np.testing.assert_array_equal(
                kept.rows(np.arange(len(kept))), self.fixed[: len(self.missing_weight)]
            )
        self.stores = []
        self.engines = self.made(tracked, untracked)

    # What may be done

    def everywhere(self, do):
        """The same to each engine; all answer alike, or refuse alike (None)."""
        first, *others = (attempt(do, engine) for engine in self.engines)
        assert all(other == first for other in others)
        return None if isinstance(first, str) else first

    def locked(self, number):
        state = self.guide.state()
        return bool(state.flags[state.numbers == number][0] & LOCKED)

    def add(self):
        n = int(self.rng.integers(1, 12))
        rows = self.fixed[len(self.missing_weight) : len(self.missing_weight) + n]

        def do(engine):
            decisions = engine.add(rows)
            return [decisions.at(i) for i in range(len(rows))]

        for decision in self.everywhere(do):
            full = decision.kind == "joined" and self.locked_then(decision.subcluster)
            self.missing_weight.append(FULL if full else 0)

    def locked_then(self, number):
        """Whether a subcluster that has just been joined is locked; it may have merged since."""
        node = self.guide._graph.nodes.get(number)
        return node is not None and node.locked

    def outcome(self):
        """Return a random outcome, its target and a random edge rule."""
        numbers = self.guide.state().numbers.tolist()
        outcome = int(self.rng.choice([JOINED, LINKED, NEW] if numbers else [NEW]))
        target = -1 if outcome == NEW else int(self.rng.choice(numbers))
        return {"outcome": outcome, "target": target, "rule": int(self.rng.integers(PINNED + 1))}

    def place(self):
        member = len(self.missing_weight)
        missing_weight = int(self.rng.choice([0, 1, 64, 200, 255, self.rng.integers(256)]))
        options = {"missing_weight": missing_weight} | (
            self.outcome() if self.rng.random() < 0.6 else {}
        )
        row = self.fixed[member]
        decision = self.everywhere(lambda engine: engine.place(row, **options))
        if decision is not None:
            only_counts = decision.kind == "joined" and self.locked_then(decision.subcluster)
            self.missing_weight.append(FULL if only_counts else missing_weight)

    def withdraw(self):
        """One of the vectors that are there; its number, or None where that may not be."""
        state = self.guide.state()
        there = np.flatnonzero(state.vectors >= 0)
        if not len(there):
            return None
        member = int(self.rng.choice(there))
        missing_weight, target = self.missing_weight[member], int(state.vectors[member])

        def do(engine):
            known = member if engine.track_vectors else -1
            engine.withdraw(
                self.fixed[member], missing_weight=missing_weight, target=target, member=known
            )
            return True

        if not self.everywhere(do):
            return None
        self.missing_weight[member] = 0
        return member

    def move(self):
        member = self.withdraw()
        if member is None:
            return
        options = {"missing_weight": int(self.rng.choice([0, 100]))} | self.outcome()
        row = self.fixed[member]
        locked = options["outcome"] == JOINED and self.locked(options["target"])
        if self.everywhere(lambda engine: engine.place(row, member=member, **options)):
            self.missing_weight[member] = FULL if locked else options["missing_weight"]

    def flag(self):
        numbers = self.guide.state().numbers.tolist()
        if numbers:
            number, flags = int(self.rng.choice(numbers)), int(self.rng.integers(4))
            self.everywhere(lambda engine: engine.flag(number, flags))

    def note(self):
        rows = [(events.NAMED, 0, -1), (events.DIFFERENT, 0, 1, 2)]
        self.everywhere(lambda engine: engine.note(iter(rows)))

    def anything(self):
        operations = [self.add, self.place, self.withdraw, self.move, self.flag, self.note]
        chosen = self.rng.choice(len(operations), p=[0.3, 0.25, 0.17, 0.15, 0.08, 0.05])
        operations[chosen]()


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_whatever_is_done_the_engines_agree_bit_for_bit(kind, seed, evidence, monkeypatch):
    operations = Operations(make(kind, seed, n=160), seed, monkeypatch, evidence=evidence)
    for step in range(400):
        if len(operations.missing_weight) > 140:
            break
        operations.anything()
        if step % 9 == 0:
            operations.compare()
        if step % 40 == 39:
            operations.exchange()
    operations.compare()


@pytest.mark.long
@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2, 12))
def test_whatever_is_done_for_long_the_engines_agree(kind, seed, evidence, monkeypatch):
    operations = Operations(make(kind, seed, n=800), seed, monkeypatch, evidence=evidence)
    step = 0
    while len(operations.missing_weight) < 780:
        operations.anything()
        step += 1
        if step % 20 == 0:
            operations.compare()
        if step % 150 == 0:
            operations.exchange()
    operations.compare()


def test_budgets_hold_whatever_is_withdrawn_from_a_hub():
    """Looking at the edges that are due decides what looking at all would."""
    rng = np.random.default_rng(4)
    core = np.tile(unit(rng.standard_normal(24)), (1_500, 1))
    cosines = np.where(rng.random(1_500) < 0.5, 0.96, rng.uniform(0.52, 0.8, 1_500))
    fixed = quantise(around(rng, core, cosines).astype(np.float32))[0]
    thresholds = Thresholds(0.62, 0.9, 0.8)
    engines = [
        native.NativeEngine(thresholds, 24, track_vectors=True, threads=1, check_all_edges=every)
        for every in (False, True)
    ]
    for engine in engines:
        engine.add(fixed[:700])
    for member in rng.permutation(1_400).tolist():
        holders = engines[0].state().vectors
        there = member < len(holders)
        for engine in engines:
            if there:
                where = int(holders[member])
                engine.withdraw(fixed[member], missing_weight=0, target=where, member=member)
            else:
                engine.add(fixed[len(holders) : len(holders) + 3])
    assert_same(*(engine.state() for engine in engines))
    seen = np.bincount(engines[0].state().events[:, 0], minlength=events.FLAGGED)
    assert np.all(seen[[events.SEVERED, events.SPLIT, events.VANISHED]] > 20)


def test_taking_everything_out_again_leaves_nothing(monkeypatch):
    operations = Operations(make("lobes", 3, n=160), 3, monkeypatch, evidence=True)
    for _ in range(8):
        operations.add()
    for _ in range(30):
        operations.place()
    while operations.withdraw() is not None:
        pass
    operations.compare()
    for engine in operations.engines:
        assert engine.n_clusters == engine.n_subclusters == 0
        assert engine.n_cluster_ids > 0
    assert np.all(operations.guide.labels() == -1)
    for _ in range(5):
        operations.add()
    operations.compare()


@pytest.mark.parametrize("n", [10_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_vectors_that_come_and_go_leave_sums_as_they_were(n):
    stream = make("lobes", 1, n=200)
    fixed = quantise(np.asarray(stream.vectors, dtype=np.float32))[0]
    # Nothing merges at so high a T_s and nothing is cut at so low a T_p: sums alone are at stake.
    state = State(Thresholds(0.1, 0.9999, 0.01), fixed.shape[1], track_vectors=False)
    engine = native.NativeEngine.from_state(replace(state, cluster_evidence=True), threads=1)
    engine.add(fixed[:50])
    before = engine.state()
    numbers = before.numbers.tolist()
    rng = np.random.default_rng(0)
    for i, j in zip(*(rng.integers(50, size=n).tolist() for _ in range(2)), strict=True):
        row, missing_weight = fixed[50 + i], 5 * i
        target = numbers[j % len(numbers)]
        assert (
            engine.place(
                row, missing_weight=missing_weight, outcome=JOINED, target=target
            ).subcluster
            == target
        )
        engine.withdraw(row, missing_weight=missing_weight, target=target, member=-1)
    after = engine.state()
    for name in ("numbers", "clusters", "counts", "light", "sums", "edges", "firm"):
        np.testing.assert_array_equal(before.arrays()[name], after.arrays()[name])
    expected, seen = (native.NativeEngine.from_state(s, threads=1) for s in (before, after))
    for one, other in zip(expected.ranked(fixed[3], 20), seen.ranked(fixed[3], 20), strict=True):
        assert one == other


def cancelling(engine, fixed):
    """Operations after which the vectors of a subcluster would sum to zero."""
    return {
        "the only vector of a locked one": lambda: engine.withdraw(
            fixed[0], missing_weight=0, target=0, member=0
        ),
        "the opposite": lambda: engine.place(-fixed[1], outcome=JOINED, target=1),
        "no share": lambda: engine.place(fixed[2], missing_weight=FULL, outcome=NEW),
        "no share, linked": lambda: engine.place(
            fixed[2], missing_weight=FULL, outcome=LINKED, target=0
        ),
    }


@pytest.mark.parametrize(
    "make_engine", [ReferenceEngine.from_state, native.NativeEngine.from_state]
)
def test_a_subcluster_of_nothing_is_refused_before_anything_changes(make_engine):
    fixed = quantise(np.eye(4, dtype=np.float32))[0]
    engine = make_engine(State(Thresholds(0.7, 0.6, 0.9), 4))
    engine.add(fixed[:2])
    engine.flag(0, LOCKED)
    engine.place(fixed[0], outcome=JOINED, target=0)
    before = engine.state()
    for operation in cancelling(engine, fixed).values():
        with pytest.raises(ValueError, match="sum to zero"):
            operation()
        assert_same(before, engine.state())
    engine.place(-fixed[0], outcome=JOINED, target=0)  # a locked one only counts it


@pytest.mark.parametrize(
    "options",
    [
        {"missing_weight": -1},
        {"missing_weight": 257},
        {"outcome": 3},
        {"outcome": JOINED, "target": 7},
        {"outcome": JOINED},
        {"outcome": LINKED, "target": 0, "rule": 3},
        {"outcome": LINKED, "target": 0, "rule": -1},
        {"outcome": NEW, "target": 0},
        {"member": 0},
        {"member": 9, "outcome": NEW},
        {"member": -2, "outcome": NEW},
    ],
)
def test_the_core_refuses_orders_that_make_no_sense(options):
    fixed = quantise(np.eye(4, dtype=np.float32))[0]
    engine = native.NativeEngine.from_state(State(Thresholds(0.7, 0.6, 0.9), 4), threads=1)
    engine.add(fixed[:2])
    before = engine.state()
    with pytest.raises(ValueError, match=r"\w"):
        engine.place(fixed[2], **options)
    assert_same(before, engine.state())


@pytest.mark.parametrize(
    "changes",
    [
        {"missing_weight": -1},
        {"missing_weight": 3},
        {"target": 1},
        {"target": 9},
        {"member": -1},
        {"member": 5},
    ],
)
def test_the_core_refuses_to_withdraw_what_is_not_there(changes):
    fixed = quantise(np.eye(4, dtype=np.float32))[0]
    engine = native.NativeEngine.from_state(State(Thresholds(0.7, 0.6, 0.9), 4), threads=1)
    engine.add(fixed[[0, 1, 0]])
    before = engine.state()
    with pytest.raises(ValueError, match=r"\w"):
        engine.withdraw(fixed[0], **({"missing_weight": 0, "target": 0, "member": 0} | changes))
    assert_same(before, engine.state())


@pytest.mark.parametrize("kind", [ReferenceVectorStore, native.NativeVectorStore])
def test_vectors_are_kept_in_order_and_cut_from_the_end(kind):
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**30), 2**30, (700, 4_000)).astype(np.int32)  # several blocks
    kept = kind(4_000)
    for part in np.array_split(rows, 9):
        kept.append(part)
    numbers = rng.permutation(700)
    assert len(kept) == 700
    np.testing.assert_array_equal(kept.rows(numbers), rows[numbers])
    kept.cut(300)
    assert len(kept) == 300
    kept.append(rows[:50])
    np.testing.assert_array_equal(kept.rows(np.arange(350)), rows[[*range(300), *range(50)]])
    with pytest.raises(IndexError):
        kept.rows(np.array([350]))


def test_every_way_in_keeps_the_vector():
    rows = np.random.default_rng(0).standard_normal((600, 16)).astype(np.float32)
    fixed = quantise(rows)[0]
    kept = native.NativeVectorStore(16)
    engine = native.NativeEngine.from_state(State(Thresholds(0.7, 0.6, 0.9), 16), kept, threads=1)
    engine.add(fixed[:200])
    assert engine.add(rows[200:597]) is not None
    assert engine.add_one(rows[597]) is not None
    engine.place(fixed[598], missing_weight=100)
    engine.place(fixed[599], outcome=NEW)
    engine.withdraw(fixed[599], missing_weight=0, target=engine.state().vectors[599], member=599)
    engine.place(fixed[599], outcome=NEW, member=598)
    expected = fixed[[*range(598), 598, 599]]
    np.testing.assert_array_equal(kept.rows(np.arange(len(kept))), expected)
    del engine
    assert len(kept) == 600
