"""Uploads: files that come in pieces, wait in a folder of the service, and are then added.

A file is never in memory as a whole: its pieces are written to `DATA/.uploads` as they come, and
`upload_jobs` reads it in blocks. The folder is emptied when the service starts. An upload that was
not used for `upload_idle_seconds` is removed with its file.

An upload belongs to a namespace by name, which need not exist yet: thresholds for a new namespace
can be found from the file first.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from linkstream.errors import ArgumentError
from linkstream.service.responses import Refusal, not_found, too_large

if TYPE_CHECKING:
    from linkstream.service.sessions import Sessions
    from linkstream.service.upload_jobs import UploadJob

FOLDER = ".uploads"
SUFFIXES = (".npy", ".npz", ".parquet", ".arrow", ".feather", ".jsonl", ".ndjson", ".csv")
FREE_MIN = 64 << 20  # bytes of the disk that uploads leave free
ASK_BYTES = 128 << 20  # memory that a question about a file may need, by estimate
_THREADS = 2  # that read files, for all namespaces
_serials = itertools.count()

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Upload:
    """A file that is being received, waits, or is being added.

    Attributes:
        namespace: the name of the namespace that it is for.
        file: the name that the caller gave the file.
        size: its bytes, as announced.
        path: where it is.
        received: how many bytes have come.
        id: what it is asked for by.
        job: what adds its rows; None before that was asked for.
        used: when it was last used, on the monotonic clock.
        lock: held while a piece is written.
        serial: differs for each upload; with `version` it makes an upload a subject of slow reads.
    """

    namespace: str
    file: str
    size: int
    path: Path
    id: str
    received: int = 0
    job: UploadJob | None = None
    used: float = field(default_factory=time.monotonic)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    serial: int = field(default_factory=lambda: -1 - next(_serials))

    @property
    def version(self) -> int:
        """The bytes received: answers about the file hold until more come."""
        return self.received

    @property
    def state(self) -> str:
        """The state of its job; "receiving" or "ready" before."""
        if self.job is not None:
            return self.job.state
        return "ready" if self.received == self.size else "receiving"

    @property
    def running(self) -> bool:
        """Whether its rows are being checked or added."""
        return self.job is not None and self.job.running

    def check_ready(self) -> None:
        """Raise Refusal unless the whole file is there and no job reads it."""
        if self.received < self.size:
            raise Refusal(
                409,
                "changed",
                f"{self.received} of {self.size} bytes",
                expected="the whole file",
                remedy="Send the rest first: PUT …/uploads/ID?offset=RECEIVED.",
            )
        if self.running:
            raise Refusal(
                409,
                "running",
                f"the upload {self.id} is {self.state}",
                expected="one that is ready",
                remedy="Wait until it has ended, or cancel it: DELETE …/uploads/ID.",
            )


class Uploads:
    """The uploads of all namespaces."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._uploads: dict[str, Upload] = {}
        self._folder = sessions.settings.data / FOLDER
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="linkstream-upload")

    def clear(self) -> None:
        """Remove the files that an earlier process has left."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> None:
        """End the threads, and remove all files."""
        for upload in self._uploads.values():
            if upload.job is not None:
                upload.job.cancel.wanted = True
        self._threads.shutdown(wait=False)
        self.clear()

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Read or write a file in a thread."""
        return await self._sessions.loop.run_in_executor(self._threads, work)

    def of(self, namespace: str) -> list[Upload]:
        """Return the uploads of a namespace, the oldest first."""
        return [each for each in self._uploads.values() if each.namespace == namespace]

    def get(self, namespace: str, upload: str) -> Upload:
        """Return an upload by its ID; refuse others with 404."""
        found = self._uploads.get(upload)
        if found is None or found.namespace != namespace:
            raise not_found(
                f"no upload {upload!r:.80}",
                "an upload of this namespace since the service started",
                "Send the file again; rows that were added are not added twice.",
            )
        found.used = time.monotonic()
        return found

    async def create(self, namespace: str, file: str, size: int) -> Upload:
        """Make room for a file."""
        self._sessions.path(namespace)  # refuses names that no namespace can have
        suffix = os.path.splitext(file)[1].lower()
        if suffix not in SUFFIXES:
            raise ArgumentError(
                f"the file {file!r:.100}",
                expected=f"a name that ends with one of {', '.join(SUFFIXES)}",
                remedy="Save the vectors as one of these kinds.",
            )
        self._check_room(size)
        self._forget_ended()
        name = secrets.token_hex(8)
        upload = Upload(namespace, file, size, self._folder / f"{name}{suffix}", name)
        self._uploads[name] = upload  # before the thread, so that the next one is counted
        try:
            await self.run_in_thread(lambda: self._make(upload))
        except BaseException:
            del self._uploads[name]
            raise
        return upload

    def _make(self, upload: Upload) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        there = shutil.disk_usage(self._folder).free
        waiting = sum(each.size - each.received for each in self._uploads.values())
        if waiting + FREE_MIN > there:
            expected = f"at most {max(0, there - FREE_MIN - waiting + upload.size)} bytes"
            remedy = "Free some space in the data folder, or send a smaller file."
            raise too_large(f"a file of {upload.size} bytes for the disk", expected, remedy)
        os.close(os.open(upload.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    def _check_room(self, size: int) -> None:
        settings = self._sessions.settings
        if size > settings.upload_max:
            seen, expected = f"a file of {size} bytes", f"at most {settings.upload_max}"
            raise too_large(seen, expected, "Split the file, or raise upload_max.")
        files = sum(each.state != "done" for each in self._uploads.values())
        if files >= settings.uploads_max:
            raise Refusal(
                409,
                "too-many",
                f"{files} uploads",
                expected=f"fewer than {settings.uploads_max}",
                remedy="Remove one that has ended: DELETE …/uploads/ID.",
            )

    def _forget_ended(self) -> None:
        """Forget the oldest uploads that are done, beyond as many as may be under way."""
        done = [each for each in self._uploads.values() if each.state == "done"]
        for upload in done[: -self._sessions.settings.uploads_max]:
            del self._uploads[upload.id]

    async def write(self, upload: Upload, offset: int, piece: bytes) -> None:
        """Write a piece of a file; a piece that is there already is not written again."""
        async with upload.lock:
            end = offset + len(piece)
            if end <= upload.received:
                return
            if offset != upload.received or end > upload.size or upload.job is not None:
                raise Refusal(
                    409,
                    "changed",
                    f"bytes {offset} to {end}",
                    expected=f"bytes from {upload.received} on, at most up to {upload.size}",
                    remedy="Continue at the `received` of GET …/uploads/ID.",
                )
            await self.run_in_thread(lambda: _write(upload.path, offset, piece))
            upload.received = end

    async def remove(self, upload: Upload) -> None:
        """Cancel what runs, and remove the file."""
        if upload.job is not None:
            await upload.job.stop()
        self._uploads.pop(upload.id, None)
        await self.discard(upload)

    async def discard(self, upload: Upload) -> None:
        """Remove the file of an upload."""
        await self.run_in_thread(lambda: upload.path.unlink(missing_ok=True))

    def sweep(self) -> None:
        """Remove uploads that nobody has used for long."""
        oldest = time.monotonic() - self._sessions.settings.upload_idle_seconds
        for upload in list(self._uploads.values()):
            if upload.used < oldest and not upload.running:
                del self._uploads[upload.id]
                self._sessions.spawn(self.discard(upload))

    async def ask(self, upload: Upload, key: Any, work: Callable[[], bytes], request: Any) -> bytes:
        """Read the file as a slow read: once for all who ask the same."""
        upload.check_ready()
        slow = self._sessions.slow
        return await slow.ask(upload, key, lambda _: work(), ASK_BYTES, request.receive)


def _write(path: Path, offset: int, piece: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, "wb") as file:
            file.seek(offset)
            file.write(piece)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.truncate(path, offset)
        raise Refusal(
            503,
            "store",
            f"the piece cannot be written ({error.strerror})",
            expected="a data folder with free space",
            remedy="Free some space in the data folder, then send the piece again.",
        ) from None
