"""Policies under random calls: engines agree, and a store that is opened anew goes on alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkstream import Links
from linkstream.store import Store
from store.operations import MODEL, THRESHOLDS, UNSURE, Shadow, do, make_operation, state_of
from streams import ENGINES

CALLS = 120
SIZES = (1, 20, 200)


def shadow(seed, **options):
    links = Links.from_thresholds(THRESHOLDS, confidence=MODEL, threads=1, **options)
    return Shadow(seed, links=links, verbs=UNSURE, sizes=SIZES)


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core")
@pytest.mark.parametrize("seed", range(2))
def test_both_engines_do_the_same(seed):
    one, other = (shadow(seed, engine=engine).until(CALLS) for engine in ENGINES)
    assert one.answers == other.answers
    assert one.states == other.states
    assert one.links.events() == other.links.events()


@pytest.mark.parametrize("seed", range(2))
def test_a_store_that_is_opened_anew_goes_on_as_a_clusterer_in_memory(tmp_path, seed):
    expected, path = shadow(seed), tmp_path / "people.links"
    n_held = 0
    for first in range(0, CALLS, 20):
        with Store.open(path, thresholds=THRESHOLDS, confidence=MODEL, threads=1) as store:
            for number in range(first, first + 20):
                expected.until(number + 1)
                what = make_operation(seed, number, store, verbs=UNSURE, sizes=SIZES)
                assert do(store, what) == expected.answers[number]
                assert state_of(store) == expected.states[-1]
            n_held = max(n_held, len(store.held(limit=1000)))
            waiting = [replace(each, payload=None) for each in store.held(limit=50)]
            assert waiting == expected.links.held(limit=50)
            assert store.policy == expected.links.policy
    with Store.open(path) as store:
        store.verify()
    assert n_held > 10


@pytest.mark.parametrize("engine", ENGINES)
def test_a_snapshot_goes_on_with_what_is_held(engine):
    whole = shadow(7, engine=engine)
    for number in range(40):
        whole.until(number + 1)
        again = Links.from_bytes(whole.links.to_bytes(), engine=engine, threads=1)
        assert again.state_hash() == whole.links.state_hash()
        assert again.held(limit=50) == whole.links.held(limit=50)
        what = make_operation(7, number + 1, whole.links, verbs=UNSURE, sizes=SIZES)
        if what.verb not in ("undo", "redo"):  # a snapshot may know less of what was undone
            do(again, what)
            whole.until(number + 2)
            assert again.state_hash() == whole.links.state_hash()
