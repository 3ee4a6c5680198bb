"""A process whose memory can be made to run short: one for a whole run."""

from __future__ import annotations

import pytest

from memory.machine import Machine, compile_library


@pytest.fixture(scope="session")
def scarce(tmp_path_factory):
    return compile_library(tmp_path_factory.mktemp("scarce") / "scarce.so")


@pytest.fixture(scope="session")
def machine(scarce):
    with Machine(scarce) as held:
        yield held
