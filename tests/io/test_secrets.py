"""Test addresses: names are quoted, passwords are not shown, mistakes are reported."""

from __future__ import annotations

import sys
from urllib.parse import urlencode

import pytest
from psycopg import sql
from tests.io.postgres_server import (
    ENCODED,
    OPTIONS,
    PASSWORD,
    WHERE,
    cluster,
    fill,
    labels_of,
    make,
    text,
)

from cli.command import refused, run, run_before_people
from linkstream.errors import ArgumentError, InputFileError, LinkstreamError
from linkstream.io import open_vectors, read_vectors

HOSTILE = "fa\"ces; DROP TABLE faces; -- %s {x} ' é"


def test_names_with_odd_characters_are_quoted(server, db, faces, tmp_path):
    make(db, faces[:30])
    names = [f"{each}{HOSTILE}"[:60] for each in ("table", "column", "order", "payload", "ids")]
    table, column, order, payload, ids = names
    db.execute(
        sql.SQL("CREATE TABLE {} ({} vector(16), {} int PRIMARY KEY, {} text)").format(
            *map(sql.Identifier, (table, column, order, payload))
        )
    )
    for place, vector in enumerate(faces[:30]):
        insert = sql.SQL("INSERT INTO {} VALUES ({}, {}, 'x')")
        db.execute(insert.format(sql.Identifier(table), text(vector), place))
    address = server.address("?" + urlencode({"table": table, "column": column, "order": order}))
    cluster(tmp_path, address, *OPTIONS, "--payload", payload, "--write-back", ids)
    query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
        *map(sql.Identifier, (ids, table, order))
    )
    assert [label for (label,) in db.execute(query)] == labels_of(tmp_path)
    assert db.execute("SELECT count(*) FROM faces").fetchone() == (30,)


def test_missing_tables_and_columns_are_named(server, db, faces):
    make(db, faces[:5])
    for where, seen in (
        ("?table=faces;drop&order=id", "no table 'faces;drop'"),
        ("?table=a.b.c&order=id", "no table 'a.b.c'"),
        ("?table=faces&order=nothing", "no column 'nothing'"),
        ("?table=faces&order=id&column=nothing", "no column 'nothing'"),
        ("?table=faces&order=id&column=file", "is of text"),
        ("?table=faces", "without order"),
        ("?order=id", "without table"),
        ("?tabel=faces&order=id", "without table"),
        ("?table=faces&order=id&colum=x", "'colum'"),
        ("?table=faces&table=b&order=id", "table twice"),
    ):
        with pytest.raises(InputFileError) as error:
            open_vectors(server.address(where))
        assert seen in str(error.value)
        assert "s3cret" not in str(error.value)
    with pytest.raises(InputFileError, match="one of them"):
        open_vectors(server.address(WHERE), column="file")
    with pytest.raises(ArgumentError, match="key"):
        open_vectors(server.address(WHERE), key="X")


def test_a_table_whose_rows_cannot_be_told_apart_is_refused(server, db):
    db.execute("CREATE TABLE faces (id int UNIQUE, embedding vector(16))")  # NULL may repeat
    with pytest.raises(InputFileError, match="no primary key"):
        open_vectors(server.address(WHERE))


def test_rows_of_another_dimension_are_named(server, db, faces):
    db.execute("CREATE TABLE faces (id int PRIMARY KEY, file text, embedding vector)")
    fill(db, faces[:5])
    db.execute("INSERT INTO faces VALUES (5, NULL, '[1, 2]')")
    with (
        open_vectors(server.address(WHERE)) as source,
        pytest.raises(InputFileError, match="row 5 has a vector of dimension 2"),
    ):
        list(source)


ADDRESSES = [
    "postgresql+psycopg://postgres:s3cret@127.0.0.1:PORT/postgres?table=faces&order=id",
    "mysql://root:s3cret@127.0.0.1/people",
    "postgresql://postgres:s3cret@127.0.0.1:PORT/postgres?table=faces&order=id",  # a wrong one
    f"postgresql://postgres:{PASSWORD}@127.0.0.1:PORT/postgres?table=faces&order=id",
    "postgresql://postgres:12/s3cret@127.0.0.1:PORT/postgres?table=faces&order=id",
    "postgresql://postgres:12?s3cret@127.0.0.1:PORT/postgres?table=faces&order=id",
    "postgresql://postgres:12#s3cret@127.0.0.1:PORT/postgres?table=faces&order=id",
    "postgresql://postgres:s3cret%ZZ@127.0.0.1:PORT/postgres?table=faces&order=id",
    "postgresql://postgres:[s3cret@127.0.0.1:PORT/postgres?table=faces&order=id",
    "postgresql:/postgres:s3cret@127.0.0.1:PORT/postgres?table=faces&order=id",
    "postgresql://127.0.0.1:1/postgres?table=faces&order=id&password=s3cret",
    "postgresql://127.0.0.1:PORT/none?table=faces&order=id&user=postgres&password=s3cret",
    f"postgresql://postgres:{ENCODED}@127.0.0.1:PORT/none?table=faces&order=id",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_shows_a_password(server, address, tmp_path):
    address = address.replace("PORT", str(server.port))
    with pytest.raises(LinkstreamError) as error:
        open_vectors(address)
    assert "s3cret" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None
    words = refused(run("cluster", address, "--store", "new.links", *OPTIONS, cwd=tmp_path))
    assert "s3cret" not in words
    for other in (("explain", "new.links", address), ("tune", address)):
        done = run(*other, cwd=tmp_path)
        assert done.returncode != 0
        assert "s3cret" not in done.stdout + done.stderr


def test_no_password_is_in_the_store_or_in_the_output(server, db, faces, tmp_path):
    make(db, faces[:20])
    options = ("--store", "new.links", *OPTIONS, "--write-back", "cluster_id")
    done = run_before_people("cluster", server.address(WHERE), *options, cwd=tmp_path)
    assert "IDs of 20 rows are written back" in done.stdout
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (PASSWORD, ENCODED, "127.0.0.1"):
        assert secret.encode() not in kept
        assert secret == "127.0.0.1" or secret not in done.stdout + done.stderr


def test_an_address_given_as_a_path_is_refused(server):
    with pytest.raises(InputFileError, match="where a file is read") as error:
        read_vectors(server.address(WHERE))
    assert "s3cret" not in str(error.value)


def test_without_the_driver_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"linkstream\[pgvector\]"):
        open_vectors("postgresql://host/people?table=faces&order=id")
