"""The caretaker: a thread that writes snapshots and moves the log into the file, off the way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("linkstream.store")


class Caretaker:
    """Does what it is told, one thing after the other; what fails is logged and done next time."""

    def __init__(self) -> None:
        self._wanted: list[Callable[[], None]] = []
        self._change = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def ask(self, job: Callable[[], None]) -> None:
        """Have something done soon; not twice if it is still waiting."""
        with self._change:
            if self._closing or job in self._wanted:
                return
            self._wanted.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="linkstream", daemon=True)
                self._thread.start()
            self._change.notify()

    def stop(self) -> None:
        """Finish what is being done, and do no more."""
        with self._change:
            self._closing = True
            self._wanted.clear()
            self._change.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._wanted and not self._closing:
                    self._change.wait()
                if self._closing:
                    return
                job = self._wanted.pop(0)
            try:
                job()
            except Exception as error:  # nothing that was acknowledged depends on it
                _log.warning("%s", error)
