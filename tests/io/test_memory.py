"""Test that reading needs the memory of one block, measured in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from linkstream.io import open_vectors, write_table

N, DIMENSION = 120_000, 256  # 117 MiB as float32
SIZE = 4 * N * DIMENSION
BOUND = 40 * 2**20

READ = """
import json, resource, sys
import linkstream.io
from linkstream.io.arrow_files import arrow
path, options = sys.argv[1], json.loads(sys.argv[2])
if path.endswith((".parquet", ".feather")):
    arrow("pyarrow.parquet"), arrow("pyarrow.ipc")
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
with linkstream.io.open_vectors(path, **options) as source:
    source.skip(7)
    rows = sum(len(block) for block in source)
print(json.dumps([rows, peak() - before]))
"""


def blocks():
    rng = np.random.default_rng(0)
    for _ in range(0, N, 2000):
        yield {"embedding": rng.integers(-9, 9, (2000, DIMENSION)).astype(np.float32)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("big")


def write_npy(path):
    to = np.lib.format.open_memmap(path, "w+", np.float32, (N, DIMENSION))
    for place, block in enumerate(blocks()):
        to[2000 * place : 2000 * (place + 1)] = block["embedding"]


def write_raw(path):
    with path.open("wb") as stream:
        for block in blocks():
            stream.write(block["embedding"].tobytes())


def write_parquet(path):
    """Write all rows as one row group, as some programs do."""
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(np.concatenate([block["embedding"].ravel() for block in blocks()])), DIMENSION
    )
    parquet.write_table(
        pa.table({"embedding": column}), path, row_group_size=N, use_dictionary=False
    )


def write_lines(path):
    with path.open("w") as stream:
        for block in list(blocks())[:6]:
            stream.writelines(json.dumps(row) + "\n" for row in block["embedding"].tolist())


@pytest.mark.parametrize(
    ("name", "write", "options"),
    [
        ("v.npy", write_npy, {}),
        ("v.f32", write_raw, {"dimension": DIMENSION}),
        ("v.npz", lambda path: write_table(path, blocks()), {"key": "embedding"}),
        ("v.parquet", write_parquet, {}),
    ],
    ids=["npy", "raw", "npz", "parquet"],
)
def test_a_big_file_is_read_in_the_memory_of_a_block(folder, name, write, options):
    write(folder / name)
    given = [str(folder / name), json.dumps(options)]
    done = subprocess.run(
        [sys.executable, "-c", READ, *given], capture_output=True, text=True, check=True
    )
    (folder / name).unlink()
    rows, grown = json.loads(done.stdout)
    assert rows == N - 7
    assert grown < BOUND < SIZE / 2


def test_a_block_of_long_vectors_has_fewer_rows(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((400, 2**16), dtype=np.float16))
    with open_vectors(tmp_path / "v.npy", block=400) as source:
        assert [len(block) for block in source] == [128, 128, 128, 16]
