"""The law book: all corrections that hold, found by their pins, their event and their mover.

A correction is looked up by what it names, so that no call walks over all corrections. The indexes
change in the same steps as the corrections, so that a rollback restores them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from linkstream.identity.steps import Steps

ENROLLED = -1  # the level of what prototypes are to each other: no correction, never retracted


@dataclass(slots=True)
class Pin:
    """A subcluster, or one of its vectors, that a correction names; `vector` −1: the subcluster."""

    node: int
    vector: int
    group: int = -1


@dataclass(slots=True)
class Law:
    """A correction between pins, which are named by number.

    Attributes:
        together: whether the two sides must share a cluster, or must not.
        sequence: sequence number of its event, by which it can be retracted.
        text: the correction in words.
        mover: the vector whose move made it; the next move of that vector retracts it.
        level: index in `KINDS` of what was corrected: the lower, the more specific.
        sides: pins of the two sides.
    """

    together: bool
    sequence: int
    text: str
    mover: int = -1
    level: int = ENROLLED
    sides: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))


class LawBook:
    """Corrections by number, which only rises, and indexes of these numbers.

    Args:
        laws: corrections, oldest first.
    """

    def __init__(self, laws: Iterable[Law] = ()) -> None:
        self._laws = dict(enumerate(laws))
        self._next = len(self._laws)
        self._of_pin: dict[int, list[int]] = {}
        self._of_event: dict[int, list[int]] = {}
        self._of_mover: dict[int, list[int]] = {}
        steps = Steps()
        for number, law in self._laws.items():
            self._list(steps, number, law)
            for pin in (*law.sides[0], *law.sides[1]):
                self._enter(steps, self._of_pin, pin, number)

    def __len__(self) -> int:
        return len(self._laws)

    # What it holds

    def all(self) -> list[Law]:
        """Return all corrections, oldest first."""
        return [self._laws[number] for number in sorted(self._laws)]

    def newest(self, back: int = 0) -> Law:
        """Return the correction that was made last, or the one made `back` before it."""
        return self._laws[self._next - 1 - back]

    def of_pins(self, pins: Iterable[int]) -> list[Law]:
        """Return the corrections of some pins, oldest first."""
        found = {number for pin in pins for number in self._of_pin.get(pin, ())}
        return [self._laws[number] for number in sorted(found)]

    def of_event(self, sequence: int) -> list[Law]:
        """Return the corrections that an event made."""
        return [self._laws[number] for number in self._of_event.get(sequence, ())]

    def of_mover(self, vector: int) -> list[Law]:
        """Return the corrections that the move of a vector made."""
        return [self._laws[number] for number in self._of_mover.get(vector, ())]

    # Changes

    def add(self, steps: Steps, law: Law) -> None:
        """Add a correction whose pins come later, by `pin`."""
        steps.put(self._laws, self._next, law)
        self._list(steps, self._next, law)
        steps.assign(self, "_next", self._next + 1)

    def pin(self, steps: Steps, law: Law, side: int, pin: int) -> None:
        """Add a pin to a side of one of the newest corrections."""
        steps.append(law.sides[side], pin)
        back = next(back for back in range(2) if self.newest(back) is law)
        self._enter(steps, self._of_pin, pin, self._next - 1 - back)

    def remove_event(self, steps: Steps, sequence: int) -> None:
        """Remove the corrections that an event made."""
        for number in [*self._of_event.get(sequence, ())]:
            self._remove(steps, number)

    def remove_mover(self, steps: Steps, vector: int) -> None:
        """Remove the corrections that the move of a vector made."""
        for number in [*self._of_mover.get(vector, ())]:
            self._remove(steps, number)

    def copy(self, pins: Callable[[list[int]], list[int]] = list) -> LawBook:
        """Return an independent copy; `pins` gives new numbers to the pins of a side.

        Corrections that then have a side without pins are left out, unless pins stay as they are.
        """
        both = [(law, (pins(law.sides[0]), pins(law.sides[1]))) for law in self.all()]
        return LawBook(replace(law, sides=one) for law, one in both if pins is list or all(one))

    def __deepcopy__(self, _memo: object) -> LawBook:
        return self.copy()

    def _list(self, steps: Steps, number: int, law: Law) -> None:
        self._enter(steps, self._of_event, law.sequence, number)
        if law.mover >= 0:
            self._enter(steps, self._of_mover, law.mover, number)

    def _remove(self, steps: Steps, number: int) -> None:
        law = self._laws[number]
        steps.pop(self._laws, number)
        self._strike(steps, self._of_event, law.sequence, number)
        if law.mover >= 0:
            self._strike(steps, self._of_mover, law.mover, number)
        for pin in {*law.sides[0], *law.sides[1]}:
            self._strike(steps, self._of_pin, pin, number)

    @staticmethod
    def _enter(steps: Steps, index: dict[int, list[int]], key: int, number: int) -> None:
        if key not in index:
            steps.put(index, key, [])
        if number not in index[key]:
            steps.append(index[key], number)

    @staticmethod
    def _strike(steps: Steps, index: dict[int, list[int]], key: int, number: int) -> None:
        steps.remove(index[key], number)
        if not index[key]:
            steps.pop(index, key)
