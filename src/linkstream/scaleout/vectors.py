"""Vectors of a column of a frame: lists of numbers, or bytes of float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from linkstream.clusterer import Links
from linkstream.engine.door import DIMENSION_MIN
from linkstream.errors import ArgumentError, VectorError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

Floats = npt.NDArray[np.float32]

NUMBERS = ("float", "double")


def check_type(name: str, kind: DataType) -> None:
    """Raise ArgumentError if a column of this type cannot hold vectors."""
    seen = kind.simpleString()
    if seen not in ("binary", *(f"array<{number}>" for number in NUMBERS)):
        raise ArgumentError(
            f"vectors in a column {name!r} of type {seen}",
            expected="array<float>, array<double>, or binary: the bytes of float32",
            remedy="Cast it; pyspark.ml.functions.vector_to_array turns ML vectors into arrays.",
        )


def one(value: Any) -> Floats:
    """Return one vector; raise VectorError for null and for bytes of another length."""
    if value is None or (isinstance(value, (bytes, bytearray)) and len(value) % 4):
        raise VectorError(
            "null" if value is None else f"{len(value)} bytes",
            expected="a vector: numbers, or the bytes of float32",
            remedy="Leave such rows out of the stream, or mark them.",
        )
    if isinstance(value, (bytes, bytearray)):
        return np.frombuffer(value, dtype="<f4")
    with np.errstate(over="ignore"):  # an overflow is not finite, and is refused later
        return np.asarray(value, dtype=np.float32)


def rows(values: npt.NDArray[np.object_]) -> Floats:
    """Return values as one block; raise VectorError if their dimensions differ."""
    if not len(values):
        return np.empty((0, DIMENSION_MIN), dtype=np.float32)
    if all(type(value) is np.ndarray and value.dtype == np.float32 for value in values):
        each = list(values)
    else:
        each = [one(value) for value in values]
    if len({vector.shape for vector in each}) > 1:
        sizes = sorted({len(vector) for vector in each})
        raise VectorError(
            f"vectors of dimensions {', '.join(map(str, sizes[:5]))}",
            expected="one dimension",
            remedy="Vectors of another encoder need a key of their own.",
        )
    return np.stack(each)


def block(column: pa.Array) -> Floats:
    """Return an Arrow column as one block, without a copy if possible."""
    listed = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if listed and not column.null_count:
        sizes = np.diff(column.offsets.to_numpy())
        values = column.flatten()
        if len(column) and not values.null_count and (sizes == sizes[0]).all():
            with np.errstate(over="ignore"):
                numbers: Floats = values.to_numpy().astype(np.float32, copy=False)
            return numbers.reshape(len(column), int(sizes[0]))
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_pylist()
    return rows(objects)


def usable(links: Links, values: npt.NDArray[np.object_]) -> tuple[Floats, list[str | None]]:
    """Return the usable vectors, and for each row its problem or None.

    The first usable vector determines the dimension if the clusterer has none yet.
    """
    good: list[Floats] = []
    problems: list[str | None] = []
    for value in values:
        try:
            vector = one(value)
            if good and links.dimension is None and len(vector) != len(good[0]):
                raise VectorError(
                    f"a vector of dimension {len(vector)}",
                    expected=f"dimension {len(good[0])}",
                    remedy="Vectors of another encoder need a key of their own.",
                )
            links.predict(vector[np.newaxis])  # checks the vector and adds nothing
        except VectorError as error:  # noqa: PERF203 - each row for itself
            problems.append(str(error))
        else:
            good.append(vector)
            problems.append(None)
    return np.stack(good) if good else np.empty((0, 0), dtype=np.float32), problems
