"""Pairs of vectors to ask a person about, whose answers `calibrate` finds thresholds from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.space import unit_rows

SAMPLE = 1_000  # vectors that pairs are chosen from
BANDS = 12  # equal ranges of similarity that pairs are chosen from in turn
_EVERYDAY = 0.5  # quantile of all pairs at which the lowest range begins: most pairs are below


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """Two rows, and the cosine of their vectors."""

    a: int
    b: int
    similarity: float


def pairs_to_ask(X: npt.ArrayLike, count: int = 60, *, seed: int = 0) -> list[PairQuestion]:
    """Return pairs of rows over the whole range of similarities, the same for the same arguments.

    The range from the median of all pairs to the highest similarity is cut into equal bands, and
    each band in turn gives a pair, so that few answers say where identities part. Rows come up
    seldom more than once. Costs the similarities of all pairs of the first 1,000 rows.

    Args:
        X: vectors in order of arrival; the first 1,000 are used.
        count: how many pairs to return at most.
        seed: seed of the choice within a band.
    """
    rows = door.vectors(X, dimension=None)[:SAMPLE]
    if len(rows) < 2:
        return []
    unit = unit_rows(rows).astype(np.float32)
    a, b = np.triu_indices(len(unit), 1)
    similarity = (unit @ unit.T)[a, b]
    chosen = _in_turn(_bands(similarity, seed), np.stack([a, b], axis=1), count)
    return [PairQuestion(int(a[i]), int(b[i]), float(similarity[i])) for i in chosen]


def _bands(similarity: npt.NDArray[np.floating], seed: int) -> list[npt.NDArray[np.intp]]:
    """Return the pairs of each band in the order to ask them, the most similar band first."""
    low, high = np.quantile(similarity, _EVERYDAY), similarity.max()
    edges = np.linspace(low, high, BANDS + 1)[1:-1]
    band = np.searchsorted(edges, similarity)
    shuffled = np.random.default_rng([seed, len(similarity)]).permutation(len(similarity))
    return [shuffled[band[shuffled] == place] for place in reversed(range(BANDS))]


def _in_turn(
    bands: list[npt.NDArray[np.intp]], pairs: npt.NDArray[np.intp], count: int
) -> list[int]:
    """Return pairs of the bands in turn, first those of rows that did not come up yet."""
    seen: set[int] = set()
    queues = [list(band[: 50 * count]) for band in bands]
    chosen: list[int] = []
    while len(chosen) < count and any(queues):
        for queue in filter(None, queues):
            fresh = (i for i, pair in enumerate(queue) if seen.isdisjoint(pairs[pair].tolist()))
            pair = queue.pop(next(fresh, 0))
            seen.update(pairs[pair].tolist())
            chosen.append(int(pair))
    return chosen[:count]
