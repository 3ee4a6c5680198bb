"""Tables, events and exports say how sure each decision was, as it was told when it was made."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from confidence import sure
from confidence.sure import MODEL, STREAM, THRESHOLDS
from linkstream import Links, Thresholds
from linkstream.engine.event_values import from_dict
from linkstream.engine.events import Decided
from linkstream.errors import ArgumentError
from linkstream.io import export, export_lines, import_store
from linkstream.store import Store

X = STREAM.vectors[:100]
ROUNDED = 1e-6  # margins are kept in units of 1e-8


def decided(n=100):
    """Return what was decided on the first vectors."""
    return sure.links().decide_many(X[:n])


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "a.links", thresholds=THRESHOLDS, confidence=MODEL) as opened:
        opened.add_many(X[:60], payloads=[{"probability": i} for i in range(60)])
        for x in X[60:]:
            opened.add(x)
        yield opened


def same(found, expected):
    np.testing.assert_allclose(np.array(found, dtype=float), expected, atol=ROUNDED)


def check_columns(frame):
    expected = decided()
    assert np.isfinite(expected.probability).sum() > 50
    same(frame["cluster_margin"], expected.cluster_margin)
    same(frame["probability"], expected.probability)


def test_the_table_of_a_clusterer_has_them_where_there_is_a_model():
    links = sure.links()
    links.add_many(X[:60])
    for x in X[60:]:
        links.add(x)
    found = links.to_frame("numpy")
    assert list(found) == ["vector", "cluster", "name", "cluster_margin", "probability", "held"]
    check_columns(found)
    some = links.to_frame("numpy", since=40, columns=["probability", "vector"])
    assert list(some) == ["probability", "vector"]
    same(some["probability"], decided().probability[40:])
    assert links.to_frame("arrow")["probability"].null_count > 0
    plain = Links(*STREAM.thresholds)
    plain.add_many(X[:5])
    assert list(plain.to_frame("numpy")) == ["vector", "cluster", "name"]
    assert np.isnan(plain.to_frame("numpy", columns=["probability"])["probability"]).all()


def test_a_snapshot_keeps_them_and_undo_takes_them():
    links = sure.links()
    links.add_many(X)
    again = Links.from_bytes(links.to_bytes())
    check_columns(again.to_frame("numpy"))
    again.undo(to=links.events()[90].sequence)
    again.add_many(X[::-1][:20])
    other = sure.links()
    n = again.n_vectors - 20
    other.add_many(X[:n])
    expected = other.decide_many(X[::-1][:20])
    same(again.to_frame("numpy", since=n)["probability"], expected.probability)


def test_the_table_of_a_store_has_them_also_after_it_is_opened_again(store):
    found = store.to_frame("numpy")
    names = ["vector", "cluster", "name", "cluster_margin", "probability", "held", "id", "time"]
    assert list(found) == [*names, "payload.probability"]
    check_columns(found)
    store.close()
    with Store.open(store.path, read_only=True) as again:
        check_columns(again.to_frame("numpy"))
        assert again.how_sure(0, 100)["probability"].count(None) > 0


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".npz"])
def test_exports_have_them_and_nothing_where_they_are_unknown(store, tmp_path, suffix):
    target = tmp_path / f"table{suffix}"
    export(store, target)
    if suffix == ".parquet":
        columns = pq.read_table(target).to_pydict()
    elif suffix == ".npz":
        columns = dict(np.load(target))
    else:
        with target.open() as stream:
            rows = csv.DictReader(stream) if suffix == ".csv" else map(json.loads, stream)
            columns = {k: [row[k] or None for row in rows] for k in ("probability",)}
    expected = decided().probability
    same(columns["probability"], expected)
    if suffix != ".npz":
        nothing = [each is None for each in columns["probability"]]
        assert nothing == np.isnan(expected).tolist()
    lines = [json.loads(line) for line in export_lines(store)]
    same([line["probability"] for line in lines], expected)


def test_a_folder_makes_the_same_store_again_with_its_model(store, tmp_path):
    export(store, tmp_path / "folder")
    import_store(tmp_path / "folder", tmp_path / "b.links")
    with Store.open(tmp_path / "b.links") as again:
        assert again.confidence.model == MODEL
        assert again.state_hash() == store.state_hash()
        check_columns(again.to_frame("numpy"))


def check_events(events, expected):
    told = {each.vector: each.probability for each in events if isinstance(each, Decided)}
    assert sorted(told) == list(range(len(expected)))
    same([told[vector] for vector in sorted(told)], expected)


def test_events_of_decisions_tell_the_probability_and_are_equal_without_it(store):
    links = sure.links()
    links.add_many(X)
    plain = Links(*STREAM.thresholds)
    plain.add_many(X)
    assert store.events() == links.events() == plain.events()
    for events in (links.events(), store.events()):
        check_events(events, decided().probability)
    assert all(each.probability is None for each in plain.events() if isinstance(each, Decided))
    known = next(e for e in links.events() if isinstance(e, Decided) and e.probability)
    assert known.to_dict()["probability"] == known.probability
    assert from_dict(known.to_dict()) == known
    assert from_dict(known.to_dict()).probability == known.probability
    assert "probability" not in plain.events()[0].to_dict()
    assert {hash(known), hash(from_dict(known.to_dict()))} == {hash(known)}


@pytest.mark.parametrize("wrong", [True, -0.5, 2.0, "0.5"])
def test_a_probability_that_is_none_is_refused(wrong):
    links = sure.links()
    links.add(X[0])
    with pytest.raises(ArgumentError, match="created"):
        from_dict({**links.events()[0].to_dict(), "probability": wrong})


def test_an_event_that_was_undone_does_not_tell_of_the_vector_that_has_its_number_now(tmp_path):
    links = sure.links()
    links.add_many(X[:40])
    with Store.open(tmp_path / "u.links", thresholds=THRESHOLDS, confidence=MODEL) as opened:
        opened.add_many(X[:40])
        for each in (links, opened):
            for x in X[40:44]:
                each.add(x)
            for _ in range(4):
                each.undo()
            each.add(X[60])
            events = [e for e in each.events() if isinstance(e, Decided) and e.vector == 40]
            assert len(events) == 2
            assert events[0].probability is None
            assert events[1].probability == pytest.approx(
                next(e for e in reversed(each.events()) if isinstance(e, Decided)).probability
            )


def test_a_rebuild_with_other_settings_drops_the_margins_of_before(store):
    links = sure.links()
    links.add_many(X)
    other = Thresholds(*(each + 0.01 for each in STREAM.thresholds))
    for each in (links, store):
        each.rebuild(apply=True)
        assert np.isfinite(each.to_frame("numpy")["probability"]).sum() > 50
        each.rebuild(apply=True, thresholds=other)
        assert each.confidence.why.startswith("fitted with other thresholds")
        each.add(X[0])
        margins = each.to_frame("numpy")["cluster_margin"]
        assert np.isnan(margins[:100]).all()
        assert np.isfinite(margins[100])
        each.undo(step=True) if each is store else each.undo()
        each.undo(step=True) if each is store else each.undo()
        assert each.confidence.why == ""
        assert np.isnan(each.to_frame("numpy")["probability"]).all()
