"""Hostile bodies other than JSON are refused quickly and change nothing."""

from __future__ import annotations

import io
import json
import pickle
import struct

import numpy as np
import pytest

from service.calling import BINARY, head, raw_answers, refused
from store.operations import DIMENSION, vectors

X = vectors(np.random.default_rng(0), 20)
ROW = json.dumps(X[0].tolist()).encode()
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def started(service):
    """Return a namespace with vectors; no test here may add one."""
    path = service.namespace("hostile")
    assert service.post(f"{path}/vectors", X).status == 200
    yield path
    assert service.get(path).json["vectors"] == len(X)


def npy(array, **how):
    file = io.BytesIO()
    np.save(file, array, **how)
    return file.getvalue()


def npy_header(text):
    text = text.encode() + b" " * (117 - len(text)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


class Bomb:
    """An object that runs code when unpickled."""

    def __reduce__(self):
        return (eval, ("__import__('os').abort()",))


HUGE = npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 8), }")
NPY = {
    "that declares 32 GiB": HUGE + b"\0" * 64,
    "that declares more than there is": npy_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 8), }"
    ),
    "of a negative shape": npy_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 8), }"
    ),
    "of objects": npy(np.array([[Bomb()] * DIMENSION], dtype=object), allow_pickle=True),
    "that is a pickle": pickle.dumps(Bomb()),
    "of text": npy(np.array([["a"] * DIMENSION])),
    "of structures": npy(np.zeros(3, dtype=[("a", "f4"), ("b", "f4")])),
    "of three axes": npy(X.reshape(2, 10, DIMENSION)),
    "of another dimension": npy(X[:, :5]),
    "of complex numbers": npy(X.astype(complex)),
    "of truth": npy(X > 0),
    "with NaN": npy(np.full((2, DIMENSION), np.nan, dtype=np.float32)),
    "that ends too soon": npy(X)[:-3],
    "that goes on": npy(X) + b"more",
    "with code in its head": npy_header("__import__('os').abort()"),
    "with a deep head": b"\x93NUMPY\x02\x00" + struct.pack("<I", 60_000) + b"(" * 60_000,
    "of another version": b"\x93NUMPY\x09\x00" + npy(X)[8:],
    "that is nothing": b"",
    "that is noise": np.random.default_rng(1).bytes(500),
    "that is a zip": b"PK\x03\x04" + b"\0" * 200,
}


@pytest.mark.parametrize("body", NPY.values(), ids=NPY)
def test_an_invalid_npy_body_is_refused(service, started, body):
    headers = {"Content-Type": "application/x-npy"}
    for verb in ("vectors", "ask", "groups"):
        answer = refused(
            service, "POST", f"{started}/{verb}", body, headers=headers, statuses=(400, 413)
        )
        assert answer.kind in ("argument", "vector", "dimension", "input-file", "too-large")


RAW = {
    "cut in the middle of a number": (X[:2].tobytes()[:-1], "8"),
    "cut in the middle of a row": (X[:2].tobytes()[:-4], "8"),
    "another dimension": (X[:5].tobytes(), "5"),
    "NaN": (np.full((1, 8), np.nan, dtype="<f4").tobytes(), "8"),
    "infinity": (np.full((1, 8), np.inf, dtype="<f4").tobytes(), "8"),
    "zeros": (bytes(32), "8"),
    "no dimension": (X[:2].tobytes(), None),
    "dimension 0": (X[:2].tobytes(), "0"),
    "dimension -8": (X[:2].tobytes(), "-8"),
    "dimension 1e0": (X[:2].tobytes(), "8e0"),
    "a dimension of 30 digits": (X[:2].tobytes(), "9" * 30),
    "a dimension of 5,000 digits": (X[:2].tobytes(), "9" * 5_000),
    "a dimension beyond the cap": (bytes(4 * 4_097), "4097"),
    "two dimensions": (X[:2].tobytes(), "8&dimension=16"),
}


@pytest.mark.parametrize(("body", "dimension"), RAW.values(), ids=RAW)
def test_an_invalid_raw_body_is_refused(service, started, body, dimension):
    query = "" if dimension is None else f"?dimension={dimension}"
    for verb in ("vectors", "ask", "groups"):
        path = f"{started}/{verb}{query}"
        refused(service, "POST", path, body, headers={"Content-Type": BINARY}, statuses=(400, 413))


MEDIA = {
    "none": None,
    "text": "text/plain",
    "a form": "application/x-www-form-urlencoded",
    "a form in parts": "multipart/form-data; boundary=x",
    "a pickle": "application/python-pickle",
    "two": "application/json, text/html",
    "another alphabet": "application/json; charset=utf-16",
    "noise": "\xff\xfe;;;===",
}


@pytest.mark.parametrize("media", MEDIA.values(), ids=MEDIA)
def test_an_unknown_media_type_is_refused(service, started, media):
    body = b'{"vector": %b}' % ROW
    for verb in ("vectors", "name"):
        request = head("POST", f"{started}/{verb}", body=body)
        if media is not None:
            request = head("POST", f"{started}/{verb}", body=body, content_type=media)
        (answer,) = raw_answers(service.port, request)
        assert (answer.status, answer.kind) == (415, "media-type"), answer


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_compressed_body_is_refused(service, started, coding):
    headers = JSON | {"Content-Encoding": coding}
    answer = service.post(f"{started}/vectors", b"\x1f\x8b" + bytes(100), headers=headers)
    assert (answer.status, answer.kind) == (415, "media-type")


def test_a_charset_of_utf_8_is_accepted(service, namespace):
    headers = {"Content-Type": "Application/JSON; charset=UTF-8"}
    answer = service.post(f"{namespace}/vectors", b'{"vector": %b}' % ROW, headers=headers)
    assert answer.status == 200
