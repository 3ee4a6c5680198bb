"""A fuzz target for snapshots of lives in which people had a say: names, groups, corrections, undo.

`fuzz_snapshot.py` makes bytes and plain states wrong. Here a sound snapshot of a clusterer that has
seen every verb is taken apart; one or a few of its values, arrays, ledger entries or event rows are
changed; the checksum is made right. Such bytes must be refused by a SnapshotError on loading, or
lead to a clusterer of which every read and every verb gives the same answer on both engines, or
the same error of linkstream's own:

    python tests/engine/fuzz_ledger.py SEED [CASES [FIRST]]
"""

from __future__ import annotations

import base64
import copy
import sys
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # when run as a program

from engine.fuzz_snapshot import JSON, HoleError, Outcomes, leaves, one_of, pack, unpack
from engine.lives import CHANGES, READS, attempt, life, plain
from linkstream import Links
from linkstream.engine import events, logrules
from linkstream.errors import LinkstreamError, SnapshotError
from streams import ENGINES

UNFOLLOWED = "a log whose edges cannot be followed, which undo refuses"


# The two outcomes allowed.


def read(links, name, seed):
    try:
        return plain(READS[name](links, np.random.default_rng(seed)))
    except LinkstreamError as error:
        return type(error).__name__


def agree(loaded, what, answers):
    for other in answers[1:]:
        if repr(other) != repr(answers[0]):
            raise HoleError(f"{what} differs: {answers[0]!r} and {other!r}"[:1500])


def use(loaded, seed):
    """Every read and every verb, on all engines; HoleError where they do not agree.

    Returns how often a verb raised SnapshotError.
    """
    rng = np.random.default_rng([seed, 3])
    for name in READS:
        agree(loaded, name, [read(links, name, seed) for links in loaded])
    late = 0
    for place, verb in enumerate(rng.permutation(list(CHANGES))):
        answers = [attempt(links, verb, np.random.default_rng([seed, place])) for links in loaded]
        agree(loaded, verb, answers)
        late += answers[0] == "SnapshotError"
        agree(loaded, f"state after {verb}", [links.state_hash() for links in loaded])
    for name in READS:
        agree(loaded, f"{name} at last", [read(links, name, seed + 1) for links in loaded])
    data = loaded[0].to_bytes()
    for engine in ENGINES:
        if Links.from_bytes(data, engine=engine).state_hash() != loaded[0].state_hash():
            raise HoleError("a clusterer saved and loaded is another")
    return late


def outcome(data, seed=0):
    """Why the bytes are refused, or None where they lead to a sound clusterer; else HoleError.

    A log of which only undo can tell that it leads nowhere counts as refused, under its own name.
    """
    loaded = [_load(data, engine) for engine in ENGINES]
    refused = [one for one in loaded if isinstance(one, str)]
    if not refused:
        return UNFOLLOWED if use(loaded, seed) else None
    if len(set(map(str, loaded))) > 1:
        raise HoleError(f"the engines do not agree: {loaded}")
    return refused[0]


def _load(data, engine):
    try:
        return Links.from_bytes(data, engine=engine, threads=1)
    except SnapshotError as error:
        return str(error)


# Ways to mutate in place: (random generator, meta, arrays).


def near(rng, value):
    """A number close to another, or one of the notorious."""
    if rng.random() < 0.5:
        return int(value) + int(rng.integers(-3, 4))
    return one_of(rng, [-2, -1, 0, 1, 2, 3, 5, 255, 256, 257, 2**31, 2**32 - 2, 2**32 - 1])


def edit_a_ledger_value(rng, meta, arrays):
    """One leaf of the ledger."""
    *path, key = one_of(rng, list(leaves(meta["ledger"])))
    node = meta["ledger"]
    for step in path:
        node = node[step]
    way = rng.integers(6)
    if way == 0:
        del node[key]
    elif way == 1:
        node[key] = one_of(rng, JSON)
    elif isinstance(node[key], list):
        inner = node[key]
        if inner and way == 2:
            inner.append(copy.deepcopy(one_of(rng, inner)))
        elif inner and way == 3:
            del inner[int(rng.integers(len(inner)))]
        elif way == 4:
            inner.reverse()
        else:
            node[key] = []
    elif isinstance(node[key], str):
        node[key] = one_of(rng, ["", "Ann", "Bob", "p", "q", "\ud800", "x" * 5000])
    elif isinstance(node[key], int):
        node[key] = near(rng, node[key])


def edit_numbers_of_the_ledger(rng, meta, arrays):
    """Whole numbers of the ledger, a few at once."""
    paths = []
    for path in leaves(meta["ledger"]):
        node = meta["ledger"]
        for step in path:
            node = node[step]
        if type(node) is int:
            paths.append(path)
    for *path, key in [one_of(rng, paths) for _ in range(int(rng.integers(1, 3)))] if paths else []:
        node = meta["ledger"]
        for step in path:
            node = node[step]
        node[key] = near(rng, node[key])


def add_to_the_ledger(rng, meta, arrays):
    """An entry that nobody made, of numbers that are there."""
    ledger, state = meta["ledger"], meta["state"]
    numbers = arrays["numbers"].tolist() or [0]
    clusters = arrays["clusters"].tolist() or [0]
    n, pins, groups = max(state["n_vectors"], 1), len(ledger["pins"]), len(ledger["groups"])
    some_pin = int(rng.integers(max(pins, 1)))
    entry = {
        "texts": one_of(rng, ["Ann", "", "z"]),
        "aliases": [int(rng.integers(state["free_cluster"] + 1)), one_of(rng, [*clusters, -1])],
        "names": [one_of(rng, clusters), one_of(rng, ["Ann", "Bob", "", " "])],
        "ignored": one_of(rng, clusters),
        "locked": one_of(rng, numbers),
        "lights": [int(rng.integers(n)), one_of(rng, [1, 128, 255, 256])],
        "pins": [one_of(rng, [*numbers, -1]), int(rng.integers(-1, n)), int(rng.integers(-1, 2))],
        "laws": [
            int(rng.integers(2)),
            int(rng.integers(max(state["n_events"], 1))),
            one_of(rng, ["said", "enrol('Ann')", "same(0, 1) of vectors", "move(1, 0)"]),
            one_of(rng, [-1, -1, int(rng.integers(n))]),
            *([some_pin] if rng.random() < 0.7 else [] for _ in range(2)),
            int(rng.integers(-1, 3)),
        ],
        "groups": [some_pin] if rng.random() < 0.7 else [],
        "keys": [one_of(rng, ["p", "q", "Ann"]), int(rng.integers(max(groups, 1)))],
    }
    name = one_of(rng, list(entry))
    ledger[name].append(entry[name])


def edit_options(rng, meta, arrays):
    way = rng.integers(7)
    if way == 0:
        meta["min_size"] = one_of(rng, [0, 1, 2, 10**30, True, 1.5])
    elif way == 1:
        meta["keep_vectors"] = not meta["keep_vectors"]
    elif way == 2:
        name = one_of(rng, ["max_subclusters", "max_idle", "more"])
        meta["limits"][name] = one_of(rng, [None, 0, 1, 3, 2**70, 1.0])
    elif way == 3:
        meta["heal"] = one_of(
            rng,
            [
                None,
                {},
                {"mode": "settle"},
                {"first": 2**70},
                {"growth": 1.0000000001, "first": 1},
                {"growth": 1.0 + 2**-52},
                {"min_size": 10**30},
                {"first": 1, "growth": 1000.0},
            ],
        )
    elif way == 4:
        meta["state"]["cluster_evidence"] ^= 1
    elif way == 5:
        meta["state"]["track_vectors"] ^= 1
        if rng.random() < 0.7:
            arrays["vectors"] = arrays["vectors"][:0]
            arrays.pop("kept", None)
            meta["keep_vectors"] = False
    else:
        key = one_of(rng, list(meta))
        meta[key] = one_of(rng, [None, {}, [], 1, "x"])


def edit_counters(rng, meta, arrays):
    state = meta["state"]
    for _ in range(int(rng.integers(1, 3))):
        name = one_of(rng, [name for name in state if "_" in name and "similarity" not in name])
        large = [2**31, 2**32 - 2, 2**32 - 1, 2**40, 2**61, 2**62 - 1]
        step = int(rng.integers(-3, 4))
        state[name] = one_of(rng, large) if rng.random() < 0.3 else state[name] + step


def edit_an_array(rng, meta, arrays):
    """Values, shapes, dtypes, lengths and names of arrays."""
    name, way = one_of(rng, list(arrays)), rng.integers(9)
    array = arrays[name]
    if way <= 3 and array.size:
        flat = array.reshape(-1)
        place = int(rng.integers(array.size))
        if array.dtype == np.float64:
            flat[place] *= one_of(rng, [-1.0, 0.0, 2.0, np.nan])
        else:
            flat[place] = np.array(near(rng, flat[place])).astype(array.dtype)
    elif way == 4 and len(array):
        arrays[name] = np.delete(array, int(rng.integers(len(array))), axis=0)
    elif way == 5 and len(array):
        one, other = rng.integers(len(array), size=2)
        array[[one, other]] = array[[other, one]]
    elif way == 6:
        arrays[name] = array.astype(one_of(rng, [np.int32, np.int64, np.float64]))
    elif way == 7:
        arrays[name] = array.reshape(-1) if array.ndim == 2 else array.reshape(-1, 1)
    else:
        del arrays[name]
        if rng.random() < 0.5:
            arrays["another"] = array


def edit_kept(rng, meta, arrays):
    """The vectors themselves: longer, shorter, turned, exchanged."""
    kept = arrays.get("kept")
    if kept is None or not kept.size:
        return
    row, way = int(rng.integers(len(kept))), rng.integers(6)
    if way == 0:
        kept[row] = 0
    elif way == 1:
        kept[row] = -kept[row]
    elif way == 2:
        kept[row] //= 2
    elif way == 3:
        kept[row, int(rng.integers(kept.shape[1]))] = one_of(rng, [-(2**31), 2**31 - 1, 0])
    elif way == 4:
        kept[row] = np.roll(kept[row], 1)
    else:
        kept[:] = kept[::-1].copy()


def edit_an_event(rng, meta, arrays):
    """A row of the log: its code, its vector, its numbers; left out, doubled, exchanged."""
    log = arrays["events"]
    if not len(log):
        return
    row, way = int(rng.integers(len(log))), rng.integers(8)
    if way == 0:
        log[row, 0] = int(rng.integers(len(events.CLASSES)))
    elif way <= 3:
        column = int(rng.integers(1, log.shape[1]))
        log[row, column] = near(rng, log[row, column])
    elif way == 4:
        arrays["events"] = np.delete(log, row, axis=0)
        meta["state"]["n_events"] -= int(rng.random() < 0.8)
    elif way == 5:
        arrays["events"] = np.insert(log, row, log[int(rng.integers(len(log)))], axis=0)
        meta["state"]["n_events"] += int(rng.random() < 0.8)
    elif way == 6:
        other = int(rng.integers(len(log)))
        log[[row, other]] = log[[other, row]]
    else:
        size = int(rng.integers(1, 4))
        arrays["events"] = log[:-size] if rng.random() < 0.5 else log[size:]
        meta["state"]["n_events"] -= size * int(rng.random() < 0.6)


def add_an_event(rng, meta, arrays):
    """An event more at the end, of numbers that are there."""
    log, state = arrays["events"], meta["state"]
    code = int(rng.integers(len(events.CLASSES)))
    ends = [0, state["free_subcluster"], state["free_cluster"], state["n_vectors"], 3]
    numbers = [
        int(rng.integers(-1, max(ends[kind], 1))) if kind else -1
        for kind in logrules.KINDS_OF_NUMBERS[code]
    ]
    newest = max(state["n_vectors"] - 1, 0)
    row = np.array([[code, newest, *numbers]], dtype=np.int64)
    arrays["events"] = np.concatenate([log, row])
    state["n_events"] += 1


def edit_nodes(rng, meta, arrays):
    """Weights, flags, edges' firmness, IDs: what the ledger and the log speak of as well."""
    name = one_of(rng, ["light", "flags", "firm", "clusters", "first_seen", "last_seen", "counts"])
    if not len(arrays[name]):
        return
    place = int(rng.integers(len(arrays[name])))
    if name == "clusters":
        old = arrays[name][place]
        new = int(rng.integers(meta["state"]["next_cluster"] or 1))
        arrays[name][arrays[name] == old] = new
    else:
        arrays[name][place] = near(rng, arrays[name][place])


WAYS = (
    edit_a_ledger_value,
    edit_a_ledger_value,
    edit_numbers_of_the_ledger,
    edit_numbers_of_the_ledger,
    add_to_the_ledger,
    add_to_the_ledger,
    edit_options,
    edit_counters,
    edit_an_array,
    edit_kept,
    edit_an_event,
    edit_an_event,
    add_an_event,
    edit_nodes,
)


def origins(n=44):
    """Snapshots of lives."""
    return [life(seed).to_bytes(history=bool(seed % 7)) for seed in range(n)]


def mutant(seed, index, begun):
    """Mutant number `index` of a seed: the ways used, and the bytes."""
    rng = np.random.default_rng([seed, index])
    meta, arrays = unpack(begun[int(rng.integers(len(begun)))])
    names = []
    while not names or rng.random() < 0.2:
        way = one_of(rng, WAYS)
        names.append(way.__name__)
        try:
            way(rng, meta, arrays)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError):
            break  # what lost its shape is not mutated further
    return " + ".join(names), pack(meta, arrays)


def run(seed, *, cases, first=0, begun=None, every_hole=None):
    """Mutants of a seed; HoleError names the first that is neither refused nor sound."""
    outcomes, begun = Outcomes(), begun or origins()
    for index in range(first, first + cases):
        ways, data = mutant(seed, index, begun)
        try:
            reason = outcome(data, index)
        except Exception as error:
            if every_hole is not None:
                every_hole(index, ways, error)
                continue
            raise HoleError(
                f"mutant {index} of seed {seed}, after {ways}: {type(error).__name__}: {error}\n"
                f"bytes as base64: {base64.b64encode(data).decode()}"
            ) from error
        if reason is None:
            outcomes.accepted[ways.rpartition(" ")[2]] += 1
        else:
            outcomes.refused[reason.split(";")[0][:120]] += 1
    return outcomes


def main(seed, cases=1000, first=0):
    holes = Counter()

    def note(index, ways, error):
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{Path(f.filename).name}:{f.lineno}" for f in frames[-3:]]
        key = f"{type(error).__name__}: {str(error)[:110]!r} at {' '.join(where)}"
        if not holes[key]:
            sys.stdout.write(f"{index} ({ways}): {key}\n")
            sys.stdout.flush()
        holes[key] += 1

    outcomes = run(seed, cases=cases, first=first, every_hole=note)
    sys.stdout.write(f"{outcomes}\n{sum(holes.values())} holes\n")
    for key, n in holes.most_common():
        sys.stdout.write(f"{n:6d} {key}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
