"""Change the space of all vectors, and go back to an earlier one.

A rebuild may centre the vectors anew, or take those of another encoder. Numbers stay: vector 17 is
the same item in each space. The vectors of the space before are kept for undo, in memory; a store
makes them again from its journal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import check_space
from linkstream.clusterer.core import Core, ExternalVectors
from linkstream.engine import door
from linkstream.engine.contract import VectorStore
from linkstream.engine.state import Fixed, Integers, State
from linkstream.epochs import Epoch, Epochs, FormerVectors, in_space, recentred
from linkstream.errors import ArgumentError, SpaceError, UndoError, VectorError
from linkstream.space import Space

_BLOCK = 65_536  # vectors at a time

Fetch = Callable[[Integers], Fixed]  # vectors by number


@dataclass(frozen=True, slots=True)
class NewSpace:
    """A space that a rebuild changes to.

    Attributes:
        space: the space.
        before: the present space.
        given: all vectors by number, if the rebuild came with vectors; None: they are centred anew.
    """

    space: Space
    before: Space
    given: Fixed | None = None

    def fetch(self, fetch: Fetch) -> Fetch:
        """Return what reads vectors in this space; `fetch` reads them in the present one."""
        if self.given is not None:
            return self.given.__getitem__
        return lambda numbers: recentred(fetch(numbers), self.before, self.space)


def new_space(
    before: Space, state: State, space: Space | None, vectors: npt.ArrayLike | None
) -> NewSpace | None:
    """Return the space that a rebuild changes to; None if it does not change."""
    if space is None and vectors is None:
        return None
    after = check_space(space)
    if vectors is not None:
        return NewSpace(after, before, _given(vectors, after, state))
    if after == before:
        return None
    if after.dimension not in (None, state.dimension):
        raise SpaceError(
            f"a space of dimension {after.dimension}",
            expected=f"dimension {state.dimension}, as the vectors have",
            remedy="Pass the vectors of the other encoder, too: vectors=.",
        )
    return NewSpace(after, before)


def _given(vectors: npt.ArrayLike, space: Space, state: State) -> Fixed:
    """Return vectors by number in a space; a unit vector stands for each one that was removed."""
    rows = door.vectors(vectors, dimension=space.dimension)
    if len(rows) != state.n_vectors:
        raise ArgumentError(
            f"{len(rows)} vectors for a rebuild of {state.n_vectors}",
            expected="one vector for each number, those of removed vectors included",
            remedy="Row i is vector number i in the new encoder; rows of removed ones may be zero.",
        )
    there = np.flatnonzero(state.vectors >= 0)
    found = np.zeros(rows.shape, dtype=np.int32)
    found[:, 0] = 2**30
    for start in range(0, len(there), _BLOCK):
        some = there[start : start + _BLOCK]
        try:
            found[some] = in_space(space, rows[some])
        except VectorError as error:
            row = None if error.row is None else int(some[error.row])
            raise VectorError(
                f"vector {row}, {error.seen}", expected=error.expected, remedy=error.remedy, row=row
            ) from None
    return found


def enter(core: Core, new: NewSpace, event: int, after: int) -> None:
    """Go on in a new space, which an event begins; the engine must then be replaced.

    `after` is the dimension of the vectors in it.
    """
    before, n, dimension = core.epochs.last.event, core.n_vectors, core.running().dimension
    vectors = core.vectors
    epoch = Epoch(event, n, new.space, after, given=new.given is not None or vectors is None)
    core.epochs = core.epochs.begun(epoch, dimension)
    core.space, core.undone = new.space, None
    if vectors is None:
        return
    if core.external_vectors:
        assert isinstance(vectors, ExternalVectors), "a store reads them from its journal"
        core.vectors = vectors.at(core.epochs, new.given)
        return
    numbers = np.arange(n, dtype=np.int64)
    standing = {epoch.event for epoch in core.epochs.standing}
    core.former = {each: rows for each, rows in core.former.items() if each in standing}
    core.former[before] = FormerVectors(vectors.rows(numbers))
    core.vectors = _stored(core, new.fetch(vectors.rows)(numbers))


def vectors_in(core: Core, epochs: Epochs, n: int) -> VectorStore:
    """Return the first n vectors as they are when these epochs stand."""
    vectors = _vectors(core)
    if epochs.last.event == core.epochs.last.event:
        return vectors
    if isinstance(vectors, ExternalVectors):
        return vectors.at(epochs)
    former = core.former.get(epochs.last.event)
    if former is None or len(former.rows) < n:
        raise UndoError(
            "an undo or redo across a change of the space, to vectors that were not kept",
            expected="the clusterer in which the space was changed; snapshots hold one space",
            remedy="Go back to a snapshot from before, or call rebuild(space=…) again.",
        )
    return _stored(core, former.rows[:n])


def go_back(core: Core, epochs: Epochs, vectors: VectorStore, *, redo: bool) -> None:
    """Go on in an earlier space, or one that redo restores; the engine must then be replaced."""
    if epochs.last.event == core.epochs.last.event:
        core.epochs = epochs
        return
    if not core.external_vectors:
        numbers = np.arange(core.n_vectors, dtype=np.int64)
        rows = _vectors(core).rows(numbers)
        core.former[core.epochs.last.event] = FormerVectors(rows, core.undone)
        core.undone = core.former[epochs.last.event].undone if redo else None
    core.epochs, core.space, core.vectors = epochs, epochs.last.space, vectors


def _vectors(core: Core) -> VectorStore:
    assert core.vectors is not None, "vectors are kept"
    return core.vectors


def _stored(core: Core, rows: Fixed) -> VectorStore:
    made = core.factory.vector_store(rows.shape[1])
    made.append(np.ascontiguousarray(rows))
    return made
