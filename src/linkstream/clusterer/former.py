"""Undo of a change of the encoder in a clusterer that keeps no vectors.

Sums in the present encoder do not lead back to those before. So all subclusters as they were are
kept until the next change; only right after the change can it be undone.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from linkstream.engine import events
from linkstream.epochs import Former

if TYPE_CHECKING:
    from linkstream.clusterer.core import Core


def former_of(core: Core) -> Former:
    """Return what a clusterer is now."""
    state, ledger = core.state(), copy.deepcopy(core.up_to_date_ledger())
    return Former(replace(state, events=state.events[:0]), ledger, core.epochs)


def standing(core: Core) -> Former | None:
    """Return what the clusterer was before the last change, if that changed its encoder."""
    found, engine = core.before, core.engine
    return found if found and engine is not None and engine.n_events == found.end else None


def undoes(core: Core, to: int | None) -> bool:
    """Return whether an undo, of all from the event `to` on, takes back a change of the encoder."""
    found = standing(core)
    return found is not None and (to is None or to == found.first)


def take_back(core: Core) -> None:
    """Undo the last change; it is the change of the encoder."""
    found, present = core.before, core.state()
    assert found is not None, "it was asked before"
    ledger = copy.deepcopy(found.ledger)
    ledger.texts, ledger.n_events = core.up_to_date_ledger().texts, present.n_events
    state = replace(
        found.state,
        events=present.events,
        n_events=present.n_events,
        free_subcluster=present.free_subcluster,
        free_cluster=present.free_cluster,
    )
    core.origin = replace(core.origin, thresholds=state.thresholds)
    core.epochs, core.space, core.before = found.epochs, found.epochs.last.space, None
    engine = core.make_engine(state)
    engine.note([(events.UNDONE, found.first)])
    core.engine, core.ledger = engine, ledger
