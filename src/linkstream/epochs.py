"""Epochs: the spaces that the vectors of a clusterer were in, one after the other.

A rebuild may change the space: it centres all vectors anew, or replaces them by those of another
encoder. Vectors that come later are in the new space from the start. The event `rebuilt` that
changed the space names an epoch; the first epoch has no event. If the rebuild is undone, the epoch
no longer stands; a redo restores it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.engine.fixed_point import SCALE, norms, quantise, row_sums, squared_norms
from linkstream.engine.state import Fixed, State
from linkstream.errors import ArgumentError
from linkstream.identity.ledger import Ledger
from linkstream.space import Floats, Space

# Makes fixed-point numbers and lengths of vectors; both engines have one.
Quantise = Callable[[npt.NDArray[np.float32]], tuple[Fixed, Floats]]

FIRST = -1  # in place of the event of the first epoch


@dataclass(frozen=True, slots=True)
class Epoch:
    """A space, from a rebuild on.

    Attributes:
        event: sequence number of the event `rebuilt` that began the epoch; `FIRST` for the first.
        n_vectors: number of vectors before that event.
        space: the space of all vectors while the epoch is the last one that stands.
        dimension: their dimension; 0: unknown until the epoch ends.
        given: whether these vectors came with the rebuild; False: they were centred anew.
        stands: whether the rebuild was not undone.
    """

    event: int
    n_vectors: int
    space: Space
    dimension: int = 0
    given: bool = False
    stands: bool = True


@dataclass(frozen=True, slots=True)
class Epochs:
    """All epochs that stand or may be redone, in order of their events."""

    known: tuple[Epoch, ...]

    @classmethod
    def first(cls, space: Space) -> Epochs:
        """Return the epochs of a clusterer whose space never changed."""
        return cls((Epoch(FIRST, 0, space),))

    @property
    def standing(self) -> tuple[Epoch, ...]:
        """The epochs that stand, in order; there is always the first."""
        return tuple(epoch for epoch in self.known if epoch.stands)

    @property
    def last(self) -> Epoch:
        """The present epoch."""
        return self.standing[-1]

    @property
    def encoder(self) -> int:
        """The event that changed the encoder last; `FIRST` if it was never changed."""
        return max(
            (epoch.event for epoch in self.known if epoch.stands and epoch.given), default=FIRST
        )

    def begun(self, epoch: Epoch, dimension: int) -> Epochs:
        """Return the epochs after another one began; those that do not stand are forgotten.

        `dimension` is that of the vectors before.
        """
        *others, last = self.standing
        return Epochs((*others, replace(last, dimension=dimension), epoch))

    def with_rebuilds(self, events: Collection[int], since: int) -> Epochs:
        """Return the epochs when of the events from `since` on, only these rebuilds stand."""
        return Epochs(
            tuple(
                replace(epoch, stands=epoch.event in events) if epoch.event >= since else epoch
                for epoch in self.known
            )
        )

    def to_plain(self) -> list[dict[str, Any]]:
        """Return all epochs but the first as values for JSON, and the first one's space."""
        return [
            {
                "event": epoch.event,
                "n_vectors": epoch.n_vectors,
                "given": epoch.given,
                "stands": epoch.stands,
                "model": epoch.space.model,
                "dimension": epoch.dimension,
                "space_dimension": epoch.space.dimension,
                "mean": _encoded(epoch.space),
            }
            for epoch in self.known
        ]

    @classmethod
    def from_plain(cls, rows: Any, space: Space, n_vectors: int, n_events: int) -> Epochs:
        """Return the epochs that `to_plain` gave; raise ValueError if there is a broken rule."""
        if rows is None:
            return cls.first(space)
        made = cls(tuple(_epoch(row) for row in rows))
        events = [epoch.event for epoch in made.known]
        counts = [epoch.n_vectors for epoch in made.standing]
        if not events or events[0] != FIRST or not made.known[0].stands:
            raise ValueError("the first epoch is missing")
        if events != sorted(set(events)) or events[-1] >= n_events or counts != sorted(counts):
            raise ValueError("epochs that do not follow on one another")
        if counts[0] != 0 or counts[-1] > n_vectors or made.last.space != space:
            raise ValueError("epochs that do not fit the clusterer")
        return made


def _epoch(row: Any) -> Epoch:
    numbers = row["event"], row["n_vectors"], row["dimension"]
    flags = row["given"], row["stands"]
    if any(type(n) is not int for n in numbers) or any(type(f) is not bool for f in flags):
        raise ValueError("an epoch of other values")
    event, n_vectors, dimension = numbers
    mean = row["mean"]
    try:
        decoded = None if mean is None else np.frombuffer(base64.b64decode(mean), dtype="<f8")
        space = Space(decoded, row["model"], row["space_dimension"])
    except (ArgumentError, binascii.Error, TypeError) as error:
        raise ValueError(f"the space of an epoch: {error}") from None
    return Epoch(event, n_vectors, space, dimension, *flags)


def _encoded(space: Space) -> str | None:
    if space.mean is None:
        return None
    return base64.b64encode(space.mean.astype("<f8").tobytes()).decode()


# Vectors from one space to another


def in_space(
    space: Space, rows: npt.NDArray[np.float32], quantise_rows: Quantise = quantise
) -> Fixed:
    """Return vectors of an encoder as fixed-point numbers in a space; raise VectorError.

    `quantise_rows` makes numbers of vectors that are not centred.
    """
    if space.mean is None:
        fixed, lengths = quantise_rows(rows)
        door.check_norms(rows, lengths)
        return fixed
    centred = space.centre(rows)
    fixed, lengths = quantise(centred)
    door.check_norms(centred, lengths)
    return fixed


def recentred(fixed: Fixed, before: Space, after: Space) -> Fixed:
    """Return vectors of one space as they are in another space of the same encoder.

    A centred vector u of length 1 came from the unit vector m + t·u, with the one t > 0 for which
    its length is 1; m is the mean of the space. Rounding moves each coordinate by about 2⁻²⁹.
    """
    units = _uncentred(fixed / SCALE, before)
    if after.mean is not None:
        units = units / norms(units)[:, np.newaxis] - after.mean
    found, lengths = quantise(units)
    door.check_norms(units, lengths)
    return found


def _uncentred(units: Floats, space: Space) -> Floats:
    """Return the unit vectors of an encoder that a space made these of."""
    if space.mean is None:
        return units
    mean = space.mean
    along = row_sums(units * mean)
    scale = np.sqrt(along * along + (1.0 - squared_norms(mean[np.newaxis])[0])) - along
    restored: Floats = mean + scale[:, np.newaxis] * units
    return restored


@dataclass(frozen=True, slots=True)
class FormerVectors:
    """The vectors of an epoch that is not the present one.

    Attributes:
        rows: all of them, by number.
        undone: those that undo took before, which redo may restore, oldest first.
    """

    rows: Fixed
    undone: Fixed | None = None


@dataclass(frozen=True, slots=True)
class Former:
    """A clusterer that keeps no vectors, before a rebuild changed its encoder; undo needs it.

    Attributes:
        state: its state, without the log.
        ledger: its ledger.
        epochs: its spaces.
        end: number of events after the change; with more of them it cannot be undone any more.
    """

    state: State
    ledger: Ledger
    epochs: Epochs
    end: int = 0

    @property
    def first(self) -> int:
        """The first event of the change."""
        return self.state.n_events

    def until(self, end: int) -> Former:
        """Return the same for a change that ended with this number of events."""
        return replace(self, end=end)
