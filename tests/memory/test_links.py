"""Memory runs out at any allocation of any verb: the state is the one before, or the one after.

The k-th allocation fails, once or for good: of the compiled core ("core"), or of all there is,
Python's and NumPy's among them ("any"). A short form takes a few allocations of each verb, others
with another LINKSTREAM_MEMORY_SEED; the long form takes every one. A verdict that is not "good"
names the first allocation it was seen at: `Shortfall(kind, for_good, at=(k,))` runs that one alone.
"""

from __future__ import annotations

import pytest

from memory.child import Job, Shortfall
from memory.machine import bad
from memory.operations import READ, SCENARIOS
from streams import ENGINES

# Of each verb, and of each that only reads: how many allocations fail in the short form.
SHORT = {
    "native": {("core", False): 3, ("core", True): 2, ("any", False): 2, ("any", True): 1},
    "reference": {("any", False): 3, ("any", True): 1},
}
LONG = {
    "native": [(kind, good) for kind in ("core", "any") for good in (False, True)],
    "reference": [("any", False), ("any", True)],
}
MANY = 400  # allocations of a verb that makes hundreds of thousands
HUGE = ("add_many of hundreds", "reference")


def cases(engines=ENGINES):
    return [pytest.param(name, each, id=f"{name}-{each}") for name in SCENARIOS for each in engines]


@pytest.mark.parametrize(("name", "engine"), cases())
def test_a_verb_that_runs_out_of_memory_is_done_wholly_or_not_at_all(machine, name, engine):
    share = 2 if SCENARIOS[name].kind == READ else 1
    shortfalls = [Shortfall(*how, max(1, points // share)) for how, points in SHORT[engine].items()]
    assert bad(machine.run(Job("links", name, engine, tuple(shortfalls)))) == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "engine"), cases())
def test_every_allocation_of_a_verb_may_fail(machine, name, engine):
    points = MANY if (name, engine) == HUGE else None
    shortfalls = [Shortfall(*how, points) for how in LONG[engine]]
    assert bad(machine.run(Job("links", name, engine, tuple(shortfalls), workers=2))) == []


def test_allocations_of_every_kind_are_seen_to_fail(machine):
    """What the other tests rest on: each kind of memory is counted, and runs out."""
    kinds = ("core", "python", "arrays")
    job = Job("links", "from_bytes", "native", tuple(Shortfall(kind, False, 3) for kind in kinds))
    for report in machine.run(job):
        assert report["tried"] == 3, report
        assert any("raised" in text for text in report["verdicts"]), report
