"""Questions for review about which the encoders of the last migration disagree."""

from __future__ import annotations

from collections.abc import Iterator

from linkstream.clusterer.core import Core
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.rebuild_report import JOINED, MOVED
from linkstream.identity.review import Doubt


def doubts(core: Core) -> list[Doubt]:
    """Return what the encoders disagree on, as far as it is still open; none after an undo."""
    event, found = core.disagreements
    if core.engine is None or core.epochs.last.event != event:
        return []
    return list(_open(core, found))


def _open(core: Core, found: tuple[Disagreement, ...]) -> Iterator[Doubt]:
    engine, laws = core.running(), core.laws()
    for view in found:
        one, other = (engine.holder(vector) for vector in view.vectors)
        if min(one, other) < 0 or one == other:
            continue
        clusters = engine.cluster_of(one), engine.cluster_of(other)
        together = clusters[0] == clusters[1]
        answered = together and laws.chain(one, other) is not None
        if together is (view.kind == JOINED) and not answered and _may_ask(core, view, clusters):
            yield Doubt(clusters, (one, other), view)


def _may_ask(core: Core, view: Disagreement, clusters: tuple[int, int]) -> bool:
    """Return whether an answer would be about the vectors of the disagreement.

    Of vectors that moved to others, which are most of their cluster, no answer about clusters is.
    """
    ledger = core.ledger
    names = {ledger.names.get(cluster) for cluster in clusters} - {None}
    if len(names) > 1 or any(cluster in ledger.ignored for cluster in clusters):
        return False
    size = int(core.running().parts(clusters[0]).counts.sum())
    return view.kind != MOVED or 2 * view.sizes[0] > size
