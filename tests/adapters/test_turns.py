"""Test that incremental turns equal turns computed from the beginning, at little cost."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.adapters import turns
from linkstream.adapters.diarization import Diarizer, Turn, turns_of
from linkstream.clusterer import Cluster
from linkstream.engine.contract import Decision
from linkstream.engine.events import Created, Named
from streams import make

TOUCH = 1e-6


# The plain definition: compute everything from the beginning


def plain_cells(spans, overlaps):
    if overlaps == "keep":
        return [[span] for span in spans]
    lost = [[] for _ in spans]
    for i, one in enumerate(spans):
        for j, other in enumerate(spans[:i]):
            start, end = max(one[0], other[0]), min(one[1], other[1])
            if start >= end:
                continue
            early, late = sorted(
                (i, j), key=lambda k: (sum(spans[k]), spans[k][0] - spans[k][1], -k)
            )
            border = (sum(one) + sum(other)) / 4
            if sum(one) == sum(other):
                lost[early].append((start, end))
                continue
            lost[early].append((max(start, border), end))
            lost[late].append((start, min(end, border)))
    return [plain_rest(span, taken) for span, taken in zip(spans, lost, strict=True)]


def plain_rest(span, taken):
    left, (start, end) = [], span
    for begin, stop in sorted(taken):
        if begin >= stop:
            continue
        if begin - start > TOUCH:
            left.append((start, begin))
        start = max(start, stop)
    return [*left, (start, end)] if end - start > TOUCH else left


def plain_turns(spans, ids, *, overlaps, gap, call="speaker-{}".format):
    cells = plain_cells(spans, overlaps)
    pieces = sorted((*cell, i) for kept, i in zip(cells, ids, strict=True) for cell in kept)
    told, last = [], {}
    for start, end, i in pieces:
        if i < 0:
            continue
        before = told[last[i]] if i in last else None
        pause = None if before is None else start - before.end
        others = [told[place].end for who, place in last.items() if who != i]
        if before is not None and (
            pause <= TOUCH
            or (pause <= gap + TOUCH and all(other <= before.end + TOUCH for other in others))
        ):
            told[last[i]] = Turn(before.start, max(before.end, end), call(i), i)
        else:
            last[i] = len(told)
            told.append(Turn(start, end, call(i), i))
    return told


class Puppet:
    """A fake clusterer with given results that counts its calls."""

    def __init__(self):
        self.ids, self.names, self.log, self.asked = [], {}, [], 0

    def add(self, x, *, group=None):
        number = len(self.ids)
        self.ids.append(int(x))
        self.log.append(Created(len(self.log), number, number, int(x)))
        return Decision(int(x), number, "new", None, None, number)

    def labels(self):
        return np.array(self.ids, dtype=np.int64)

    def clusters(self):
        self.asked += 1
        return [Cluster(i, 1, (), name, 0, 0) for i, name in self.names.items()]

    @property
    def n_events(self):
        return len(self.log)

    def events(self, since=0):
        return self.log[since:]

    def name(self, cluster, name):
        self.names[cluster] = name
        self.log.append(Named(len(self.log), len(self.ids), cluster, name))

    def call(self, cluster):
        return self.names.get(cluster, f"speaker-{cluster}")


def random_span(rng, n, *, step, grid):
    """Return a window of a stream, or sometimes one from anywhere; on a grid many are equal."""
    start = step * n if rng.random() < 0.8 else rng.uniform(0, step * n + 1)
    length = rng.choice([0.3, 1.6, 5.0]) if rng.random() < 0.97 else 40.0
    if grid:
        start, length = round(start), max(1, round(length))
    return float(start), float(start + length)


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("gap", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("overlaps", ["cut", "keep"])
def test_incremental_turns_equal_turns_computed_from_the_beginning(
    overlaps, gap, grid, monkeypatch
):
    monkeypatch.setattr(turns, "_CHUNK", 4)  # many chunks from few segments
    rng = np.random.default_rng([overlaps == "cut", int(gap), grid])
    puppet, spans, given = Puppet(), [], []
    diarizer = Diarizer(puppet, overlaps=overlaps, gap=gap)
    rules = {"overlaps": overlaps, "gap": gap, "call": puppet.call}
    for n in range(120):
        spans.append(random_span(rng, n, step=0.4 if overlaps == "cut" else 2.0, grid=grid))
        given.append(int(rng.integers(5)))
        diarizer.add(*spans[-1], given[-1])
        for changed in rng.integers(n + 1, size=rng.poisson(0.5)):  # split, joined or removed
            puppet.ids[changed] = int(rng.integers(-1, 6))
        if rng.random() < 0.05:
            puppet.name(int(rng.integers(5)), f"name {n}")
        if rng.random() < 0.4:
            assert diarizer.current() == plain_turns(spans, puppet.ids, **rules)
        if rng.random() < 0.2:
            assert diarizer.instant() == plain_turns(spans, given, **rules)
    assert diarizer.current() == plain_turns(spans, puppet.ids, **rules)
    told = turns_of(spans, puppet.ids, overlaps=overlaps, gap=gap)
    assert told == plain_turns(spans, puppet.ids, overlaps=overlaps, gap=gap)
    assert len(told) > 20


@pytest.mark.parametrize("heal", [None, "settle"])
def test_current_turns_follow_splits_healing_and_corrections_of_a_real_clusterer(heal):
    X, thresholds = make("drifting", 6, n=300)
    diarizer = Diarizer(Links(*thresholds, heal=heal), gap=0.5)
    spans = [(0.4 * n, 0.4 * n + 1.6) for n in range(len(X))]
    for n, x in enumerate(X):
        diarizer.add(*spans[n], x)
        if n % 60 == 50:
            diarizer.links.rename(diarizer.links.clusters()[0].id, f"Ann {n}")
        if n % 60 == 55:
            diarizer.links.remove(n - 3)
        if n % 7 == 0:
            names = {each.id: each.name for each in diarizer.links.clusters() if each.name}
            assert diarizer.current() == plain_turns(
                spans[: n + 1],
                diarizer.links.labels().tolist(),
                overlaps="cut",
                gap=0.5,
                call=lambda i, names=names: names.get(i, f"speaker-{i}"),
            )


def test_returned_turns_do_not_change_later():
    puppet = Puppet()
    diarizer = Diarizer(puppet)
    diarizer.add(0, 1, 0)
    told = diarizer.current()
    told.append("mine")
    diarizer.add(1, 2, 0)
    assert diarizer.current() == [Turn(0, 2, "speaker-0", 0)]
    assert told == [Turn(0, 1, "speaker-0", 0), "mine"]


@pytest.fixture
def counted(monkeypatch):
    """Count how often pieces were divided and added."""
    counts = {"divided": 0, "told": 0}

    def counting(what, method):
        def call(*given):
            counts[what] += 1
            return method(*given)

        return call

    monkeypatch.setattr(
        turns.SegmentTimes, "_divide", counting("divided", turns.SegmentTimes._divide)
    )
    monkeypatch.setattr(turns._ChunkTurns, "add", counting("told", turns._ChunkTurns.add))
    return counts


@pytest.mark.parametrize("n", [500, 4000])
def test_current_costs_what_changed_and_not_the_whole_recording(n, counted):
    puppet = Puppet()
    diarizer = Diarizer(puppet, gap=0.5)
    for i in range(n):
        diarizer.add(0.4 * i, 0.4 * i + 1.6, (i // 12) % 8)
    diarizer.current()
    counted.update(divided=0, told=0)
    for i in range(n, n + 10):  # ten more segments
        diarizer.add(0.4 * i, 0.4 * i + 1.6, (i // 12) % 8)
        diarizer.current()
    assert counted["divided"] <= 10 * 4
    assert counted["told"] <= 10 * 4 * turns._CHUNK
    counted.update(divided=0, told=0)
    puppet.ids[n // 2] = 9  # an old segment gets another speaker
    assert any(turn.cluster == 9 for turn in diarizer.current())
    assert counted["divided"] == 0
    assert counted["told"] <= 4 * turns._CHUNK
    counted.update(told=0)
    assert diarizer.current() == diarizer.current()
    assert counted["told"] == 0


def test_names_are_read_again_only_after_an_event_that_may_change_them():
    puppet = Puppet()
    diarizer = Diarizer(puppet)
    for i in range(50):
        diarizer.add(i, i + 1, i % 3)
        diarizer.current()
    assert puppet.asked == 1
    puppet.name(1, "Ann")
    assert {turn.speaker for turn in diarizer.current()} == {"speaker-0", "Ann", "speaker-2"}
    assert diarizer.add(50, 51, 1)[0].speaker == "Ann"
    assert puppet.asked == 2
