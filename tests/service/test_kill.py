"""A service killed at any moment keeps all acknowledged vectors and continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from service.calling import Caller
from service.feeders import SIZES, Feeders, headers, replayed, request
from service.server import ProcessService, until
from store.child import batch

CLIENTS = 4


def killed(service, folder, seed, kills):
    """Kill a service repeatedly while clients feed it; return how much was acknowledged."""
    rng, starts, calls, rows = np.random.default_rng([seed, 3]), [0] * CLIENTS, 0, 0
    for _ in range(kills):
        feeders = Feeders(service, seed, starts)
        goal = int(rng.integers(12))
        until(lambda feeders=feeders, goal=goal: len(feeders.answers) >= goal, pause=0.001)
        time.sleep(rng.exponential(0.02))
        service.kill()
        answers = feeders.join().answers
        found = replayed(folder / "people.links", seed, feeders)
        assert {key: found.get(key) for key in answers} == answers, "lost, or told otherwise"
        for thread, before in enumerate(starts):
            mine = sorted(number for t, number in found if t == thread)
            assert mine == list(range(len(mine))), "a batch is missing among those of a client"
            known = sum(t == thread for t, _ in answers)
            assert before + known <= len(mine) <= before + known + 1
            starts[thread] = len(mine)
        calls += len(answers)
        rows += sum(map(len, answers.values()))
        service.start()
    assert calls > kills
    return calls, rows


def goes_on(service, folder, seed):
    """Check that repeated requests get their answers, and new ones those of a single run."""
    before = replayed(folder / "people.links", seed) if service.ended else None
    if service.ended:
        service.start()
    with Caller(service.port) as caller:
        for (thread, number), ids in list((before or {}).items())[-20:]:
            rows = batch(seed, (thread, number), SIZES)
            path, body = request(rows, number)
            answer = caller.post(path, body, headers=headers(thread, number))
            assert answer.status == 200
            assert [answer.json["cluster"]] == ids if "vector" in body else answer.ids == ids
    service.stop()
    assert before is None or replayed(folder / "people.links", seed) == before


def test_kills_at_any_moment_lose_nothing_acknowledged(nest, tmp_path):
    data = tmp_path / "data"
    with ProcessService(nest, data) as service:
        service.namespace("people")
        killed(service, data, 1, kills=10)
        service.kill()
        goes_on(service, data, 1)


@pytest.mark.long
def test_200_kills_lose_nothing_acknowledged(nest, tmp_path, capsys):
    calls = rows = 0
    for seed in range(100, 120):
        data = tmp_path / str(seed)
        with ProcessService(nest, data) as service:
            service.namespace("people")
            more = killed(service, data, seed, kills=10)
            calls, rows = calls + more[0], rows + more[1]
            service.kill()
            goes_on(service, data, seed)
    with capsys.disabled():
        told = f"{calls} requests with {rows} vectors acknowledged to {CLIENTS} clients at once"
        print(f"\n200 kills, {told}, 0 lost")  # noqa: T201


def test_killing_the_serve_command_loses_nothing(tmp_path):
    """The same with the plain command in a process of its own."""
    data = tmp_path / "data"
    words = [sys.executable, "-m", "linkstream.cli", "serve", data, "--port", "0"]
    starts = [0] * CLIENTS
    for _ in range(2):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        with process:
            told = json.loads(process.stdout.readline())
            assert told["pid"] == process.pid
            here = Here(int(told["url"].rstrip("/").rpartition(":")[2]))
            here.namespace("people")
            feeders = Feeders(here, 7, starts)
            until(lambda feeders=feeders: len(feeders.answers) >= 10)
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait(60) == -signal.SIGKILL
        answers = feeders.join().answers
        found = replayed(data / "people.links", 7, feeders)
        assert {key: found.get(key) for key in answers} == answers
        starts = [sum(t == thread for t, _ in found) for thread in range(CLIENTS)]


class Here(ProcessService):
    """A service that was started by other means."""

    def __init__(self, port):
        self.port = port
