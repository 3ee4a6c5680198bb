"""The compiled engine is the reference engine, bit for bit: decisions, events, state hash.

Whatever the kernel, the number of threads and the cuts of a stream into batches. Besides the
differential streams there are larger ones here, so that blocks, threads, shortlists that overflow
and second scans are all at work, and ones made to tempt the search into a wrong proposal.
"""

import itertools
import os

import numpy as np
import pytest

from linkstream import Links, Thresholds, _core
from linkstream.engine import fixed_point, native
from linkstream.engine.contract import Decisions
from linkstream.engine.reference import ReferenceEngine
from linkstream.errors import NotTrackedError
from streams import KINDS, Stream, around, make, unit

KERNELS = _core.kernels()
THREADS = (1, 2, 4)
BATCHES = (1, 7, 64, 1_000, 10_000)
WAYS = list(itertools.product(KERNELS, THREADS, BATCHES))
SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 52))]


def fixed(stream):
    return fixed_point.quantise(np.asarray(stream.vectors, dtype=np.float32))[0]


def reference(stream):
    vectors = fixed(stream)
    engine = ReferenceEngine(Thresholds(*stream.thresholds), vectors.shape[1], track_vectors=True)
    return engine.add(vectors), engine.state()


def compiled(stream, kernel, threads, batch, monkeypatch, **options):
    """The same by the compiled engine, in batches."""
    monkeypatch.setenv(native.KERNEL_VARIABLE, kernel)
    vectors = fixed(stream)
    engine = native.NativeEngine(
        Thresholds(*stream.thresholds),
        vectors.shape[1],
        track_vectors=True,
        threads=threads,
        **options,
    )
    assert engine.kernel == kernel
    parts = [engine.add(vectors[at : at + batch]) for at in range(0, len(vectors), batch)]
    columns = zip(*(columns_of(part) for part in parts), strict=True)
    return Decisions(0, *map(np.concatenate, columns)), engine.state()


def columns_of(decisions):
    return (
        decisions.cluster,
        decisions.subcluster,
        decisions.kind,
        decisions.similarity,
        decisions.threshold,
        decisions.cluster_margin,
    )


def assert_same(expected, seen):
    for one, other in zip(columns_of(expected[0]), columns_of(seen[0]), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(expected[1].events, seen[1].events)
    assert expected[1].n_events == seen[1].n_events
    assert expected[1].digest() == seen[1].digest()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_stream_of_the_oracle_is_decided_alike(seed, monkeypatch):
    for place, kind in enumerate(KINDS):
        stream = make(kind, seed)
        expected = reference(stream)
        for way in WAYS[(seed * len(KINDS) + place) % 7 :: 7]:
            assert_same(expected, compiled(stream, *way, monkeypatch))


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_threads_and_batches_change_nothing(kind, monkeypatch):
    stream = make(kind, 700, n=400)
    expected = reference(stream)
    for way in WAYS:
        assert_same(expected, compiled(stream, *way, monkeypatch))


def scatter(n=5_000, d=64):
    """Nearly every vector its own subcluster: more rows than one chunk, so that threads share."""
    rng = np.random.default_rng(1)
    centres = unit(rng.standard_normal((n // 20, d)))
    return Stream(around(rng, np.repeat(centres, 20, axis=0), 0.75), (0.7, 0.93, 0.9))


def cone(n=3_000, d=32):
    """Vectors of positive coordinates: all similarities pass the lowest threshold."""
    rng = np.random.default_rng(2)
    return Stream(np.abs(rng.standard_normal((n, d))) + 0.2, (0.6, 0.93, 0.97))


def crowd(n=2_500, d=24):
    """Rows closer to each other than the codes can tell: the exact similarity has to choose."""
    rng = np.random.default_rng(3)
    centres = unit(rng.standard_normal((3, d)))
    place = rng.integers(3, size=n)
    return Stream(around(rng, centres[place], 0.99999), (0.9, 0.99999, 0.95))


def growing_hub(n=4_000, d=48):
    """A core that half of the stream joins, while the other half hangs on it."""
    rng = np.random.default_rng(4)
    core = np.tile(unit(rng.standard_normal(d)), (n, 1))
    cosines = np.where(rng.random(n) < 0.5, 0.96, rng.uniform(0.52, 0.8, n))
    return Stream(around(rng, core, cosines), (0.62, 0.9, 0.8))


def smaller_hub():
    """What the reference has to do for a hub goes by the square of its size."""
    return growing_hub(1_600)


def drifting_lobes(n=9_000, d=32):
    """Identities of eight lobes that turn: merges, cuts, re-joins and splits all along."""
    rng = np.random.default_rng(1)
    centres = np.repeat(unit(rng.standard_normal((60, d))), 8, axis=0)
    start, end = around(rng, centres, 0.82), around(rng, centres, 0.82)
    lobe, time = rng.integers(len(centres), size=n), np.linspace(0.0, 1.0, n)[:, np.newaxis]
    path = unit((1.0 - time) * start[lobe] + time * end[lobe])
    return Stream(around(rng, path, 0.95), (0.75, 0.9, 0.85))


def winding(n=3_000, d=16):
    """One winding path: a cluster of many nodes, cut in its middle, re-joined over large parts."""
    rng = np.random.default_rng(6)
    path = unit(np.cumsum(rng.normal(size=(n // 4, d)), axis=0))
    return Stream(around(rng, path[rng.integers(len(path), size=n)], 0.97), (0.6, 0.93, 0.62))


LARGE = (scatter, cone, crowd, growing_hub, drifting_lobes, winding)
HUBS = (smaller_hub, pytest.param(growing_hub, marks=pytest.mark.long))


@pytest.mark.parametrize("make_stream", [*(make for make in LARGE if make != growing_hub), *HUBS])
def test_large_streams_are_decided_alike(make_stream, monkeypatch):
    stream = make_stream()
    expected = reference(stream)
    ways = [(kernel, threads, 10_000) for kernel in KERNELS for threads in THREADS]
    for way in [*ways, (KERNELS[-1], 2, 1), (KERNELS[-1], 2, 7), (KERNELS[-1], 4, 1_000)]:
        assert_same(expected, compiled(stream, *way, monkeypatch))


def test_the_large_streams_bring_every_step_about(monkeypatch):
    way = (KERNELS[-1], 2, 10_000)
    logs = [compiled(make(), *way, monkeypatch)[1].events for make in LARGE]
    seen = sum(np.bincount(log[:, 0], minlength=7) for log in logs)
    assert seen.min() >= 60, seen


@pytest.mark.parametrize("seed", range(20))
def test_edges_looked_at_within_their_budget_are_as_good_as_all_edges(seed, monkeypatch):
    way = (KERNELS[seed % len(KERNELS)], 1, 64)
    for kind in KINDS:
        stream = make(kind, 900 + seed, n=300)
        full = compiled(stream, *way, monkeypatch, check_all_edges=True)
        assert_same(full, compiled(stream, *way, monkeypatch))


@pytest.mark.parametrize("make_stream", LARGE)
def test_budgets_hold_on_large_streams_too(make_stream, monkeypatch):
    way = (KERNELS[-1], 2, 1_000)
    full = compiled(make_stream(), *way, monkeypatch, check_all_edges=True)
    assert_same(full, compiled(make_stream(), *way, monkeypatch))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "second"), [("reference", "native"), ("native", "reference")])
def test_a_snapshot_of_one_engine_goes_on_in_the_other(kind, first, second):
    stream = make(kind, 800, n=300)
    whole = Links(*stream.thresholds, engine=second)
    whole.add_many(stream.vectors)
    begun = Links(*stream.thresholds, engine=first)
    begun.add_many(stream.vectors[:150])
    resumed = Links.from_bytes(begun.to_bytes(), engine=second)
    resumed.add_many(stream.vectors[150:])
    assert resumed.engine == second
    assert resumed.state_hash() == whole.state_hash()
    assert resumed.events() == whole.events()


@pytest.mark.parametrize("kind", KINDS)
def test_asking_and_explaining_give_the_same_answers(kind):
    stream = make(kind, 810, n=300)
    one, other = (Links(*stream.thresholds, engine=name) for name in ("reference", "native"))
    for links in (one, other):
        links.add_many(stream.vectors[:200])
    assert one.predict(stream.vectors).tolist() == other.predict(stream.vectors).tolist()
    for x in stream.vectors[200:220]:
        assert one.explain(x) == other.explain(x)
    assert one.labels().tolist() == other.labels().tolist()
    assert one.clusters() == other.clusters()


@pytest.mark.parametrize("dimension", [2, 3, 63, 64, 65, 255, 256, 257, 1_000, 4_099])
def test_fixed_point_rows_are_the_same_bits(dimension):
    rng = np.random.default_rng(dimension)
    rows = rng.standard_normal((40, dimension)) * 10.0 ** rng.integers(-8, 9, size=(40, 1))
    rows = np.float32(rows)
    for one, other in zip(fixed_point.quantise(rows), native.quantise(rows), strict=True):
        np.testing.assert_array_equal(one, other)


def test_fixed_point_rows_are_the_same_bits_in_the_middle_between_two():
    # Coordinates that are odd multiples of 2⁻³¹ of the norm: halves, as near as float32 allows.
    rng = np.random.default_rng(0)
    odd = rng.integers(1, 2**23, size=(20_000, 8)) * 2 + 1
    rows = np.concatenate([np.full((20_000, 1), 2.0**31), odd], axis=1).astype(np.float32) * 2**-31
    scaled = np.rint(rows.astype(np.float64) * 2.0**31)
    assert (scaled[:, 1:] % 2 == 1).mean() > 0.5
    expected, lengths = fixed_point.quantise(rows)
    seen, seen_lengths = native.quantise(rows)
    np.testing.assert_array_equal(expected, seen)
    np.testing.assert_array_equal(lengths, seen_lengths)


def test_without_tracking_the_compiled_log_keeps_the_newest_hundred_thousand_too():
    rng = np.random.default_rng(0)
    links = Links(0.8, 0.6, 0.9, engine="native", track_vectors=False)
    links.add_many(rng.standard_normal((20, 8))[rng.integers(20, size=130_000)])
    oldest = links.state().n_events - 100_000
    newest = links.events(oldest)
    assert len(newest) == len(links.state().events) == 100_000
    assert newest[-1].vector == 129_999
    with pytest.raises(NotTrackedError, match=str(oldest)):
        links.events(oldest - 1)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # what it warns of is tested here
def test_a_forked_process_goes_on_without_the_threads_of_its_parent():
    stream = scatter()
    half = len(stream.vectors) // 2
    links = Links(*stream.thresholds, engine="native", threads=2)
    links.add_many(stream.vectors[:half])
    child = os.fork()
    if child == 0:  # threads do not come along into a fork; waiting for them would never end
        links.add_many(stream.vectors[half:])
        os._exit(len(links.labels()) == len(stream.vectors))
    links.add_many(stream.vectors[half:])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
