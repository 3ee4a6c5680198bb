"""Test read_vectors: sound files are read, hostile files are refused."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from linkstream.errors import ArgumentError, InputFileError
from linkstream.io import read_vectors

X = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)


def npy_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npy_claiming(shape, *, descr="<f4", data=b"", version=(1, 0), fortran="False"):
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    width = 2 if version == (1, 0) else 4
    header += b" " * (127 - 6 - 2 - width - len(header)) + b"\n"
    size = len(header).to_bytes(width, "little")
    return b"\x93NUMPY" + bytes(version) + size + header + data


def written(tmp_path, data, name="file.npy"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def refused(path, match, **options):
    with pytest.raises(InputFileError, match=match) as caught:
        read_vectors(path, **options)
    assert caught.value.expected
    assert caught.value.remedy


@pytest.mark.parametrize(
    "array",
    [
        X,
        X.astype(np.float16),
        X.astype(np.float64),
        X.astype(">f4"),
        np.asfortranarray(X),
        (X * 100).astype(np.int8),
        X[:0],
    ],
    ids=["float32", "float16", "float64", "big-endian", "fortran", "int8", "no-rows"],
)
@pytest.mark.parametrize("kind", ["npy", "npz", "npz_compressed"])
def test_what_numpy_saves_is_read_back(tmp_path, array, kind):
    path = tmp_path / "vectors"
    save = {"npy": np.save, "npz": np.savez, "npz_compressed": np.savez_compressed}[kind]
    with path.open("wb") as file:
        save(file, array) if kind == "npy" else save(file, X=array)
    read = read_vectors(path)
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


def test_a_npy_stays_on_disk_and_cannot_be_changed(tmp_path):
    read = read_vectors(written(tmp_path, npy_bytes(X)))
    assert isinstance(read, np.memmap)
    assert not read.flags.writeable


def test_a_header_of_version_2_is_read(tmp_path):
    data = npy_claiming((7, 5), version=(2, 0), data=X.tobytes())
    np.testing.assert_array_equal(read_vectors(written(tmp_path, data)), X)


def test_the_array_of_an_archive_is_chosen_by_key_else_x_else_the_only_one(tmp_path):
    np.savez(tmp_path / "two.npz", X=X, other=2 * X)
    np.savez(tmp_path / "one.npz", embeddings=3 * X)
    np.testing.assert_array_equal(read_vectors(tmp_path / "two.npz"), X)
    np.testing.assert_array_equal(read_vectors(tmp_path / "two.npz", key="other"), 2 * X)
    np.testing.assert_array_equal(read_vectors(tmp_path / "one.npz"), 3 * X)


def test_a_missing_key_is_reported_with_the_existing_keys(tmp_path):
    np.savez(tmp_path / "two.npz", a=X, b=X)
    refused(tmp_path / "two.npz", "no array 'X' .* 'a', 'b'")
    refused(tmp_path / "two.npz", "no array 'c' .* 'a', 'b'", key="c")


def test_a_key_for_a_single_array_is_refused(tmp_path):
    refused(written(tmp_path, npy_bytes(X)), "single array", key="X")


def test_a_file_that_is_not_there_or_not_a_file_is_refused(tmp_path):
    refused(tmp_path / "nothing.npy", "does not exist")
    refused(tmp_path, "is not a file")
    os.mkfifo(tmp_path / "pipe.npy")
    refused(tmp_path / "pipe.npy", "is not a file")


def test_an_input_error_is_an_argument_error_and_a_value_error(tmp_path):
    for kind in (ArgumentError, ValueError):
        with pytest.raises(kind):
            read_vectors(tmp_path / "nothing.npy")


def test_a_small_file_that_declares_32_gib_is_refused_before_memory_is_allocated(tmp_path):
    data = npy_claiming((2**25, 256))
    assert len(data) == 128
    refused(written(tmp_path, data), "declares shape .* 34359738368 bytes, and holds 0")


def test_an_archive_whose_array_declares_32_gib_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "big.npz", "w") as archive:
        archive.writestr("X.npy", npy_claiming((2**25, 256)))
    refused(tmp_path / "big.npz", "34359738368 bytes, and holds 0")


def test_an_archive_that_unpacks_to_hundreds_of_times_its_size_is_refused(tmp_path):
    zeros = np.zeros((2**10 + 1, 2**14), dtype=np.float32)
    np.savez_compressed(tmp_path / "bomb.npz", X=zeros)
    refused(tmp_path / "bomb.npz", "would unpack")


def test_pickled_objects_are_never_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    objects = np.array([[Trap()], [Trap()]], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "objects.npz", X=objects)
    written(tmp_path, pickle.dumps(Trap()), "pickle.npy")
    refused(tmp_path / "objects.npy", "dtype object")
    refused(tmp_path / "objects.npz", "dtype object")
    refused(tmp_path / "pickle.npy", "neither .npy nor .npz")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("cut", [0, 3, 6, 9, 60, 127, 128, 200])
def test_a_file_cut_short_is_refused(tmp_path, cut):
    refused(written(tmp_path, npy_bytes(X)[:cut]), "neither|bad header|and holds")


def test_bytes_after_the_array_raise(tmp_path):
    refused(written(tmp_path, npy_bytes(X) + b"more"), "declares .* 140 bytes, and holds 144")


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (X[0], "shape"),
        (X[np.newaxis], "shape"),
        (X.astype(np.complex64), "complex64"),
        (X > 0, "bool"),
        (np.array([["a", "b"]]), "<U1"),
        (np.zeros((2, 2), dtype=[("a", "f4")]), "dtype"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "datetime64"),
    ],
    ids=["1-D", "3-D", "complex", "bool", "strings", "fields", "dates"],
)
def test_what_is_no_table_of_real_numbers_is_refused(tmp_path, array, match):
    refused(written(tmp_path, npy_bytes(array)), match)


@pytest.mark.parametrize(
    "data",
    [
        npy_claiming((-7, -5), data=X.tobytes()),
        npy_claiming("(True, 5)", data=X.tobytes()),
        npy_claiming("'x'"),
        npy_claiming("(7, 5", data=X.tobytes()),
        npy_claiming("(" * 40),
        npy_claiming((7, 5), descr="no such type"),
        npy_claiming((7, 5), descr="|V0"),
        npy_claiming((7, 5), fortran="2"),
        npy_claiming((7, 5), version=(3, 0), data=X.tobytes()),
        npy_claiming((7, 5), version=(9, 9), data=X.tobytes()),
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        b"\x93NUMPY\x01\x00\x04\x00\xff\xfe\xfd\xfc",
    ],
)
def test_an_invalid_header_is_refused(tmp_path, data):
    refused(written(tmp_path, data), "bad header|shape|dtype")


def test_a_damaged_archive_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "sound.npz", X=X)
    sound = (tmp_path / "sound.npz").read_bytes()
    refused(written(tmp_path, sound[:-30], "cut.npz"), "unpacked")
    refused(written(tmp_path, b"PK\x05\x06" + b"\0" * 18, "empty.npz"), "no arrays")
    middle = len(sound) // 2
    turned = sound[:middle] + bytes([sound[middle] ^ 0xFF]) + sound[middle + 1 :]
    refused(written(tmp_path, turned, "turned.npz"), "unpacked|bad header|ends")


def test_random_damage_gives_a_typed_error_or_a_table(tmp_path):
    rng = np.random.default_rng(1)
    np.savez_compressed(tmp_path / "sound.npz", X=X)
    for sound in (npy_bytes(X), (tmp_path / "sound.npz").read_bytes()):
        for _ in range(300):
            damaged = np.frombuffer(sound, dtype=np.uint8).copy()
            where = rng.integers(0, len(damaged), size=rng.integers(1, 4))
            damaged[where] = rng.integers(0, 256, size=len(where))
            with contextlib.suppress(InputFileError):
                assert read_vectors(written(tmp_path, damaged.tobytes())).ndim == 2
