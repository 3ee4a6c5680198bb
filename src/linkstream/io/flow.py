"""Bytes as they arrive, from a file, an archive or a pipe: exact reads, lines, and pauses."""

from __future__ import annotations

import os
import select
import stat
from typing import IO

from linkstream.io.faults import fault, reason

CHUNK = 2**18
PATIENCE = 0.05  # seconds without a byte after which a pipe is said to pause


class Flow:
    """A stream of bytes read front to back, with a small buffer in front.

    Args:
        name: what to call it in errors.
        stream: a binary stream.
        size: how many bytes it holds, if that is known.
        seekable: whether going over bytes may be a seek.
        damage: what the stream raises where its bytes are damaged.
    """

    def __init__(
        self,
        name: str,
        stream: IO[bytes],
        *,
        size: int | None = None,
        seekable: bool = False,
        damage: tuple[type[Exception], ...] = (),
    ) -> None:
        self.name = name
        self.size = size
        self.taken = 0
        self._stream = stream
        self._seekable = seekable
        self._damage: tuple[type[Exception], ...] = (OSError, *damage)
        self._buffer = bytearray()
        self._scanned = 0  # bytes at the front of the buffer that hold no line end
        self._ended = False
        self._pipe = _pipe_of(stream)

    @property
    def progress(self) -> float | None:
        """How much was read, from 0 to 1; None where the size is not known."""
        return self.taken / self.size if self.size else None

    def peek(self, count: int) -> bytes:
        """The next bytes, which stay there; fewer at the end."""
        self._fill_to(count)
        return bytes(self._buffer[:count])

    def read(self, count: int) -> bytes:
        """Exactly so many bytes; fewer only at the end."""
        self._fill_to(count)
        return self._cut(min(count, len(self._buffer)))

    def units(self, unit: int, count: int) -> bytes:
        """Up to `count` units of `unit` bytes each: fewer when the stream pauses or ends.

        Only at the end may the last unit be incomplete.
        """
        while len(self._buffer) < unit * count and not self._ended:
            if len(self._buffer) >= unit and self._pauses():
                break
            self._fill(unit * count - len(self._buffer))
        whole = len(self._buffer) // unit * unit
        there = len(self._buffer) if self._ended else whole
        return self._cut(min(there, unit * count))

    def line(self, longest: int) -> bytes | None:
        """The next line with its end, or None at the end; `longest` + 1 bytes of one too long."""
        while (end := self._buffer.find(b"\n", self._scanned)) < 0:
            self._scanned = len(self._buffer)
            if self._ended or self._scanned > longest:
                break
            self._fill(CHUNK)
        length = len(self._buffer) if end < 0 else end + 1
        return self._cut(min(length, longest + 1)) if length else None

    def line_is_late(self) -> bool:
        """Whether no further line is there and none is coming for the moment."""
        if self._ended or self._buffer.find(b"\n", self._scanned) >= 0:
            return False
        return self._pauses()

    def pass_over(self, count: int) -> int:
        """Go over so many bytes without keeping them; how many there were."""
        done = len(self._cut(min(count, len(self._buffer))))
        if self._seekable and self.size is not None:
            step = min(count - done, self.size - self.taken)
            self._stream.seek(step, os.SEEK_CUR)
            self.taken += step
            return done + step
        while done < count and (chunk := self.read(min(CHUNK, count - done))):
            done += len(chunk)
        return done

    def at_end(self) -> bool:
        """Whether no byte is left."""
        return not self.peek(1)

    def _fill_to(self, count: int) -> None:
        while len(self._buffer) < count and not self._ended:
            self._fill(count - len(self._buffer))

    def _fill(self, missing: int) -> None:
        """Take in what is there, waiting for at least a byte."""
        count = min(max(missing, 1), 16 * CHUNK)
        try:
            read = getattr(self._stream, "read1", self._stream.read)
            chunk = read(count)
        except self._damage as error:
            raise fault(
                f"{self.name} cannot be unpacked ({reason(error)})"
                if not isinstance(error, OSError)
                else f"{self.name}: {error.strerror or error}",
                "a sound file",
                "Save it again from its source, or check its rights.",
            ) from None
        if chunk is None:
            raise fault(f"{self.name} does not wait for bytes", "a blocking stream", "Use a pipe.")
        self._ended = not chunk
        self._buffer += chunk

    def _cut(self, count: int) -> bytes:
        front = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._scanned = max(0, self._scanned - count)
        self.taken += count
        return front

    def _pauses(self) -> bool:
        if self._pipe is None:
            return False
        try:
            return not select.select([self._pipe], [], [], PATIENCE)[0]
        except (OSError, ValueError):  # a system that cannot wait on pipes
            return False


def _pipe_of(stream: IO[bytes]) -> int | None:
    """The file descriptor of a pipe, a terminal or a socket; None for what never pauses."""
    try:
        number = stream.fileno()
        return None if stat.S_ISREG(os.fstat(number).st_mode) else number
    except (OSError, AttributeError, ValueError):  # of bytes in memory, or of an archive
        return None
