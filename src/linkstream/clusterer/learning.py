"""What people's answers tell of decisions and of pairs of clusters: events that the model reads.

Two kinds of answers count, as neither was asked for because the answer seemed wrong: `judge`, and
`same` or `different` of two subclusters of different clusters, as questions of the review are
answered. Other corrections teach nothing (docs/choices.md, "what probabilities learn from").
"""

from __future__ import annotations

from linkstream.clusterer.absent import check_there
from linkstream.clusterer.change import one_change
from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.core import Core
from linkstream.confidence.answers import KINDS, MARGINS, PAIR
from linkstream.engine import events
from linkstream.engine.fixed_point import dot, similarity
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, RemovedError
from linkstream.identity.ledger import SUBCLUSTERS

_TOLD = {events.JUDGED: 4, events.COMPARED: 3}  # column of the probability in a row of the log


@one_change
def judge(core: Core, vector: int, right: bool = True) -> None:
    """Say whether the decision on a vector was right."""
    core.check_tracked(f"vector {vector!r}")
    number = check_there(core, vector) if core.replayed is None else int(vector)
    if core.replayed is None and number in core.up_to_date_ledger().held:
        raise RemovedError(
            f"judge({number}) of a vector that is held",
            expected="a vector on which something was decided",
            remedy="Nothing was decided yet: assign() decides, and remove() drops it.",
        )
    right = check_yes_no("right", right)
    found = core.confidence.margins_of.of(int(vector))
    if found is None:
        raise ArgumentError(
            f"judge({vector}) of a decision without a cluster margin",
            expected="a vector that was added alone or in a batch, and compared with clusters, "
            "while margins were computed",
            remedy="The first vector was compared with none. Before others are added, use a model "
            "or links.confidence.set_margins(True).",
        )
    about, margin = found
    told = _told(core, events.JUDGED, about, margin / MARGINS, int(vector))
    core.running().note([(events.JUDGED, int(vector), margin, told, 2 * about + int(right))])
    tell_of_drift(core, about)


def answer(core: Core, one: int, other: int, level: int, *, same: bool) -> list[tuple[int, ...]]:
    """Return the event of an answer on the clusters of two subclusters; none if it is no answer.

    Reads these two clusters.

    Args:
        core: the core, before the correction.
        one: the number of the first subcluster.
        other: that of the second.
        level: what the correction is of, as an index in `KINDS` of the ledger.
        same: whether they are the same.
    """
    engine = core.running()
    clusters = engine.cluster_of(one), engine.cluster_of(other)
    if level != SUBCLUSTERS or not core.confidence.margins or clusters[0] == clusters[1]:
        return []
    parts = engine.parts(clusters[0]), engine.parts(clusters[1])
    margin = _margin(*parts)
    if margin is None:
        return []
    smaller = min(int(part.counts.sum()) for part in parts)
    told = _told(core, events.COMPARED, PAIR, margin, smaller)
    return [(events.COMPARED, round(margin * MARGINS), told, int(same), smaller)]


def tell_of_drift(core: Core, about: int) -> None:
    """Write the event of a drift if the newest answers show one that was not told of yet."""
    kind = KINDS[about]
    found = core.up_to_date_ledger().answers.drift(kind)
    if found is not None and not core.confidence.has_drifted:
        core.running().note([(events.DRIFTED, kind, found.answers, found.told, found.right)])
        core.up_to_date_ledger()


def _told(core: Core, code: int, about: int, margin: float, number: int = 0) -> int:
    """Return the probability that an answer is compared with.

    A call of a journal has that of its event: another processor may round the model otherwise.
    """
    if core.replayed is not None:
        stored = core.replayed[core.replayed[:, 0] == code, _TOLD[code]]
        if len(stored):
            return int(stored[0])
    return core.confidence.told_of(about, margin, number)


def _margin(one: State, other: State) -> float | None:
    """Return the similarity of two clusters as wholes less s~; None if vectors cancel out."""
    a, b = one.sums.sum(axis=0), other.sums.sum(axis=0)
    squares = dot(a, a), dot(b, b)
    if not all(squares):
        return None
    masses = float(one.masses().sum()), float(other.masses().sum())
    return similarity(dot(a, b), *squares) - one.thresholds.edge(*masses)
