"""Every verb of `Links`, as an operation on a small clusterer that is prepared for it.

A scenario prepares what its verb needs and returns the call to make while memory is short. Nothing
is prepared inside the call: each allocation in it belongs to the verb.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkstream import Links, Space
from streams import around, unit

THRESHOLDS = (0.75, 0.9, 0.9)
DIMENSION = 8
START, NEXT = 48, 10  # vectors that are there, and vectors of a batch that comes

BATCH, VERB, READ = "batch", "verb", "read"


class Operation(NamedTuple):
    """A call to be made while memory is short, and what else must hold after it.

    `check` raises AssertionError if something beside the clusterer is not as it must be.
    """

    call: Callable[[], Any]
    check: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Scenario:
    """How a clusterer is made and prepared; its verb, and what kind of verb that is.

    A batch that raised has changed nothing; another verb may have done all; a read never changes
    anything.
    """

    make: Callable[[Links, Path], Operation]
    kind: str = VERB
    options: dict[str, Any] = field(default_factory=dict)
    empty: bool = False


def crowd(n, seed=4):
    """Vectors of three identities of four lobes each: they join, link, merge and part."""
    rng = np.random.default_rng(seed)
    identities = unit(rng.standard_normal((3, DIMENSION)))
    centres = around(rng, np.repeat(identities, 4, axis=0), 0.88)
    places = centres[rng.integers(len(centres), size=n)]
    return np.float32(around(rng, places, rng.uniform(0.86, 0.98, size=n)))


X = crowd(START + 4 * NEXT)
COMING = X[START : START + NEXT]
LATER = X[START + NEXT :]


def begun(scenario, engine):
    """The clusterer of a scenario, with something of every kind in it."""
    links = Links(*THRESHOLDS, engine=engine, threads=1, **scenario.options)
    if not scenario.empty:
        fill(links)
    return links


def fill(links, *others):
    """Add vectors in every way, and corrections, so that there are laws to see to."""

    def each(verb, *arguments, **options):
        for target in (links, *others):
            getattr(target, verb)(*arguments, **options)

    each("add_many", X[: START - 8])
    each("add_many", X[START - 8 : START - 5], weight=0.5)
    each("add_group", X[START - 5 : START - 2])
    each("enrol", "Eve", X[START - 2 : START])
    each("name", max(links.clusters(), key=lambda cluster: cluster.size).id, "Ann")
    if links.keep_vectors:
        each("same", *of_two_clusters(links, named=False))
        each("different", *in_one_subcluster(links))


# Whom a verb can be about


def members(links):
    """Vectors by subcluster."""
    holders = links.state().vectors
    found = {}
    for vector, node in enumerate(holders.tolist()):
        if node >= 0:
            found.setdefault(node, []).append(vector)
    return found


def tried(links, candidates, call):
    """The first candidate that a copy of the clusterer takes."""
    data = links.to_bytes()
    for candidate in candidates:
        copy = Links.from_bytes(data, engine=links.engine, threads=1)
        try:
            call(copy, *candidate)
        except ValueError:
            continue
        return candidate
    raise AssertionError("no candidate for this scenario")


def in_one_subcluster(links):
    large = sorted(members(links).values(), key=len, reverse=True)
    pairs = (pair for held in large for pair in itertools.combinations(held, 2))
    return tried(links, pairs, lambda copy, a, b: copy.different(a, b))


def of_two_clusters(links, *, named=True):
    names = {cluster.id: cluster.name for cluster in links.clusters()}
    labels = [label for label in links.labels().tolist() if label >= 0]
    order = sorted(set(labels), key=lambda id_: (names[id_] is not None) != named)
    firsts = [links.labels().tolist().index(id_) for id_ in order]
    pairs = itertools.combinations(firsts, 2)
    return tried(links, pairs, lambda copy, a, b: copy.same(a, b))


def two_clusters(links, verb):
    ids = [cluster.id for cluster in sorted(links.clusters(), key=lambda c: -c.size)]
    pairs = itertools.combinations(ids, 2)
    return tried(links, pairs, lambda copy, a, b: getattr(copy, verb)(a, b, of="clusters"))


def movable(links):
    ids = [cluster.id for cluster in links.clusters()]
    pairs = itertools.product(range(links.n_vectors), ids)
    return tried(links, pairs, lambda copy, v, c: copy.move(v, c))


def nameless(links):
    return max((c for c in links.clusters() if c.name is None), key=lambda c: c.size).id


def named(links):
    return links.named("Ann")


# The verbs


def calls(call):
    """An operation that needs no preparing."""
    return lambda links, folder: Operation(lambda: call(links))


def about(pick, call):
    """An operation that is about one cluster."""

    def make(links, folder):
        cluster = pick(links)
        return Operation(lambda: call(links, cluster))

    return make


def pairing(verb, pick, **arguments):
    def make(links, folder):
        a, b = pick(links)
        return Operation(lambda: getattr(links, verb)(a, b, **arguments))

    return make


def removing(links, folder):
    held = max(members(links).values(), key=len)
    (vector,) = tried(links, zip(held, strict=True), lambda copy, v: copy.remove(v))
    return Operation(lambda: links.remove(vector))


def undoing_a_vector(links, folder):
    links.add(COMING[0])
    return Operation(links.undo)


def undoing_to(links, folder):
    to = links.n_events - 12
    return Operation(lambda: links.undo(to=to))


def undoing_a_correction(links, folder):
    links.name(nameless(links), "Bob", claim=True)
    return Operation(links.undo)


def absorbing(links, folder):
    other = Links(*THRESHOLDS, engine=links.engine, threads=1, **options_of(links))
    other.add_many(LATER[:12])
    other.name(other.clusters()[0].id, "Zoe")
    before = other.to_bytes()

    def check():
        assert other.to_bytes() == before, "the clusterer that is taken in has changed"

    return Operation(lambda: links.absorb(other), check)


def options_of(links):
    return {"track_vectors": links.track_vectors, "evidence": links.evidence}


def saving(links, folder):
    path = folder / "people.snapshot"
    links.save(path)
    old = path.read_bytes()
    links.add_many(COMING)
    new = links.to_bytes()

    def check():
        assert path.read_bytes() in (old, new), "save() left a file that is neither old nor new"
        Links.load(path, engine=links.engine, threads=1)

    return Operation(lambda: links.save(path), check)


def loading(links, folder):
    path = folder / "people.snapshot"
    links.save(path)
    return Operation(lambda: Links.load(path, engine=links.engine, threads=1))


def from_bytes(links, folder):
    data = links.to_bytes()
    return Operation(lambda: Links.from_bytes(data, engine=links.engine, threads=1))


def many_more(links, folder):
    """So many that tables grow; what is there before is larger as well."""
    stream = crowd(1200, seed=5)
    links.add_many(stream[:500])
    return Operation(lambda: links.add_many(stream[500:]))


MEAN = Space(np.linspace(-0.05, 0.05, DIMENSION, dtype=np.float32), "a model")
LIGHTS = np.resize([0.5, 1.0, 0.25, 0.0], NEXT)
MANY = calls(lambda links: links.add_many(COMING))
LONG = calls(lambda links: links.add_many(LATER))  # healing and limits come due in it

SCENARIOS = {
    "add": Scenario(calls(lambda links: links.add(COMING[0]))),
    "add a float64": Scenario(calls(lambda links: links.add(COMING[0].astype(np.float64)))),
    "add with a weight": Scenario(calls(lambda links: links.add(COMING[0], weight=0.5))),
    "add to a group": Scenario(calls(lambda links: links.add(COMING[0], group="photo"))),
    "add the first vector": Scenario(calls(lambda links: links.add(X[0])), empty=True),
    "add_many": Scenario(MANY, BATCH),
    "add_many of hundreds": Scenario(many_more, BATCH),
    "add_many of weights": Scenario(
        calls(lambda links: links.add_many(COMING, weight=LIGHTS)), BATCH
    ),
    "add_many of a group": Scenario(
        calls(lambda links: links.add_many(COMING[:4], group="photo")), BATCH
    ),
    "add_many by whole clusters": Scenario(MANY, BATCH, {"evidence": "cluster"}),
    "add_many with healing": Scenario(LONG, BATCH, {"evidence": "cluster", "heal": "settle"}),
    "add_many with max_subclusters": Scenario(LONG, BATCH, {"max_subclusters": 12}),
    "add_many with max_idle": Scenario(LONG, BATCH, {"max_idle": 40}),
    "add_many untracked": Scenario(MANY, BATCH, {"track_vectors": False}),
    "add_many unkept": Scenario(MANY, BATCH, {"keep_vectors": False}),
    "add_many less a mean": Scenario(MANY, BATCH, {"space": MEAN}),
    "add_many of the first vectors": Scenario(MANY, BATCH, empty=True),
    "add_group": Scenario(calls(lambda links: links.add_group(COMING[:4])), BATCH),
    "add_group of a key": Scenario(
        calls(lambda links: links.add_group(COMING[:3], group="photo", weight=0.5)), BATCH
    ),
    "enrol": Scenario(calls(lambda links: links.enrol("Zoe", COMING[:3]))),
    "enrol more": Scenario(calls(lambda links: links.enrol("Ann", COMING[:3], locked=False))),
    "enrol the first vectors": Scenario(
        calls(lambda links: links.enrol("Zoe", COMING[:3])), empty=True
    ),
    "same of vectors": Scenario(pairing("same", of_two_clusters)),
    "same of clusters": Scenario(
        pairing("same", lambda links: two_clusters(links, "same"), of="clusters")
    ),
    "different within a subcluster": Scenario(pairing("different", in_one_subcluster)),
    "different of clusters": Scenario(
        pairing("different", lambda links: two_clusters(links, "different"), of="clusters")
    ),
    "move": Scenario(pairing("move", movable)),
    "name": Scenario(about(nameless, lambda links, c: links.name(c, "Bob", claim=True))),
    "rename": Scenario(about(named, lambda links, c: links.rename(c, "Bob"))),
    "ignore": Scenario(about(nameless, Links.ignore)),
    "remove": Scenario(removing),
    "remove untracked": Scenario(
        calls(lambda links: links.remove(X[0])), VERB, {"track_vectors": False}
    ),
    "forget": Scenario(about(nameless, Links.forget)),
    "undo a vector": Scenario(undoing_a_vector),
    "undo a correction": Scenario(undoing_a_correction),
    "undo to": Scenario(undoing_to),
    "settle": Scenario(calls(lambda links: links.settle(apply=True))),
    "absorb": Scenario(absorbing),
    "absorb untracked": Scenario(absorbing, VERB, {"track_vectors": False}),
    "absorb as the first": Scenario(absorbing, empty=True),
    "drain_events": Scenario(calls(Links.drain_events)),
    "to_bytes": Scenario(calls(Links.to_bytes), READ),
    "save": Scenario(saving, READ),
    "from_bytes": Scenario(from_bytes, READ),
    "load": Scenario(loading, READ),
    "labels": Scenario(calls(Links.labels), READ),
    "clusters": Scenario(calls(Links.clusters), READ),
    "state": Scenario(calls(Links.state), READ),
    "state_hash": Scenario(calls(Links.state_hash), READ),
    "events": Scenario(calls(Links.events), READ),
    "predict": Scenario(calls(lambda links: links.predict(COMING)), READ),
    "explain": Scenario(calls(lambda links: links.explain(COMING[0])), READ),
    "explain_pair": Scenario(calls(lambda links: links.explain_pair(0, 5)), READ),
    "history": Scenario(calls(lambda links: links.history(0)), READ),
    "exemplars": Scenario(calls(lambda links: links.exemplars(0)), READ),
    "members": Scenario(calls(lambda links: links.members(0)), READ),
    "review_queue": Scenario(calls(Links.review_queue), READ),
    "suggest_merges": Scenario(calls(Links.suggest_merges), READ),
    "suggest_splits": Scenario(calls(Links.suggest_splits), READ),
    "settle without apply": Scenario(calls(Links.settle), READ),
}


# What can be seen of a clusterer


def plain(answer):
    """A short text that is equal for equal answers."""
    return hashlib.sha1(_text(answer).encode()).hexdigest()[:16]


def _text(answer):
    if isinstance(answer, Links):
        return answer.state_hash()
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype}{answer.shape}{answer.tolist()}"
    if isinstance(answer, (list, tuple)):
        return f"[{', '.join(map(_text, answer))}]"
    if isinstance(answer, dict):
        return f"{{{', '.join(f'{_text(k)}: {_text(v)}' for k, v in answer.items())}}}"
    if is_dataclass(answer) and not isinstance(answer, type):
        return f"{type(answer).__name__}{_fields(answer)}"
    return repr(answer)


def _fields(answer):
    names = getattr(answer, "__dataclass_fields__", {})
    return [_text(getattr(answer, name)) for name in names]


def seen(links):
    """All that can be seen of a clusterer, after a check that a snapshot of it can be loaded."""
    data = links.to_bytes()
    again = Links.from_bytes(data, engine=links.engine, threads=1)
    assert again.state_hash() == links.state_hash(), "a snapshot loads as another state"
    labels = links.labels().tolist() if links.track_vectors else None
    facts = (links.state_hash(), data, labels, links.clusters(), links.n_vectors, links.dimension)
    return plain(facts)


def later(links):
    """Go on: answers that a clusterer gives which never failed."""
    since = links.n_events
    answers = [links.add_many(LATER[:6]), links.add(LATER[6]), links.add(LATER[7], weight=0.5)]
    if links.track_vectors and links.keep_vectors:
        answers += [links.undo(), links.undo(), links.labels()]
    answers += [links.enrol("Yan", LATER[8:10]), links.events(since), seen(links)]
    return plain(answers)
