"""Rebuilds as jobs: computed on a thread of their own while reads and writes go on, then applied.

A job is a rebuild, or the end of a migration to another encoder, which is one, too. It is computed
from a copy of the state, as a slow read is, within the same bounds of threads and memory. The
writer thread then applies the result, if nothing has changed in between. Otherwise the job computes
it again, `TRIES` times at most. After that it is refused; with `hold`, the last computation holds
the writes of other requests back, and reads go on.

A namespace has one job at a time, and the last one that has ended. Jobs are kept in memory alone: a
service that is stopped or killed forgets them. Applying is one call of the store, which is
committed as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linkstream.clusterer.rebuild_memory import memory_needed
from linkstream.errors import ChangedError, IdempotencyError, LinkstreamError
from linkstream.service.rebuild_work import Work
from linkstream.service.responses import Refusal, error_body, fault, not_found
from linkstream.service.slow_reads import Cancel
from linkstream.store.write_requests import WriteRequest

if TYPE_CHECKING:
    from linkstream.service.sessions import Session, Sessions

TRIES = 3  # computations, before a job that is to be applied gives up
SHARE = 0.75  # of the memory for slow reads that one job may use

_log = logging.getLogger("linkstream.service")


@dataclass(eq=False, slots=True)
class RebuildJob:
    """A rebuild and how far it got.

    Attributes:
        work: what it computes; with `apply` it is applied, else it only tells what would change.
        key: the idempotency key of the request that started it.
        digest: of the body of that request.
        wide: the dimension of the vectors that come with it; None: there are none.
        hold: whether the last computation may hold other requests back.
        id: what the job is asked for by.
        phase: "waiting", "computing" or "applying"; threads set it.
        outcome: "done", "failed" or "cancelled"; None while it runs.
        share: the share of the present computation that is done.
        tries: how many computations were begun.
        events: the first event of the rebuild, and the first after it.
        error: why it failed.
        cancel: whether it is to end.
        ended: set when it has ended.
    """

    work: Work
    key: str | None
    digest: bytes
    wide: int | None = None
    hold: bool = False
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    phase: str = "waiting"
    outcome: str | None = None
    share: float = 0.0
    tries: int = 0
    events: tuple[int, int] | None = None
    error: LinkstreamError | None = None
    cancel: Cancel = field(default_factory=Cancel)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    _times: list[float] = field(default_factory=lambda: [time.monotonic()])

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.outcome is None

    @property
    def state(self) -> str:
        """Its outcome, or its phase while it runs."""
        return self.outcome or self.phase

    @property
    def holds(self) -> bool:
        """Whether the next computation holds other requests back."""
        return self.hold and self.work.apply and self.tries == TRIES - 1

    def begin(self) -> None:
        """Note that a computation begins."""
        self.phase, self.share, self.tries = "computing", 0.0, self.tries + 1

    def progress(self, share: float) -> None:
        """Note the share of the work that is done; raise Cancelled if the job was cancelled."""
        self.cancel.check()
        self.share = share

    def end(self, outcome: str, error: LinkstreamError | None = None) -> None:
        """Note how it ended; what comes later does not count."""
        if self.running:
            self.outcome, self.error = outcome, error
            self._times.append(time.monotonic())
            self.ended.set()

    def to_dict(self, *, hidden: str = "") -> dict[str, Any]:
        """Return the job as plain values; `hidden` is removed from the texts of its error."""
        last = self._times[-1] if self.ended.is_set() else time.monotonic()
        before, event = self.events or (None, None)
        report = self.work.report
        return {
            "job": self.id,
            "state": self.state,
            "apply": self.work.apply,
            **self.work.described(),
            "share": round(self.share, 4),
            "tries": self.tries,
            "seconds": round(last - self._times[0], 3),
            "before": before,
            "event": event,
            "report": None if report is None else report.to_dict(),
            "error": None if self.error is None else error_body(self.error, hidden=hidden)["error"],
        }


class RebuildJobs:
    """The jobs of all namespaces: of each, the one that runs or that ended last.

    At least one thread for slow reads stays free of jobs if there are two or more.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._jobs: dict[str, RebuildJob] = {}
        self._turns = asyncio.Semaphore(max(1, sessions.settings.slow_threads - 1))

    def of(self, namespace: str) -> list[RebuildJob]:
        """Return the job that runs at a namespace or ended last, if there is one."""
        found = self._jobs.get(namespace)
        return [] if found is None else [found]

    def get(self, namespace: str, job: str) -> RebuildJob:
        """Return a job by its ID; refuse others with 404."""
        found = self._jobs.get(namespace)
        if found is None or found.id != job:
            raise not_found(
                f"no job {job!r:.80}",
                "the job that runs, or the last that has ended since the service started",
                "GET …/rebuilds lists it; GET …/steps tells whether a rebuild was applied.",
            )
        return found

    async def start(self, session: Session, job: RebuildJob) -> RebuildJob:
        """Start a job; return the job that runs already if it was started with the same key."""
        memory = memory_needed(*await session.sizes(), job.wide)
        known = self._jobs.get(session.name)
        if known is not None and job.key is not None and known.key == job.key:
            return _same(known, job)
        if known is not None and known.running:
            raise Refusal(
                409,
                "running",
                f"the rebuild {known.id} of {session.name!r} is {known.state}",
                expected="one rebuild of a namespace at a time",
                remedy="Wait until it has ended, or cancel it: DELETE …/rebuilds/ID.",
            )
        most = int(SHARE * self._sessions.settings.slow_bytes)
        self._sessions.slow.check_room(session, memory, most)
        self._jobs[session.name] = job
        job.task = self._sessions.spawn(self._run(session, job, memory))
        return job

    def cancel(self, namespace: str, job: str) -> RebuildJob:
        """End a job; one that has ended is forgotten. What is being applied may still be done."""
        found = self.get(namespace, job)
        found.cancel.wanted = True
        if not found.running:
            del self._jobs[namespace]
        elif found.phase != "applying" and found.task is not None:
            found.end("cancelled")
            found.task.cancel()
        return found

    async def _run(self, session: Session, job: RebuildJob, memory: int) -> None:
        try:
            if not await self._repeated(session, job):
                await self._compute(session, job, memory)
            job.share = 1.0
            job.end("done")
        except LinkstreamError as error:
            job.end("cancelled" if job.cancel.wanted else "failed", error)
        except asyncio.CancelledError:
            job.end("cancelled")
            raise
        except Exception:
            _log.exception("a rebuild of %s", session.name)
            job.end("failed", fault("a rebuild that failed"))

    async def _repeated(self, session: Session, job: RebuildJob) -> bool:
        """Return whether its key was used before; then the store gives its first answer."""
        key = job.key
        if not job.work.apply or key is None:
            return False
        before = await session.read(lambda store: store.journal.find(key))
        if before is None:
            return False
        request = job.work.repeat(key, before)
        if request is not None:
            await self._apply(session, job, request)
        else:
            job.events = before.first_event, before.first_event + len(before.events)
        return True

    async def _compute(self, session: Session, job: RebuildJob, memory: int) -> None:
        """Compute the rebuild, and apply it if that is wanted, until nothing comes between."""
        while True:
            holding = job.holds
            held = session.gate.held() if holding else contextlib.nullcontext()
            try:
                async with self._turns, held:
                    request = await self._prepare(session, job, memory)
                    if request is not None:
                        await self._apply(session, job, request, holding=holding)
                return
            except ChangedError as error:
                if job.tries >= TRIES:
                    raise _overtaken(error, job) from error
                job.phase, job.share = "waiting", 0.0

    async def _prepare(self, session: Session, job: RebuildJob, memory: int) -> WriteRequest | None:
        """Compute the rebuild as a slow read; return what applies it."""
        made: list[WriteRequest | None] = []

        def work(cancel: Cancel) -> bytes:
            def progress(share: float) -> None:
                cancel.check()
                job.progress(share)

            job.begin()
            made.append(job.work.prepare(session.store.handle, job.key, progress))
            return b""

        never = asyncio.Event().wait  # a job has no client that could go
        key = job.id, job.tries
        await self._sessions.slow.ask(session, key, work, memory, never)
        return made[0]

    async def _apply(
        self, session: Session, job: RebuildJob, request: WriteRequest, *, holding: bool = False
    ) -> None:
        """Let the writer thread apply the rebuild."""
        job.phase = "applying"
        _end_if_cancelled(job, request)
        size = 0 if request.rows is None else request.rows.nbytes
        call = await session.write(request, size, holding=holding)
        job.events = call.events
        await session.read(lambda store: job.work.applied(store.handle, call))


def _end_if_cancelled(job: RebuildJob, request: WriteRequest) -> None:
    """Let the writer thread refuse the request if the job was cancelled."""
    refuse = request.check

    def check(event: int) -> None:
        if job.cancel():
            seen, remedy = "a rebuild that was cancelled", "Start another one."
            raise Refusal(409, "running", seen, expected="one that goes on", remedy=remedy)
        if refuse is not None:
            refuse(event)

    request.check = check


def _overtaken(error: ChangedError, job: RebuildJob) -> ChangedError:
    """Return the error for a namespace that changed during each try."""
    again = "with `hold`, which holds changes back meanwhile" if job.work.apply else "later"
    return ChangedError(
        error.seen,
        expected=f"no change during one of {TRIES} computations",
        remedy=f"Nothing was done. Start it again {again}.",
    )


def _same(known: RebuildJob, job: RebuildJob) -> RebuildJob:
    """Return the job that was started with the key; raise IdempotencyError if it differs."""
    if known.digest != job.digest:
        raise IdempotencyError(
            f"idempotency_key={job.key!r:.80}, used before for another rebuild",
            expected="the same call as before",
            remedy="Use a new key for each call.",
        )
    return known
