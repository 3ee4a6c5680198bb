"""Histories and explanations by the index of events: those of the whole log, of a few rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identity import whole_log
from identity.trial import LARGEST, VERBS, Trial
from linkstream import Links
from linkstream.engine import event_values
from linkstream.identity.event_index import EventIndex
from streams import ENGINES, make, unit

NUMBERS = st.integers(0, LARGEST)
CHOICES = [verb for verb, times in VERBS.items() for _ in range(times)]
DEEDS = st.tuples(st.sampled_from(CHOICES), NUMBERS, NUMBERS, NUMBERS, NUMBERS)


def check(links):
    log = links.events(links.core.oldest_event())
    whole_log.check_histories(links, log)
    whole_log.check_paths(links, log)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.lists(DEEDS, min_size=10, max_size=40), st.booleans())
def test_histories_and_paths_are_those_of_the_whole_log(seed, deeds, early):
    trial = Trial(seed)
    for verb, *numbers in deeds:
        getattr(trial, verb)(*numbers)
        if early:  # the index grows with the log, or reads it at once in the end
            for links in trial.links:
                check(links)
    for links in trial.links:
        check(links)


@pytest.mark.parametrize("seed", range(4))
def test_they_stay_those_of_the_whole_log_in_long_random_lives(seed):
    rng = np.random.default_rng(seed)
    trial = Trial(seed)
    for number in range(150):
        getattr(trial, CHOICES[rng.integers(len(CHOICES))])(*rng.integers(LARGEST, size=4).tolist())
        if number % 10 == 9:
            for links in trial.links:
                check(links)
    kinds = {event.kind for event in trial.links[0].events()}
    assert {"undone", "removed", "moved", "split", "merged"} <= kinds


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["lobes", "drifting", "chains"])
def test_they_agree_under_healing_and_after_the_oldest_events_were_dropped(engine, kind):
    stream = make(kind, 2, 240)
    links = Links(*stream.thresholds, engine=engine, heal="settle")
    for start in range(0, 240, 40):
        links.add_many(stream.vectors[start : start + 40])
        check(links)
        if start == 120:
            links.drain_events()
    assert links.core.oldest_event() > 0
    check(links)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_event_is_read_once(monkeypatch, engine):
    links = Links(0.7, 0.9, 0.8, engine=engine)
    links.add_many(unit(np.random.default_rng(0).standard_normal((300, 6))))
    read, real = [], EventIndex.read
    monkeypatch.setattr(
        EventIndex, "read", lambda self, rows: read.append(len(rows)) or real(self, rows)
    )
    links.history(0)
    before = links.n_events
    links.add_many(unit(np.random.default_rng(1).standard_normal((5, 6))))
    links.history(1)
    links.explain_pair(0, 1)
    links.history(2)
    assert read[:2] == [before, links.n_events - before]
    assert not any(read[2:])


@pytest.mark.parametrize("n", [1_000, 8_000])
def test_only_events_about_the_cluster_are_decoded(monkeypatch, n):
    rng = np.random.default_rng(3)
    links = Links(0.7, 0.9, 0.8)
    links.add_many(np.concatenate([np.eye(32)[:2] + 0.01, unit(rng.standard_normal((n, 32)))]))
    links.same(0, 1)
    links.name(int(links.labels()[0]), "Ann")
    decoded, real = [], event_values._from_row
    monkeypatch.setattr(
        event_values, "_from_row", lambda *about: decoded.append(about[0]) or real(*about)
    )
    assert len(links.history(int(links.labels()[0])).chapters) <= len(decoded) < 10
    decoded.clear()
    assert [step.made is not None for step in links.explain_pair(0, 1).steps] == [True]
    assert len(decoded) < 10
