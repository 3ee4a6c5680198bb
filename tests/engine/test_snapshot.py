"""Snapshots: what is written is read back whole; anything else is a SnapshotError, and cheap."""

import hashlib
import json
import pickle
import struct
import tracemalloc

import numpy as np
import pytest

from linkstream import Links, Space
from linkstream.errors import (
    ArgumentError,
    ContradictionError,
    NotTrackedError,
    SnapshotError,
    UndoError,
)
from streams import ENGINES, make

DTYPES = {"<i4": np.int32, "<i8": np.int64, "<f8": np.float64}


def grown(engine="auto", kind="lobes", seed=7, **options):
    """A clusterer with edges, merged numbers and split clusters."""
    stream = make(kind, seed)
    links = Links(*stream.thresholds, engine=engine, **options)
    links.add_many(stream.vectors)
    return links


def small():
    """Two clusters, one of them of two subclusters: 0 – 1 and 2."""
    links = Links(0.8, 0.95, 0.7)
    links.add_many([[5, 0, 0], [4, 3, 0], [4, 3, 0], [0, 0, 5]])
    assert (links.n_subclusters, links.n_clusters) == (3, 2)
    return links


# The container, read and written independently of the package.


def unpack(data):
    assert data[:8] == b"LINKSNAP"
    version, size = struct.unpack("<II", data[8:16])
    assert version == 1
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    header, place = json.loads(data[16 : 16 + size]), 16 + size
    arrays = {}
    for name, dtype, shape in header["arrays"]:
        count = int(np.prod(shape))
        values = np.frombuffer(data, DTYPES[dtype], count, place).reshape(shape).copy()
        arrays[name] = values
        place += values.nbytes
    assert place == len(data) - 32
    return header["meta"], arrays


def seal(header, payload=b"", *, version=1, magic=b"LINKSNAP", size=None):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(raw) if size is None else size
    body = magic + struct.pack("<II", version, size) + raw + payload
    return body + hashlib.sha256(body).digest()


def pack(meta, arrays):
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    layout = [[name, names[array.dtype], list(array.shape)] for name, array in arrays.items()]
    payload = b"".join(array.tobytes() for array in arrays.values())
    return seal({"meta": meta, "arrays": layout}, payload)


@pytest.fixture(autouse=True, scope="module")
def _imported():
    """Load once, so that modules imported on the way do not count as memory of a snapshot."""
    links = Links(0.7, 0.6, 0.9)
    links.add_many(np.eye(3))
    Links.from_bytes(links.to_bytes())


def assert_refused(data):
    """A SnapshotError, whose cost in memory is a small multiple of the bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotError) as refused:
            Links.from_bytes(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(data) + 200_000
    return str(refused.value)


# What is written is read back.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("track_vectors", [True, False])
@pytest.mark.parametrize(
    "space", [None, Space(model="encoder-7"), Space(mean=[0.1] * 12, model="ünïcode")]
)
def test_a_snapshot_gives_back_the_same_clusterer(engine, track_vectors, space):
    links = grown(engine, track_vectors=track_vectors, space=space)
    again = Links.from_bytes(links.to_bytes(), engine=engine)
    assert again.state_hash() == links.state_hash()
    assert again.to_bytes() == links.to_bytes()
    assert again.thresholds == links.thresholds
    assert again.space == links.space
    assert again.track_vectors == track_vectors
    assert again.events() == links.events()
    assert again.clusters() == links.clusters()
    assert (again.n_vectors, again.dimension) == (links.n_vectors, links.dimension)
    more = make("lobes", 8).vectors
    assert again.add_many(more).tolist() == links.add_many(more).tolist()
    assert again.state_hash() == links.state_hash()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_clusterer_is_saved_too(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    again = Links.from_bytes(links.to_bytes(), engine=engine)
    assert again.state_hash() == links.state_hash()
    assert (again.dimension, again.n_vectors) == (None, 0)
    assert again.add([1.0, 2.0]).cluster == 0


def test_equal_states_reached_by_other_batches_have_equal_bytes():
    stream = make("grid", 3)
    one, other = (Links(*stream.thresholds) for _ in range(2))
    one.add_many(stream.vectors)
    for x in stream.vectors:
        other.add(x)
    assert one.to_bytes() == other.to_bytes()


def test_the_container_is_as_documented():
    links = grown()
    meta, arrays = unpack(links.to_bytes())
    assert meta["state"]["n_vectors"] == links.n_vectors
    for name, array in links.state().arrays().items():
        assert arrays[name].tolist() == array.tolist()
    assert Links.from_bytes(pack(meta, arrays)).state_hash() == links.state_hash()


def test_a_file_is_written_and_read(tmp_path):
    links = grown()
    for path in (tmp_path / "a.links", str(tmp_path / "b.links")):
        links.save(path)
        assert Links.load(path).state_hash() == links.state_hash()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.links", "b.links"]


def test_a_save_takes_the_place_of_an_older_file_wholly(tmp_path):
    path = tmp_path / "a.links"
    grown().save(path)
    small().save(path)
    assert Links.load(path).state_hash() == small().state_hash()
    assert [p.name for p in tmp_path.iterdir()] == ["a.links"]


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Links.load(tmp_path / "none.links")


def test_reading_runs_no_pickle(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("pickle was used")

    data = grown().to_bytes()
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    Links.from_bytes(data)


# Damage.


def test_every_byte_flipped_is_noticed():
    data = small().to_bytes()
    for place in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[place] ^= mask
            with pytest.raises(SnapshotError):
                Links.from_bytes(bytes(damaged))


def test_every_truncation_is_noticed():
    data = small().to_bytes()
    for length in range(len(data)):
        with pytest.raises(SnapshotError):
            Links.from_bytes(data[:length])


def test_bytes_beyond_the_end_are_noticed():
    data = small().to_bytes()
    assert_refused(data + b"\0")
    assert_refused(data + data)
    header = json.loads(data[16 : 16 + struct.unpack("<I", data[12:16])[0]])
    assert_refused(seal(header, data[16 + len(json.dumps(header)) : -32] + b"\0" * 8))


# Hostile containers, each with a checksum that is right.


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"LINKSNAP",
        bytes(48),
        b"\x80\x04" + bytes(100),
        pickle.dumps({"a": [1] * 100}),
        b"PK\x03\x04" + bytes(100),
        b"\x93NUMPY" + bytes(100),
    ],
)
def test_other_files_are_not_taken_for_snapshots(data):
    assert_refused(data)


def test_another_magic_is_refused():
    meta, arrays = unpack(small().to_bytes())
    good = pack(meta, arrays)
    size = struct.unpack("<I", good[12:16])[0]
    rest = good[16 + size : -32]
    assert_refused(seal(good[16 : 16 + size], rest, magic=b"LINKSNAQ"))


@pytest.mark.parametrize("version", [2, 7, 2**32 - 1])
def test_a_newer_version_is_named(version):
    message = assert_refused(seal({"meta": {}, "arrays": []}, version=version))
    assert str(version) in message
    assert "pgrade" in message


def test_version_0_is_refused():
    assert_refused(seal({"meta": {}, "arrays": []}, version=0))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"meta": {}}',
        b'{"meta": [], "arrays": []}',
        b'{"meta": {}, "arrays": {}}',
        b'{"meta": {}, "arrays": [], "more": 1}',
        b'{"meta": {}, "arrays": []}',
        b"[" * 100_000,
        b'{"meta":' * 100_000,
        b'{"meta": {}, "arrays": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"meta": {"state": ' + b"9" * 5_000 + b'}, "arrays": []}',
    ],
)
def test_a_header_of_another_shape_is_refused(header):
    assert_refused(seal(header))


@pytest.mark.parametrize("size", [0, 1, 2**31, 2**32 - 1])
def test_a_header_length_that_lies_is_refused(size):
    data = small().to_bytes()
    body = data[:12] + struct.pack("<I", size) + data[16:-32]
    assert_refused(body + hashlib.sha256(body).digest())


ENTRIES = {
    "32 GiB": ["sums", "<i8", [2**32, 1]],
    "more than memory": ["sums", "<i8", [2**47, 2**47]],
    "more than 64 bits": ["sums", "<i8", [2**63, 2**63]],
    "nothing times much": ["sums", "<i8", [0, 2**60]],
    "one too many": ["sums", "<i8", [4, 3]],
    "negative": ["sums", "<i8", [-3, -3]],
    "negative and positive": ["sums", "<i8", [-1, 3]],
    "fractions": ["sums", "<i8", [3.0, 3]],
    "booleans": ["sums", "<i8", [True, 3]],
    "no shape": ["sums", "<i8", None],
    "a number for a shape": ["sums", "<i8", 9],
    "no dimension": ["sums", "<i8", []],
    "a third dimension": ["sums", "<i8", [3, 3, 1]],
    "objects": ["sums", "|O", [3, 3]],
    "objects of 8 bytes": ["sums", "O", [3, 3]],
    "strings": ["sums", "<U2", [3, 3]],
    "records": ["sums", "<i8,<i8", [3, 3]],
    "dates": ["sums", "<M8[s]", [3, 3]],
    "big-endian": ["sums", ">i8", [3, 3]],
    "floating point": ["sums", "<f8", [3, 3]],
    "a nameless dtype": ["sums", None, [3, 3]],
    "a nameless array": [None, "<i8", [3, 3]],
    "too short": ["sums", "<i8"],
    "too long": ["sums", "<i8", [3, 3], 1],
    "text": "sums",
    "a name used twice": ["counts", "<i8", [3, 3]],
    "another name": ["totals", "<i8", [3, 3]],
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_an_array_described_wrongly_is_refused_before_memory_is_taken(entry):
    meta, arrays = unpack(small().to_bytes())
    layout = [
        entry if name == "sums" else [name, array.dtype.str, list(array.shape)]
        for name, array in arrays.items()
    ]
    payload = b"".join(array.tobytes() for array in arrays.values())
    assert_refused(seal({"meta": meta, "arrays": layout}, payload))


@pytest.mark.parametrize("name", list(unpack(small().to_bytes())[1]))
def test_a_missing_array_is_refused(name):
    meta, arrays = unpack(small().to_bytes())
    del arrays[name]
    assert_refused(pack(meta, arrays))


@pytest.mark.parametrize("name", list(unpack(small().to_bytes())[0]["state"]))
@pytest.mark.parametrize("value", [None, "1", [1], {}, float("nan"), float("inf"), -1, 2**70, 1.5])
def test_a_scalar_that_is_missing_or_wrong_is_refused(name, value):
    meta, arrays = unpack(small().to_bytes())
    meta["state"][name] = value
    assert_refused(pack(meta, arrays))
    del meta["state"][name]
    assert_refused(pack(meta, arrays))


# States that no stream could have led to, in containers that are whole.


def changed(name, index, value):
    def change(state, arrays):
        arrays[name][index] = value

    return change


def edges(*pairs):
    def change(state, arrays):
        arrays["edges"] = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    return change


def scalar(name, value):
    def change(state, arrays):
        state[name] = value

    return change


def resized(name, *shape):
    def change(state, arrays):
        arrays[name] = np.resize(arrays[name], shape)

    return change


IMPOSSIBLE = {
    "an edge to an unknown node": edges((0, 7)),
    "an edge to a negative node": edges((-1, 0)),
    "an edge to itself": edges((0, 0)),
    "an edge with the younger end first": edges((1, 0)),
    "an edge twice": edges((0, 1), (0, 1)),
    "an edge too few": edges(),
    "an edge between clusters": edges((0, 1), (1, 2)),
    "a cycle": edges((0, 1), (0, 2), (1, 2)),
    "edges of three ends": resized("edges", 1, 3),
    "two trees of one cluster": changed("clusters", 2, 0),
    "one tree of two clusters": changed("clusters", 1, 1),
    "a cluster never given": changed("clusters", 2, 9),
    "a negative cluster": changed("clusters", 2, -1),
    "a number never given": changed("numbers", 2, 9),
    "numbers out of order": changed("numbers", 0, 2),
    "a negative number": changed("numbers", 0, -1),
    "a count too many": changed("counts", 0, 2),
    "no count": changed("counts", 0, 0),
    "a negative count": changed("counts", slice(0, 2), [-1, 4]),
    "a count beyond 33 bits": changed("counts", 0, 2**40),
    "counts that wrap round": changed("counts", slice(None), [2**62, 2**62, 2**63 - 1]),
    "a sum longer than its count": changed("sums", (0, 0), 2**31),
    "a sum of the least integer": changed("sums", (0, 0), -(2**63)),
    "a sum without direction": changed("sums", 0, 0),
    "a sum long in every coordinate": changed("sums", 0, 2**30),
    "sums of another dimension": resized("sums", 3, 2),
    "sums of too few nodes": resized("sums", 2, 3),
    "a vector of an unknown node": changed("vectors", 0, 5),
    "a vector counted elsewhere": changed("vectors", 0, 1),
    "too few vectors": resized("vectors", 3),
    "first seen after last seen": changed("first_seen", 0, 3),
    "last seen in the future": changed("last_seen", 0, 4),
    "first seen before time": changed("first_seen", 0, -1),
    "an event of no kind": changed("events", (0, 0), 99),
    "an event of negative kind": changed("events", (0, 0), -1),
    "events of another width": resized("events", 4, 5),
    "fewer events than are kept": scalar("n_events", 1),
    "more events than could be numbered": scalar("n_events", 2**64),
    "another dimension": scalar("dimension", 4),
    "no dimension": scalar("dimension", 0),
    "one dimension": scalar("dimension", 1),
    "a vector more": scalar("n_vectors", 5),
    "a next number already given": scalar("next_subcluster", 2),
    "a next number beyond the vectors": scalar("next_subcluster", 5),
    "a next cluster already given": scalar("next_cluster", 1),
    "a next cluster beyond reason": scalar("next_cluster", 2**63),
    "a T_s out of range": scalar("subcluster_similarity", 1.5),
    "a T_p below T_c²": scalar("pair_similarity_max", 0.1),
    "a counter unknown": scalar("n_secrets", 1),
}


@pytest.mark.parametrize("change", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_state_that_no_stream_leads_to_is_refused(change):
    meta, arrays = unpack(small().to_bytes())
    change(meta["state"], arrays)
    assert_refused(pack(meta, arrays))


@pytest.mark.parametrize("track_vectors", [True, False])
def test_a_space_that_does_not_fit_the_state_is_refused(track_vectors):
    space = Space(mean=[0.1, 0.2, 0.3], model="m")
    links = Links(0.8, 0.95, 0.7, space=space, track_vectors=track_vectors)
    links.add_many([[5, 0, 0], [4, 3, 0]])
    good_meta, good = unpack(links.to_bytes())
    assert Links.from_bytes(pack(good_meta, good)).space == space
    for mean in ([0.1, 0.2], [0.1] * 4, [np.nan, 0, 0], [np.inf, 0, 0], [5.0, 0, 0], []):
        assert_refused(pack(good_meta, {**good, "space_mean": np.array(mean, dtype=float)}))
    assert_refused(pack(good_meta, {**good, "space_mean": np.array([[0.1, 0.2, 0.3]])}))
    for model in (5, [], {}, True):
        assert_refused(pack({**good_meta, "model": model}, good))


@pytest.mark.parametrize("d", [2, 1024, 1025, 2**16])
@pytest.mark.parametrize("kind", ["alike", "axis", "random"])
def test_kept_vectors_of_any_dimension_are_found_to_sum_to_their_subclusters(d, kind):
    rng = np.random.default_rng(d)
    rows = {"alike": np.ones((3, d)), "axis": np.eye(1, d), "random": rng.standard_normal((3, d))}
    links = Links(0.7, 0.6, 0.9)
    links.add_many(rows[kind], weight=0.3)
    links.add_many(rows[kind])
    assert Links.from_bytes(links.to_bytes()).state_hash() == links.state_hash()


@pytest.mark.parametrize("d", [3, 5, 7, 61_931])
def test_sums_that_rounding_made_longer_than_their_count_are_still_possible(d):
    """A unit vector in fixed point may be longer than 2³⁰ by half a unit a coordinate."""
    links = Links(0.7, 0.6, 0.9)
    links.add_many(np.ones((4, d)))
    assert Links.from_bytes(links.to_bytes()).state_hash() == links.state_hash()


# Without history: what came before cannot be undone.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("track_vectors", [True, False])
@pytest.mark.parametrize("kind", ["lobes", "drifting", "hub"])
def test_without_history_it_goes_on_with_the_same_decisions_and_event_numbers(
    engine, track_vectors, kind
):
    links = grown(engine, kind, track_vectors=track_vectors)
    bare = Links.from_bytes(links.to_bytes(history=False), engine=engine)
    assert bare.state_hash() == links.state_hash()
    assert bare.clusters() == links.clusters()
    assert bare.n_events == links.n_events == len(links.events())
    since, more = links.n_events, make(kind, 8).vectors
    assert bare.add_many(more).tolist() == links.add_many(more).tolist()
    assert bare.events(since) == links.events(since)
    assert bare.events(since)[0].sequence == since
    assert bare.state_hash() == links.state_hash()
    if track_vectors:
        assert bare.labels().tolist() == links.labels().tolist()


def test_without_history_it_is_smaller_and_saved_alike_again():
    links = grown(track_vectors=False)
    bare = links.to_bytes(history=False)
    assert len(bare) < len(links.to_bytes()) * 0.8
    assert Links.from_bytes(bare).to_bytes() == bare
    assert Links.from_bytes(bare).to_bytes(history=False) == bare
    assert links.to_bytes(history=True) == links.to_bytes()


def test_without_history_older_events_and_changes_are_refused_in_words():
    links = grown()
    bare = Links.from_bytes(links.to_bytes(history=False))
    since = bare.n_events
    with pytest.raises(NotTrackedError, match="no longer kept"):
        bare.events(0)
    assert bare.events(since) == []
    with pytest.raises(UndoError):
        bare.undo(to=0)
    before = bare.state_hash()
    bare.add(make("lobes", 8).vectors[0])
    bare.undo()
    assert bare.state_hash() == before  # what comes after can be undone


def test_without_history_names_and_constraints_hold():
    links = Links(0.7, 0.6, 0.9)
    links.add_many(np.eye(3))
    links.name(1, "Ann")
    links.different(0, 2)
    links.enrol("Ben", [[1.0, 1.0, 0.0]])
    bare = Links.from_bytes(links.to_bytes(history=False))
    assert (bare.named("Ann"), bare.named("Ben")) == (1, links.named("Ben"))
    with pytest.raises(ContradictionError):
        bare.same(0, 2)


def test_an_empty_clusterer_has_no_history_to_leave_out():
    links = Links(0.7, 0.6, 0.9)
    assert links.to_bytes(history=False) == links.to_bytes()
    assert links.n_events == 0


@pytest.mark.parametrize("history", [None, 1, "no"])
def test_history_is_a_yes_or_a_no(history):
    with pytest.raises(ArgumentError, match="history="):
        small().to_bytes(history=history)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("track_vectors", [True, False])
def test_events_are_counted_however_many_are_kept(engine, track_vectors):
    links = grown(engine, "drifting", track_vectors=track_vectors)
    n = links.n_events
    assert n == links.events()[-1].sequence + 1
    links.drain_events()
    assert links.n_events == n
    links.add(make("drifting", 9).vectors[0])
    assert links.n_events == links.events(n)[-1].sequence + 1
