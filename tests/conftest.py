"""Deliver Ctrl-C to child processes, run Hypothesis without deadlines, give Spark one worker."""

from __future__ import annotations

import signal

import hypothesis
import pytest

# A shell starts a background job (`make test &`) with Ctrl-C ignored; child processes inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Machines are shared: how long an example takes says nothing.
hypothesis.settings.register_profile("linkstream", deadline=None)
hypothesis.settings.load_profile("linkstream")

SHARED = tuple(f"tests/scaleout/test_{name}.py" for name in ("corpus", "kills", "page", "spark"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Group by file name: the groups of xdist use a private name that pytest 9.2 removed."""
    from xdist.scheduler import LoadScopeScheduling

    class OneSession(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "spark" if nodeid.startswith(SHARED) else nodeid

    return OneSession(config, log)
