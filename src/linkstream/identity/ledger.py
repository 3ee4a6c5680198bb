"""The ledger: names, aliases, corrections and groups, read from the event log.

The ledger is a function of the events: replaying them gives the same ledger. A correction is
between *pins*: a pin is on a subcluster, follows it through merges, and goes with its vector, if it
has one, when the vector moves.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.confidence.answers import NO_ANSWERS, PAIR, Answers, Given, of_decision
from linkstream.engine import events
from linkstream.engine.forest import FULL, LOCKED
from linkstream.identity.held import Held
from linkstream.identity.lawbook import Law, LawBook, Pin
from linkstream.identity.steps import Steps
from linkstream.identity.texts import TextNumbers, without_unused

Rows = npt.NDArray[np.int64]

GONE = -1  # what the ID of a cluster that is no more stands for; so of a pin and its node
KINDS = ("vectors", "subclusters", "clusters")  # what a constraint may be between
VECTORS, SUBCLUSTERS, CLUSTERS = range(3)  # their places, which are the levels of laws
SPOKEN = re.compile(r"(same|different|move)\((\d{1,18}), (\d{1,18}|-1)\)")  # what texts begin with
Mark = tuple[int, tuple[Any, ...]]  # a moment of an open change: its steps, and the plain values
Inverted = tuple[list[Callable[[], object]], tuple[Any, ...]]  # the same of a change that is kept
UNKNOWN = -1  # revision of a ledger that was rolled back

_revisions = count()  # of all ledgers: equal revisions require the same


@dataclass(slots=True)
class Ledger:
    """Names, aliases, corrections and groups after the first `n_events` events."""

    n_events: int = 0
    texts: list[str] = field(default_factory=list)  # what events name by number
    aliases: dict[int, int] = field(default_factory=dict)  # IDs gone → what they stand for
    names: dict[int, str] = field(default_factory=dict)
    ignored: set[int] = field(default_factory=set)
    locked: set[int] = field(default_factory=set)  # subclusters
    missing_weights: dict[int, int] = field(default_factory=dict)  # vectors without full weight
    pins: list[Pin] = field(default_factory=list)
    book: LawBook = field(default_factory=LawBook)
    groups: list[list[int]] = field(default_factory=list)  # pins
    keys: dict[str, int] = field(default_factory=dict)  # of groups that several calls add to
    held: Held = field(default_factory=Held)  # vectors that wait for a decision
    policy: str | None = None  # on unsure vectors; see clusterer/policies.py
    tracked: bool = True  # whether vectors are known by number
    answers: Answers = NO_ANSWERS  # of people, which probabilities learn from
    revision: int = field(default_factory=_revisions.__next__, repr=False, compare=False)
    _at: dict[int, list[int]] = field(default_factory=dict)  # node → its pins
    _bearers: dict[str, int] = field(default_factory=dict, repr=False)  # name → its cluster
    _text_numbers: TextNumbers = field(default_factory=TextNumbers, repr=False, compare=False)
    _expected: int = 0  # vectors still to come of the group or enrolment the log is in
    _group: int = -1
    _name: str | None = None
    _first: int = -1  # pin of the first prototype
    _since: int = 0  # event by which the enrolment began
    _steps: Steps = field(default_factory=Steps, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._bearers = {name: cluster for cluster, name in self.names.items()}

    @property
    def laws(self) -> list[Law]:
        """All corrections that hold, oldest first."""
        return self.book.all()

    # A change: wholly kept, or taken back

    def begin(self) -> Mark:
        """Open a change, unless one is open; return a mark to roll back to."""
        if not self._steps.is_open:
            self._steps.begin()
        whole = (self.n_events, self._expected, self._group, self._name, self._first, self._since)
        return len(self._steps), whole

    def commit(self) -> None:
        """Keep all changes since `begin`."""
        self._steps.commit()

    def rollback(self, mark: Mark) -> None:
        """Undo all changes since a mark; the change stays open."""
        self._steps.take_back(mark[0])
        self._restore(mark[1])

    def inverse(self, mark: Mark) -> Inverted:
        """Return what takes back all changes since a mark after they were committed.

        Texts stay: events name them by number.
        """
        return self._steps.since(mark[0], without=self.texts), mark[1]

    def take_back(self, inverse: Inverted, n_events: int) -> None:
        """Take the last change back; the log then has this many events. This needs no memory."""
        steps, values = inverse
        while steps:
            steps[-1]()
            steps.pop()
        self._restore(values)
        self.n_events = n_events

    def _restore(self, values: tuple[Any, ...]) -> None:
        self.n_events, self._expected, self._group, self._name, self._first, self._since = values
        self.revision = UNKNOWN  # a new one might need memory

    def revise(self) -> None:
        """Count a change of what corrections, groups and names require; plain vectors need none."""
        self.revision = next(_revisions)

    @property
    def quiet(self) -> bool:
        """Whether plain vectors and merges change nothing here."""
        return not (self.pins or self.locked or self._expected)

    def copy(self) -> Ledger:
        """Return an independent copy."""
        twin = copy.copy(self)
        twin.texts, twin.aliases, twin.names = [*self.texts], {**self.aliases}, {**self.names}
        twin.ignored, twin.locked, twin.held = {*self.ignored}, {*self.locked}, self.held.copy()
        twin.missing_weights, twin.keys = {**self.missing_weights}, {**self.keys}
        twin.pins = [Pin(pin.node, pin.vector, pin.group) for pin in self.pins]
        twin.book, twin._bearers = self.book.copy(), {**self._bearers}
        twin._text_numbers = TextNumbers()
        twin.groups = [[*group] for group in self.groups]
        twin._at = {node: [*pins] for node, pins in self._at.items()}
        twin._steps = Steps()
        return twin

    def number(self, text: str) -> int:
        """Return the number that stands for a text in events."""
        place = self._text_numbers.find(self.texts, text)
        if place < 0:
            self._steps.append(self.texts, text)
        return len(self.texts) - 1 if place < 0 else place

    def drop_unused_texts(self) -> None:
        """Drop names that no cluster has and groups without vectors; keep the numbers of texts."""
        used = {*self.names.values(), *self.keys, self.policy or ""}
        self._steps.assign(self, "texts", without_unused(self.texts, used))
        self._text_numbers = TextNumbers()

    def resolve(self, cluster: int) -> int:
        """Return what an ID stands for after all joins; it may be gone."""
        while cluster in self.aliases:
            cluster = self.aliases[cluster]
        return cluster

    def bearer(self, name: str) -> int:
        """Return the cluster that has a name; −1 if none has."""
        return self._bearers.get(name, -1)

    def laws_at(self, node: int, vector: int | None = None) -> list[Law]:
        """Return the corrections of the pins of `pins_at`, oldest first."""
        return self.book.of_pins(self.pins_at(node, vector))

    def pins_at(self, node: int, vector: int | None = None) -> list[int]:
        """Return the pins on a subcluster, or those of one of its vectors (−1: of the whole)."""
        pins = self._at.get(node, ())
        return [pin for pin in pins if vector is None or self.pins[pin].vector == vector]

    def nodes_of(self, laws: Iterable[Law]) -> set[int]:
        """Return the subclusters that corrections name."""
        return {node for law in laws for side in law.sides for node in self.nodes(side)}

    def nodes(self, pins: list[int]) -> list[int]:
        """Return the subclusters of pins, without those that are gone."""
        return [self.pins[pin].node for pin in pins if self.pins[pin].node != GONE]

    def at(self, node: int) -> list[Pin]:
        """Return the pins on a subcluster, oldest first."""
        return [self.pins[pin] for pin in sorted(self._at.get(node, []))]

    def tidy(self) -> None:
        """Drop pins whose subclusters are gone, and corrections that only named those."""
        kept = [number for number, pin in enumerate(self.pins) if pin.node != GONE]
        if 2 * len(kept) + 1000 > len(self.pins):
            return
        new = {number: place for place, number in enumerate(kept)}

        def renumbered(pins: list[int]) -> list[int]:
            return [new[pin] for pin in pins if pin in new]

        pins = [self.pins[number] for number in kept]
        at: dict[int, list[int]] = {}
        for number, pin in enumerate(pins):
            at.setdefault(pin.node, []).append(number)
        book = self.book.copy(renumbered)
        self._steps.assign(self, "groups", [renumbered(group) for group in self.groups])
        self._steps.assign(self, "pins", pins)
        self._steps.assign(self, "book", book)
        self._steps.assign(self, "_at", at)
        self.revise()

    def pinned(self) -> list[int]:
        """Return the subclusters that have pins, oldest first."""
        return sorted(node for node in self._at if node != GONE)

    def shift(self, vectors: set[int], node: int) -> None:
        """Move the pins of some vectors to another subcluster."""
        for here in list(self._at):
            self._shift(here, node, lambda pin: pin.vector in vectors)
        self.revise()

    def read(self, rows: Rows, sequences: Rows | None = None) -> None:
        """Read the next events; `sequences` are their numbers, if they are not consecutive."""
        if sequences is None:
            sequences = np.arange(self.n_events, self.n_events + len(rows))
        self.n_events += len(rows)
        codes = rows[:, 0]
        if self._expected or ((codes > _FOLLOWED) & (codes != events.DEFERRED)).any():
            self.revise()
        telling = self._telling(rows)
        told = zip(sequences[telling].tolist(), rows[telling].tolist(), strict=True)
        for sequence, (code, *numbers) in told:
            reader = _READERS.get(code)
            if reader is not None:
                reader(self, sequence, *numbers)

    def _telling(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows matter to the ledger; none in a plain stream."""
        codes = rows[:, 0]
        if self.quiet and not np.isin(codes, _WAKING).any():
            return codes > events.SPLIT
        return np.ones(len(rows), dtype=bool)

    def _arrived(self, vector: int, node: int, cluster: int) -> None:
        if not self._expected:
            return
        self._expected -= 1
        if self._group >= 0:
            self._steps.append(self.groups[self._group], self.add_pin(node, vector, self._group))
        if self._name is not None:
            self._seeded(vector, node, cluster, self._name)

    def _seeded(self, vector: int, node: int, cluster: int, name: str) -> None:
        """Tie a new prototype to the first one of its name."""
        self._give_name(cluster, name)
        pin = self.add_pin(node, vector)
        if self._first < 0:
            self._first = pin
        else:
            law = Law(True, self._since, f"enrol({name!r})")
            self.book.add(self._steps, law)
            for side, each in enumerate((self._first, pin)):
                self.book.pin(self._steps, law, side, each)

    def add_pin(self, node: int, vector: int, group: int = -1) -> int:
        """Add a pin on a subcluster; return its number."""
        self._steps.append(self.pins, Pin(node, vector, group))
        self._stand(len(self.pins) - 1, node)
        return len(self.pins) - 1

    def _stand(self, pin: int, node: int) -> None:
        """Put a pin on a node."""
        if node not in self._at:
            self._steps.put(self._at, node, [])
        self._steps.append(self._at[node], pin)

    def _shift(self, node: int, to: int, moves: Callable[[Pin], bool]) -> None:
        """Move the pins of a node for which `moves` is true to another node."""
        here = self._at.get(node)
        if here is None or not any(moves(self.pins[pin]) for pin in here):
            return
        self._steps.pop(self._at, node)
        for pin in here:
            goes = moves(self.pins[pin])
            if goes:
                self._steps.assign(self.pins[pin], "node", to)
            self._stand(pin, to if goes else node)

    def _end(self, gone: int, kept: int) -> None:
        """Let an ID stand for another."""
        self._steps.put(self.aliases, gone, kept)
        name = self._take_name(gone)
        if name is not None and kept not in self.names:
            self._give_name(kept, name)
        self._steps.discard(self.ignored, gone)

    def _give_name(self, cluster: int, name: str) -> None:
        if self.names.get(cluster) != name:
            self._take_name(cluster)
            self._steps.put(self.names, cluster, name)
            self._steps.put(self._bearers, name, cluster)

    def _take_name(self, cluster: int) -> str | None:
        name = self._steps.pop(self.names, cluster)
        if name is not None and self._bearers.get(name) == cluster:
            self._steps.pop(self._bearers, name)
        return name

    def _enact(
        self, together: bool, sequence: int, text: str, *, level: int, mover: int = -1
    ) -> None:
        law = Law(together, sequence, f"{text}, event {sequence}", mover, level)
        self.book.add(self._steps, law)

    def retract(self, correction: int, node: int = GONE) -> None:
        """Retract the laws of an event, or only their part about one subcluster."""
        for law in self.book.of_event(correction):
            for pin in law.sides[0] + law.sides[1]:
                if node in (GONE, self.pins[pin].node):
                    self._drop(pin)
        if node == GONE:
            self.book.remove_event(self._steps, correction)
            self._steps.assign(self, "answers", self.answers.without(correction))
        self.revise()

    def _drop(self, pin: int) -> None:
        """Take a pin off its node for good."""
        here = self._at.get(self.pins[pin].node, [])
        if pin in here:
            self._steps.remove(here, pin)
        if not here:
            self._steps.pop(self._at, self.pins[pin].node)
        self._steps.assign(self.pins[pin], "node", GONE)

    # One reader for each kind of event: its sequence, its vector, its numbers.

    def _created(self, _s: int, vector: int, node: int, cluster: int, *_: int) -> None:
        self._arrived(vector, node, cluster)

    def _joined(self, _s: int, vector: int, node: int, cluster: int, *_: int) -> None:
        if node in self.locked and self.tracked:
            self._steps.put(self.missing_weights, vector, FULL)
        self._arrived(vector, node, cluster)

    def _linked(self, _s: int, vector: int, node: int, _p: int, cluster: int, *_: int) -> None:
        self._arrived(vector, node, cluster)

    def _merged(self, _s: int, _v: int, node: int, absorbed: int, *_: int) -> None:
        self._shift(absorbed, node, lambda pin: True)

    def _united(self, _s: int, _v: int, _a: int, _b: int, kept: int, gone: int) -> None:
        self._end(gone, kept)

    _tied = _united

    def _replaced(self, _s: int, _v: int, kept: int, gone: int, *_: int) -> None:
        self._end(gone, kept)

    def _transferred(self, _s: int, _v: int, member: int, origin: int, node: int, *_: int) -> None:
        if member >= 0:
            self._removed(_s, _v, member, origin)
            self._moved(_s, _v, member, node)

    def _weighed(self, _s: int, vector: int, weight: int, *_: int) -> None:
        if self.tracked:
            self._steps.put(self.missing_weights, vector, FULL - weight)

    def _removed(self, _s: int, _v: int, member: int, node: int, *_: int) -> None:
        if self.missing_weights.get(member) == FULL:  # a locked subcluster did not learn from it
            self._steps.pop(self.missing_weights, member)
        self._shift(node, GONE, lambda pin: pin.vector == member >= 0)

    def _deferred(self, _s: int, vector: int, *_: int) -> None:
        self.held.add(self._steps, vector)

    def _dropped(self, _s: int, _v: int, member: int, *_: int) -> None:
        self.held.discard(self._steps, member)

    def _accepted(self, _s: int, _v: int, text: int, *_: int) -> None:
        self._steps.assign(self, "policy", self.texts[text] if text >= 0 else None)

    def _moved(self, _s: int, _v: int, member: int, node: int, *_: int) -> None:
        self.held.discard(self._steps, member)
        if node in self.locked:
            self._steps.put(self.missing_weights, member, FULL)
        self._shift(GONE, node, lambda pin: pin.vector == member)

    def _vanished(self, _s: int, _v: int, node: int, heir: int, cluster: int, *_: int) -> None:
        self._shift(node, GONE, lambda pin: pin.vector >= 0 or heir < 0)
        self._shift(node, heir, lambda pin: True)  # what was said of it holds of what is left
        self._steps.discard(self.locked, node)
        if heir < 0:
            self._take_name(cluster)
            self._steps.discard(self.ignored, cluster)

    def _flagged(self, _s: int, _v: int, node: int, flags: int, *_: int) -> None:
        (self._steps.add if flags & LOCKED else self._steps.discard)(self.locked, node)

    def _same(self, sequence: int, _v: int, a: int, b: int, of: int, *_: int) -> None:
        self._enact(True, sequence, f"same({a}, {b}) of {KINDS[of]}", level=of)

    def _different(self, sequence: int, _v: int, a: int, b: int, of: int, *_: int) -> None:
        self._enact(False, sequence, f"different({a}, {b}) of {KINDS[of]}", level=of)

    def _relocated(self, sequence: int, _v: int, member: int, cluster: int, *_: int) -> None:
        self.book.remove_mover(self._steps, member)
        for together in (False, True):
            text = f"move({member}, {cluster})"
            self._enact(together, sequence, text, level=VECTORS, mover=member)

    def _retracted(self, _s: int, _v: int, correction: int, node: int, *_: int) -> None:
        self.retract(correction, node)

    def _pinned(self, _s: int, _v: int, node: int, member: int, side: int, *_: int) -> None:
        law = self.book.newest(0 if side < 2 else 1)
        pin = self.add_pin(node, member)
        self.book.pin(self._steps, law, min(side, 1), pin)
        if law.mover >= 0 and side == 0:  # the vector itself, of both laws that its move made
            self.book.pin(self._steps, self.book.newest(1), 0, pin)

    def _judged(self, _s: int, _v: int, *numbers: int) -> None:
        self._steps.assign(self, "answers", self.answers.plus(of_decision(*numbers)))

    def _compared(self, _s: int, _v: int, margin: int, told: int, same: int, smaller: int) -> None:
        answer = Given(PAIR, margin, told, bool(same), self.book.newest(0).sequence, smaller)
        self._steps.assign(self, "answers", self.answers.plus(answer))

    def _drifted(self, _s: int, _v: int, about: int, *_: int) -> None:
        self._steps.assign(self, "answers", self.answers.drifted(about))

    def _named(self, _s: int, _v: int, cluster: int, text: int, *_: int) -> None:
        if text < 0:
            self._take_name(cluster)
        else:
            self._give_name(cluster, self.texts[text])

    def _ignored(self, _s: int, _v: int, cluster: int, on: int, *_: int) -> None:
        (self._steps.add if on else self._steps.discard)(self.ignored, cluster)

    def _grouped(self, _s: int, _v: int, text: int, size: int, *_: int) -> None:
        key = self.texts[text] if text >= 0 else None
        self._group = self.keys.get(key, len(self.groups)) if key is not None else len(self.groups)
        if self._group == len(self.groups):
            self._steps.append(self.groups, [])
        if key is not None:
            self._steps.put(self.keys, key, self._group)
        self._expected, self._name = size, None

    def _enrolled(self, sequence: int, _v: int, text: int, size: int, *_: int) -> None:
        self._expected, self._group, self._name = size, -1, self.texts[text]
        self._first, self._since = -1, sequence


_READERS: dict[int, Callable[..., None]] = events.methods(Ledger)
_FOLLOWED = events.WEIGHED  # up to this code, events are those of plain vectors
_WAKING = (events.PINNED, events.GROUPED, events.ENROLLED, events.FLAGGED)
