"""What `linkstream cluster` writes: IDs as an array, or a line for each vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from linkstream.cli import call, screen
from linkstream.errors import ArgumentError

STDOUT = "-"
SUFFIXES = (".npy", ".jsonl")

Ids = npt.NDArray[np.int64]


def check(output: str | None) -> None:
    """Refuse a target that cannot be written, before the work and not after it."""
    if output is None or output == STDOUT:
        return
    if Path(output).suffix not in SUFFIXES:
        raise ArgumentError(
            f"output {output!r}",
            expected=f"a name that ends in {' or '.join(SUFFIXES)}, or - for stdout",
            remedy="Try --output ids.jsonl.",
        )
    screen.check_writable(Path(output))


@contextmanager
def lines(output: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A place for JSON lines: stdout, or a file that appears only when it is complete."""
    from linkstream.io import atomic_file

    if output == STDOUT:
        yield screen.write_json
        return
    with atomic_file(output, "w") as stream:
        yield lambda record: screen.write_json(record, stream)
    call.keep(f"{output} is written")


@contextmanager
def array(output: str) -> Iterator[Callable[[Ids], None]]:
    """A .npy of IDs, written block by block; it appears only when it is complete."""
    from linkstream.io import atomic_file

    with atomic_file(output, "wb") as stream:
        _header(stream, 0)
        written = 0

        def append(ids: Ids) -> None:
            nonlocal written
            stream.write(ids.astype("<i8").tobytes())
            written += len(ids)

        yield append
        stream.seek(0)
        _header(stream, written)
    call.keep(f"{output} is written")


def _header(stream: IO[bytes], n: int) -> None:
    # NumPy leaves room for the length to grow, so that this header can be written over.
    npy.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (n,)})
