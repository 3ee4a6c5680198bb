"""The vectors of another encoder in memory, against a dict."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream.clusterer.reencoded import RowsInMemory


def test_rows_by_number_are_those_of_a_dict():
    rows, known = RowsInMemory(), {}
    rng = np.random.default_rng(0)
    revisions = [rows.revision]
    for _ in range(300):
        numbers = rng.choice(200, rng.integers(1, 9), replace=False)
        some = rng.random((len(numbers), 4)).astype(np.float32)
        rows.put(numbers, some)
        known.update(zip(numbers.tolist(), some, strict=True))
        if rng.random() < 0.1:
            n = int(rng.integers(200))
            rows.cut(n)
            known = {number: row for number, row in known.items() if number < n}
        assert rows.numbers().tolist() == sorted(known)
        assert rows.dimension() == (4 if known else None)
        found = rows.rows(rows.numbers())
        assert all(
            np.array_equal(known[n], row) for n, row in zip(sorted(known), found, strict=True)
        )
        revisions.append(rows.revision)
    assert revisions == sorted(set(revisions))
    rows.clear()
    assert rows.dimension() is None


class Interrupted:
    """Rows whose reading Ctrl-C interrupts."""

    shape = (2, 4)

    def __array__(self, *_args: object, **_options: object) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_addition_adds_nothing():
    rows = RowsInMemory()
    rows.put(np.array([3, 1]), np.ones((2, 4), dtype=np.float32))
    before = rows.revision
    with pytest.raises(KeyboardInterrupt):
        rows.put(np.array([1, 7]), Interrupted())
    assert rows.numbers().tolist() == [1, 3]
    assert rows.revision == before
    rows.put(np.array([9, 7]), np.full((2, 4), 2.0, dtype=np.float32))
    assert rows.rows(np.array([1, 7, 9]))[:, 0].tolist() == [1.0, 2.0, 2.0]
