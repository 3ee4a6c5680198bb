"""Who keeps the ID when a cluster splits? `python examples/splinter.py`, less than a second.

Sixty vectors of one person are cluster 0. One more is just near enough to be tied to them; the
next one joins it and draws it away, until the tie fails. The cluster falls in two: 60 vectors here,
2 there. What was filed under ID 0 should still be the sixty.

The same stream goes through the published package `linkscluster` and through linkstream. Five
vectors are enough to see it: `stream(3)`. A splinter of one cannot do it, because a tie is only
looked at again when a subcluster takes a second vector; and two are fewer than three.
"""

from __future__ import annotations

import math
from collections import Counter
from importlib import metadata

import numpy as np
import numpy.typing as npt

from linkstream import Links

JOIN, TIE = math.radians(22.0), math.radians(45.0)  # angles within which a vector joins; is tied
T_C = math.sqrt(math.cos(TIE))
# With T_p = T_c² a tie holds within one angle, however many vectors are on either side.
THRESHOLDS = (T_C, math.cos(JOIN), T_C * T_C)


def stream(n: int, *, seed: int = 0) -> npt.NDArray[np.float32]:
    """A lobe of n vectors, a few degrees wide; then one at 40° from it, and one at 55°."""
    rng = np.random.default_rng(seed)
    lobe = np.column_stack([np.ones(n), rng.normal(scale=0.03, size=(n, 2))])
    strays = [[math.cos(angle), math.sin(angle), 0.0] for angle in np.radians([40.0, 55.0])]
    return np.concatenate([lobe, strays]).astype(np.float32)


def theirs(X: npt.NDArray[np.float32]) -> tuple[list[int], list[int]]:
    """Labels of the published package before and after the last vector."""
    from linkscluster import LinksClusterer

    peer = LinksClusterer(*THRESHOLDS)
    for x in X[:-1]:
        peer.predict_next(x)
    before = peer.get_final_labels().tolist()
    peer.predict_next(X[-1])
    return before, peer.get_final_labels().tolist()


def ours(X: npt.NDArray[np.float32], *, engine: str = "auto") -> tuple[list[int], list[int]]:
    """Labels of linkstream before and after the last vector."""
    links = Links(*THRESHOLDS, engine=engine)
    links.add_many(X[:-1])
    before = links.labels().tolist()
    links.add(X[-1])
    return before, links.labels().tolist()


def story(name: str, before: list[int], after: list[int]) -> str:
    """What became of ID 0, in three lines."""
    sizes = ", ".join(f"ID {label}: {n} vectors" for label, n in sorted(Counter(after).items()))
    kept = sum(a == b for a, b in zip(before, after, strict=False))
    return (
        f"{name}\n  before the last vector   ID 0: {len(before)} vectors\n"
        f"  after it                 {sizes}\n"
        f"  of the {len(before)} labels given, {kept} still hold"
    )


def main() -> None:
    """Tell both stories."""
    X = stream(60)
    print(story(f"linkscluster {metadata.version('linkscluster')}", *theirs(X)))
    print(story(f"linkstream {metadata.version('linkstream')}", *ours(X)))


if __name__ == "__main__":
    main()
