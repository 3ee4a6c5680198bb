"""Ctrl-C at any moment: the added rows are a prefix, and continuing gives the same result.

An interrupt is sent at the k-th call or return of a Python function, so that the tests cover all
moments and depend on no clock.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

from linkstream import Links
from streams import ENGINES

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "evidence": {"evidence": "cluster"},
    "join": {"heal": "join"},
    "settle": {"evidence": "cluster", "heal": "settle"},
    "crowded": {"max_subclusters": 40},
    "idle": {"max_idle": 60},
    "untracked": {"track_vectors": False},
    "all": {"evidence": "cluster", "heal": "settle", "max_subclusters": 60, "max_idle": 200},
}


@contextmanager
def interrupted_at(place: int) -> Iterator[Callable[[], int]]:
    """Send SIGINT at the k-th event of the profiler of Python; yield the number of events.

    The garbage collector is off meanwhile: its callbacks would be events at moments of their own,
    and an exception raised in one of them is dropped.
    """
    seen = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal seen
        if seen == place:
            signal.raise_signal(signal.SIGINT)
        seen += 1

    gc.collect()
    gc.disable()
    sys.setprofile(count)
    try:
        yield lambda: seen
    finally:
        sys.setprofile(None)
        gc.enable()


def interrupt(work: Callable[[], object], place: int) -> None:
    """Run some work and interrupt it at a moment, or just after it if it ends before."""
    try:
        with interrupted_at(place) as seen:
            work()
    except KeyboardInterrupt:
        return
    finally:
        gc.enable()
    assert seen() <= place, f"the interrupt at {place} of {seen()} was lost"


def stream(n: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(12, 12))
    rows = centres[rng.integers(0, 12, n)] + 0.9 * rng.normal(size=(n, 12))
    return rows.astype(np.float32)


def clusterer(engine: str, options: dict[str, Any]) -> Links:
    return Links(0.55, 0.65, 0.75, engine=engine, **options)


def moments(work: Callable[[], Callable[[], object]], tries: int) -> list[int]:
    """Return moments spread over some work, after a first run that imports modules."""
    work()()
    again = work()
    with interrupted_at(-1) as seen:
        again()
        return np.linspace(3, seen() - 3, tries).astype(int).tolist()


def test_an_interrupt_just_after_the_work_stays_inside_its_test() -> None:
    work: Callable[[], object] = list
    for place in range(30):  # far beyond the end of the work
        interrupt(work, place)
    assert gc.isenabled()
    assert sys.getprofile() is None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_interrupted_and_continued_batch_ends_as_an_uninterrupted_one(
    name: str, engine: str
) -> None:
    check_batches(name, engine, tries=7)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_batch_interrupted_many_times_ends_as_an_uninterrupted_one(
    name: str, engine: str
) -> None:
    check_batches(name, engine, tries=60)


def check_batches(name: str, engine: str, *, tries: int) -> None:
    X = stream(220)

    def begun() -> Links:
        links = clusterer(engine, OPTIONS[name])
        links.add_many(X[:30])
        return links

    def batch() -> Callable[[], object]:
        links = begun()
        return lambda: links.add_many(X[30:])

    whole = begun()
    assert whole.last_decisions is not None
    ids = np.concatenate([whole.last_decisions.cluster, whole.add_many(X[30:])])
    for place in moments(batch, tries):
        links = begun()
        interrupt(lambda links=links: links.add_many(X[30:]), place)
        taken = links.n_vectors
        prefix = clusterer(engine, OPTIONS[name])
        prefix.add_many(X[:taken])
        assert links.state_hash() == prefix.state_hash(), f"not a prefix, at {place}"
        if taken > 30:
            assert links.last_decisions is not None
            assert links.last_decisions.cluster.tolist() == ids[30:taken].tolist()
        assert links.add_many(X[taken:]).tolist() == ids[taken:].tolist()
        assert links.state_hash() == whole.state_hash()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weight", [0.5, np.linspace(0.1, 1.0, 90)])
def test_a_batch_with_weights_can_be_interrupted_and_continued(engine: str, weight: Any) -> None:
    X, weights = stream(120), np.broadcast_to(weight, 90)

    def begun() -> Links:
        links = clusterer(engine, OPTIONS["settle"])
        links.add_many(X[:30])
        return links

    def batch() -> Callable[[], object]:
        links = begun()
        return lambda: links.add_many(X[30:], weight=weights)

    whole = begun()
    whole.add_many(X[30:], weight=weights)
    for place in moments(batch, 6):
        links = begun()
        interrupt(lambda links=links: links.add_many(X[30:], weight=weights), place)
        taken = links.n_vectors
        if taken < len(X):
            links.add_many(X[taken:], weight=weights[taken - 30 :])
        assert links.state_hash() == whole.state_hash()


VERBS: dict[str, Callable[[Links, np.ndarray], object]] = {
    "add_group": lambda links, X: links.add_group(X[100:104], group="photo"),
    "enrol": lambda links, X: links.enrol("Ann", X[100:103]),
    "same": lambda links, X: links.same(3, 9),
    "different": lambda links, X: links.different(*_together(links)),
    "move": lambda links, X: links.move(5, _elsewhere(links, 5)),
    "name": lambda links, X: links.name(int(links.labels()[0]), "Bob", claim=True),
    "remove": lambda links, X: links.remove(5),
    "forget": lambda links, X: links.forget(int(links.labels()[0])),
    "undo": lambda links, X: links.undo(),
    "settle": lambda links, X: links.settle(apply=True),
    "absorb": lambda links, X: links.absorb(_other(X)),
}


def _together(links: Links) -> tuple[int, int]:
    labels = links.labels().tolist()
    return next((a, b) for a in range(10, 99) for b in range(10, a) if labels[a] == labels[b])


def _elsewhere(links: Links, vector: int) -> int:
    labels = links.labels()
    return int(next(label for label in labels[::-1] if label != labels[vector]))


def _other(X: np.ndarray) -> Links:
    other = clusterer("native", {})
    other.add_many(X[100:])
    return other


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupted_verb_is_done_completely_or_not_at_all(verb: str, engine: str) -> None:
    X = stream(130)
    start = clusterer(engine, {})
    start.add_many(X[:100])
    start.same(1, 2)
    before, saved = start.state_hash(), start.to_bytes()

    def done() -> Callable[[], object]:
        links = Links.from_bytes(saved, engine=engine)
        return lambda: VERBS[verb](links, X)

    VERBS[verb](start, X)
    after = start.state_hash()
    for place in moments(done, 8):
        links = Links.from_bytes(saved, engine=engine)
        interrupt(lambda links=links: VERBS[verb](links, X), place)
        assert links.state_hash() in (before, after), f"neither before nor after, at {place}"
        if links.state_hash() == before:
            VERBS[verb](links, X)
            assert links.state_hash() == after


def test_a_handler_that_raises_nothing_does_not_end_a_batch() -> None:
    X, told = stream(220), []
    previous = signal.signal(signal.SIGINT, lambda number, _frame: told.append(number))
    try:
        links = clusterer("native", OPTIONS["settle"])
        with interrupted_at(40):
            ids = links.add_many(X)
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, previous)
    assert len(ids) == len(X)
    assert told == [signal.SIGINT]


def test_each_verb_restores_the_signal_handler() -> None:
    handler = signal.getsignal(signal.SIGINT)
    links = clusterer("native", {})
    links.add_many(stream(20))
    with pytest.raises(ValueError, match="vector 99"):
        links.remove(99)
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_native_batch_is_interrupted_before_it_is_over() -> None:
    """Interrupt one call of the compiled engine that would take minutes."""
    X = np.random.default_rng(0).normal(size=(60_000, 64)).astype(np.float32)
    links = Links(0.9, 0.95, 0.99, threads=1)  # every vector is a cluster of its own
    links.add_many(X[:20_000])
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - one batch after another until it comes
        timer.start()
        while True:
            links.add_many(X[20_000:])
    timer.join()
    assert links.last_decisions is not None
    assert (
        links.last_decisions.first_sequence + len(links.last_decisions.cluster) == links.n_vectors
    )
