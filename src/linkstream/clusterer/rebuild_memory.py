"""How much memory a rebuild may take."""

from __future__ import annotations

from linkstream.identity.rebuild_rows import LIMIT


def memory_needed(
    n_vectors: int, n_subclusters: int, dimension: int, given: int | None = None
) -> int:
    """Return how many bytes `prepare` and `complete` may take; the estimate is rather too high.

    Measured at 64 to 1,024 dimensions and 10,000 to 200,000 vectors: copies of all vectors of 12
    bytes a coordinate in all, and 48 bytes a coordinate for each row that is compared with others.
    `given` is the dimension of vectors that the rebuild comes with: they are copied, too, and may
    all be rows.
    """
    if given is not None:
        return 68 * max(dimension, given) * n_vectors
    return dimension * (12 * n_vectors + 48 * min(n_vectors, max(LIMIT, n_subclusters)))
