"""Pages of changes: what changed, about which clusters, and whether it can be taken back."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkstream.clusterer import notable
from linkstream.clusterer.core import Core
from linkstream.engine import events
from linkstream.engine.event_values import from_rows
from linkstream.engine.events import Event
from linkstream.errors import LinkstreamError
from linkstream.service.activity_index import ActivityIndex, Change
from linkstream.store import Store
from linkstream.store.journal import Operation
from linkstream.store.model import Model

SHOWN = 40  # events of a change that are looked at
CLUSTERS = 6  # clusters in the record of a change
_SECONDS = 2.0  # that a question may go on indexing
_SAID = ("cluster", "name", "vector", "a", "b", "of", "correction", "to", "on", "right", "claim")
_CORRECTIONS = ("same", "different", "move")
_CLUSTERS_OF = ("cluster", "gone", "new_cluster")

_UNDONE = "It was taken back."
_COMPACTED = "The namespace was compacted since; undo does not go beyond that."
_NO_UNDO = "An undo is taken back by redo, as long as nothing else has changed."
_NOT_KEPT = "The namespace does not keep its vectors, so that nothing can be undone."
_NOT_ALONE = {
    notable.NAME: "A name is not taken back alone. Rename the cluster instead.",
    notable.REMOVE: "A removal is not taken back alone. Undo brings the vectors back.",
    notable.REBUILD: "A rebuild is not taken back alone. Undo brings the clusters before it back.",
    notable.POLICY: "A setting is not taken back alone. Set it again instead.",
    notable.UNDO: "",
    notable.MOVE: "Decisions on held vectors are not taken back alone. Move the vector instead.",
}
_AUTOMATIC = "The stream did this by itself. Correct it with an answer in the review, or by hand."
_REPLACED = "It does not hold any more: it was taken back, or a later correction replaced it."
_LOST = "A repair could not read this change."


def page(
    store: Store,
    index: ActivityIndex,
    *,
    before: int | None,
    limit: int,
    kinds: Sequence[str],
    automatic: bool | None,
) -> dict[str, Any]:
    """Return a page of changes, the newest first; it costs what these changes take.

    Args:
        store: the store.
        index: its index of changes.
        before: only changes whose first event has a lower number; None for the newest.
        limit: how many.
        kinds: only these kinds; all if there are none.
        automatic: only those that no person made, or only those of people; None for both.
    """
    complete = index.follow(store, seconds=_SECONDS)
    found = index.page(before, limit + 1, kinds, automatic)
    more, found = len(found) > limit, found[:limit]
    moments, _ = index.moments([change.event for change in found])
    some, facts = store.handle.read(lambda model: _read(model, found))
    rows = zip(some, moments, strict=True)
    return {
        "changes": [{**facts.record(call), **moment.to_dict()} for call, moment in rows],
        "next": found[-1].event if more else None,
        "complete": complete,
    }


def _read(model: Model, found: Sequence[Change]) -> tuple[list[_Call], _Facts]:
    """Read some changes with their calls; on the writer thread."""
    some = [_Call(change, model.journal.operation(change.operation)) for change in found]
    return some, _Facts(model, some)


class _Call:
    """A change with its call in the journal."""

    def __init__(self, change: Change, operation: Operation) -> None:
        self.change, self.operation = change, operation
        rows = operation.events
        if change.automatic:
            self.places = notable.automatic_places(change.kind, rows)[:SHOWN]
        else:
            self.places = np.arange(min(len(rows), SHOWN))
        codes = rows[:, 0]
        self.joins = int(np.isin(codes, (events.UNITED, events.TIED, events.REPLACED)).sum())
        self.cuts = int(np.isin(codes, (events.SPLIT, events.PARTED)).sum())

    def events(self, texts: list[str]) -> list[Event]:
        """Return the events that the record is made from."""
        first = self.operation.first_event
        rows = self.operation.events
        found = []
        for place in self.places.tolist():
            with contextlib.suppress(ValueError, LinkstreamError):  # an event without its text
                found += from_rows(first + place, rows[place : place + 1], texts)
        return found


class _Facts:
    """What the model knows at one moment about some changes; read on the writer thread."""

    def __init__(self, model: Model, calls: Sequence[_Call]) -> None:
        core = model.links.core
        ledger = core.up_to_date_ledger()
        self._texts = ledger.texts  # not after this moment
        self._first = model.first_undoable()
        self._keeps = model.links.track_vectors and model.links.keep_vectors
        self._n_vectors = model.links.n_vectors
        self._holding = {
            call.change.event
            for call in calls
            if any(law.level >= 0 for law in ledger.book.of_event(call.change.event))
        }
        self._newest_event = model.n_events
        self._clusters = {id(call): self._concerned(core, call) for call in calls}
        concerned = {number for numbers in self._clusters.values() for number in numbers}
        self._names = {number: ledger.names.get(number) for number in concerned}

    def _concerned(self, core: Core, call: _Call) -> list[int]:
        """Return the live clusters that a change is about."""
        said = call.operation.arguments
        numbers = [said["cluster"]] if isinstance(said.get("cluster"), int) else []
        for event in call.events(self._texts):
            named = (getattr(event, name, -1) for name in _CLUSTERS_OF)
            numbers += [number for number in named if isinstance(number, int)]
        if call.operation.verb in ("same", "different"):
            numbers += _held_by(core, call.change.event) or _of_subjects(core, said)
        live = (_live(core, number) for number in numbers if number >= 0)
        return list(dict.fromkeys(number for number in live if number >= 0))[:CLUSTERS]

    def record(self, call: _Call) -> dict[str, Any]:
        """Return the record of a change, without its time."""
        change, operation = call.change, call.operation
        after = max(0, self._n_vectors - operation.first_vector - len(operation.taken()))
        return {
            "event": change.event,
            "until": operation.first_event + len(operation.events),
            "verb": operation.verb,
            "command": None if operation.step is None else operation.step.command,
            "kind": change.kind,
            "automatic": change.automatic,
            "count": change.count,
            "said": {name: operation.arguments.get(name) for name in _SAID},
            "clusters": [
                {"id": number, "name": self._names[number]} for number in self._clusters[id(call)]
            ],
            "joins": call.joins,
            "cuts": call.cuts,
            "vectors": int(operation.n_rows),
            "vectors_since": after,
            "undone": change.undone_by is not None,
            "undo": self._undo(change, operation),
            "redo": operation.verb == "undo" and self._is_newest(operation),
            "retract": self._retract(change, operation),
        }

    def _undo(self, change: Change, operation: Operation) -> dict[str, Any]:
        """Return whether undo can go back to a change, and if not, why."""
        if change.undone_by is not None:
            why = _UNDONE
        elif operation.verb in ("undo", "redo"):
            why = _NO_UNDO
        elif change.automatic:
            why = _AUTOMATIC
        elif not self._keeps:
            why = _NOT_KEPT
        elif change.event < self._first:
            why = _COMPACTED
        else:
            why = ""
        return {"possible": not why, "why": why}

    def _is_newest(self, operation: Operation) -> bool:
        return operation.first_event + len(operation.events) == self._newest_event

    def _retract(self, change: Change, operation: Operation) -> dict[str, Any]:
        """Return whether a change can be taken back alone, and if not, why."""
        if change.undone_by is not None:
            why = _UNDONE
        elif change.automatic:
            why = _AUTOMATIC
        elif operation.verb in _CORRECTIONS:
            why = "" if change.event in self._holding else _REPLACED
        elif operation.verb not in notable.KIND_OF_VERB:
            why = _LOST
        else:
            why = _NOT_ALONE.get(change.kind, _REPLACED)
        return {"possible": operation.verb in _CORRECTIONS and not why, "why": why}


def _held_by(core: Core, event: int) -> list[int]:
    """Return the clusters of the subjects of a correction in force, wherever they are now."""
    ledger = core.ledger
    pins = [pin for law in ledger.book.of_event(event) for side in law.sides for pin in side]
    return [core.running().cluster_of(node) for node in ledger.nodes(pins)]


def _of_subjects(core: Core, said: dict[str, Any]) -> list[int]:
    """Return the clusters of the two subjects of a correction, as far as they are there."""
    found = []
    for name in ("a", "b"):
        number = said.get(name)
        if not isinstance(number, int):
            continue
        with contextlib.suppress(LinkstreamError, LookupError, ValueError):
            if said.get("of") == "clusters":
                found.append(number)
            else:
                node = number if said.get("of") == "subclusters" else core.holder(number)
                found.append(core.running().cluster_of(node))
    return found


def _live(core: Core, cluster: int) -> int:
    """Return the live cluster that an ID stands for; −1 if it is gone."""
    try:
        return int(core.live(cluster))
    except LinkstreamError:
        return -1
