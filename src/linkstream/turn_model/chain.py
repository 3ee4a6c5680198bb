"""The chain of speakers: scores of windows, costs of changes, and the best path.

The score of window z (a unit vector, centred) for speaker k with the sum S_k of n_k seconds is

    sharpness · w · (z·a_k − |a_k|²/2),    a_k = S_k / (n_k + prior),

where w is the seconds of speech that the window counts for: the logarithm of a Gaussian density,
less what all speakers share. The prior pulls a speaker who was hardly heard towards the mean of
all voices, so that such a state is the state of a new speaker. To stay with a speaker over `gap`
seconds costs gap / hold; a change costs −log((1 − exp(−gap / hold)) / (K − 1)) for K speakers.

All numbers are whole: vectors and centres are rounded to 2^-13, scores to a grid of 1 /
`TimeModel.grid`. They are stored as float64, whose sums and products of whole numbers below 2^53
are exact in any order. So the best path is the same on every machine. Of equal paths the one with
the lower state wins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SCALE = 8192.0  # of one coordinate: 2^13
_SHIFT = 32768.0  # scores are rounded to this many units of their products: 2^15
_NEVER = -1e15  # score of a state that cannot be; exact, and far below any other
# Parameters and their lowest values.
_LOWEST = {"sharpness": 1.0, "hold": 0.01, "prior": 0.01, "least": 0.0, "clear": 0.0}


@dataclass(frozen=True, slots=True)
class TimeModel:
    """Parameters of the chain; the defaults suit windows of 1 to 3 s of any encoder of voices.

    Attributes:
        sharpness: weight of one second of speech; 50 to 200 give the same turns.
        hold: seconds in which a speaker goes on with probability 1/e or more; 2 to 8 do as well.
        prior: seconds of average voice that are added to every speaker.
        least: seconds of evidence that a speaker without a name must have.
        clear: so much evidence for each second of speech makes a speaker as well, in labels with a
            delay; 0.22 to 0.3 do as well.

    >>> TimeModel(hold=3.0).hold
    3.0
    """

    sharpness: float = 100.0
    hold: float = 4.0
    prior: float = 1.0
    least: float = 1.0
    clear: float = 0.28

    def __post_init__(self) -> None:
        for name, lowest in _LOWEST.items():
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and lowest <= value <= 10_000):
                raise ArgumentError(
                    f"{name}={value!r}",
                    expected=f"a number from {lowest:g} to 10000",
                    remedy="Leave it out to take the default.",
                )

    @property
    def grid(self) -> float:
        """Units of score in one unit of logarithm."""
        return 2.0 * 1000.0 * SCALE * SCALE / (_SHIFT * self.sharpness)

    def centres(self, sums: Floats, milliseconds: Floats) -> Floats:
        """Return the centres a_k, rounded.

        Args:
            sums: sum of rounded vectors times their milliseconds, for each speaker.
            milliseconds: speech of each speaker.
        """
        heard = milliseconds + round(1000.0 * self.prior)
        centres: Floats = np.rint(sums / heard[:, np.newaxis])
        return centres

    def scores(self, rows: Floats, milliseconds: Floats, centres: Floats) -> Floats:
        """Return the score of each window (row) for each speaker (column).

        Args:
            rows: rounded vectors of the windows.
            milliseconds: speech that each window counts for.
            centres: rounded centres of the speakers.
        """
        halves = 2.0 * (rows @ centres.T) - np.einsum("kd,kd->k", centres, centres)
        scores: Floats = np.rint(milliseconds[:, np.newaxis] * halves / _SHIFT)
        return scores

    def costs(self, gaps: Floats, n_speakers: int) -> tuple[Floats, Floats]:
        """Return the scores of staying and of changing over each gap, at most 0.

        Args:
            gaps: seconds between the middles of neighbouring windows; milliseconds count.
            n_speakers: number of speakers.
        """
        different, places = np.unique(np.rint(1000.0 * gaps), return_inverse=True)
        pairs = [self.cost(gap / 1000.0, n_speakers) for gap in different.tolist()]
        both = np.array(pairs, dtype=np.float64).reshape(-1, 2)[places]
        return both[:, 0], both[:, 1]

    def cost(self, gap: float, n_speakers: int) -> tuple[float, float]:
        """Return the scores of staying and of changing over one gap."""
        away = max(-math.expm1(-gap / self.hold), 1e-9)
        stay = max(-gap / self.hold, -700.0)
        change = math.log(away / max(n_speakers - 1, 1))
        return float(round(stay * self.grid)), float(round(change * self.grid))


def fixed_point(vectors: Floats) -> Floats:
    """Return vectors at unit length, rounded to whole multiples of 2^-13.

    Args:
        vectors: rows; a row of zeros stays zero.
    """
    lengths = norms(vectors)
    lengths[lengths == 0.0] = 1.0
    rounded: Floats = np.rint(vectors * (SCALE / lengths)[:, np.newaxis])
    return rounded


def forward(scores: Floats, stay: Floats, change: Floats, before: Floats | None) -> Floats:
    """Return the score of the best path to each state of each window, less the best of all.

    Args:
        scores: scores of windows (rows) for states (columns).
        stay: score of staying with a speaker, into each window.
        change: score of a change, into each window.
        before: the row before the first window, or None at the beginning.
    """
    best = np.empty_like(scores)
    last = before
    for place, row in enumerate(scores):
        if last is None:
            last = row
        else:
            last = np.maximum(last + stay[place], last.max() + change[place]) + row
        last = best[place] = last - last.max()
    return best


def backward(scores: Floats, stay: Floats, change: Floats) -> Floats:
    """Return the score of the best path from each state of each window to the end.

    Args:
        scores: as for `forward`.
        stay: as for `forward`.
        change: as for `forward`.
    """
    rest = np.zeros_like(scores)
    for place in range(len(scores) - 2, -1, -1):
        after = rest[place + 1] + scores[place + 1]
        row = np.maximum(after + stay[place + 1], after.max() + change[place + 1])
        rest[place] = row - row.max()
    return rest


def never() -> float:
    """Return the score of a state that cannot be."""
    return _NEVER
