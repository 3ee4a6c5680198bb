"""How the thresholds of `linkstream demo` were found: `python examples/tune_demo.py`.

A seeded permutation splits the ten readers of the demo's stream in two halves. This script uses the
first five only. It is a random search over the three thresholds; the objective is the mean of
instant and current accuracy (section 3.6). The rule for the winner was fixed beforehand: the trial
whose ten nearest trials, itself included, have the highest mean objective. That is the middle of a
plateau; the single best trial may be at its edge.

The output is at the end of this file; the demo shows both halves.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.data import voice_halves
from linkstream.metrics import accuracy

TRIALS = 400
NEIGHBOURS = 10


def draw(rng: np.random.Generator) -> tuple[float, float, float]:
    """Draw thresholds: T_c and T_s among typical cosines of one voice, T_p in its range."""
    t_c, t_s = rng.uniform(0.6, 0.95), rng.uniform(0.6, 0.95)
    return t_c, t_s, rng.uniform(t_c * t_c, 1.0)


def accuracies(
    X: npt.NDArray[np.float32], y: npt.NDArray[np.int64], thresholds: tuple[float, ...]
) -> tuple[float, float]:
    """Return the instant and the current accuracy of one run over the stream."""
    links = Links(*thresholds)
    instant = links.add_many(X)
    return accuracy(y, instant), accuracy(y, links.labels())


def middle_of_the_best_plateau(
    points: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]
) -> int:
    """Return the trial whose nearest trials score best on average."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS]
    return int(np.argmax(scores[nearest].mean(axis=1)))


def main() -> None:
    """Search, choose and print the thresholds."""
    tuning, _ = voice_halves()
    rng = np.random.default_rng(0)
    points = np.array([draw(rng) for _ in range(TRIALS)])
    figures = np.array([accuracies(tuning.X, tuning.y, tuple(point)) for point in points])
    scores = figures.mean(axis=1)
    chosen = middle_of_the_best_plateau(points, scores)
    rounded = tuple(float(value) for value in points[chosen].round(3))
    instant, current = accuracies(tuning.X, tuning.y, rounded)
    print(f"best of {TRIALS} trials: {scores.max():.4f} at {points[scores.argmax()].round(3)}")
    print(f"chosen: {rounded}")
    print(f"five readers tuned on: instant {instant:.4f}, current {current:.4f}")


if __name__ == "__main__":
    main()

# best of 400 trials: 0.9750 at [0.707 0.681 0.825]
# chosen: (0.766, 0.645, 0.738)
# five readers tuned on: instant 0.9705, current 0.9705
#
# The same thresholds on the five readers held out: instant 0.9426, current 0.9426.
#
# The rule was fixed before the held-out readers were scored. One other search was tried after
# that, with T_s above the limit of s~ so that joining is always the stricter test. It chose
# (0.643, 0.697, 0.911): tuned on, instant 0.9692 and current 0.9705; held out, 0.9101 and 0.9139,
# with less conflation (current: 0.015, not 0.054) and more fracture (0.086, not 0.057). The first
# rule was kept because it came first; the held-out figures of both were known by then.
