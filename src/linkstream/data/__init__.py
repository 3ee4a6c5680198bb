"""Real streams in the package; README.md in this folder names their sources."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class VoiceStream(NamedTuple):
    """A stream of voices in order of arrival.

    Attributes:
        X: unit vectors.
        y: the speaker of each vector.
        t: the start of each window, in seconds.
    """

    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    t: npt.NDArray[np.float64]

    def only(self, speakers: npt.ArrayLike) -> VoiceStream:
        """Return the windows of these speakers, in order of arrival.

        Args:
            speakers: numbers of speakers, as in `y`.
        """
        chosen = np.isin(self.y, speakers)
        return VoiceStream(self.X[chosen], self.y[chosen], self.t[chosen])


def voice_stream() -> VoiceStream:
    """Return 1,581 windows of speech of ten readers in turn, as 256-d GE2E voice embeddings.

    LibriSpeech (Panayotov et al., 2015), CC BY 4.0; windows of 1.6 s every 0.4 s over simulated
    turns, embedded with Resemblyzer 0.1.4 by the project and stored in float16.

    >>> stream = voice_stream()
    >>> stream.X.shape, len(set(stream.y.tolist()))
    ((1581, 256), 10)
    """
    source = resources.files(__package__).joinpath("voice_stream10.npz")
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        X = arrays["X"].astype(np.float32)
        y, t = arrays["y"].astype(np.int64), arrays["t"].astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return VoiceStream(X, y, t)


def voice_halves() -> tuple[VoiceStream, VoiceStream]:
    """Return the stream of five speakers for tuning, and that of the five others, held out.

    A seeded permutation divided the speakers before anything was measured.

    >>> tuning, held_out = voice_halves()
    >>> len(tuning.X), len(held_out.X), sorted(set(tuning.y.tolist()))
    (780, 801, [2, 3, 4, 6, 7])
    """
    stream = voice_stream()
    speakers = np.random.default_rng(0).permutation(np.unique(stream.y))
    half = len(speakers) // 2
    return stream.only(speakers[:half]), stream.only(speakers[half:])
