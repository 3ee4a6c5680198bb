"""Health: the service says when the disk is full, stays alive, and recovers."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections import namedtuple

import numpy as np
import pytest

from linkstream.errors import DamagedStoreError, StoreError
from linkstream.service import health
from linkstream.service.health import FREE_MIN, Health
from linkstream.store import commit_loop
from service.server import ThreadService
from store.operations import vectors

X = vectors(np.random.default_rng(5), 30)


class Disk:
    """A disk that a test fills and clears."""

    def __init__(self, monkeypatch):
        self.full = False
        self._commit, self._probe = commit_loop.JournalWriter.commit, health.write_probe
        self.probes = 0
        monkeypatch.setattr(commit_loop.JournalWriter, "commit", lambda *a: self._committed(*a))
        monkeypatch.setattr(health, "write_probe", self._probed)

    def _committed(self, writer, group):
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        return self._commit(writer, group)

    def _probed(self, folder):
        self.probes += 1
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._probe(folder)


def test_a_full_disk_degrades_the_service_until_there_is_space(tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    with ThreadService(tmp_path / "data") as service:
        path = service.namespace("people")
        assert service.post(f"{path}/vectors", X[:10]).status == 200
        assert _state(service) == ("ok", [])
        assert disk.probes == 0, "a healthy disk is not probed"
        disk.full = True
        answer = service.post(f"{path}/vectors", X[10:20])
        assert (answer.status, answer.kind) == (503, "store-closed")
        for _ in range(3):
            assert _state(service) == ("degraded", ["disk"])
        assert service.get(f"{path}/clusters/0").status == 200, "reads go on"
        disk.full = False
        assert _state(service) == ("ok", [])
        assert disk.probes == 4
        assert service.post(f"{path}/vectors", X[10:20]).json["first"] == 10
        assert [each.name for each in (tmp_path / "data").glob(".*")] == []


def test_a_write_that_succeeds_ends_the_degraded_state(tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    with ThreadService(tmp_path / "data") as service:
        path = service.namespace("people")
        disk.full = True
        assert service.post(f"{path}/vectors", X).status == 503
        disk.full = False
        assert service.post(f"{path}/vectors", X).status == 200
        assert _state(service) == ("ok", [])
        assert disk.probes == 0


def test_little_free_space_degrades_the_service(tmp_path, monkeypatch):
    usage, free = namedtuple("usage", "total used free"), [FREE_MIN - 1]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, free[0]))
    with ThreadService(tmp_path / "data") as service:
        assert _state(service) == ("degraded", ["disk"])
        free[0] = FREE_MIN
        assert _state(service) == ("ok", [])


def test_a_folder_that_is_gone_degrades_the_service(tmp_path):
    assert Health(tmp_path / "gone").check_disk()


@pytest.mark.parametrize(("kind", "stays"), [(StoreError, False), (DamagedStoreError, True)])
def test_recovery_forgets_only_errors_that_a_full_disk_may_have_caused(tmp_path, kind, stays):
    found = Health(tmp_path)
    found.failing.add("people")
    for name in ("people", "other"):
        found.broken[name] = kind("x", expected="y", remedy="z")
    assert found.reasons(disk_full=True) == ["store", "disk"]
    assert not found.check_disk()
    assert found.reasons(disk_full=False) == ["store"]
    assert ("people" in found.broken, "other" in found.broken) == (stays, True)


def _state(service):
    answer = service.get("/healthz")
    assert answer.status == 200
    return answer.json["status"], answer.json["reasons"]
