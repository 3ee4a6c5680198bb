"""Workloads that fit in memory: tight, scatter, hub and lobes, compared with other clusterers."""

from __future__ import annotations

import time

from benchmarks import peers
from benchmarks.records import Rate, Recorder
from benchmarks.timing import measure, measure_in_turn
from benchmarks.workloads import SMALL, THREADS, Vectors, Workload
from linkstream import Links

WHOLE, SECOND, LAST = "the whole stream", "the second 1,000", "the last 1,000"
ADD_MANY, ADD, PEER = "linkstream add_many", "linkstream add", "linkscluster"
DBSTREAM_N = 1_000


def tight(recorder: Recorder) -> None:
    """Measure 100 clusters of one subcluster each: the cost of a vector besides the search."""
    workload = SMALL["tight"]
    vectors = workload.make()
    workload.answer.check(filled(workload, vectors))
    works = {
        ADD_MANY: lambda: filled(workload, vectors),
        ADD: lambda: one_by_one(workload, vectors),
        PEER: lambda: peers.linkscluster_pass(vectors, workload.thresholds, threads=THREADS),
    }
    timings = measure_in_turn(works, tries=5)
    rates = {who: recorder.rate(WHOLE, who, t.rates(len(vectors))) for who, t in timings.items()}
    other_clusterers(recorder, vectors)
    recorder.at_least(10, "add_many to linkscluster", rates[ADD_MANY].best / rates[PEER].best)
    recorder.at_least(2, "add to linkscluster", rates[ADD].best / rates[PEER].best)


def scatter(recorder: Recorder) -> None:
    """Measure one subcluster per vector: the search, at three dimensions."""
    for name in ("scatter", "scatter-512", "scatter-1024"):
        workload = SMALL[name]
        prefix = "" if name == "scatter" else f"{name.partition('-')[2]}-d, "
        vectors = workload.make()
        workload.answer.check(filled(workload, vectors))
        measure_whole(recorder, workload, vectors, prefix)
        ours = measure_thousands(recorder, workload, vectors, prefix, places={LAST: -1})[LAST]
        theirs = measure_peer(recorder, workload, vectors, prefix)
        what = f"{prefix}{LAST} to linkscluster"
        if name == "scatter":
            recorder.at_least(60, what, ours.best / theirs[LAST].best)


def hub(recorder: Recorder) -> None:
    """Measure a node with 6,000 edges: the cost of a vector must not grow with them."""
    workload = SMALL["hub"]
    vectors = workload.make()
    workload.answer.check(filled(workload, vectors))
    whole = measure_whole(recorder, workload, vectors)
    ours = measure_thousands(recorder, workload, vectors, places={SECOND: 1, LAST: -1})
    theirs = measure_peer(recorder, workload, vectors, threads=(1, 2))
    recorder.at_least(300, "add_many to linkscluster", whole.best / theirs[WHOLE].best)
    recorder.at_least(1, f"{LAST} to {SECOND}", ours[LAST].best / ours[SECOND].best)


def lobes(recorder: Recorder) -> None:
    """Measure identities of five lobes: many merges, cuts and splits."""
    workload = SMALL["lobes"]
    vectors = workload.make()
    links = filled(workload, vectors)
    workload.answer.check(links)
    kinds = {event.kind for event in links.events()}
    assert {"merged", "severed", "rejoined", "split"} <= kinds, kinds
    works = {
        ADD_MANY: lambda: filled(workload, vectors),
        PEER: lambda: peers.linkscluster_pass(vectors, workload.thresholds, threads=THREADS),
    }
    timings = measure_in_turn(works, tries=5)
    rates = {who: recorder.rate(WHOLE, who, t.rates(len(vectors))) for who, t in timings.items()}
    recorder.at_least(15, "add_many to linkscluster", rates[ADD_MANY].best / rates[PEER].best)


# Runs over a stream


def filled(workload: Workload, vectors: Vectors) -> Links:
    """Add the stream in one call, and return the clusterer."""
    links = workload.links()
    links.add_many(vectors)
    return links


def one_by_one(workload: Workload, vectors: Vectors) -> Links:
    """Add the stream in one call per vector, and return the clusterer."""
    links = workload.links()
    for vector in vectors:
        links.add(vector)
    return links


def thousands(workload: Workload, vectors: Vectors) -> list[float]:
    """Return the seconds of each thousand vectors, one call per thousand."""
    links, seconds = workload.links(), []
    for first in range(0, len(vectors), 1_000):
        begin = time.perf_counter()
        links.add_many(vectors[first : first + 1_000])
        seconds.append(time.perf_counter() - begin)
    workload.answer.check(links)
    return seconds


# Measurements


def measure_whole(
    recorder: Recorder, workload: Workload, vectors: Vectors, prefix: str = ""
) -> Rate:
    """Record the rate of the stream in one call."""
    timing = measure(lambda: filled(workload, vectors), tries=7)
    return recorder.rate(prefix + WHOLE, ADD_MANY, timing.rates(len(vectors)))


def measure_thousands(
    recorder: Recorder,
    workload: Workload,
    vectors: Vectors,
    prefix: str = "",
    *,
    places: dict[str, int],
) -> dict[str, Rate]:
    """Record the rates of some thousands of the stream, over several passes."""
    passes = [thousands(workload, vectors) for _ in range(10)]
    return {
        task: recorder.rate(prefix + task, ADD_MANY, [1_000 / seconds[place] for seconds in passes])
        for task, place in places.items()
    }


def measure_peer(
    recorder: Recorder,
    workload: Workload,
    vectors: Vectors,
    prefix: str = "",
    *,
    threads: tuple[int, ...] = (2, 1),
) -> dict[str, Rate]:
    """Record the rates of linkscluster, each thousand at its best pass."""
    best = peers.linkscluster_best(vectors, workload.thresholds, threads=threads)
    note = f"each thousand at the best of {best.passes} passes"
    return {
        WHOLE: recorder.rate(prefix + WHOLE, PEER, [best.whole_rate], note),
        LAST: recorder.rate(prefix + LAST, PEER, [best.last_rate], note),
    }


def other_clusterers(recorder: Recorder, vectors: Vectors) -> None:
    """Record the rates of two other stream clusterers, with the number of clusters found."""
    try:
        timing = measure(lambda: peers.birch(vectors), tries=2)
        note = f"{peers.birch(vectors)} subclusters"
        recorder.rate(WHOLE, "scikit-learn Birch", timing.rates(len(vectors)), note)
    except ImportError as error:
        recorder.missing(WHOLE, "scikit-learn Birch", f"not installed: {error}")
    try:
        rows = peers.as_dictionaries(vectors[:DBSTREAM_N])
        timing = measure(lambda: peers.dbstream(rows), tries=1)
        note = f"n = {DBSTREAM_N:,}"
        recorder.rate(WHOLE, "river DBSTREAM", timing.rates(DBSTREAM_N), note)
    except ImportError as error:
        recorder.missing(WHOLE, "river DBSTREAM", f"not installed: {error}")
