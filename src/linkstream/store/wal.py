"""SQLite's write-ahead log, read without SQLite: which frames are sound, and what comes after.

SQLite takes the frames of a log up to the first one that does not fit its checksum, and silently
leaves out the rest: one changed bit makes all later commits vanish, and the next writer deletes
them. A store therefore reads its log before SQLite does. Three kinds of tails are no damage:

- a write that was cut off: no commit follows it;
- frames of an earlier generation of the log, which the file has had for long: their salts differ;
- frames of a transaction that was rolled back: no commit follows them either.

A process that was killed leaves the log's index (`-shm`) behind. It says how many frames had been
made safe, and so tells a log that was cut short, or a last commit that was changed, from a write
that was cut off. The formats are in SQLite's documentation ("WAL-mode File Format").
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from linkstream.store.file import PAGE, damaged
from linkstream.store.locks import has_writer

HEAD, FRAME = 32, 24  # bytes of the log's header, and of a frame's
_MAGIC, _VERSION = 0x377F0682, 3007000  # the last bit of the magic number: big-endian sums
_BLOCK = 1 << 20  # bytes that are read at a time
_TRIES = 3

Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Log:
    """What a log holds, frame by frame.

    Attributes:
        header: the log's first 32 bytes.
        whole: whether the header fits its checksum.
        page_size: bytes of a page.
        salts: the two numbers that frames of this generation bear.
        pages: number of the page that each frame holds.
        commits: of each frame, whether it ends a transaction.
        near: of each frame, in how many of the two salts it is of this generation.
        chained: of each frame, whether its checksum follows from the one before.
    """

    path: Path
    header: bytes
    whole: bool
    page_size: int
    salts: tuple[int, int]
    pages: Words
    commits: Flags
    near: npt.NDArray[np.int64]
    chained: Flags
    sums: Words

    @property
    def n_sound(self) -> int:
        """Frames before the first that SQLite would not take."""
        good = self.chained & (self.near == 2)
        return int(np.argmin(good)) if not good.all() else len(good)

    @property
    def n_committed(self) -> int:
        """Frames up to the last commit of this generation, whatever lies between."""
        ends = np.flatnonzero(self.commits & (self.near == 2))
        return int(ends[-1]) + 1 if len(ends) else 0

    def offset(self, frame: int) -> int:
        """Where the page of a frame begins in the file."""
        return HEAD + frame * (FRAME + self.page_size) + FRAME


@dataclass(frozen=True, slots=True)
class _Index:
    """What the index of a log says: frames made safe, those moved into the file, the salts."""

    frames: int
    moved: int
    salts: tuple[int, int]
    sums: tuple[int, int]


def log_of(path: Path) -> Path:
    """The log beside a store."""
    return path.with_name(path.name + "-wal")


def read(path: Path, *, page_size: int | None = None) -> Log | None:
    """The log of a store; None if there is none, or not even a header in it.

    Where the header is damaged, the frames say what it said; `page_size` is taken if it is given.
    """
    try:
        with log_of(path).open("rb") as file:
            header = file.read(HEAD)
            if len(header) < HEAD:
                return None
            return _read(path, file, header, page_size)
    except FileNotFoundError:
        return None


def _read(path: Path, file: BinaryIO, header: bytes, given: int | None) -> Log:
    magic, version, size, _, salt1, salt2, *sums = struct.unpack(">8I", header)
    order = ">" if magic & 1 else "<"
    start = np.array(sums, dtype=np.uint32)
    made = _checksums(np.frombuffer(header[:24], dtype=order + "u4")[np.newaxis], 3)[0]
    whole = bool(np.array_equal(made, start))
    whole = whole and magic & ~1 == _MAGIC and version == _VERSION and is_page_size(size)
    size = given or (size if whole else 0)
    if not whole:
        size, order = size or page_size_of(path), "<"
        salt1, salt2 = _first_salts(file)
    seeds = [start] if whole else [start, made]
    for seed in seeds:
        log = _frames(path, file, header, whole, size, order, (salt1, salt2), seed)
        if len(log.chained) and log.chained[0]:
            break
    return log


def _frames(
    path: Path,
    file: BinaryIO,
    header: bytes,
    whole: bool,
    size: int,
    order: str,
    salts: tuple[int, int],
    seed: Words,
) -> Log:
    file.seek(HEAD)
    step, parts, before = FRAME + size, [], seed
    while block := file.read(max(1, _BLOCK // step) * step):
        count = len(block) // step
        if not count:
            break
        heads, chained = _block(block[: count * step], step, order, before)
        before = heads[-1, 4:6]
        parts.append((heads, chained))
    heads = np.concatenate([np.empty((0, 6), dtype=np.uint32), *(part[0] for part in parts)])
    none = np.empty(0, dtype=np.bool_)
    near = (heads[:, 2:4] == np.array(salts, dtype=np.uint32)).sum(axis=1)
    chained = np.concatenate([none, *(part[1] for part in parts)])
    return Log(
        path, header, whole, size, salts, heads[:, 0], heads[:, 1] > 0, near, chained, heads[:, 4:6]
    )


def _block(block: bytes, step: int, order: str, before: Words) -> tuple[Words, Flags]:
    """The headers of some frames, and whether the checksum of each follows from the one before."""
    words = np.frombuffer(block, dtype=order + "u4").reshape(-1, step // 4)
    heads = np.frombuffer(block, dtype=">u4").reshape(-1, step // 4)[:, :6].astype(np.uint32)
    pairs = (step - FRAME) // 8 + 1
    summed = np.hstack([words[:, :2], words[:, 6:]])
    added = _checksums(summed, pairs)
    seeds = np.vstack([before[np.newaxis], heads[:-1, 4:6]])
    expected = seeds @ _power(pairs).T + added
    return heads, (expected == heads[:, 4:6]).all(axis=1)


def _checksums(words: npt.NDArray[np.uint32], pairs: int) -> Words:
    """SQLite's checksums of rows of words, from zero; all arithmetic is modulo 2³²."""
    summed: Words = np.dot(np.ascontiguousarray(words, dtype=np.uint32), _weights(pairs))
    return summed


# s0 += x0 + s1; s1 += x1 + s0: a linear step, so that n of them are one product with a matrix.


@functools.lru_cache(maxsize=8)
def _weights(pairs: int) -> Words:
    """What each of 2·pairs words counts for in the two sums."""
    rows = np.empty((2 * pairs, 2), dtype=np.uint32)
    a, b, c, d = 1, 0, 0, 1  # the step, to the power of the words that come after
    for place in range(pairs - 1, -1, -1):
        rows[2 * place] = (a + b) & 0xFFFFFFFF, (c + d) & 0xFFFFFFFF
        rows[2 * place + 1] = b, d
        a, b, c, d = ((a + b), (a + 2 * b), (c + d), (c + 2 * d))
        a, b, c, d = (value & 0xFFFFFFFF for value in (a, b, c, d))
    return rows


@functools.lru_cache(maxsize=8)
def _power(pairs: int) -> Words:
    """The step to a power: what the sums before count for."""
    a, b, c, d = 1, 0, 0, 1
    for _ in range(pairs):
        a, b, c, d = (v & 0xFFFFFFFF for v in (a + b, a + 2 * b, c + d, c + 2 * d))
    return np.array([[a, b], [c, d]], dtype=np.uint32)


def is_page_size(size: int) -> bool:
    """Whether SQLite may have pages of this size."""
    return 512 <= size <= 65536 and size & (size - 1) == 0


def page_size_of(path: Path) -> int:
    """The size of the pages of a database, as its header has it; that of today if damaged."""
    with path.open("rb") as file:
        head = file.read(18)
    size = int.from_bytes(head[16:18], "big") if len(head) == 18 else 0
    size = 65536 if size == 1 else size
    return size if is_page_size(size) else PAGE


def _first_salts(file: BinaryIO) -> tuple[int, int]:
    file.seek(HEAD + 8)
    raw = file.read(8)
    return struct.unpack(">2I", raw) if len(raw) == 8 else (0, 0)


# Is it damaged?


def check(path: Path, *, live: bool = False) -> None:
    """DamagedStoreError if acknowledged calls in the log of a store would be left out.

    Reads only. A log that another process is writing to is left to that process; `live` says that
    the caller is the writer, and writes nothing now.
    """
    for _ in range(_TRIES):  # another process may have begun to write meanwhile
        found = fault(path)
        if found is None or (not live and has_writer(path)):
            return
        if found == fault(path):
            raise damaged(path, found)


def fault(path: Path) -> str | None:
    """What is wrong with the log of a store; None if nothing that was acknowledged is lost."""
    log, index = read(path), _index(path)
    if log is None:
        there = log_of(path)
        lost = there.exists() and index is not None and index.frames > index.moved
        return "the log has lost its beginning" if lost else None
    if not log.whole:
        return _fault_of_header(log, index)
    good = log.n_sound
    known = index if index is not None and index.salts == log.salts else None
    if known is not None and known.frames > max(good, known.moved):
        what = "is changed" if good < len(log.pages) else "is missing"
        return f"frame {good + 1} of the log {what}; {known.frames} frames were acknowledged"
    return _fault_after(log, good, known)


def _fault_of_header(log: Log, index: _Index | None) -> str | None:
    """A header half written, over frames that were all moved into the file, is no damage."""
    begun_anew = index is not None and index.frames <= index.moved
    if begun_anew or not log.n_committed:
        return None
    return "the header of the log does not match its checksum"


def _fault_after(log: Log, good: int, known: _Index | None) -> str | None:
    """Whether commits follow a bad frame. Of one, it may be that its write was cut off.

    That is so where the bad frame was never written, or where all that was acknowledged is sound.
    """
    if good == len(log.pages):
        return None
    commits = int((log.commits & (log.near == 2))[good + 1 :].sum())
    if commits == 0 or (commits == 1 and (known is not None or log.near[good] == 0)):
        return None
    return f"frame {good + 1} of the log is changed, and {commits} commits come after it"


def _index(path: Path) -> _Index | None:
    """What the index that a killed process left behind says; None if there is none to trust."""
    try:
        raw = path.with_name(path.name + "-shm").read_bytes()[:136]
    except OSError:
        return None
    if len(raw) < 136 or raw[:48] != raw[48:96]:
        return None
    fields = struct.unpack("=12I", raw[:48])
    body = np.frombuffer(raw[:40], dtype="=u4")[np.newaxis]
    if fields[0] != _VERSION or tuple(_checksums(body, 5)[0].tolist()) != fields[10:12]:
        return None
    salts = struct.unpack(">2I", raw[32:40])  # kept as the log has them
    (moved,) = struct.unpack("=I", raw[96:100])
    return _Index(frames=fields[4], moved=moved, salts=salts, sums=(fields[6], fields[7]))
