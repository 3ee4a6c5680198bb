"""Uploads: files in pieces, looks, wrong rows, repeats, cancelling, limits, hostile files."""

from __future__ import annotations

import csv
import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from service.calling import BINARY
from service.server import MADE_WITH, ThreadService
from store.operations import vectors

X = vectors(np.random.default_rng(31), 60)
RAW = {"Content-Type": BINARY}


def csv_of(rows=X, *, key=True, first=0):
    """Return a CSV file of tickets: key, text, and a column for each number."""
    out = io.StringIO()
    to = csv.writer(out)
    to.writerow(["id", "text", *(f"v{place}" for place in range(rows.shape[1]))])
    to.writerows([f"t{first + i}", f"ticket {first + i}", *row] for i, row in enumerate(rows))
    return out.getvalue().encode()


def jsonl_of(rows=X):
    lines = [{"text": f"ticket {i}", "embedding": row.tolist()} for i, row in enumerate(rows)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def npy_of(rows=X):
    out = io.BytesIO()
    np.save(out, rows)
    return out.getvalue()


def npz_of(rows=X):
    out = io.BytesIO()
    np.savez(out, X=rows, other=rows[:1])
    return out.getvalue()


def parquet_of(rows=X):
    out = io.BytesIO()
    texts = [f"ticket {i}" for i in range(len(rows))]
    table = pa.table({"embedding": pa.array(list(rows), pa.list_(pa.float32())), "text": texts})
    parquet.write_table(table, out)
    return out.getvalue()


KINDS = {
    "tickets.csv": csv_of,
    "tickets.jsonl": jsonl_of,
    "faces.npy": npy_of,
    "faces.npz": npz_of,
    "faces.parquet": parquet_of,
}


def announce(service, namespace, file, size):
    answer = service.post(f"{namespace}/uploads", {"file": file, "size": size})
    assert answer.status == 201, answer.body
    return f"{namespace}/uploads/{answer.json['upload']}"


def send(service, namespace, file, data, *, piece=1 << 20):
    """Send a file in pieces; return the path of the upload."""
    path = announce(service, namespace, file, len(data))
    for offset in range(0, len(data), piece):
        part = data[offset : offset + piece]
        answer = service.call("PUT", f"{path}?offset={offset}", part, headers=RAW)
        assert answer.status == 200, answer.body
    return path


def add(service, path, **body):
    """Add an upload, and return its last state."""
    answer = service.post(f"{path}/add", body)
    assert answer.status == 202, answer.body
    while True:
        told = service.get(f"{path}?wait=30").json
        if told["state"] not in ("checking", "adding"):
            return told


def looked(service, path):
    """Return what the service says of the columns, as the body of a request."""
    found = service.get(f"{path}/columns")
    assert found.status == 200, found.body
    names = ("column", "id_column", "time_column")
    payload = [] if found.json["kind"] == "npz" else found.json["others"]
    return {name: found.json[name] for name in names} | {"payload": payload}


def count(service, namespace):
    return service.get(namespace).json["vectors"]


def files(service):
    return list((service.data / ".uploads").glob("*"))


def file_of(service, path):
    """Return whether the file of an upload is there."""
    return any(path.endswith(each.stem) for each in files(service))


@pytest.fixture(autouse=True)
def no_uploads_left(service, namespace):
    """Remove the uploads of a test, because a service has room for few."""
    yield
    for each in service.get(f"{namespace}/uploads").json["uploads"]:
        service.call("DELETE", f"{namespace}/uploads/{each['upload']}")


@pytest.mark.parametrize("file", KINDS)
def test_a_file_of_each_kind_is_added_as_its_columns_suggest(service, namespace, file):
    path = send(service, namespace, file, KINDS[file]())
    told = add(service, path, **looked(service, path))
    assert told["state"] == "done", told
    assert (told["rows"], told["added"], told["known"]) == (60, 60, 0)
    assert count(service, namespace) == 60
    assert not file_of(service, path)


def test_a_look_names_the_columns_and_shows_the_first_rows(service, namespace):
    path = send(service, namespace, "tickets.csv", csv_of())
    found = service.get(f"{path}/columns").json
    assert (found["column"], found["id_column"]) == ("v", "id")
    assert found["others"] == ["id", "text"]
    assert found["dimension"] == X.shape[1]
    assert found["rows"][1] == {"id": "t1", "text": "ticket 1"}
    assert np.allclose(found["sample"][1], X[1], atol=1e-6)


def test_payloads_and_keys_come_with_the_rows(service, namespace):
    path = send(service, namespace, "tickets.csv", csv_of())
    add(service, path, column="v", id_column="id", payload=["text"])
    assert service.get(f"{namespace}/vectors?id=t7").json["payload"] == {"text": "ticket 7"}


@pytest.mark.parametrize("file", ["tickets.csv", "faces.npy", "faces.parquet"])
def test_the_same_file_again_adds_nothing(service, namespace, file):
    for added in (60, 0):
        path = send(service, namespace, file, KINDS[file]())
        told = add(service, path, **looked(service, path))
        assert (told["added"], told["known"]) == (added, 60 - added)
    assert count(service, namespace) == 60


@pytest.mark.parametrize("file", ["tickets.csv", "faces.npy"])
def test_a_file_that_has_grown_adds_its_new_rows(service, namespace, file):
    for rows, added in ((X[:40], 40), (X, 20)):
        path = send(service, namespace, file, KINDS[file](rows))
        told = add(service, path, **looked(service, path))
        assert (told["added"], told["known"]) == (added, len(rows) - added)


def test_rows_whose_keys_are_there_are_known_in_any_order(service, namespace):
    path = send(service, namespace, "monday.csv", csv_of(X[:30]))
    add(service, path, column="v", id_column="id")
    path = send(service, namespace, "tuesday.csv", csv_of(X[20:], first=20))
    told = add(service, path, column="v", id_column="id")
    assert (told["added"], told["known"]) == (30, 10)
    assert count(service, namespace) == 60


def wrong_csv():
    lines = csv_of(X[:8]).decode().splitlines()
    lines[2] = lines[2].replace(",", ",oops", 3)
    lines[4] = "t3,short"
    lines[6] = "t5,zero," + ",".join(["0"] * X.shape[1])
    return ("\n".join(lines) + "\n").encode()


def test_wrong_rows_are_named_and_nothing_is_added(service, namespace):
    path = send(service, namespace, "tickets.csv", wrong_csv())
    told = add(service, path, column="v", id_column="id", payload=["text"])
    assert told["state"] == "bad-rows"
    assert told["bad"]["count"] == 3
    seen = [each["seen"] for each in told["bad"]["first"]]
    places = zip(seen, (3, 5, 7), strict=True)
    assert all(words.startswith(f"tickets.csv, line {line}") for words, line in places), seen
    assert all(each["remedy"] for each in told["bad"]["first"])
    assert count(service, namespace) == 0
    told = add(service, path, column="v", id_column="id", payload=["text"], skip_bad=True)
    assert (told["state"], told["added"], told["bad"]["count"]) == ("done", 5, 3)


def test_a_row_without_a_key_is_wrong_where_keys_were_chosen(service, namespace):
    data = csv_of(X[:4]).replace(b"t2,", b",")
    told = add(service, send(service, namespace, "a.csv", data), column="v", id_column="id")
    assert (told["state"], told["bad"]["count"]) == ("bad-rows", 1)


def test_missing_vectors_of_a_parquet_file_can_be_left_out(service, namespace):
    rows = [None, *X[:3].tolist(), [1.0], *X[3:6].tolist()]
    out = io.BytesIO()
    parquet.write_table(pa.table({"embedding": pa.array(rows, pa.list_(pa.float32()))}), out)
    path = send(service, namespace, "a.parquet", out.getvalue())
    assert add(service, path)["bad"]["count"] == 2
    assert add(service, path, skip_bad=True)["added"] == 6


def test_vectors_of_another_dimension_are_refused_before_the_first_is_added(service, namespace):
    service.post(f"{namespace}/vectors", X[:3])
    told = add(service, send(service, namespace, "a.npy", npy_of(X[:, :5])))
    assert (told["state"], told["error"]["kind"]) == ("failed", "dimension")
    assert count(service, namespace) == 3


def test_an_upload_tells_the_events_that_undo_it(service, namespace):
    service.post(f"{namespace}/vectors", X[:3])
    told = add(service, send(service, namespace, "a.npy", npy_of(X[3:])))
    service.post(f"{namespace}/undo", {"to": told["before"], "after": told["event"]})
    assert count(service, namespace) == 3


def test_a_piece_may_be_sent_again_but_none_left_out(service, namespace):
    data = npy_of()
    path = announce(service, namespace, "a.npy", len(data))
    for offset, status in ((0, 200), (0, 200), (200, 409), (100, 200)):
        part = data[offset : offset + 100]
        answer = service.call("PUT", f"{path}?offset={offset}", part, headers=RAW)
        assert answer.status == status
    assert answer.json["received"] == 200
    assert service.post(f"{path}/add", {}).status == 409
    assert service.get(f"{path}/columns").status == 409


def test_more_than_was_announced_is_refused(service, namespace):
    path = announce(service, namespace, "a.npy", 10)
    assert service.call("PUT", f"{path}?offset=0", bytes(11), headers=RAW).status == 409


def test_an_upload_that_is_removed_leaves_no_file(service, namespace):
    path = send(service, namespace, "a.npy", npy_of())
    assert file_of(service, path)
    assert service.call("DELETE", path).json["state"] == "ready"
    assert not file_of(service, path)
    assert service.get(path).status == 404


def test_a_cancelled_upload_keeps_what_was_added_and_goes_on_with_the_same_file(service, namespace):
    rows = vectors(np.random.default_rng(3), 30_000)
    path = send(service, namespace, "a.npy", npy_of(rows))
    service.post(f"{path}/add", {})
    while service.get(path).json["added"] == 0:
        pass
    told = service.call("DELETE", path).json
    assert told["state"] in ("cancelled", "done")
    assert count(service, namespace) == told["added"]
    told = add(service, send(service, namespace, "a.npy", npy_of(rows)))
    assert told["added"] + told["known"] == 30_000
    assert count(service, namespace) == 30_000


def test_other_writers_are_answered_between_two_batches(service, namespace):
    rows = vectors(np.random.default_rng(4), 40_000)
    path = send(service, namespace, "a.npy", npy_of(rows))
    service.post(f"{path}/add", {})
    while service.get(path).json["added"] == 0:
        pass
    answer = service.post(f"{namespace}/vectors", {"vector": rows[0].tolist()})
    assert answer.status == 200
    assert service.get(path).json["state"] == "adding" or answer.seconds < 1.0
    service.call("DELETE", path)


def test_a_namespace_that_does_not_exist_can_be_calibrated_first(service):
    centres = vectors(np.random.default_rng(5), 12)
    rng = np.random.default_rng(6)
    who = rng.integers(0, 12, 240)
    rows = centres[who] + 0.15 * rng.standard_normal((240, centres.shape[1]))
    namespace = "/v1/namespaces/later"
    path = send(service, namespace, "a.npy", npy_of(rows.astype(np.float32)))
    asked = service.post(f"{path}/pairs", {"count": 80}).json
    assert asked["sampled"] == 240
    assert asked == service.post(f"{path}/pairs", {"count": 80}).json
    answers = {"same": [], "different": []}
    for pair in asked["pairs"]:
        a, b = pair["rows"]
        answers["same" if who[a] == who[b] else "different"].append([a, b])
    found = service.post(f"{path}/calibrate", answers)
    assert found.status == 200, found.body
    assert found.json["decided"], found.json["advice"]
    assert service.post(f"{path}/add", {}).status == 404
    service.put(namespace, {"thresholds": found.json["thresholds"]})
    assert add(service, path)["added"] == 240
    clusters = service.get(f"{namespace}/clusters").json["clusters"]
    assert sum(each["size"] >= 8 for each in clusters) >= 9


def test_pairs_cover_the_range_of_similarities(service, namespace):
    path = send(service, namespace, "tickets.csv", csv_of())
    body = {"column": "v", "payload": ["text"], "count": 24}
    found = service.post(f"{path}/pairs", body).json["pairs"]
    likeness = [each["similarity"] for each in found]
    assert max(likeness) - min(likeness) > 0.3
    assert found[0]["payloads"][0] == {"text": f"ticket {found[0]['rows'][0]}"}


def test_few_answers_leave_calibration_undecided_with_advice(service, namespace):
    path = send(service, namespace, "a.npy", npy_of())
    found = service.post(f"{path}/calibrate", {"same": [[0, 1]], "different": [[0, 2]]}).json
    assert not found["decided"]
    assert "too few" in found["advice"]


def bomb():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy_of(np.zeros((300_000, 64), np.float32)))
    return out.getvalue()


def pickled():
    out = io.BytesIO()
    np.save(out, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return out.getvalue()


HOSTILE = {
    "a bomb.npz": bomb(),
    "a pickle.npy": pickled(),
    "a lying header.npy": npy_of()[:128].replace(b"(60, ", b"(99999999, "),
    "cut short.npy": npy_of()[:-5],
    "cut short.parquet": parquet_of()[:-50],
    "no archive.npz": b"PK\x03\x04" + bytes(50),
    "no text.csv": b"\xff\xfe\x00a,b\n",
    "one long line.jsonl": b"[" + b"1," * (3 << 20),
    "empty names.csv": b",,,\n1,2,3,4\n",
    "nothing.jsonl": b"\n\n",
    "another kind.npy": csv_of(),
}


@pytest.mark.parametrize("file", HOSTILE)
def test_a_hostile_file_is_refused_with_a_reason_and_no_path(service, namespace, file):
    path = send(service, namespace, file, HOSTILE[file])
    look = service.get(f"{path}/columns")
    assert look.status in (200, 400)
    told = add(service, path)
    assert told["state"] in ("failed", "bad-rows") or told["rows"] == 0, told
    assert str(service.data) not in json.dumps(told)
    assert ".uploads" not in json.dumps(told)
    assert count(service, namespace) == 0
    service.call("DELETE", path)


def test_names_of_files_cannot_lead_out_of_the_folder(service, namespace):
    before = sorted(service.data.parent.rglob("*.csv"))
    send(service, namespace, "../../../evil.csv", csv_of())
    assert sorted(service.data.parent.rglob("evil*")) == []
    assert len(sorted(service.data.parent.rglob("*.csv"))) == len(before) + 1


@pytest.mark.parametrize("file", ["a.exe", "a", ".csv.lnk", "a.links"])
def test_files_of_other_kinds_are_refused_by_their_names(service, namespace, file):
    answer = service.post(f"{namespace}/uploads", {"file": file, "size": 10})
    assert (answer.status, answer.kind) == (400, "argument")


def test_limits_of_size_number_and_idle_time_hold(tmp_path):
    limits = {"upload_max": 1000, "uploads_max": 2, "upload_idle_seconds": 0.5}
    with ThreadService(tmp_path / "data", **limits) as service:
        namespace = service.namespace("n")
        too_big = service.post(f"{namespace}/uploads", {"file": "a.npy", "size": 1001})
        assert (too_big.status, too_big.kind) == (413, "too-large")
        paths = [announce(service, namespace, "a.npy", 10) for _ in range(2)]
        third = service.post(f"{namespace}/uploads", {"file": "a.npy", "size": 10})
        assert (third.status, third.kind) == (409, "too-many")
        while service.get(f"{namespace}/uploads").json["uploads"]:
            pass
        assert service.get(paths[0]).status == 404
        while files(service):
            pass


def test_files_that_a_killed_service_has_left_are_removed_at_the_next_start(tmp_path):
    folder = tmp_path / "data" / ".uploads"
    folder.mkdir(parents=True)
    (folder / "0123456789abcdef.csv").write_bytes(b"left")
    with ThreadService(tmp_path / "data"):
        assert not folder.exists()


def test_presets_name_encoder_dimension_and_levels(service):
    found = {each["name"]: each for each in service.get("/v1/presets").json["presets"]}
    assert found["ge2e"]["dimension"] == 256
    levels = {each["name"]: each for each in found["ge2e"]["levels"]}
    body = {"preset": "ge2e", "granularity": "speech"}
    service.put("/v1/namespaces/preset", body)
    told = service.get("/v1/namespaces/preset/thresholds").json
    assert levels["speech"]["thresholds"].items() <= told.items()


def test_the_demo_can_be_started_once(service):
    for _ in range(2):
        assert service.post("/v1/namespaces/voices/demo").json == {"namespace": "voices"}
    while not count(service, "/v1/namespaces/voices"):
        pass
    assert MADE_WITH


def test_memory_stays_bounded_with_many_rows(service, namespace):
    import tracemalloc

    rows = np.repeat(X[:1], 60_000, axis=0)
    data = npy_of(rows)
    path = send(service, namespace, "a.npy", data)
    del rows
    tracemalloc.start()
    try:
        add(service, path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20
