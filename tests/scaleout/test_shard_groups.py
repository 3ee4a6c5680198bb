"""Test joining shards: the map of subclusters agrees with a clusterer that tracks all vectors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from linkstream import Links, Space
from linkstream.errors import ArgumentError, VectorError
from linkstream.scaleout import corpus
from linkstream.scaleout.corpus import COLUMNS, GONE, MAPS, ShardGroup
from streams import make

KINDS = ("generative", "lobes", "drifting", "chains", "hub", "grid", "duplicates")
OPTIONS = {
    "plain": {},
    "join": {"heal": "join"},
    "settle": {"heal": "settle"},
    "few": {"max_subclusters": 5},
    "idle": {"max_idle": 20},
    "all": {"heal": "join", "max_subclusters": 8, "evidence": "cluster", "min_size": 2},
}


def tracked(stream, **options):
    return Links(*stream.thresholds, threads=1, keep_vectors=False, **options)


def at(values, places):
    """Return the values at these indices; a forgotten vector has none."""
    return np.where(places < 0, GONE, values[places])


class Twin:
    """A group, and a clusterer that tracks every vector through the same tree."""

    def __init__(self, shard, vectors, stream, **options):
        links = tracked(stream, **options)
        links.add_many(vectors)
        self.part, self.whole = ShardGroup.of_shard(shard, links), links
        self.held = {shard: links.state().vectors}
        self.numbers = {shard: np.arange(len(vectors))}

    def join(self, other):
        self.part = self.part.joined(other.part)
        moved = self.whole.absorb(other.whole)
        self.held |= other.held
        self.numbers |= {shard: at(moved.vectors, own) for shard, own in other.numbers.items()}
        return self

    def sent(self):
        """Send the group to the next worker."""
        self.part = sent(self.part)
        return self

    def check(self):
        part, labels = self.part, self.whole.labels()
        known = dict(
            zip(
                zip(part.shards.tolist(), part.numbers.tolist(), strict=True),
                part.clusters().tolist(),
                strict=True,
            )
        )
        assert len(known) == len(part.numbers)  # each subcluster of each shard once
        for shard, held in self.held.items():
            seen = [known.get((shard, number), GONE) for number in held.tolist()]
            assert seen == at(labels, self.numbers[shard]).tolist()
        bare = self.whole.without_vectors()
        assert part.links.state_hash() == bare.state_hash()


def cut(stream, n, seed):
    """Return the stream in n shards of different sizes."""
    shard = np.random.default_rng(seed).integers(n, size=len(stream.vectors))
    return [stream.vectors[shard == each] for each in range(n)]


def sent(part):
    """Return a group as the next worker gets it."""
    (made,) = corpus.read_groups(part.pieces())
    return made


# The map


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_map_agrees_with_a_tracked_run_of_any_tree(kind, options):
    for seed in range(3):
        stream, rng = make(kind, seed), np.random.default_rng(seed)
        twins = [
            Twin(shard, vectors, stream, **options)
            for shard, vectors in enumerate(cut(stream, 5, seed))
        ]
        while len(twins) > 1:
            first, second = sorted(rng.choice(len(twins), 2, replace=False))
            twins[first].join(twins.pop(second)).check()
            if rng.random() < 0.5:
                twins[first].sent().check()


def test_the_streams_merge_split_and_forget():
    """Check that the test above has something to compare."""
    merged = gone = split = 0
    for kind in KINDS:
        stream = make(kind, 1)
        for options in ({}, {"max_subclusters": 5}):
            first, *others = (
                Twin(i, v, stream, **options) for i, v in enumerate(cut(stream, 4, 1))
            )
            for other in others:
                moved = first.part.links.absorb(other.part.links)
                merged += len(moved.merged)
            part = Twin(0, stream.vectors[:75], stream, **options)
            part.join(Twin(1, stream.vectors[75:], stream, **options))
            gone += int((part.part.clusters() == GONE).sum())
            split += sum(event.kind == "split" for event in part.whole.events())
    assert merged > 20
    assert gone > 10
    assert split > 5


def test_the_map_is_right_where_more_happens_than_a_log_that_is_not_whole_can_keep():
    stream, other = make("drifting", 4, n=400), make("drifting", 9, n=400)
    one, two = (
        Twin(shard, np.repeat(vectors, 400, axis=0), stream)
        for shard, vectors in enumerate((stream.vectors, other.vectors))
    )
    one.join(two).check()
    assert one.part.links.n_events - one.part.links.core.oldest_event() < two.whole.n_vectors


def test_a_shard_by_itself_is_its_own_map():
    stream = make("lobes", 2)
    twin = Twin(3, stream.vectors, stream)
    twin.check()
    assert (twin.part.number, {*twin.part.shards.tolist()}) == (3, {3})
    assert np.array_equal(twin.part.numbers, twin.part.holders)
    assert not twin.part.links.track_vectors


def test_removed_subclusters_stay_removed():
    stream = make("lobes", 2)
    twins = [Twin(i, v, stream) for i, v in enumerate(cut(stream, 3, 2))]
    first = twins[0].part
    part = ShardGroup(
        0, first.links, first.shards, first.numbers, np.full(len(first.numbers), GONE)
    )
    for other in twins[1:]:
        part = part.joined(other.part)
    mine = part.shards == 0
    assert (part.clusters()[mine] == GONE).all()
    assert (part.clusters()[~mine] != GONE).all()


def test_names_survive_the_joins():
    stream = make("generative", 4)
    twins = [Twin(i, v, stream) for i, v in enumerate(cut(stream, 2, 4))]
    twins[1].whole.name(0, "Ann")
    part = ShardGroup.of_shard(1, twins[1].whole)
    joined = sent(twins[0].part).joined(sent(part))
    assert joined.links.named("Ann") >= 0


def test_a_space_with_a_mean_is_kept():
    stream = make("lobes", 3)
    space = Space(mean=[0.1] * 12, model="encoder")
    twins = [Twin(i, v, stream, space=space) for i, v in enumerate(cut(stream, 2, 3))]
    twins[0].sent().join(twins[1].sent()).check()
    assert twins[0].part.links.space == space


# Rebuilt


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 8])
def test_a_tree_of_groups_with_vectors_ends_in_the_partition_of_one_rebuilt_run(kind, n):
    stream, rng = make(kind, 3), np.random.default_rng(n)
    whole = Links(*stream.thresholds)
    whole.add_many(stream.vectors)
    whole.rebuild(apply=True)
    labels, shard = whole.labels(), rng.integers(n, size=len(stream.vectors))
    parts = []
    for each in range(n):
        links = Links(*stream.thresholds, threads=1, mode="best")
        links.add_many(stream.vectors[shard == each])
        parts.append(ShardGroup.of_shard(each, links))
    while len(parts) > 1:
        first, second = sorted(rng.choice(len(parts), 2, replace=False))
        parts[first] = sent(parts[first]).joined(sent(parts.pop(second)))
    done = parts[0].finished()
    assert not done.links.track_vectors
    order = np.lexsort((done.numbers, done.shards))
    vectors = np.argsort(shard, kind="stable")
    pairs = set(zip(done.clusters()[order].tolist(), labels[vectors].tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


# As rows


@pytest.mark.parametrize("size", [100, corpus.PIECE])
def test_pieces_of_a_group_may_arrive_in_any_order(monkeypatch, size):
    monkeypatch.setattr(corpus, "PIECE", size)
    stream = make("chains", 5)
    twin = Twin(2, stream.vectors, stream)
    pieces = list(twin.part.pieces())
    assert {piece.schema for piece in pieces} == {COLUMNS}
    assert all(len(row["body"]) <= size for piece in pieces for row in piece.to_pylist())
    assert len(pieces) > 10 or size > 100
    np.random.default_rng(0).shuffle(pieces)
    (again,) = corpus.read_groups(pieces)
    for name in MAPS:
        assert np.array_equal(getattr(again, name), getattr(twin.part, name))
    assert again.number == 2
    assert again.links.state_hash() == twin.part.links.state_hash()
    twin.part = again
    twin.check()


def test_an_empty_group_can_be_sent_and_joined():
    part = ShardGroup.of_shard(1, Links(0.6, 0.5, 0.8, keep_vectors=False))
    again = sent(part)
    assert (again.links.n_vectors, len(again.numbers), len(again.clusters())) == (0, 0, 0)
    stream = make("lobes", 1)
    other = Twin(0, stream.vectors, stream)
    before = other.part.clusters().tolist()
    assert again.joined(other.part).links.n_vectors == 150
    assert other.part.joined(sent(part)).clusters().tolist() == before


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("together", [True, False])
def test_groups_of_a_pair_are_joined_in_the_order_of_their_numbers(monkeypatch, n, together):
    monkeypatch.setattr(corpus, "PIECE", 1_000)
    stream = make("drifting", 6)
    twins = [Twin(4 + i, v, stream) for i, v in enumerate(cut(stream, n, 6))]
    batches = [piece for twin in reversed(twins) for piece in twin.part.pieces()]
    if together:
        batches = [pa.Table.from_batches(batches).combine_chunks().to_batches()[0]]
    (joined,) = corpus.read_groups(corpus.join_groups(iter(batches)))
    first = twins[0]
    for other in twins[1:]:
        first.join(other)
    first.part = joined
    first.check()
    assert first.part.number == 2


def test_no_groups_give_no_group():
    assert list(corpus.join_groups(iter(()))) == []
    empty = pa.RecordBatch.from_pylist([], schema=COLUMNS)
    assert list(corpus.join_groups(iter([empty]))) == []


# The first round


def batches_of(rows, shard=7, *, size=40, written=list, ids=None):
    values = [None if row is None else written(row) for row in rows]
    kind = pa.binary() if any(isinstance(value, bytes) for value in values) else None
    table = pa.table(
        {
            "shard": pa.array([shard] * len(rows), pa.int32()),
            "id": ids or pa.array([f"v{place}" for place in range(len(rows))]),
            "vector": pa.array(values, kind or pa.list_(pa.float32())),
        }
    )
    return table.to_batches(max_chunksize=size)


def worked(links, batches, *, mark=False):
    """Return the rows and the group that the work of a shard yields."""
    out = list(corpus.cluster_shard(links.to_bytes(), mark=mark)(iter(batches)))
    rows = [row for batch in out for row in batch.to_pylist() if row["body"] is None]
    return rows, corpus.read_groups(batch for batch in out if not batch["body"].null_count)


@pytest.mark.parametrize("size", [1, 7, 40, 1_000])
@pytest.mark.parametrize("written", [list, lambda row: row.tobytes()])
def test_a_shard_is_clustered_as_one_run_however_its_rows_come(size, written):
    stream = make("drifting", 7)
    links = tracked(stream)
    rows, (part,) = worked(links, batches_of(stream.vectors, size=size, written=written))
    links.add_many(stream.vectors)
    assert [row["id"] for row in rows] == [f"v{place}" for place in range(150)]
    assert [row["subcluster"] for row in rows] == links.state().vectors.tolist()
    assert {row["shard"] for row in rows} == {7}
    known = dict(zip(part.numbers.tolist(), part.clusters().tolist(), strict=True))
    assert [known[row["subcluster"]] for row in rows] == links.labels().tolist()
    assert part.links.state_hash() == links.without_vectors().state_hash()


def test_batches_all_have_the_columns_that_are_declared():
    stream = make("lobes", 7)
    made = list(
        corpus.cluster_shard(tracked(stream).to_bytes(), mark=False)(
            iter(batches_of(stream.vectors))
        )
    )
    (schema,) = {batch.schema for batch in made}
    assert schema.names == ["id", "shard", "subcluster", *COLUMNS.names]


def test_ids_of_any_type_come_out_as_they_are():
    ids = pa.array([{"a": place, "b": None} for place in range(5)])
    rows, _ = worked(Links(0.6, 0.5, 0.8, keep_vectors=False), batches_of(np.eye(5), ids=ids))
    assert [row["id"] for row in rows] == ids.to_pylist()


def test_a_shard_without_rows_gives_nothing():
    links = Links(0.6, 0.5, 0.8, keep_vectors=False)
    assert worked(links, []) == ([], [])
    assert worked(links, [batches_of(np.eye(3))[0].slice(0, 0)]) == ([], [])


@pytest.mark.parametrize(
    "bad", [None, [0.0] * 12, [np.nan] * 12, [1.0, 2.0], []], ids=["null", "0", "nan", "2", "none"]
)
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_bad_rows_are_marked_and_the_others_are_as_without_them(bad, size):
    stream = make("lobes", 8)
    rows = list(stream.vectors)
    for place in (150, 41, 40, 3):
        rows.insert(place, bad)
    links = tracked(stream)
    out, (part,) = worked(links, batches_of(rows, size=size), mark=True)
    links.add_many(stream.vectors)
    assert [place for place, row in enumerate(out) if row["subcluster"] == GONE] == [3, 41, 43, 153]
    good = [row["subcluster"] for row in out if row["subcluster"] != GONE]
    assert good == links.state().vectors.tolist()
    assert part.links.n_vectors == 150


def test_bad_rows_alone_give_an_empty_group():
    links = Links(0.6, 0.5, 0.8, keep_vectors=False)
    rows, parts = worked(links, batches_of([None, [np.nan, 0.0]]), mark=True)
    assert [row["subcluster"] for row in rows] == [GONE, GONE]
    assert [len(part.numbers) for part in parts] == [0]


def test_a_bad_row_stops_the_work_with_its_id():
    rows = [*np.eye(3), np.zeros(3)]
    with pytest.raises(VectorError, match="'v3'") as said:
        worked(Links(0.6, 0.5, 0.8, keep_vectors=False), batches_of(rows))
    assert "bad='mark'" in said.value.remedy


@pytest.mark.parametrize("bad", [None, [1.0, 2.0]])
def test_a_row_that_is_no_vector_at_all_stops_the_work(bad):
    with pytest.raises(VectorError):
        worked(Links(0.6, 0.5, 0.8, keep_vectors=False), batches_of([*np.eye(3), bad]))


def test_corrections_of_single_vectors_cannot_be_sent_without_the_vectors():
    links = Links(0.6, 0.5, 0.8, keep_vectors=False)
    links.add_many(np.eye(3))
    links.different(0, 1)
    with pytest.raises(ArgumentError, match="constraints"):
        ShardGroup.of_shard(0, links)
