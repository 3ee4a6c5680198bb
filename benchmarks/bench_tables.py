"""Big tables and long streams: wide, vast, long, and what the machine itself can do."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import limits, peers, workloads
from benchmarks.machine import GIB, MIB, peak_resident, resident
from benchmarks.records import Book, Rate
from benchmarks.timing import Timing, measure
from benchmarks.workloads import SCATTER, THREADS, TIGHT, ScatterStream, Vectors
from linkstream import Links

ADD_MANY, ADD, PREDICT = "linkstream add_many", "linkstream add", "linkstream predict"
BUILD, MORE, ALONE = "build the table", "1,000 more", "one vector alone"


def bandwidth(book: Book) -> None:
    """How fast this machine reads memory: the limit of a vector that comes alone."""
    for total, where in ((limits.BIG_BYTES, "memory"), (limits.CODES_BYTES, "cache")):
        for threads in (1, THREADS):
            rates = limits.read_bandwidth(total, threads)
            spread = f"{total / MIB:,.0f} MiB, best of {len(rates)}, from {min(rates) / 1e9:.1f}"
            what = f"reading {where}, {threads} thread{'s' if threads > 1 else ''}"
            book.fact(what, max(rates) / 1e9, "GB/s", spread)


# 100,000 subclusters


def wide(book: Book) -> None:
    """100,000 subclusters: adding against the scan's own limit, and against searchers."""
    stream = ScatterStream(workloads.WIDE_BASE, seed=workloads.WIDE_SEED)
    before = resident()
    links = Links(*SCATTER, threads=THREADS, keep_vectors=False)
    build(book, links, stream.blocks())
    workloads.WIDE_BASE_ANSWER.check(links)
    held = (resident() - before) / workloads.WIDE_BASE
    book.fact("memory of a subcluster", held, "bytes", "256-d, all that is kept beside it included")
    blocks = np.split(stream.more(workloads.WIDE_MORE), 5)
    added = measure_more(book, links, blocks)
    measure_scan(book, links, stream, added)
    one = measure_alone(book, links, stream.more(300))
    workloads.WIDE_ANSWER.check(links)
    del links
    measure_searchers(book, blocks, added, one)


def build(book: Book, links: Links, blocks: Iterable[Vectors]) -> None:
    """Fill a table block by block; making the vectors is not counted."""
    seconds = sum(measure(lambda x=x: links.add_many(x), tries=1).best for x in blocks)
    book.rate(BUILD, ADD_MANY, [links.n_vectors / seconds], f"from 0 to {links.n_vectors:,}")


def measure_more(book: Book, links: Links, blocks: list[Vectors]) -> Rate:
    """Blocks of 1,000: asked about, then added."""
    asked, added = [], []
    for block in blocks:
        asked += measure(lambda x=block: links.predict(x), tries=1).rates(len(block))
        added += measure(lambda x=block: links.add_many(x), tries=1).rates(len(block))
    rate = book.rate(MORE, ADD_MANY, added)
    book.rate(MORE, PREDICT, asked)
    return rate


def measure_scan(book: Book, links: Links, stream: ScatterStream, added: Rate) -> None:
    """The limit: what the scan does when there is nothing else to do."""
    strangers = [stream.strangers(1_000) for _ in range(5)]
    asked, door, alone = limits.scan_alone(links, strangers)
    book.rate(MORE, PREDICT + ", strangers", asked, "no candidate: the door and the scan")
    book.fact("door and codes of a vector", 1e6 / max(door), "µs", "no table to scan")
    products = alone * links.n_subclusters * 256 / 1e9
    book.fact("scan alone", alone, "vectors/s", f"{products:,.0f} G multiply-adds/s, int8")
    book.at_most(1.6, "the scan's limit to add_many", alone / added.best)


def measure_alone(book: Book, links: Links, vectors: Vectors) -> Rate:
    """One vector a call, nothing to share the walk through memory with."""
    added, asked = [], []
    for block in np.split(vectors, 3):
        asked += measure(lambda x=block: [links.predict(v[None]) for v in x], tries=1).rates(100)
        added += measure(lambda x=block: [links.add(v) for v in x], tries=1).rates(100)
    rate = book.rate(ALONE, ADD, added)
    book.rate(ALONE, PREDICT, asked)
    return rate


def measure_searchers(book: Book, blocks: list[Vectors], added: Rate, one: Rate) -> None:
    """The same table and the same vectors for those who only search."""
    stream = ScatterStream(workloads.WIDE_BASE, seed=workloads.WIDE_SEED)
    table = np.concatenate(list(stream.blocks()))
    vector_wise = peers.numpy_matrix_vector(table)
    tries = either_way(vector_wise, [block[:50] for block in blocks])
    walk = book.rate(ALONE, "NumPy matrix–vector", tries, "two threads or one")
    product = measure_exact(book, table, blocks)
    graphs = measure_graphs(book, table, blocks)
    book.at_least(2.5, "add_many to NumPy matrix–matrix", added.best / product.best)
    if "hnswlib" in graphs:
        book.at_least(1, "add_many to hnswlib's search", added.best / graphs["hnswlib"].best)
    book.at_least(6, "add of one vector to NumPy matrix–vector", one.best / walk.best)


def either_way(searcher: peers.Searcher, blocks: list[Vectors]) -> list[float]:
    """Rates with two threads, then with one.

    Where others hold a core, two threads that wait for each other can be slower than one alone;
    a peer must not lose by that.
    """
    rates: list[float] = []
    for threads in (THREADS, 1):
        with threadpool_limits(threads):
            for block in blocks:
                rates += measure(lambda x=block: searcher.find(x), tries=1).rates(len(block))
    return rates


def measure_exact(book: Book, table: Vectors, blocks: list[Vectors]) -> Rate:
    """Searchers that miss nothing; the rate of NumPy's."""
    rates = {}
    for who, make in peers.EXACT.items():
        try:
            searcher = make(table)
        except ImportError as error:
            book.missing(MORE, who, f"not installed: {error}")
            continue
        tries = either_way(searcher, blocks[:3])
        rates[who] = book.rate(MORE, who, tries, "search only, two threads or one")
    return rates["NumPy matrix–matrix"]


def measure_graphs(book: Book, table: Vectors, blocks: list[Vectors]) -> dict[str, Rate]:
    """Searchers over a graph, at the least effort that finds 99 % of the nearest."""
    queries = np.concatenate(blocks)
    truth = peers.numpy_matrix_matrix(table).find(queries)
    rates = {}
    for who, make in peers.GRAPHS.items():
        made: list[peers.Searcher] = []
        try:
            timing = measure(lambda m=make, out=made: out.append(m(table)), tries=1)
        except ImportError as error:
            book.missing(MORE, who, f"not installed: {error}")
            continue
        effort, recall = peers.lowest_effort(made[0], queries, truth)
        seconds = [measure(lambda x=x, s=made[0]: s.find(x), tries=1).best for x in blocks]
        note = f"search only, recall {recall:.3f} at effort {effort}"
        rates[who] = book.rate(MORE, who, Timing(tuple(seconds)).rates(1_000), note)
        book.rate(BUILD, who, timing.rates(len(table)), f"effort {peers.BUILD_EFFORT}")
    return rates


# 1,000,000 subclusters, 10,000,000 vectors


def vast(book: Book) -> None:
    """1,000,000 subclusters: does it still go, and in how much memory?"""
    stream = ScatterStream(workloads.VAST_BASE, seed=workloads.VAST_SEED)
    links = Links(*SCATTER, threads=THREADS, keep_vectors=False)
    build(book, links, stream.blocks())
    added = measure_more(book, links, np.split(stream.more(workloads.VAST_MORE), 5))
    peak = peak_resident() / GIB
    workloads.VAST_ANSWER.check(links)
    book.fact("peak memory of the process", peak, "GiB", "vectors tracked, as by default")
    book.at_least(500, "add_many at 1,000,000 subclusters", added.best, "vectors/s")
    book.at_most(3, "peak memory of the process", peak, "GiB")


def long(book: Book) -> None:
    """10,000,000 vectors into 1,000 clusters, not tracked: memory must stand still."""
    links = Links(*TIGHT, threads=THREADS, track_vectors=False)
    rates, memory = [], []
    for block in workloads.long_stream():
        rates += measure(lambda x=block: links.add_many(x), tries=1).rates(len(block))
        memory.append(resident() / MIB)
    workloads.LONG_ANSWER.check(links)
    book.rate(f"{links.n_vectors:,} vectors", ADD_MANY, rates, "blocks of 20,000")
    # Making vectors leaves room behind that comes and goes: the least of 50 blocks counts,
    # from the tenth on, when the log of events is full.
    half = len(memory) // 2
    start, middle, end = min(memory[10:60]), min(memory[half : half + 50]), min(memory[-50:])
    for when, value in (("start", start), ("middle", middle), ("end", end)):
        book.fact(f"memory at the {when}", value, "MiB", "whole process, least of 50 blocks")
    book.at_most(8, "memory gained from start to end", end - start, "MiB")
