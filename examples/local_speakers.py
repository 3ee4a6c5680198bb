"""Turns from a front end that hears several speakers at once: `python examples/local_speakers.py`.

pyannote and diart look at chunks, for example of 5 s every 0.5 s, and give for each chunk the
activity of up to three local speakers in each frame, and an embedding for each of them. The new
part of each chunk goes to a `Diarizer`: a segment for each local speaker, all of one chunk in one
group, so that they get different speakers. With a SpeakerDiarization pipeline of pyannote.audio:

    segmentations = pipeline.get_segmentations(file)
    embeddings = pipeline.get_embeddings(file, segmentations)
    window = segmentations.sliding_window
    times = {"step": window.step, "frame": window.duration / segmentations.data.shape[1]}
    for number, chunk in enumerate(zip(segmentations.data, embeddings)):
        add_chunk(diarizer, number, *chunk, **times)

With diart, call `add_chunk` in a sink. Here, a conversation is made of random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from linkstream import Links
from linkstream.adapters.diarization import Diarizer, Turn

ACTIVE = 0.5  # activity above which a local speaker speaks
SHORTEST = 0.2  # seconds of speech that are worth a decision

Floats = npt.NDArray[np.floating]


def add_chunk(
    diarizer: Diarizer, number: int, activity: Floats, rows: Floats, *, step: float, frame: float
) -> list[Turn]:
    """Add the last `step` seconds of a chunk, or all of the first one; return its segments."""
    new = len(activity) if number == 0 else round(step / frame)
    begin = number * step + (len(activity) - new) * frame
    turns = []
    for local, row in enumerate(rows):
        first, last = longest_run(activity[len(activity) - new :, local] > ACTIVE)
        if (last - first) * frame >= SHORTEST and np.isfinite(row).all():
            span = begin + first * frame, begin + last * frame
            turns += diarizer.add(*span, row, group=f"{diarizer.uri} {number}")
    return turns


def longest_run(active: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first frame of the longest activity, and the frame after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], active, [False]])))
    runs = [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
    return max(runs, key=lambda run: run[1] - run[0], default=(0, 0))


def made_up(rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Yield chunks of 5 s every 0.5 s: two people, whose turns overlap by half a second."""
    times = np.arange(300) * 0.1
    speaks = np.column_stack([times % 6 < 3.5, (times % 6 >= 3) | (times % 6 < 0.5)])
    for first in range(0, 251, 5):
        order = rng.permutation(2)  # local speakers have no order
        voices = np.eye(16)[order] + 0.05 * rng.normal(size=(2, 16))
        yield speaks[first : first + 50, order].astype(float), voices


def main() -> list[Turn]:
    """Follow the conversation, and print its turns."""
    diarizer = Diarizer(Links(0.7, 0.6, 0.9), uri="chunks", overlaps="keep", gap=0.2)
    for number, (activity, rows) in enumerate(made_up(np.random.default_rng(0))):
        add_chunk(diarizer, number, activity, rows, step=0.5, frame=0.1)
    print(diarizer.rttm(), end="")
    return diarizer.current()


if __name__ == "__main__":
    main()
