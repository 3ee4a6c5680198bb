"""Test vectors of a Qdrant collection: order, adding points once, writing IDs back."""

from __future__ import annotations

import json
import sys
import threading
import uuid
from contextlib import closing
from http.server import HTTPServer

import numpy as np
import pytest
from qdrant_client import QdrantClient, models
from tests.io.qdrant_server import Server

from cli.command import refused, run
from linkstream import Links
from linkstream.errors import InputFileError, LinkstreamError
from linkstream.io import open_vectors
from linkstream.io import qdrant as reading
from linkstream.store import Store

THREE = (0.8, 0.7, 0.85)
OPTIONS = (
    *("--cluster-similarity", THREE[0]),
    *("--subcluster-similarity", THREE[1]),
    *("--pair-similarity-max", THREE[2]),
)
pytestmark = pytest.mark.usefixtures("quick_qdrant")
PLAIN = models.VectorParams(size=16, distance=models.Distance.DOT)


@pytest.fixture(scope="module")
def faces():
    """Return 400 vectors of 30 people."""
    rng = np.random.default_rng(5)
    people = rng.standard_normal((30, 16))
    noise = rng.standard_normal((400, 16)) * 0.25
    return (people[rng.integers(0, 30, 400)] + noise).astype(np.float32)


def fill(folder, vectors, *, first=0, key=lambda place: place, config=PLAIN, name=None):
    """Insert points in another order than that of their numbers."""
    with closing(QdrantClient(path=str(folder))) as client:
        if not client.collection_exists("faces"):
            client.create_collection("faces", vectors_config=config)
        places = np.random.default_rng(0).permutation(len(vectors)).tolist()
        points = [
            models.PointStruct(
                id=key(first + place),
                vector=vectors[place].tolist() if name is None else {name: vectors[place].tolist()},
                payload={"file": f"{first + place}.jpg", "time": first + place},
            )
            for place in places
        ]
        client.upsert("faces", points)


def payloads(folder):
    """Return the field of all points, ordered by time."""
    with closing(QdrantClient(path=str(folder))) as client:
        points, _ = client.scroll("faces", limit=10_000)
    return sorted((point.payload for point in points), key=lambda payload: payload["time"])


def written(folder):
    return [payload.get("cluster_id") for payload in payloads(folder)]


def cluster(folder, address, *options):
    done = run("cluster", address, "--store", "new.links", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def labels_of(folder):
    with Store.open(folder / "new.links", read_only=True) as store:
        return store.labels().tolist()


def as_uuid(place):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(place)))


# Reading


def test_points_are_read_by_id_in_blocks_with_their_payload(tmp_path, faces):
    fill(tmp_path / "q", faces)
    with open_vectors(f"qdrant://{tmp_path}/q", payload=["file"], block=150) as source:
        assert source.kind == "qdrant"
        blocks = list(source)
    assert [(b.first_row, len(b)) for b in blocks] == [(0, 150), (150, 150), (300, 100)]
    np.testing.assert_array_equal(np.concatenate([b.vectors for b in blocks]), faces)
    assert blocks[1].payloads[7] == {"file": "157.jpg"}


def test_a_source_can_skip_rows(tmp_path, faces):
    fill(tmp_path / "q", faces[:100])
    with open_vectors(f"qdrant://{tmp_path}/q") as source:
        source.skip(90)
        (block,) = source
    assert block.first_row == 90
    np.testing.assert_array_equal(block.vectors, faces[90:100])


def test_points_are_read_in_the_order_of_a_field(tmp_path, faces):
    fill(tmp_path / "q", faces[:300], key=as_uuid)
    address = f"qdrant://{tmp_path}/q?collection=faces&order=time"
    with open_vectors(address, payload="*", block=70) as source:
        blocks = list(source)
    np.testing.assert_array_equal(np.concatenate([b.vectors for b in blocks]), faces[:300])
    assert blocks[0].payloads[3] == {"file": "3.jpg", "time": 3}


def test_points_that_tie_are_sorted_by_id_and_read_once(tmp_path, faces, monkeypatch):
    fill(tmp_path / "q", faces[:200])
    with closing(QdrantClient(path=str(tmp_path / "q"))) as client:
        for day in range(3):
            those = [place for place in range(200) if place % 3 == day]
            client.set_payload("faces", {"day": day}, points=those)
    expected = sorted(range(200), key=lambda place: (place % 3, place))
    address = f"qdrant://{tmp_path}/q?order=day"
    for block in (7, 67, 1024):
        with open_vectors(address, payload=["time"], block=block) as source:
            got = [each["time"] for part in source for each in part.payloads]
        assert got == expected
    monkeypatch.setattr(reading, "TIES_MAX", 20)
    with (
        open_vectors(address, block=10) as source,
        pytest.raises(InputFileError, match="one value"),
    ):
        list(source)


def test_a_point_with_several_values_of_the_order_is_refused(tmp_path, faces):
    fill(tmp_path / "q", faces[:5])
    with closing(QdrantClient(path=str(tmp_path / "q"))) as client:
        client.set_payload("faces", {"time": [1, 7]}, points=[2])
    told = pytest.raises(InputFileError, match="no single value of 'time' for point 2")
    with open_vectors(f"qdrant://{tmp_path}/q?order=time") as source, told:
        list(source)


def test_a_typo_in_the_order_is_refused_instead_of_reading_no_point(tmp_path, faces):
    fill(tmp_path / "q", faces[:160])
    address = f"qdrant://{tmp_path}/q?order=tmie"
    words = refused(run("cluster", address, "--store", "new.links", *OPTIONS, cwd=tmp_path))
    assert "160 of 160 points" in words
    assert "'tmie'" in words
    assert "'file', 'time'" in words
    assert not (tmp_path / "new.links").exists()


@pytest.mark.parametrize("value", [None, [], "noon", True, {"at": 1}])
def test_points_that_cannot_be_ordered_are_refused_before_a_row_is_read(tmp_path, faces, value):
    fill(tmp_path / "q", faces[:20])
    with closing(QdrantClient(path=str(tmp_path / "q"))) as client:
        client.set_payload("faces", {"time": value}, points=[3, 9])
    with pytest.raises(InputFileError, match=r"2 of 20 points .* 'time'.* point 3 has"):
        open_vectors(f"qdrant://{tmp_path}/q?order=time")
    with open_vectors(f"qdrant://{tmp_path}/q") as source:  # the order by ID needs no value
        assert sum(map(len, source)) == 20


def test_times_written_as_text_are_an_order(tmp_path, faces):
    fill(tmp_path / "q", faces[:30])
    with closing(QdrantClient(path=str(tmp_path / "q"))) as client:
        for place in range(30):
            day = f"2024-05-{30 - place:02}T00:00:00Z"
            client.set_payload("faces", {"day": day}, points=[place])
    with open_vectors(f"qdrant://{tmp_path}/q?order=day", payload=["time"]) as source:
        (block,) = source
    assert [each["time"] for each in block.payloads] == [*range(29, -1, -1)]


def test_a_point_without_the_vector_that_is_read_needs_no_value_of_the_order(tmp_path, faces):
    fill(tmp_path / "q", faces[:20], config={"face": PLAIN, "voice": PLAIN}, name="face")
    fill(tmp_path / "q", faces[20:30], first=20, name="voice")
    with closing(QdrantClient(path=str(tmp_path / "q"))) as client:
        client.delete_payload("faces", ["time"], points=[22, 27])
    with open_vectors(f"qdrant://{tmp_path}/q?order=time&column=face") as source:
        assert sum(map(len, source)) == 20
    with pytest.raises(InputFileError, match="2 of 30 points"):
        open_vectors(f"qdrant://{tmp_path}/q?order=time&column=voice")


def test_points_that_were_counted_but_not_returned_raise(tmp_path, faces, monkeypatch):
    fill(tmp_path / "q", faces[:30])
    scroll = QdrantClient.scroll

    def without_the_last(self, *arguments, **options):  # as an index that is not complete does
        page, after = scroll(self, *arguments, **options)
        return [point for point in page if point.id < 27], after

    monkeypatch.setattr(QdrantClient, "scroll", without_the_last)
    told = pytest.raises(InputFileError, match="gave 27 points by 'time', and 3 points")
    with open_vectors(f"qdrant://{tmp_path}/q?order=time") as source, told:
        list(source)


def test_a_vector_is_chosen_by_name_and_points_without_it_are_skipped(tmp_path, faces):
    fill(tmp_path / "q", faces[:20], config={"face": PLAIN, "voice": PLAIN}, name="face")
    fill(tmp_path / "q", faces[20:30], first=20, name="voice")
    with pytest.raises(InputFileError, match="several vectors"):
        open_vectors(f"qdrant://{tmp_path}/q")
    with pytest.raises(InputFileError, match="'hand'"):
        open_vectors(f"qdrant://{tmp_path}/q?column=hand")
    for words in ({"column": "voice"}, {}):
        rest = "" if words else "?column=voice"
        with open_vectors(f"qdrant://{tmp_path}/q{rest}", **words) as source:
            (block,) = source
        np.testing.assert_array_equal(block.vectors, faces[20:30])


# Each row once, and IDs back


def test_each_point_is_added_once_and_new_points_at_the_end_are_added(tmp_path, faces):
    address = f"qdrant://{tmp_path}/q?order=time"
    for before, rows in ((0, 10), (10, 300), (300, 400)):
        fill(tmp_path / "q", faces[before:rows], first=before, key=as_uuid)
        for fresh in (rows - before, 0):
            record = cluster(tmp_path, address, *OPTIONS, "--payload", "file")
            assert (record["rows"], record["taken"]) == (rows, fresh)
    links = Links(*THREE)
    links.add_many(faces)
    assert labels_of(tmp_path) == links.labels().tolist()
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        assert store.payloads([234])[0] == {"file": "234.jpg"}


def test_changed_points_are_reported_and_nothing_is_added(tmp_path, faces):
    fill(tmp_path / "q", faces[:50])
    address = f"qdrant://{tmp_path}/q"
    cluster(tmp_path, address, *OPTIONS)
    fill(tmp_path / "q", -faces[7:8], first=7)
    words = refused(run("cluster", address, "--store", "new.links", cwd=tmp_path))
    assert "50 rows were taken before" in words
    assert len(labels_of(tmp_path)) == 50


def test_current_ids_are_written_to_a_field_and_again_after_corrections(tmp_path, faces):
    fill(tmp_path / "q", faces[:300], key=as_uuid)
    address = f"qdrant://{tmp_path}/q?order=time"
    back = ("--write-back", "cluster_id")
    record = cluster(tmp_path, address, *OPTIONS, *back, "--payload", "*")
    assert record["written_back"] == 300
    assert written(tmp_path / "q") == labels_of(tmp_path)
    with Store.open(tmp_path / "new.links") as store:
        one, other = sorted(set(store.labels().tolist()))[:2]
        store.same(one, other, of="clusters")
        store.forget(sorted(set(store.labels().tolist()))[-1])
    assert cluster(tmp_path, address, *back)["taken"] == 0
    now = labels_of(tmp_path)
    assert written(tmp_path / "q") == [None if label < 0 else label for label in now]
    assert -1 in now
    assert payloads(tmp_path / "q")[3] == {"file": "3.jpg", "time": 3, "cluster_id": now[3]}
    with Store.open(tmp_path / "new.links", read_only=True) as store:
        assert store.payloads([3])[0] == {"file": "3.jpg", "time": 3}


def test_ids_that_are_already_written_are_not_written_again(tmp_path, faces, monkeypatch):
    fill(tmp_path / "q", faces[:50])
    address, back = f"qdrant://{tmp_path}/q", ("--write-back", "cluster_id")
    cluster(tmp_path, address, *OPTIONS, *back)
    before = written(tmp_path / "q")
    monkeypatch.delattr(QdrantClient, "batch_update_points")
    cluster(tmp_path, address, *back)
    assert written(tmp_path / "q") == before


def test_a_point_deleted_meanwhile_is_skipped(tmp_path, faces):
    fill(tmp_path / "q", faces[:50])
    links = Links(*THREE)
    with open_vectors(f"qdrant://{tmp_path}/q") as source:
        source.prepare("cluster_id")
        for block in source:
            links.add_many(block.vectors)
        source.reader.client.delete("faces", [7])
        assert list(source.write_back(links.labels())) == [50]
    expected = np.delete(links.labels(), 7).tolist()
    assert written(tmp_path / "q") == expected


@pytest.mark.parametrize("field", ["file", "time", "a.b", "a b", ""])
def test_a_field_of_another_type_is_refused_and_nothing_is_written(tmp_path, faces, field):
    fill(tmp_path / "q", faces[:20])
    before = payloads(tmp_path / "q")
    done = run(
        *("cluster", f"qdrant://{tmp_path}/q?order=time", "--store", "new.links", *OPTIONS),
        *("--write-back", field),
        cwd=tmp_path,
    )
    refused(done)
    assert payloads(tmp_path / "q") == before


# Addresses and secrets


@pytest.mark.parametrize(
    ("rest", "seen"),
    [
        ("/none", "no folder of Qdrant's"),
        ("/q?collection=other", "no collection 'other'"),
        ("/q?colection=faces", "'colection'"),
        ("/q?order=a.b", "'a.b'"),
    ],
)
def test_missing_collections_and_folders_are_named_and_not_created(tmp_path, faces, rest, seen):
    fill(tmp_path / "q", faces[:5])
    with pytest.raises(InputFileError) as error:
        open_vectors(f"qdrant://{tmp_path}{rest}")
    assert seen in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q"]


# If the folder is in use, the client leaves its lock file open until garbage collection.
@pytest.mark.filterwarnings("ignore:unclosed file .*lock:ResourceWarning")
@pytest.mark.filterwarnings(
    "ignore:Exception ignored.*lock:pytest.PytestUnraisableExceptionWarning"
)
def test_a_folder_in_use_is_reported(tmp_path, faces):
    fill(tmp_path / "q", faces[:5])
    with closing(QdrantClient(path=str(tmp_path / "q"))), pytest.raises(LinkstreamError):
        open_vectors(f"qdrant://{tmp_path}/q")


@pytest.mark.parametrize(
    "address",
    [
        "qdrant://:s3cret@127.0.0.1:1/faces?https=true",
        "qdrant://:s3/cret@127.0.0.1:1/faces",
        "qdrant://:1/s3cret@127.0.0.1:1/faces",
        "qdrant://:s3cret@127.0.0.1:1/",
        "qdrant://:s3cret@127.0.0.1:1/faces?https=tru",
        "qdrant://:s3cret@127.0.0.1:1/faces?s3cret@x=1",
        "qdrant:/:s3cret@127.0.0.1:1/faces",
    ],
)
def test_a_server_that_does_not_answer_is_reported_without_its_key(address, tmp_path, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "s3cret")
    words = refused(run("cluster", address, "--store", "new.links", *OPTIONS, cwd=tmp_path))
    assert "s3" not in words
    assert "expected" in words
    assert not (tmp_path / "new.links").exists()


@pytest.fixture
def server(faces):
    """Return the port of a server with 300 faces, ordered by time."""
    client = QdrantClient(":memory:")
    client.create_collection("faces", vectors_config=PLAIN)
    client.upsert(
        "faces",
        [
            models.PointStruct(id=as_uuid(place), vector=x.tolist(), payload={"time": place})
            for place, x in enumerate(faces[:300])
        ],
    )
    handler = type("Handler", (Server,), {"there": client})
    with HTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever).start()
        yield running.server_port
        running.shutdown()
    client.close()


# The client warns about a key without https.
over_http = pytest.mark.filterwarnings("ignore:Api key is used with an insecure:UserWarning")


@over_http
@pytest.mark.parametrize("order", ["?order=time", ""])
def test_a_server_gets_the_same_requests_as_a_folder(server, faces, order):
    links = Links(*THREE)
    address = f"qdrant://:s3cret%2F@127.0.0.1:{server}/faces{order}"
    with open_vectors(address, payload=["time"], block=70) as source:
        source.prepare("cluster_id")
        blocks = list(source)
        for block in blocks:
            links.add_many(block.vectors)
        assert list(source.write_back(links.labels())) == [300]
    times = [each["time"] for block in blocks for each in block.payloads]
    assert times == sorted(range(300), key=(lambda place: place) if order else as_uuid)
    with open_vectors(address, payload=["cluster_id"]) as source:
        (block,) = source
    assert [each["cluster_id"] for each in block.payloads] == links.labels().tolist()
    np.testing.assert_array_equal(block.vectors, faces[times])


@over_http
@pytest.mark.parametrize("kind", ["integer", "float", "datetime"])
def test_values_that_the_index_of_the_order_does_not_hold_are_refused(server, kind, monkeypatch):
    monkeypatch.setattr(Server, "indexed", kind)
    address = f"qdrant://:s3cret%2F@127.0.0.1:{server}/faces?order=time"
    if kind == "datetime":  # and the values are numbers
        with pytest.raises(InputFileError, match="300 of 300 points"):
            open_vectors(address)
    else:
        with open_vectors(address) as source:
            assert sum(map(len, source)) == 300


@over_http
def test_an_error_of_a_server_is_reported_without_its_key(server):
    with pytest.raises(InputFileError) as error:
        open_vectors(f"qdrant://:s3cret%40@127.0.0.1:{server}/faces")
    assert "bad key ***" in str(error.value)
    assert "s3cret" not in str(error.value)


def test_without_the_client_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(ImportError, match=r"linkstream\[qdrant\]"):
        open_vectors("qdrant://localhost:6333/faces")
