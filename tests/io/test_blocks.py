"""Test reading in blocks: every kind of file, pipes, skipping rows."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from tests.io.samples import KINDS, WITH_COLUMNS, made, names, options, read, rows, table, vectors

from linkstream.errors import ArgumentError, InputFileError, MissingExtraError
from linkstream.io import ALL, open_vectors, read_vectors

X = vectors()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_together_are_the_rows_of_the_file(tmp_path, kind, block):
    blocks = read(made(tmp_path, kind, X), block=block, **options(kind))
    assert np.array_equal(rows(blocks).astype(np.float32), X)
    assert all(0 < len(each) <= block for each in blocks)
    starts = np.cumsum([0, *map(len, blocks)])
    assert [each.first_row for each in blocks] == starts[:-1].tolist()


@pytest.mark.parametrize("skipped", [0, 1, 16, 17, 18, 40, 63, 99, 100])
def test_skipping_rows_keeps_the_other_rows_and_their_numbers(tmp_path, kind, skipped):
    path = made(tmp_path, kind, X)
    blocks = read(path, skip=skipped, block=8, **options(kind))
    assert np.array_equal(rows(blocks).astype(np.float32), X[skipped:])
    assert [each.first_row for each in blocks] == list(range(skipped, 100, 8))


def test_rows_can_be_skipped_between_blocks(tmp_path, kind):
    with open_vectors(made(tmp_path, kind, X), block=8, **options(kind)) as source:
        first = next(iter(source))
        source.skip(30)
        second = next(iter(source))
    assert np.array_equal(first.vectors.astype(np.float32), X[:8])
    assert second.first_row == 38
    assert np.array_equal(second.vectors.astype(np.float32), X[38:46])


def test_skipping_more_rows_than_there_are_raises(tmp_path, kind):
    with (
        open_vectors(made(tmp_path, kind, X), **options(kind)) as source,
        pytest.raises(InputFileError, match="has 100 rows, of which 101"),
    ):
        source.skip(101)


def test_a_source_reports_its_kind_and_progress(tmp_path, kind):
    with open_vectors(made(tmp_path, kind, X), block=50, **options(kind)) as source:
        assert source.kind == {"feather": "arrow"}.get(kind, kind.split("-")[0])
        assert source.n == (None if source.kind in ("jsonl", "csv") else 100)
        assert source.dimension == 6
        seen = [source.progress for _ in source]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_read_returns_exactly_the_rows_asked_for(tmp_path, kind):
    with open_vectors(made(tmp_path, kind, X), block=8, **options(kind)) as source:
        assert np.array_equal(source.read(60).vectors.astype(np.float32), X[:60])
        assert source.read(40).first_row == 60
        with pytest.raises(InputFileError, match="ends after 100 rows"):
            source.read(1)


def test_read_vectors_returns_the_rows_of_all_blocks(tmp_path, kind):
    given = {"column": "x"} if kind == "csv" else options(kind)
    whole = read_vectors(made(tmp_path, kind, X), **given)
    assert np.array_equal(whole.astype(np.float32), X)


def test_a_dimension_other_than_asked_for_is_refused(tmp_path, kind):
    if kind == "raw":  # 600 numbers are 100 rows of 6 or 120 of 5
        return
    with pytest.raises(InputFileError, match=r"dimension 6; expected dimension 7"):
        read(made(tmp_path, kind, X), **{**options(kind), "dimension": 7})


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("csv")])
def test_a_file_without_rows_gives_no_block(tmp_path, kind):
    path = made(tmp_path, kind, X[:0])
    assert read(path, **{**options(kind), "payload": ()}) == []


@pytest.mark.parametrize("kind", WITH_COLUMNS)
def test_payload_columns_come_as_a_dict_a_row(tmp_path, kind):
    path = made(tmp_path, kind, X)
    expected = [{"file": name} for name in names(X)]
    for asked in ("file", ["file"]):
        blocks = read(path, payload=asked, skip=5, block=10)
        assert [payload for block in blocks for payload in block.payloads] == expected[5:]
    column = "x" if kind == "csv" else None
    assert [
        p for block in read(path, payload=ALL, column=column) for p in block.payloads
    ] == expected
    assert column or read(path)[0].payloads is None


@pytest.mark.parametrize("kind", WITH_COLUMNS)
def test_a_missing_column_is_reported_with_the_existing_columns(tmp_path, kind):
    path = made(tmp_path, kind, X)
    with pytest.raises(InputFileError, match=r"'nothing'.*'file'"):
        read(path, column="nothing")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in WITH_COLUMNS])
def test_payload_of_a_file_without_columns_is_refused(tmp_path, kind):
    with pytest.raises(InputFileError, match=r"[Ll]eave (the|column and) payload out|names"):
        read(made(tmp_path, kind, X), **{**options(kind), "payload": "file"})


def test_times_decimals_and_missing_values_become_what_json_has(tmp_path):
    made_table = table(X[:2]).append_column("time", pa.array([0, 1], pa.timestamp("ms", tz="UTC")))
    made_table = made_table.append_column("score", pa.array([float("nan"), 1.5]))
    made_table = made_table.append_column("tags", pa.array([["a"], None]))
    parquet.write_table(made_table, tmp_path / "v.parquet")
    first, second = read(tmp_path / "v.parquet", payload=["time", "score", "tags"])[0].payloads
    assert first == {"time": "1970-01-01 00:00:00.000Z", "score": None, "tags": ["a"]}
    assert second["score"] == 1.5
    assert second["tags"] is None


def test_bytes_are_no_payload_and_are_refused_before_a_row_is_read(tmp_path):
    made_table = table(X[:2]).append_column("raw", pa.array([b"a", b"b"]))
    parquet.write_table(made_table, tmp_path / "v.parquet")
    with pytest.raises(InputFileError, match=r"'raw'.*binary"):
        open_vectors(tmp_path / "v.parquet", payload="raw")


@pytest.mark.parametrize(
    "bad",
    [
        {"payload": ["*", "file"]},
        {"payload": [1]},
        {"dimension": 0},
        {"dimension": 2**17},
        {"block": 0},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(tmp_path, bad):
    with pytest.raises(ArgumentError):
        open_vectors(made(tmp_path, "npy", X), **bad)


def test_without_pyarrow_the_error_names_the_install_line(tmp_path, monkeypatch):
    path = made(tmp_path, "parquet", X)
    for module in ("pyarrow", "pyarrow.parquet", "pyarrow.ipc", "pyarrow.types"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r'pip install "linkstream\[files\]"'):
        open_vectors(path)


# Pipes

NPY = io.BytesIO()
np.save(NPY, X)
STREAMS = {
    "raw": (X.astype("<f4").tobytes(), {"dimension": 6}),
    "npy": (NPY.getvalue(), {}),
    "npy-and-dimension": (NPY.getvalue(), {"dimension": 6}),
    "jsonl": ("\n".join(map(str, X.tolist())).encode(), {}),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_is_read_in_blocks_from_any_row_on(stream):
    data, given = STREAMS[stream]
    blocks = read(io.BytesIO(data), skip=13, block=20, **given)
    assert np.array_equal(rows(blocks).astype(np.float32), X[13:])


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_that_is_cut_short_is_refused(stream):
    data, given = STREAMS[stream]
    with pytest.raises(InputFileError, match=r"the middle of row 99|line 100|not JSON"):
        read(io.BytesIO(data[:-3]), **given)


def test_bytes_after_the_array_of_a_stream_raise():
    with pytest.raises(InputFileError, match="goes on after its last row"):
        read(io.BytesIO(NPY.getvalue() + b"more"))


def test_a_stream_of_unknown_kind_is_refused_with_a_remedy():
    with pytest.raises(InputFileError, match="Give the dimension"):
        open_vectors(io.BytesIO(b"\x00\x01\x02\x03" * 10))


def test_stdin_is_a_stream():
    code = (
        "from linkstream.io import open_vectors\n"
        "with open_vectors('-', dimension=6) as source:\n"
        "    print(source.name, source.n, sum(len(block) for block in source))\n"
    )
    data = X.astype("<f4").tobytes()
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.split() == [b"stdin", b"None", b"100"]


@pytest.mark.parametrize("stream", ["raw", "jsonl"])
def test_a_pipe_that_pauses_returns_the_rows_so_far(stream):
    data, given = STREAMS[stream]
    unit = data if stream == "raw" else data + b"\n"
    ours, theirs = os.pipe()

    def write():
        with os.fdopen(theirs, "wb", buffering=0) as to:
            to.write(unit + unit[:10])
            went_on.wait(20)
            to.write(unit[10:])

    went_on = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(ours, "rb") as pipe, open_vectors(pipe, block=10_000, **given) as source:
        blocks = iter(source)
        assert len(next(blocks)) == 100
        went_on.set()
        assert sum(len(block) for block in blocks) == 100
    writer.join()


def test_a_pipe_of_a_fast_writer_returns_full_blocks():
    ours, theirs = os.pipe()
    data = np.zeros((5000, 64), dtype="<f4").tobytes()

    def write():
        with os.fdopen(theirs, "wb", buffering=0) as to:
            for start in range(0, len(data), 2**14):
                to.write(data[start : start + 2**14])
                time.sleep(0)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(ours, "rb") as pipe:
        assert [len(b) for b in read(pipe, dimension=64, block=1000)] == [1000] * 5
    writer.join()
