"""Labels of a whole recording: the best path, with speakers re-estimated from it.

Each round takes the sums of the labels so far and computes the best path; it ends when no label
changes, or after ten rounds. Then speakers with too little evidence are removed, one at a time,
the weakest first, and the rounds go on. The evidence of a speaker is how much score the path loses
if each run of its windows goes to the best other speaker instead. Windows across a border between
two speakers often form a cluster of their own: it explains them little better than either speaker.

Paths of long recordings are computed in blocks with windows of context at both ends, all blocks at
once. The context is far longer than the memory of the chain.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.turn_model.chain import Floats, Integers, TimeModel, backward, forward

_ROUNDS = 10
_BLOCK, _CONTEXT = 256, 64  # windows
_NONE = -1  # state of a window of no cluster, before the first path


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a recording, in order of time.

    Attributes:
        rows: rounded vectors (`fixed_point`).
        milliseconds: speech that each window counts for.
        gaps: seconds since the window before, from middle to middle; the first counts nothing.
    """

    rows: Floats
    milliseconds: Floats
    gaps: Floats

    def at(self, places: Integers) -> Windows:
        """Return the windows at some places, with their gaps as they are."""
        return Windows(self.rows[places], self.milliseconds[places], self.gaps[places])


def reestimate(
    windows: Windows,
    labels: npt.ArrayLike,
    model: TimeModel | None = None,
    *,
    known: Collection[int] = (),
) -> Integers:
    """Return a label for each window, from labels that know nothing of time.

    The labels of the answer are among those given: IDs and names stay. A window of no cluster gets
    the label of a speaker by its vector and by time; if there is no cluster at all, it keeps its
    own.

    Args:
        windows: the windows.
        labels: cluster of each window, 0 or more; less for no cluster.
        model: parameters; None takes the defaults.
        known: clusters that are never removed, such as those with names.
    """
    model = model or TimeModel()
    given = np.asarray(labels, dtype=np.int64)
    ids = np.unique(given[given >= 0])
    if not len(ids):
        return given.copy()
    states = np.where(given >= 0, np.searchsorted(ids, given), _NONE)
    alive = np.arange(len(ids))
    fixed = np.isin(ids, list(known))
    while True:
        states, scores = _converge(windows, states, len(ids), alive, model)
        weakest = _weakest(windows, states, scores, alive, fixed, model)
        if weakest is None:
            return np.asarray(ids[states], dtype=np.int64)
        alive = alive[alive != weakest]
        states = alive[_path(windows, scores[:, alive], model)]


def _converge(
    windows: Windows, states: Integers, count: int, alive: Integers, model: TimeModel
) -> tuple[Integers, Floats]:
    """Return the states after re-estimation, and the scores of their centres, by state."""
    for _ in range(_ROUNDS):
        scores = _scores(windows, states, count, model)
        now = alive[_path(windows, scores[:, alive], model)]
        if np.array_equal(now, states):
            break
        states = now
    return states, _scores(windows, states, count, model)


def _scores(windows: Windows, states: Integers, count: int, model: TimeModel) -> Floats:
    member = np.zeros((count, len(states)))
    some = np.flatnonzero(states != _NONE)
    member[states[some], some] = windows.milliseconds[some]
    centres = model.centres(member @ windows.rows, member.sum(axis=1))
    return model.scores(windows.rows, windows.milliseconds, centres)


def _weakest(
    windows: Windows,
    states: Integers,
    scores: Floats,
    alive: Integers,
    fixed: npt.NDArray[np.bool_],
    model: TimeModel,
) -> int | None:
    """Return the state with least evidence, if it is too little; None if all have enough."""
    present = np.unique(states)
    others = alive[~np.isin(alive, present)]
    empty = others[~fixed[others]]
    if len(empty) and len(alive) > 1:
        return int(empty[0])
    if len(present) < 2:
        return None
    evidence = _evidence(windows, states, scores[:, present], present, model)
    evidence[fixed[present]] = np.inf
    least = model.least * model.sharpness * model.grid
    place = int(evidence.argmin())
    return int(present[place]) if evidence[place] < least else None


def _evidence(
    windows: Windows, states: Integers, scores: Floats, present: Integers, model: TimeModel
) -> Floats:
    """Return the score that each state earns over the best others for its runs of windows."""
    places = np.searchsorted(present, states)
    begins = np.flatnonzero(np.diff(places, prepend=-1))
    runs = places[begins]
    totals = np.add.reduceat(scores, begins, axis=0)
    loss = totals[np.arange(len(runs)), runs][:, np.newaxis] - totals
    stay, change = model.costs(windows.gaps[begins], len(present))
    saved = stay - change  # by not changing the speaker before a run
    rows = np.arange(1, len(runs))
    loss[rows, runs[:-1]] -= saved[1:]
    loss[rows - 1, runs[1:]] -= saved[1:]
    loss[np.arange(len(runs)), runs] = np.inf
    evidence = np.zeros(len(present))
    np.add.at(evidence, runs, loss.min(axis=1))
    return evidence


def _path(windows: Windows, scores: Floats, model: TimeModel) -> Integers:
    """Return the column of the best path in each window, in blocks with context."""
    n, k = scores.shape
    stay, change = model.costs(windows.gaps, k)
    if n <= _BLOCK + _CONTEXT:
        total = forward(scores, stay, change, None) + backward(scores, stay, change)
        return np.asarray(total.argmax(axis=1), dtype=np.int64)
    begins = np.arange(0, n, _BLOCK)
    places = begins[:, np.newaxis] + np.arange(-_CONTEXT, _BLOCK + _CONTEXT)
    inside = (places >= 0) & (places < n)
    places = np.clip(places, 0, n - 1)
    blocks = np.where(inside[..., np.newaxis], scores[places], 0.0)
    free = np.where(inside, stay[places], 0.0), np.where(inside, change[places], 0.0)
    best = _blocks_path(blocks, *free)[:, _CONTEXT : _CONTEXT + _BLOCK]
    return best.reshape(-1)[:n]


def _blocks_path(blocks: Floats, stay: Floats, change: Floats) -> Integers:
    """Return the best path of each block: `forward` and `backward` of all blocks at once."""
    ahead = np.empty_like(blocks)
    last = ahead[:, 0] = blocks[:, 0]
    for place in range(1, blocks.shape[1]):
        last = _step(last, stay[:, place], change[:, place]) + blocks[:, place]
        last = ahead[:, place] = last - last.max(axis=1, keepdims=True)
    rest = np.zeros_like(last)
    path = np.empty(blocks.shape[:2], dtype=np.int64)
    for place in range(blocks.shape[1] - 1, -1, -1):
        path[:, place] = (ahead[:, place] + rest).argmax(axis=1)
        after = rest + blocks[:, place]
        rest = _step(after, stay[:, place], change[:, place])
        rest -= rest.max(axis=1, keepdims=True)
    return path


def _step(last: Floats, stay: Floats, change: Floats) -> Floats:
    """Return the scores of the best ways into each state, for each block."""
    moved = last.max(axis=1) + change
    step: Floats = np.maximum(last + stay[:, np.newaxis], moved[:, np.newaxis])
    return step
