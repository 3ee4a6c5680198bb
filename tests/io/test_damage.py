"""Test damaged files: cut or flipped bytes give a typed error or a table."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.io.samples import KINDS, made, options, read, rows, vectors

from linkstream.errors import InputFileError

X = vectors(40)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return the path and the bytes of a sound file."""

    @cache
    def of(kind):
        path = made(tmp_path_factory.mktemp(kind), kind, X)
        return path, path.read_bytes()

    return of


def outcome(path, data, kind):
    """Return the rows of damaged bytes, or None if they are refused."""
    path.write_bytes(data)
    try:
        return rows(read(path, block=16, **options(kind)))
    except InputFileError:
        return None


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_anywhere_is_refused_or_gives_its_first_rows(sound, kind, share):
    path, data = sound(kind)
    read_rows = outcome(path, data[: int(share * len(data))], kind)
    if read_rows is None:
        return
    assert kind.startswith(("jsonl", "csv", "raw", "arrow-stream"))  # they need no end
    whole = max(0, len(read_rows) - kind.startswith("csv"))  # the last number may have lost digits
    assert read_rows[:whole].astype(np.float32).tolist() == X[:whole].tolist()


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    damage=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=4
    )
)
def test_flipped_bytes_give_a_typed_error_or_a_table(sound, kind, damage):
    path, data = sound(kind)
    turned = bytearray(data)
    for share, bits in damage:
        turned[int(share * len(data))] ^= bits
    read_rows = outcome(path, bytes(turned), kind)
    if read_rows is not None and kind in ("npz-packed", "npz-fortran"):
        assert np.array_equal(read_rows, X)  # their bytes have a checksum
