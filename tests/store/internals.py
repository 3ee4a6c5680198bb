"""Access to private parts of the store for tests; only this module has any."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from types import SimpleNamespace

from linkstream import Links
from linkstream.store import commit_loop, file, journal, maintenance, store
from store.operations import THRESHOLDS, plain

PAGE = file.PAGE
AHEAD = store.FEED_AHEAD + 1  # batches that `feed` may have taken and not answered
LOG_HEAD, LOG_FRAME = 32, 24 + PAGE  # of SQLite's log: what comes first, and a page in it


class EarlyMaintenance:
    """Make stores write snapshots and checkpoints after about `calls` calls.

    All but the smallest batches are written while they are being decided. As a context manager it
    ends with the context.
    """

    def __init__(self, calls):
        early = {
            (maintenance, "SNAPSHOT_SECONDS"): calls * commit_loop.REPLAY_OVERHEAD,
            (maintenance, "SNAPSHOT_SHARE"): 0.0,
            (maintenance, "CHECKPOINT_AFTER"): calls * 4 * PAGE,
            (commit_loop, "LARGE"): 100,
        }
        self._before = {where: getattr(*where) for where in early}
        self._set(early)

    def _set(self, values):
        for (module, name), value in values.items():
            setattr(module, name, value)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._set(self._before)


def writer_of(held):
    """Return the connection through which a store writes."""
    return held.handle.maintenance._connection


@contextlib.contextmanager
def still(held):
    """Hold a store while nothing is being written."""
    with held.handle.maintenance.lock:
        held.labels()  # waits for all calls before
        yield


def told(held):
    """Yield the operations with their vectors, payloads and answers."""
    for operation in held.journal.operations():
        yield SimpleNamespace(
            number=operation.number,
            verb=operation.verb,
            arguments=operation.arguments,
            first_vector=operation.first_vector,
            key=operation.key,
            vectors=held.journal.vectors(operation),
            payloads=held.journal.payloads(operation),
            result=journal.decoded(operation),
        )


def in_order(held):
    """Replay a store on a plain clusterer; return it and its answers by number."""
    links, answers = Links.from_thresholds(THRESHOLDS, threads=1), {}
    for operation in told(held):
        arguments = dict(operation.arguments)
        if operation.verb == "add":
            answer = links.add(operation.vectors[0], **arguments)
        elif operation.vectors is not None:
            answer = getattr(links, operation.verb)(operation.vectors, **arguments)
        elif operation.verb in ("settle", "rebuild"):
            answer = getattr(links, operation.verb)(apply=True)
        else:
            answer = getattr(links, operation.verb)(**arguments)
        answers[operation.number] = plain(answer)
        assert plain(answer) == plain(operation.result)
    return links, answers


# The columns of each table with their types; the first is the key.
COLUMNS = {
    "meta": {"number": "INTEGER", "body": "TEXT"},
    "operations": {
        "number": "INTEGER",
        "verb": "TEXT",
        "arguments": "TEXT",
        "first_vector": "INTEGER",
        "first_event": "INTEGER",
        "first_piece": "INTEGER",
        "rows": "INTEGER",
        "dimension": "INTEGER",
        "payloads": "INTEGER",
        "events": "BLOB",
        "result": "BLOB",
        "key": "TEXT",
        "digest": "BLOB",
    },
    "vectors": {"piece": "INTEGER", "body": "BLOB"},
    "payload_blocks": {"block": "INTEGER", "body": "BLOB"},
    "snapshots": {
        "number": "INTEGER",
        "operation": "INTEGER",
        "first_chunk": "INTEGER",
        "chunks": "INTEGER",
        "size": "INTEGER",
        "split": "INTEGER",
    },
    "chunks": {"number": "INTEGER", "body": "BLOB"},
}


def put(path, table, column, value):
    """Write a value into the first row of a table, then into the last, with correct checksums.

    Yield the key of the row each time; the file then has only that change.
    """
    data, key = path.read_bytes(), next(iter(COLUMNS[table]))
    for which in ("min", "max"):
        for beside in path.parent.glob(path.name + "*"):
            beside.unlink()
        path.write_bytes(data)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            query = f"SELECT {which}({key}) FROM {table}"
            (number,) = connection.execute(query).fetchone()
            _update(connection, table, number, lambda row: {**row, column: value})
        yield number


def change(path, table, column, *, number=None, crc=True):
    """Change a value in a row, by default the last; with `crc`, also its checksum."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if number is None:
            key = next(iter(COLUMNS[table]))
            (number,) = connection.execute(f"SELECT max({key}) FROM {table}").fetchone()
        _update(connection, table, number, lambda row: row | {column: _other(row[column])}, crc=crc)


def drop_mean(path):
    """Remove the mean of the space from the description, which earlier builds did not write."""

    def without(row):
        body = json.loads(row["body"])
        del body["mean"]
        return row | {"body": json.dumps(body)}

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _update(connection, "meta", 1, without)


def _update(connection, table, number, make, *, crc=True):
    key, *_ = names = list(COLUMNS[table])
    query = f"SELECT {', '.join(names)}, crc FROM {table} WHERE {key} = ?"
    *values, checksum = connection.execute(query, (number,)).fetchone()
    row = make(dict(zip(names, values, strict=True)))
    values = [row[name] for name in names]
    if crc:
        checksum = file.sealed(table, *values)[-1]
    sets = ", ".join(f"{name} = ?" for name in names)
    query = f"UPDATE OR REPLACE {table} SET {sets}, crc = ? WHERE {key} = ?"
    connection.execute(query, (*values, checksum, number))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _other(value):
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value.replace("Ann", "Bob").replace("0.5", "0.75").replace("add_many", "add_group")
    return value[:-3] + bytes([value[-3] ^ 1]) + value[-2:]


def snapshots_of(path):
    """Return the last operation of each snapshot."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT operation FROM snapshots")]
