"""The watchdog ends a process whose time is over, and no other."""

from __future__ import annotations

import threading

from linkstream.service.stopping import Watchdog
from service.calling import TIMEOUT


def test_the_process_is_ended_when_the_time_is_over():
    ended = threading.Event()
    with Watchdog(ended.set) as watchdog:
        watchdog.limit(0.0)
        assert ended.wait(TIMEOUT)


def test_a_later_limit_does_not_extend_the_first():
    ended, now = threading.Event(), [0.0]
    with Watchdog(ended.set, clock=lambda: now[0]) as watchdog:
        watchdog.limit(0.0)
        watchdog.limit(3_600.0)
        assert ended.wait(TIMEOUT)


def test_nothing_is_ended_without_a_limit_or_after_the_context():
    ended, others = threading.Event(), {*threading.enumerate()}
    with Watchdog(ended.set):
        pass
    with Watchdog(ended.set) as watchdog:
        watchdog.limit(3_600.0)
    for thread in {*threading.enumerate()} - others:
        if thread.name == "linkstream-watchdog":
            thread.join(TIMEOUT)
            assert not thread.is_alive()
    assert not ended.is_set()
