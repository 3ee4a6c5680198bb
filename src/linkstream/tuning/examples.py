"""What tuning learns from: vectors in order of arrival, who each is, and other orders of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError, SpaceError
from linkstream.space import Space

VECTORS_MIN = 10


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Labelled vectors, checked; labels are whole numbers from 0, one an identity."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    n_identities: int

    @classmethod
    def of(cls, X: npt.ArrayLike, y: npt.ArrayLike, space: Space | None = None) -> Examples:
        """The examples of two arrays, or ArgumentError."""
        rows = door.vectors(X, dimension=None)
        door.check_norms(rows, norms(rows.astype(np.float64)))
        _check_space(space, rows.shape[1])
        identities, codes = np.unique(_labels(y, len(rows)), return_inverse=True)
        _check_enough(len(rows), codes)
        return cls(rows, codes.astype(np.int64), len(identities))

    def orders(self, n: int, *, seed: int) -> list[npt.NDArray[np.int64]]:
        """The order given, then seeded permutations: n in all."""
        given = np.arange(len(self.y))
        shuffled = [np.random.default_rng([seed, k]).permutation(given) for k in range(1, n)]
        return [given, *shuffled]


def _labels(y: npt.ArrayLike, n: int) -> npt.NDArray[np.generic]:
    try:
        labels = np.asarray(y)
    except ValueError:  # rows of unequal lengths
        labels = np.empty(0, dtype=object)
    if labels.ndim != 1 or labels.dtype.kind not in "biufUS":
        raise ArgumentError(
            f"labels of shape {labels.shape} and dtype {labels.dtype}",
            expected="a list or 1-D array of whole numbers or strings",
            remedy="Name the identity of each vector, without None.",
        )
    if len(labels) != n:
        raise ArgumentError(
            f"{n} vectors and {len(labels)} labels",
            expected="one label for each vector",
            remedy="Give both in order of arrival, none left out.",
        )
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise ArgumentError(
            f"label {labels[~np.isfinite(labels)][0]}",
            expected="whole numbers or strings",
            remedy="Leave vectors of unknown identity out.",
        )
    return labels


def _check_enough(n: int, codes: npt.NDArray[np.int64]) -> None:
    if n < VECTORS_MIN:
        raise ArgumentError(
            f"{n} vectors",
            expected=f"at least {VECTORS_MIN}, better a thousand or more",
            remedy="Label more of the stream.",
        )
    sizes = np.bincount(codes)
    if len(sizes) == 1:
        raise ArgumentError(
            "labels of one identity only",
            expected="two or more, better thirty",
            remedy="With one identity, any thresholds low enough are right.",
        )
    if sizes.max() == 1:
        raise ArgumentError(
            f"{len(sizes)} identities, each seen once",
            expected="at least one that comes back, better most of them",
            remedy="Label several vectors of each identity.",
        )


def _check_space(space: Space | None, dimension: int) -> None:
    if not (space is None or isinstance(space, Space)):
        raise ArgumentError(
            f"space is of type {type(space).__name__}",
            expected="a Space or None",
            remedy="Build it with linkstream.Space(mean=..., model=...).",
        )
    if space is not None and space.dimension not in (None, dimension):
        raise SpaceError(
            f"a space of dimension {space.dimension} for vectors of dimension {dimension}",
            expected="the same dimension",
            remedy="Take the mean of vectors of the same encoder.",
        )
