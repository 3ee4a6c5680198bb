"""Snapshots made wrong in thousands of ways: refused, or sound. The target is fuzz_snapshot.py."""

import base64

import pytest

from engine import fuzz_snapshot
from linkstream import Links
from linkstream.errors import SnapshotError

SEED = 20_240_501


def assert_only_refused_or_sound(seed, tmp_path, **so_many):
    try:
        outcomes = fuzz_snapshot.run(seed, **so_many)
    except fuzz_snapshot.HoleError as hole:
        path = tmp_path / "mutant.links"
        path.write_bytes(base64.b64decode(str(hole).rpartition(": ")[2]))
        raise AssertionError(f"{path}: {hole}") from hole
    # A fuzzer that stops at the front door, or that never gets in, tests nothing.
    assert len(outcomes.refused) >= 20, outcomes
    assert len(outcomes.accepted) >= 8, outcomes
    assert sum(outcomes.accepted.values()) >= 0.1 * sum(outcomes.refused.values()), outcomes


def test_mutants_of_snapshots_are_refused_or_sound(tmp_path):
    assert_only_refused_or_sound(SEED, tmp_path, mutants=3_000)


@pytest.mark.long
@pytest.mark.parametrize("seed", [SEED, *range(10)])
def test_many_more_mutants_are_refused_or_sound(seed, tmp_path):
    assert_only_refused_or_sound(seed, tmp_path, seconds=60)


def test_a_mutant_is_the_same_each_time():
    begun = fuzz_snapshot.origins()
    assert begun == fuzz_snapshot.origins()
    for index in range(200):
        assert fuzz_snapshot.mutant(1, index, begun) == fuzz_snapshot.mutant(1, index, begun)


def test_what_mutants_are_made_from_is_sound():
    for data in fuzz_snapshot.origins():
        assert fuzz_snapshot.outcome(data) is None
        meta, arrays = fuzz_snapshot.unpack(data)
        assert fuzz_snapshot.outcome(fuzz_snapshot.pack(meta, arrays)) is None


# What was seen.


def changed(**scalars):
    links = Links(0.7, 0.6, 0.9, keep_vectors=False)
    links.add_many([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    meta, arrays = fuzz_snapshot.unpack(links.to_bytes())
    meta["state"].update(scalars)
    return meta, arrays


def test_a_cluster_similarity_whose_square_is_zero_is_refused_and_not_divided_by():
    with pytest.raises(SnapshotError, match="thresholds are in range"):
        Links.from_bytes(fuzz_snapshot.pack(*changed(cluster_similarity=1e-200)))


@pytest.mark.parametrize("name", ["cluster_similarity", "pair_similarity_max"])
def test_a_threshold_too_large_for_a_double_is_refused_and_no_overflow(name):
    with pytest.raises(SnapshotError, match="thresholds are in range"):
        Links.from_bytes(fuzz_snapshot.pack(*changed(**{name: 10**400})))


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        (0, 1, -1),
        (0, 1, 2),  # the next is of vector 1
        (2, 1, 3),
        (2, 1, -(2**63)),
        (0, 1, 2**63 - 1),
        (1, 2, 3),
        (1, 3, -2),
        (1, 5, -(2**63)),
    ],
)
def test_events_of_vectors_or_numbers_that_never_were_are_refused(row, column, value):
    """Differences of such numbers, which the log stores, leave 64 bits."""
    meta, arrays = changed()
    assert arrays["events"][row, column] != value
    arrays["events"][row, column] = value
    with pytest.raises(SnapshotError, match="events"):
        Links.from_bytes(fuzz_snapshot.pack(meta, arrays))


def test_the_refusal_of_an_array_named_by_half_a_character_can_be_printed():
    header = b'{"meta": {}, "arrays": ["\\ud800"]}'
    with pytest.raises(SnapshotError) as refused:
        Links.from_bytes(fuzz_snapshot.seal(header, b""))
    assert str(refused.value).encode()


def test_more_vectors_than_can_be_named_are_refused():
    meta, arrays = changed(track_vectors=0, n_vectors=2**32)
    arrays["counts"][:] = [2**31, 2**31 - 1, 1]
    arrays["vectors"] = arrays["vectors"][:0]
    with pytest.raises(SnapshotError, match="counts"):
        Links.from_bytes(fuzz_snapshot.pack(meta, arrays))
    meta["state"]["n_vectors"] -= 1
    arrays["counts"][0] -= 1
    assert Links.from_bytes(fuzz_snapshot.pack(meta, arrays)).n_vectors == 2**32 - 1
