"""Snapshots and copies of a clusterer: bytes, files, parts of the event log."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from linkstream import saving
from linkstream.clusterer import views
from linkstream.clusterer.absent import refuse_held
from linkstream.clusterer.change import one_change
from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.core import Core
from linkstream.clusterer.former import standing
from linkstream.clusterer.removal import timeline
from linkstream.engine import atomic_files
from linkstream.engine.events import Event
from linkstream.errors import ArgumentError
from linkstream.identity.folding import Base
from linkstream.saving import Saved


def saved(core: Core) -> Saved:
    """Return all that a snapshot holds, except the vectors themselves."""
    ledger = core.up_to_date_ledger()
    return Saved(
        state=core.state(),
        space=core.space,
        healing=core.healing,
        ledger=ledger,
        limits=core.limits,
        min_size=core.min_size,
        keep_vectors=core.keep_vectors,
        epochs=core.epochs,
        confidence=core.confidence.given_model,
        learnt=core.confidence.learnt,
        encoder=core.confidence.encoder,
        margins=core.confidence.margins_of.first(core.n_vectors),
        rebuild_thresholds=core.rebuild_thresholds,
        former=standing(core),
    )


def saved_without_history(core: Core) -> Saved:
    """Return what a store saves: no event log, no vectors. Later changes do not affect it."""
    whole = saved(core)
    state = replace(whole.state, events=whole.state.events[:0])
    return replace(whole, state=state, ledger=copy.deepcopy(whole.ledger), keep_vectors=False)


def _saved_with_vectors(core: Core) -> Saved:
    kept = None
    if core.vectors is not None and core.n_vectors:
        kept = core.vectors.rows(np.arange(core.n_vectors, dtype=np.int64))
    undone = core.undone if core.undone is not None and len(core.undone) else None
    if undone is not None and not timeline(core, "redo").taken:
        undone = None
    return replace(saved(core), kept=kept, undone=undone)


def to_bytes(core: Core, *, history: bool = True) -> bytes:
    """Return a snapshot."""
    whole = _saved_with_vectors(core)
    if not check_yes_no("history", history):
        state = replace(whole.state, events=whole.state.events[:0])
        whole = replace(whole, state=state, undone=None)
    return saving.pack(whole)


def save(core: Core, path: str | os.PathLike[str]) -> None:
    """Write a snapshot to a file, completely or not at all."""
    whole = _saved_with_vectors(core)
    saving.check(whole)
    atomic_files.write(Path(path), saving.pack(whole))


def copied(core: Core) -> Core:
    """Return an independent core with the same state, engine and threads."""
    twin = Core(saving.unpack(to_bytes(core)), **core.engine_options)
    twin.last_decisions, twin.disagreements = core.last_decisions, core.disagreements
    twin.confidence.set_margins(core.confidence.margins)
    if not core.external_vectors:
        twin.base = core.base  # undo goes back as far; a base never changes
        twin.former = dict(core.former)
    return twin


def without_vectors(core: Core) -> Core:
    """Return a copy that knows its clusters but not their vectors."""
    refuse_held(core, "without_vectors of a clusterer")
    whole = saved(core)
    if whole.ledger.pins:
        raise ArgumentError(
            "a clusterer with constraints, groups or prototypes",
            expected="a clusterer without corrections of single vectors",
            remedy="Absorb it as it is, into a clusterer made with track_vectors=True.",
        )
    nothing = np.empty(0, dtype=np.int64)
    state = replace(
        whole.state, track_vectors=False, vectors=nothing, events=whole.state.events[:0]
    )
    ledger = replace(copy.deepcopy(whole.ledger), missing_weights={})  # the state holds the weights
    bare = replace(whole, state=state, ledger=ledger, keep_vectors=False, margins=None, former=None)
    return Core(bare, engine=core.factory.name)


@one_change
def drain_events(core: Core) -> list[Event]:
    """Return all events that are kept, and drop them; earlier changes cannot be undone then."""
    drained = views.events(core, core.oldest_event())
    if core.engine is not None:
        state = core.state()
        state = replace(state, events=state.events[:0])
        core.replace_state(state)
        core.base = Base(state, copy.deepcopy(core.ledger))
        core.former = {}
    return drained
