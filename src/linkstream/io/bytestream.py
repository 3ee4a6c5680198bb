"""Streams of bytes from a file, an archive or a pipe: exact reads, lines and pauses."""

from __future__ import annotations

import os
import select
import stat
from typing import IO

from linkstream.io.source import file_error, first_line

CHUNK = 2**18
PAUSE_SECONDS = 0.05  # a pipe that sends no byte for this long has paused


class ByteStream:
    """A buffered stream of bytes, read front to back.

    Args:
        name: name of the stream in error messages.
        stream: a binary stream.
        size: how many bytes the stream holds, or None if it is not known.
        seekable: whether `skip` may seek.
        read_errors: exceptions that `stream` raises on damaged bytes, besides OSError.
    """

    def __init__(
        self,
        name: str,
        stream: IO[bytes],
        *,
        size: int | None = None,
        seekable: bool = False,
        read_errors: tuple[type[Exception], ...] = (),
    ) -> None:
        self.name = name
        self.size = size
        self._taken = 0
        self._stream = stream
        self._seekable = seekable
        self._errors: tuple[type[Exception], ...] = (OSError, *read_errors)
        self._buffer = bytearray()
        self._scanned = 0  # bytes at the front of the buffer that hold no line end
        self._ended = False
        self._pipe = _pipe_descriptor(stream)

    def progress(self) -> float | None:
        """Return the share that was read, from 0 to 1; None if the size is not known."""
        return self._taken / self.size if self.size else None

    def peek(self, count: int) -> bytes:
        """Return the next `count` bytes without consuming them; fewer at the end."""
        self._fill_to(count)
        return bytes(self._buffer[:count])

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes; fewer only at the end."""
        self._fill_to(count)
        return self._consume(min(count, len(self._buffer)))

    def read_units(self, unit: int, count: int) -> bytes:
        """Return up to `count` units of `unit` bytes: fewer if the stream pauses or ends.

        Only at the end may the last unit be incomplete.
        """
        while len(self._buffer) < unit * count and not self._ended:
            if len(self._buffer) >= unit and self._pauses():
                break
            self._fill(unit * count - len(self._buffer))
        complete = len(self._buffer) // unit * unit
        there = len(self._buffer) if self._ended else complete
        return self._consume(min(there, unit * count))

    def read_line(self, longest: int) -> bytes | None:
        """Return the next line with its line end, or None at the end.

        Of a line longer than `longest` bytes, return the first `longest` + 1 bytes.
        """
        while (end := self._buffer.find(b"\n", self._scanned)) < 0:
            self._scanned = len(self._buffer)
            if self._ended or self._scanned > longest:
                break
            self._fill(CHUNK)
        length = len(self._buffer) if end < 0 else end + 1
        return self._consume(min(length, longest + 1)) if length else None

    def line_is_late(self) -> bool:
        """Return whether the stream has paused before the end of the next line."""
        if self._ended or self._buffer.find(b"\n", self._scanned) >= 0:
            return False
        return self._pauses()

    def skip(self, count: int) -> int:
        """Skip `count` bytes; return how many there were."""
        done = len(self._consume(min(count, len(self._buffer))))
        if self._seekable and self.size is not None:
            step = min(count - done, self.size - self._taken)
            self._stream.seek(step, os.SEEK_CUR)
            self._taken += step
            return done + step
        while done < count and (chunk := self.read(min(CHUNK, count - done))):
            done += len(chunk)
        return done

    def _fill_to(self, count: int) -> None:
        while len(self._buffer) < count and not self._ended:
            self._fill(count - len(self._buffer))

    def _fill(self, missing: int) -> None:
        """Append the bytes that are ready; wait for at least one."""
        count = min(max(missing, 1), 16 * CHUNK)
        try:
            read = getattr(self._stream, "read1", self._stream.read)
            chunk = read(count)
        except self._errors as error:
            raise file_error(
                f"{self.name} cannot be unpacked ({first_line(error)})"
                if not isinstance(error, OSError)
                else f"{self.name}: {error.strerror or error}",
                "a sound file",
                "Save the file again from its source, or check its permissions.",
            ) from None
        if chunk is None:
            raise file_error(
                f"{self.name} is a non-blocking stream", "a blocking one", "Use a pipe."
            )
        self._ended = not chunk
        self._buffer += chunk

    def _consume(self, count: int) -> bytes:
        front = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._scanned = max(0, self._scanned - count)
        self._taken += count
        return front

    def _pauses(self) -> bool:
        if self._pipe is None:
            return False
        try:
            return not select.select([self._pipe], [], [], PAUSE_SECONDS)[0]
        except (OSError, ValueError):  # this system cannot wait on pipes
            return False


def _pipe_descriptor(stream: IO[bytes]) -> int | None:
    """Return the file descriptor of a pipe, terminal or socket; None for other streams."""
    try:
        number = stream.fileno()
        return None if stat.S_ISREG(os.fstat(number).st_mode) else number
    except (OSError, AttributeError, ValueError):  # bytes in memory or a member of an archive
        return None
