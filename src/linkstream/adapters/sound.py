"""Windows of speech from a sound file, and encoders that make a vector of each window.

A sound is cut into windows of 1.6 s every 0.4 s; windows 35 dB below the loudest one are skipped as
silence. An encoder is a function that takes the samples of a window, 16,000 a second between −1 and
1, and returns a vector. `resemblyzer()` is one; `load_encoder("module:function")` loads yours.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
import wave
from collections.abc import Callable
from contextlib import contextmanager
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, InputFileError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE = 16_000  # samples a second
LENGTH, STEP = 1.6, 0.4  # seconds of a window, and between the starts of two
SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
RESEMBLYZER = "resemblyzer"
_SILENCE = 10 ** (-35 / 20)  # 35 dB below the loudest window
_SOUND_FILE = "a sound file: WAV, FLAC, Ogg or MP3"

Sound = npt.NDArray[np.float32]
Encoder = Callable[[Sound], npt.ArrayLike]


class Window(NamedTuple):
    """A window of speech.

    Attributes:
        start: start in seconds.
        end: end in seconds.
        sound: its samples.
    """

    start: float
    end: float
    sound: Sound


def read_sound(path: str | os.PathLike[str]) -> Sound:
    """Return the samples of a sound file at 16 kHz, its channels averaged.

    WAV files of 16 bits at 16 kHz need no other package; other files need the extra "sound".

    Args:
        path: a .wav, .flac, .ogg or .mp3.
    """
    try:
        sound, rate = _read_plain(path) or _read_any(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or "unreadable") from None
    if not np.isfinite(sound).all():
        raise _unreadable(path, "samples that are not finite")
    mixed = sound.mean(axis=1, dtype=np.float32)
    return mixed if rate == RATE else _resampled(mixed, rate)


def speech_windows(sound: Sound, *, length: float = LENGTH, step: float = STEP) -> list[Window]:
    """Return the windows of a sound that are not silent, in order of time.

    Args:
        sound: samples, 16,000 a second.
        length: seconds of a window.
        step: seconds from the start of a window to the start of the next.
    """
    n, every = round(length * RATE), round(step * RATE)
    windows = [
        Window(at / RATE, (at + n) / RATE, sound[at : at + n])
        for at in range(0, len(sound) - n + 1, every)
    ]
    levels = [float(np.sqrt(np.mean(np.square(window.sound)))) for window in windows]
    least = _SILENCE * max(levels, default=0.0)
    return [window for window, level in zip(windows, levels, strict=True) if level > least]


def resemblyzer() -> Encoder:
    """Return the GE2E encoder of the package Resemblyzer; presets such as "ge2e-turns" fit it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages that it imports
            from resemblyzer import VoiceEncoder
    except ImportError as missing:
        raise MissingExtraError(
            missing.name or "resemblyzer",
            extra="resemblyzer",
            purpose="The encoder Resemblyzer",
            instead="name an encoder of yours: module:function",
        ) from missing
    encode: Encoder = VoiceEncoder("cpu", verbose=False).embed_utterance
    return encode


def load_encoder(name: str) -> Encoder:
    """Return an encoder by its name.

    Args:
        name: "resemblyzer", or "module:function"; the module may be in the current folder.
    """
    if name == RESEMBLYZER:
        return resemblyzer()
    module, _, function = name.partition(":")
    try:
        with _current_folder_first():
            found: Any = importlib.import_module(module) if module and function else None
    except ImportError as error:
        raise _no_encoder(f"{name!r}: {error}") from error
    for part in function.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise _no_encoder(f"{name!r}")
    encode: Encoder = found
    return encode


@contextmanager
def _current_folder_first() -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        sys.path[:] = before


def _no_encoder(seen: str) -> ArgumentError:
    return ArgumentError(
        f"the encoder {seen}",
        expected=f'"{RESEMBLYZER}", or module:function',
        remedy="The function takes samples at 16 kHz and returns a vector.",
    )


def _read_plain(path: str | os.PathLike[str]) -> tuple[Sound, int] | None:
    """Return samples and rate of a WAV file of 16 bits at 16 kHz; None for any other file."""
    try:
        with wave.open(str(path)) as file:
            if (file.getsampwidth(), file.getframerate()) != (2, RATE):
                return None
            width = 2 * file.getnchannels()
            frames = file.readframes(file.getnframes())
            samples = np.frombuffer(frames[: len(frames) // width * width], dtype="<i2")
            sound = samples.reshape(-1, file.getnchannels()).astype(np.float32)
            return sound / np.float32(32768), RATE
    except (wave.Error, EOFError):
        return None


def _read_any(path: str | os.PathLike[str]) -> tuple[Sound, int]:
    try:
        import soundfile
    except (ImportError, OSError) as missing:  # OSError: without libsndfile
        raise MissingExtraError(
            "soundfile",
            extra="sound",
            purpose=f"{Path(path).name}: a sound file other than WAV of 16 bits at 16 kHz",
            instead="convert it: ffmpeg -i FILE -ac 1 -ar 16000 -sample_fmt s16 TALK.wav",
        ) from missing
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except RuntimeError as error:
        raise _unreadable(path, str(error).partition(": ")[2] or str(error)) from error
    return samples, int(rate)


def _resampled(sound: Sound, rate: int) -> Sound:
    try:
        from scipy.signal import resample_poly
    except ImportError as missing:
        raise MissingExtraError(
            "scipy", extra="sound", purpose=f"Sound at {rate} Hz instead of {RATE}"
        ) from missing
    common = gcd(rate, RATE)
    changed: Sound = resample_poly(sound, RATE // common, rate // common).astype(np.float32)
    return changed


def _unreadable(path: str | os.PathLike[str], why: str) -> InputFileError:
    return InputFileError(
        f"{os.fspath(path)}: {why.rstrip('.')[:100]}",
        expected=_SOUND_FILE,
        remedy="Play it, or convert it: ffmpeg -i FILE TALK.wav",
    )
