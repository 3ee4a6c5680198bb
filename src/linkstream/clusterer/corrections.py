"""User corrections: same, different, move, retract, name, enrol, ignore.

Each is refused with a typed error before anything changes, or done as a whole. All are events,
hold until they are retracted, and can be undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.change import one_change
from linkstream.clusterer.checks import check_kind, check_name, check_yes_no
from linkstream.clusterer.core import Core, Fixed
from linkstream.clusterer.learning import answer, tell_of_drift
from linkstream.clusterer.maintenance import enforce, run_maintenance
from linkstream.clusterer.removal import is_hollow
from linkstream.confidence.answers import PAIR
from linkstream.engine import events
from linkstream.engine.contract import LINKED, NEW
from linkstream.engine.corrections import share
from linkstream.engine.forest import CLAIM, GIVEN_FLAGS, LOCKED, PINNED
from linkstream.errors import ArgumentError, ChangedError, LinkstreamError, UnknownIdError
from linkstream.identity import laws, precedence
from linkstream.identity.grouping import nearest_in
from linkstream.identity.laws import Subject
from linkstream.identity.ledger import CLUSTERS, KINDS
from linkstream.identity.precedence import Plan


@one_change
def same(core: Core, a: int, b: int, *, of: str = "vectors") -> None:
    """Declare two vectors, subclusters or clusters the same."""
    ones, others = _sides(core, a, b, of)
    one, other = _largest(core, ones), _largest(core, others)
    if one == other:
        return
    said, ledger, level = f"same({a}, {b}) of {of}", core.up_to_date_ledger(), KINDS.index(of)
    laws.refuse_same(ledger, one, other, level, said)
    _refuse_names(core, one[1], other[1], said)

    def can_leave(vectors: Sequence[int], leaves_others: bool) -> bool:
        return _can_leave(core, vectors, leaves_others)

    if level == CLUSTERS:
        clusters = [[node for _, node in side] for side in (ones, others)]
        plans = precedence.to_unite_clusters(ledger, clusters, (one[1], other[1]), said, can_leave)
    else:
        plans = precedence.to_unite(ledger, one, other, level, said, can_leave)
    told = answer(core, one[1], other[1], level, same=True)
    _enact(core, (events.SAME, int(a), int(b), level), [[one], [other]], plans, told)


def check_clusters(core: Core, said: Mapping[str, Any], clusters: Sequence[int]) -> None:
    """Raise ChangedError unless the two subjects of a correction are in two clusters now.

    Args:
        core: the clusterer.
        said: the arguments of `same` or `different`.
        clusters: the IDs of the two clusters, as the caller saw them.
    """
    sides = _sides(core, said["a"], said["b"], said.get("of", "vectors"))
    found = [core.running().cluster_of(side[0][1]) for side in sides]
    if found != list(clusters):
        raise ChangedError(
            f"the two are in the clusters {found[0]} and {found[1]} now",
            expected=f"the clusters {clusters[0]} and {clusters[1]}, as they were seen",
            remedy="Nothing was done. Look at the clusters again, then answer.",
        )


@one_change
def different(core: Core, a: int, b: int, *, of: str = "vectors") -> None:
    """Declare two vectors, subclusters or clusters different."""
    ones, others = _sides(core, a, b, of)
    said, ledger = f"different({a}, {b}) of {of}", core.up_to_date_ledger()
    level = KINDS.index(of)
    if ones == others:
        raise ArgumentError(
            said,
            expected="two of them that are not one and the same",
            remedy="Name two vectors of the cluster that do not belong together.",
        )
    plans: Iterable[Plan] = [Plan()]
    if level != CLUSTERS:  # no correction makes two live clusters the same
        laws.refuse_different(ledger, ones[0], others[0], level, said)
        plans = precedence.to_part(
            ledger, ones[0], others[0], level, said, lambda *group: _can_leave(core, *group)
        )
    told = answer(core, ones[0][1], others[0][1], level, same=False)
    _enact(core, (events.DIFFERENT, int(a), int(b), level), [ones, others], plans, told)


@one_change
def retract(core: Core, correction: int) -> None:
    """Take back one correction, by number."""
    whole = isinstance(correction, (int, np.integer)) and not isinstance(correction, bool)
    known = core.up_to_date_ledger().book.of_event(int(correction)) if whole else []
    if not any(law.level >= 0 for law in known):
        raise UnknownIdError(
            f"correction {correction!r:.80}",
            expected="the number of a same, different or move that still holds",
            remedy="corrections() shows them.",
        )
    engine, freed = core.running(), core.ledger.nodes_of(known)
    since = engine.n_events
    engine.note([(events.RETRACTED, int(correction), -1, 1)])
    enforce(core, since, freed=freed, judged=True)


@one_change
def name(core: Core, cluster: int, name: str, *, claim: bool = False) -> None:
    """Name a cluster that has no name yet."""
    check_name(name)
    check_yes_no("claim", claim)
    live = core.live(cluster)
    if core.ledger.names.get(live, name) != name:
        raise ArgumentError(
            f"name({cluster}, {name!r}) of a cluster that is {core.ledger.names[live]!r}",
            expected="a cluster without a name",
            remedy="Use rename() to change it.",
        )
    _set_name(core, live, name)
    if claim:
        part = core.running().parts(live)
        _, head = _largest(core, _subclusters_of(core, live))
        flags = int(part.flags[np.searchsorted(part.numbers, head)])
        core.running().flag(head, flags & GIVEN_FLAGS | CLAIM)


@one_change
def rename(core: Core, cluster: int, name: str | None) -> None:
    """Change the name of a cluster; None removes it."""
    _set_name(core, core.live(cluster), name)


@one_change
def ignore(core: Core, cluster: int, on: bool = True) -> None:
    """Leave a cluster out of suggestions and reviews."""
    live = core.live(cluster)
    core.running().note([(events.IGNORED, live, int(check_yes_no("on", on)))])


def _set_name(core: Core, cluster: int, name: str | None) -> None:
    ledger = core.up_to_date_ledger()
    if name is not None:
        check_name(name)
        holder = ledger.bearer(name)
        if holder not in (-1, cluster):
            raise ArgumentError(
                f"the name {name!r} for cluster {cluster}",
                expected=f"a name that is free: it is cluster {holder}'s",
                remedy=f"If they are one, same({holder}, {cluster}, of='clusters').",
            )
    if ledger.names.get(cluster) != name:
        text = -1 if name is None else ledger.number(name)
        core.running().note([(events.NAMED, cluster, text)])


@one_change
def enrol(core: Core, name: str, X: npt.ArrayLike, *, locked: bool = True) -> int:
    """Add prototypes of a known identity; return the ID of its cluster."""
    check_name(name)
    check_yes_no("locked", locked)
    rows = core.check_rows(X)
    if not len(rows):
        raise ArgumentError(
            "no vectors to enrol", expected="one or more", remedy="Pass rows of vectors."
        )
    fixed = core.quantised(rows)
    core.check_room(len(rows))
    engine, ledger = core.start_engine(rows.shape[1]), core.up_to_date_ledger()
    since = engine.n_events
    cluster = ledger.bearer(name)
    engine.note([(events.ENROLLED, ledger.number(name), len(rows), int(bool(locked)))])
    core.confidence.margins_of.skip(core.n_vectors)
    nodes = []
    for q in fixed:
        near = nearest_in(engine, q, cluster).target if cluster >= 0 else -1
        decision = engine.place(q, outcome=NEW if near < 0 else LINKED, target=near, rule=PINNED)
        cluster = decision.cluster
        nodes.append(decision.subcluster)
    for node in nodes:
        engine.flag(node, CLAIM | (LOCKED if locked else 0))
    enforce(core, since)
    run_maintenance(core, core.n_vectors - len(rows))
    return cluster


def _sides(core: Core, a: int, b: int, of: str) -> tuple[list[Subject], list[Subject]]:
    """Return the two subjects of a correction: each one vector, or subclusters as a whole."""
    check_kind(of)
    if of == "vectors":
        holders = core.holder(a), core.holder(b)
        return [(int(a), holders[0])], [(int(b), holders[1])]
    if of == "subclusters":
        numbers = core.check_subcluster(a), core.check_subcluster(b)
        return [(-1, numbers[0])], [(-1, numbers[1])]
    return _subclusters_of(core, core.live(a)), _subclusters_of(core, core.live(b))


def _subclusters_of(core: Core, cluster: int) -> list[Subject]:
    return [(-1, number) for number in core.running().parts(cluster).numbers.tolist()]


def _largest(core: Core, side: list[Subject]) -> Subject:
    """Return the largest of the subclusters of a cluster (tie: the oldest)."""
    if len(side) == 1:
        return side[0]
    part = core.running().parts(core.running().cluster_of(side[0][1]))
    count = dict(zip(part.numbers.tolist(), part.counts.tolist(), strict=True))
    return max(side, key=lambda subject: (count[subject[1]], -subject[1]))


def _refuse_names(core: Core, one: int, other: int, said: str) -> None:
    """Raise ContradictionError if two subclusters are in clusters of different names."""
    engine = core.running()
    clusters = engine.cluster_of(one), engine.cluster_of(other)
    if clusters[0] != clusters[1]:
        core.laws().refuse_names(*clusters, said)


def _can_leave(core: Core, vectors: Sequence[int], leaves_others: bool) -> bool:
    """Return whether vectors can leave their subclusters; `leaves_others`: none becomes empty."""
    if min(vectors) < 0:
        return False
    rest: dict[int, tuple[int, npt.NDArray[np.int64]]] = {}
    for vector, q in zip(vectors, core.kept(vectors), strict=True):
        node = core.running().holder(vector)
        count, total = rest.get(node) or core.running().total_of(node)
        count, total = count - 1, total - share(q, core.ledger.missing_weights.get(vector, 0))
        if is_hollow(count, total):
            return False
        rest[node] = count, total
    return not leaves_others or all(count for count, _ in rest.values())


def _enact(
    core: Core,
    event: tuple[int, ...],
    sides: list[list[Subject]],
    plans: Iterable[Plan],
    told: list[tuple[int, ...]],
) -> None:
    """Carry out a correction by the first plan that works; `plans` raises if there is no other."""
    for plan in plans:
        try:
            _try_plan(core, event, sides, plan, told)
        except LinkstreamError:  # taking a vector out made others merge; rolled back
            continue
        if told:
            tell_of_drift(core, PAIR)
        return


def _try_plan(
    core: Core,
    event: tuple[int, ...],
    sides: list[list[Subject]],
    plan: Plan,
    told: list[tuple[int, ...]],
) -> None:
    """Carry out a correction by one plan, or restore everything and raise."""
    rows = [(group, core.kept(group)) for group in plan.leaving]
    assert core.change is not None, "a correction is a change"
    back, since = core.change.savepoint() if plan else None, core.running().n_events
    laws = [law for earlier, _ in plan.retracted for law in core.ledger.book.of_event(earlier)]
    freed = core.ledger.nodes_of(laws)
    pins = [(node, vector, side) for side in (0, 1) for vector, node in sides[side]]
    said = [event, *((events.PINNED, *pin) for pin in pins), *told]
    said += [(events.RETRACTED, *earlier, 0) for earlier in plan.retracted]
    core.running().note(said)
    try:
        for group, kept in rows:
            for vector, q in zip(group, kept, strict=True):
                _lift(core, vector, q, to=group[0])
        enforce(core, since, freed=freed)
        _check_joined(core, event)
    except LinkstreamError:
        assert back is not None, "an empty plan was checked before"
        back()
        raise


def _check_joined(core: Core, event: tuple[int, ...]) -> None:
    """Raise ArgumentError if two clusters to be joined are two: too much was cut off first."""
    code, a, b, level = event
    if (code, level) == (events.SAME, CLUSTERS) and core.resolve(a) != core.resolve(b):
        raise ArgumentError(
            f"clusters {a} and {b} after they were joined",
            expected="one cluster",
            remedy="Retract the corrections that keep parts of them apart.",
        )


def _lift(core: Core, vector: int, q: Fixed, *, to: int) -> None:
    """Take a vector out into a cluster of its own, or into that of vector `to`."""
    engine = core.running()
    missing_weight = core.up_to_date_ledger().missing_weights.get(vector, 0)
    engine.withdraw(q, missing_weight=missing_weight, target=engine.holder(vector), member=vector)
    engine.place(
        q,
        missing_weight=core.up_to_date_ledger().missing_weights.get(vector, 0),
        outcome=NEW if vector == to else LINKED,
        target=-1 if vector == to else engine.holder(to),
        member=vector,
        rule=PINNED,
    )
