"""The door: check the vectors that a caller passes in, or raise a typed error before any change.

Accepted: real floating-point and integer arrays of any width, byte order and strides, and lists of
numbers. All are cast to float32, the type that encoders return, so that a vector is the same in any
dtype of at least that width.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import DIMENSION_MAX, quantise
from linkstream.errors import DimensionError, VectorError
from linkstream.paper.floats import quietly

DIMENSION_MIN = 2
NORM_MIN, NORM_MAX = 1e-9, 1e9


def vectors(values: npt.ArrayLike, *, dimension: int | None) -> npt.NDArray[np.float32]:
    """Return rows of float32 of the right shape; `check_norms` checks their values."""
    array = _as_array(values)
    if array.shape == (0,):  # an empty list is an empty batch
        return np.empty((0, dimension or DIMENSION_MIN), dtype=np.float32)
    if array.ndim != 2:
        raise VectorError(
            f"an array of shape {array.shape}",
            expected="rows of vectors, shape (n, dimension)",
            remedy="Pass a single vector x as [x], which is one row.",
        )
    if array.dtype.kind not in "fiu":
        raise VectorError(
            f"an array of dtype {array.dtype}",
            expected="real numbers (floating point or integers)",
            remedy="Convert the vectors with .astype(numpy.float32).",
            row=0 if len(array) else None,
        )
    _check_dimension(array.shape[1], dimension)
    # check_norms refuses infinite values
    return quietly(lambda: np.require(array, dtype=np.float32, requirements=["C", "A"]))


def vector(values: npt.ArrayLike, *, dimension: int | None) -> npt.NDArray[np.float32]:
    """Return one vector, checked like `vectors`, as a block of one row."""
    array = _as_array(values)
    if array.ndim != 1:
        raise VectorError(
            f"an array of shape {array.shape}",
            expected="one vector, shape (dimension,)",
            remedy="Pass one row, such as X[0], or use the method that takes many vectors.",
        )
    return vectors(array[np.newaxis], dimension=dimension)


def fixed(rows: npt.NDArray[np.int32] | npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """Return fixed-point rows; raise VectorError if the norm of a float row is out of bounds."""
    if rows.dtype == np.int32:
        return cast("npt.NDArray[np.int32]", rows)
    floats = cast("npt.NDArray[np.float32]", rows)
    made, norms = quantise(floats)
    check_norms(floats, norms)
    return made


def have_direction(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
    """Return for each row whether it is finite in float32 and has a norm that `vectors` accepts."""
    floats = quietly(lambda: np.asarray(rows, dtype=np.float32))
    return _good_norms(quantise(floats)[1])


def _good_norms(norms: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    good: npt.NDArray[np.bool_] = (norms >= NORM_MIN) & (norms <= NORM_MAX)  # false for NaN
    return good


def check_norms(rows: npt.NDArray[np.floating], norms: npt.NDArray[np.float64]) -> None:
    """Raise VectorError if a row is not finite, or too short or too long to have a direction."""
    good = _good_norms(norms)
    if good.all():
        return
    row = int(np.argmin(good))
    shown = np.array2string(rows[row], threshold=6, precision=3)
    others = len(good) - int(good.sum()) - 1
    if np.isfinite(rows[row]).all():
        what, expected = "is too short or too long", f"a norm from {NORM_MIN:g} to {NORM_MAX:g}"
    else:
        what, expected = "is not finite in float32", "finite numbers"
    raise VectorError(
        f"row {row} {what}: {shown}" + (f" (and {others} more rows)" if others else ""),
        expected=expected,
        remedy="Drop or repair these rows; nothing has been added.",
        row=row,
    )


def _as_array(values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    if hasattr(values, "mask") and np.ma.is_masked(values):
        raise VectorError(
            "a masked array with values masked out",
            expected="every coordinate of every vector",
            remedy="Drop these rows, or fill them in with numpy.ma.filled().",
        )
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise VectorError(
            f"values that do not form an array ({error})",
            expected="rows of the same length",
            remedy="Check that all vectors have the same length.",
        ) from None


def _check_dimension(seen: int, dimension: int | None) -> None:
    if dimension is not None and seen != dimension:
        raise DimensionError(
            f"vectors of dimension {seen}",
            expected=f"dimension {dimension}, as the vectors before",
            remedy="Use a separate Links for the vectors of each encoder.",
            row=0,
        )
    if not DIMENSION_MIN <= seen <= DIMENSION_MAX:
        raise DimensionError(
            f"vectors of dimension {seen}",
            expected=f"a dimension from {DIMENSION_MIN} to {DIMENSION_MAX}",
            remedy="Pass one vector a row, one coordinate a column; transpose if necessary.",
            row=0,
        )
