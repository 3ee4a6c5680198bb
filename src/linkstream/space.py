"""The space vectors live in: its mean vector, its dimension, and the model that made them.

Real embeddings often sit in a cone, so that strangers are not perpendicular (lemma 1 fails).
Taking away the mean vector of the space and normalising again restores it; the mean has to come
from many identities (docs/choices.md, "the space belongs to the set-up").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.errors import SpaceError


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """A mean vector to take away (or None), and the name of the encoder.

    Attributes:
        mean: mean of unit vectors of many identities; its own length is below 1. None: as given.
        model: name of the encoder, kept with the model so that spaces are not mixed unseen.

    >>> Space(mean=[0.5, 0.0, 0.0], model="encoder-7").dimension
    3
    """

    mean: npt.NDArray[np.float64] | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, str):
            raise SpaceError(
                f"a model tag of type {type(self.model).__name__}",
                expected="a string or None",
                remedy="Name the encoder, such as 'ge2e'.",
            )
        if self.mean is not None:
            object.__setattr__(self, "mean", _checked_mean(self.mean))

    @property
    def dimension(self) -> int | None:
        """Dimension of the vectors, where the space fixes it."""
        return None if self.mean is None else len(self.mean)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        same_mean = (
            self.mean is other.mean
            if self.mean is None or other.mean is None
            else np.array_equal(self.mean, other.mean)
        )
        return same_mean and self.model == other.model

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def centre(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Rows brought to unit length, less the mean."""
        wide = rows.astype(np.float64)
        lengths = norms(wide)
        door.check_norms(rows, lengths)
        unit: npt.NDArray[np.float64] = wide / lengths[:, np.newaxis]
        return unit if self.mean is None else unit - self.mean


def _checked_mean(mean: npt.ArrayLike) -> npt.NDArray[np.float64]:
    rows = door.vector(mean, dimension=None).astype(np.float64)
    length = float(norms(rows)[0])
    if not length < 1.0:
        raise SpaceError(
            f"a mean vector of length {length:.6g}",
            expected="less than 1, as a mean of unit vectors of several identities has",
            remedy="Average vectors that were normalised first.",
        )
    fixed: npt.NDArray[np.float64] = rows[0]
    fixed.flags.writeable = False
    return fixed
