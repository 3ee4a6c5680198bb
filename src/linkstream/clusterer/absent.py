"""Which vectors are there, and the errors for clusters and vectors that are not, with the reason.

A vector is there from its arrival until it is removed or undone, also while it is held. Whether it
is in a cluster is another question: `Core.holder` answers that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

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


def are_there(core: Core, vectors: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return whether each of some vectors is there; reads these alone."""
    numbers = np.asarray(vectors, dtype=np.int64)
    known: npt.NDArray[np.bool_] = (numbers >= 0) & (numbers < core.n_vectors)
    if core.track_vectors and known.any():
        holder, held = core.running().holder, core.up_to_date_ledger().held
        known[known] = [holder(n) >= 0 or n in held for n in numbers[known].tolist()]
    return known


def check_there(core: Core, vector: int) -> int:
    """Return the number of a vector; raise an error unless it is there."""
    core.check_vector(vector)
    number = int(vector)
    if not are_there(core, [number])[0]:
        raise vector_error(core, number)
    return number


def all_there(core: Core) -> npt.NDArray[np.bool_]:
    """Return for every number whether its vector is there; for clusterers that track vectors."""
    if core.engine is None:
        return np.empty(0, dtype=np.bool_)
    there: npt.NDArray[np.bool_] = core.engine.labels() >= 0
    there[list(core.up_to_date_ledger().held)] = True
    return there


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
