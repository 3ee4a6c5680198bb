"""Arrow bodies: columns become payloads; hostile bodies are refused."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest

from store.operations import DIMENSION, vectors

X = vectors(np.random.default_rng(2), 20)
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def stream(table, **options):
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return file.getvalue()


def column(rows):
    flat = pa.array(np.asarray(rows).ravel().tolist(), type=pa.float32())
    return pa.FixedSizeListArray.from_arrays(flat, np.asarray(rows).shape[1])


GOOD = stream(pa.table({"vector": column(X), "file": [f"{i}.jpg" for i in range(len(X))]}))


def test_other_columns_become_the_payload(service, namespace):
    same = service.namespace("arrow-same")
    answer = service.post(f"{namespace}/vectors", GOOD, headers=ARROW)
    assert answer.ids == service.post(f"{same}/vectors", X).ids
    assert service.get(f"{namespace}/vectors/7").json["payload"] == {"file": "7.jpg"}


def test_list_columns_and_doubles_are_read_as_vectors(service, namespace):
    same = service.namespace("arrow-doubles")
    lists = pa.array(X.astype(np.float64).tolist(), type=pa.list_(pa.float64()))
    answer = service.post(
        f"{namespace}/vectors", stream(pa.table({"vector": lists})), headers=ARROW
    )
    assert answer.ids == service.post(f"{same}/vectors", X).ids


def test_nan_in_payload_columns_never_appears_in_json(service, namespace):
    numbers = pa.array([float("nan"), float("inf"), 1.5])
    table = pa.table({"vector": column(X[:3]), "score": numbers})
    answer = service.post(f"{namespace}/vectors", stream(table), headers=ARROW)
    if answer.status == 200:
        for number in range(3):
            told = service.get(f"{namespace}/vectors/{number}").body
            assert b"NaN" not in told
            assert b"Infinity" not in told


def marked(**columns):
    """Return a stream whose columns are marked as the client marks them."""
    fields = [pa.field("vector", pa.list_(pa.float32(), DIMENSION))]
    fields += [
        pa.field(name, each.type, metadata={"linkstream": name}) for name, each in columns.items()
    ]
    arrays = [column(X[: len(next(iter(columns.values())))]), *columns.values()]
    return stream(pa.table(arrays, schema=pa.schema(fields)))


def texts(*values):
    return pa.array(values, pa.large_string())


def test_marked_columns_are_payloads_as_json_and_weights(service, namespace):
    payloads = texts('{"a": [1]}', None, "", '"x"')
    weights = pa.array([1.0, 0.5, 0.0, 1.0])
    answer = service.post(
        f"{namespace}/vectors", marked(payload=payloads, weight=weights), headers=ARROW
    )
    assert answer.status == 200
    assert service.get(namespace).json["vectors"] == 3  # a vector of weight 0 gets no number
    found = [service.get(f"{namespace}/vectors/{n}").json["payload"] for n in range(3)]
    assert found == [{"a": [1]}, None, "x"]


BAD_MARKS = {
    "a payload that is no JSON": {"payload": texts("{", "1")},
    "a payload that is not finite": {"payload": texts("1e999", "1")},
    "payloads that are numbers": {"payload": pa.array([1, 2])},
    "weights that are texts": {"weight": texts("1", "1")},
    "a weight above 1": {"weight": pa.array([1.0, 2.0])},
    "a weight that is missing": {"weight": pa.array([1.0, None])},
}


@pytest.mark.parametrize("columns", BAD_MARKS.values(), ids=BAD_MARKS)
def test_marked_columns_that_do_not_fit_are_refused(service, namespace, columns):
    answer = service.post(f"{namespace}/vectors", marked(**columns), headers=ARROW)
    assert answer.status == 400
    assert service.get(namespace).json["vectors"] == 0


def bad():
    nulls = pa.array([X[0].tolist(), None], type=pa.list_(pa.float32()))
    ragged = pa.array([X[0].tolist(), [1.0]], type=pa.list_(pa.float32()))
    holes = pa.array([[None] * DIMENSION], type=pa.list_(pa.float32()))
    zeros = column(np.zeros((1 << 15, DIMENSION)))
    return {
        "nothing": b"",
        "noise": np.random.default_rng(0).bytes(300),
        "half of it": GOOD[: len(GOOD) // 2],
        "without its end": GOOD[:-40],
        "no column of vectors": stream(pa.table({"x": [1, 2], "y": ["a", "b"]})),
        "two columns of vectors, none called so": stream(
            pa.table({"x": column(X), "y": column(X)})
        ),
        "nulls": stream(pa.table({"vector": nulls})),
        "holes": stream(pa.table({"vector": holes})),
        "ragged rows": stream(pa.table({"vector": ragged})),
        "text": stream(pa.table({"vector": ["a", "b"]})),
        "numbers": stream(pa.table({"vector": [1.0, 2.0]})),
        "another dimension": stream(pa.table({"vector": column(X[:, :5])})),
        "NaN": stream(pa.table({"vector": column(np.full((2, DIMENSION), np.nan))})),
        "zeros, packed": stream(pa.table({"vector": zeros}), compression="zstd"),
        "a file, not a stream": b"ARROW1\0\0" + GOOD,
    }


@pytest.mark.parametrize("name", bad())
def test_an_invalid_arrow_body_is_refused(service, namespace, name):
    service.post(f"{namespace}/vectors", X[:3])
    for verb in ("vectors", "ask", "groups"):
        answer = service.post(f"{namespace}/{verb}", bad()[name], headers=ARROW)
        assert answer.status in (400, 413, 415), (verb, answer)
    assert service.get(namespace).json["vectors"] == 3


def test_corrupted_arrow_bodies_are_accepted_or_refused_without_a_fault(service, namespace):
    rng = np.random.default_rng(7)
    with service.caller() as caller:
        for _ in range(150):
            body = bytearray(GOOD)
            for _ in range(int(rng.integers(1, 5))):
                body[rng.integers(len(body))] = rng.integers(256)
            assert caller.post(f"{namespace}/ask", bytes(body), headers=ARROW).status in (200, 400)
