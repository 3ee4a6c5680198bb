"""What changed and when: pages of changes, counts over time, times that survive a restart."""

from __future__ import annotations

import contextlib
import sqlite3

import numpy as np
import pytest

from linkstream.clusterer import notable
from linkstream.clusterer.verbs import VERBS
from linkstream.service.activity_index import SUFFIX, ActivityIndex
from linkstream.service.recalling import recalled
from linkstream.service.samples import MOST, Sample, Samples
from linkstream.store import Store
from service.calling import Stream
from service.server import ThreadService
from store.operations import THRESHOLDS, vectors

X = vectors(np.random.default_rng(5), 120)


@pytest.fixture
def people(service, namespace):
    """Return a namespace with vectors and changes of several kinds."""
    service.post(f"{namespace}/vectors", X[:100])
    a, b = clusters_of(service, namespace)[:2]
    service.post(f"{namespace}/name", {"cluster": a, "name": "Ann"})
    service.post(f"{namespace}/same", {"a": a, "b": b, "of": "clusters"})
    service.post(f"{namespace}/rename", {"cluster": a, "name": "Bob"})
    return namespace


def clusters_of(service, namespace):
    return [each["id"] for each in service.get(f"{namespace}/clusters").json["clusters"]]


def activity(service, namespace, query=""):
    return service.get(f"{namespace}/activity?by=people{query}").json


def verbs(page):
    return [change["verb"] for change in page["changes"]]


def test_changes_of_people_come_newest_first_with_times(service, people):
    page = activity(service, people)
    assert verbs(page) == ["rename", "same", "name"]
    assert page["complete"]
    renamed = page["changes"][0]
    assert renamed["said"]["name"] == "Bob"
    assert renamed["clusters"][0]["name"] == "Bob"
    assert all(
        change["after"] is None or change["after"] <= change["time"]
        for change in page["changes"]
        if change["time"] is not None
    )


def test_pages_have_every_change_once(service, people):
    for number in range(8):
        body = {"cluster": clusters_of(service, people)[0], "name": f"name {number}"}
        service.post(f"{people}/rename", body)
    whole, found, before = activity(service, people)["changes"], [], ""
    while True:
        page = activity(service, people, f"&limit=3{before}")
        found += page["changes"]
        if page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert [change["event"] for change in found] == [change["event"] for change in whole]
    assert len(found) == 11


def test_a_filter_by_kind_leaves_the_others_out(service, people):
    assert verbs(activity(service, people, "&kind=join,cut")) == ["same"]
    assert verbs(activity(service, people, "&kind=name")) == ["rename", "name"]
    assert service.get(f"{people}/activity?kind=love").status == 400


def test_what_an_undo_took_is_marked_until_it_is_redone(service, people):
    service.post(f"{people}/undo", {"to": activity(service, people)["changes"][1]["event"]})
    page = activity(service, people)
    assert [(each["verb"], each["undone"]) for each in page["changes"]] == [
        ("undo", False),
        ("rename", True),
        ("same", True),
        ("name", False),
    ]
    assert page["changes"][0]["redo"]
    assert not page["changes"][1]["undo"]["possible"]
    service.post(f"{people}/redo", {})
    after = activity(service, people)["changes"]
    assert [each["undone"] for each in after] == [False] * 5
    assert not after[1]["redo"]


def test_a_correction_is_retractable_until_it_is_retracted(service, people):
    same = activity(service, people)["changes"][1]
    assert same["retract"] == {"possible": True, "why": ""}
    service.post(f"{people}/retract", {"correction": same["event"]})
    changes = activity(service, people)["changes"]
    assert verbs({"changes": changes})[0] == "retract"
    assert not changes[2]["retract"]["possible"]
    assert "does not hold" in changes[2]["retract"]["why"]
    assert "Rename" in changes[1]["retract"]["why"]


def test_a_correction_names_the_clusters_its_subjects_are_in_now(service, people):
    a, b, c = clusters_of(service, people)[:3]
    service.post(f"{people}/different", {"a": b, "b": c, "of": "clusters"})
    (said,) = activity(service, people, "&kind=cut")["changes"]
    assert {each["id"] for each in said["clusters"]} == {b, c}
    service.post(f"{people}/retract", {"correction": said["event"]})
    (said,) = activity(service, people, "&kind=cut")["changes"]
    assert {each["id"] for each in said["clusters"]} == {b, c}
    assert a not in {b, c}


def test_joins_of_the_stream_are_told_as_its_own(service):
    path = service.namespace("healed", heal="settle")
    service.post(f"{path}/vectors", X)
    found = service.get(f"{path}/activity?by=stream").json["changes"]
    kinds = {event["kind"] for event in service.get(f"{path}/events").json["events"]}
    assert ("united" in kinds) == any(each["kind"] == "join" for each in found)
    assert all(each["automatic"] and not each["undo"]["possible"] for each in found)


def test_times_and_changes_survive_a_restart(tmp_path):
    with ThreadService(tmp_path / "data") as service:
        path = service.namespace("kept")
        service.post(f"{path}/vectors", X[:50])
        service.post(f"{path}/name", {"cluster": 0, "name": "Ann"})
        before = service.get(f"{path}/activity").json
        times = service.get(f"{path}/moments?vectors=0,49").json["vectors"]
    with ThreadService(tmp_path / "data") as service:
        after = service.get(f"{path}/activity").json
        assert after["changes"] == before["changes"]
        assert service.get(f"{path}/moments?vectors=0,49").json["vectors"] == times
        line = service.get(f"{path}/timeline?seconds=3600&bins=60").json
        assert line["vectors"][-1] == 50
        assert sum(line["added"]) == 50
        assert None not in [times[0]["time"], times[0]["after"]]


def test_the_newest_decisions_are_read_from_the_journal(tmp_path):
    with Store.open(tmp_path / "a.links", thresholds=THRESHOLDS) as store:
        ids = store.add_many(X[:40]).tolist()
        one = store.add(X[40])
        found = recalled(store, 10)
        assert [each.sequence for each in found] == list(range(31, 41))
        assert [each.cluster for each in found] == [*ids[31:], one.cluster]
        assert found[-1].similarity == one.similarity
        kinds = {each.sequence: each.kind for each in recalled(store, 100)}
        assert kinds[0] == "new"
        store.undo()
        store.add(X[41])
        assert [each.sequence for each in recalled(store, 10)] == [40]


def test_the_live_stream_begins_with_decisions_before_a_restart(tmp_path):
    with ThreadService(tmp_path / "data") as service:
        path = service.namespace("kept")
        service.post(f"{path}/vectors", X[:5])
    with (
        ThreadService(tmp_path / "data") as service,
        Stream(service.port, f"{path}/live") as stream,
    ):
        message = next(message for message in stream if message.event == "decisions")
        assert [each["vector"] for each in message.data["decisions"]] == [0, 1, 2, 3, 4]
        assert message.data["decisions"][-1]["time"] is not None


def test_a_store_that_was_made_elsewhere_is_indexed_when_it_is_opened(tmp_path):
    (tmp_path / "data").mkdir()
    with Store.open(tmp_path / "data" / "old.links", thresholds=THRESHOLDS) as store:
        store.add_many(X[:20])
        store.name(0, "Ann")
    with ThreadService(tmp_path / "data") as service:
        (change,) = service.get("/v1/namespaces/old/activity?by=people").json["changes"]
        assert change["verb"] == "name"
        assert change["after"] is None
        assert change["time"] is not None
        assert service.get("/v1/namespaces/old/timeline").json["before"] == 20


def test_the_index_of_another_store_is_made_again(tmp_path):
    path = tmp_path / "a.links"
    with Store.open(path, thresholds=THRESHOLDS) as store:
        store.add_many(X[:20])
        store.name(0, "Ann")
        index = ActivityIndex(path)
        index.begin(store)
        assert index.follow(store)
        assert len(index.page(None, 9, (), None)) >= 1
        index.close()
    path.unlink()
    with Store.open(path, thresholds=THRESHOLDS) as store:
        store.add_many(X[:2])
        index = ActivityIndex(path)
        index.begin(store)
        assert index.follow(store)
        assert index.page(None, 9, (), automatic=False) == []
        assert index.timeline(None, 3)["before"] == 2
        index.close()


def no_tables(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=1")


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"no database" * 100), no_tables])
def test_a_damaged_index_is_made_again(tmp_path, damage):
    path = tmp_path / "a.links"
    damage(tmp_path / f"a.links{SUFFIX}")
    with Store.open(path, thresholds=THRESHOLDS) as store:
        store.add_many(X[:20])
        store.name(0, "Ann")
        index = ActivityIndex(path)
        index.begin(store)
        assert index.follow(store)
        assert [each.kind for each in index.page(None, 9, (), automatic=False)] == ["name"]
        index.close()


def test_an_answer_is_refused_if_the_clusters_are_others_than_those_seen(service, people):
    a, b, c = clusters_of(service, people)[:3]
    body = {"a": b, "b": c, "of": "clusters"}
    refused = service.post(f"{people}/same", {**body, "clusters": [a, c]})
    assert refused.status == 409
    assert refused.json["error"]["kind"] == "changed"
    assert clusters_of(service, people)[:3] == [a, b, c]
    assert service.post(f"{people}/same", {**body, "clusters": [b, c]}).status == 200


def test_every_verb_of_the_table_has_a_kind():
    assert set(VERBS) == {*notable.KIND_OF_VERB, *notable.ADDING}


# Samples


def line(*samples):
    return Samples([(1000 * time, events, n, clusters, 0) for time, events, n, clusters in samples])


def test_an_event_happened_between_two_samples():
    samples = line((10, 5, 5, 1), (20, 8, 8, 2))
    found = [(each.after, each.time) for each in samples.of_events([4, 5, 7, 8])]
    assert found == [(None, 10), (10, 20), (10, 20), (20, None)]


def test_a_vector_with_the_number_of_one_that_was_undone_came_later():
    samples = line((10, 5, 5, 1), (20, 8, 2, 1), (30, 12, 6, 1))
    found = [(each.after, each.time) for each in samples.of_vectors([0, 1, 2, 5, 6])]
    assert found == [(None, 10), (None, 10), (20, 30), (20, 30), (30, None)]


def test_bins_count_what_was_added_since_the_bin_before():
    samples = line((100, 1, 1, 1), (103, 9, 9, 2), (109, 10, 10, 3))
    found = samples.timeline(110.0, 10, 5)
    assert found["added"] == [0, 8, 0, 0, 1]
    assert found["vectors"] == [1, 9, 9, 9, 10]
    assert found["clusters"] == [1, 2, 2, 2, 3]
    assert line().timeline(110.0, None, 2)["vectors"] == [None, None]


def test_thinning_keeps_the_ends_corrections_and_what_is_new():
    samples = Samples()
    for second in range(MOST):
        samples.add(Sample(1000 * second, second, second, 1, int(second == 77)))
    thinned = samples.thinned()
    times = thinned.rows()[:, 0] // 1000
    assert len(thinned) < MOST // 4
    assert times[0] == 0
    assert 77 in times
    assert times[-500:].tolist() == list(range(MOST - 500, MOST))
    assert np.diff(times).max() <= 300


def test_a_clock_that_goes_back_keeps_the_order():
    samples = line((10, 5, 5, 1))
    samples.add(Sample(4000, 6, 6, 1))
    assert samples.last.time == 10_000


def test_a_namespace_without_vectors_says_that_nothing_can_be_undone(service):
    path = service.namespace("bare", track_vectors=False)
    service.post(f"{path}/vectors", X[:20])
    service.post(f"{path}/name", {"cluster": 0, "name": "Ann"})
    (change,) = activity(service, path)["changes"]
    assert not change["undo"]["possible"]
    assert "does not keep its vectors" in change["undo"]["why"]


def test_what_lies_before_a_compaction_is_told_and_not_undone(service, people):
    service.post(f"{people}/compact", {})
    service.post(f"{people}/ignore", {"cluster": clusters_of(service, people)[0]})
    changes = activity(service, people)["changes"]
    assert [each["undo"]["possible"] for each in changes] == [True, False, False, False]
    assert "compacted" in changes[1]["undo"]["why"]
