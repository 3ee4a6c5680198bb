"""Adding the rows of an upload: check all of them, then add them batch by batch.

The whole file is read twice. The first pass changes nothing: it names the rows that cannot be
added, and the job ends there unless they may be left out. The second pass adds batches, each with
the idempotency key of `io.feeding`, or without the rows whose own keys are there already. The same
file therefore adds nothing when it is sent again, and a file that has grown adds its new rows.

Only reading is done in threads of the uploads. Each batch is a request of its own at the namespace:
other requests come between two batches.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from linkstream.clusterer.verbs import AddMany
from linkstream.errors import DimensionError, KeyTakenError, LinkstreamError
from linkstream.io import Block, open_vectors
from linkstream.io.feeding import Digest, Rows, known_piece
from linkstream.io.good_rows import BadRows, GoodRows, new_rows
from linkstream.service.responses import Refusal, error_body, fault
from linkstream.service.slow_reads import Cancel, Cancelled
from linkstream.store.write_requests import WriteRequest, request_of

if TYPE_CHECKING:
    from linkstream.io import Source
    from linkstream.service.sessions import Session
    from linkstream.service.uploads import Upload, Uploads

BUSY = (429, 503)
AGAIN = 0.2  # seconds until a batch is sent again that a busy namespace has refused

_log = logging.getLogger("linkstream.service")


@dataclass(eq=False, slots=True)
class UploadJob:
    """The work of adding an upload, and how far it is.

    Attributes:
        options: arguments of `open_vectors`: which columns are vectors, keys, times, payload.
        skip_bad: whether rows that cannot be added are left out; else they end the job.
        phase: "checking" or "adding".
        outcome: "done", "bad-rows", "failed" or "cancelled"; None while it runs.
        share: the share of the file that this phase has read.
        rows: rows that were found to be good.
        added, known: rows that are new, and rows that were there before.
        bad: the rows that cannot be added.
        events: the first event of the first batch, and the first event after the last one; None
            if nothing was added, or if other changes came between the batches.
        error: why it failed.
    """

    options: dict[str, Any]
    skip_bad: bool = False
    phase: str = "checking"
    outcome: str | None = None
    share: float = 0.0
    rows: int = 0
    added: int = 0
    known: int = 0
    bad: BadRows = field(default_factory=BadRows)
    events: tuple[int, int] | None = None
    alone: bool = True
    error: LinkstreamError | None = None
    cancel: Cancel = field(default_factory=Cancel)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.outcome is None

    @property
    def state(self) -> str:
        """Its outcome, or its phase while it runs."""
        return self.outcome or self.phase

    def end(self, outcome: str, error: LinkstreamError | None = None) -> None:
        """Note how it ended."""
        self.outcome, self.error = outcome, error
        self.ended.set()

    async def stop(self) -> None:
        """Cancel it, and wait until its last batch is committed or refused."""
        self.cancel.wanted = True
        await self.ended.wait()

    def note(self, call: WriteRequest, rows: int) -> None:
        """Count the rows of a batch that is in the store."""
        if call.decisions is None:  # its key was used before
            self.known += rows
            return
        self.added += rows
        first, end = call.events
        self.alone = self.alone and (self.events is None or self.events[1] == first)
        self.events = (first if self.events is None else self.events[0], end)

    def to_dict(self) -> dict[str, Any]:
        """Return how far it is as plain values, without the errors."""
        before, event = (self.alone and self.events) or (None, None)
        figures = {name: getattr(self, name) for name in ("rows", "added", "known")}
        return {**figures, "share": round(self.share, 4), "before": before, "event": event}


def start(uploads: Uploads, session: Session, upload: Upload, job: UploadJob, spawn: Any) -> None:
    """Start to add an upload to a namespace."""
    upload.check_ready()
    upload.job = job
    job.task = spawn(_Adding(uploads, session, upload, job).run())


class _Adding:
    """One job at work."""

    def __init__(self, uploads: Uploads, session: Session, upload: Upload, job: UploadJob) -> None:
        self._uploads, self._session = uploads, session
        self._upload, self._job = upload, job
        self._reading = threading.Lock()

    async def run(self) -> None:
        """Check all rows, then add them; note how it ended."""
        job = self._job
        try:
            await self._check()
            if job.bad.count and not job.skip_bad:
                job.end("bad-rows")
                return
            await self._add_all()
            await self._uploads.discard(self._upload)
            job.end("done")
        except Cancelled:
            job.end("cancelled")
        except LinkstreamError as error:
            job.end("failed", error)
        except asyncio.CancelledError:
            job.end("cancelled")
            raise
        except Exception:
            _log.exception("an upload to %s", self._session.name)
            job.end("failed", fault("an upload that failed"))

    async def _check(self) -> None:
        """Read the whole file, and note the rows that cannot be added."""
        job = self._job
        async with self._opened(job.bad) as source:
            await self._check_dimension(source)
            blocks = iter(GoodRows(source, job.bad))
            while (block := await self._next(blocks, source)) is not None:
                job.rows += len(block)

    async def _check_dimension(self, source: Source) -> None:
        """Raise DimensionError if the namespace has vectors of another dimension."""
        _, _, there = await self._session.sizes()
        if there and source.dimension not in (None, there):
            raise DimensionError(
                f"{self._upload.file} has vectors of dimension {source.dimension}",
                expected=f"dimension {there}, as in {self._session.name!r}",
                remedy="Use the encoder of this namespace, or make another namespace.",
            )

    async def _add_all(self) -> None:
        job = self._job
        job.phase, job.share = "adding", 0.0
        async with self._opened(BadRows()) as source:
            rows, digest = Rows(GoodRows(source, BadRows())), Digest("")
            by_key = "ids" in source.options.own
            if not by_key:
                digest = await self._skip_known(rows, digest, source)
            blocks = iter(rows)
            while (block := await self._next(blocks, source)) is not None:
                digest = await self._thread(partial(digest.after, block.vectors))
                key = None if by_key else digest.key(block.first_row, len(block))
                await self._add(block, key)

    async def _skip_known(self, rows: Rows, digest: Digest, source: Source) -> Digest:
        """Skip the pieces at the start of the file that are in the store."""
        while True:
            self._job.cancel.check()
            store = self._session.store
            found = await self._thread(lambda: known_piece(rows, digest, store))  # noqa: B023
            if found is None:
                return digest
            digest, piece = found
            self._job.known += len(piece.ids)
            self._job.share = source.progress or 0.0

    async def _add(self, block: Block, key: str | None) -> None:
        """Add a block; where its rows have keys, only those that are new."""
        while True:
            new = await self._session.read(lambda store: new_rows(store, block))
            try:
                if len(new):
                    self._job.note(await self._written(new, key), len(new))
                self._job.known += len(block) - len(new)
                return
            except KeyTakenError:  # another client has added some of them meanwhile
                self._job.cancel.check()

    async def _written(self, block: Block, key: str | None) -> WriteRequest:
        """Return the request for a block once it is committed; wait while the namespace is busy."""
        while True:
            self._job.cancel.check()
            columns: dict[str, Any] = {
                "payloads": block.payloads,
                "at": block.at,
                "ids": block.ids,
            }
            call = await self._thread(
                lambda: request_of(AddMany(block.vectors), key=key, **columns)  # noqa: B023
            )
            call.renew = key is not None
            try:
                return await self._session.write(call, block.vectors.nbytes)
            except Refusal as refusal:
                if refusal.status not in BUSY:
                    raise
            await asyncio.sleep(AGAIN)

    # Reading

    @contextlib.asynccontextmanager
    async def _opened(self, bad: BadRows) -> Any:
        path, options = self._upload.path, self._job.options
        source = await self._thread(lambda: open_vectors(path, bad_row=bad.note, **options))
        try:
            yield source
        finally:
            with contextlib.suppress(RuntimeError):  # the service has ended
                await self._thread(source.close)

    async def _next(self, blocks: Iterator[Block], source: Source) -> Block | None:
        self._job.cancel.check()
        block: Block | None = await self._thread(lambda: next(blocks, None))
        self._job.share = min(1.0, source.progress or 0.0)
        return block

    async def _thread(self, work: Any) -> Any:
        """Run some work in a thread, after the work that a cancelled wait has left there."""

        def alone() -> Any:
            with self._reading:
                return work()

        return await self._uploads.run_in_thread(alone)


def told(upload: Upload, *, hidden: str) -> dict[str, Any]:
    """Return an upload as plain values; paths of the service are not in them."""
    job = upload.job or UploadJob({})
    errors = [job.error, *job.bad.first]
    error, *first = [None if each is None else problem(upload, each, hidden) for each in errors]
    return {
        "upload": upload.id,
        "file": upload.file,
        "size": upload.size,
        "received": upload.received,
        "state": upload.state,
        **job.to_dict(),
        "bad": {"count": job.bad.count, "first": first},
        "error": error,
    }


def problem(upload: Upload, error: LinkstreamError, hidden: str) -> dict[str, Any]:
    """Return an error about a file as plain values, with the name that the caller gave the file."""
    found: dict[str, Any] = error_body(error)["error"]
    for each in ("seen", "expected", "remedy"):
        words = found[each].replace(str(upload.path), upload.file)
        found[each] = words.replace(hidden, "") if hidden else words
    return {name: found[name] for name in ("kind", "seen", "expected", "remedy")}
