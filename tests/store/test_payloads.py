"""What people attach to vectors comes back as it was given, or is refused before any change."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import threading

import numpy as np
import pyarrow as pa
import pytest

from linkstream.clusterer.verbs import AddMany
from linkstream.errors import ArgumentError, DimensionError, RemovedError
from linkstream.store import JsonLines, Store, blocks
from linkstream.store import payloads as payload_lines
from linkstream.store.write_requests import request_of
from store.internals import EarlyMaintenance
from store.operations import THRESHOLDS, new, state_of, vectors

X = vectors(np.random.default_rng(0), 30)


@pytest.fixture
def store(path):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        yield store


def nested(depth):
    value = "end"
    for _ in range(depth):
        value = [value]
    return value


GOOD = {
    "a text": "photo.jpg",
    "an empty text": "",
    "any text": "Dünya \u2028 \x00 </script> 🙂",
    "a number": 5,
    "a large number": 2**63 + 1,
    "a fraction": 0.1,
    "a small fraction": 5e-324,
    "yes": True,
    "nothing in a list": [None],
    "a list": [1, [2, [3]]],
    "fields": {"file": "a.jpg", "box": [1, 2, 3, 4], "": {}},
    "deep": nested(30),
    "as large as may be": "x" * (64 * 1024 - 2),
}


@pytest.mark.parametrize("payload", GOOD.values(), ids=GOOD)
def test_json_values_come_back_unchanged(path, payload):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        store.add(X[0], payload=payload)
        store.add_many(X[1:4], payloads=[None, payload, payload])
        store.add_group(X[4:6], payloads=(payload, None))
        store.add(X[6])
        right = [payload, None, payload, payload, payload, None, None]
        assert store.payloads(range(7)) == right
        assert store.payloads([2])[0] == payload
        assert type(store.payloads([0])[0]) is type(payload)
    for read_only in (False, True):
        with Store.open(path, read_only=read_only) as store:
            assert store.payloads(range(7)) == right
            assert store.payloads([3, 1, 3]) == [payload, None, payload]
            assert store.payloads([]) == []
            assert json.dumps(store.payloads([0])[0]) == json.dumps(payload)


loop = []
loop.append(loop)
BAD = {
    "an object": object(),
    "bytes": b"x",
    "a set": {1, 2},
    "no number": math.nan,
    "infinite": math.inf,
    "infinite, within": {"a": [-math.inf]},
    "an array": np.zeros(3),
    "a number of numpy": np.int64(5),
    "too large": "x" * (64 * 1024 + 1),
    "too large by its bytes": ["é" * 40_000],
    "too deep": nested(100_000),
    "too deep by a little": nested(990),
    "rather deep": nested(500),
    "endless": loop,
    "a number of many digits": 10**5_000,
    "a text that is none": "\ud800",
    "fields that are no texts": {1: 2},
    "fields of two kinds": {1: 2, "1": 3},
    "fields of tuples": {(1, 2): 3},
}


@pytest.mark.parametrize("payload", BAD.values(), ids=BAD)
def test_other_values_are_refused_or_come_back_equal(path, store, payload):
    store.add_many(X[:3])
    before, data = state_of(store), path.read_bytes()
    try:
        store.add(X[3], payload=payload)
    except ArgumentError:
        for call in (
            lambda: store.add_many(X[3:5], payloads=[None, payload]),
            lambda: store.add_many(X[3:5], payloads=["fine", payload], idempotency_key="k"),
            lambda: store.add_group(X[3:5], payloads=[payload, "fine"]),
        ):
            with pytest.raises(ArgumentError):
                call()
        assert state_of(store) == before
        assert path.read_bytes() == data
        store.add_many(X[3:5], payloads=["fine", "too"], idempotency_key="k")
    else:
        assert store.payloads([3])[0] == payload
        assert far_down(300, lambda: store.payloads([3])[0]) == payload
    store.add(X[5])  # and it goes on


def far_down(depth, call):
    """A call from far down a stack, as in a large program."""
    return call() if depth == 0 else far_down(depth - 1, call)


def test_a_payload_belongs_to_the_number_of_its_vector(store):
    store.add_many(X[:4], weight=[1.0, 0.0, 0.5, 1.0], payloads=list("abcd"))
    store.add(X[4], weight=0, payload="asked")
    store.add_many(X[5:7], payloads=["f", "g"])
    assert store.payloads(range(5)) == ["a", "c", "d", "f", "g"]
    for _ in range(3):
        store.undo()
    assert store.n_vectors == 2
    store.add_many(X[10:13])
    assert store.payloads(range(5)) == ["a", "c", None, None, None]
    store.add(X[13], payload="new")
    assert store.payloads([5])[0] == "new"


def test_the_payload_of_a_removed_vector_comes_back_with_it(store):
    store.add_many(X[:4], payloads=list("abcd"))
    store.remove(2)
    with pytest.raises(RemovedError):
        store.payloads([2])[0]
    assert store.payloads([0, 1, 3]) == ["a", "b", "d"]
    store.undo()
    assert store.payloads(range(4)) == list("abcd")


def test_payloads_may_come_from_a_generator(store):
    store.add_many(X[:4], payloads=(i * 10 for i in range(4)))
    assert store.payloads(range(4)) == [0, 10, 20, 30]


def test_many_large_payloads_of_one_batch_are_taken(path):
    payloads = [str(i) * 50_000 for i in range(10)] * 3
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        store.add_many(X, payloads=payloads)
    with Store.open(path) as store:
        assert store.payloads(range(30)) == payloads
        store.verify()


@pytest.mark.parametrize("options", [{"keep_vectors": False}, {"track_vectors": False}])
def test_payloads_are_stored_without_kept_vectors(path, options):
    with Store.open(path, thresholds=THRESHOLDS, **options) as store:
        store.add_many(X[:4], payloads=list("abcd"))
    with Store.open(path) as store:
        assert store.payloads(range(4)) == list("abcd")


# Texts and columns, which are stored without a Python value for each


def test_json_lines_are_stored_as_they_are(path):
    lines = ['{"b": 1,  "a": [1.50]}', "", "null", " 7 ", '"\\u00fc \\ud83d\\ude42"', "1e3"]
    right = [{"b": 1, "a": [1.5]}, None, None, 7, "ü 🙂", 1000.0]
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        store.add_many(X[:6], payloads=JsonLines("\n".join(lines)))
        store.add_many(X[6:12], payloads=JsonLines(line.encode() for line in lines))
        assert store.payloads(range(12)) == right * 2
        store.verify()
    assert lines[0].encode() in path.read_bytes()


BAD_LINES = [
    b"{",
    b"1 2",
    b"NaN",
    b"[1, Infinity]",
    b"1e999",
    b"\xff",
    b'"\\ud800"',
    b"[" * 40 + b"]" * 40,
    b'"' + b"x" * (64 << 10) + b'"',
    b"nul",
]


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:12].decode("latin-1"))
def test_a_line_that_is_no_json_is_refused_with_its_number(store, line):
    store.add_many(X[:3])
    before = state_of(store)
    with pytest.raises(ArgumentError, match="payload 1 "):
        store.add_many(X[3:6], payloads=JsonLines([b"1", line, b"2"]))
    assert state_of(store) == before


def test_lines_that_only_together_are_json_are_refused(store):
    with pytest.raises(ArgumentError, match="payload 0 "):
        store.add_many(X[:3], payloads=JsonLines(b'1,2\n["a"\n"b"]'))
    with pytest.raises(ArgumentError, match="line breaks"):
        JsonLines(["1\n2"])
    with pytest.raises(ArgumentError, match="4 payloads for 3"):
        store.add_many(X[:3], payloads=JsonLines("1\n2\n3\n4\n"))


def test_json_lines_are_a_sequence_of_values():
    lines = JsonLines('{"a": 1}\n\n[2]\n')
    assert lines == [{"a": 1}, None, [2]]
    assert lines[1:] == [None, [2]]
    assert lines[-1] == [2]
    assert repr(lines) == "[{'a': 1}, None, [2]]"


def arrow_table():
    return pa.table(
        {
            "file": ["a.jpg", None, 'quote " and \\', "line\nbreak \x01 ü"],
            "n": pa.array([1, 2**62, None, -3], pa.int64()),
            "share": [0.5, math.nan, 5.0, None],
            "good": [True, False, None, True],
            "box": [[1, 2], [], None, [3]],
            "tag": pa.array(["x", "y", "x", None]).dictionary_encode(),
            "at": pa.array([0, 1_000_000, None, 1], pa.timestamp("us")),
            "part": [{"a": 1.0}, {"a": math.nan}, None, {"a": None}],
        }
    )


def test_columns_of_arrow_become_fields(store):
    table = arrow_table()
    store.add_many(X[:4], payloads=table)
    store.add_many(X[4:8], payloads=table.to_batches()[0])
    found = store.payloads(range(4))
    assert store.payloads(range(4, 8)) == found
    for name in ("file", "n", "good", "box"):
        assert [each[name] for each in found] == table[name].to_pylist()
    assert [each["tag"] for each in found] == ["x", "y", "x", None]
    assert [each["share"] for each in found] == [0.5, None, 5.0, None]
    assert type(found[2]["share"]) is float
    assert [each["part"] for each in found] == [{"a": 1.0}, {"a": None}, None, {"a": None}]
    assert found[1]["at"] == "1970-01-01 00:00:01.000000"
    assert list(found[0]) == table.column_names


def test_columns_that_json_cannot_hold_are_refused(store):
    for column in ([math.inf], [b"x"], [[math.inf]]):
        with pytest.raises(ArgumentError, match="JSON"):
            store.add_many(X[:1], payloads=pa.table({"a": column}))
    with pytest.raises(ArgumentError, match="2 payloads for 3"):
        store.add_many(X[:3], payloads=pa.table({"a": [1, 2]}))
    assert store.n_vectors == 0


def test_reading_one_payload_reads_one_block(path, monkeypatch):
    many = np.tile(X, (40, 1))[:1000]
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        store.add_many(many, payloads=list(range(1000)))
        read = []
        lines = blocks.BlockReader.lines
        monkeypatch.setattr(
            blocks.BlockReader,
            "lines",
            lambda self, *place: read.append(place[-1]) or lines(self, *place),
        )
        assert store.payloads([700]) == [700]
        assert read == [2]
        assert store.payloads([3, 999, 600, 2, 601]) == [3, 999, 600, 2, 601]
        assert read == [2, 0, 2, 3]


def test_payloads_of_live_vectors_stay_when_vectors_are_not_kept(path):
    with Store.open(path, thresholds=THRESHOLDS, keep_vectors=False) as store:
        store.add_many(X[:4], payloads=["secret-a", "b", "c", "d"])
        store.remove(0, x=X[0])
        store.compact()
        assert store.payloads([1, 2, 3]) == ["b", "c", "d"]
    assert b"secret-a" not in path.read_bytes()


def test_payloads_of_a_refused_call_that_were_written_ahead_are_not_in_the_file(path):
    with EarlyMaintenance(10**9), new(path) as store:
        store.add_many(X[:20])
        wrong = np.ones((600, 5), dtype=np.float32)
        requests = [
            request_of(AddMany(rows), payloads=payloads)
            for rows, payloads in ((wrong, ["secret"] * 600), (X[:20], None), (X[:20], ["b"] * 20))
        ]
        gate = threading.Event()
        waiting = threading.Thread(target=lambda: store.handle.run(gate.wait))
        waiting.start()
        for request in requests:  # they are decided and committed together
            store.handle.submit(request)
        gate.set()
        waiting.join()
        with pytest.raises(DimensionError):
            requests[0].result()
        assert len(requests[2].result()) == 20
        assert store.payloads([20, 40]) == [None, "b"]
        store.verify()
    assert b"secret" not in path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as file:
        blocks = file.execute("SELECT block / 16384, count(*) FROM payload_blocks").fetchall()
    assert blocks == [(3, 1)]


@pytest.mark.parametrize(
    "lines", [["[1", "2]"], ["1,2"], ["1,2", "[3", "4]"], ['{"a":1', '"b":2}'], ["1]", "[2"]]
)
def test_lines_that_are_values_only_together_are_refused_by_row(lines):
    with pytest.raises(ArgumentError, match="payload 1 is not JSON"):
        payload_lines.check(JsonLines(["0", *lines]), len(lines) + 1)


def test_a_bad_value_among_many_flat_ones_is_named():
    values = [{"n": i} for i in range(600)]
    with pytest.raises(ArgumentError, match="payload 577 is not JSON"):
        payload_lines.check([*values[:577], {"n": float("nan")}, *values[578:]], 600)
    with pytest.raises(ArgumentError, match="payload 3 takes"):
        payload_lines.check([*values[:3], {"n": "x" * 70_000}, *values[4:]], 600)
