"""Ctrl-C for all that tests begin; and one worker for tests that share a Spark session."""

from __future__ import annotations

import signal

import pytest

# What is begun in the background (`make test &`) ignores Ctrl-C, and so would all that tests begin.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TOGETHER = tuple(f"tests/scaleout/test_{name}.py" for name in ("corpus", "kills", "page", "spark"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Not by xdist's groups: they rely on a private name that pytest 9.2 gave up."""
    from xdist.scheduler import LoadScopeScheduling

    class OneSession(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "spark" if nodeid.startswith(TOGETHER) else nodeid

    return OneSession(config, log)
