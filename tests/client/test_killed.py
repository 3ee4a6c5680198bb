"""Clients keep feeding while the service is killed and restarted; all IDs stay the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np

from client.fakes import BOTH
from linkstream import Links, Thresholds
from linkstream.client import Client, Retries
from linkstream.data import voice_halves
from loopback import free_port, own_address

THRESHOLDS = Thresholds(0.766, 0.645, 0.738)
X = voice_halves()[1].X
RETRIES = Retries(attempts=10_000, seconds=100.0, longest=0.2)


class Process:
    """`linkstream serve` at a port of its own; can be killed and restarted."""

    def __init__(self, data):
        self.host = own_address()
        self.port = free_port(self.host)
        self.url = f"http://{self.host}:{self.port}"
        self._data = data
        self.start()

    def start(self):
        command = [sys.executable, "-m", "linkstream.cli", "serve", self._data]
        self._process = subprocess.Popen(
            [*command, "--host", self.host, "--port", str(self.port)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
        )
        assert json.loads(self._process.stdout.readline())["url"].startswith(self.url)

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def fed(kind, url, batches, each):
    """Feed batches; return their IDs and the state hash. Call `each` after every batch."""
    with kind(None, url, retries=RETRIES) as client:
        found = []
        for batch in batches:
            found.append(client.add_many(batch))
            each()
        return found, client.state_hash()


def test_both_clients_keep_feeding_while_the_service_is_killed_and_restarted(tmp_path):
    service = Process(tmp_path / "data")
    try:
        with Client(service.url, "people", retries=RETRIES) as client:
            client.create(THRESHOLDS)
        ahead = threading.Semaphore(0)
        found = []

        def feed():
            half = len(X) // 2
            for kind, rows in zip(BOTH, (X[:half], X[half:]), strict=True):
                batches = np.array_split(rows, 40)
                found.append(fed(kind, service.url, batches, ahead.release))

        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        for wait in (5, 30, 20):  # batches, after each of which it is killed
            for _ in range(wait):
                assert ahead.acquire(timeout=100)
            service.kill()
            service.start()
        feeder.join(100)
        assert not feeder.is_alive()
    finally:
        service.kill()
    links = Links.from_thresholds(THRESHOLDS)
    ids = np.concatenate([batch for given, _ in found for batch in given])
    assert np.array_equal(ids, links.add_many(X))
    assert found[-1][1] == links.state_hash()
