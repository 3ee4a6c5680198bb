"""The errors for clusters and vectors that are not there, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstream.engine import events
from linkstream.errors import ArgumentError, RemovedError
from linkstream.identity.timeline import Timeline

if TYPE_CHECKING:
    from linkstream.clusterer.core import Core


def cluster_error(core: Core, cluster_id: int) -> RemovedError:
    """Return the error for the ID of a cluster that is gone."""
    return RemovedError(
        f"cluster {cluster_id}",
        expected="one that is still there",
        remedy=f"{_why_gone(core, cluster_id)}; clusters() lists those that are there.",
    )


def vector_error(core: Core, vector: int) -> RemovedError:
    """Return the error for a vector that is in no cluster."""
    if vector in core.up_to_date_ledger().held:
        return RemovedError(
            f"vector {vector}, which is held",
            expected="one that is in a cluster",
            remedy="Decide on it first: assign() puts it into a cluster, remove() drops it.",
        )
    return RemovedError(
        f"vector {vector}",
        expected="one that is still there",
        remedy="It was removed, or its cluster was forgotten; undo that to restore it.",
    )


def refuse_held(core: Core, what: str) -> None:
    """Raise ArgumentError if vectors are held: they would be lost."""
    held = core.up_to_date_ledger().held
    if held:
        raise ArgumentError(
            f"{what} that holds {len(held)} vectors",
            expected="a clusterer without vectors that wait for a decision",
            remedy="Decide on them first: assign() for each, or accept() for all.",
        )


def _why_gone(core: Core, cluster_id: int) -> str:
    """Return why an ID stands for no cluster, as far as the event log goes back."""
    if core.oldest_event() > 0 or core.external_vectors:
        return "It was forgotten or undone, or all its vectors were removed"
    cluster = core.ledger.resolve(cluster_id)
    rows = Timeline.of(core.running().event_rows(0)[1], 0).rows
    codes = rows[:, 0]
    if (rows[codes == events.FORGOTTEN, 2] == cluster).any():
        return "It was forgotten"
    if (rows[codes == events.VANISHED, 4] == cluster).any():
        return "All its vectors were removed"
    return "It was undone"
