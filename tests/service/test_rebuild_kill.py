"""A service that is killed in a rebuild has applied it completely or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream.store import Store
from service.server import ProcessService, until
from store.operations import THRESHOLDS

HEADERS = {"Idempotency-Key": "rebuild-1"}


def sample(n):
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((9, 12))
    return (centres[rng.integers(9, size=n)] + 0.7 * rng.standard_normal((n, 12))).astype("f4")


@pytest.fixture
def expected(tmp_path):
    """Return the state hashes before and after the rebuild."""
    with Store.open(tmp_path / "other.links", thresholds=THRESHOLDS) as store:
        store.add_many(sample(400))
        before = store.state_hash()
        assert store.rebuild(True).flows
        return before, store.state_hash()


def settled(service, expected, applied):
    """Check the state after a restart, and that the repeated request is applied once."""
    path = "/v1/namespaces/people"
    assert service.get(f"{path}/rebuilds").json == {"rebuilds": []}
    found = service.get(f"{path}?hash=true").json["state_hash"]
    assert found in expected
    if applied is not None:
        assert found == expected[applied]
    job = service.post(f"{path}/rebuilds", {"apply": True}, headers=HEADERS).json["job"]
    done = service.get(f"{path}/rebuilds/{job}?wait=30").json
    assert (done["state"], done["tries"]) == ("done", 0 if found == expected[1] else 1)
    assert service.get(f"{path}?hash=true").json["state_hash"] == expected[1]
    steps = service.get(f"{path}/steps").json["steps"]
    assert [step["command"] for step in steps] == ["rebuild", "add_many"]


@pytest.mark.parametrize(("when", "applied"), [("before", False), ("after", True)])
def test_a_kill_at_the_commit_applies_all_or_nothing(nest, tmp_path, expected, when, applied):
    fault = {"when": when, "commit": 2}
    with ProcessService(nest, tmp_path / "data", fault=fault) as service:
        path = service.namespace("people")
        service.post(f"{path}/vectors", sample(400))
        service.post(f"{path}/rebuilds", {"apply": True}, headers=HEADERS)
        assert service.wait().status == -9
        service.fault = None
        service.start()
        settled(service, expected, applied)
        service.stop()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.9])
def test_a_kill_while_it_is_computed_changes_nothing_halfway(nest, tmp_path, expected, share):
    with ProcessService(nest, tmp_path / "data") as service:
        path = service.namespace("people")
        service.post(f"{path}/vectors", sample(400))
        job = service.post(f"{path}/rebuilds", {"apply": True}, headers=HEADERS).json["job"]
        until(lambda: service.get(f"{path}/rebuilds/{job}").json["share"] >= share, pause=0.0)
        service.kill()
        service.start()
        settled(service, expected, None)
        service.stop()
