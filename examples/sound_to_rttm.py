"""From sound to RTTM with an encoder that you install: `python examples/sound_to_rttm.py TALK.wav`.

Install one first: `pip install Resemblyzer` (it brings PyTorch). The sound is a WAV file, 16 bits
at 16 kHz: `ffmpeg -i TALK.mp3 -ac 1 -ar 16000 -sample_fmt s16 TALK.wav`. It is cut into windows of
1.6 s every 0.4 s; quiet windows are skipped as silence. The encoder turns each of the others into a
vector, and the vector gets its speaker. Writes TALK.rttm. For another encoder, pass a function to
`diarize`, and a clusterer with thresholds for it, from a preset or from `linkstream.tuning`.
"""

from __future__ import annotations

import sys
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from linkstream import Links
from linkstream.adapters.diarization import Diarizer

RATE, LENGTH, STEP = 16_000, 1.6, 0.4  # samples a second; seconds of a window, and between two
SILENCE = 10 ** (-35 / 20)  # 35 dB below the loudest window

Sound = npt.NDArray[np.float32]
Encoder = Callable[[Sound], npt.ArrayLike]


def read(path: Path) -> Sound:
    """Return the samples of a WAV file, between −1 and 1, with its channels averaged."""
    with wave.open(str(path)) as file:
        if (file.getsampwidth(), file.getframerate()) != (2, RATE):
            raise SystemExit(f"{path}: not 16 bits at {RATE} Hz; see the head of this example")
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
        return samples.reshape(-1, file.getnchannels()).mean(axis=1, dtype=np.float32) / 32768


def diarize(sound: Sound, encode: Encoder, links: Links, *, uri: str = "stream") -> Diarizer:
    """Return the speaker of each window, in order of time."""
    length, step = int(LENGTH * RATE), int(STEP * RATE)
    windows = [(at, sound[at : at + length]) for at in range(0, len(sound) - length + 1, step)]
    levels = [float(np.sqrt(np.mean(np.square(window)))) for _, window in windows]
    diarizer = Diarizer(links, uri=uri, gap=STEP)
    for (at, window), level in zip(windows, levels, strict=True):
        if level > SILENCE * max(levels):
            diarizer.add(at / RATE, (at + length) / RATE, encode(window))
    return diarizer


def resemblyzer() -> Encoder:
    """Return the GE2E encoder of the package Resemblyzer."""
    from resemblyzer import VoiceEncoder

    encode: Encoder = VoiceEncoder("cpu", verbose=False).embed_utterance
    return encode


def main(path: Path, encode: Encoder | None = None, links: Links | None = None) -> Path:
    """Write the turns beside the sound file; return the path."""
    sound = read(path)
    clusterer = links or Links.preset("ge2e-windows")
    diarizer = diarize(sound, encode or resemblyzer(), clusterer, uri=path.stem)
    for turn in diarizer.current():
        print(f"{turn.start:8.2f} – {turn.end:8.2f} s  {turn.speaker}")
    target = path.with_suffix(".rttm")
    target.write_text(diarizer.rttm(), "utf-8")
    return target


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("python examples/sound_to_rttm.py TALK.wav")
    main(Path(sys.argv[1]))
