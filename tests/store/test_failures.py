"""The k-th write, or forcing to disk, fails: nothing is acknowledged that is not there."""

from __future__ import annotations

import errno
import json

import pytest

from linkstream import Links
from linkstream.errors import StoreError
from linkstream.store import Store
from store.crash_harness import FAIL_FROM_HERE_ON, FAIL_ONCE, SHORT_ONCE, SHORT_THEN_FAIL, Job, read
from store.internals import told
from store.operations import THRESHOLDS, VERBS, Shadow, state_of

SEED, OPERATIONS = 5, 14
CARED = VERBS | {"compact": 3, "backup": 2, "undo": 0, "undo_to": 0}
FAULTS = {
    "a write error once": (errno.EIO, FAIL_ONCE),
    "a broken disk": (errno.EIO, FAIL_FROM_HERE_ON),
    "a disk full once": (errno.ENOSPC, FAIL_ONCE),
    "a full disk": (errno.ENOSPC, FAIL_FROM_HERE_ON),
    "half a write once": (0, SHORT_ONCE),
    "half a write, then a full disk": (errno.ENOSPC, SHORT_THEN_FAIL),
}
SESSIONS = {"all verbs": VERBS, "with care": CARED}


def session(folder, verbs, k, error, way):
    """A short session from nothing to the close, with a fault at the k-th write."""
    files = str(folder / f"{k}.links"), str(folder / f"{k}.record")
    ends = {"first": 0, "last": OPERATIONS, "verbs": verbs, "early": 3}
    return Job(*files, SEED, fault=(k, error, way), **ends)


@pytest.fixture(scope="module", params=SESSIONS.values(), ids=SESSIONS)
def verbs(request):
    return request.param


@pytest.fixture(scope="module")
def shadow(verbs):
    return Shadow(SEED, verbs=verbs).until(OPERATIONS + 1)


@pytest.fixture(scope="module")
def writes(faulty, verbs, tmp_path_factory):
    """How many writes the session makes when none fails."""
    job = session(tmp_path_factory.mktemp("whole"), verbs, -1, errno.EIO, FAIL_ONCE)
    assert faulty.run(job) == 0
    record = read(job.record)
    assert len(record.answers) == OPERATIONS, record.notes
    assert "closed" in record.notes, record.notes
    return record.notes["writes"]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("step", [31, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
def test_a_write_that_fails_is_never_acknowledged(
    faulty, folder, verbs, shadow, writes, fault, step
):
    noticed, first = 0, list(FAULTS.values()).index(fault)
    # Some of all; and about where the new store is opened, which has ways of its own to fail.
    ks = set(range(first % step, writes, step))
    ks |= set(range(36 + first // 2, 60, 2)) if fault[1] == FAIL_ONCE else set()
    for k in sorted(ks):
        job = session(folder, verbs, k, *fault)
        assert faulty.run(job) == 0
        record = read(job.record)
        noticed += "error" in record.notes
        assert_told(record, shadow, k)
        assert_there(record, shadow, job.path)
    assert noticed > len(ks) / 5 or fault[1] == SHORT_ONCE


@pytest.mark.parametrize(("way", "each"), [("threads", 12), ("feed", 48)])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("step", [31, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
def test_no_call_of_a_failed_group_commit_is_acknowledged(faulty, folder, way, each, error, step):
    broken = 0
    for k in range(60, 250, step):
        path, record = folder / f"{k}.links", folder / f"{k}.record"
        how = {"way": way, "threads": (0,) * 4, "last": each, "sizes": (3, 40), "early": 30}
        job = Job(str(path), str(record), SEED, fault=(k, error, FAIL_ONCE), slow=200, **how)
        assert faulty.run(job) == 0
        found = read(record)
        if "error" not in found.notes or not found.opened:
            continue
        broken += 1
        assert found.notes["error"][0] == "linkstream.errors", (k, found.notes["error"])
        for change in ("add_many", "add", "undo", "compact"):
            assert found.notes[f"then {change}"] == "StoreClosedError", (k, found.notes)
        assert_whole(path, found, found.notes["then read"])
    assert broken >= 1


def assert_whole(path, record, shown):
    """What was acknowledged is there, and was shown after the failure as well."""
    links, answers, places = Links.from_thresholds(THRESHOLDS, threads=1), {}, []
    with Store.open(path, threads=1) as store:
        for operation in told(store):
            name = operation.key or operation.number - 1
            answers[name] = links.add_many(operation.vectors).tolist()
            places.append(links.state_hash())
        assert store.state_hash() == links.state_hash()
        store.verify()
    acknowledged = record.answers or {f"{t}:{n}": ids for (t, n), ids in record.of_threads.items()}
    assert {name: answers.get(name) for name in acknowledged} == acknowledged
    at = places.index(json.loads(shown)[0]) + 1 if places and json.loads(shown)[1] else 0
    assert set(list(answers)[:at]) >= set(acknowledged), "acknowledged, and not shown"


def assert_told(record, shadow, k):
    """A failure is an error of the store's; then it takes nothing more, and closes."""
    count, notes = len(record.answers), record.notes
    assert list(record.answers.values()) == shadow.answers[:count]
    if "error" not in notes:
        assert count == OPERATIONS  # it did not matter, as when a checkpoint is put off
        return
    module, kind, text = notes["error"]
    assert module == "linkstream.errors", (k, module, kind, text)
    assert "links" in text, text
    if not record.opened:
        return
    if count < OPERATIONS:
        # What was not acknowledged is not shown either.
        seen = notes["then read"]
        assert seen == json.dumps(shadow.states[count]), (k, seen)
    assert notes["then close"] == "done", (k, notes)
    if notes["in"] != "backup":
        for change in ("add_many", "add", "undo", "compact"):
            assert notes[f"then {change}"] == "StoreClosedError", (k, change, notes)
        assert notes["then close again"] == "done"


def assert_there(record, shadow, path):
    """On a sound disk all that was acknowledged is there, and it goes on as uninterrupted."""
    count = len(record.answers)
    try:
        store = Store.open(path, threads=1)
    except StoreError:
        assert not record.opened  # the failure came while it was made
        store = Store.open(path, thresholds=THRESHOLDS, threads=1)
    with store:
        possible = shadow.states[count : count + 2]
        found = state_of(store)
        assert found in possible
        count += possible.index(found)
        for number in range(count, OPERATIONS):
            assert shadow.do(store, number) == shadow.answers[number]
        store.verify()
    with Store.open(path, threads=1) as store:
        assert state_of(store) == shadow.states[max(count, OPERATIONS)]
