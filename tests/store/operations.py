"""Seeded operations for a store and for a plain clusterer, one for each number.

An operation depends only on its seed, its number and the current state: two targets with the same
operations so far get the same next operation, in one process or in many.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkstream import Links
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model
from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Store
from streams import around, unit

THRESHOLDS = Thresholds(0.75, 0.9, 0.9)
DIMENSION = 8
NAMES = ("Ann", "Bob", "Cid", "Dünya")

# The verbs, and how often each is chosen.
VERBS = {
    "add": 4,
    "add_many": 12,
    "weighted": 4,
    "in_group": 3,
    "add_group": 4,
    "enrol": 2,
    "same": 4,
    "different": 4,
    "move": 4,
    "retract": 2,
    "name": 2,
    "rename": 1,
    "ignore": 1,
    "remove": 4,
    "forget": 2,
    "undo": 4,
    "undo_to": 2,
    "redo": 3,
    "settle": 1,
    "rebuild": 1,
}
# The same with a policy on unsure vectors; for clusterers with a model, `MODEL`.
UNSURE = VERBS | {"add_many": 24, "accept": 6, "assign": 6, "rebuild": 0}
HELD_CURVE, NEW_CURVE = (
    Curve(1.0, 8.0, -0.4, 0.5, 0.99, 900, 90),
    Curve(0.5, 5.0, -0.2, 1, 0.98, 300, 30),
)
MODEL = Model(
    setting(Links.from_thresholds(THRESHOLDS).core), HELD_CURVE, NEW_CURVE, HELD_CURVE, 40
)
ADDING = ("add", "add_many", "weighted", "in_group", "add_group")  # possible in any state
CARE = ("compact", "backup")  # only for stores: they change no answer


def new(path, **options):
    """Open a store; make it if there is none."""
    return Store.open(path, thresholds=THRESHOLDS, threads=1, **options)


class Operation(NamedTuple):
    """A method, its vectors, and its other arguments."""

    verb: str
    rows: np.ndarray | None = None
    arguments: dict[str, Any] = {}  # noqa: RUF012 - never written to
    payloads: list[Any] | None = None

    @property
    def taken(self):
        """Return the rows that get a number: all but those of weight 0."""
        weights = np.broadcast_to(self.arguments.get("weight", 1.0), len(self.rows))
        return np.flatnonzero(weights)


def vectors(rng, n):
    """Return vectors of a few identities that are the same for every generator."""
    crowd = np.random.default_rng(4)
    identities = unit(crowd.standard_normal((3, DIMENSION)))
    centres = around(crowd, np.repeat(identities, 4, axis=0), 0.88)
    places = centres[rng.integers(len(centres), size=n)]
    return np.float32(around(rng, places, rng.uniform(0.86, 0.98, size=n)))


def make_operation(seed, number, target, *, sizes=(1, 7, 100), verbs=VERBS):
    """Return the operation of a number for the current state of `target`."""
    rng = np.random.default_rng([seed, number])
    odds = np.array(list(verbs.values())) / sum(verbs.values())
    verb = str(rng.choice(list(verbs), p=odds))
    if "redo" in verbs and rng.random() < 0.3 and _undone(target):
        verb = "redo"
    elif verb not in (*ADDING, *CARE, "redo") and target.n_vectors < 3:
        verb = "add_many"
    made = _MAKERS[verb](rng, target, int(rng.choice(sizes)))
    if made.rows is not None and made.verb != "enrol" and rng.random() < 0.5:
        return made._replace(payloads=[_payload(rng, number, i) for i in range(len(made.rows))])
    return made


def _undone(target):
    """Return whether the last event was an undo."""
    return [event.kind for event in target.events(max(target.n_events - 1, 0))] == ["undone"]


def _payload(rng, number, i):
    """Return None or some JSON value."""
    file = {"file": f"{number}/{i}.jpg", "box": [1, 2.5, None, True], "who": "Dünya"}
    return (None, number * 1000 + i, f"text {number} {i}", file)[rng.integers(4)]


def _vector(rng, target):
    return int(rng.integers(target.n_vectors))


def _cluster(rng, target):
    """Return an ID, sometimes one that was never given, so that some operations are refused."""
    return int(rng.integers(max(target.labels().max(), 0) + 2))


def _weighted(rng, target, n):
    weights = rng.choice([1.0, 0.5, 0.25, 0.0], size=n)
    return Operation("add_many", vectors(rng, n), {"weight": weights.tolist()})


def _pair(verb):
    def make(rng, target, n):
        of = str(rng.choice(["vectors", "clusters"]))
        pick = _vector if of == "vectors" else _cluster
        return Operation(verb, None, {"a": pick(rng, target), "b": pick(rng, target), "of": of})

    return make


def _retract(rng, target, n):
    """Return a correction that holds, or a number without a correction."""
    numbers = [correction.number for correction in target.corrections()]
    return Operation("retract", None, {"correction": int(rng.choice([*numbers, n]))})


def _accept(rng, target, n):
    """Set a policy, sometimes one that can never be, or end it."""
    probability = [None, 0.75, 0.8, 0.9, 0.995][rng.integers(5)]
    unsure, new = str(rng.choice(["hold", "hold", "weigh"])), [None, 0.0, 0.7][rng.integers(3)]
    return Operation("accept", None, {"probability": probability, "new": new, "unsure": unsure})


def _assign(rng, target, n):
    """Decide on a vector, which is rarely not held."""
    held = [each.vector for each in target.held(limit=50)]
    vector = int(rng.choice(held)) if held else _vector(rng, target)
    cluster = [None, -1, _cluster(rng, target), _cluster(rng, target)][rng.integers(4)]
    return Operation("assign", None, {"vector": vector, "cluster": cluster})


def _undo_to(rng, target, n):
    last = target.events()[-1].sequence
    return Operation("undo", None, {"to": int(rng.integers(max(0, last - 40), last + 1))})


_MAKERS = {
    "add": lambda rng, target, n: Operation("add", vectors(rng, 1)),
    "add_many": lambda rng, target, n: Operation("add_many", vectors(rng, n)),
    "weighted": _weighted,
    "in_group": lambda rng, target, n: Operation("add_many", vectors(rng, 2), {"group": "photo"}),
    "add_group": lambda rng, target, n: Operation(
        "add_group", vectors(rng, int(rng.integers(1, 5)))
    ),
    "enrol": lambda rng, target, n: Operation(
        "enrol", vectors(rng, 2), {"name": str(rng.choice(NAMES)), "locked": bool(n % 2)}
    ),
    "same": _pair("same"),
    "different": _pair("different"),
    "move": lambda rng, target, n: Operation(
        "move", None, {"vector": _vector(rng, target), "cluster": _cluster(rng, target)}
    ),
    "accept": _accept,
    "assign": _assign,
    "retract": _retract,
    "name": lambda rng, target, n: Operation(
        "name", None, {"cluster": _cluster(rng, target), "name": str(rng.choice(NAMES))}
    ),
    "rename": lambda rng, target, n: Operation(
        "rename", None, {"cluster": _cluster(rng, target), "name": None if n % 2 else "Eve"}
    ),
    "ignore": lambda rng, target, n: Operation("ignore", None, {"cluster": _cluster(rng, target)}),
    "remove": lambda rng, target, n: Operation("remove", None, {"vector": _vector(rng, target)}),
    "forget": lambda rng, target, n: Operation("forget", None, {"cluster": _cluster(rng, target)}),
    "undo": lambda rng, target, n: Operation("undo"),
    "undo_to": _undo_to,
    "redo": lambda rng, target, n: Operation("redo"),
    "settle": lambda rng, target, n: Operation("settle"),
    "rebuild": lambda rng, target, n: Operation("rebuild"),
    "compact": lambda rng, target, n: Operation("compact"),
    "backup": lambda rng, target, n: Operation("backup", None, {"to": int(rng.integers(2**40))}),
}


def do(target, operation, **key):
    """Apply an operation; return the answer, or the name of the error that refused it."""
    try:
        return plain(_call(target, operation, key))
    except ArgumentError as error:
        return type(error).__name__


def _call(target, operation, key):
    if isinstance(target, Links):
        if operation.verb in CARE:
            return None
        key, operation = {}, operation._replace(payloads=None)
    if operation.verb == "backup":
        return _backup(target, Path(f"{target.path}.{operation.arguments['to']}"))
    arguments = operation.arguments | key
    if operation.verb == "enrol":
        return target.enrol(X=operation.rows, **arguments)
    if operation.verb == "add":
        only = {} if operation.payloads is None else {"payload": operation.payloads[0]}
        return target.add(operation.rows[0], **arguments, **only)
    if operation.rows is not None:
        each = {} if operation.payloads is None else {"payloads": operation.payloads}
        return getattr(target, operation.verb)(operation.rows, **arguments, **each)
    if operation.verb in ("settle", "rebuild"):
        return getattr(target, operation.verb)(apply=True, **arguments)
    return getattr(target, operation.verb)(**arguments)


def _backup(store, to):
    """Make a backup; one of a killed process, complete but never acknowledged, is replaced."""
    if to.exists():
        with Store.open(to, threads=1) as complete:
            assert state_of(complete) == state_of(store)
            complete.verify()
        for file in to.parent.glob(f"{to.name}*"):
            file.unlink()
    return store.backup(to)


def plain(answer):
    """Return an answer with IDs as plain values, and None for all others."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, Decision):
        return list(astuple(answer))
    return answer if isinstance(answer, int) else None


class Shadow:
    """An uninterrupted clusterer that applies the operations of a seed.

    `answers` are by number; `states[n]` is the state after n operations, see `state_of`.
    """

    def __init__(self, seed, *, links=None, **how):
        self.seed, self.how = seed, how
        self.links = links or Links.from_thresholds(THRESHOLDS, threads=1)
        self.rows = np.empty((0, DIMENSION), dtype=np.float32)
        self.payloads = []  # as JSON
        self.undone = []  # vectors and payloads that an undo took, the lowest number first
        self.answers, self.states = [], [self.state()]

    def until(self, number):
        """Apply operations up to a number."""
        while len(self.answers) < number:
            self.step(len(self.answers))
            self.states.append(self.state())
        return self

    def step(self, number):
        what = make_operation(self.seed, number, self.links, **self.how)
        self.answers.append(do(self.links, what))
        self.note(what)

    def do(self, store, number):
        """Apply the operation of a number to a store."""
        return do(store, make_operation(self.seed, number, store, **self.how))

    def note(self, what):
        """Record the vectors and payloads of the last operation."""
        if what.rows is not None and not isinstance(self.answers[-1], str):
            payloads = what.payloads or [None] * len(what.rows)
            self.rows = np.concatenate([self.rows, what.rows[what.taken]])
            self.payloads += [json.dumps(payloads[i]) for i in what.taken]
        n = self.links.n_vectors  # an undo takes numbers back, and a redo brings them again
        again, self.undone = self._split(self.undone, max(0, n - len(self.rows)))
        if again:
            assert what.verb == "redo"
            self.rows = np.concatenate([self.rows, [row for row, _ in again]])
            self.payloads += [payload for _, payload in again]
        gone = list(zip(self.rows[n:], self.payloads[n:], strict=True))
        self.rows, self.payloads, self.undone = self.rows[:n], self.payloads[:n], gone + self.undone
        assert len(self.rows) == n

    @staticmethod
    def _split(some, n):
        return some[:n], some[n:]

    def state(self):
        links, mark = self.links, 0
        if links.keep_vectors:
            labels = links.labels()
            live = np.flatnonzero(labels >= 0)
            mark = _marked(labels, self.rows[live], [self.payloads[i] for i in live])
        return links.state_hash(), links.state().n_events, mark


def state_of(store):
    """Return the state hash, the number of events, and a checksum of vectors and payloads.

    The checksum is 0 if the store keeps no vectors.
    """
    if not store.info()["keep_vectors"]:
        return store.state_hash(), store.n_events, 0
    labels = store.labels()
    live = np.flatnonzero(labels >= 0).tolist()
    payloads = [json.dumps(payload) for payload in store.payloads(live)]
    rows = store.vectors(live) if live else np.empty(0, dtype=np.float32)
    return store.state_hash(), store.n_events, _marked(labels, rows, payloads)


def _marked(labels, rows, payloads):
    """Return a checksum of all labels, and of the vectors and payloads that are there."""
    value = zlib.crc32(labels.tobytes())
    return zlib.crc32(rows.tobytes(), zlib.crc32("\n".join(payloads).encode(), value))


def perform(target, made, **options):
    """Do an operation to a clusterer or store; return whether it was accepted."""
    arguments = dict(made.arguments)
    if made.rows is not None:
        first = (made.rows[0] if made.verb == "add" else made.rows,)
        name = (arguments.pop("name"),) if made.verb == "enrol" else ()
        first = (*name, *first)
    else:
        first = ()
    try:
        getattr(target, made.verb)(*first, **arguments, **options)
    except ArgumentError:
        return False
    return True
