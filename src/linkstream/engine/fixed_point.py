"""The integers on which the engine decides, so that every machine makes the same decisions.

C++ twin: fixed_point.hpp. In sections 3.3–3.4 all decisions compare cosines of unit vectors and
centroids. Here a unit vector is q = rint(x / ‖x‖ · 2³⁰), an int32 row; a subcluster is S = Σ q
(int64) and its count. Their dot products are exact integers, so a cosine does not depend on the
order of summation, and adding, removing and merging are exact and reversible (docs/choices.md).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linkstream.paper.floats import quietly

SCALE = 2.0**30
# Of one clusterer: the compiled engine numbers vectors with 32 bits. S·S ≤ k²·2⁶⁰ then fits a
# signed integer of 128 bits, and S one of 64 bits.
VECTORS_MAX = 2**32 - 1
DIMENSION_MAX = 2**16

_LIMB = 22  # 3 limbs of 22 bits hold an int64; 2²² · 2²² · DIMENSION_MAX < 2⁶³
_MASK = (1 << _LIMB) - 1


def row_sums(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sum of each row, in one order on every machine.

    Rows are padded with zeros to a power of two; then the upper half is added to the lower one.
    """
    width = 1 << max(rows.shape[1] - 1, 0).bit_length()
    folded = np.zeros((rows.shape[0], width))
    folded[:, : rows.shape[1]] = rows
    while width > 1:
        width //= 2
        folded = folded[:, :width] + folded[:, width:]
    return folded[:, 0]


def squared_norms(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the squared length of each row, summed in one order on every machine."""
    return row_sums(rows * rows)


def norms(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the length of each row; not finite if the row is not."""
    return quietly(lambda: np.sqrt(squared_norms(rows)))


def quantise(
    rows: npt.NDArray[np.floating],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return fixed-point rows q = rint(x / ‖x‖ · 2³⁰), and the lengths ‖x‖.

    Rows whose length is zero or not finite are undefined: check the lengths.
    """
    wide = rows.astype(np.float64)
    lengths = norms(wide)
    fixed = quietly(lambda: np.rint(wide / lengths[:, np.newaxis] * SCALE))
    return np.nan_to_num(fixed, posinf=0, neginf=0).astype(np.int32), lengths


def dots(rows: npt.NDArray[np.int64], vector: npt.NDArray[np.int64]) -> list[int]:
    """Return the exact dot product of each row with a vector, as Python integers.

    Each number is cut into three limbs, limbs are multiplied in int64, which cannot overflow, and
    the nine partial sums are added.
    """
    parts = np.einsum("nid,jd->nij", _limbs(rows), _limbs(vector[np.newaxis])[0])
    return [
        sum(part << (_LIMB * (i + j)) for i, row in enumerate(block) for j, part in enumerate(row))
        for block in parts.tolist()
    ]


def dot(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> int:
    """Return the exact dot product of two integer vectors."""
    return dots(a[np.newaxis], b)[0]


def similarity(product: int, square_a: int, square_b: int) -> float:
    """Return the cosine from exact a·b, a·a and b·b: each rounded once, then IEEE operations."""
    return float(product) / (math.sqrt(float(square_a)) * math.sqrt(float(square_b)))


def _limbs(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    # The two low limbs are non-negative; the highest has the sign.
    return np.stack([rows & _MASK, (rows >> _LIMB) & _MASK, rows >> (2 * _LIMB)], axis=1)
