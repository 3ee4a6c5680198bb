"""Workloads with big tables and long streams: wide, vast, long; and the limits of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import peers, workloads
from benchmarks.machine import GIB, MIB, peak_resident, resident
from benchmarks.records import Rate, Recorder
from benchmarks.timing import Timing, measure
from benchmarks.workloads import SCATTER, THREADS, TIGHT, ScatterStream, Vectors
from linkstream import Links

ADD_MANY, ADD, PREDICT = "linkstream add_many", "linkstream add", "linkstream predict"
BIG_BYTES = 2**30
CODES_BYTES = 100_000 * 256  # of the codes of `wide`
BUILD, MORE, ALONE = "build the table", "1,000 more", "one vector alone"


def bandwidth(recorder: Recorder) -> None:
    """Measure the memory bandwidth: the limit for single vectors."""
    for total, where in ((BIG_BYTES, "memory"), (CODES_BYTES, "cache")):
        for threads in (1, THREADS):
            rates = read_bandwidth(total, threads)
            spread = f"{total / MIB:,.0f} MiB, best of {len(rates)}, from {min(rates) / 1e9:.1f}"
            what = f"reading {where}, {threads} thread{'s' if threads > 1 else ''}"
            recorder.fact(what, max(rates) / 1e9, "GB/s", spread)


# 100,000 subclusters


def wide(recorder: Recorder) -> None:
    """Measure 100,000 subclusters, compared with the scan alone and with search libraries."""
    stream = ScatterStream(workloads.WIDE_BASE, seed=workloads.WIDE_SEED)
    before = resident()
    links = Links(*SCATTER, threads=THREADS, keep_vectors=False)
    build(recorder, links, stream.blocks())
    workloads.WIDE_BASE_ANSWER.check(links)
    held = (resident() - before) / workloads.WIDE_BASE
    recorder.fact(
        "memory of a subcluster", held, "bytes", "256-d, all that is kept beside it included"
    )
    blocks = np.split(stream.more(workloads.WIDE_MORE), 5)
    added = measure_more(recorder, links, blocks)
    measure_scan(recorder, links, stream, added)
    one = measure_alone(recorder, links, stream.more(300))
    workloads.WIDE_ANSWER.check(links)
    del links
    measure_searchers(recorder, blocks, added, one)


def build(recorder: Recorder, links: Links, blocks: Iterable[Vectors]) -> None:
    """Fill a table block by block; the time to make the vectors does not count."""
    seconds = sum(measure(lambda x=x: links.add_many(x), tries=1).best for x in blocks)
    recorder.rate(BUILD, ADD_MANY, [links.n_vectors / seconds], f"from 0 to {links.n_vectors:,}")


def measure_more(recorder: Recorder, links: Links, blocks: list[Vectors]) -> Rate:
    """Measure `predict` and then `add_many` on blocks of 1,000."""
    asked, added = [], []
    for block in blocks:
        asked += measure(lambda x=block: links.predict(x), tries=1).rates(len(block))
        added += measure(lambda x=block: links.add_many(x), tries=1).rates(len(block))
    rate = recorder.rate(MORE, ADD_MANY, added)
    recorder.rate(MORE, PREDICT, asked)
    return rate


def measure_scan(recorder: Recorder, links: Links, stream: ScatterStream, added: Rate) -> None:
    """Measure the scan alone, the limit of `add_many`."""
    strangers = [stream.strangers(1_000) for _ in range(5)]
    asked, door, alone = scan_alone(links, strangers)
    recorder.rate(MORE, PREDICT + ", strangers", asked, "no candidate: the door and the scan")
    recorder.fact("door and codes of a vector", 1e6 / max(door), "µs", "no table to scan")
    products = alone * links.n_subclusters * 256 / 1e9
    recorder.fact("scan alone", alone, "vectors/s", f"{products:,.0f} G multiply-adds/s, int8")
    recorder.at_most(1.6, "the scan's limit to add_many", alone / added.best)


def measure_alone(recorder: Recorder, links: Links, vectors: Vectors) -> Rate:
    """Measure one vector per call."""
    added, asked = [], []
    for block in np.split(vectors, 3):
        asked += measure(lambda x=block: [links.predict(v[None]) for v in x], tries=1).rates(100)
        added += measure(lambda x=block: [links.add(v) for v in x], tries=1).rates(100)
    rate = recorder.rate(ALONE, ADD, added)
    recorder.rate(ALONE, PREDICT, asked)
    return rate


def measure_searchers(recorder: Recorder, blocks: list[Vectors], added: Rate, one: Rate) -> None:
    """Measure search libraries on the same table and vectors."""
    stream = ScatterStream(workloads.WIDE_BASE, seed=workloads.WIDE_SEED)
    table = np.concatenate(list(stream.blocks()))
    vector_wise = peers.numpy_matrix_vector(table)
    tries = either_way(vector_wise, [block[:50] for block in blocks])
    walk = recorder.rate(ALONE, "NumPy matrix–vector", tries, "two threads or one")
    product = measure_exact(recorder, table, blocks)
    graphs = measure_graphs(recorder, table, blocks)
    recorder.at_least(2.5, "add_many to NumPy matrix–matrix", added.best / product.best)
    if "hnswlib" in graphs:
        recorder.at_least(1, "add_many to hnswlib's search", added.best / graphs["hnswlib"].best)
    recorder.at_least(6, "add of one vector to NumPy matrix–vector", one.best / walk.best)


def either_way(searcher: peers.Searcher, blocks: list[Vectors]) -> list[float]:
    """Return rates with two threads, then with one.

    If other processes use a core, two threads that wait for each other can be slower than one; a
    peer must not lose by that.
    """
    rates: list[float] = []
    for threads in (THREADS, 1):
        with threadpool_limits(threads):
            for block in blocks:
                rates += measure(lambda x=block: searcher.find(x), tries=1).rates(len(block))
    return rates


def measure_exact(recorder: Recorder, table: Vectors, blocks: list[Vectors]) -> Rate:
    """Measure exact searches; return the rate of NumPy."""
    rates = {}
    for who, make in peers.EXACT.items():
        try:
            searcher = make(table)
        except ImportError as error:
            recorder.missing(MORE, who, f"not installed: {error}")
            continue
        tries = either_way(searcher, blocks[:3])
        rates[who] = recorder.rate(MORE, who, tries, "search only, two threads or one")
    return rates["NumPy matrix–matrix"]


def measure_graphs(recorder: Recorder, table: Vectors, blocks: list[Vectors]) -> dict[str, Rate]:
    """Measure graph searches, at the least effort that finds 99 % of the nearest rows."""
    queries = np.concatenate(blocks)
    truth = peers.numpy_matrix_matrix(table).find(queries)
    rates = {}
    for who, make in peers.GRAPHS.items():
        made: list[peers.Searcher] = []
        try:
            timing = measure(lambda m=make, out=made: out.append(m(table)), tries=1)
        except ImportError as error:
            recorder.missing(MORE, who, f"not installed: {error}")
            continue
        effort, recall = peers.lowest_effort(made[0], queries, truth)
        seconds = [measure(lambda x=x, s=made[0]: s.find(x), tries=1).best for x in blocks]
        note = f"search only, recall {recall:.3f} at effort {effort}"
        rates[who] = recorder.rate(MORE, who, Timing(tuple(seconds)).rates(1_000), note)
        recorder.rate(BUILD, who, timing.rates(len(table)), f"effort {peers.BUILD_EFFORT}")
    return rates


# 1,000,000 subclusters, 10,000,000 vectors


def vast(recorder: Recorder) -> None:
    """Measure rate and memory at 1,000,000 subclusters."""
    stream = ScatterStream(workloads.VAST_BASE, seed=workloads.VAST_SEED)
    links = Links(*SCATTER, threads=THREADS, keep_vectors=False)
    build(recorder, links, stream.blocks())
    added = measure_more(recorder, links, np.split(stream.more(workloads.VAST_MORE), 5))
    peak = peak_resident() / GIB
    workloads.VAST_ANSWER.check(links)
    recorder.fact("peak memory of the process", peak, "GiB", "vectors tracked, as by default")
    recorder.at_least(500, "add_many at 1,000,000 subclusters", added.best, "vectors/s")
    recorder.at_most(3, "peak memory of the process", peak, "GiB")


def long(recorder: Recorder) -> None:
    """Measure 10,000,000 untracked vectors in 1,000 clusters: memory must not grow."""
    links = Links(*TIGHT, threads=THREADS, track_vectors=False)
    rates, memory = [], []
    for block in workloads.long_stream():
        rates += measure(lambda x=block: links.add_many(x), tries=1).rates(len(block))
        memory.append(resident() / MIB)
    workloads.LONG_ANSWER.check(links)
    recorder.rate(f"{links.n_vectors:,} vectors", ADD_MANY, rates, "blocks of 20,000")
    # Making vectors allocates and frees memory, so the least of 50 blocks counts. The first ten
    # blocks are left out: then the log of events is full.
    half = len(memory) // 2
    start, middle, end = min(memory[10:60]), min(memory[half : half + 50]), min(memory[-50:])
    for when, value in (("start", start), ("middle", middle), ("end", end)):
        recorder.fact(f"memory at the {when}", value, "MiB", "whole process, least of 50 blocks")
    recorder.at_most(8, "memory gained from start to end", end - start, "MiB")


# Limits of the machine


def read_bandwidth(total: int, threads: int) -> tuple[float, ...]:
    """Return the bytes per second at which threads together read `total` bytes, for each try.

    NumPy finds the greatest byte of an array with vector instructions, without the global lock.
    """
    parts = [np.ones(total // threads, dtype=np.uint8) for _ in range(threads)]
    passes = max(1, 2**28 // total)

    def read(part: np.ndarray) -> None:
        for _ in range(passes):
            part.max()

    with ThreadPoolExecutor(threads) as pool:
        timing = measure(lambda: list(pool.map(read, parts)), tries=5)
    return tuple(total * passes / seconds for seconds in timing.seconds)


def scan_alone(
    links: Links, strangers: Sequence[Vectors]
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Return rates of strangers, of the same vectors without a scan, and of the scan alone.

    A stranger has no candidate, so `predict` only checks and converts the vector, computes its
    codes, and scans. With a table of one subcluster, the same vectors need no scan. The difference
    is the scan alone.
    """
    empty = Links.from_thresholds(links.thresholds, threads=THREADS)
    empty.add(strangers[0][0])
    asked = [measure(lambda x=x: links.predict(x), tries=1).best for x in strangers]
    door = [measure(lambda x=x: empty.predict(x), tries=1).best for x in strangers]
    n = len(strangers[0])
    alone = n / (min(asked) - min(door))
    return tuple(n / s for s in asked), tuple(n / s for s in door), alone
