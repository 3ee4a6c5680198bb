"""Lives: clusterers that took vectors and saw every verb, and every verb and read by name."""

from __future__ import annotations

import numpy as np

from engine.fuzz_snapshot import one_of
from linkstream import Links, Space
from linkstream.errors import LinkstreamError
from linkstream.identity.settling import Healing
from streams import around, unit

D = 6
KINDS = ("vectors", "subclusters", "clusters")
NAMES = ("Ann", "Bob", "Cid")
CENTRE = [0.05, -0.02, 0.1, 0.0, 0.03, 0.01]
OPTIONS = (
    {},
    {},
    {"evidence": "cluster"},
    {"heal": Healing("join", first=10, min_size=2)},
    {"heal": Healing("settle", first=12, growth=1.5)},
    {"max_subclusters": 9},
    {"max_idle": 12, "min_size": 3},
    {"keep_vectors": False},
    {"track_vectors": False},
    {"track_vectors": False, "evidence": "cluster", "max_subclusters": 12},
    {"space": Space(mean=CENTRE, model="encoder-7")},
)
ABSORBED_MAX = 10_000  # IDs given: the answer of absorb() names each of them


# Lives: what mutants are made from.


def crowd(rng, n):
    """Lobes that crowd in few dimensions: subclusters link, merge, part and are tied again."""
    centres = around(rng, np.repeat(unit(rng.standard_normal((3, D))), 3, axis=0), 0.9)
    rows = around(rng, centres[rng.integers(len(centres), size=n)], rng.uniform(0.85, 0.97, size=n))
    return np.float32(rows)


def life(seed, *, steps=25, engine="auto"):
    """A clusterer that took vectors and saw about every verb, in an order of the seed's."""
    rng = np.random.default_rng([seed, 77])
    options = OPTIONS[seed % len(OPTIONS)]
    links = Links(0.75, 0.9, 0.85, engine=engine, threads=1, **options)
    links.add_many(crowd(rng, int(rng.integers(4, 30))))
    verbs = list(CHANGES)
    for _ in range(steps):
        attempt(links, verbs[int(rng.integers(len(verbs)))], rng)
        if rng.random() < 0.05:
            links = Links.from_bytes(
                links.to_bytes(history=bool(rng.random() < 0.7)), engine=engine, threads=1
            )
    return links


def attempt(links, verb, rng):
    """What comes of a verb: its answer, or the name of linkstream's own error."""
    try:
        return plain(CHANGES[verb](links, rng))
    except LinkstreamError as error:
        return type(error).__name__


def vector(links, rng):
    return int(rng.integers(max(links.n_vectors, 1)))


def cluster(links, rng):
    there = [each.id for each in links.clusters()]
    return there[int(rng.integers(len(there)))] if there else 0


def subject(links, rng, kind):
    if kind == "vectors":
        return vector(links, rng)
    if kind == "clusters":
        return cluster(links, rng)
    numbers = links.state().numbers
    return int(numbers[rng.integers(len(numbers))]) if len(numbers) else 0


def two(links, rng, kind):
    return subject(links, rng, kind), subject(links, rng, kind)


def remove(links, rng):
    if links.track_vectors and links.keep_vectors:
        return links.remove(vector(links, rng))
    x = crowd(rng, 1)[0]
    if links.track_vectors:
        return links.remove(vector(links, rng), x=x)
    return links.remove(x, weight=one_of(rng, [None, 0.5]))


def undo(links, rng):
    to = None
    if rng.random() < 0.4:
        to = max(links.n_events - 1 - int(rng.integers(20)), 0)
    return links.undo(to=to)


def undo_and_redo(links, rng):
    undo(links, rng)
    if rng.random() < 0.3:
        undo(links, rng)
    return links.redo()


def retract(links, rng):
    said = links.corrections()
    number = said[int(rng.integers(len(said)))].number if said else 0
    return links.retract(number)


def correct(verb):
    def change(links, rng):
        kind = one_of(rng, KINDS)
        return getattr(links, verb)(*two(links, rng, kind), of=kind)

    return change


def absorb(links, rng):
    twin = Links.from_bytes(links.to_bytes(), engine=links.engine, threads=1)
    if max(len(twin.state().numbers), links.state().free_cluster) > ABSORBED_MAX:
        return None
    return links.absorb(twin).to_dict()


CHANGES = {
    "add": lambda links, rng: links.add(crowd(rng, 1)[0]),
    "add lighter": lambda links, rng: links.add(crowd(rng, 1)[0], weight=0.4),
    "add in group": lambda links, rng: links.add(crowd(rng, 1)[0], group=one_of(rng, ["p", "q"])),
    "add_many": lambda links, rng: links.add_many(crowd(rng, 4)),
    "add_many, weighed": lambda links, rng: links.add_many(crowd(rng, 3), weight=[1, 0.5, 0]),
    "add_group": lambda links, rng: links.add_group(crowd(rng, 3), group=one_of(rng, [None, "p"])),
    "enrol": lambda links, rng: links.enrol(
        one_of(rng, NAMES), crowd(rng, 2), locked=bool(rng.random() < 0.6)
    ),
    "same": correct("same"),
    "different": correct("different"),
    "move": lambda links, rng: links.move(vector(links, rng), cluster(links, rng)),
    "name": lambda links, rng: links.name(
        cluster(links, rng), one_of(rng, NAMES), claim=bool(rng.random() < 0.5)
    ),
    "rename": lambda links, rng: links.rename(cluster(links, rng), one_of(rng, [None, *NAMES])),
    "ignore": lambda links, rng: links.ignore(cluster(links, rng), bool(rng.random() < 0.7)),
    "remove": remove,
    "remove again": remove,
    "forget": lambda links, rng: links.forget(cluster(links, rng)),
    "settle": lambda links, rng: links.settle(apply=True).to_dict(),
    "undo": undo,
    "undo again": undo,
    "redo": lambda links, rng: links.redo(),
    "undo and redo": undo_and_redo,
    "retract": retract,
    "absorb": absorb,
}


# Reads: all there are, of everything there is.


READS = {
    "clusters": lambda links, rng: links.clusters(),
    "labels": lambda links, rng: links.labels(),
    "predict": lambda links, rng: links.predict(crowd(rng, 4)),
    "events": lambda links, rng: links.events(links.core.oldest_event()),
    "history": lambda links, rng: [str(links.history(each.id)) for each in links.clusters()],
    "explain": lambda links, rng: str(links.explain(crowd(rng, 1)[0])),
    "explain_pair": lambda links, rng: [
        str(links.explain_pair(*two(links, rng, kind), of=kind)) for kind in KINDS[1:]
    ],
    "explain vectors": lambda links, rng: str(links.explain_pair(*two(links, rng, "vectors"))),
    "exemplars": lambda links, rng: [links.exemplars(each.id) for each in links.clusters()],
    "cluster": lambda links, rng: [links.cluster(each.id) for each in links.clusters()],
    "members": lambda links, rng: [
        links.members(each.id, limit=4).tolist() for each in links.clusters()
    ],
    "review_queue": lambda links, rng: [q.to_dict() for q in links.review_queue()],
    "suggest_merges": lambda links, rng: links.suggest_merges(),
    "suggest_splits": lambda links, rng: links.suggest_splits(),
    "settle": lambda links, rng: links.settle().to_dict(),
    "named": lambda links, rng: links.named(one_of(rng, NAMES)),
    "corrections": lambda links, rng: links.corrections(),
    "resolve": lambda links, rng: [
        links.resolve(i) for i in range(min(links.state().free_cluster, 60))
    ],
    "without_vectors": lambda links, rng: links.without_vectors().state_hash(),
    "to_bytes": lambda links, rng: links.to_bytes(),
    "without history": lambda links, rng: links.to_bytes(history=False),
    "state_hash": lambda links, rng: links.state_hash(),
    "n_events": lambda links, rng: links.n_events,
}


def plain(answer):
    return answer.tolist() if isinstance(answer, np.ndarray) else answer
