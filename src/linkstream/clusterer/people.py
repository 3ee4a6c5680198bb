"""People: the side of a clusterer that obeys. Corrections, names, seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.base import Fixed, check_kind, check_yes_no
from linkstream.clusterer.change import one_change
from linkstream.clusterer.erasing import Erasing, is_hollow
from linkstream.engine import events
from linkstream.engine.contract import LINKED, NEW, Decision
from linkstream.engine.forest import CLAIM, LAW, LOCKED
from linkstream.engine.kept import share
from linkstream.errors import ArgumentError, LinkstreamError, UnknownIdError
from linkstream.identity import corrections, laws, precedence
from linkstream.identity.corrections import Correction
from linkstream.identity.laws import Subject
from linkstream.identity.ledger import CLUSTERS, KINDS, is_name
from linkstream.identity.precedence import Plan
from linkstream.identity.regrouping import Regrouping


class People(Erasing):
    """The verbs of `Links` that change what vectors and clusters are to each other.

    Each is refused with a typed error before anything changes, or done wholly. All of them are
    events, hold for ever, and can be undone.
    """

    @one_change
    def same(self, a: int, b: int, *, of: str = "vectors") -> None:
        """Two vectors, subclusters or clusters are one: they share a cluster from now on.

        Of clusters it ties the identities, not every pair of their vectors. It wins over earlier
        corrections that are more general: where those hold `b` away, `b` comes to `a`.
        ContradictionError, which names the one correction, where one of the very same forbids it.
        """
        ones, others = self._sides(a, b, of)
        one, other = self._head(ones), self._head(others)
        if one == other:
            return
        said, ledger, level = f"same({a}, {b}) of {of}", self._synced(), KINDS.index(of)
        laws.refuse_same(ledger, one, other, level, said)
        self._refuse_names(one[1], other[1], said)
        plans = precedence.to_unite(ledger, one, other, level, said, self._can_leave)
        self._enact((events.SAME, int(a), int(b), level), [[one], [other]], plans)

    @one_change
    def different(self, a: int, b: int, *, of: str = "vectors") -> None:
        """Two vectors, subclusters or clusters are not one: they never share a cluster again.

        Where they do now, the weakest of what ties them is cut; two vectors of one subcluster are
        taken apart, `b` into a cluster of its own. So is a vector of a cluster that people joined:
        the rest stays one. ContradictionError where a correction of the very same forbids it.
        """
        ones, others = self._sides(a, b, of)
        said, ledger, level = f"different({a}, {b}) of {of}", self._synced(), KINDS.index(of)
        if ones == others:
            raise ArgumentError(
                said,
                expected="two of them that are not one and the same",
                remedy="Name two vectors of the cluster that do not belong together.",
            )
        plans: Iterable[Plan] = [Plan()]
        if level != CLUSTERS:  # two clusters are never the same by law
            laws.refuse_different(ledger, ones[0], others[0], level, said)
            plans = precedence.to_part(ledger, ones[0], others[0], level, said, self._can_leave)
        self._enact((events.DIFFERENT, int(a), int(b), level), [ones, others], plans)

    @one_change
    def retract(self, correction: int) -> None:
        """Take back one correction, and nothing that came after it.

        It holds no longer: not for what comes, not against other corrections. An edge that was only
        there by its word is judged again: the two stay together if the evidence or another
        correction holds them. What `different` parted is not joined, and what `move` moved stays,
        until something else says so.

        Args:
            correction: its number, as `corrections()` and errors tell it: that of its event.
        """
        known = {law.sequence for law in self._synced().laws if law.level >= 0}
        whole = isinstance(correction, (int, np.integer)) and not isinstance(correction, bool)
        if not whole or int(correction) not in known:
            raise UnknownIdError(
                f"correction {correction!r:.80}",
                expected="the number of a same, different or move that still holds",
                remedy="corrections() shows them.",
            )
        self._running().note([(events.RETRACTED, int(correction), -1, 1)])
        here = self._laws()
        graph = Regrouping(self.state(), here.names)
        corrections.judge(graph, corrections.enforce(graph, here))
        if graph.rows:
            self._replace(graph.finish())

    def corrections(self) -> list[Correction]:
        """All that people said by `same`, `different` and `move`, and that still holds."""
        return corrections.listed(self._synced())

    @one_change
    def move(self, vector: int, cluster: int) -> Decision:
        """Put a vector, with what it contributed, into another cluster; it stays there."""
        node, vector = self._holder(vector), int(vector)
        target = self._live(cluster)
        engine = self._running()
        if engine.cluster_of(node) == target:
            raise ArgumentError(
                f"move({vector}, {cluster})",
                expected="another cluster than the one that holds the vector",
                remedy="It is there already; same() keeps it there.",
            )
        self._refuse_move(vector, target)
        q, light = self._kept([vector])[0], self._ledger.lights.get(vector, 0)
        self._refuse_hollow(node, q, light)
        engine.note([(events.RELOCATED, vector, target), (events.PINNED, node, -1, 2)])
        engine.withdraw(q, light=light, target=node, member=vector)
        place = self._nearest_in(engine, q, target)
        decision = engine.take(
            q,
            light=self._synced().lights.get(vector, 0),
            outcome=place.outcome,
            target=place.target,
            member=vector,
            firm=LAW,
        )
        held = decision.subcluster
        other = place.target if place.outcome == LINKED else held
        engine.note([(events.PINNED, held, vector, 0), (events.PINNED, other, -1, 1)])
        self._enforce()
        return decision

    @one_change
    def name(self, cluster: int, name: str, *, claim: bool = False) -> None:
        """Give a cluster a name of its own. Clusters with different names are never joined.

        With `claim`, the part that holds its largest subcluster keeps ID and name at a split,
        however small that part may be.
        """
        _check_name(name)
        check_yes_no("claim", claim)
        live = self._live(cluster)
        if self._ledger.names.get(live, name) != name:
            raise ArgumentError(
                f"name({cluster}, {name!r}) of a cluster that is {self._ledger.names[live]!r}",
                expected="a cluster without a name",
                remedy="Use rename() to change it.",
            )
        self._rename(live, name)
        if claim:
            state = self.state()
            _, head = self._head([(-1, n) for n in state.numbers[state.clusters == live].tolist()])
            flags = int(state.flags[np.searchsorted(state.numbers, head)])
            self._running().flag(head, flags | CLAIM)

    @one_change
    def rename(self, cluster: int, name: str | None) -> None:
        """Give a cluster another name; None takes it away."""
        self._rename(self._live(cluster), name)

    @one_change
    def ignore(self, cluster: int, on: bool = True) -> None:
        """Leave a cluster out of suggestions and reviews; it goes on taking vectors."""
        live = self._live(cluster)
        self._running().note([(events.IGNORED, live, int(check_yes_no("on", on)))])

    def named(self, name: str) -> int:
        """The cluster that has a name; ArgumentError where none has."""
        _check_name(name)
        found = [cluster for cluster, text in self._synced().names.items() if text == name]
        if not found:
            raise ArgumentError(
                f"the name {name!r}",
                expected="one that was given by name() or enrol()",
                remedy="clusters() shows the names there are.",
            )
        return found[0]

    def _rename(self, cluster: int, name: str | None) -> None:
        ledger = self._synced()
        if name is not None:
            _check_name(name)
            holder = [other for other, text in ledger.names.items() if text == name]
            if holder and holder[0] != cluster:
                raise ArgumentError(
                    f"the name {name!r} for cluster {cluster}",
                    expected=f"a name that is free: it is cluster {holder[0]}'s",
                    remedy=f"If they are one, same({holder[0]}, {cluster}, of='clusters').",
                )
        if ledger.names.get(cluster) != name:
            text = -1 if name is None else ledger.number(name)
            self._running().note([(events.NAMED, cluster, text)])

    @one_change
    def enrol(self, name: str, X: npt.ArrayLike, *, locked: bool = True) -> int:
        """Vectors of somebody known: prototypes of a cluster with that name. Returns its ID.

        Each is a subcluster of its own. Locked prototypes take vectors in but do not drift. At a
        split the part with most of the prototypes keeps the ID and the name. Clusters that are
        there already are left as they are: tie them to it with `same`.
        """
        _check_name(name)
        check_yes_no("locked", locked)
        rows = self._vectors(X)
        if not len(rows):
            raise ArgumentError(
                "no vectors to enrol", expected="one or more", remedy="Pass rows of vectors."
            )
        fixed = self._fixed(rows)
        self._check_room(len(rows))
        engine = self._begun(rows.shape[1])
        ledger = self._synced()
        cluster = next((c for c, text in ledger.names.items() if text == name), -1)
        engine.note([(events.ENROLLED, ledger.number(name), len(rows), int(bool(locked)))])
        nodes = []
        for q in fixed:
            near = self._nearest_in(engine, q, cluster).target if cluster >= 0 else -1
            decision = engine.take(q, outcome=NEW if near < 0 else LINKED, target=near, firm=LAW)
            cluster = decision.cluster
            nodes.append(decision.subcluster)
        for node in nodes:
            engine.flag(node, CLAIM | (LOCKED if locked else 0))
        self._enforce()
        self._tend(self.n_vectors - len(rows))
        return cluster

    def _sides(self, a: int, b: int, of: str) -> tuple[list[Subject], list[Subject]]:
        """What a person speaks of: vectors, or subclusters as wholes."""
        check_kind(of)
        sides: list[list[Subject]] = []
        for number in (a, b):
            if of == "vectors":
                node = self._holder(number)
                sides.append([(int(number), node)])
            elif of == "subclusters":
                sides.append([(-1, self._check_subcluster(number))])
            else:
                live, state = self._live(number), self.state()
                sides.append([(-1, n) for n in state.numbers[state.clusters == live].tolist()])
        return sides[0], sides[1]

    def _head(self, side: list[Subject]) -> Subject:
        """The largest of some subclusters (tie: the oldest)."""
        if len(side) == 1:
            return side[0]
        state = self.state()
        count = dict(zip(state.numbers.tolist(), state.counts.tolist(), strict=True))
        return max(side, key=lambda subject: (count[subject[1]], -subject[1]))

    def _refuse_names(self, one: int, other: int, said: str) -> None:
        engine = self._running()
        clusters = engine.cluster_of(one), engine.cluster_of(other)
        if clusters[0] != clusters[1]:
            self._laws().refuse_names(*clusters, said)

    def _can_leave(self, vectors: Sequence[int], leaves_others: bool) -> bool:
        """Whether vectors, by number, can be taken out of the subclusters that hold them.

        If `leaves_others`, each of these must hold others, too.
        """
        if min(vectors) < 0:
            return False
        rest: dict[int, tuple[int, npt.NDArray[np.int64]]] = {}
        for vector, q in zip(vectors, self._kept(list(vectors)), strict=True):
            node = self._running().holder(vector)
            count, total = rest.get(node) or self._running().total_of(node)
            count, total = count - 1, total - share(q, self._ledger.lights.get(vector, 0))
            if is_hollow(count, total):
                return False
            rest[node] = count, total
        return not leaves_others or all(count for count, _ in rest.values())

    def _enact(
        self, deed: tuple[int, ...], sides: list[list[Subject]], plans: Iterable[Plan]
    ) -> None:
        """Write down what a person said, let others give way, and do it.

        By the first plan that can be done; `plans` raises an error when there is no other.
        """
        for plan in plans:
            try:
                self._do(deed, sides, plan)
            except LinkstreamError:  # taking a vector out has made others merge: as it was
                continue
            return

    def _do(self, deed: tuple[int, ...], sides: list[list[Subject]], plan: Plan) -> None:
        """One way to do what a person said: all of it, or an error and nothing."""
        rows = [(group, self._kept(list(group))) for group in plan.leaving]
        before = (self.state(), self._ledger.copy()) if plan else None
        pins = [(node, vector, side) for side in (0, 1) for vector, node in sides[side]]
        said = [deed, *((events.PINNED, *pin) for pin in pins)]
        said += [(events.RETRACTED, *earlier, 0) for earlier in plan.retracted]
        self._running().note(said)
        try:
            for group, kept in rows:
                for vector, q in zip(group, kept, strict=True):
                    self._lift(vector, q, to=group[0])
            self._enforce()
        except LinkstreamError:
            assert before is not None, "all else was looked at before"
            self._ledger = before[1]
            self._replace(before[0])
            raise

    def _lift(self, vector: int, q: Fixed, *, to: int) -> None:
        """Take a vector out into a cluster of its own, or to the one taken out before."""
        engine = self._running()
        light = self._synced().lights.get(vector, 0)
        engine.withdraw(q, light=light, target=engine.holder(vector), member=vector)
        engine.take(
            q,
            light=self._synced().lights.get(vector, 0),
            outcome=NEW if vector == to else LINKED,
            target=-1 if vector == to else engine.holder(to),
            member=vector,
            firm=LAW,
        )

    def _refuse_move(self, vector: int, target: int) -> None:
        """ContradictionError where what was said of a vector forbids a cluster."""
        ledger, engine = self._synced(), self._running()
        said = f"move({vector}, {target})"
        for law in ledger.laws:
            for ours, theirs in (law.sides, law.sides[::-1]):
                if law.mover == vector or all(ledger.pins[pin].vector != vector for pin in ours):
                    continue
                inside = [engine.cluster_of(node) == target for node in ledger.nodes(theirs)]
                if (law.together and not all(inside)) or (not law.together and any(inside)):
                    raise laws.contradiction(said, (law,))
        for group in ledger.groups:
            members = {ledger.pins[pin].vector for pin in group}
            if vector in members:
                mates = [pin for pin in group if ledger.pins[pin].vector != vector]
                if any(engine.cluster_of(node) == target for node in ledger.nodes(mates)):
                    reason = f"a vector seen together with {vector} is there"
                    raise laws.contradiction(said, (reason,))


def _check_name(name: object) -> None:
    if not is_name(name):
        raise ArgumentError(
            f"the name {name!r}",
            expected="a text that is not empty, of whole characters",
            remedy="rename(cluster, None) takes a name away.",
        )
