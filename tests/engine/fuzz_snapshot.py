"""A fuzz target for snapshots: bytes made wrong in many ways, each with a checksum that is right.

Only two things may come of such bytes, and both engines must agree which: a SnapshotError, or a
clusterer whose state passes its own check, which takes more vectors alike on both engines, and is
saved and loaded again. Mutant number i of a seed is the same mutant everywhere:

    python tests/engine/fuzz_snapshot.py SEED [SECONDS]
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # when run as a program

from linkstream import Links, Space
from linkstream.errors import SnapshotError
from streams import ENGINES, make

MORE = 20  # vectors that a mutant which is taken for good has to take
DTYPES = {"<i4": np.int32, "<i8": np.int64, "<f8": np.float64}
PREFIX = struct.Struct("<8sII")


class HoleError(AssertionError):
    """Bytes that led to something else than the two outcomes allowed."""


@dataclass
class Outcomes:
    """How often each refusal was met, and each way of mutating led to a clusterer."""

    refused: Counter = field(default_factory=Counter)
    accepted: Counter = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{sum(self.refused.values())} refused, {sum(self.accepted.values())} accepted"]
        lines += [f"{n:8d} refused: {reason}" for reason, n in self.refused.most_common()]
        lines += [f"{n:8d} accepted after: {way}" for way, n in self.accepted.most_common()]
        return "\n".join(lines)


# Containers, read and written independently of the package.


def unpack(data):
    _, _, size = PREFIX.unpack_from(data)
    header, place, arrays = json.loads(data[PREFIX.size : PREFIX.size + size]), 0, {}
    payload = data[PREFIX.size + size : -32]
    for name, dtype, shape in header["arrays"]:
        values = np.frombuffer(payload, DTYPES[dtype], int(np.prod(shape)), place)
        arrays[name] = values.reshape(shape).copy()
        place += values.nbytes
    return header["meta"], arrays


def pack(meta, arrays):
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    layout = [[name, names[array.dtype], list(array.shape)] for name, array in arrays.items()]
    payload = b"".join(array.tobytes() for array in arrays.values())
    return seal(json.dumps({"meta": meta, "arrays": layout}).encode(), payload)


def seal(header, payload, *, magic=b"LINKSNAP", version=1):
    return checksummed(PREFIX.pack(magic, version, len(header)) + header + payload)


def checksummed(body):
    return body + hashlib.sha256(body).digest()


# What mutants are made from.


def origins():
    """Snapshots to begin with: tracked or not, with a space, empty, of one vector, of many."""
    links = [
        Links(0.7, 0.6, 0.9),
        Links(0.7, 0.6, 0.9, space=Space(mean=[0.1, 0.2, 0.3], model="m")),
    ]
    for kind, n, options in [
        ("lobes", 1, {}),
        ("lobes", 12, {}),
        ("chains", 60, {}),
        ("drifting", 150, {}),
        ("hub", 40, {"track_vectors": False}),
        ("lattice", 60, {"track_vectors": False}),
        ("lobes", 30, {"space": Space(mean=[0.05] * 12, model="encoder-7")}),
    ]:
        stream = make(kind, 5, n=n)
        links.append(Links(*stream.thresholds, **options))
        links[-1].add_many(stream.vectors)
    return [one.to_bytes() for one in links]


WHOLE = [0, 1, 2, 3, 7, 8, 2**30, 2**31, 2**32, 2**33 - 1, 2**33, 2**53, 2**61, 2**62, 2**63 - 1]
WHOLE = [*WHOLE, *(-n for n in WHOLE[1:]), -(2**63)]
REAL = [0.0, -0.0, 0.5, 1.0, 1e-9, 1e-170, 5e-324, 1e39, -1.0, np.nan, np.inf, -np.inf]
JSON = [None, True, False, "", "x", "\ud800", [], {}, [1], {"a": 1}, 0.5, 1.5, 1e-170, 1e308]
JSON = [*JSON, *WHOLE, 2**64, 10**400, float("nan"), float("inf"), "<i8", "<f8", "sums", "events"]


def one_of(rng, values):
    return values[int(rng.integers(len(values)))]


# Ways to mutate: (random generator, bytes, other bytes) → bytes.


def flip_bytes(rng, data, other):
    body = bytearray(data[:-32])
    for place in rng.integers(len(body), size=rng.integers(1, 5)):
        body[place] = int(rng.integers(256))
    return checksummed(bytes(body))


def truncate(rng, data, other):
    return checksummed(data[: int(rng.integers(len(data) - 31))])


def splice(rng, data, other):
    one, two = int(rng.integers(len(data) - 32)), int(rng.integers(len(other) - 32))
    return checksummed(data[:one] + other[two:-32])


def repeat_a_piece(rng, data, other):
    start, end, at = np.sort(rng.integers(len(data) - 32, size=3)).tolist()
    return checksummed(data[:at] + data[start:end] + data[at:-32])


def edit_prefix(rng, data, other):
    _, _, size = PREFIX.unpack_from(data)
    parts = [b"LINKSNAP", 1, size]
    place = int(rng.integers(3))
    parts[place] = [b"LINKSNAQ", int(rng.integers(2**32)), int(rng.integers(2 * size))][place]
    return checksummed(PREFIX.pack(*parts) + data[PREFIX.size : -32])


def leaves(node, path=()):
    """Paths to everything within a piece of JSON."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*path, key))


def edit_header(rng, data, other):
    _, _, size = PREFIX.unpack_from(data)
    header = json.loads(data[PREFIX.size : PREFIX.size + size])
    for _ in range(rng.integers(1, 3)):
        *path, key = one_of(rng, list(leaves(header)))
        node = header
        for step in path:
            node = node[step]
        way = rng.integers(4)
        if way == 0:
            del node[key]
        elif way == 1 and isinstance(node[key], int):
            node[key] += int(rng.integers(-2, 3))
        else:
            node[key] = one_of(rng, JSON)
        if not header:
            break
    return seal(json.dumps(header).encode(), data[PREFIX.size + size : -32])


def edit_values(rng, data, other):
    """Single numbers of the arrays, and of the counters."""
    meta, arrays = unpack(data)
    for _ in range(rng.integers(1, 4)):
        array = arrays[one_of(rng, list(arrays))].reshape(-1)
        if not array.size:
            continue
        place, way = int(rng.integers(array.size)), rng.integers(3)
        if array.dtype == np.float64:
            array[place] = one_of(rng, REAL)
        elif way == 0:
            array[place] = np.array(one_of(rng, WHOLE)).astype(array.dtype)
        elif way == 1:
            array[place] = array[rng.integers(array.size)]
        else:
            array[place] ^= 1 << int(rng.integers(8 * array.itemsize - 1))
    return pack(meta, arrays)


def edit_rows(rng, data, other):
    """Rows left out, doubled, exchanged, or taken from another snapshot."""
    meta, arrays = unpack(data)
    name, way = one_of(rng, list(arrays)), rng.integers(4)
    array, donor = arrays[name], unpack(other)[1].get(name)
    if way == 3 and donor is not None:
        arrays[name] = donor
    elif len(array):
        one, two = rng.integers(len(array), size=2)
        if way == 0:
            arrays[name] = np.delete(array, one, axis=0)
        elif way == 1:
            arrays[name] = np.insert(array, one, array[two], axis=0)
        else:
            array[[one, two]] = array[[two, one]]
    return pack(meta, arrays)


def leave_out_a_node(rng, data, other):
    """A subcluster less, in all its columns; its edges and vectors with it or not."""
    meta, arrays = unpack(data)
    if len(arrays["numbers"]):
        place = int(rng.integers(len(arrays["numbers"])))
        number, count = arrays["numbers"][place], arrays["counts"][place]
        for name in ("numbers", "clusters", "counts", "first_seen", "last_seen", "sums"):
            arrays[name] = np.delete(arrays[name], place, axis=0)
        meta["state"]["n_vectors"] -= int(count)
        arrays["edges"] = arrays["edges"][~(arrays["edges"] == number).any(axis=1)]
        arrays["vectors"] = arrays["vectors"][arrays["vectors"] != number]
    return pack(meta, arrays)


# Ways that often lead to a state that some stream could have led to.


def turn_a_sum(rng, data, other):
    meta, arrays = unpack(data)
    if arrays["sums"].size:
        place = int(rng.integers(len(arrays["sums"])))
        sums = arrays["sums"][place]
        size = 2 ** int(rng.integers(31))
        sums += rng.integers(-size, size + 1, size=len(sums))
        if rng.random() < 0.5:
            sums //= 2
    return pack(meta, arrays)


def move_a_vector(rng, data, other):
    """A vector counted by another subcluster than it was."""
    meta, arrays = unpack(data)
    if len(arrays["numbers"]) > 1:
        one, two = rng.choice(len(arrays["numbers"]), size=2, replace=False)
        arrays["counts"][one] -= 1
        arrays["counts"][two] += 1
        held = np.flatnonzero(arrays["vectors"] == arrays["numbers"][one])
        arrays["vectors"][held[:1]] = arrays["numbers"][two]
    return pack(meta, arrays)


def grow_a_count(rng, data, other):
    """A subcluster of up to 2³² vectors, its sum as long or as short as such a sum may be."""
    meta, arrays = unpack(data)
    if len(arrays["numbers"]):
        place = int(rng.integers(len(arrays["numbers"])))
        factor = 2 ** int(rng.integers(1, 27))
        more = int(arrays["counts"][place]) * (factor - 1)
        arrays["counts"][place] += more
        meta["state"]["n_vectors"] += more
        if rng.random() < 0.8:
            arrays["sums"][place] *= factor
        if rng.random() < 0.5:
            meta["state"]["track_vectors"] = 0
            arrays["vectors"] = arrays["vectors"][:0]
    return pack(meta, arrays)


def move_an_edge(rng, data, other):
    """Another tree over the same clusters, or nearly."""
    meta, arrays = unpack(data)
    edges = arrays["edges"]
    if len(edges):
        row = int(rng.integers(len(edges)))
        edges[row, rng.integers(2)] = one_of(rng, arrays["numbers"])
        edges.sort(axis=1)
        arrays["edges"] = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return pack(meta, arrays)


def edit_history(rng, data, other):
    """Events, times and counters: what decides nothing, or little."""
    meta, arrays = unpack(data)
    state, way = meta["state"], rng.integers(5)
    if way == 0 and len(arrays["events"]):
        row = arrays["events"][int(rng.integers(len(arrays["events"])))]
        row[rng.integers(len(row))] += int(rng.integers(-3, 4))
    elif way == 1:
        arrays["events"] = arrays["events"][int(rng.integers(len(arrays["events"]) + 1)) :]
    elif way == 2:
        name = one_of(rng, ["n_events", "next_cluster", "next_subcluster"])
        state[name] += int(2.0 ** rng.uniform(0, 62)) if name == "n_events" else 1
    elif way == 3 and len(arrays["numbers"]):
        name = one_of(rng, ["first_seen", "last_seen"])
        arrays[name][rng.integers(len(arrays[name]))] += int(rng.integers(-2, 3))
    else:
        meta["model"] = one_of(rng, [None, "", "ü", "\ud800", "m" * 300])
    return pack(meta, arrays)


def edit_thresholds(rng, data, other):
    meta, arrays = unpack(data)
    t_c, t_s = rng.uniform(0, 1, size=2) ** one_of(rng, [1, 8, 400])
    t_p = one_of(rng, [t_c * t_c, 1.0, rng.uniform()])
    names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
    meta["state"].update(zip(names, map(float, (t_c, t_s, t_p)), strict=True))
    return pack(meta, arrays)


WAYS = (
    flip_bytes,
    truncate,
    splice,
    repeat_a_piece,
    edit_prefix,
    edit_header,
    edit_values,
    edit_rows,
    leave_out_a_node,
    turn_a_sum,
    move_a_vector,
    grow_a_count,
    move_an_edge,
    edit_history,
    edit_thresholds,
)


def mutant(seed, index, begun):
    """Mutant number `index` of a seed: the last way used, and the bytes."""
    rng = np.random.default_rng([seed, index])
    data, other = (one_of(rng, begun) for _ in range(2))
    way = one_of(rng, WAYS)
    data = way(rng, data, other)
    while rng.random() < 0.25:
        again = one_of(rng, WAYS)
        try:
            data = again(rng, data, other)
        except Exception:  # what is no container any more is not mutated further
            break
        way = again
    return way.__name__, data


# The two outcomes allowed.


def outcome(data, seed=0):
    """Why the bytes are refused, or None where they lead to a sound clusterer; else HoleError."""
    loaded = [_load(data, engine) for engine in ENGINES]
    reasons = {one for one in loaded if isinstance(one, str)}
    if len(reasons) == 1 and all(isinstance(one, str) for one in loaded):
        return reasons.pop()
    if reasons:
        raise HoleError(f"the engines do not agree: {loaded}")
    _use(loaded, seed)
    return None


def _load(data, engine):
    try:
        return Links.from_bytes(data, engine=engine)
    except SnapshotError as error:
        return str(error)


def _use(loaded, seed):
    rng = np.random.default_rng(seed)
    first = loaded[0]
    since = first.state().n_events
    rows = _more_vectors(rng, first)
    answers = [_answers(links, rows, since) for links in loaded]
    for other in answers[1:]:
        for name, expected in answers[0].items():
            if expected != other[name]:
                raise HoleError(f"{name} differ: {expected!r} and {other[name]!r}"[:2000])
    for engine in ENGINES:
        again = Links.from_bytes(first.to_bytes(), engine=engine)
        if again.state_hash() != first.state_hash():
            raise HoleError("a clusterer saved and loaded is another")


def _answers(links, rows, since):
    links.state().check()
    links.explain(rows[0])
    answers = {
        "clusters": links.clusters(),
        "asked": links.predict(rows).tolist(),
        "one by one": [links.add(x).cluster for x in rows[: MORE // 2]],
        "many": links.add_many(rows[MORE // 2 :]).tolist(),
        "events": links.events(since),
        "kept": links.state().events.tolist(),
        "bytes": links.to_bytes(),
    }
    if links.track_vectors:
        answers["labels"] = links.labels().tolist()
    links.state().check()
    return answers


def _more_vectors(rng, links):
    """Vectors around the subclusters there are, so that they join, link, merge and sever."""
    state = links.state()
    if not len(state.numbers):
        return rng.standard_normal((MORE, links.dimension or 3))
    sums = state.sums[rng.integers(len(state.sums), size=MORE)].astype(np.float64)
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    noise = rng.standard_normal(sums.shape) / np.sqrt(sums.shape[1])
    rows = sums + noise * rng.uniform(0.0, 1.0, size=(MORE, 1))
    return rows if links.space.mean is None else rows + links.space.mean


def run(seed, *, seconds=math.inf, mutants=math.inf, first=0):
    """Mutants of a seed, from number `first` on, so long or so many; HoleError names one."""
    outcomes, begun, index = Outcomes(), origins(), first
    end = time.monotonic() + seconds
    while time.monotonic() < end and index < first + mutants:
        way, data = mutant(seed, index, begun)
        try:
            reason = outcome(data, index)
        except Exception as error:
            raise HoleError(
                f"mutant {index} of seed {seed}, after {way}: {type(error).__name__}: {error}\n"
                f"bytes as base64: {base64.b64encode(data).decode()}"
            ) from error
        if reason is None:
            outcomes.accepted[way] += 1
        else:
            outcomes.refused[_rule(reason)] += 1
        index += 1
    return outcomes


def _rule(reason):
    """A refusal without what is particular to the mutant: names, numbers, bytes."""
    reason = re.sub(r"'[^']*'|b?\"[^\"]*\"|\([^()]*\)|\[.*\]", "…", reason.split(". ")[0])
    return re.sub(r"-?\d[\d.e+-]*|\bnan\b|-?\binf\b", "n", reason)[:150]


if __name__ == "__main__":
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    sys.stdout.write(f"{run(int(sys.argv[1]), seconds=seconds)}\n")
