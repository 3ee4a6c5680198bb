"""Lists of clusters with filters, search and exemplars; similar clusters; reasons; moves."""

from __future__ import annotations

import numpy as np
import pytest

from service.server import MADE_WITH

DIMENSION = 16


def around(place, count, seed=0):
    """Return vectors near an axis."""
    rows = np.random.default_rng(seed).normal(0, 0.05, (count, DIMENSION))
    rows[:, place] += 1.0
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()


@pytest.fixture(scope="module")
def path(service):
    """Serve four clusters: 0 of three vectors, 1 (Bob) of two, 2 of one, 3 (ignored) of one."""
    path = "/v1/namespaces/sorted"
    assert service.put(path, {**MADE_WITH, "search": True}).status == 201
    for place, count in enumerate((3, 2, 1, 1)):
        body = {
            "vectors": around(place, count),
            "payloads": [{"text": f"word{place} no {i}"} for i in range(count)],
            "ids": [f"key-{place}-{i}" for i in range(count)],
            "at": [f"2024-0{place + 1}-01T00:00:00Z"] * count,
        }
        assert service.post(f"{path}/vectors", body).status == 200
    service.post(f"{path}/name", {"cluster": 1, "name": "Bob"})
    service.post(f"{path}/ignore", {"cluster": 3})
    return path


def listed(service, path, query=""):
    answer = service.get(f"{path}/clusters?{query}")
    assert answer.status == 200, answer.body
    return answer.json


def ids(service, path, query=""):
    return [each["id"] for each in listed(service, path, query)["clusters"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [0, 1, 2, 3]),
        ("order=name", [1, 0, 2, 3]),
        ("order=recent", [3, 2, 1, 0]),
        ("order=id&offset=1&limit=2", [1, 2]),
        ("filter=unnamed", [0, 2, 3]),
        ("filter=named", [1]),
        ("filter=single", [2, 3]),
        ("filter=ignored", [3]),
        ("q=bo", [1]),
        ("q=2", [2]),
        ("q=key-0-1", [0]),
        ("q=word3", [3]),
        ("q=wor", [0, 1, 2, 3]),
        ("q=%22", []),
        ("since=2024-03-01T00:00:00Z", [2, 3]),
        ("since=2024-04-01", [3]),
        ("since=5", [2, 3]),
        ("since=2024-02-01&filter=single&q=word2", [2]),
    ],
)
def test_clusters_are_filtered_searched_and_ordered(service, path, query, expected):
    assert ids(service, path, query) == expected
    assert listed(service, path, query)["total"] == (4 if "offset" in query else len(expected))


@pytest.mark.parametrize("query", ["order=age", "filter=big", "since=soon", "exemplars=9"])
def test_wrong_wishes_are_refused(service, path, query):
    assert service.get(f"{path}/clusters?{query}").status == 400


def test_exemplars_come_with_their_keys_and_payloads_and_the_time_of_the_newest(service, path):
    first = listed(service, path, "exemplars=2")["clusters"][0]
    assert [sorted(each) for each in first["exemplars"]] == [["key", "payload", "vector"]] * 2
    assert {each["key"] for each in first["exemplars"]} < {"key-0-0", "key-0-1", "key-0-2"}
    assert first["time"] == "2024-01-01T00:00:00Z"
    one = service.get(f"{path}/clusters/0?brief=true&exemplars=8").json["cluster"]
    assert len(one["exemplars"]) == 3
    assert "exemplars" not in service.get(f"{path}/clusters/0?brief=true").json["cluster"]


def test_a_list_says_where_it_searched(service, path):
    assert listed(service, path, "q=word1")["searched"] == ["names", "keys", "payloads"]
    other = service.namespace("plain-list")
    assert listed(service, other, "q=word1")["searched"] == ["names", "keys"]


def test_the_nearest_clusters_come_first_without_the_one_that_asks(service, path):
    found = service.get(f"{path}/nearest?cluster=0&limit=3&exemplars=1").json["clusters"]
    assert sorted(each["id"] for each in found) == [1, 2, 3]
    assert [each["margin"] for each in found] == sorted((e["margin"] for e in found), reverse=True)
    assert all(len(each["exemplars"]) == 1 for each in found)
    near = service.get(f"{path}/nearest?vectors=0,3&limit=2").json["clusters"]
    assert sorted(each["id"] for each in near) == [0, 1]


def test_clusters_that_cannot_be_joined_are_marked(service):
    path = service.namespace("kept-apart")
    rows = [row for place in range(3) for row in around(place, 2)]
    service.post(f"{path}/vectors", {"vectors": [row[:8] for row in rows]})
    service.post(f"{path}/different", {"a": 0, "b": 1, "of": "clusters"})
    for cluster, name in ((0, "Ann"), (2, "Cid")):
        service.post(f"{path}/name", {"cluster": cluster, "name": name})
    found = service.get(f"{path}/nearest?cluster=0").json["clusters"]
    assert {each["id"]: each["apart"] for each in found} == {1: "correction", 2: "name"}


@pytest.mark.parametrize(
    "query", ["", "cluster=0&vectors=1", "vectors=a", "cluster=99", "vectors=99", "limit=0"]
)
def test_a_question_about_nothing_is_refused(service, path, query):
    assert service.get(f"{path}/nearest?{query}").status in (400, 404)


def test_a_vector_says_why_it_is_in_its_cluster(service, path):
    why = service.get(f"{path}/vectors/0/why").json
    assert (why["vector"], why["cluster"], why["companions"]) == (0, 0, [2, 2])
    assert why["similarity"] > 0.9 > why["others"][0]["similarity"]
    assert why["words"][0].startswith("Its similarity to the 2 other vectors")
    alone = service.get(f"{path}/vectors/5/why").json
    assert alone["words"][0] == "It is the only vector of its cluster."
    assert service.get(f"{path}/vectors/99/why").status == 404


def test_several_vectors_move_in_one_request_and_one_undo_takes_them_back(service):
    path = service.namespace("moved")
    rows = [row[:8] for place in range(2) for row in around(place, 3)]
    service.post(f"{path}/vectors", {"vectors": rows, "ids": list("abcdef")})
    answer = service.post(f"{path}/move", {"vector": ["a", 1], "cluster": 1}).json
    assert [each["cluster"] for each in answer["decisions"]] == [1, 1]
    assert service.get(f"{path}/labels").json["labels"] == [1, 1, 0, 1, 1, 1]
    body = {"to": answer["before"], "after": answer["event"]}
    assert service.post(f"{path}/undo", body).status == 200
    assert service.get(f"{path}/labels").json["labels"] == [0, 0, 0, 1, 1, 1]
    cut = service.post(f"{path}/move", {"vector": [0, 5], "cluster": -1}).json
    assert {each["cluster"] for each in cut["decisions"]} == {2}
    assert service.post(f"{path}/move", {"vector": 1, "cluster": -1}).json["kind"] == "new"
    assert service.post(f"{path}/remove", {"vector": ["b", 2]}).status == 200
    assert service.get(f"{path}/labels").json["labels"] == [2, -1, -1, 1, 1, 2]


def test_the_history_of_a_cluster_has_words_and_times(service, path):
    chapters = service.get(f"{path}/clusters/1").json["chapters"]
    assert [each["words"] for each in chapters] == ["born", "named 'Bob'"]
    assert chapters[0]["time"] == "2024-02-01T00:00:00Z"


def test_a_list_without_tracked_vectors_has_no_exemplars(service):
    path = "/v1/namespaces/untracked-list"
    assert service.put(path, {**MADE_WITH, "track_vectors": False}).status == 201
    service.post(f"{path}/vectors", {"vectors": around(0, 3)})
    (only,) = listed(service, path, "exemplars=3&q=0")["clusters"]
    assert (only["size"], only["exemplars"]) == (3, [])
