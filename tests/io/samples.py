"""Files of vectors of every kind, made from one array."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet

from linkstream.io import open_vectors


def vectors(n=100, dimension=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dimension)).astype(np.float32)


def names(X):
    return [f"photo {row}" for row in range(len(X))]


def table(X, type_=None):
    column = pa.array(list(X), type=type_ or pa.list_(pa.float32()))
    return pa.table({"embedding": column, "file": names(X)})


def _npy(path, X):
    np.save(path, X)


def _npy_fortran(path, X):
    np.save(path, np.asfortranarray(X))


def _npz(path, X):
    np.savez(path, X=X, other=2 * X)


def _npz_packed(path, X):
    np.savez_compressed(path, X=X)


def _npz_fortran(path, X):
    np.savez(path, X=np.asfortranarray(X))


def _raw(path, X):
    X.astype("<f4").tofile(path)


def _parquet(path, X):
    parquet.write_table(table(X), path, row_group_size=17, write_page_checksum=True)


def _parquet_fixed(path, X):
    type_ = pa.list_(pa.float64(), X.shape[1])
    parquet.write_table(table(X.astype(np.float64), type_), path, row_group_size=40)


def _feather(path, X):
    feather.write_feather(table(X), str(path), chunksize=23)


def _arrow_stream(path, X):
    made = table(X, pa.large_list(pa.float32()))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, made.schema) as to:
        to.write_table(made, max_chunksize=19)


def _jsonl(path, X):
    lines = [
        json.dumps({"file": name, "embedding": x.tolist()})
        for name, x in zip(names(X), X, strict=True)
    ]
    path.write_text("\n\n".join(lines) + "\n", "utf-8")


def _jsonl_arrays(path, X):
    path.write_text("".join(json.dumps(x.tolist()) + "\n" for x in X), "utf-8")


def _csv(path, X):
    with path.open("w", newline="") as stream:
        to = csv.writer(stream)
        to.writerow(["file", *(f"x{place}" for place in range(X.shape[1]))])
        to.writerows([name, *x.tolist()] for name, x in zip(names(X), X, strict=True))


def _csv_plain(path, X):
    np.savetxt(path, X, delimiter=", ")


KINDS = {
    "npy": ("v.npy", _npy),
    "npy-fortran": ("v.npy", _npy_fortran),
    "npz": ("v.npz", _npz),
    "npz-packed": ("v.npz", _npz_packed),
    "npz-fortran": ("v.npz", _npz_fortran),
    "raw": ("v.f32", _raw),
    "parquet": ("v.parquet", _parquet),
    "parquet-fixed": ("v.parquet", _parquet_fixed),
    "feather": ("v.feather", _feather),
    "arrow-stream": ("v.arrow", _arrow_stream),
    "jsonl": ("v.jsonl", _jsonl),
    "jsonl-arrays": ("v.jsonl", _jsonl_arrays),
    "csv": ("v.csv", _csv),
    "csv-plain": ("v.csv", _csv_plain),
}
WITH_COLUMNS = ("parquet", "parquet-fixed", "feather", "arrow-stream", "jsonl", "csv")


def options(kind, X=None):
    """Return the options that `open_vectors` needs for a kind of file."""
    dimension = 6 if X is None else X.shape[1]
    return {"raw": {"dimension": dimension}, "csv": {"payload": "file"}}.get(kind, {})


def made(folder: Path, kind, X):
    name, write = KINDS[kind]
    path = folder / name
    write(path, X)
    return path


def read(path, *, skip=0, **given):
    """Return all blocks of a file."""
    with open_vectors(path, **given) as source:
        source.skip(skip)
        return list(source)


def rows(blocks, dimension=6):
    parts = [block.vectors for block in blocks]
    return np.concatenate(parts) if parts else np.empty((0, dimension), dtype=np.float32)
