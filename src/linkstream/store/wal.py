"""Check SQLite's write-ahead log before SQLite opens it.

SQLite uses the frames of a log up to the first one with a wrong checksum and silently ignores the
rest: one changed bit makes all later commits disappear, and the next writer deletes them.
Therefore a store reads its log first. Three kinds of invalid tails are no damage:

- an interrupted write: no commit follows it;
- frames of an earlier generation of the log, which are in the file already: their salts differ;
- frames of a transaction that was rolled back: no commit follows them either.

A killed process leaves the index of the log (`-shm`) behind, which counts the frames that were
durable. The count distinguishes a shortened log and a changed last commit from an interrupted
write. SQLite's documentation describes the formats ("WAL-mode File Format").
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
_BLOCK = 1 << 20  # bytes read at a time
_TRIES = 3

Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Log:
    """The content of a log; the arrays have one entry for each frame."""

    header_intact: bool  # the header matches its checksum
    page_size: int  # in bytes
    salts: tuple[int, int]  # the two numbers of this generation of the log
    pages: Words  # the number of the page that the frame holds
    commits: Flags  # the frame ends a transaction
    near: npt.NDArray[np.int64]  # how many of its two salts are those of this generation
    chained: Flags  # its checksum follows from the one before

    @property
    def n_sound(self) -> int:
        """The number of frames before the first that SQLite would ignore."""
        good = self.chained & (self.near == 2)
        return int(np.argmin(good)) if not good.all() else len(good)

    @property
    def n_committed(self) -> int:
        """The number of frames up to the last commit of this generation."""
        ends = np.flatnonzero(self.commits & (self.near == 2))
        return int(ends[-1]) + 1 if len(ends) else 0

    def offset(self, frame: int) -> int:
        """Return the offset of the page of a frame."""
        return HEAD + frame * (FRAME + self.page_size) + FRAME


@dataclass(frozen=True, slots=True)
class _Index:
    """The index of a log: durable frames, frames copied into the file, salts."""

    frames: int
    moved: int
    salts: tuple[int, int]


def log_of(path: Path) -> Path:
    """Return the path of the log of a store."""
    return path.with_name(path.name + "-wal")


def read(path: Path, *, page_size: int | None = None) -> Log | None:
    """Return the log of a store; None if there is none, or no complete header.

    If the header is damaged, its values are taken from the frames; `page_size` overrides them.
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
    intact = bool(np.array_equal(made, start))
    intact = intact and magic & ~1 == _MAGIC and version == _VERSION and is_page_size(size)
    size = given or (size if intact else 0)
    if not intact:
        size, order = size or page_size_of(path), "<"
        salt1, salt2 = _first_salts(file)
    seeds = [start] if intact else [start, made]
    for seed in seeds:
        log = _frames(file, intact, size, order, (salt1, salt2), seed)
        if len(log.chained) and log.chained[0]:
            break
    return log


def _frames(
    file: BinaryIO, intact: bool, size: int, order: str, salts: tuple[int, int], seed: Words
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
    pages, commits = heads[:, 0], heads[:, 1] > 0
    return Log(intact, size, salts, pages, commits, near, chained)


def _block(block: bytes, step: int, order: str, before: Words) -> tuple[Words, Flags]:
    """Return the headers of frames, and whether each checksum follows from the one before."""
    words = np.frombuffer(block, dtype=order + "u4").reshape(-1, step // 4)
    heads = np.frombuffer(block, dtype=">u4").reshape(-1, step // 4)[:, :6].astype(np.uint32)
    pairs = (step - FRAME) // 8 + 1
    summed = np.hstack([words[:, :2], words[:, 6:]])
    added = _checksums(summed, pairs)
    seeds = np.vstack([before[np.newaxis], heads[:-1, 4:6]])
    expected = seeds @ _power(pairs).T + added
    return heads, (expected == heads[:, 4:6]).all(axis=1)


def _checksums(words: npt.NDArray[np.uint32], pairs: int) -> Words:
    """Return SQLite's checksums of rows of words, modulo 2³²."""
    summed: Words = np.dot(np.ascontiguousarray(words, dtype=np.uint32), _weights(pairs))
    return summed


# s0 += x0 + s1; s1 += x1 + s0 is a linear step: n steps are one product with a matrix.


@functools.lru_cache(maxsize=8)
def _weights(pairs: int) -> Words:
    """Return the weight of each of 2·pairs words in the two sums."""
    rows = np.empty((2 * pairs, 2), dtype=np.uint32)
    a, b, c, d = 1, 0, 0, 1  # the step to the power of the number of later pairs
    for i in range(pairs - 1, -1, -1):
        rows[2 * i] = (a + b) & 0xFFFFFFFF, (c + d) & 0xFFFFFFFF
        rows[2 * i + 1] = b, d
        a, b, c, d = ((a + b), (a + 2 * b), (c + d), (c + 2 * d))
        a, b, c, d = (value & 0xFFFFFFFF for value in (a, b, c, d))
    return rows


@functools.lru_cache(maxsize=8)
def _power(pairs: int) -> Words:
    """Return the step to a power: the weights of the sums before."""
    a, b, c, d = 1, 0, 0, 1
    for _ in range(pairs):
        a, b, c, d = (v & 0xFFFFFFFF for v in (a + b, a + 2 * b, c + d, c + 2 * d))
    return np.array([[a, b], [c, d]], dtype=np.uint32)


def is_page_size(size: int) -> bool:
    """Return whether SQLite allows pages of this size."""
    return 512 <= size <= 65536 and size & (size - 1) == 0


def page_size_of(path: Path) -> int:
    """Return the page size of a database; PAGE if its header is damaged."""
    with path.open("rb") as file:
        head = file.read(18)
    size = int.from_bytes(head[16:18], "big") if len(head) == 18 else 0
    size = 65536 if size == 1 else size
    return size if is_page_size(size) else PAGE


def _first_salts(file: BinaryIO) -> tuple[int, int]:
    file.seek(HEAD + 8)
    raw = file.read(8)
    return struct.unpack(">2I", raw) if len(raw) == 8 else (0, 0)


# Damage


def check(path: Path, *, live: bool = False) -> None:
    """Raise DamagedStoreError if SQLite would ignore acknowledged calls in the log of a store.

    Nothing is written. A log that another process writes to is not checked. `live` means that the
    caller is the writer and writes nothing now.
    """
    for _ in range(_TRIES):  # another process may have begun to write meanwhile
        found = fault(path)
        if found is None or (not live and has_writer(path)):
            return
        if found == fault(path):
            raise damaged(path, found)


def fault(path: Path) -> str | None:
    """Return what is wrong with the log of a store; None if no acknowledged call is lost."""
    log, index = read(path), _index(path)
    if log is None:
        there = log_of(path)
        lost = there.exists() and index is not None and index.frames > index.moved
        return "the log has lost its beginning" if lost else None
    if not log.header_intact:
        return _fault_of_header(log, index)
    good = log.n_sound
    known = index if index is not None and index.salts == log.salts else None
    if known is not None and known.frames > max(good, known.moved):
        what = "is changed" if good < len(log.pages) else "is missing"
        return f"frame {good + 1} of the log {what}; {known.frames} frames were acknowledged"
    return _fault_after(log, good, known)


def _fault_of_header(log: Log, index: _Index | None) -> str | None:
    """Return the fault of a damaged header; none if all frames are in the file already."""
    begun_anew = index is not None and index.frames <= index.moved
    if begun_anew or not log.n_committed:
        return None
    return "the header of the log does not match its checksum"


def _fault_after(log: Log, good: int, known: _Index | None) -> str | None:
    """Return a fault if commits follow a bad frame.

    A single commit may belong to an interrupted write: if the bad frame was never written, or if
    all frames that were acknowledged are intact.
    """
    if good == len(log.pages):
        return None
    commits = int((log.commits & (log.near == 2))[good + 1 :].sum())
    if commits == 0 or (commits == 1 and (known is not None or log.near[good] == 0)):
        return None
    return f"frame {good + 1} of the log is changed, and {commits} commits come after it"


def _index(path: Path) -> _Index | None:
    """Return the index that a killed process left behind; None if there is no intact one."""
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
    return _Index(frames=fields[4], moved=moved, salts=salts)


def is_cut(path: Path) -> bool:
    """Return whether a file has fewer pages than its header says."""
    with path.open("rb") as opened:
        head = opened.read(32)
    return path.stat().st_size < int.from_bytes(head[28:32], "big") * page_size_of(path)
