"""The cluster margins of decisions, by the number of the vector, for what people say of them.

Four bytes a vector: the margin in units of 10⁻⁸ and whether the vector began a cluster. They are
kept while margins are computed and vectors are tracked.
"""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

from linkstream.confidence.answers import FOUNDED, HELD, MARGINS
from linkstream.engine.decisions import JOINED, NEW, Decision, Decisions

_UNITS = 10**8
_NONE = -(2**31)


class Margins:
    """The margins of the decisions on the first vectors, and what they were about."""

    def __init__(self, saved: npt.NDArray[np.int32] | None, *, tracked: bool) -> None:
        self._codes = array("i", b"" if saved is None else saved.astype(np.intc).tobytes())
        self._tracked = tracked

    def note(self, decisions: Decisions) -> None:
        """Keep the margins of decisions; those of the same vectors before are replaced."""
        margin = decisions.cluster_margin
        if not self._tracked or not (len(self._codes) or np.isfinite(margin).any()):
            return
        missing = decisions.first_sequence - len(self._codes)
        if missing > 0:
            self._codes.extend([_NONE] * missing)
        units = np.rint(np.nan_to_num(margin) * _UNITS).astype(np.int64)
        codes = np.where(np.isnan(margin), _NONE, 2 * units + (decisions.tested == NEW))
        first = decisions.first_sequence
        self._codes[first : first + len(codes)] = array("i", codes.astype(np.intc).tobytes())

    def skip(self, first: int) -> None:
        """Drop the margins from a vector on: others have their numbers now, which have none."""
        del self._codes[first:]

    def note_one(self, decision: Decision) -> None:
        """Keep the margin of one decision."""
        margin, codes = decision.cluster_margin, self._codes
        if not self._tracked or (margin is None and not codes):
            return
        code = _NONE if margin is None else 2 * round(margin * _UNITS) + (decision.tested == "new")
        missing = decision.sequence - len(codes)
        if missing < 0:
            codes[decision.sequence] = code
            return
        codes.extend([_NONE] * missing)
        codes.append(code)

    def of(self, vector: int) -> tuple[int, int] | None:
        """Return what the decision on a vector was about, and its margin in billionths; or None."""
        code = self._codes[vector] if vector < len(self._codes) else _NONE
        if code == _NONE:
            return None
        return FOUNDED if code % 2 else HELD, code // 2 * (MARGINS // _UNITS)

    def columns(
        self, vectors: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
        """Return the kinds of the decisions on vectors, NEW or JOINED, and their margins or NaN."""
        codes = np.full(len(vectors), _NONE, dtype=np.int64)
        kept = np.frombuffer(self._codes.tobytes(), dtype=np.intc)
        there = vectors < len(kept)
        codes[there] = kept[vectors[there]]
        kind = np.where(codes % 2 == 1, NEW, JOINED).astype(np.int8)
        return kind, np.where(codes == _NONE, np.nan, codes // 2 / _UNITS)

    def first(self, n: int) -> npt.NDArray[np.int32] | None:
        """Return what is kept of the first n vectors; None if nothing is."""
        if not self._codes:
            return None
        return np.frombuffer(self._codes[:n].tobytes(), dtype=np.intc).astype(np.int32)
