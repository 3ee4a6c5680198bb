"""A migration to another encoder over HTTP."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds
from store.operations import THRESHOLDS

THREE = {"cluster_similarity": 0.6, "subcluster_similarity": 0.5, "pair_similarity_max": 0.85}
T = Thresholds(**THREE)


def views(n=60):
    """Return vectors of one encoder, and of another one, as JSON carries them."""
    rng = np.random.default_rng(3)
    centres = np.repeat(rng.standard_normal((6, 12)), n // 6, axis=0)
    ones = (centres + 0.3 * rng.standard_normal(centres.shape)).astype("f4")
    return ones, (ones @ rng.standard_normal((12, 9))).astype("f4")


@pytest.fixture
def path(service, namespace):
    ones, _ = views()
    keys = [f"k{n}" for n in range(len(ones))]
    body = {"vectors": ones.tolist(), "ids": keys}
    assert service.post(f"{namespace}/vectors", body).status == 200
    return namespace


def test_a_migration_is_that_of_links(service, path):
    ones, others = views()
    links = Links.from_thresholds(THRESHOLDS)
    links.add_many(ones)
    expected = links.migrate(space=Space(model="two"), thresholds=T)
    assert service.get(f"{path}/migration").json == {"migration": None}
    begun = service.post(f"{path}/migration", {"space": {"model": "two"}, "thresholds": THREE})
    assert begun.json == expected.status().to_dict()
    rows = others.tolist()
    body = {"vectors": rows[:30], "numbers": list(range(30))}
    expected.add(others[:30], range(30))
    added = service.post(f"{path}/migration/vectors", body).json
    assert added == {"taken": 30}
    assert service.get(f"{path}/migration").json["migration"] == expected.status().to_dict()
    body = {"vectors": rows[30:40], "ids": [f"k{n}" for n in range(30, 40)]}
    expected.add(others[30:40], range(30, 40))
    assert service.post(f"{path}/migration/vectors", body).json == {"taken": 10}
    assert service.get(f"{path}/migration").json["migration"]["reencoded"] == 40
    missing = service.get(f"{path}/migration/missing?limit=3").json["vectors"]
    assert [(each["vector"], each["id"]) for each in missing] == [
        (40, "k40"),
        (41, "k41"),
        (42, "k42"),
    ]
    ids = service.post(f"{path}/migration/ask", {"vectors": rows}).json["ids"]
    assert ids == expected.predict(others).tolist()
    report = service.get(f"{path}/migration/report").json
    assert report["rebuild"] == plain(expected.report().rebuild.to_dict())
    assert report == plain(expected.report().to_dict())
    done = finished(service, path)
    wanted = plain(expected.finish().to_dict())
    assert (done["state"], done["apply"], done["changes_space"]) == ("done", True, True)
    assert {**done["migration"], "rebuild": done["report"]} == wanted
    about = service.get(f"{path}?hash=true").json
    assert about["state_hash"] == links.state_hash()
    assert about["dimension"] == 9
    assert service.get(f"{path}/migration").json == {"migration": None}
    service.post(f"{path}/undo", {})
    assert service.get(path).json["dimension"] == 12


def finished(service, path, **body):
    """Return the job that ends a migration, after its end."""
    answer = service.post(f"{path}/migration/finish", body)
    assert answer.status == 202, answer.body
    address = answer.headers["location"]
    assert address == f"{path}/rebuilds/{answer.json['job']}"
    return service.get(f"{address}?wait=30").json


def plain(value):
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def test_a_report_is_as_new_as_what_was_added(service, path):
    _, others = views()
    service.post(f"{path}/migration", {})
    for end in (20, 60):
        body = {"vectors": others[:end].tolist(), "numbers": list(range(end))}
        service.post(f"{path}/migration/vectors", body)
        report = service.get(f"{path}/migration/report").json
        assert report["status"]["reencoded"] == end
        assert (report["loss"] is None) is (end == 60)


def test_thresholds_may_come_from_the_present_clusters(service, path):
    begun = service.post(f"{path}/migration", {"thresholds": "from clusters"})
    assert begun.status == 200
    refused = service.post(f"{path}/migration", {"thresholds": "from labels"})
    assert refused.status == 400
    assert "from clusters" in refused.json["error"]["expected"]
    assert service.post(f"{path}/migration/abandon", {}).status == 200


def test_without_a_migration_its_routes_answer_404(service, path):
    _, others = views()
    vectors = others[:1].tolist()
    answers = [
        service.get(f"{path}/migration/missing"),
        service.get(f"{path}/migration/report"),
        service.post(f"{path}/migration/vectors", {"vectors": vectors, "numbers": [0]}),
        service.post(f"{path}/migration/ask", {"vectors": vectors}),
        service.post(f"{path}/migration/finish", {}),
        service.post(f"{path}/migration/abandon", {}),
    ]
    for answer in answers:
        assert answer.status == 404
        assert answer.json["error"]["seen"] == "no migration under way"


def test_what_cannot_be_taken_is_refused_and_nothing_is_added(service, path):
    _, others = views()
    rows = others[:2].tolist()
    service.post(f"{path}/migration", {"space": {"model": "two"}})
    for body, words in (
        ({"vectors": rows}, "neither of numbers and keys"),
        ({"vectors": rows, "numbers": [0, 1], "ids": ["k0", "k1"]}, "both of numbers and keys"),
        ({"vectors": rows, "numbers": [0]}, "2 vectors and 1 numbers"),
        ({"vectors": rows, "numbers": [0, 60]}, "vector 60"),
        ({"vectors": rows, "numbers": [0, -1]}, "numbers"),
        ({"vectors": rows, "ids": ["k0", "other"]}, "other"),
        ({"vectors": rows, "ids": [0, 1]}, "ids"),
        ({"vectors": [[1.0], [1.0, 2.0]], "numbers": [0, 1]}, ""),
        ({"vectors": rows, "numbers": [0, 1], "more": 1}, "more"),
    ):
        answer = service.post(f"{path}/migration/vectors", body)
        assert answer.status in (400, 404, 422), body
        assert words in str(answer.json["error"]), body
    other = service.post(f"{path}/migration", {"space": {"model": "three"}})
    assert "than those of the migration under way" in other.json["error"]["seen"]
    few = finished(service, path)
    assert few["state"] == "failed"
    assert "0 of 60 vectors re-embedded" in few["error"]["seen"]
    assert service.get(f"{path}/migration").json["migration"]["reencoded"] == 0
    assert service.post(f"{path}/migration/abandon", {}).json["model"] == "two"


def test_a_migration_whose_vectors_were_all_removed_is_abandoned(service, path):
    _, others = views()
    service.post(f"{path}/migration", {})
    for number in range(60):
        assert service.post(f"{path}/remove", {"vector": number}).status == 200
    assert service.get(f"{path}/migration").json["migration"]["n_vectors"] == 0
    assert service.get(f"{path}/migration/missing").json == {"vectors": []}
    for answer in (
        service.get(f"{path}/migration/report"),
        service.post(f"{path}/migration/ask", {"vectors": others[:1].tolist()}),
    ):
        assert answer.status == 400
        assert "Abandon the migration" in answer.json["error"]["remedy"]
    assert "Abandon the migration" in finished(service, path)["error"]["remedy"]
    assert service.post(f"{path}/migration/abandon", {}).status == 200
    assert service.get(f"{path}/migration").json == {"migration": None}
