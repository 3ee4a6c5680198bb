"""Who keeps the ID at a split: with us the larger part, with `linkscluster` 0.1.0 the touched one.

The stream that shows it is examples/splinter.py.
"""

from __future__ import annotations

from collections import Counter
from importlib import metadata

import numpy as np
import pytest
from examples import splinter
from linkscluster import LinksClusterer

from linkstream import Links
from replay import Replay
from streams import ENGINES, KINDS, make

engines = pytest.mark.parametrize("engine", ENGINES)
CONFIGURATIONS = ({}, {"evidence": "cluster", "heal": "settle"})
SEEDS = range(8)


def parts_at_splits(events, **options):
    """Of each split: how many vectors kept the ID, and how many left with a new one."""
    replay, parts = Replay(**options), []
    for event in events:
        replay.play([event])
        if event.kind == "split":
            held = Counter(replay.labels())
            parts.append((held[event.cluster], held[event.new_cluster]))
    return parts


def smaller_part_kept(before, after):
    """IDs that stayed with fewer of their vectors than left together for another ID."""
    found = []
    for old in set(before):
        now = Counter(b for a, b in zip(before, after, strict=False) if a == old)
        now[after[-1]] += after[-1] in now  # the newcomer counts where it went
        if now[old] and now[old] < max(now.values()):
            found.append(old)
    return found


@engines
@pytest.mark.parametrize("options", CONFIGURATIONS, ids=["paper", "healed"])
def test_at_every_split_the_part_that_keeps_the_id_is_the_larger(engine, options):
    splits = 0
    for kind in KINDS:
        for seed in SEEDS:
            stream = make(kind, seed, n=100)
            links = Links(*stream.thresholds, engine=engine, threads=1, **options)
            links.add_many(stream.vectors)
            whole = links.evidence == "cluster"
            for kept, left in parts_at_splits(links.events(), whole_clusters=whole):
                assert kept >= left, (kind, seed)
                splits += 1
    assert splits >= 100, splits


@engines
def test_labels_before_and_after_a_split_say_the_same(engine):
    """Without the log: of the labels that stood, no ID goes with the smaller part."""
    splits = 0
    for kind in ("lobes", "chains", "lattice"):
        for seed in SEEDS:
            stream = make(kind, seed, n=80)
            links = Links(*stream.thresholds, engine=engine, threads=1)
            before, seen = [], 0
            for x in stream.vectors:
                links.add(x)
                after = links.labels().tolist()
                new = links.events(seen)
                seen += len(new)
                if [event.kind for event in new].count("split") == 1:  # two may halve it twice
                    splits += 1
                    assert smaller_part_kept(before, after) == [], (kind, seed)
                before = after
    assert splits >= 20


@engines
@pytest.mark.parametrize("size", [3, 60, 1000])
def test_a_splinter_of_two_does_not_take_the_id_from_the_rest(engine, size):
    before, after = splinter.ours(splinter.stream(size), engine=engine)
    assert before == [0] * (size + 1)
    assert after == [0] * size + [1, 1]


@pytest.mark.parametrize("size", [3, 60, 1000])
def test_in_the_published_package_it_does(size):
    before, after = splinter.theirs(splinter.stream(size))
    assert before == [0] * (size + 1)
    assert after == [1] * size + [0, 0], mended()


def test_random_streams_bring_it_about_in_the_published_package_as_well():
    found = 0
    for kind, seed in (("drifting", 21), ("chains", 54), ("lattice", 39), ("hits", 17)):
        stream = make(kind, seed, n=60)
        peer, before = LinksClusterer(*stream.thresholds), []
        for x in stream.vectors[:15]:
            peer.predict_next(x)
            after = np.asarray(peer.get_final_labels()).tolist()
            found += len(smaller_part_kept(before, after))
            before = after
    assert found >= 4, mended()


def mended():
    version = metadata.version("linkscluster")
    return (
        f"linkscluster {version} leaves the ID with the larger part: say so in examples/splinter.py"
    )


def test_the_story_is_told(capsys):
    splinter.main()
    told = capsys.readouterr().out
    assert "of the 61 labels given, 1 still hold" in told
    assert "of the 61 labels given, 60 still hold" in told
