"""A process whose memory can be made to run short: one for a whole run."""

from __future__ import annotations

import pytest

from memory.machine import Machine, compile_library


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    library = compile_library(tmp_path_factory.mktemp("scarce") / "scarce.so")
    with Machine(library) as held:
        yield held
