"""Arrays in a `.npz`, unpacked as they are read.

One array of the archive is opened; nothing is ever written out, whatever its name. An archive
that lies about its sizes, overlaps itself, or would unpack to hundreds of times its size is
refused before any of it is unpacked.
"""

from __future__ import annotations

import os
import zipfile
from contextlib import ExitStack
from typing import IO

from linkstream.errors import InputFileError
from linkstream.io.arrays import Header, RowsSource, check_size, read_header, read_whole
from linkstream.io.faults import BAD_ARCHIVE, SAVE_AGAIN, fault, reason
from linkstream.io.flow import Flow
from linkstream.io.source import ArraySource, Source, Vectors, Wanted

DEFAULT_KEY = "X"

# Random bytes hardly shrink and vectors are close to random. What unpacks to hundreds of times
# its size is no set of vectors; below the floor it can do no harm.
PACKING_MAX = 200
PACKING_FLOOR = 64 * 2**20
FORTRAN_MAX = 256 * 2**20  # an array in Fortran order cannot be read in rows: whole, or not

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SUFFIX = ".npy"


def open_npz(name: str, file: IO[bytes], wanted: Wanted) -> Source:
    """The rows of an array of an archive, unpacked block by block."""
    wanted.refuse(name, "column", "payload")
    with ExitStack() as owned:
        header, flow = _open_member(name, file, wanted.key, owned)
        source: Source
        if not header.fortran_order:
            source = RowsSource(flow, wanted, kind="npz", header=header)
        else:
            _check_fortran(flow.name, header)
            whole = read_whole(flow.name, header, flow)
            source = ArraySource(flow.name, wanted, whole, kind="npz")
        source.owns(owned.pop_all())
        return source


def read_npz(name: str, file: IO[bytes], key: str | None) -> Vectors:
    """The whole of an array of an archive."""
    with ExitStack() as owned:
        header, flow = _open_member(name, file, key, owned)
        return read_whole(flow.name, header, flow)


def _open_member(
    name: str, file: IO[bytes], key: str | None, owned: ExitStack
) -> tuple[Header, Flow]:
    try:
        archive = owned.enter_context(zipfile.ZipFile(file))
        info = _chosen(name, archive, key)
        where = f"{name}, array {info.filename[: -len(_SUFFIX)]!r}"
        _check_member(where, info, os.fstat(file.fileno()).st_size)
        member = owned.enter_context(archive.open(info))
    except BAD_ARCHIVE as error:
        if isinstance(error, InputFileError):
            raise
        raise fault(
            f"{name} cannot be unpacked ({reason(error)})", "a sound .npz archive", SAVE_AGAIN
        ) from None
    flow = Flow(where, member, size=info.file_size, damage=BAD_ARCHIVE)
    header = read_header(where, flow)
    check_size(where, header, info.file_size)
    return header, flow


def _chosen(name: str, archive: zipfile.ZipFile, key: str | None) -> zipfile.ZipInfo:
    names = [each[: -len(_SUFFIX)] for each in archive.namelist() if each.endswith(_SUFFIX)]
    if key is None:
        key = names[0] if len(names) == 1 else DEFAULT_KEY
    if names.count(key) != 1:
        shown = ", ".join(map(repr, names[:10])) or "no arrays"
        raise fault(
            f"{'two arrays' if key in names else 'no array'} {key!r} in {name}",
            f"one of its arrays: {shown}",
            SAVE_AGAIN if key in names else "Give its name as key.",
        )
    return archive.getinfo(f"{key}{_SUFFIX}")


def _check_member(where: str, info: zipfile.ZipInfo, size: int) -> None:
    if info.compress_type not in _PACKINGS:
        raise fault(
            f"{where} is packed in a way of its own (method {info.compress_type})",
            "an archive by numpy.savez or numpy.savez_compressed",
            SAVE_AGAIN,
        )
    if info.header_offset + info.compress_size > size:
        raise fault(
            f"{where} declares {info.compress_size} bytes in an archive of {size}",
            "what is there",
            SAVE_AGAIN,
        )
    if info.file_size > max(PACKING_FLOOR, PACKING_MAX * info.compress_size):
        raise fault(
            f"{where} would unpack {info.compress_size} bytes to {info.file_size}",
            f"at most {PACKING_MAX} times as many, as vectors do",
            "If the file is to be trusted, save the vectors as .npy.",
        )


def _check_fortran(where: str, header: Header) -> None:
    if header.data_bytes > FORTRAN_MAX:
        raise fault(
            f"{where} is in Fortran order and takes {header.data_bytes} bytes",
            f"rows one after the other, or at most {FORTRAN_MAX} bytes",
            "Save numpy.ascontiguousarray(X), or save it as .npy.",
        )
