"""Columns of the vectors' own keys and times, in every kind of file that has columns."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linkstream.errors import InputFileError
from linkstream.io import open_vectors
from linkstream.store.blocks import NO_TIME
from linkstream.store.own_columns import check_keys, check_times

N = 40
X = np.random.default_rng(5).standard_normal((N, 6)).astype(np.float32)
KEYS = [f"ticket {i}" if i % 5 else None for i in range(N)]
START = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
AT = [START + timedelta(seconds=i) if i % 7 else None for i in range(N)]
TEXTS = [None if each is None else each.isoformat() for each in AT]
FILES = [f"{i}.jpg" for i in range(N)]


def _lines(path):
    rows = zip(X.tolist(), KEYS, TEXTS, FILES, strict=True)
    names = ("embedding", "ticket", "when", "file")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def _csv(path):
    lines = ["embedding,ticket,when,file"]
    for row, key, at, file in zip(X.tolist(), KEYS, TEXTS, FILES, strict=True):
        lines.append(f'"{row}",{key or ""},{at or ""},{file}')
    path.write_text("\n".join(lines) + "\n")


def _table(when):
    flat = pa.array(X.ravel())
    columns = {
        "embedding": pa.FixedSizeListArray.from_arrays(flat, 6),
        "ticket": KEYS,
        "when": when,
        "file": FILES,
    }
    return pa.table(columns)


def _parquet(path):
    pq.write_table(_table(pa.array(AT, pa.timestamp("ns", tz="Europe/Berlin"))), path)


def _without_zone(path):
    plain = [None if each is None else each.replace(tzinfo=None) for each in AT]
    pq.write_table(_table(pa.array(plain, pa.timestamp("ms"))), path)


def _arrow(path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _table(TEXTS).schema) as writer:
        writer.write_table(_table(TEXTS))


def _seconds(path):
    given = [None if each is None else each.timestamp() for each in AT]
    pq.write_table(_table(given), path)


MADE = {
    "lines.jsonl": _lines,
    "table.csv": _csv,
    "table.parquet": _parquet,
    "plain.parquet": _without_zone,
    "seconds.parquet": _seconds,
    "table.arrow": _arrow,
}


def blocks_of(path, **options):
    with open_vectors(path, id_column="ticket", time_column="when", block=16, **options) as source:
        return list(source)


def right(blocks):
    """Check the keys and times of all blocks."""
    lines, times = [], []
    for block in blocks:
        lines += check_keys(block.ids, len(block))
        times += check_times(block.at, len(block)).tolist()
    assert lines == [(key or "").encode() for key in KEYS]
    told = [None if each == NO_TIME else START.timestamp() * 10**6 for each in times]
    assert [each is None for each in told] == [each is None for each in AT]
    for time, at in zip(times, AT, strict=True):
        assert at is None or time == at.timestamp() * 10**6
    assert np.allclose(np.concatenate([block.vectors for block in blocks]), X)
    return True


@pytest.mark.parametrize("name", MADE)
def test_keys_and_times_are_read_beside_the_payload_and_without(tmp_path, name):
    path = tmp_path / name
    MADE[name](path)
    blocks = blocks_of(path)
    assert right(blocks)
    assert all(block.payloads is None for block in blocks)
    for payload in (["file"], "*"):
        blocks = blocks_of(path, payload=payload)
        assert right(blocks)
        assert [row for block in blocks for row in block.payloads] == [{"file": f} for f in FILES]
    both = [row for block in blocks_of(path, payload=["ticket"]) for row in block.payloads]
    assert [row["ticket"] for row in both] == KEYS


@pytest.mark.parametrize("when", ["texts", "datetime64", "seconds"])
def test_arrays_of_an_archive_hold_keys_and_times(tmp_path, when):
    path = tmp_path / "a.npz"
    given = [START + timedelta(seconds=i) for i in range(N)]
    arrays = {
        "texts": np.array([each.isoformat() for each in given]),
        "datetime64": np.array([each.replace(tzinfo=None) for each in given], "datetime64[ms]"),
        "seconds": np.array([each.timestamp() for each in given]),
    }
    np.savez(path, X=X, ticket=np.array([key or "" for key in KEYS]), when=arrays[when])
    with open_vectors(path, id_column="ticket", time_column="when", block=16) as source:
        source.skip(3)
        blocks = list(source)
    ids = [key for block in blocks for key in check_keys(block.ids, len(block))]
    assert ids == [(key or "").encode() for key in KEYS[3:]]
    times = np.concatenate([check_times(block.at, len(block)) for block in blocks])
    assert times.tolist() == [round(each.timestamp() * 10**6) for each in given[3:]]


def test_arrays_of_other_shapes_and_kinds_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    for ticket in (np.arange(3), X, np.array([None] * N, dtype=object)):
        np.savez(path, X=X, ticket=ticket)
        with pytest.raises(InputFileError, match="one text, number or datetime64"):
            open_vectors(path, id_column="ticket")
    with pytest.raises(InputFileError, match="no array 'other'"):
        open_vectors(path, id_column="other")


@pytest.mark.parametrize("name", ["table.parquet", "table.csv", "table.arrow"])
def test_a_column_that_is_not_there_is_refused(tmp_path, name):
    path = tmp_path / name
    MADE[name](path)
    for payload in ((), "*", ["file"]):
        with pytest.raises(InputFileError, match=r"no .*column 'number'"):
            open_vectors(path, id_column="number", payload=payload)


def test_files_without_columns_have_no_keys(tmp_path):
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(InputFileError, match="a file with columns"):
        open_vectors(tmp_path / "a.npy", id_column="ticket")


def test_whole_numbers_are_keys_by_their_digits(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"vector": [1, 0], "n": 17}\n{"vector": [0, 1], "n": null}\n')
    with open_vectors(path, id_column="n") as source:
        assert next(iter(source)).ids == ["17", None]
