"""Which part keeps the ID when a cluster splits? `python examples/splinter.py`, below a second.

Sixty vectors of one person are cluster 0. The next vector is just similar enough to be linked to
them. The one after it joins this new subcluster and moves it away, until the edge fails. The
cluster splits into 60 and 2 vectors. ID 0 should still mean the sixty.

The same stream goes through the published package `linkscluster` and through linkstream. Five
vectors are enough to show it: `stream(3)`. A splinter of one vector is not enough, because an edge
is tested again only when a vector joins a subcluster; and two must be fewer than the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from importlib import metadata

import numpy as np
import numpy.typing as npt

from linkstream import Links

JOIN, TIE = math.radians(22.0), math.radians(45.0)  # angles within which a vector joins; is linked
T_C = math.sqrt(math.cos(TIE))
# With T_p = T_c² an edge holds within one angle, for any number of vectors on either side.
THRESHOLDS = (T_C, math.cos(JOIN), T_C * T_C)


def stream(n: int, *, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return n vectors within a few degrees; then one at 40° from them, and one at 55°."""
    rng = np.random.default_rng(seed)
    lobe = np.column_stack([np.ones(n), rng.normal(scale=0.03, size=(n, 2))])
    strays = [[math.cos(angle), math.sin(angle), 0.0] for angle in np.radians([40.0, 55.0])]
    return np.concatenate([lobe, strays]).astype(np.float32)


def theirs(X: npt.NDArray[np.float32]) -> tuple[list[int], list[int]]:
    """Return the labels of the published package before and after the last vector."""
    from linkscluster import LinksClusterer

    peer = LinksClusterer(*THRESHOLDS)
    for x in X[:-1]:
        peer.predict_next(x)
    before = peer.get_final_labels().tolist()
    peer.predict_next(X[-1])
    return before, peer.get_final_labels().tolist()


def ours(X: npt.NDArray[np.float32], *, engine: str = "auto") -> tuple[list[int], list[int]]:
    """Return the labels of linkstream before and after the last vector."""
    links = Links(*THRESHOLDS, engine=engine)
    links.add_many(X[:-1])
    before = links.labels().tolist()
    links.add(X[-1])
    return before, links.labels().tolist()


def story(name: str, before: list[int], after: list[int]) -> str:
    """Return the fate of ID 0 in three lines."""
    sizes = ", ".join(f"ID {label}: {n} vectors" for label, n in sorted(Counter(after).items()))
    kept = sum(a == b for a, b in zip(before, after, strict=False))
    return (
        f"{name}\n  before the last vector   ID 0: {len(before)} vectors\n"
        f"  after it                 {sizes}\n"
        f"  of the {len(before)} labels given, {kept} still hold"
    )


def main() -> None:
    """Print the results of both packages."""
    X = stream(60)
    print(story(f"linkscluster {metadata.version('linkscluster')}", *theirs(X)))
    print(story(f"linkstream {metadata.version('linkstream')}", *ours(X)))


if __name__ == "__main__":
    main()
