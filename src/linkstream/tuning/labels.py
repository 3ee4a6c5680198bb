"""Read labels and pairs of vectors, from the archive of the vectors or from another file."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import InputFileError

DEFAULT_KEY = "y"

_PAIRS_MAX = 1_000_000
_LABEL_BYTES_MAX = 4096  # of one label
_DAMAGED = (ValueError, OSError, EOFError, SyntaxError, zipfile.BadZipFile, zlib.error)


def read_labels(
    source: str | None, *, vectors: str | os.PathLike[str], n: int, option: str = "--labels"
) -> npt.NDArray[Any]:
    """Read the labels of n vectors, in the same order; raise InputFileError if they cannot be read.

    The source is a `.npy` file, or names an array in the `.npz` of the vectors; None reads `y`.
    Errors name the source by the caller's `option`.
    """
    archive = Path(vectors)
    name = DEFAULT_KEY if source is None else source
    packed = archive.is_file() and zipfile.is_zipfile(archive)
    if packed and f"{name}.npy" in _members(archive):
        return _checked(f"array {name!r} of {archive}", _from_archive(archive, name, n, option), n)
    if source is not None and Path(source).is_file():
        return _checked(source, _from_file(Path(source)), n)
    arrays = ", ".join(member.removesuffix(".npy") for member in _members(archive)[:10])
    raise InputFileError(
        f"no labels {name!r}" + ("" if source is None else ", neither an array nor a file"),
        expected=f"an array of {archive} ({arrays})" if packed else "a .npy file of labels",
        remedy=f"Name the labels with {option}.",
    )


def read_pairs(source: str, *, vectors: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """Read pairs of row numbers of a file of vectors; raise InputFileError if that fails.

    The source names an array in the `.npz` of the vectors, a `.npy` file, or a text file with two
    whole numbers per line, separated by a comma or spaces; a header is skipped.
    """
    archive, path = Path(vectors), Path(source)
    if f"{source}.npy" in _members(archive):
        return _from_archive(archive, source, _PAIRS_MAX, "another name")
    if not path.is_file():
        raise InputFileError(
            f"no pairs {source!r}, neither an array of {archive} nor a file",
            expected="a .csv or .npy of row numbers",
            remedy="Check the name.",
        )
    return np.array(_from_file(path)) if path.suffix == ".npy" else _from_text(path)


def _from_text(path: Path) -> npt.NDArray[Any]:
    """Read two whole numbers per line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), error) from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        words = line.replace(",", " ").split()
        if len(words) == 2 and all(word.isascii() and word.isdecimal() for word in words):
            pairs.append([int(word) for word in words])
        elif words and number > 1:
            raise InputFileError(
                f"{path}, line {number}: {line[:40]!r}",
                expected="two row numbers, such as 3,17",
                remedy="Correct the line.",
            )
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _members(archive: Path) -> list[str]:
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except _DAMAGED:
        return []


def _from_archive(archive: Path, name: str, n: int, option: str) -> npt.NDArray[Any]:
    try:
        with zipfile.ZipFile(archive) as opened:
            size = opened.getinfo(f"{name}.npy").file_size
            if size > (n + 1) * _LABEL_BYTES_MAX:  # before anything is unpacked
                raise InputFileError(
                    f"array {name!r} of {archive} would take {size} bytes",
                    expected=f"one label for each of {n} vectors",
                    remedy=f"Name another array with {option}.",
                )
            with opened.open(f"{name}.npy") as member:
                labels: npt.NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
                return labels
    except InputFileError:
        raise
    except _DAMAGED as error:
        raise _unreadable(f"array {name!r} of {archive}", error) from None


def _from_file(path: Path) -> npt.NDArray[Any]:
    try:
        labels: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except _DAMAGED as error:
        raise _unreadable(str(path), error) from None
    return labels


def _checked(where: str, labels: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    if labels.shape != (n,) or labels.dtype.kind not in "biufUS":
        raise InputFileError(
            f"{where} has shape {labels.shape} and dtype {labels.dtype}",
            expected=f"{n} whole numbers or strings, one per vector: shape ({n},)",
            remedy="Save one label for each vector, in order of arrival.",
        )
    return np.array(labels)


def _unreadable(where: str, error: object) -> InputFileError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:100]
    return InputFileError(
        f"{where} cannot be read ({reason})",
        expected="a 1-D array of whole numbers or strings; pickled objects are never read",
        remedy="Save the labels with numpy.save(path, y).",
    )
