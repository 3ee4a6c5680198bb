"""Test one key of a stream: its IDs equal those of one run on one machine."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confidence import sure
from linkstream import Links
from linkstream.errors import ArgumentError, VectorError
from linkstream.scaleout import keyed
from linkstream.scaleout.columns import OrderColumn
from linkstream.scaleout.keyed import ROW_EVENTS, KeyedLinks, Plan
from streams import make

KEY = ("camera 7", None)
NULL = 999_999  # stands for null, as the flags tell
NOW = 1_700_000_000_123


class State:
    """A fake of the state that Spark keeps for a key."""

    def __init__(self):
        self.held, self.updates = None, 0

    def get(self):
        return self.held

    def update(self, value):
        self.held, self.updates = value, self.updates + 1


class Stream:
    """A processor with the state of one key; each batch is a new task."""

    def __init__(self, links, *, now=NOW, **plan):
        chosen = {"order": ("n",), "kept": ("n",), "once": False, "mark": False, "ttl_ms": None}
        chosen |= plan
        chosen["order"] = tuple(OrderColumn(name, f"their {name}", 0) for name in chosen["order"])
        self.plan = Plan(begin=links.to_bytes(), **chosen)
        self.state, self.now, self.asked = State(), now, []

    def give(self, *frames):
        handle = SimpleNamespace(getValueState=self._value_state)
        timer = SimpleNamespace(getCurrentProcessingTimeInMs=lambda: self.now)
        processor = KeyedLinks(self.plan)
        processor.init(handle)
        out = list(processor.handleInputRows(KEY, iter(frames), timer))
        processor.close()
        return pd.concat(out, ignore_index=True) if out else None

    def _value_state(self, name, schema, ttl):
        self.asked.append((name, schema, ttl))
        return self.state if name == "links" else None

    @property
    def links(self):
        return Links.from_bytes(self.state.held[0])


def frame(rows, numbers=None, *, written=list, **others):
    numbers = range(len(rows)) if numbers is None else numbers
    values = np.empty(len(rows), dtype=object)
    for place, row in enumerate(rows):
        values[place] = row if row is None or isinstance(row, bytes) else written(row)
    made = pd.DataFrame({"n": list(numbers), "vector": values, **others})
    made["nulls"] = ["01"[number == NULL] for number in made["n"]]
    return made


def untracked(stream, **options):
    return Links(*stream.thresholds, threads=1, track_vectors=False, **options)


def in_one_run(stream, **options):
    """Return the IDs and the clusterer of one run on one machine."""
    links = untracked(stream, **options)
    return links.add_many(stream.vectors), links


def told_by_row(links, ids):
    """Return the events that rows do not tell themselves, by vector."""
    told = [[] for _ in ids]
    for event in links.events():
        if event.kind not in ROW_EVENTS:
            told[event.vector].append(event.to_dict())
    return told


def events_of(out):
    return [[] if told is None else [json.loads(text) for text in told] for told in out["events"]]


# IDs


@pytest.mark.parametrize("kind", ["generative", "lobes", "drifting", "hub", "chains", "hits"])
def test_ids_kinds_numbers_and_events_are_those_of_one_run(kind):
    stream = make(kind, 3)
    ids, links = in_one_run(stream)
    out = Stream(untracked(stream)).give(frame(stream.vectors))
    assert out["cluster"].tolist() == ids.tolist()
    assert out["number"].tolist() == list(range(len(ids)))
    decided = links.last_decisions
    assert out["kind"].tolist() == [decided.at(place).kind for place in range(len(ids))]
    assert events_of(out) == told_by_row(links, ids)
    assert out["problem"].isna().all()
    assert list(out.columns) == ["n", "cluster", "number", "kind", "events", "problem"]


def test_the_test_streams_cause_merges_and_splits():
    kinds = set()
    for kind in ("generative", "lobes", "drifting", "hub", "chains", "hits"):
        stream = make(kind, 3)
        out = Stream(untracked(stream)).give(frame(stream.vectors))
        kinds |= {event["kind"] for told in events_of(out) for event in told}
    assert {"merged", "severed", "split", "rejoined"} <= kinds


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from(["lobes", "drifting", "hub", "chains"]),
    st.sampled_from([{}, {"heal": "join"}, {"max_subclusters": 6}]),
)
def test_ids_and_events_do_not_depend_on_how_rows_are_cut_and_mixed(seed, kind, options):
    rng = np.random.default_rng(seed)
    stream = make(kind, seed % 30, n=70)
    ids, links = in_one_run(stream, **options)
    whole, given_, out = frame(stream.vectors), Stream(untracked(stream, **options)), []
    for batch in np.split(np.arange(70), np.sort(rng.integers(1, 70, rng.integers(8)))):
        if len(batch):
            pieces = np.array_split(rng.permutation(batch), rng.integers(1, 4))
            out.append(given_.give(*(whole.iloc[piece].reset_index(drop=True) for piece in pieces)))
    out = pd.concat(out, ignore_index=True)
    assert out["n"].tolist() == list(range(70))
    assert out["cluster"].tolist() == ids.tolist()
    assert events_of(out) == told_by_row(links, ids)
    assert given_.links.state_hash() == links.state_hash()


@pytest.mark.parametrize("written", [list, np.asarray, np.float64, lambda row: row.tobytes()])
def test_vectors_are_the_same_however_they_are_written(written):
    stream = make("lobes", 5)
    out = Stream(untracked(stream)).give(frame(stream.vectors, written=written))
    assert out["cluster"].tolist() == in_one_run(stream)[0].tolist()


@pytest.mark.parametrize("piece", [1, 7, 64, 150, 151])
def test_results_do_not_depend_on_the_size_of_pieces(piece, monkeypatch):
    stream = make("drifting", 8)
    ids, links = in_one_run(stream)
    monkeypatch.setattr(keyed, "PIECE", piece)
    out = Stream(untracked(stream)).give(frame(stream.vectors))
    assert out["cluster"].tolist() == ids.tolist()
    assert out["number"].tolist() == list(range(150))
    assert events_of(out) == told_by_row(links, ids)


def test_state_does_not_grow_with_the_stream():
    stream = make("generative", 1, n=100)
    given_, sizes = Stream(untracked(stream)), []
    for _ in range(20):
        given_.give(frame(stream.vectors))
        sizes.append(len(given_.state.held[0]))
    assert given_.links.n_vectors == 2_000
    assert sizes[-1] < sizes[0] * 1.2


def test_a_tracked_clusterer_continues():
    stream = make("lobes", 2)
    links = Links(*stream.thresholds, threads=1)
    given_ = Stream(links)
    given_.give(frame(stream.vectors[:80]))
    given_.give(frame(stream.vectors[80:]))
    links.add_many(stream.vectors)
    assert given_.links.labels().tolist() == links.labels().tolist()


def test_columns_that_are_kept_come_out_with_their_rows():
    rows = np.eye(4, dtype=np.float32)
    more = {
        "when": pd.to_datetime(["2024-01-04", "2024-01-03", "2024-01-02", None]),
        "what": ["a", None, "c", "d"],
        "tags": [["x"], [], None, ["y", "z"]],
    }
    given_ = Stream(Links(0.6, 0.5, 0.8), kept=("what", "n", "tags", "when"))
    out = given_.give(frame(rows, [3, 1, 0, 2], **more))
    assert list(out.columns)[:4] == ["what", "n", "tags", "when"]
    assert out["n"].tolist() == [0, 1, 2, 3]
    assert out["what"].tolist() == ["c", None, "d", "a"]
    assert out["tags"].tolist() == [None, [], ["y", "z"], ["x"]]
    assert out["when"].isna().tolist() == [False, False, True, False]


# Order


def test_rows_are_sorted_by_several_columns():
    rows = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0]])
    given_ = Stream(Links(0.6, 0.5, 0.8), order=("day", "n"), kept=("day", "n"))
    out = given_.give(frame(rows, [1, 2, 1, 0], day=["b", "a", "a", "b"]))
    assert list(zip(out["day"], out["n"], strict=True)) == [("a", 1), ("a", 2), ("b", 0), ("b", 1)]
    assert out["cluster"].tolist() == [0, 1, 2, 3]


def test_the_sort_is_stable():
    rows = np.random.default_rng(1).normal(size=(50, 4))
    given_ = Stream(Links(0.6, 0.5, 0.8), kept=("place",))
    out = given_.give(frame(rows, [7] * 25 + [3] * 25, place=range(50)))
    assert out["place"].tolist() == [*range(25, 50), *range(25)]


def test_without_an_order_rows_stay_as_they_came():
    rows = np.random.default_rng(1).normal(size=(9, 4))
    out = Stream(Links(0.6, 0.5, 0.8), order=()).give(frame(rows, range(9, 0, -1)))
    assert out["n"].tolist() == list(range(9, 0, -1))


@pytest.mark.parametrize(
    "numbers",
    [[1, None, 2], [1.0, np.nan, 2.0], ["a", None, "b"], pd.to_datetime(["2024", None, "2025"])],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_row_without_its_order_is_refused_before_anything_changes(numbers, place):
    order = ("n", "m") if place == 0 else ("m", "n")
    given_ = Stream(Links(0.6, 0.5, 0.8), order=order)
    with pytest.raises(ArgumentError, match=r"\('camera 7', None\).*without 'their n'"):
        given_.give(frame(np.eye(3), numbers, m=[1, 2, 3]))
    assert given_.state.updates == 0


def test_a_null_of_one_frame_of_many_is_refused():
    given_ = Stream(Links(0.6, 0.5, 0.8))
    with pytest.raises(ArgumentError, match="without 'their n'"):
        given_.give(frame(np.eye(3)), frame(np.eye(3), [3, NULL, 5]))
    assert given_.state.updates == 0


# Once


def test_a_repeated_batch_changes_nothing_and_returns_nothing():
    stream = make("lobes", 4)
    given_ = Stream(untracked(stream), once=True)
    batch = frame(stream.vectors[:60])
    given_.give(batch)
    before = given_.state.held
    assert given_.give(batch) is None
    assert given_.state.held == before
    assert given_.state.updates == 1
    out = given_.give(frame(stream.vectors[60:], range(60, 150)))
    assert out["cluster"].tolist() == in_one_run(stream)[0][60:].tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9))
def test_batches_that_overlap_give_each_row_once(seed):
    rng = np.random.default_rng(seed)
    stream = make("drifting", seed % 10, n=60)
    ids, links = in_one_run(stream)
    given_, out, done = Stream(untracked(stream), once=True), [], 0
    while done < 60:
        first = int(rng.integers(done + 1))
        last = int(rng.integers(first, 60)) + 1
        again = rng.integers(first, last, size=rng.integers(5))
        places = rng.permutation(np.append(np.arange(first, last), again))
        answer = given_.give(frame(stream.vectors[places], places))
        assert (answer is None) == (last <= done)
        out.append(answer)
        done = max(done, last)
    out = pd.concat(out, ignore_index=True)
    assert out["n"].tolist() == list(range(60))
    assert out["cluster"].tolist() == ids.tolist()
    assert given_.links.state_hash() == links.state_hash()


def test_of_rows_with_one_number_the_first_is_added():
    given_ = Stream(Links(0.6, 0.5, 0.8), once=True, kept=("n", "place"))
    out = given_.give(frame(np.eye(4), [5, 5, 2, 2], place=range(4)))
    assert out["place"].tolist() == [2, 0]


def test_numbers_may_have_gaps_and_begin_anywhere():
    given_ = Stream(Links(0.6, 0.5, 0.8), once=True)
    given_.give(frame(np.eye(2), [-(2**63), -5]))
    given_.give(frame(np.eye(2), [-5, 2**63 - 1]))
    assert given_.state.held[1] == 2**63 - 1
    assert given_.links.n_vectors == 3
    assert type(given_.state.held[1]) is int


def test_a_bad_row_is_reported_once():
    given_ = Stream(Links(0.6, 0.5, 0.8), once=True, mark=True)
    out = given_.give(frame([np.eye(3)[0], None]))
    assert out["problem"].isna().tolist() == [True, False]
    assert given_.give(frame([None], [1])) is None
    assert given_.state.held[1] == 1


def test_without_once_a_row_that_comes_again_is_another_vector():
    given_ = Stream(Links(0.6, 0.5, 0.8))
    given_.give(frame(np.eye(3)))
    given_.give(frame(np.eye(3)))
    assert given_.links.n_vectors == 6


# Vectors that cannot be used

BAD = [None, b"12345", [np.nan, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 2.0], [], [None, 1.0, 2.0]]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("later", [False, True])
def test_a_bad_vector_stops_the_stream_with_its_key_and_changes_nothing(bad, later, monkeypatch):
    monkeypatch.setattr(keyed, "PIECE", 2)
    given_ = Stream(Links(0.6, 0.5, 0.8))
    if later:
        given_.give(frame(np.eye(3)))
    before, updates = given_.state.held, given_.state.updates
    with pytest.raises(VectorError, match=r"key \('camera 7', None\)") as said:
        given_.give(frame([*np.eye(3), bad]))
    assert "bad='mark'" in said.value.remedy
    assert (given_.state.held, given_.state.updates) == (before, updates)


@pytest.mark.parametrize("piece", [2, 3, 10_000])
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_vector_is_marked_and_the_others_are_as_without_it(bad, piece, monkeypatch):
    monkeypatch.setattr(keyed, "PIECE", piece)
    stream = make("lobes", 6, n=30)
    vectors = [row[:3] + np.float32([0.1, 0, 0]) for row in stream.vectors]
    links = untracked(stream)
    ids = links.add_many(vectors)
    rows = list(vectors)
    for place in (30, 8, 7, 1):  # not the first, which determines the dimension
        rows.insert(place, bad)
    given_ = Stream(untracked(stream), mark=True)
    out = given_.give(frame(rows))
    good = out[out["problem"].isna()]
    assert sorted(set(out["n"]) - set(good["n"])) == [1, 8, 10, 33]
    assert good["cluster"].tolist() == ids.tolist()
    assert good["number"].tolist() == list(range(30))
    assert events_of(good) == told_by_row(links, ids)
    marked = out[out["problem"].notna()]
    for name in ("cluster", "number", "kind", "events"):
        assert marked[name].isna().all()


def test_a_batch_of_bad_vectors_is_marked_and_counts_as_seen():
    given_ = Stream(Links(0.6, 0.5, 0.8), mark=True)
    out = given_.give(frame([bad for bad in BAD if bad != [1.0, 2.0]]))
    assert out["problem"].notna().all()
    assert out["cluster"].isna().all()
    assert given_.links.n_vectors == 0
    assert given_.give(frame(np.eye(3)))["cluster"].tolist() == [0, 1, 2]


def test_a_batch_of_another_dimension_is_marked_whole():
    given_ = Stream(Links(0.6, 0.5, 0.8), mark=True)
    given_.give(frame(np.eye(3)))
    out = given_.give(frame(np.eye(4)))
    assert out["problem"].str.contains("dimension 4").all()
    assert given_.links.n_vectors == 3


# The first clusterer of a key


def test_people_of_the_first_clusterer_are_recognised():
    begin = Links(0.6, 0.5, 0.8, track_vectors=False)
    begin.add_many(np.eye(3))
    begin.name(1, "Ann")
    given_ = Stream(begin)
    out = given_.give(frame([[0, 0.9, 0.1], [0.1, 0.1, 5.0], [-1, 0, 0]]))
    assert out["cluster"].tolist() == [1, 2, 3]
    assert out["number"].tolist() == [3, 4, 5]
    assert given_.links.named("Ann") == 1
    assert begin.n_vectors == 3


def test_prototypes_of_the_first_clusterer_stay_locked():
    begin = Links(0.7, 0.6, 0.9)
    begin.enrol("Ann", [[0, 1, 0], [0, 0, 1]])
    alone = Links.from_bytes(begin.to_bytes())
    rows = np.random.default_rng(3).normal(size=(40, 3))
    given_ = Stream(begin)
    out = pd.concat([given_.give(frame(part)) for part in np.array_split(rows, 5)])
    assert out["cluster"].tolist() == alone.add_many(rows).tolist()
    assert given_.links.state_hash() == alone.state_hash()
    assert given_.links.named("Ann") == 0


def test_events_of_the_first_clusterer_are_not_returned():
    stream = make("drifting", 8)
    begin = untracked(stream)
    begin.add_many(stream.vectors[:100])
    since = begin.n_events
    out = Stream(begin).give(frame(stream.vectors[100:]))
    begin.add_many(stream.vectors[100:])
    told = [event.to_dict() for event in begin.events(since) if event.kind not in ROW_EVENTS]
    assert told
    assert [event for row in events_of(out) for event in row] == told


# Expiry


def test_without_expiry_there_is_no_column_began():
    given_ = Stream(Links(0.6, 0.5, 0.8))
    assert "began" not in given_.give(frame(np.eye(3))).columns
    assert given_.asked[0] == ("links", KeyedLinks.STATE, None)


def test_spark_expires_keys_and_began_tells_their_lives_apart():
    given_ = Stream(Links(0.6, 0.5, 0.8), ttl_ms=60_000)
    first = given_.give(frame(np.eye(3)))
    assert given_.asked[0] == ("links", KeyedLinks.STATE, 60_000)
    given_.now += 5_000
    second = given_.give(frame(np.eye(3)))
    assert {*first["began"], *second["began"]} == {NOW}
    given_.state.held = None  # as Spark does
    given_.now += 70_000
    third = given_.give(frame(np.eye(3)))
    assert third["cluster"].tolist() == [0, 1, 2]
    assert {*third["began"]} == {NOW + 75_000}


def test_margins_and_probabilities_are_those_of_links_also_from_a_checkpoint_without_a_model():
    vectors = sure.STREAM.vectors[:120]
    options = {"track_vectors": False, "threads": 1}
    one = Stream(Links(*sure.STREAM.thresholds, **options))
    plain = one.give(frame(vectors[:40]))
    assert not set(keyed.TOLD) & set(plain)
    one.plan = replace(one.plan, model=sure.MODEL, mark=True)
    found = one.give(frame([*vectors[40:], None], range(40, 121)))
    links = Links(*sure.STREAM.thresholds, **options)
    links.add_many(vectors[:40])
    links.confidence.use(sure.MODEL)
    expected = links.decide_many(vectors[40:])
    for name in keyed.TOLD:
        seen = found[name].astype(float).to_numpy()
        np.testing.assert_array_equal(seen[:80], getattr(expected, name))
        assert np.isnan(seen[80])
    assert np.isfinite(expected.probability).sum() > 40


def test_a_model_for_other_settings_tells_nothing():
    links = Links(*sure.STREAM.thresholds, evidence="cluster", track_vectors=False, threads=1)
    links.confidence.use(sure.MODEL)
    found = Stream(links, model=sure.MODEL).give(frame(sure.STREAM.vectors[:20]))
    assert found["probability"].isna().all()
    assert found["cluster_margin"].notna().any()
