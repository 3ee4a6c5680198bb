"""Snapshots that somebody made to harm, each with a right checksum: refused by name on loading.

The fuzz target is fuzz_ledger.py; below it, one test for each kind of thing that was seen.
"""

import base64
import tracemalloc

import numpy as np
import pytest

from engine import fuzz_ledger
from engine.fuzz_snapshot import pack, seal, unpack
from engine.lives import crowd, life
from linkstream import Links
from linkstream.engine import events
from linkstream.errors import ArgumentError, SnapshotError, UndoError
from streams import ENGINES

SEED = 20_240_502


def assert_refused_or_sound(seed, tmp_path, *, cases, lives):
    try:
        outcomes = fuzz_ledger.run(seed, cases=cases, begun=fuzz_ledger.origins(lives))
    except fuzz_ledger.HoleError as hole:
        path = tmp_path / "mutant.links"
        path.write_bytes(base64.b64decode(str(hole).rpartition(": ")[2]))
        raise AssertionError(f"{path}: {hole}") from hole
    # A fuzzer that stops at the front door, or that never gets in, tests nothing.
    assert len(outcomes.refused) >= 15, outcomes
    assert len(outcomes.accepted) >= 5, outcomes
    assert sum(outcomes.accepted.values()) >= 0.1 * sum(outcomes.refused.values()), outcomes


def test_mutants_of_lives_are_refused_or_every_verb_agrees_on_them(tmp_path):
    assert_refused_or_sound(SEED, tmp_path, cases=60, lives=11)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_thousands_of_mutants_of_lives_are_refused_or_every_verb_agrees_on_them(seed, tmp_path):
    assert_refused_or_sound(seed, tmp_path, cases=800, lives=44)


@pytest.mark.parametrize("seeds", [range(11), pytest.param(range(400), marks=pytest.mark.long)])
def test_no_life_of_our_own_is_refused(seeds):
    for seed in seeds:
        links = life(seed)
        for history in (True, False):
            again = Links.from_bytes(links.to_bytes(history=history))
            assert again.state_hash() == links.state_hash()


# What was seen.


def told():
    """Names, prototypes, a group, a light vector, corrections, a move: something of everything."""
    links = Links(0.75, 0.9, 0.85)
    links.add_many(crowd(np.random.default_rng(4), 20))
    links.add(crowd(np.random.default_rng(5), 1)[0], weight=0.5)
    links.add_group(np.eye(6)[:3], group="photo")
    links.enrol("Ann", [np.eye(6)[3], -np.eye(6)[3]])
    links.name(links.labels()[0], "Bob")
    links.different(20, 21)
    links.move(2, links.named("Ann"))
    return links


def refusal(change, links=None):
    """The refusal of a snapshot after a change of its parts; the same on all engines."""
    meta, arrays = unpack((links or told()).to_bytes())
    assert Links.from_bytes(pack(meta, arrays)).n_vectors
    change(meta, arrays)
    messages = set()
    for engine in ENGINES:
        with pytest.raises(SnapshotError) as refused:
            Links.from_bytes(pack(meta, arrays), engine=engine)
        messages.add(refused.value.seen)
    (message,) = messages
    return message


def ledger(name, change):
    def apply(meta, arrays):
        change(meta["ledger"][name])

    return apply


def event(code, column, value):
    """Change a number of the last event of a kind."""

    def apply(meta, arrays):
        log = arrays["events"]
        log[np.flatnonzero(log[:, 0] == code)[-1], column] = value

    return apply


def replaced(row, value):
    def change(entries):
        entries[row] = value

    return change


LEDGERS = {
    "a name twice": (ledger("names", lambda n: replaced(0, [n[0][0], n[1][1]])(n)), "names are"),
    "an empty name": (ledger("names", lambda n: replaced(0, [n[0][0], " "])(n)), "names are"),
    "a name of True": (ledger("names", lambda n: replaced(0, [True, "x"])(n)), "numbers are whole"),
    "a pin elsewhere": (
        ledger("pins", lambda p: replaced(0, [p[1][0], *p[0][1:]])(p)),
        "pins where their vectors are",
    ),
    "a pin in no group": (
        ledger("pins", lambda p: replaced(0, [*p[0][:2], -1])(p)),
        "pins and groups agree",
    ),
    "a group of strangers": (ledger("groups", lambda g: g.append([3])), "pins and groups agree"),
    "a pin twice in a group": (
        ledger("groups", lambda g: g[0].append(g[0][0])),
        "pins and groups agree",
    ),
    "a lock too few": (ledger("locked", lambda some: some.pop()), "locked as the state"),
    "a weight too many": (ledger("lights", lambda some: some.append([0, 9])), "weights of vectors"),
    "a weight too few": (ledger("lights", lambda some: some.pop()), "weights of vectors"),
    "laws that contradict": (
        ledger("laws", lambda laws: laws.append([1 - laws[0][0], *laws[0][1:]])),
        "obeys the constraints",
    ),
    "a correction of vectors between wholes": (
        ledger("laws", lambda laws: replaced(-1, [*laws[-1][:3], -1, *laws[-1][4:]])(laws)),
        "speak of vectors or of wholes",
    ),
    "a correction of wholes between vectors": (
        ledger("laws", lambda laws: replaced(1, [*laws[1][:6], 2])(laws)),
        "speak of vectors or of wholes",
    ),
    "a correction with pins of a group": (
        ledger("laws", lambda laws: laws.append([0, 1, "different(21, 22)", -1, [0], [1], 0])),
        "a pin is of one correction or of a group",
    ),
    "a key of no group": (ledger("keys", lambda keys: keys.append(["x", 7])), "between pins"),
}


@pytest.mark.parametrize(("change", "rule"), LEDGERS.values(), ids=LEDGERS)
def test_a_ledger_that_does_not_fit_its_state_is_refused(change, rule):
    assert rule in refusal(change)


def leave_out(code):
    def apply(meta, arrays):
        row = np.flatnonzero(arrays["events"][:, 0] == code)[-1]
        arrays["events"] = np.delete(arrays["events"], row, axis=0)
        meta["state"]["n_events"] -= 1

    return apply


LOGS = {
    "a name without a text": (event(events.NAMED, 3, 99), "each text it names is there"),
    "a weight without a vector": (event(events.JOINED, 0, events.WEIGHED), "events have known"),
    "flags that are none": (event(events.FLAGGED, 3, 4), "events have known codes"),
    "a vector that never came": (leave_out(events.JOINED), "each vector came once"),
    "a prototype without a birth": (leave_out(events.LINKED), "each vector came once"),
    "a vector put elsewhere": (event(events.JOINED, 2, 0), "each vector is where"),
    "a subcluster without a birth": (event(events.MOVED, 3, 0), "between birth and end"),
    "a pin on a number never given": (event(events.PINNED, 2, 2**31), "events have known codes"),
}


@pytest.mark.parametrize(("change", "rule"), LOGS.values(), ids=LOGS)
def test_a_log_that_did_not_lead_to_its_state_is_refused(change, rule):
    assert rule in refusal(change)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_log_that_cannot_be_followed_makes_undo_raise_before_anything_changes(engine):
    """The edges of the past are followed by undo alone: here one was tied to another cluster."""
    links = Links(0.75, 0.9, 0.85)
    links.add_many([[1, 0, 0, 0], [0.8, 0.6, 0, 0], [0, 0, 1, 0], [0, 0, 0.8, 0.6]])
    meta, arrays = unpack(links.to_bytes())
    log = arrays["events"]
    assert log[:, 0].tolist() == [events.CREATED, events.LINKED] * 2
    log[3, 3] = 0
    hostile = Links.from_bytes(pack(meta, arrays), engine=engine)
    before = hostile.to_bytes()
    hostile.undo()  # takes back the very event
    assert hostile.n_vectors == 3
    hostile = Links.from_bytes(before, engine=engine)
    hostile.add([0, 1, 0, 0])
    before = hostile.to_bytes()
    with pytest.raises(SnapshotError, match="one tree for each cluster"):
        hostile.undo()
    assert hostile.to_bytes() == before


def turned(kept):
    kept[3] = -kept[3]


def emptied(kept):
    kept[3] = 0


def stretched(kept):
    kept[3] = kept[3] // 4 * 5


@pytest.mark.parametrize("change", [turned, emptied, stretched])
def test_kept_vectors_that_do_not_sum_to_their_subclusters_are_refused(change):
    message = refusal(lambda meta, arrays: change(arrays["kept"]))
    assert "do not sum" in message


@pytest.mark.parametrize("change", [emptied, stretched])
def test_undone_vectors_that_are_no_unit_vectors_are_refused(change):
    links = told()
    for _ in range(8):
        links.undo()
    message = refusal(lambda meta, arrays: change(arrays["undone"]), links)
    assert "another length" in message


def test_what_was_retracted_and_redone_is_loaded_and_a_redo_of_the_future_is_refused():
    links = told()
    links.retract(links.corrections()[0].number)
    links.undo()
    links.redo()
    assert Links.from_bytes(links.to_bytes()).state_hash() == links.state_hash()
    assert "events have known codes" in refusal(event(events.REDONE, 2, links.n_events), links)
    assert "events have known codes" in refusal(event(events.RETRACTED, 2, 2**40), links)


@pytest.mark.parametrize("name", ["free_subcluster", "free_cluster"])
@pytest.mark.parametrize("value", [2**31, 2**32 - 2, 2**61])
def test_numbers_that_no_event_gave_are_refused(name, value):
    def change(meta, arrays):
        meta["state"][name] = value

    assert "each number was given by an event" in refusal(change)


@pytest.mark.parametrize(
    "counters",
    [{"free_subcluster": 2**32 - 2, "n_events": 2**40}, {"n_events": 2**62 - 1}],
    ids=["subclusters", "events"],
)
def test_a_snapshot_with_hardly_any_numbers_left_is_refused(counters):
    """The compiled engine ran out of them, and the other went on."""

    def change(meta, arrays):
        meta["state"].update(counters)
        arrays["events"] = arrays["events"][:0]

    assert "numbers are left" in refusal(change)


def test_a_hundred_thousand_unknown_arrays_are_refused_by_name_and_cost_nothing():
    entries = ", ".join(f'["unknown{i}", "<i8", [0]]' for i in range(100_000))
    for header in (f'{{"arrays": [{entries}], "meta": {{}}}}', f'{{"arrays": [[{entries}]]}}'):
        data = seal(header.encode(), b"")
        tracemalloc.start()
        with pytest.raises(SnapshotError, match=r"unknown0"):
            Links.from_bytes(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 * len(data)


def test_an_unknown_part_of_the_header_is_refused_by_name_before_it_is_read():
    data = seal(b'{"meta": {"secrets": [' + b"[]," * 100_000 + b'[]]}, "arrays": []}', b"")
    tracemalloc.start()
    with pytest.raises(SnapshotError, match="secrets"):
        Links.from_bytes(data)
    assert tracemalloc.get_traced_memory()[1] < 3 * len(data)
    tracemalloc.stop()


def test_a_long_chain_of_ids_that_are_gone_is_checked_in_one_walk():
    n = 20_000

    def change(meta, arrays):
        meta["ledger"]["aliases"] = [[i + 100, i + 101] for i in range(n)]
        meta["ledger"]["aliases"].append([n + 100, 100])
        meta["state"].update(free_cluster=2 * n, next_cluster=2 * n, n_events=4 * n)
        arrays["events"] = arrays["events"][:0]

    assert "every chain of them ends" in refusal(change)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("came", "taken"), [(1.0, 0.5), (0.1, 1.0)])
def test_a_weight_that_is_not_there_cannot_be_removed(engine, came, taken):
    """The compiled engine raised a bare ValueError, and the other took it out."""
    links = Links(0.7, 0.3, 0.9, engine=engine, track_vectors=False)
    rows = [[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [1, -1, 0]]
    links.add_many(rows, weight=came)
    before = links.to_bytes()
    with pytest.raises(ArgumentError, match="weight that the subcluster does not hold"):
        links.remove(rows[0], weight=taken)
    assert links.to_bytes() == before


@pytest.mark.parametrize("engine", ENGINES)
def test_enrolling_more_vectors_than_can_be_numbered_is_refused_and_changes_nothing(engine):
    """The compiled engine raised a bare ValueError after the first of two."""
    links = Links(0.75, 0.9, 0.85, track_vectors=False)
    links.add_many(np.eye(3))
    meta, arrays = unpack(links.to_bytes())
    meta["state"]["n_vectors"] = 2**32 - 2
    links = Links.from_bytes(pack(meta, arrays), engine=engine)
    before = links.to_bytes()
    with pytest.raises(ArgumentError, match="no more than 4294967295"):
        links.enrol("Ann", np.eye(3)[:2])
    assert links.to_bytes() == before


def test_nothing_of_a_log_without_history_can_be_undone_and_that_is_said():
    links = Links.from_bytes(told().to_bytes(history=False))
    with pytest.raises(UndoError):
        links.undo()
