"""One scenario on `Links`: what must be seen after a shortage of memory, and what was."""

from __future__ import annotations

from linkstream import Links, errors
from memory.operations import BATCH, COMING, READ, SCENARIOS, begun, later, plain, seen

UNUSABLE = getattr(errors, "UnusableError", None)

# All that a clusterer which cannot be used any more must refuse.
REFUSED = {
    "state": Links.state,
    "state_hash": Links.state_hash,
    "to_bytes": Links.to_bytes,
    "save": lambda links: links.save("/dev/null/nowhere"),
    "labels": Links.labels,
    "clusters": Links.clusters,
    "events": Links.events,
    "predict": lambda links: links.predict(COMING),
    "explain": lambda links: links.explain(COMING[0]),
    "explain_pair": lambda links: links.explain_pair(0, 1),
    "history": lambda links: links.history(0),
    "exemplars": lambda links: links.exemplars(0),
    "members": lambda links: links.members(0),
    "resolve": lambda links: links.resolve(0),
    "review_queue": Links.review_queue,
    "suggest_merges": Links.suggest_merges,
    "suggest_splits": Links.suggest_splits,
    "add": lambda links: links.add(COMING[0]),
    "add with a weight": lambda links: links.add(COMING[0], weight=0.5),
    "add_many": lambda links: links.add_many(COMING),
    "add_group": lambda links: links.add_group(COMING[:2]),
    "enrol": lambda links: links.enrol("Zoe", COMING[:2]),
    "same": lambda links: links.same(0, 1),
    "different": lambda links: links.different(0, 1),
    "move": lambda links: links.move(0, 1),
    "name": lambda links: links.name(0, "Zoe"),
    "rename": lambda links: links.rename(0, "Zoe"),
    "ignore": lambda links: links.ignore(0),
    "remove": lambda links: links.remove(0),
    "forget": lambda links: links.forget(0),
    "undo": Links.undo,
    "settle": Links.settle,
    "absorb": lambda links: links.absorb(Links(0.7, 0.8, 0.9)),
    "drain_events": Links.drain_events,
}


def is_lawful(raised, kind):
    """Whether an error may come of a shortage.

    Where one of Python's own small objects cannot be made, NumPy and nanobind lose the MemoryError
    in places, and another error comes out of them: it must not be one of ours, which would blame
    the caller or a file.
    """
    if isinstance(raised, MemoryError):
        return True
    own = isinstance(raised, (errors.LinkstreamError, AssertionError))
    return kind in ("python", "any") and not own


class Case:
    """A scenario made ready, before children are forked."""

    def __init__(self, job, shortage, folder):
        self.job, self._shortage, self._folder = job, shortage, folder
        self._scenario = SCENARIOS[job.scenario]
        self._warm()
        self._links = begun(self._scenario, job.engine)
        self._operation = self._scenario.make(self._links, folder)
        self._links.events(self._links.n_events)  # all that was done before has been read
        self.expected = {}

    def _warm(self):
        """Do all of it once: what is imported or cached at first use is there then."""
        links = begun(self._scenario, self.job.engine)
        operation = self._scenario.make(links, self._folder)
        plain(operation.call())
        later(links)

    def count(self, shortfall):
        """How many allocations of a kind the verb makes."""
        self._shortage.during(self._operation.call, shortfall, -1)
        return self._shortage.seen

    def oracle(self):
        """What is seen before and after the verb and later, of one that never failed."""
        before = seen(self._links)
        answer = self._operation.call()
        self._operation.check()
        after = seen(self._links)
        assert (before == after) == (self._scenario.kind == READ), "a verb that changes nothing"
        return {
            "before": before,
            "answer": plain(answer),
            "after": after,
            "later": later(self._links),
        }

    def tried(self, shortfall, k):
        """What came of a shortage at one place."""
        answer, raised = self._shortage.during(self._operation.call, shortfall, k)
        if raised is None:
            return self._answered(answer)
        if not is_lawful(raised, shortfall.kind):
            return ["BAD", f"raised {type(raised).__name__}: {str(raised)[:120]}"]
        return self._failed()

    def _answered(self, answer):
        if plain(answer) != self.expected["answer"]:
            return ["BAD", "returned another answer"]
        if seen(self._links) != self.expected["after"]:
            return ["BAD", "returned, and another state"]
        return self._went_on("returned", "after")

    def _failed(self):
        try:
            state = seen(self._links)
        except Exception as error:
            if UNUSABLE is not None and isinstance(error, UNUSABLE):
                return self._refuses()
            return ["BAD", f"raised, and a broken state: {type(error).__name__}"]
        if state == self.expected["before"]:
            return self._again()
        if state != self.expected["after"]:
            return ["BAD", "raised, and a state that is neither before nor after"]
        if self._scenario.kind == BATCH:
            return ["BAD", "raised, and the batch was taken"]
        return self._went_on("raised", "after")

    def _again(self):
        """As before: the same call is answered now as if nothing had been."""
        self._operation.check()
        if plain(self._operation.call()) != self.expected["answer"]:
            return ["BAD", "raised, as before, and another answer when tried again"]
        if seen(self._links) != self.expected["after"]:
            return ["BAD", "raised, as before, and another state when tried again"]
        return self._went_on("raised", "before")

    def _went_on(self, how, where):
        self._operation.check()
        try:
            same = later(self._links) == self.expected["later"]
        except Exception as error:
            return ["BAD", f"{how}, the state {where}, and {type(error).__name__} later"]
        if not same:
            return ["BAD", f"{how}, the state {where}, and other answers later"]
        return ["good", f"{how}, the state {where}"]

    def _refuses(self):
        for name, call in REFUSED.items():
            try:
                call(self._links)
            except UNUSABLE:
                continue
            except Exception as error:
                return ["BAD", f"unusable, and {name} raised {type(error).__name__}"]
            return ["BAD", f"unusable, and {name} answered"]
        return ["good", "raised, and refuses everything"]
