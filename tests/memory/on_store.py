"""One scenario on a store: what was acknowledged is there after a shortage, and it is sound.

A case takes two processes: one whose memory runs out, which ends with or without closing the store,
and one with memory enough, which opens it again.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from linkstream import Links
from linkstream.errors import StoreClosedError
from linkstream.store import Store
from linkstream.store.repairing import Repaired
from memory import operations
from memory.child import ended, forked
from memory.on_links import UNUSABLE, is_lawful
from memory.operations import LATER, THRESHOLDS, fill
from memory.storing import EXTRA, SCENARIOS, opened
from store.operations import state_of

NAME = "people.links"
CLOSED = tuple(error for error in (StoreClosedError, UNUSABLE) if error is not None)


def plain(answer):
    """An answer as text, without what differs from file to file."""
    if isinstance(answer, Store):
        return "a store"
    if isinstance(answer, Repaired):
        return operations.plain([answer.kept, answer.lost, answer.vectors, answer.reason])
    return operations.plain(answer)


class Case:
    """A store made ready in a file, which each case copies."""

    def __init__(self, job, shortage, folder):
        self.job, self._shortage, self._folder = job, shortage, folder
        self._scenario = SCENARIOS[job.scenario]
        links = Links(*THRESHOLDS, engine=job.engine, threads=1)
        fill(links)
        self._picked = self._scenario.pick(links)
        made = ended(*forked(self._make))
        assert made == "made", made
        self.expected = {}

    def _make(self):
        links = Links(*THRESHOLDS, engine=self.job.engine, threads=1)
        (self._folder / "base").mkdir()
        store = opened(self._folder / "base" / NAME, self.job.engine)
        fill(links, store)
        if not self._scenario.unclosed:
            store.close()
        return "made"

    def _copied(self, name):
        """The path of a copy, alone in a folder."""
        folder = self._folder / str(name)
        shutil.copytree(self._folder / "base", folder)
        return folder / NAME

    def _call(self, path):
        """The call to be made, and the store it is made on, if one is open."""
        scenario = self._scenario
        if not scenario.opened:
            return (lambda: scenario.call(path, self.job.engine)), None
        store = opened(path, self.job.engine)
        return (lambda: scenario.call(store, *self._picked)), store

    def _done(self, path):
        """Make the call with memory enough, and close the store; the answer."""
        call, store = self._call(path)
        answer = call()
        for held in (store, answer):
            if isinstance(held, Store):
                held.close()
        return plain(answer)

    # What is expected

    def count(self, shortfall):
        call, _ = self._call(self._copied("count"))
        self._shortage.during(call, shortfall, -1)
        shutil.rmtree(self._folder / "count")
        return self._shortage.seen

    def oracle(self):
        """Where a store is that never failed: before, after, and with something added to each."""
        answers = {}
        for name, done in (("before", False), ("after", True)):
            path = self._copied(name)
            if done:
                answers["answer"] = self._done(path)
            with opened(path, self.job.engine) as store:
                answers[name] = state_of(store)
                store.add_many(EXTRA)
                answers[f"{name}, extra"] = state_of(store)
            shutil.rmtree(path.parent)
        if self._scenario.begun is not None:
            answers |= self._begun()
        assert (answers["before"] == answers["after"]) != self._scenario.changes
        return answers | {"later": self._later_of("after")}

    def _begun(self):
        """Where a store is after the first of several operations."""
        path = self._copied("begun")
        with opened(path, self.job.engine) as store:
            self._scenario.begun(store)
            states = {"begun": state_of(store)}
            store.add_many(EXTRA)
            states["begun, extra"] = state_of(store)
        shutil.rmtree(path.parent)
        return states

    def _later_of(self, name):
        path = self._copied(name)
        self._done(path)
        with opened(path, self.job.engine) as store:
            answer = _later(store)
        shutil.rmtree(path.parent)
        return answer

    # What is seen

    def tried(self, shortfall, k):
        """What came of a shortage at one place."""
        path = self._copied(f"{k}-{os.getpid()}")
        try:
            said = ended(*forked(lambda: self._without_memory(path, shortfall, k)))
            if said[0] == "BAD":
                return said
            return ended(*forked(lambda: self._with_memory(path, *said)))
        finally:
            shutil.rmtree(path.parent)

    def _without_memory(self, path, shortfall, k):
        """The first process: what was raised, if anything; whether something was added then."""
        names = {each.name for each in path.parent.iterdir()}
        call, store = self._call(path)
        answer, raised = self._shortage.during(call, shortfall, k)
        if raised is None and plain(answer) != self.expected["answer"]:
            text = str(answer).replace(str(path.parent), "")
            return ["BAD", f"returned another answer: {text[:120]}"]
        if raised is not None and not _is_lawful(raised, shortfall.kind):
            text = str(raised).replace(str(path.parent), "")
            return ["BAD", f"raised {type(raised).__name__}: {text[:120]}"]
        if raised is not None and not shortfall.for_good:
            left = {each.name for each in path.parent.iterdir()} - names
            left -= {NAME + "-wal", NAME + "-shm", NAME + ".lock"}
            if left:
                return ["BAD", f"raised, and left {sorted(left)} behind"]
        store = answer if isinstance(answer, Store) else store
        extra = self._afterwards(store, k) if store is not None else False
        return ["raised" if raised is not None else "returned", extra]

    def _afterwards(self, store, k):
        """Use the store that ran out of memory; whether it took what was added."""
        known = [self.expected.get(name) for name in ("before", "begun", "after")]
        with suppress(*CLOSED):
            assert list(state_of(store)) in known, "it shows another state"
        extra = False
        if k % 2 and not store.read_only:
            with suppress(*CLOSED):
                store.add_many(EXTRA)
                extra = True
        if k % 3:
            store.close()
        return extra

    def _with_memory(self, path, how, extra):
        """The second process: everything acknowledged is there, and all is sound."""
        suffix = ", extra" if extra else ""
        with opened(path, self.job.engine) as store:
            place = list(state_of(store))
            store.verify()
        names = ("after", "before", "begun")
        where = [name for name in names if place == self.expected.get(name + suffix)]
        if not where:
            return ["BAD", f"{how}, and another state{suffix} when opened again"]
        if how == "returned" and where[0] != "after":
            return ["BAD", "returned, and is not there when opened again"]
        if extra or where[0] == "begun":
            return ["good", f"{how}, the state {where[0]}, and went on"]
        return self._again(path, how, where[0])

    def _again(self, path, how, where):
        """Do it again if it was not done; then go on."""
        if where == "before" and self._done(path) != self.expected["answer"]:
            return ["BAD", f"{how}, as before, and another answer when tried again"]
        with opened(path, self.job.engine) as store:
            if _later(store) != self.expected["later"]:
                return ["BAD", f"{how}, the state {where}, and other answers later"]
        return ["good", f"{how}, the state {where}"]


def _is_lawful(raised, kind):
    """MemoryError, or that the store takes no more; a shortage is never called damage."""
    return isinstance(raised, CLOSED) or is_lawful(raised, kind)


def _later(store):
    answers = [store.add_many(LATER[:6]), store.undo()]
    answers += [store.labels(), list(state_of(store))]
    return operations.plain(answers)
