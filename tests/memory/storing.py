"""Every verb of `Store`, and what is done to a store's file, as calls to be made without memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkstream import Links
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Store
from linkstream.store.repairing import repair
from memory import operations
from memory.operations import COMING, LATER, THRESHOLDS

EXTRA = LATER[20:24]


@dataclass(frozen=True)
class Scenario:
    """A call on an open store, or on the path of one; arguments are picked beforehand.

    `unclosed`: the store's log holds what was done, as after a kill. `begun` does the first of
    several operations that are acknowledged one by one: a failure may come after it.
    """

    call: Callable[..., Any]
    pick: Callable[[Links], tuple[Any, ...]] = lambda links: ()
    opened: bool = True
    unclosed: bool = False
    changes: bool = True
    begun: Callable[[Store], Any] | None = None


def opened(path, engine, **options):
    return Store.open(path, thresholds=Thresholds(*THRESHOLDS), engine=engine, threads=1, **options)


def verb(name, pick=lambda links: (), *arguments, **options):
    return Scenario(lambda store, *given: getattr(store, name)(*given, *arguments, **options), pick)


def care(call, **how):
    return Scenario(call, changes=False, **how)


def on_file(call, **how):
    return care(call, opened=False, **how)


def one(pick):
    return lambda links: (pick(links),)


def removable(links):
    held = max(operations.members(links).values(), key=len)
    return operations.tried(links, zip(held, strict=True), lambda copy, v: copy.remove(v))


def backup(store):
    store.backup(Path(store.path).with_name("copy.links"))


SCENARIOS = {
    "add": Scenario(lambda store: store.add(COMING[0], payload={"file": "a.jpg"})),
    "add_many": Scenario(lambda store: store.add_many(COMING, idempotency_key="a batch")),
    "add_many of hundreds": Scenario(lambda store: store.add_many(operations.crowd(600, seed=5))),
    "feed": Scenario(
        lambda store: [ids.tolist() for ids in store.feed([COMING, LATER[:5]])],
        begun=lambda store: store.add_many(COMING),
    ),
    "add_group": Scenario(lambda store: store.add_group(COMING[:4], group="photo")),
    "enrol": Scenario(lambda store: store.enrol("Zoe", COMING[:3])),
    "same": verb("same", operations.of_two_clusters),
    "different": verb("different", operations.in_one_subcluster),
    "different of clusters": verb(
        "different", lambda links: operations.two_clusters(links, "different"), of="clusters"
    ),
    "move": verb("move", operations.movable),
    "name": verb("name", one(operations.nameless), "Bob", claim=True),
    "rename": verb("rename", one(operations.named), "Bob"),
    "ignore": verb("ignore", one(operations.nameless)),
    "remove": verb("remove", removable),
    "forget": verb("forget", one(operations.nameless)),
    "undo": verb("undo"),
    "undo to": Scenario(lambda store, to: store.undo(to=to), lambda links: (links.n_events - 12,)),
    "settle": verb("settle", lambda links: (), True),
    "snapshot": care(lambda store: store.handle.maintenance.write_snapshot(), unclosed=True),
    "compact": care(Store.compact),
    "backup": care(backup),
    "verify": care(Store.verify),
    "labels": care(Store.labels),
    "clusters": care(Store.clusters),
    "vectors": care(lambda store: store.vectors([0, 3, 5])),
    "close": care(Store.close, unclosed=True),
    "open": on_file(lambda path, engine: opened(path, engine)),
    "open after a kill": on_file(lambda path, engine: opened(path, engine), unclosed=True),
    "open to read": on_file(lambda path, engine: opened(path, engine, read_only=True)),
    "repair": on_file(lambda path, engine: repair(path)),
    "repair after a kill": on_file(lambda path, engine: repair(path), unclosed=True),
}
