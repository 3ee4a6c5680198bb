"""What was erased is in no answer and, after compact(), in no file; all else is as it was."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine.fixed_point import quantise
from linkstream.errors import ArgumentError, IdempotencyError, LinkstreamError
from linkstream.store import Store
from store.internals import EarlyMaintenance
from store.operations import THRESHOLDS, new, state_of, vectors

X = vectors(np.random.default_rng(0), 60)
FAR = np.float32(-X[:1].sum(axis=0, keepdims=True))  # like nobody else


def traces(row):
    """Byte patterns by which a vector would be known: two neighbouring coordinates, or a text."""
    row = np.asarray(row).reshape(1, -1)
    unit = row / np.linalg.norm(row.astype(np.float64))
    fixed = quantise(row)[0]
    forms = [row.astype("<f4"), row.astype("<f8"), unit.astype("<f4"), unit.astype("<f8")]
    forms += [fixed.astype("<i4"), fixed.astype("<i8")]  # alone in a subcluster it is the sum
    pairs = [form[0, k : k + 2].tobytes() for form in forms for k in range(row.shape[1] - 1)]
    return pairs + [repr(float(value))[:12].encode() for value in row[0]]


def each_trace(rows):
    return [trace for row in rows for trace in traces(row)]


def found(folder, patterns):
    """Files of a folder that hold one of the patterns, with the pattern."""
    hits = []
    for file in sorted(folder.iterdir()):
        data = file.read_bytes()
        hits += [(file.name, pattern) for pattern in patterns if pattern in data]
    return hits


def assert_erased(store, folder, patterns):
    """Not in the files, open and closed, nor in a backup."""
    assert found(folder, patterns) == []
    store.backup(folder / "backup.links")
    assert found(folder, patterns) == []
    store.close()
    assert found(folder, patterns) == []
    with Store.open(folder / "backup.links") as copy:
        copy.verify()
    with Store.open(store.path) as again:
        again.verify()
    assert found(folder, patterns) == []


def secrets(numbers):
    return [f"secret-{number}-{number * 7919}" for number in numbers]


def test_the_scan_finds_bytes_that_are_there(path, tmp_path):
    with new(path) as store:
        store.add_many(X[:20], payloads=secrets(range(20)))
        for row in X[:20]:
            assert found(tmp_path, traces(row))
    assert found(tmp_path, [b"secret-7-"])


@pytest.mark.parametrize("often", [False, True], ids=["one snapshot", "many snapshots"])
def test_removed_vectors_and_their_payloads_are_in_no_file(path, tmp_path, often):
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    gone = [3, 4, 17, 31]
    with EarlyMaintenance(10 if often else 10**9), new(path) as store:
        for start in range(0, 40, 8):
            rows = slice(start, start + 8)
            store.add_many(X[rows], payloads=secrets(range(start, start + 8)))
            links.add_many(X[rows])
        for number in gone:
            store.remove(number)
            links.remove(number)
        store.compact()
        patterns = [*each_trace(X[gone]), *(s.encode() for s in secrets(gone))]
        labels = store.labels()
        assert labels.tolist() == links.labels().tolist()
        assert store.state_hash() == links.state_hash()
        assert_answers(store, gone)
        assert_erased(store, tmp_path, patterns)
    with Store.open(path) as store:
        assert_answers(store, gone)
        assert store.add_many(X[40:]).tolist() == links.add_many(X[40:]).tolist()
        assert store.state_hash() == links.state_hash()


def assert_answers(store, gone):
    """Those that are left are all there; of those that are gone nothing is told."""
    live = [number for number in range(40) if number not in gone]
    assert np.array_equal(store.vectors(live), X[live])
    assert store.payloads(live) == [secrets([number])[0] for number in live]
    for number in gone:
        assert store.labels()[number] == -1
        for ask in (store.vectors, store.payloads):
            with pytest.raises(ArgumentError):
                ask([number])
    for operation in store.journal.operations():
        rows, payloads = store.journal.vectors(operation), store.journal.payloads(operation)
        for number in gone:
            assert rows is None or not (np.asarray(rows) == X[number]).all(axis=1).any()
            assert secrets([number])[0] not in (payloads or [])


def test_a_forgotten_cluster_is_in_no_file(path, tmp_path):
    with new(path) as store:
        store.add_many(X[:20], payloads=secrets(range(20)))
        ids = store.labels()
        store.name(int(ids[0]), "Ann")
        gone = np.flatnonzero(ids == ids[0]).tolist()
        live = [number for number in range(20) if number not in gone]
        store.forget(int(ids[0]))
        store.compact()
        assert store.labels()[live].tolist() == ids[live].tolist()
        assert np.array_equal(store.vectors(live), X[live])
        assert all(view.name is None for view in store.clusters())
        patterns = [*each_trace(X[gone]), *(s.encode() for s in secrets(gone))]
        assert_erased(store, tmp_path, patterns)


def test_names_that_no_cluster_has_are_in_no_file(path, tmp_path):
    gone = ["Zebulon", "Quirina", "Xanthippe", "Ümit"]
    with new(path) as store:
        store.add_many(X[:20])
        store.name(0, "Zebulon")
        store.rename(0, "Ottokar")
        cluster = store.enrol("Quirina", FAR)
        store.forget(cluster)
        store.name(1, "Xanthippe", idempotency_key="naming")
        store.rename(1, None)
        store.name(1, "Ümit")
        store.undo()
        store.compact()
        assert store.named("Ottokar") == 0
        assert store.clusters()[1].name is None
        forms = [form for name in gone for form in (name.encode(), json.dumps(name)[1:-1].encode())]
        assert_erased(store, tmp_path, forms)
    with Store.open(path) as store:
        assert [event.kind for event in store.events()].count("named") >= 2
        for name in gone:
            with pytest.raises(ArgumentError):
                store.named(name)
        with contextlib.suppress(IdempotencyError):  # what it said is not there to compare
            store.name(1, "Xanthippe", idempotency_key="naming")
        assert store.clusters()[1].name is None
        store.name(1, "Zebulon")
        assert store.named("Zebulon") == 1


def test_a_vector_alone_in_its_cluster_is_in_no_file_not_even_as_a_sum(path, tmp_path):
    with new(path) as store:
        store.add_many(X[:10])
        store.add(FAR[0] * np.float32(2.7), payload="far away")
        assert store.n_clusters > 1
        store.close()
    with Store.open(path) as store:
        store.remove(10)
        store.compact()
        assert_erased(store, tmp_path, [*traces(FAR * np.float32(2.7)), *traces(FAR), b"far away"])


def test_undone_vectors_are_in_no_file(path, tmp_path):
    with new(path) as store:
        store.add_many(X[:10])
        store.add_many(X[10:14], payloads=secrets(range(4)))
        for _ in range(4):
            store.undo()
        before = state_of(store)
        store.compact()
        assert state_of(store) == before
        patterns = [*each_trace(X[10:14]), b"secret-"]
        assert_erased(store, tmp_path, patterns)


def test_vectors_of_weight_zero_are_in_no_file(path, tmp_path):
    with new(path) as store:
        store.add_many(X[:4], weight=[1.0, 0.0, 1.0, 1.0], payloads=list("abcd"))
        store.add(X[5], weight=0, payload="asked")
        store.compact()
        assert np.array_equal(store.vectors(range(3)), X[[0, 2, 3]])
        assert store.payloads(range(3)) == ["a", "c", "d"]
        assert_erased(store, tmp_path, [*each_trace(X[[1, 5]]), b"asked"])


def test_vectors_dropped_by_a_limit_are_in_no_file(path, tmp_path):
    links = Links.from_thresholds(THRESHOLDS, max_subclusters=12, threads=1)
    with new(path, max_subclusters=12) as store:
        store.add_many(X[:40], payloads=secrets(range(40)))
        links.add_many(X[:40])
        gone = np.flatnonzero(store.labels() < 0).tolist()
        assert 5 < len(gone) < 35
        store.compact()
        assert store.labels().tolist() == links.labels().tolist()
        live = np.flatnonzero(links.labels() >= 0).tolist()
        assert np.array_equal(store.vectors(live), X[live])
        patterns = [*each_trace(X[gone]), *(s.encode() for s in secrets(gone))]
        assert_erased(store, tmp_path, patterns)
    with Store.open(path) as store:
        assert store.add_many(X[40:]).tolist() == links.add_many(X[40:]).tolist()


@pytest.mark.parametrize("options", [{"keep_vectors": False}, {"track_vectors": False}])
def test_vectors_that_are_not_kept_are_in_no_file(path, tmp_path, options):
    links = Links.from_thresholds(THRESHOLDS, threads=1, **options)
    with new(path, **options) as store:
        store.add_many(X[:30])
        links.add_many(X[:30])
        store.compact()
        counts = {view.size for view in store.clusters()}
        assert counts
        # Those alone in a subcluster are its sum, which decides.
        state = links.state()
        alone = quantise(X[:30])[0][:, np.newaxis] == state.sums[np.newaxis]
        hidden = [i for i in range(30) if not alone[i].all(axis=1).any()]
        patterns = [X[i].astype("<f4")[k : k + 2].tobytes() for i in hidden for k in range(7)]
        assert_erased(store, tmp_path, patterns)
    with Store.open(path) as store:
        assert store.add_many(X[30:]).tolist() == links.add_many(X[30:]).tolist()
        assert store.state_hash() == links.state_hash()


def test_an_open_reader_does_not_keep_erased_bytes(path, tmp_path):
    with new(path) as store:
        store.add_many(X[:20], payloads=secrets(range(20)))
        reader = Store.open(path, read_only=True)
        events = reader.journal.events()
        next(events)  # in the middle of reading
        store.remove(4)
        try:
            store.compact()
        except LinkstreamError as error:
            assert "read" in str(error)  # noqa: PT017 - it may say that a reader is in the way
            events.close()
            reader.close()
            store.compact()
        patterns = [*traces(X[4]), secrets([4])[0].encode()]
        assert found(tmp_path, patterns) == []
        events.close()
        reader.close()
        assert found(tmp_path, patterns) == []
