"""Make conversations with known speakers: turns of a generator or of RTTM files, real voices.

Turns. A conversation has two to eight speakers with uneven shares of the time. Turns have
log-normal lengths, and between them lies a pause or an overlap. The parameters follow two sources.
Lengths and shares: meeting ES2005a of the AMI corpus (CC BY 4.0), whose turns last 3.2 s in the
median, 0.3 s at the tenth percentile and 16 s at the ninetieth, with shares of the four speakers
from 12 % to 46 %. Talk without an agenda is quicker: the median here is 1.8 s, and each
conversation has a pace of its own. Pauses: Heldner and Edlund, "Pauses, gaps and overlaps in
conversations" (Journal of Phonetics, 2010): the most frequent pause between two speakers is about
0.2 s, and about 40 % of changes overlap.

Voices. A speaker is the mean vector of a real reader. To it are added consecutive deviations of
another reader's windows from that reader's mean, so that neighbouring windows vary as real ones do.
A window across a border mixes the speakers by their share of it. The deviations are scaled: pairs
of windows of one conversation then have an equal error rate of 8.3 %; those of voice_stream261
have 8.5 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from linkstream.adapters.rttm import Turn, load_rttm

WINDOW, STEP = 1.6, 0.4  # seconds of a window, and between two windows
FRAME = 0.01  # seconds: the resolution of turns and of errors
SECONDS = 180.0  # length of a conversation
SPEAKERS, SPEAKER_WEIGHTS = (2, 3, 4, 5, 6, 7, 8), (0.35, 0.2, 0.25, 0.08, 0.06, 0.03, 0.03)
TURN_MEDIAN, TURN_SPREAD, TURN_LEAST = 1.8, 1.2, 0.2  # seconds, of the logarithm, seconds
PACE_SPREAD = 0.35  # of the logarithm of the median, between conversations
PAUSE_MEAN, PAUSE_SPREAD = 0.2, 0.5  # seconds; a negative pause is an overlap
SHARE = 3.0  # concentration of the shares: great for even ones
REPLY = 0.5  # probability that the speaker before the last one answers
DEVIATION = 1.2  # factor on deviations: the equal error rate is then that of voice_stream261
VECTORS_LEAST = 10  # vectors that a voice needs for its mean
BORDER = 2  # windows beside a change of readers whose deviations are not used

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Span = tuple[int, int, int]  # first frame, frame after the last, speaker


@dataclass(frozen=True, slots=True)
class Voices:
    """Mean vectors of voices, and consecutive deviations from them."""

    means: Floats
    deviations: tuple[Floats, ...]

    def halves(self, seed: int = 0) -> tuple[Voices, Voices]:
        """Return two sets of voices without a common voice or a common deviation."""
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(self.means))
        readers = rng.permutation(len(self.deviations))
        return self._some(rows[::2], readers[::2]), self._some(rows[1::2], readers[1::2])

    def _some(self, rows: Labels, readers: Labels) -> Voices:
        return Voices(self.means[rows], tuple(self.deviations[reader] for reader in readers))


@dataclass(frozen=True, slots=True)
class Conversation:
    """Windows of a conversation and its truth.

    Attributes:
        X: unit vectors of the windows, in order of time.
        spans: start and end of each window, in seconds.
        heard: seconds of each speaker (column) in the middle of each window (row), as long as the
            step between windows: the time that the label of the window decides.
        speech: seconds in which somebody speaks, in the middle of each window.
        dominant: speaker with most of each window.
    """

    X: npt.NDArray[np.float32]
    spans: Floats
    heard: Floats
    speech: Floats
    dominant: Labels

    @property
    def truth(self) -> Labels:
        """Speaker with most of the middle of each window."""
        return self.heard.argmax(axis=1)

    @property
    def seconds(self) -> float:
        """Seconds of speech."""
        return float(self.speech.sum())

    def confusion(self, labels: npt.ArrayLike) -> float:
        """Return the share of speech with a wrong speaker, labels mapped to speakers at best."""
        _, ids = np.unique(np.asarray(labels), return_inverse=True)
        together = np.zeros((int(ids.max()) + 1, self.heard.shape[1]))
        np.add.at(together, ids, self.heard)
        right = together[linear_sum_assignment(together, maximize=True)].sum()
        return 1.0 - float(right) / self.seconds


def generate(rng: np.random.Generator, *, seconds: float = SECONDS) -> list[Span]:
    """Return the turns of a conversation, with overlaps, in frames.

    Args:
        rng: source of chance.
        seconds: length of the conversation.
    """
    n = int(rng.choice(SPEAKERS, p=SPEAKER_WEIGHTS))
    shares = rng.dirichlet(np.full(n, SHARE))
    median = TURN_MEDIAN * np.exp(PACE_SPREAD * rng.normal())
    turns: list[Span] = []
    now, last, before = 0.0, -1, -1
    while now < seconds:
        who = _next_speaker(rng, shares, last, before)
        length = max(TURN_LEAST, median * np.exp(TURN_SPREAD * rng.normal()))
        end = min(now + length, seconds)
        turns.append((round(now / FRAME), round(end / FRAME), who))
        pause = max(rng.normal(PAUSE_MEAN, PAUSE_SPREAD), -0.5 * length)
        now, last, before = max(end + pause, now + FRAME), who, last
    return [turn for turn in turns if turn[0] < turn[1]]


def _next_speaker(rng: np.random.Generator, shares: Floats, last: int, before: int) -> int:
    """Return who speaks next: the one before the last, or another one by share."""
    if before >= 0 and rng.random() < REPLY:
        return before
    weights = shares.copy()
    if last >= 0:
        weights[last] = 0.0
    return int(rng.choice(len(shares), p=weights / weights.sum()))


def one_at_a_time(turns: Sequence[Span]) -> list[Span]:
    """Return the turns without overlaps: a turn ends where the next begins."""
    ordered = sorted(turns)
    cut = [
        (start, min(end, following[0]), who)
        for (start, end, who), following in zip(ordered, [*ordered[1:], (1 << 60,)], strict=True)
    ]
    return [turn for turn in cut if turn[0] < turn[1]]


def from_rttm(folder: Path, *, seconds: float = 300.0) -> list[list[Span]]:
    """Return the turns at the beginning of every recording of the RTTM files in a folder.

    Recordings with fewer than two or more than eight speakers are left out.

    Args:
        folder: folder with files *.rttm.
        seconds: length of what is read of each recording.
    """
    found = []
    for path in sorted(folder.glob("**/*.rttm")):
        for turns in load_rttm(path).values():
            spans = _frames(turns, seconds)
            if min(SPEAKERS) <= len({who for *_, who in spans}) <= max(SPEAKERS):
                found.append(spans)
    return found


def _frames(turns: Iterable[Turn], seconds: float) -> list[Span]:
    """Return the turns of a recording in frames, speakers numbered in order of time."""
    numbers: dict[str, int] = {}
    spans = []
    for turn in sorted(turns, key=lambda turn: turn.start):
        start, end = round(turn.start / FRAME), round(min(turn.end, seconds) / FRAME)
        if start < end:
            spans.append((start, end, numbers.setdefault(turn.speaker, len(numbers))))
    return spans


def fill(
    turns: Sequence[Span],
    voices: Voices,
    rng: np.random.Generator,
    *,
    cast: Sequence[int] | None = None,
) -> Conversation:
    """Return the windows of a conversation.

    Args:
        turns: the turns, in frames.
        voices: the voices to draw from.
        rng: source of chance.
        cast: the voice of each speaker, in order of their numbers; None draws them at random.
    """
    size, step = round(WINDOW / FRAME), round(STEP / FRAME)
    n_frames = max(end for _, end, _ in turns)
    starts = np.arange(0, max(n_frames - size, 0) + 1, step)
    people = sorted({who for *_, who in turns})
    drawn_cast = rng.permutation(len(voices.means)) if cast is None else cast
    spoken_by = dict(zip(people, drawn_cast, strict=False))
    donors = {who: voices.deviations[rng.integers(len(voices.deviations))] for who in people}
    sums = np.zeros((len(starts), voices.means.shape[1]))
    shares = np.zeros((len(starts), len(people)))
    for begin, end, who in turns:
        shared = np.minimum(starts + size, end) - np.maximum(starts, begin)
        rows = np.flatnonzero(shared > 0)
        deviations = donors[who]
        drawn = deviations[(rng.integers(len(deviations)) + np.arange(len(rows))) % len(deviations)]
        voice = voices.means[spoken_by[who]] + DEVIATION * drawn
        sums[rows] += shared[rows, None] * voice
        shares[rows, people.index(who)] += shared[rows]
    return _conversation(turns, people, starts, sums, shares)


def _conversation(
    turns: Sequence[Span], people: list[int], starts: Labels, sums: Floats, shares: Floats
) -> Conversation:
    """Return the windows in whose middle somebody speaks."""
    size, step = round(WINDOW / FRAME), round(STEP / FRAME)
    active = np.zeros((int(starts[-1]) + size + 1, len(people)))
    for begin, end, who in turns:
        active[begin:end, people.index(who)] = 1.0
    middle = starts + (size - step) // 2
    heard = _between(active, middle, step)
    speech = _between(active.max(axis=1, keepdims=True), middle, step)[:, 0]
    kept = (speech > 0) & (shares.sum(axis=1) >= 0.25 * size)
    X = sums[kept] / np.linalg.norm(sums[kept], axis=1, keepdims=True)
    spans = np.column_stack([starts, starts + size])[kept] * FRAME
    return Conversation(
        X.astype(np.float32), spans, heard[kept], speech[kept], shares[kept].argmax(axis=1)
    )


def _between(active: Floats, starts: Labels, length: int) -> Floats:
    """Return the seconds of activity in spans of frames."""
    total = np.vstack([np.zeros(active.shape[1]), np.cumsum(active, axis=0)])
    last = len(active)
    span = total[np.minimum(starts + length, last)] - total[np.minimum(starts, last)]
    return span * FRAME


def conversations(
    voices: Voices,
    count: int,
    *,
    seed: int,
    overlaps: bool = False,
    structures: Sequence[Sequence[Span]] | None = None,
    seconds: float = SECONDS,
) -> list[Conversation]:
    """Return conversations, each with a seed of its own.

    Args:
        voices: the voices to draw speakers from.
        count: how many conversations.
        seed: the same seed gives the same conversations.
        overlaps: whether turns may overlap; else a turn ends where the next begins.
        structures: turns to use in place of generated ones, in order and repeatedly.
        seconds: length of a generated conversation.
    """
    made = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        turns = (
            structures[number % len(structures)] if structures else generate(rng, seconds=seconds)
        )
        made.append(fill(turns if overlaps else one_at_a_time(turns), voices, rng))
    return made


def load_voices(folder: Path) -> Voices:
    """Return the real voices of the sets voice_stream261, voice_libri261 and voice_stream10.

    Args:
        folder: folder with the three files.
    """
    total: dict[int, Floats] = {}
    count: dict[int, int] = {}
    for name in ("voice_stream261", "voice_libri261"):
        X, y = _rows(folder / f"{name}.npz")
        for who in np.unique(y).tolist():
            total[who] = total.get(who, 0.0) + X[y == who].sum(axis=0)
            count[who] = count.get(who, 0) + int((y == who).sum())
    X, y = _rows(folder / "voice_stream10.npz")
    readers = [X[y == who].mean(axis=0) for who in np.unique(y)]
    means = {who: total[who] / count[who] for who in total if count[who] >= VECTORS_LEAST}
    taken = {nearest(reader, means) for reader in readers}  # voices that give deviations
    kept = [mean for who, mean in sorted(means.items()) if who not in taken]
    return Voices(np.array(kept), tuple(deviations(X, y)))


def nearest(reader: Floats, means: dict[int, Floats]) -> int:
    """Return the voice most similar to a reader: the same person in another set."""
    return max(means, key=lambda who: means[who] @ reader / np.linalg.norm(means[who]))


def deviations(X: Floats, y: Labels) -> list[Floats]:
    """Return the deviations of each reader's windows from their mean, away from changes."""
    changes = np.flatnonzero(np.diff(y))
    inner = np.ones(len(y), dtype=bool)
    for offset in range(-BORDER + 1, BORDER + 1):
        inner[np.clip(changes + offset, 0, len(y) - 1)] = False
    rows = [X[inner & (y == who)] for who in np.unique(y)]
    return [some - some.mean(axis=0) for some in rows]


def _rows(path: Path) -> tuple[Floats, Labels]:
    with np.load(path) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def made_up_voices(n: int = 24, dimension: int = 48, *, seed: int = 0) -> Voices:
    """Return voices made of random numbers, for tests without data.

    Args:
        n: how many voices.
        dimension: dimension of the vectors.
        seed: source of chance.
    """
    rng = np.random.default_rng(seed)
    means = 0.8 * rng.normal(size=(n, dimension)) / np.sqrt(dimension)
    readers = []
    for _ in range(4):
        steps = rng.normal(size=(200, dimension)) / np.sqrt(dimension)
        for row in range(1, len(steps)):
            steps[row] = 0.7 * steps[row - 1] + 0.7 * steps[row]
        readers.append(0.4 * (steps - steps.mean(axis=0)))
    return Voices(means, tuple(readers))
