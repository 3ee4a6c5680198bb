"""Files that somebody made to harm: sound to the last checksum, and full of odd values.

What they say may be anything; but a store that opens them raises errors of its own and no others,
soon, and takes no more memory than a small file is worth.
"""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import time

import numpy as np
import pytest

from engine.fuzz_snapshot import pack, unpack
from linkstream.errors import DamagedStoreError, LinkstreamError, StoreError
from linkstream.store import Store, repair, snapshots
from store.damage import NAME, SOON, asked, bounded, filled, fresh
from store.internals import COLUMNS, put
from store.operations import new, vectors

NUMBERS = (-1, 0, 1, 7, 2**31, 2**62, 2**63 - 1, -(2**63))
DEEP = '{"a":' * 50_000
TEXTS = ("", "null", "[]", "{}", "{", "5", "NaN", '"x"', "add_many", "undo", "__class__", DEEP)
ARGUMENTS = (
    '{"weight": "x"}',
    '{"weight": [1e999]}',
    '{"weight": [[1.0]]}',
    '{"weight": -1}',
    '{"vector": 1e999}',
    '{"a": 0}',
    '{"cluster": 99999999999999999999}',
    '{"name": []}',
    '{"self": 1}',
    '{"X": [[1.0]]}',
    '{"rows": 1}',
    "[" + "1" * 5_000 + "]",
)
BYTES = (b"", b"x", b"\xff" * 48, bytes(48), b"\x7f" * 4_800, b"null", b"{}", b"[1]")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A small store with something of everything, as bytes."""
    path = tmp_path_factory.mktemp("hostile") / NAME
    with new(path) as store:
        for _ in filled(store):
            pass
    return path.read_bytes()


def odd(kind):
    return {"INTEGER": NUMBERS, "TEXT": (*TEXTS, *ARGUMENTS), "BLOB": BYTES}[kind]


def outcome(path, *options):
    """What came of opening and asking: None, or an error that is not the store's."""
    start = time.monotonic()
    try:
        with Store.open(path, threads=1, read_only=bool(options)) as store:
            if not options:
                for _ in asked(store):
                    pass
            store.verify()
    except LinkstreamError:
        pass
    except Exception as bare:
        return f"{type(bare).__name__}: {bare!s:.100}"
    return "it takes too long" if time.monotonic() - start > SOON else None


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("table", COLUMNS)
def test_an_invalid_value_with_a_correct_checksum_raises_a_linkstream_error(
    folder, sound, table, step
):
    wrong = {}
    with bounded():
        for column, kind in COLUMNS[table].items():
            for value in odd(kind)[len(column) % step :: step]:
                fresh(folder, {NAME: sound})
                for number in put(folder / NAME, table, column, value):
                    found = outcome(folder / NAME)
                    if found is not None:
                        wrong[column, f"{value!r:.40}", number] = found
    assert wrong == {}


SCHEMAS = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON operations BEGIN DELETE FROM vectors; END",
    "a trigger that refuses": "CREATE TRIGGER t BEFORE INSERT ON operations "
    "BEGIN SELECT RAISE(IGNORE); END",
    "an index": "CREATE INDEX i ON operations (verb)",
    "a table more": "CREATE TABLE more (x)",
    "a table less": "DROP TABLE payloads",
    "another table": "ALTER TABLE payloads RENAME TO others",
    "a column more": "ALTER TABLE operations ADD COLUMN x TEXT",
    "a view for a table": "ALTER TABLE snapshots RENAME TO s; "
    "CREATE VIEW snapshots AS SELECT * FROM s",
}


@pytest.mark.parametrize("change", SCHEMAS.values(), ids=SCHEMAS)
def test_foreign_tables_are_refused_or_harmless(folder, sound, change):
    fresh(folder, {NAME: sound})
    path = folder / NAME
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(change)
    rows = vectors(np.random.default_rng(1), 5)
    try:
        with Store.open(path) as store:
            before = store.n_vectors
            store.add_many(rows)
    except StoreError:
        return
    with Store.open(path) as store:
        assert np.array_equal(store.vectors(range(before, before + 5)), rows)
        store.verify()


@pytest.mark.parametrize("table", ["operations", "snapshots", "chunks"])
def test_repair_of_a_hostile_file_raises_only_linkstream_errors(folder, sound, table):
    wrong = {}
    with bounded(), in_time():
        for column, kind in COLUMNS[table].items():
            for value in odd(kind)[::3]:
                fresh(folder, {NAME: sound})
                for number in put(folder / NAME, table, column, value):
                    found = repaired(folder / NAME)
                    if found is not None:
                        wrong[column, f"{value!r:.40}", number] = found
    assert wrong == {}


def repaired(path):
    """What came of a repair: None, or an error that is not the store's."""
    signal.alarm(int(SOON))
    try:
        repair(path)
    except LinkstreamError:
        return None
    except Exception as bare:
        return f"{type(bare).__name__}: {bare!s:.100}"
    return None


@contextlib.contextmanager
def in_time():
    """An alarm is a TimeoutError."""

    def ring(*_):
        raise TimeoutError("it takes too long")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# A newer snapshot than the sound ones, whose every checksum is right.


def more_of(name, change):
    """A change of the ledger in the clusterer's part of a snapshot."""

    def apply(clusterer, index):
        change(clusterer[0]["ledger"][name])

    return apply


def other_counter(name, value):
    def apply(clusterer, index):
        clusterer[0]["state"][name] = value

    return apply


def other_index(name, change):
    def apply(clusterer, index):
        index[1][name] = change(index[1][name])

    return apply


SNAPSHOTS = {
    "two of one name": more_of("names", lambda n: n.append([n[0][0] + 1, n[0][1]])),
    "a weight nobody has": more_of("lights", lambda some: some.append([0, 9])),
    "a lock nobody set": more_of("locked", lambda some: some.append(0)),
    "numbers never given": other_counter("free_subcluster", 2**32 - 2),
    "an index without an array": lambda clusterer, index: index[1].pop("firsts"),
    "an index out of order": other_index("firsts", lambda some: some[::-1].copy()),
    "an index of two sizes": other_index("operations", lambda some: some[:-1]),
    "an index of fractions": other_index("done", lambda some: some.astype(float)),
    "an index with more": lambda clusterer, index: index[1].update(extra=np.zeros(0, np.int64)),
    "a piece that is a text": lambda clusterer, index: index[0].update(next_piece="1"),
}


@pytest.mark.parametrize("change", SNAPSHOTS.values(), ids=SNAPSHOTS)
def test_a_hostile_snapshot_is_skipped_or_named(folder, sound, change):
    fresh(folder, {NAME: sound})
    path = folder / NAME
    with Store.open(path) as store:
        store.compact()  # one snapshot holds all
        right = store.state_hash()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        last = snapshots.every(connection, path)[-1]
        parts = [unpack(part) for part in snapshots.read(connection, path, last)]
        change(*parts)
        hostile = tuple(pack(*part) for part in parts)
        snapshots.insert_whole(connection, last.operation, hostile)
        connection.commit()
    with Store.open(path) as store:
        assert store.state_hash() == right
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = snapshots.every(connection, path)
        connection.execute("DELETE FROM snapshots WHERE number < ?", (found[-1].number,))
        connection.commit()
    with pytest.raises(DamagedStoreError):
        Store.open(path)
