"""What a stream does with unsure vectors: set a policy, list what is held, decide on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from linkstream.clusterer.change import one_change
from linkstream.clusterer.checks import whole_number
from linkstream.clusterer.core import Core, Fixed
from linkstream.clusterer.maintenance import enforce
from linkstream.confidence.policy import UNSURE, Policy
from linkstream.engine import events
from linkstream.engine.contract import JOINED, NEW, Decision
from linkstream.engine.forest import FULL, PINNED
from linkstream.errors import ArgumentError, NotTrackedError, RemovedError
from linkstream.identity.grouping import nearest_in
from linkstream.identity.held import POINT

FRESH = -1  # stands for a cluster of its own
_LEAST_WEIGHT = 0.05
_NOTHING: Mapping[int, Fixed] = {}


@dataclass(frozen=True, slots=True)
class HeldVector:
    """A vector that waits for a decision, and what would be decided now.

    Attributes:
        vector: its number.
        cluster: the cluster it would get; −1 for a new one.
        kind: "joined", "linked" or "new".
        cluster_margin: as in `Decision`.
        probability: that this would be right; None if unknown.
        id: its own key; None if it has none, as outside of a store.
        payload: its payload; None if it has none, as outside of a store.
    """

    vector: int
    cluster: int
    kind: str
    cluster_margin: float | None
    probability: float | None
    id: str | None = None
    payload: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return asdict(self)


@one_change
def accept(
    core: Core,
    probability: float | None = None,
    *,
    new: float | None = None,
    unsure: str = "hold",
    weight: float = 0.5,
    bounds: str | None = None,
) -> Policy:
    """Say from which probability on decisions are taken; decide again on what is held.

    `bounds` are those of a journal, which hold whatever the model says now.
    """
    policy = _policy(core, probability, new, unsure, weight)
    if bounds is not None and policy.unsure != "take":
        policy = Policy.from_bounds(bounds)
    ledger = core.up_to_date_ledger()
    if policy.unsure == "take" and not (ledger.policy or ledger.held):
        return policy
    engine = _started(core)
    text = -1 if policy.bounds is None else ledger.number(policy.bounds)
    engine.note([(events.ACCEPTED, text)])
    core.ready()
    if core.ledger.held:
        ask_again(core, list(core.ledger.held))
        _heal(core)
    return policy


def _heal(core: Core) -> None:
    """Settle the clusters that have grown by vectors that were held."""
    if core.settles:
        core.ready().heal()
        core.up_to_date_ledger()


def policy(core: Core) -> Policy:
    """Return what is done with unsure vectors."""
    return Policy.from_bounds(core.up_to_date_ledger().policy)


def held(core: Core, limit: int = 20, before: int | None = None) -> list[HeldVector]:
    """Return the vectors that wait for a decision, newest first, and what they would get now."""
    most = whole_number("limit", limit, "how many vectors to return")
    end = core.n_vectors
    if before is not None:
        end = whole_number("before", before, "which vectors are too new to return", least=0)
    numbers = [each for each in core.up_to_date_ledger().held if each < end][::-1][:most]
    if not numbers:
        return []
    asked = core.confidence.tell(core.running().ask(core.kept(numbers)))
    found = [asked.at(place) for place in range(len(numbers))]
    return [
        HeldVector(number, each.cluster, each.kind, each.cluster_margin, each.probability)
        for number, each in zip(numbers, found, strict=True)
    ]


@one_change
def assign(core: Core, vector: int, cluster: int | None = None) -> Decision:
    """Decide on a held vector: put it into a cluster, into a new one, or where the tests say."""
    number = _held_number(core, vector)
    q, engine = core.kept([number])[0], core.running()
    missing_weight = core.ledger.missing_weights.get(number, 0)
    target = cluster if cluster is None or _is_fresh(cluster) else core.live(cluster)
    since = engine.n_events
    if target is None or _is_fresh(target):
        engine.note([(events.ASSIGNED, number)])
        outcome = -1 if target is None else NEW
        decision = engine.place(q, missing_weight=missing_weight, outcome=outcome, member=number)
    else:
        decision = _put_into(core, number, q, target, missing_weight)
    core.up_to_date_ledger()
    enforce(core, since)
    return decision


def _put_into(core: Core, number: int, q: Fixed, target: int, missing_weight: int) -> Decision:
    """Put a held vector into a cluster, where it stays, as `move` does."""
    engine, place = core.running(), nearest_in(core.running(), q, target)
    engine.note([(events.RELOCATED, number, target)])
    decision = engine.place(
        q,
        missing_weight=missing_weight,
        outcome=place.outcome,
        target=place.target,
        member=number,
        rule=PINNED,
    )
    other = decision.subcluster if place.outcome == JOINED else place.target
    engine.note([(events.PINNED, decision.subcluster, number, 0), (events.PINNED, other, -1, 1)])
    return decision


def ask_again(core: Core, numbers: Sequence[int], given: Mapping[int, Fixed] = _NOTHING) -> None:
    """Ask again about held vectors, and put those that are sure now where the tests say.

    Without a policy that holds, all are put there, with the weights they came with.

    Args:
        core: the clusterer.
        numbers: of the vectors.
        given: vectors by number that came in this call, which a store does not have yet.
    """
    if not numbers:
        return
    rows = _rows(core, numbers, given)
    engine, doubt = core.running(), None if core.policy is None else core.policy.doubt
    if doubt is not None and not doubt.holds:
        doubt = None
    asked, missing = engine.ask(rows), core.ledger.missing_weights
    for place, number in enumerate(numbers):
        margin = float(asked.cluster_margin[place])
        if doubt is not None and doubt.is_unsure(int(asked.kind[place]), margin):
            continue
        engine.place(rows[place], missing_weight=missing.get(number, 0), member=number)
    core.up_to_date_ledger()


def at_point(core: Core, before: int, given: Mapping[int, Fixed] = _NOTHING) -> None:
    """Ask again about the vectors that are due, if the stream has passed a point.

    Args:
        core: the clusterer.
        before: the number of vectors before the last ones came.
        given: as in `ask_again`.
    """
    n = core.n_vectors
    if n // POINT == before // POINT:
        return
    held = core.up_to_date_ledger().held
    if held and not core.is_ready:
        core.ready()
    if held and core.policy is not None and core.policy.unsure == "hold":
        ask_again(core, held.due(n - n % POINT), given)


def _rows(core: Core, numbers: Sequence[int], given: Mapping[int, Fixed]) -> Fixed:
    stored = [number for number in numbers if number not in given]
    known = dict(zip(stored, core.kept(stored), strict=True)) if stored else {}
    return np.stack([given[each] if each in given else known[each] for each in numbers])


def _policy(
    core: Core, probability: float | None, new: float | None, unsure: str, weight: float
) -> Policy:
    """Return the policy that the arguments ask for; raise an error if it cannot be."""
    if unsure not in UNSURE:
        raise ArgumentError(
            f"unsure={unsure!r:.80}",
            expected=" or ".join(map(repr, UNSURE)),
            remedy="accept() without a probability takes all vectors as they come.",
        )
    if probability is None:
        return Policy()
    sure = _probability("probability", probability)
    fresh = sure if new is None else _probability("new", new)
    share = _share(weight)
    if unsure == "hold" and not (core.track_vectors and core.keep_vectors):
        raise NotTrackedError(
            "accept(unsure='hold') in a clusterer that does not keep its vectors",
            expected="track_vectors=True and keep_vectors=True",
            remedy="Use unsure='weigh', or keep vectors.",
        )
    model = core.confidence.holding()
    if core.replayed is not None:
        return Policy(unsure)  # the journal has its bounds
    if model is None:
        raise ArgumentError(
            f"accept({probability}) where probabilities are unknown: {core.confidence.why}",
            expected="a model that holds",
            remedy="Tune with labels, or answer questions, first (docs/confidence.md).",
        )
    kept = 0.0 if unsure == "hold" else share
    made = Policy.of(model, sure, fresh, unsure=unsure, weight=kept)
    return replace(made, encoder=core.epochs.encoder)


def _probability(name: str, value: float) -> float:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    least = 0.0 if name == "new" else 1e-9
    if not number or not least <= float(value) < 1.0:
        raise ArgumentError(
            f"{name}={value!r:.80}",
            expected="a probability below 1, such as 0.95",
            remedy="No decision is certain; new=0 takes every new cluster.",
        )
    return float(value)


def _share(weight: float) -> float:
    number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
    if not number or not _LEAST_WEIGHT <= float(weight) < 1.0:
        raise ArgumentError(
            f"weight={weight!r:.80}",
            expected=f"a number from {_LEAST_WEIGHT}, below 1",
            remedy="It says how much an unsure vector weighs, such as 0.5.",
        )
    return min(round(float(weight) * FULL), FULL - 1) / FULL


def _started(core: Core) -> Any:
    """Return the engine; start it if the dimension is known before the first vector."""
    if core.dimension is None:
        raise ArgumentError(
            "accept() before the first vector, where the dimension is not known",
            expected="a vector, or the dimension",
            remedy="Add the first vector, which is new in any case; or Space(dimension=…).",
        )
    return core.start_engine(core.dimension)


def _is_fresh(cluster: int) -> bool:
    return isinstance(cluster, (int, np.integer)) and cluster == FRESH


def _held_number(core: Core, vector: int) -> int:
    """Return the number of a held vector; raise an error if it is not held."""
    core.check_tracked(f"vector {vector!r}")
    core.check_vector(vector)
    if int(vector) in core.up_to_date_ledger().held:
        return int(vector)
    raise RemovedError(
        f"vector {vector}, which is not held",
        expected="one of held()",
        remedy="move() puts a vector of a cluster elsewhere.",
    )
