"""Test vectors of a PostgreSQL table: order, adding rows once, writing IDs back."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import psycopg
import pytest
from tests.io.postgres_server import (
    ENCODED,
    OPTIONS,
    THREE,
    WHERE,
    cluster,
    fill,
    labels_of,
    make,
    text,
    written,
)

from cli.command import COMMAND, refused, run
from linkstream import Links
from linkstream.errors import InputFileError, NotTrackedError
from linkstream.io import DatabaseSource, open_vectors
from linkstream.store import Store


def versions(db):
    return db.execute("SELECT id, xmin::text FROM faces ORDER BY id").fetchall()


# Reading


def test_rows_come_in_the_stated_order_in_blocks_with_their_payload(server, db, faces):
    make(db, faces)
    with open_vectors(server.address(WHERE), payload=["file"], block=1000) as source:
        assert (source.kind, source.n) == ("postgresql", 2500)
        blocks = list(source)
    assert [(block.first_row, len(block)) for block in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 500),
    ]
    np.testing.assert_array_equal(np.concatenate([block.vectors for block in blocks]), faces)
    assert blocks[1].payloads[7] == {"file": "1007.jpg"}


def test_a_source_can_skip_rows(server, db, faces):
    make(db, faces)
    with open_vectors(server.address(WHERE)) as source:
        source.skip(2400)
        (block,) = source
        assert block.first_row == 2400
        np.testing.assert_array_equal(block.vectors, faces[2400:])
    with (
        open_vectors(server.address(WHERE)) as source,
        pytest.raises(InputFileError, match="2500 rows"),
    ):
        source.skip(2501)


@pytest.mark.parametrize("kind", ["vector", "halfvec(16)", "real[]", "double precision[]"])
def test_every_type_of_vector_column_is_read(server, db, faces, kind):
    db.execute(f"CREATE TABLE faces (id int PRIMARY KEY, file text, embedding {kind})")
    for place, vector in enumerate(faces[:20]):
        given = vector.tolist() if "[]" in kind else text(vector)
        db.execute("INSERT INTO faces VALUES (%s, NULL, %s)", (place, given))
    with open_vectors(server.address("?table=faces&order=id")) as source:
        (block,) = source
    np.testing.assert_allclose(block.vectors, faces[:20], rtol=1e-3)


def test_rows_without_a_vector_are_skipped(server, db, faces):
    make(db, faces[:10])
    db.execute("UPDATE faces SET embedding = NULL WHERE id IN (3, 9)")
    with open_vectors(server.address(WHERE), payload=["id"]) as source:
        assert source.n == 8
        (block,) = source
    assert [each["id"] for each in block.payloads] == [0, 1, 2, 4, 5, 6, 7, 8]


def test_rows_that_tie_are_sorted_by_their_key(server, db, faces):
    make(db, faces[:100])
    db.execute("ALTER TABLE faces ADD COLUMN day int")
    db.execute("UPDATE faces SET day = id % 3")
    with open_vectors(server.address("?table=faces&order=day"), payload=["id"]) as source:
        (block,) = source
    assert [each["id"] for each in block.payloads] == sorted(range(100), key=lambda i: (i % 3, i))


def test_null_in_the_order_is_refused_before_a_row_is_read(server, db, faces, tmp_path):
    make(db, faces[:100])
    db.execute("ALTER TABLE faces ADD COLUMN day int, ADD COLUMN hour int DEFAULT 7")
    db.execute("UPDATE faces SET day = id WHERE id NOT IN (5, 6, 99)")
    for order, column in (("day", "day"), ("hour,day", "day")):
        done = run(
            *("cluster", server.address(f"?table=faces&order={order}"), "--store", "new.links"),
            *(*OPTIONS, "--write-back", "cluster_id"),
            cwd=tmp_path,
        )
        words = refused(done)
        assert "3 of 100 rows" in words
        assert f"NULL in '{column}'" in words
        assert not (tmp_path / "new.links").exists()
    db.execute("UPDATE faces SET embedding = NULL WHERE day IS NULL")  # such rows are skipped
    address = server.address("?table=faces&order=day")
    assert cluster(tmp_path, address, *OPTIONS)["taken"] == 97
    db.execute("UPDATE faces SET day = 99, embedding = %s WHERE id = 99", (text(faces[99]),))
    assert cluster(tmp_path, address)["taken"] == 1


def test_payloads_hold_what_json_has_and_all_else_as_text(server, db, faces):
    make(db, faces[:1])
    db.execute(
        "ALTER TABLE faces ADD COLUMN t timestamp DEFAULT '2024-05-06 07:08', "
        "ADD COLUMN p numeric DEFAULT 1.50, ADD COLUMN f float8 DEFAULT 'NaN', "
        "ADD COLUMN j jsonb DEFAULT '{\"a\": [1]}', ADD COLUMN b boolean DEFAULT true, "
        "ADD COLUMN w text[] DEFAULT '{x,y}', ADD COLUMN i inet DEFAULT '10.0.0.1'"
    )
    with open_vectors(server.address(WHERE), payload="*") as source:
        (block,) = source
    (row,) = block.payloads
    assert (row["t"], row["p"], row["i"]) == ("2024-05-06 07:08:00", "1.50", "10.0.0.1/32")
    assert (row["f"], row["j"], row["b"], row["w"]) == (None, {"a": [1]}, True, ["x", "y"])


def test_all_rows_are_of_one_snapshot(server, db, faces):
    make(db, faces[:2000])
    with open_vectors(server.address(WHERE), block=500) as source:
        blocks = iter(source)
        got = [next(blocks).vectors]
        db.execute("DELETE FROM faces WHERE id > 700")
        got += [block.vectors for block in blocks]
    np.testing.assert_array_equal(np.concatenate(got), faces[:2000])


PEAK = """
import resource, sys
from linkstream.io import open_vectors
peaks = []
with open_vectors(sys.argv[1]) as source:
    for block in source:
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(len(peaks), peaks[-1] - peaks[3])
"""


def test_memory_does_not_grow_with_the_table(server, db):
    db.execute("CREATE TABLE faces (id int PRIMARY KEY, embedding vector(512))")
    db.execute(
        "INSERT INTO faces SELECT i, array_fill(i::real, ARRAY[512])::vector "
        "FROM generate_series(1, 40000) i"
    )  # 80 MB
    words = [sys.executable, "-c", PEAK, server.address(WHERE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    blocks, grown = map(int, done.stdout.split())
    assert blocks == 40
    assert grown < 8 * 1024  # of kilobytes


def test_a_lost_connection_is_reported(server, db, faces):
    make(db, faces)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
    with open_vectors(server.address(WHERE), block=100) as source:
        blocks = iter(source)
        next(blocks)
        db.execute(ended, ("linkstream",))
        with pytest.raises(InputFileError, match="the same command continues"):
            list(blocks)


# Each row once


def test_a_store_equals_the_clusterer_and_running_the_command_again_adds_nothing(
    server, db, faces, tmp_path
):
    make(db, faces)
    record = cluster(tmp_path, server.address(WHERE), *OPTIONS, "--payload", "file")
    links = Links(*THREE)
    links.add_many(faces)
    assert (record["rows"], record["taken"]) == (2500, 2500)
    assert labels_of(tmp_path) == links.labels().tolist()
    again = cluster(tmp_path, server.address(WHERE).replace("127.0.0.1", "localhost"))
    assert (again["rows"], again["taken"]) == (2500, 0)
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        assert store.payloads([1234])[0] == {"file": "1234.jpg"}


def test_new_rows_at_the_end_are_added(server, db, faces, tmp_path):
    make(db, faces[:10])
    for before, rows in ((0, 10), (10, 1500), (1500, 1501), (1501, 2500)):
        if before:
            fill(db, faces[before:rows], first=before)
        record = cluster(tmp_path, server.address(WHERE), *OPTIONS)
        assert (record["there_before"], record["taken"]) == (before, rows - before)
    links = Links(*THREE)
    links.add_many(faces)
    assert labels_of(tmp_path) == links.labels().tolist()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE faces SET embedding = embedding + embedding WHERE id = 3",
        "UPDATE faces SET embedding = embedding + embedding WHERE id = 1200",
        "DELETE FROM faces WHERE id = 1200",
        "DELETE FROM faces WHERE id >= 1024",
        "INSERT INTO faces SELECT -1, 'new', embedding FROM faces WHERE id = 7",
    ],
)
def test_changed_rows_are_reported_and_nothing_is_added(server, db, faces, tmp_path, change):
    make(db, faces[:1500])
    cluster(tmp_path, server.address(WHERE), *OPTIONS)
    db.execute(change)
    words = refused(run("cluster", server.address(WHERE), "--store", "new.links", cwd=tmp_path))
    assert "1,500 rows were taken before" in words
    assert len(labels_of(tmp_path)) == 1500
    record = cluster(tmp_path, server.address(WHERE), "--source", "again")
    assert record["there_before"] == 0
    assert record["taken"] == record["rows"]


def test_without_a_store_rows_pass_through(server, db, faces, tmp_path):
    make(db, faces[:1500])
    done = run("cluster", server.address(WHERE), *OPTIONS, "--output", "ids.npy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ids = np.load(tmp_path / "ids.npy", allow_pickle=False)
    np.testing.assert_array_equal(ids, Links(*THREE).add_many(faces[:1500]))


def test_two_tables_can_be_added_to_one_store(server, db, faces, tmp_path):
    make(db, faces[:500])
    db.execute("CREATE TABLE others (LIKE faces INCLUDING ALL)")
    fill(db, faces[500:800], table="others")
    cluster(tmp_path, server.address(WHERE), *OPTIONS)
    record = cluster(tmp_path, server.address("?table=public.others&order=id"))
    assert (record["taken"], record["vectors"]) == (300, 800)


# Writing back


def test_current_ids_are_written_to_a_new_column_and_again_after_corrections(
    server, db, faces, tmp_path
):
    make(db, faces)
    options = ("--write-back", "cluster_id")
    record = cluster(tmp_path, server.address(WHERE), *OPTIONS, *options)
    assert record["written_back"] == 2500
    assert written(db) == labels_of(tmp_path)
    with Store.open(tmp_path / "new.links") as store:
        one, other = sorted(set(written(db)))[:2]
        store.same(one, other, of="clusters")
        store.forget(sorted(set(store.labels().tolist()))[-1])
    record = cluster(tmp_path, server.address(WHERE), *options)
    assert record["taken"] == 0
    now = labels_of(tmp_path)
    assert written(db) == [None if label < 0 else label for label in now]
    assert -1 in now
    assert other not in now


def test_ids_that_are_already_written_are_not_written_again(server, db, faces, tmp_path):
    make(db, faces[:1500])
    cluster(tmp_path, server.address(WHERE), *OPTIONS, "--write-back", "cluster_id")
    before = versions(db)
    cluster(tmp_path, server.address(WHERE), "--write-back", "cluster_id")
    assert versions(db) == before


def test_undone_rows_are_added_again_and_get_their_own_ids(server, db, faces, tmp_path):
    make(db, faces[:50])
    cluster(tmp_path, server.address(WHERE), *OPTIONS)
    with Store.open(tmp_path / "new.links") as store:
        for _ in range(10):
            store.undo()
        store.add_many(-faces[:10])
    record = cluster(tmp_path, server.address(WHERE), "--write-back", "cluster_id")
    assert (record["there_before"], record["taken"], record["vectors"]) == (40, 10, 60)
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        labels = store.labels().tolist()
    assert written(db) == [*labels[:40], *labels[50:]]


def test_rows_are_found_by_keys_of_several_columns_and_odd_types(server, db, faces, tmp_path):
    db.execute("""CREATE TYPE "odd %s ""kind" AS ENUM ('b', 'a')""")
    db.execute(
        """CREATE TABLE faces (who uuid, what "odd %s ""kind", at timestamptz, id int,
        embedding vector(16), PRIMARY KEY (who, what, at))"""
    )
    for place, vector in enumerate(faces[:60]):
        db.execute(
            "INSERT INTO faces VALUES (gen_random_uuid(), %s, clock_timestamp(), %s, %s)",
            ("ab"[place % 2], place, text(vector)),
        )
    cluster(tmp_path, server.address(WHERE), *OPTIONS, "--write-back", "cluster_id")
    assert written(db) == labels_of(tmp_path)
    db.execute('DROP TABLE faces; DROP TYPE "odd %s ""kind"'.replace("%s", "%s"))


def test_ids_are_written_back_from_a_compacted_store(server, db, faces, tmp_path):
    make(db, faces[:1500])
    cluster(tmp_path, server.address(WHERE), *OPTIONS)
    with Store.open(tmp_path / "new.links") as store:
        store.forget(int(store.labels()[0]))
        store.compact()
    record = cluster(tmp_path, server.address(WHERE), "--write-back", "cluster_id")
    assert record["taken"] == 0
    assert written(db) == [None if label < 0 else label for label in labels_of(tmp_path)]
    assert None in written(db)


def test_a_user_who_may_not_write_is_refused_before_any_work(server, db, faces, tmp_path):
    make(db, faces[:20])
    db.execute("ALTER TABLE faces ADD COLUMN cluster_id bigint")
    db.execute("DROP ROLE IF EXISTS reader")
    db.execute("CREATE ROLE reader LOGIN PASSWORD 's3cret'")
    db.execute("GRANT SELECT ON faces TO reader")
    address = server.address(WHERE).replace(f"postgres:{ENCODED}", "reader:s3cret")
    assert cluster(tmp_path, address, *OPTIONS)["taken"] == 20
    for field, seen in (("cluster_id", "may not change"), ("other", "must be owner")):
        done = run("cluster", address, "--store", "b.links", "--write-back", field, cwd=tmp_path)
        assert seen in refused(done)
    assert not (tmp_path / "b.links").exists()
    db.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.parametrize("field", ["file", "id", "embedding"])
def test_a_column_of_another_type_is_refused_before_any_work(server, db, faces, tmp_path, field):
    make(db, faces[:20])
    done = run(
        *("cluster", server.address(WHERE), "--store", "new.links", *OPTIONS),
        *("--write-back", field),
        cwd=tmp_path,
    )
    assert f"column '{field}'" in refused(done)
    assert not (tmp_path / "new.links").exists()


def test_writing_back_needs_a_database_a_store_and_rows_that_are_known(server, db, faces, tmp_path):
    make(db, faces[:20])
    np.save(tmp_path / "faces.npy", faces[:20])
    back = ("--write-back", "cluster_id")
    store = ("--store", "new.links")
    address = server.address(WHERE)
    assert "a store" in refused(run("cluster", address, *OPTIONS, *back, cwd=tmp_path))
    done = run("cluster", "faces.npy", *store, *OPTIONS, *back, cwd=tmp_path)
    assert "a file" in refused(done)
    done = run("cluster", address, *store, *OPTIONS, *back, "--live", cwd=tmp_path)
    assert "--live" in refused(done)
    done = run("cluster", address, *store, *OPTIONS, *back, "--no-track", cwd=tmp_path)
    assert done.returncode != 0
    assert written(db) == [None] * 20


def test_the_library_writes_ids_back(server, db, faces):
    make(db, faces[:1200])
    links = Links(*THREE)
    with open_vectors(server.address(WHERE)) as source:
        assert isinstance(source, DatabaseSource)
        source.prepare("person")
        for block in source:
            links.add_many(block.vectors)
        assert list(source.write_back(links.labels())) == [1000, 1200]
    assert written(db, "person") == links.labels().tolist()
    with (
        open_vectors(server.address(WHERE)) as source,
        pytest.raises(NotTrackedError, match="prepare"),
    ):
        list(source.write_back(links.labels()))


def test_the_column_of_the_ids_is_not_part_of_the_payload(server, db, faces, tmp_path):
    make(db, faces[:20])
    for _ in range(2):
        cluster(
            *(tmp_path, server.address(WHERE), *OPTIONS, "--payload", "*"),
            *("--write-back", "cluster_id"),
        )
    cluster(
        *(tmp_path, server.address(WHERE), "--payload", "*", "--source", "again"),
        *("--write-back", "cluster_id"),
    )
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        assert store.payloads([0])[0] == store.payloads([20])[0] == {"id": 0, "file": "0.jpg"}


def test_the_same_command_completes_ids_after_a_kill(server, db, faces, tmp_path):
    make(db, faces)
    address = server.address(WHERE)
    cluster(tmp_path, address, *OPTIONS, "--write-back", "cluster_id")
    db.execute("UPDATE faces SET cluster_id = NULL")
    with psycopg.connect(server.address()) as other:  # holds a row of the second thousand
        other.execute("SELECT 1 FROM faces WHERE id = 1500 FOR UPDATE")
        words = [*COMMAND, "cluster", address, "--store", "new.links", "--write-back", "cluster_id"]
        process = subprocess.Popen(words, cwd=tmp_path, stdout=-1, stderr=-1)
        while written(db)[999] is None:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.kill()
        process.communicate()
    assert written(db)[1500] is None
    cluster(tmp_path, address, "--write-back", "cluster_id")
    assert written(db) == labels_of(tmp_path)
