"""Memory runs out in a store: what was acknowledged is there, and a shortage is never damage.

As test_links.py, and each store is opened again afterwards by a process with memory enough: it
verifies, is where it was before or after the call, and goes on with the same answers. Of a call
that raised, no file is left behind.
"""

from __future__ import annotations

import pytest

from memory.child import Job, Shortfall
from memory.machine import bad
from memory.storing import SCENARIOS
from streams import ENGINES

SHORT = (Shortfall("any", False, 2), Shortfall("any", True, 1))
MANY = 1500  # allocations of a verb that makes tens of thousands
LONG = tuple(
    Shortfall(kind, good, None if kind == "core" else MANY)
    for kind in ("core", "any")
    for good in (False, True)
)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_store_that_runs_out_of_memory_loses_nothing_and_is_not_damaged(machine, name):
    assert bad(machine.run(Job("store", name, "auto", SHORT))) == []


def test_a_backup_that_lacks_memory_at_its_end_leaves_no_file_or_succeeds(machine):
    (report,) = machine.run(Job("store", "backup", "auto", (Shortfall("any", False, 1),)))
    end = range(report["total"] - 90, report["total"], 3)  # around the renaming
    places = Shortfall("any", False, at=tuple(end))
    assert bad(machine.run(Job("store", "backup", "auto", (places,)))) == []


@pytest.mark.parametrize("name", ["open to read", "backup"])
def test_a_path_that_memory_does_not_suffice_to_read_is_not_called_wrong(machine, name):
    beginning = Shortfall("any", False, at=tuple(range(24)))
    assert bad(machine.run(Job("store", name, "auto", (beginning,)))) == []


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_allocations_of_a_store_may_fail_all_over(machine, name, engine):
    shortfalls = LONG if engine == "native" else LONG[2:]
    assert bad(machine.run(Job("store", name, engine, shortfalls, workers=2))) == []
