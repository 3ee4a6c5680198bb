"""Clients that feed a service until it ends, with the answers they got."""

from __future__ import annotations

import http.client
import threading
import time

import numpy as np

from linkstream import Links
from linkstream.store import Store
from service.calling import BINARY, Caller
from store.child import batch
from store.internals import told
from store.operations import THRESHOLDS

SIZES = (1, 32, 1_000)
PATH = "/v1/namespaces/people/vectors"


class Feeders:
    """Threads that each send batch after batch, as JSON or as bytes, with a key or without.

    A batch is known by its thread and number alone; its payload says which it is, so that it is
    found again even without a key. What an answer has come for is in `answers`.
    """

    def __init__(self, service, seed, starts, *, pause=0.0):
        self._service, self._seed, self._pause = service, seed, pause
        self.answers, self.firsts, self.refused, self.errors = {}, {}, 0, []
        self.sent = dict(enumerate(starts))
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(thread,)) for thread in range(len(starts))
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, thread):
        try:
            with Caller(self._service.port) as caller:
                while not self._stop.is_set():
                    self._feed(caller, thread)
                    time.sleep(self._pause)
        except (OSError, http.client.HTTPException):
            pass  # it is gone
        except BaseException as error:
            self.errors.append(error)

    def _feed(self, caller, thread):
        number = self.sent[thread]
        rows = batch(self._seed, (thread, number), SIZES)
        answer = caller.post(*request(rows, number), headers=headers(thread, number))
        if answer.status == 200:
            self.answers[thread, number], self.firsts[thread, number] = read(answer)
            self.sent[thread] = number + 1
        else:
            assert answer.status in (429, 503), answer
            self.refused += 1

    def join(self, *, stop=False):
        """Wait until all clients have noticed the end of the service."""
        if stop:
            self._stop.set()
        for thread in self._threads:
            thread.join(60.0)
            assert not thread.is_alive()
        assert self.errors == []
        return self


def read(answer):
    """Return the IDs of an answer and the number of the first vector, from any kind of answer."""
    if answer.headers["content-type"] == BINARY:
        return answer.ids, int(answer.headers["x-first-vector"])
    told = answer.json
    return (
        ([told["cluster"]], told["sequence"]) if "cluster" in told else (answer.ids, told["first"])
    )


def request(rows, number):
    """Return the path and the body of a batch: bytes or JSON, one vector or many."""
    if number % 5 < 3:
        return PATH, rows
    if number % 5 == 4 and len(rows) == 1:
        return PATH, {"vector": rows[0].tolist()}
    return PATH, {"vectors": rows.tolist()}


def headers(thread, number):
    accept = {"Accept": BINARY} if number % 2 and number % 5 != 4 else {}
    return {"Idempotency-Key": f"{thread}:{number}"} | accept


def replayed(path, seed, feeders=None):
    """Decide all operations of a store again; answers by thread and number of the batch.

    Later answers are those of a run that nothing happened to: the state is the same, to the bit.
    With feeders: the numbers that they were told are those that their vectors have.
    """
    links, found = Links.from_thresholds(THRESHOLDS, threads=1), {}
    with Store.open(path, threads=1) as store:
        for operation in told(store):
            thread, number = map(int, operation.key.split(":"))
            rows = batch(seed, (thread, number), SIZES)
            assert np.array_equal(operation.vectors, rows), "wholly in, or wholly out"
            assert (thread, number) not in found, "twice"
            found[thread, number] = links.add_many(rows).tolist()
            if feeders is not None and (thread, number) in feeders.firsts:
                assert feeders.firsts[thread, number] == operation.first_vector
        assert store.state_hash() == links.state_hash()
        assert store.n_vectors == links.n_vectors
    return found
