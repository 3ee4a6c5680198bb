"""What the machine can do, so that a rate can be held against something.

Memory: how fast threads can read an array that fits in no cache, and one of the size of `wide`'s
codes. The scan: how fast the compiled core goes over its table when nothing else is to be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.timing import measure
from benchmarks.workloads import THREADS, Vectors
from linkstream import Links

BIG_BYTES = 2**30
CODES_BYTES = 100_000 * 256


def read_bandwidth(total: int, threads: int) -> tuple[float, ...]:
    """Bytes a second at which threads together read `total` bytes, try by try.

    The greatest byte of an array is found at vector speed and with the lock released.
    """
    parts = [np.ones(total // threads, dtype=np.uint8) for _ in range(threads)]
    passes = max(1, 2**28 // total)

    def read(part: np.ndarray) -> None:
        for _ in range(passes):
            part.max()

    with ThreadPoolExecutor(threads) as pool:
        timing = measure(lambda: list(pool.map(read, parts)), tries=5)
    return tuple(total * passes / seconds for seconds in timing.seconds)


def scan_alone(
    links: Links, strangers: Sequence[Vectors]
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Asking about strangers; the way to the table alone; and the scan that is left of it.

    A stranger has no candidate, so asking is the door (checks, fixed point), the codes of the
    vector and the scan, and nothing else. The same vectors asked of a table of one subcluster
    take the same way without the scan. Rates, and the rate of what is left.
    """
    empty = Links.from_thresholds(links.thresholds, threads=THREADS)
    empty.add(strangers[0][0])
    asked = [measure(lambda x=x: links.predict(x), tries=1).best for x in strangers]
    door = [measure(lambda x=x: empty.predict(x), tries=1).best for x in strangers]
    n = len(strangers[0])
    alone = n / (min(asked) - min(door))
    return tuple(n / s for s in asked), tuple(n / s for s in door), alone
