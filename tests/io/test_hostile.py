"""Test hostile files: a typed error, no allocation, no code run, nothing extracted."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import struct
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from tests.io.samples import made, read, rows, table, vectors

from linkstream.errors import InputFileError
from linkstream.io import open_vectors, read_vectors

X = vectors(40)
MIB = 2**20


def refused(path, match, **given):
    """Check that a file is refused with little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InputFileError, match=match) as caught:
            read(path, **given)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB
    assert caught.value.expected
    assert caught.value.remedy


def npy(shape, data=b"", descr="<f4"):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def archive(path, *members, **options):
    with zipfile.ZipFile(path, "w", **options) as made_archive:
        for name, data in members:
            made_archive.writestr(name, data)
    return path


def test_a_header_of_128_bytes_that_declares_32_gib_is_refused(tmp_path):
    (tmp_path / "v.npy").write_bytes(npy((2**25, 256)))
    refused(tmp_path / "v.npy", "34359738368 bytes, and holds 0")
    refused(archive(tmp_path / "v.npz", ("X.npy", npy((2**25, 256)))), "and holds 0")


def test_a_header_longer_than_any_table_needs_is_not_read(tmp_path):
    (tmp_path / "v.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + bytes(2**20))
    refused(tmp_path / "v.npy", "bad header")


def test_rows_without_numbers_are_refused(tmp_path):
    (tmp_path / "v.npy").write_bytes(npy((10**18, 0)))
    refused(tmp_path / "v.npy", "dimension 0")


def test_vectors_of_too_many_numbers_are_refused(tmp_path):
    (tmp_path / "v.npy").write_bytes(npy((1, 2**16 + 1), bytes(4 * (2**16 + 1))))
    refused(tmp_path / "v.npy", "dimension 65537")


def test_a_sparse_file_needs_the_memory_of_one_block(tmp_path):
    with (tmp_path / "v.npy").open("wb") as file:
        file.write(npy((2**25, 256)))
        file.truncate(128 + 2**35)
    tracemalloc.start()
    with open_vectors(tmp_path / "v.npy", block=64) as source:
        source.skip(2**25 - 100)
        assert sum(map(len, source)) == 100
        assert source.n == 2**25
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    zeros = npy((2**18, 2**7), bytes(2**27))
    path = archive(tmp_path / "v.npz", ("X.npy", zeros), compression=zipfile.ZIP_DEFLATED)
    refused(path, "would unpack")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_methods_that_numpy_does_not_write_are_refused(tmp_path, method):
    path = archive(tmp_path / "v.npz", ("X.npy", npy((2, 2), bytes(16))), compression=method)
    refused(path, "compressed by an unusual method")


def test_an_archive_with_wrong_sizes_is_refused(tmp_path):
    sound = archive(tmp_path / "v.npz", ("X.npy", npy((2, 2), bytes(16)))).read_bytes()
    directory = sound.rindex(b"PK\x01\x02")
    for place, match in ((20, "declares .* bytes in an archive"), (24, "would unpack|and holds")):
        data = bytearray(sound)
        struct.pack_into("<I", data, directory + place, 2**31)
        (tmp_path / "lie.npz").write_bytes(data)
        refused(tmp_path / "lie.npz", match)
    data = bytearray(sound)
    struct.pack_into("<II", data, directory + 20, 100, 100)
    (tmp_path / "lie.npz").write_bytes(data)
    refused(tmp_path / "lie.npz", "and holds|cannot be unpacked")


def test_entries_that_overlap_give_one_array_or_an_error(tmp_path):
    data = bytearray(
        archive(
            tmp_path / "v.npz", ("X.npy", npy((2, 2), bytes(16))), ("Y.npy", npy((2, 2), bytes(16)))
        ).read_bytes()
    )
    second = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, second + 42, 0)  # both entries begin at the first one's bytes
    (tmp_path / "v.npz").write_bytes(data)
    refused(tmp_path / "v.npz", "cannot be unpacked", key="Y")


def test_two_arrays_of_one_name_are_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        archive(
            tmp_path / "v.npz", ("X.npy", npy((1, 2), bytes(8))), ("X.npy", npy((1, 2), bytes(8)))
        )
    refused(tmp_path / "v.npz", "two arrays 'X'")


def test_an_archive_in_an_archive_is_no_array(tmp_path):
    inner = archive(tmp_path / "inner.npz", ("X.npy", npy((1, 2), bytes(8)))).read_bytes()
    refused(archive(tmp_path / "v.npz", ("X.npz", inner)), "no arrays")
    refused(archive(tmp_path / "w.npz", ("X.npy", inner)), "bad header")


def test_a_member_with_a_path_outside_the_folder_is_never_extracted(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = archive(inside / "v.npz", ("../evil.npy", npy((1, 2), bytes(8))))
    assert len(rows(read(path, key="../evil"))) == 1
    assert sorted(tmp_path.rglob("*")) == [inside, path]


def test_an_array_in_fortran_order_that_is_too_big_to_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("linkstream.io.numpy_files.FORTRAN_MAX", 100)
    refused(made(tmp_path, "npz-fortran", X), "in Fortran order and takes")


class Trap:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return (os.mkdir, (self.place,))


def test_pickles_are_never_loaded(tmp_path):
    trap = Trap(str(tmp_path / "sprung"))
    objects = np.array([[trap], [trap]], dtype=object)
    np.save(tmp_path / "v.npy", objects, allow_pickle=True)
    refused(tmp_path / "v.npy", "dtype object")
    np.savez(tmp_path / "v.npz", X=objects)
    refused(tmp_path / "v.npz", "dtype object")
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(trap),
    }
    field = pa.field("embedding", pa.list_(pa.float32()), metadata=metadata)
    held = pa.table([table(X)["embedding"]], schema=pa.schema([field]))
    parquet.write_table(held, tmp_path / "v.parquet")
    feather.write_feather(held, str(tmp_path / "v.feather"))
    for name in ("v.parquet", "v.feather"):
        with contextlib.suppress(InputFileError):
            read(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


# Paths


def test_a_symbolic_link_is_followed_and_a_broken_one_is_reported(tmp_path):
    path = made(tmp_path, "npy", X)
    (tmp_path / "link.npy").symlink_to(path)
    assert np.array_equal(rows(read(tmp_path / "link.npy")), X)
    path.unlink()
    refused(tmp_path / "link.npy", "does not exist")
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    refused(tmp_path / "loop.npy", "loop")


def test_a_path_through_the_parent_folder_is_allowed(tmp_path):
    (tmp_path / "inside").mkdir()
    made(tmp_path, "npy", X)
    assert np.array_equal(rows(read(tmp_path / "inside" / ".." / "v.npy")), X)


@pytest.mark.parametrize("reads", [open_vectors, read_vectors])
def test_folders_pipes_and_devices_are_refused_at_once(tmp_path, reads):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "link.npy").symlink_to(tmp_path / "pipe.npy")
    for path in (tmp_path, tmp_path / "pipe.npy", tmp_path / "link.npy", "/dev/null"):
        with pytest.raises(InputFileError, match="is not a file"):
            reads(path)
    for path in (tmp_path / ("x" * 300), "nothing\0.npy", tmp_path / "nothing" / "v.npy"):
        with pytest.raises(InputFileError, match=r"does not exist|too long|null"):
            reads(path)


def test_a_file_of_unknown_kind_is_refused_with_the_readable_kinds(tmp_path):
    (tmp_path / "v.txt").write_text("hello")
    refused(tmp_path / "v.txt", r"no file of vectors.*\.parquet")
    (tmp_path / "v.f32").write_bytes(bytes(24))
    refused(tmp_path / "v.f32", "does not state the dimension")
    refused(tmp_path / "v.f32", "rows of 5 float32", dimension=5)


def test_the_kind_of_a_file_follows_from_its_content(tmp_path):
    for kind in ("npy", "npz", "parquet", "feather", "arrow-stream"):
        path = made(tmp_path, kind, X).rename(tmp_path / "v.csv")
        assert np.array_equal(rows(read(path)), X)


# Parquet and Arrow


def test_missing_vectors_missing_numbers_and_uneven_rows_are_reported_with_their_row(tmp_path):
    for values, match in (
        ([[1.0, 2.0], None], "row 1.*missing"),
        ([[1.0, 2.0], [1.0, None]], "row 1.*missing"),
        ([[1.0, 2.0], [1.0]], "row 1 has a vector of dimension 1"),
        ([[], []], "row 0 has a vector of dimension 0"),
    ):
        held = pa.table({"embedding": pa.array(values, pa.list_(pa.float32()))})
        parquet.write_table(held, tmp_path / "v.parquet")
        refused(tmp_path / "v.parquet", match)
        feather.write_feather(held, str(tmp_path / "v.feather"))
        refused(tmp_path / "v.feather", match)


def test_columns_that_are_no_vectors_are_refused(tmp_path):
    for column in (pa.array([1.0]), pa.array([["a"]]), pa.array([[[1.0]]]), pa.array([{"a": 1}])):
        parquet.write_table(pa.table({"embedding": column}), tmp_path / "v.parquet")
        refused(tmp_path / "v.parquet", "lists of numbers")


def test_a_footer_that_points_to_another_file_is_refused(tmp_path):
    collected = []
    parquet.write_table(table(X), tmp_path / "v.parquet", metadata_collector=collected)
    collected[0].set_file_path("../../etc/passwd")
    collected[0].write_metadata_file(str(tmp_path / "meta.parquet"))
    refused(tmp_path / "meta.parquet", "points to another file|not in the file")


def test_a_footer_that_declares_more_than_the_file_has_is_refused(tmp_path):
    data = made(tmp_path, "parquet", X).read_bytes()
    (tmp_path / "v.parquet").write_bytes(b"PAR1" + data[len(data) // 2 :])
    refused(tmp_path / "v.parquet", "not in the file|bad footer")
    (tmp_path / "v.parquet").write_bytes(b"PAR1" + b"\xff\xff\xff\x7fPAR1")
    refused(tmp_path / "v.parquet", "bad footer")


def test_a_row_group_of_millions_of_equal_rows_needs_the_memory_of_one_block(tmp_path):
    held = pa.table({"embedding": pa.array([[0.5] * 64] * 50_000, pa.list_(pa.float32()))})
    parquet.write_table(held, tmp_path / "v.parquet", row_group_size=50_000)
    assert (tmp_path / "v.parquet").stat().st_size < MIB
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    with open_vectors(tmp_path / "v.parquet", block=256) as source:
        most = max(pa.total_allocated_bytes() - before for _ in source)
    assert most < 6 * MIB  # all rows together are 12 MiB


def test_a_batch_that_would_unpack_to_hundreds_of_times_its_size_is_refused(tmp_path):
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**25, dtype=np.float32)), 256)
    path = tmp_path / "v.feather"
    feather.write_feather(
        pa.table({"embedding": zeros}), str(path), compression="zstd", chunksize=2**17
    )
    assert path.stat().st_size < MIB
    before = pa.default_memory_pool().max_memory()
    refused(path, "would unpack")
    assert pa.default_memory_pool().max_memory() - before < MIB


def test_a_page_that_declares_2_gib_is_refused_without_using_that_memory(tmp_path):
    path = tmp_path / "v.parquet"
    held = pa.table({"embedding": pa.array([[0.5] * 64] * 100, pa.list_(pa.float32()))})
    parquet.write_table(held, path, use_dictionary=False, compression="snappy")
    data = path.read_bytes()
    size = b"\x15\xfe\xff\xff\xff\x0f"  # the second field of the page's header: 2³¹ − 1
    end = 7 + next(place for place, byte in enumerate(data[7:]) if byte < 128) + 1
    packed = (data[end + 1] & 127 | data[end + 2] << 7) - 2 * (len(size) - (end - 6))
    lie = bytes([0x15, packed & 127 | 128, packed >> 7])
    path.write_bytes(data[:6] + size + lie + data[end + 3 :])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, "cannot be read")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 2**10
