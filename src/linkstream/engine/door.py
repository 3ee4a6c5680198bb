"""The door: what the caller hands in becomes checked numbers, or a typed error and no change.

Accepted: real floating-point and integer arrays of any width, byte order and strides, and lists
of them. Everything is cast to float32 first (what encoders give), so that the same vector in
another dtype of at least that width is the same vector.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import DIMENSION_MAX, squared_norms
from linkstream.errors import DimensionError, VectorError

DIMENSION_MIN = 2
NORM_MIN, NORM_MAX = 1e-9, 1e9


def vectors(values: npt.ArrayLike, *, dimension: int | None) -> npt.NDArray[np.float64]:
    """Checked rows of float32 precision, held in float64; never the caller's memory."""
    array = _as_array(values)
    if array.shape == (0,):  # an empty list is an empty batch
        return np.empty((0, dimension or DIMENSION_MIN))
    if array.ndim != 2:
        raise VectorError(
            f"an array of shape {array.shape}",
            expected="rows of vectors, shape (n, dimension)",
            remedy="Pass one vector to add() and a two-dimensional array to add_many().",
        )
    if array.dtype.kind not in "fiu":
        raise VectorError(
            f"an array of dtype {array.dtype}",
            expected="real numbers (floating point or integers)",
            remedy="Convert the vectors with .astype(numpy.float32).",
            row=0 if len(array) else None,
        )
    _check_dimension(array.shape[1], dimension)
    with np.errstate(over="ignore", under="ignore"):  # the rows that overflow are named below
        rows = array.astype(np.float32).astype(np.float64)
    _refuse(np.any(~np.isfinite(rows), axis=1), rows, "is not finite in float32", "finite numbers")
    return rows


def vector(values: npt.ArrayLike, *, dimension: int | None) -> npt.NDArray[np.float64]:
    """One checked vector, as a block of one row."""
    array = _as_array(values)
    if array.ndim != 1:
        raise VectorError(
            f"an array of shape {array.shape}",
            expected="one vector, shape (dimension,)",
            remedy="Pass batches of vectors to add_many() or predict().",
        )
    return vectors(array[np.newaxis], dimension=dimension)


def norms(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Length of each row, within bounds that make its direction trustworthy."""
    lengths: npt.NDArray[np.float64] = np.sqrt(squared_norms(rows))
    outside = (lengths < NORM_MIN) | (lengths > NORM_MAX)
    _refuse(outside, lengths, "has a norm out of bounds", f"{NORM_MIN:g} to {NORM_MAX:g}")
    return lengths


def _as_array(values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise VectorError(
            f"values that make no array ({error})",
            expected="rows of equally many numbers",
            remedy="Check that all vectors have the same length.",
        ) from None


def _check_dimension(seen: int, dimension: int | None) -> None:
    if dimension is not None and seen != dimension:
        raise DimensionError(
            f"vectors of dimension {seen}",
            expected=f"dimension {dimension}, as the ones before",
            remedy="Vectors of another encoder need a Links of their own.",
            row=0,
        )
    if not DIMENSION_MIN <= seen <= DIMENSION_MAX:
        raise DimensionError(
            f"vectors of dimension {seen}",
            expected=f"a dimension from {DIMENSION_MIN} to {DIMENSION_MAX}",
            remedy="Rows are vectors and columns are coordinates; transpose if need be.",
            row=0,
        )


def _refuse(
    bad: npt.NDArray[np.bool_], shown: npt.NDArray[np.float64], what: str, expected: str
) -> None:
    if not bad.any():
        return
    row = int(np.argmax(bad))
    more = int(bad.sum()) - 1
    others = f" (and {more} more rows)" if more else ""
    raise VectorError(
        f"row {row} {what}: {np.array2string(np.atleast_1d(shown[row]), threshold=6)}{others}",
        expected=expected,
        remedy="Drop or mend these rows; nothing has been added.",
        row=row,
    )
