"""Sums are exact however many vectors a subcluster has, and their number costs no memory."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine import fixed_point
from streams import ENGINES, unit

if "native" not in ENGINES:
    pytest.skip("installed without the compiled core on purpose", allow_module_level=True)

BLOCK = 50_000
DIMENSION = 16


def memory():
    """Bytes this process holds; where the system does not say, the most it has held so far."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def block(rng, centre):
    """Vectors so close to a centre that all of them join one subcluster."""
    return np.float32(centre + rng.normal(0.0, 0.02, size=(BLOCK, DIMENSION)))


def add_and_sum(n):
    """Add n vectors in blocks; the clusterer, and the sum of their numbers by Python's integers."""
    rng = np.random.default_rng(7)
    centre = unit(np.arange(1.0, DIMENSION + 1.0))
    links = Links(0.7, 0.5, 0.9, engine="native", track_vectors=False)
    total, settled = [0] * DIMENSION, None
    for taken in range(0, n, BLOCK):
        rows = block(rng, centre)
        assert not links.add_many(rows).any()
        sums = fixed_point.quantise(rows)[0].sum(axis=0, dtype=np.int64)  # 50,000 · 2³⁰ < 2⁶³
        total = [one + more for one, more in zip(total, sums.tolist(), strict=True)]
        if taken == 4 * BLOCK:  # the newest 100,000 events are there, and every buffer
            settled = memory()
    return links, total, memory() - settled


def assert_exact(n):
    links, total, growth = add_and_sum(n)
    state = links.state()
    state.check()
    assert state.sums.tolist() == [total]
    assert state.counts.tolist() == [n]
    assert (links.n_vectors, links.n_subclusters, links.n_clusters) == (n, 1, 1)
    assert growth < 32 * 2**20, f"{growth} bytes more after {n} vectors"
    again = Links.from_bytes(links.to_bytes(), engine="native")
    assert again.state().sums.tolist() == [total]


def test_the_sum_of_a_million_vectors_is_exact_and_memory_stays_flat():
    assert_exact(1_000_000)


@pytest.mark.long
def test_the_sum_of_ten_million_vectors_is_exact_and_memory_stays_flat():
    assert_exact(10_000_000)
