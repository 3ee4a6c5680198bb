"""Made-up sounds of voices, and a stand-in for an encoder, for tests."""

from __future__ import annotations

import wave

import numpy as np

TALK = [(0, 6), (6, 12), (12, 18), (21, 27), (27, 33), (33, 39)]  # turns of talk_of_three()


def tones(pitch, seconds, rng, *, rate=16_000):
    """A voice of a kind: ten harmonics of a pitch that wavers, and some breath."""
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * pitch * (time + 0.002 * np.sin(9 * time))
    harmonics = sum(np.sin(k * phase) / k for k in range(1, 11))
    return 0.2 * harmonics + 0.005 * rng.normal(size=len(time))


def spectrum(window):
    """A stand-in for an encoder: levels of the spectrum below 4 kHz, their mean taken away."""
    levels = np.abs(np.fft.rfft(window * np.hanning(len(window))))[: len(window) // 4]
    bands = np.log1p(np.add.reduceat(levels, np.arange(0, len(levels), 32)))
    return bands - bands.mean()


def write(path, sound, *, rate=16_000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


def talk_of_three(rate=16_000):
    """Return three voices, 6 s each, twice over, with a pause in the middle."""
    rng = np.random.default_rng(0)
    parts = [tones(pitch, 6, rng, rate=rate) for pitch in (90, 140, 230)]
    parts += [np.zeros(3 * rate)] + [tones(pitch, 6, rng, rate=rate) for pitch in (140, 90, 230)]
    return np.concatenate(parts)


def check_talk(turns):
    """Check that turns are those of `talk_of_three`, borders within a window."""
    long = [turn for turn in turns if turn.end - turn.start > 2]
    assert len(long) == len(TALK)
    for turn, (start, end) in zip(long, TALK, strict=True):
        assert abs(turn.start - start) < 1.6
        assert abs(turn.end - end) < 1.6
    first, second, third, *again = [turn.speaker for turn in long]
    assert len({first, second, third}) == 3
    assert again == [second, first, third]
