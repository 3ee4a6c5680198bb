"""Stores written by each release open, are found sound, and go on with the same IDs."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from golden.make import STORES, expected
from golden.make import main as make
from linkstream.errors import StoreError
from linkstream.store import Store

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.links.gz"))


@pytest.fixture(params=FILES, ids=lambda file: f"{file.parent.name}-{file.name.split('.')[0]}")
def golden(request):
    return request.param


def copied(golden, tmp_path):
    path = tmp_path / "people.links"
    path.write_bytes(gzip.decompress(golden.read_bytes()))
    return path


def right(golden):
    name = golden.name.removesuffix(".links.gz")
    return json.loads(golden.with_name(f"{name}.json").read_text(encoding="utf-8"))


def test_there_are_golden_stores_of_each_kind():
    folders = {file.parent for file in FILES}
    assert folders
    for folder in folders:
        found = {file.name for file in FILES if file.parent == folder}
        assert found >= {f"{name}.links.gz" for name in ("plain", "corrected", "compacted")}
    assert all(file.stat().st_size < 100_000 for file in FILES)


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_a_golden_store_opens_is_sound_and_goes_on_with_the_same_ids(golden, tmp_path, engine):
    with Store.open(copied(golden, tmp_path), engine=engine, threads=1) as store:
        store.verify()
        assert expected(store) == right(golden)
        store.verify()


def test_a_golden_store_can_be_read_without_being_changed(golden, tmp_path):
    path = copied(golden, tmp_path)
    data = path.read_bytes()
    with Store.open(path, read_only=True) as store:
        assert store.state_hash() == right(golden)["state_hash"]
        store.verify()
    assert path.read_bytes() == data


@pytest.mark.parametrize("version", [907, 0, -3])
def test_a_format_that_this_version_does_not_know_is_refused_with_its_number(
    golden, tmp_path, version
):
    path = copied(golden, tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    data = path.read_bytes()
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreError, match=f"format {version}"):
            Store.open(path, **options)
    assert path.read_bytes() == data


def test_what_this_version_writes_answers_as_its_golden_stores_do(tmp_path):
    """The script is sound, and runs to the same answers; the bytes may differ."""
    make(tmp_path / "now")
    for name in STORES:
        now = json.loads((tmp_path / "now" / f"{name}.json").read_text(encoding="utf-8"))
        assert now == json.loads((HERE / "0.1" / f"{name}.json").read_text(encoding="utf-8"))
