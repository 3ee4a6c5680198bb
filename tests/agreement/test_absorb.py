"""Sums of vectors: both engines absorb them alike, by the tests of one vector."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine import fixed_point
from linkstream.engine.forest import CLAIM, LOCKED, mass
from streams import ENGINES, make

KINDS = ("generative", "lobes", "chains", "anything")
engines = pytest.mark.parametrize("engine", ENGINES)


def cut(vectors, seed):
    """Cut vectors into groups of 1 to 9, like the subclusters of another clusterer."""
    rng, start = np.random.default_rng(seed), 0
    while start < len(vectors):
        size = int(rng.integers(1, 10))
        yield vectors[start : start + size]
        start += size


def begun(engine, stream, **options):
    links = Links(*stream.thresholds, engine=engine, threads=1, **options)
    links.add_many(stream.vectors[:40])
    return links


def groups(stream, seed):
    rng = np.random.default_rng(seed)
    for group in cut(stream.vectors[40:160], seed):
        rows, _ = fixed_point.quantise(group)
        missing_weights = np.where(rng.random(len(rows)) < 0.2, 64, 0).astype(np.int64)
        shares = (rows.astype(np.int64) * (256 - missing_weights[:, np.newaxis]) + 128) >> 8
        total = np.where(missing_weights[:, np.newaxis] > 0, shares, rows).sum(axis=0)
        flags = int(rng.choice([0, 0, 0, 0, CLAIM, LOCKED | CLAIM]))
        yield total, missing_weights, rows, flags, bool(rng.random() < 0.1)


def absorbed(engine, stream, seed, **options):
    links = begun(engine, stream, **options)
    answers = []
    for total, missing_weights, rows, flags, apart in groups(stream, seed):
        kept = rows if links.keep_vectors else None
        answer = links.core.engine.absorb(
            total, missing_weights, rows=kept, flags=flags, apart=apart
        )
        answers.append(answer.at(0))
        answers += [links.add(rows[0] / fixed_point.SCALE)]  # the stream goes on between
    return links, answers


@pytest.mark.parametrize("evidence", ["nearest", "cluster"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_both_engines_receive_alike(kind, seed, evidence):
    stream = make(kind, seed)
    one, first = absorbed("reference", stream, seed, evidence=evidence)
    two, second = absorbed("native", stream, seed, evidence=evidence)
    assert first == second
    assert one.events() == two.events()
    assert one.state_hash() == two.state_hash()


@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_receive_alike_where_vectors_are_not_tracked(kind):
    stream = make(kind, 5)
    one, first = absorbed("reference", stream, 5, track_vectors=False)
    two, second = absorbed("native", stream, 5, track_vectors=False)
    assert first == second
    assert one.state_hash() == two.state_hash()


@engines
@pytest.mark.parametrize("track_vectors", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_many_received_at_once_are_received_one_by_one(kind, track_vectors, engine):
    stream = make(kind, 6)
    options = {"track_vectors": track_vectors, "keep_vectors": False}
    one, two = begun(engine, stream, **options), begun("reference", stream, **options)
    given = [(total, missing_weights) for total, missing_weights, *_ in groups(stream, 6)]
    totals = np.stack([total for total, _ in given])
    sizes = np.array([len(missing_weights) for _, missing_weights in given])
    answer = one.core.engine.absorb(
        totals, np.concatenate([missing_weights for _, missing_weights in given]), sizes
    )
    single = [
        two.core.engine.absorb(total, missing_weights).at(0) for total, missing_weights in given
    ]
    assert answer.cluster.tolist() == [each.cluster for each in single]
    assert answer.subcluster.tolist() == [each.subcluster for each in single]
    assert one.events() == two.events()
    assert one.state_hash() == two.state_hash()


@pytest.mark.parametrize(
    "wrong",
    [
        {"totals": np.zeros((2, 3), dtype=np.int64)},
        {"totals": np.full((1, 3), 2**29)},
        {"totals": np.full((2, 4), 2**29)},
        {"sizes": np.array([1, 1])},
        {"sizes": np.array([2, 2])},
        {"sizes": np.array([0, 3])},
        {"sizes": np.array([2**62, 1])},
        {"missing_weights": np.array([0, 300, 0])},
    ],
)
def test_of_many_that_cannot_be_none_is_received(wrong):
    links = Links(0.7, 0.6, 0.9, engine="native", threads=1)
    links.add([1.0, 0.0, 0.0])
    sound = {
        "totals": np.full((2, 3), 2**29),
        "sizes": np.array([2, 1]),
        "missing_weights": np.zeros(3, dtype=np.int64),
    }
    before = links.state_hash()
    with pytest.raises(ValueError, match=r"."):
        links.core.engine.absorb(**{**sound, **wrong})
    assert links.state_hash() == before
    links.core.engine.absorb(**sound)
    assert links.n_vectors == 4


@engines
def test_one_vector_received_is_one_vector_added(engine):
    stream = make("lobes", 2)
    one, two = begun(engine, stream), begun(engine, stream)
    for x in stream.vectors[40:90]:
        rows, _ = fixed_point.quantise(x[np.newaxis])
        missing_weights = np.zeros(1, dtype=np.int64)
        answer = one.core.engine.absorb(rows[0].astype(np.int64), missing_weights, rows=rows)
        assert answer.at(0) == two.add(x)
    assert one.events() == two.events()
    assert one.state_hash() == two.state_hash()


@engines
def test_those_who_come_together_are_judged_by_how_many_they_are(engine):
    links = Links(0.7, 0.99, 0.95, engine=engine, threads=1)
    links.add_many(np.tile([[1.0, 0.0]], (20, 1)))
    rows, _ = fixed_point.quantise(np.tile([[0.9, 0.436]], (30, 1)).astype(np.float32))
    total, missing_weights = rows.astype(np.int64).sum(axis=0), np.zeros(30, dtype=np.int64)
    answer = links.core.engine.absorb(total, missing_weights, rows=rows).at(0)
    assert answer.kind == ("linked" if answer.similarity >= answer.threshold else "new")
    assert answer.threshold == links.thresholds.edge(20, mass(30, 0))
    assert answer.threshold > links.thresholds.edge(20, 1)


@engines
def test_the_log_alone_gives_the_state_again(engine):
    stream = make("lobes", 4)
    links, _ = absorbed(engine, stream, 4)
    before, n = links.state_hash(), links.n_vectors
    links.add(stream.vectors[0])
    links.undo()  # plays all events, and sums up the vectors that are kept
    assert (links.state_hash(), links.n_vectors) == (before, n)


@pytest.mark.parametrize(
    "wrong",
    [
        {"missing_weights": np.array([0, 300])},
        {"missing_weights": np.array([0, -1])},
        {"missing_weights": np.array([], dtype=np.int64)},
        {"totals": np.zeros(3, dtype=np.int64)},
        {"totals": np.array([2**40, 0, 0])},
        {"flags": 9},
    ],
)
def test_what_cannot_be_is_refused_by_the_compiled_engine(wrong):
    links = Links(0.7, 0.6, 0.9, engine="native", threads=1)
    links.add([1.0, 0.0, 0.0])
    sound = {
        "totals": np.array([2**30, 0, 0]),
        "missing_weights": np.zeros(2, dtype=np.int64),
        "flags": 0,
    }
    before = links.state_hash()
    with pytest.raises(ValueError, match=r"."):
        links.core.engine.absorb(**{**sound, **wrong})
    assert links.state_hash() == before
