"""Bits changed and files cut short, at random: all is there, or it is refused and then repaired.

Stores of 1, 2 and 90 batches are left behind by a process that ended without closing them, and by
one that closed them. Each damaged store opens with every acknowledged call and verifies; or it is
refused, its log is kept, and `repair` makes a store that opens, verifies, and has everything that
came before the damage.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import DamagedStoreError, StoreError
from linkstream.store import Store, repair, wal
from store.damage import fresh
from store.operations import THRESHOLDS, new, vectors

NAME = "people.links"
WAL = NAME + "-wal"
BATCHES = (1, 2, 90)
ROWS = 6  # vectors of a batch
X = vectors(np.random.default_rng(8), ROWS * max(BATCHES))


class Left(NamedTuple):
    """The files that a process left; its batches; frames of the log up to each commit."""

    files: dict[str, bytes]
    batches: int
    ends: list[int]
    frame: int


def left_by_a_process(folder, batches, *, closed):
    """Files of a store of some acknowledged batches."""
    path = folder / NAME
    child = os.fork()
    if child == 0:
        store = new(path)
        for start in range(0, batches * ROWS, ROWS):
            store.add_many(X[start : start + ROWS], idempotency_key=str(start))
        if closed:
            store.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    log = wal.read(path)
    ends = [] if log is None else (np.flatnonzero(log.commits) + 1).tolist()
    assert closed or len(ends) >= batches
    files = {file.name: file.read_bytes() for file in folder.iterdir() if "lock" not in file.name}
    return Left(files, batches, ends, 0 if log is None else log.page_size + wal.FRAME)


@pytest.fixture(scope="module", params=[(n, c) for c in (False, True) for n in BATCHES], ids=str)
def left(request, tmp_path_factory):
    batches, closed = request.param
    return left_by_a_process(tmp_path_factory.mktemp("left"), batches, closed=closed)


@pytest.fixture(scope="module")
def hashes():
    """The state after each number of batches."""
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    found = [links.state_hash()]
    for start in range(0, len(X), ROWS):
        links.add_many(X[start : start + ROWS])
        found.append(links.state_hash())
    return found


def changes(left, seed, n):
    """File, offset, and its bytes with one bit changed or all after the offset cut off."""
    rng = np.random.default_rng([seed, left.batches])
    names = [name for name in left.files if not name.endswith("-shm")]
    for _ in range(n):
        name = str(rng.choice(names))
        data = left.files[name]
        offset = int(rng.integers(len(data)))
        if name == NAME and rng.random() < 0.8:  # most of the file is empty
            offsets = np.flatnonzero(np.frombuffer(data, dtype=np.uint8))
            offset = int(rng.choice(offsets))
        if rng.random() < 0.2:
            yield "cut", name, offset, data[:offset]
            continue
        changed = bytearray(data)
        changed[offset] ^= 1 << int(rng.integers(8))
        yield "flip", name, offset, bytes(changed)


def opened(folder, *, read_only):
    with Store.open(folder / NAME, read_only=read_only, threads=1) as store:
        store.verify()
        return store.journal.n_operations, store.state_hash()


def before_damage(left, kind, name, offset):
    """Batches that lie wholly before a damage, as far as that can be told from outside."""
    if name == WAL:
        frame = (offset - wal.HEAD) // left.frame if offset >= wal.HEAD else 0
        return sum(end <= frame for end in left.ends[-left.batches :])
    return left.batches if kind == "flip" else 0


def refusal(folder, left, hashes, *, read_only):
    """Why a store is refused, for reading or for writing; None where it is all there."""
    try:
        whole = left.batches, hashes[left.batches]
        assert opened(folder, read_only=read_only) == whole, "calls are missing"
    except StoreError as error:
        return error
    return None


def outcome(folder, left, hashes, change):
    """What became of a damaged store: "right", "repaired", or "nothing left"."""
    kind, name, offset, data = change
    where = f"{kind} at {offset} of {name}"
    files = left.files | {name: data}
    fresh(folder, files)
    refused = refusal(folder, left, hashes, read_only=bool(offset % 2))
    if refused is None:
        assert refusal(folder, left, hashes, read_only=not offset % 2) is None
        return "right"
    assert NAME in str(refused), where
    if name == WAL:
        assert isinstance(refused, DamagedStoreError), where
        assert (folder / WAL).read_bytes() == data, f"a damaged log must be kept: {where}"
    fresh(folder, files)
    try:
        repaired = repair(folder / NAME)
    except StoreError:
        whole = before_damage(left, kind, name, offset)
        assert not whole, f"a changed bit must not make a store beyond repair: {where}"
        assert {name: (folder / name).read_bytes() for name in files} == files
        return "nothing left"
    kept, state = opened(folder, read_only=False)
    assert (kept, state) == (repaired.kept, hashes[kept]), where
    assert kept >= before_damage(left, kind, name, offset), where
    assert Path(repaired.copy).read_bytes() == files[NAME]
    return "repaired"


@pytest.mark.parametrize("n", [14, pytest.param(2000, marks=pytest.mark.long)])
def test_a_flipped_bit_or_a_cut_is_harmless_or_refused_and_repaired(left, hashes, folder, n):
    found = Counter(outcome(folder, left, hashes, change) for change in changes(left, 1, n))
    assert found["repaired"] > 0
