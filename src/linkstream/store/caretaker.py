"""The caretaker: a thread that writes snapshots and moves the log into the file, off the way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

_log = logging.getLogger("linkstream.store")


class Caretaker:
    """Does what it is told, one thing after the other; what fails is logged and done next time."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._wanted: list[Callable[[], None]] = []  # told, and not yet begun
        self._closing = False
        self._thread: threading.Thread | None = None

    def ask(self, job: Callable[[], None]) -> None:
        """Have something done soon; not twice if it is still waiting. For one thread to call."""
        if self._closing or job in self._wanted:
            return
        self._wanted.append(job)
        self._queue.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="linkstream-care", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Finish what is being done, and do no more."""
        self._closing = True
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._done_next():
            pass

    def _done_next(self) -> bool:
        job = self._queue.get()
        if job is None or self._closing:
            return False
        self._wanted.remove(job)
        try:
            job()
        except Exception as error:  # nothing that was acknowledged depends on it
            _log.warning("%s", error)
        return True
