"""Measure the speed of live diarization: `python -m benchmarks.live_turns [--conversations 1000]`.

Many conversations at once: every conversation gets a window every 0.4 s, in turn, on one thread,
with a delay of one second. The figure is the ratio of speech to processor time: if it is above
half the conversations, two cores follow them. One long recording: the processor time of windows
of its first and of its last hour, and of `current()` at its end.

The voices are made of random numbers (`conversation_bed.made_up_voices`, 256 dimensions). Python
needs one process for each core.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time

import numpy as np

from benchmarks.conversation_bed import (
    STEP,
    Conversation,
    conversations,
    fill,
    generate,
    made_up_voices,
    one_at_a_time,
)
from benchmarks.machine import MIB, processor, resident
from linkstream import Links
from linkstream.adapters.diarization import Diarizer

THRESHOLDS = (0.41, 0.94, 0.52)
DIMENSION, DELAY, SEED = 256, 1.0, 0
WARM = 100  # windows of a conversation before time is taken


def diarizer() -> Diarizer:
    """Return a diarizer as a service would make one for each conversation."""
    links = Links(*THRESHOLDS, mode="best", threads=1)
    return Diarizer(links, gap=0.5, delay=DELAY)


def add(target: Diarizer, talk: Conversation, window: int, shift: float = 0.0) -> None:
    """Add a window of a conversation."""
    start, end = talk.spans[window]
    target.add(start + shift, end + shift, talk.X[window])


def many(count: int, windows: int) -> dict[str, float]:
    """Return the ratio of speech to time of many conversations, and memory for each.

    Args:
        count: conversations at once.
        windows: windows of each that are timed.
    """
    voices = made_up_voices(64, DIMENSION, seed=SEED)
    talks = [t for t in conversations(voices, 40, seed=SEED) if len(t.X) >= WARM + windows]
    before = resident()
    followed = [diarizer() for _ in range(count)]
    for window in range(WARM):
        for n, each in enumerate(followed):
            add(each, talks[n % len(talks)], window)
    gc.collect()
    grown = (resident() - before) / count
    begin = time.process_time()
    for window in range(WARM, WARM + windows):
        for n, each in enumerate(followed):
            add(each, talks[n % len(talks)], window)
    seconds = time.process_time() - begin
    return {
        "conversations": count,
        "microseconds a window": 1e6 * seconds / (count * windows),
        "speech for each second of one core": count * windows * STEP / seconds,
        f"MiB a conversation after {WARM * STEP:.0f} s": grown / MIB,
    }


def long(hours: float) -> dict[str, float]:
    """Return the time of windows in the first and the last hour of one recording.

    Args:
        hours: length of the recording.
    """
    voices = made_up_voices(64, DIMENSION, seed=SEED)
    rng = np.random.default_rng(SEED)
    talk = fill(one_at_a_time(generate(rng, seconds=3600.0 * hours)), voices, rng)
    target, n, spent = diarizer(), len(talk.X), []
    for window in range(n):
        begin = time.process_time()
        add(target, talk, window)
        spent.append(time.process_time() - begin)
    hour = round(n / hours)
    begin = time.process_time()
    turns = target.current()
    seconds = time.process_time() - begin
    begin = time.process_time()
    target.current()
    return {
        "hours": hours,
        "windows": n,
        "microseconds a window, first hour": 1e6 * float(np.mean(spent[:hour])),
        "microseconds a window, last hour": 1e6 * float(np.mean(spent[-hour:])),
        "milliseconds of current() at the end": 1e3 * seconds,
        "milliseconds of current() again": 1e3 * (time.process_time() - begin),
        "turns": len(turns),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure both, and print the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live_turns",
        description="Speed of live diarization. Example: python -m benchmarks.live_turns",
    )
    parser.add_argument("--conversations", type=int, default=1000, help="conversations at once")
    parser.add_argument("--windows", type=int, default=25, help="timed windows of each")
    parser.add_argument("--hours", type=float, default=8.0, help="length of the long recording")
    options = parser.parse_args(arguments)
    print(processor())
    for figures in (many(options.conversations, options.windows), long(options.hours)):
        for name, value in figures.items():
            print(f"{name}: {value:,.6g}", flush=True)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
