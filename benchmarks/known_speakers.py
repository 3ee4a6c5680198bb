"""Measure names across recordings: `python -m benchmarks.known_speakers FOLDER`.

FOLDER contains the sets of `conversations.py`. Two conversations of judged voices follow each other
with one clusterer. After the first, each of its speakers is named: the cluster with most of their
speech. The second has half of these speakers and as many strangers; deviations are drawn anew.
With `--enrol`, nobody is named in a first conversation: five windows of each known speaker, spoken
alone, are enrolled.

Of the speech of known people: with the right name, with another name (false accept), without a
name (false reject). Of the speech of strangers: with a name (false accept), without. At a delay of
two seconds, and of current turns.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.conversation_bed import (
    Conversation,
    Voices,
    conversations,
    fill,
    generate,
    load_voices,
    one_at_a_time,
)
from benchmarks.conversation_methods import FROM_CONVERSATIONS
from benchmarks.machine import installed, processor
from linkstream import Links, Space
from linkstream.adapters.diarization import Diarizer

COUNT, SEED, DELAY, ENROLLED = 100, 3, 2.0, 5
Labels = npt.NDArray[np.int64]
COLUMNS = ("right name", "other name", "no name", "strangers named")


def speech(people: int, voices: Voices, cast: list[int], rng: np.random.Generator) -> Conversation:
    """Return a conversation of this many people, spoken by these voices."""
    turns = one_at_a_time(generate(rng))
    while len({who for *_, who in turns}) != people:
        turns = one_at_a_time(generate(rng))
    return fill(turns, voices, rng, cast=cast)


def enrolled(voices: Voices, voice: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Return windows of one voice that speaks alone."""
    alone = fill([(0, 100 * (2 + ENROLLED), 0)], voices, rng, cast=[voice])
    return alone.X[:: len(alone.X) // ENROLLED][:ENROLLED]


def follow(links: Links, talk: Conversation) -> tuple[Diarizer, dict[str, Labels]]:
    """Return a diarizer that heard a conversation, and labels of the windows by moment."""
    diarizer = Diarizer(links, delay=DELAY)
    for (start, end), x in zip(talk.spans.tolist(), talk.X, strict=True):
        diarizer.add(start, end, x)
    diarizer.finish()
    middles = talk.spans.mean(axis=1)
    moments = {}
    for moment in ("final", "current"):
        labels = np.full(len(middles), -1)
        for turn in diarizer.turns(moment):
            labels[(middles >= turn.start) & (middles < turn.end)] = turn.cluster
        moments[moment] = labels
    return diarizer, moments


def name_all(
    links: Links, talk: Conversation, labels: npt.NDArray[np.int64], cast: list[int]
) -> None:
    """Give each cluster with most of a speaker's speech the name of the voice."""
    ids = np.unique(labels[labels >= 0])
    seconds = np.array([talk.heard[labels == cluster].sum(axis=0) for cluster in ids])
    for speaker in range(talk.heard.shape[1]):
        place = int(seconds[:, speaker].argmax())
        if int(seconds[place].argmax()) == speaker:
            links.name(int(ids[place]), f"voice {cast[speaker]}")


def shares(
    links: Links,
    talk: Conversation,
    labels: npt.NDArray[np.int64],
    cast: list[int],
    known: set[int],
) -> list[float]:
    """Return the shares of COLUMNS."""
    names = {each.id: each.name for each in links.clusters()}
    told = [names.get(int(label)) for label in labels]
    kinds = np.zeros((2, 3))  # known and strangers; right, another and no name
    for speaker, voice in enumerate(cast[: talk.heard.shape[1]]):
        for name, seconds in zip(told, talk.heard[:, speaker].tolist(), strict=True):
            kind = 2 if name is None else 0 if name == f"voice {voice}" else 1
            kinds[0 if voice in known else 1, kind] += seconds
    people, strangers = (row / max(row.sum(), 1e-9) for row in kinds)
    return [*people.tolist(), float(strangers[:2].sum())]


def trial(voices: Voices, space: Space, number: int, *, enrol: bool) -> dict[str, list[float]]:
    """Return the shares of one pair of conversations, by moment."""
    rng = np.random.default_rng([SEED, number])
    people = int(rng.choice([2, 4, 6], p=[0.4, 0.4, 0.2]))
    drawn = rng.permutation(len(voices.means)).tolist()
    first, strangers = drawn[:people], drawn[people : people + people // 2]
    links = Links.from_thresholds(FROM_CONVERSATIONS, mode="best", space=space, threads=1)
    returning = first[: people // 2]
    if enrol:
        for voice in returning:
            links.enrol(f"voice {voice}", enrolled(voices, voice, rng))
    else:
        talk = speech(people, voices, first, rng)
        name_all(links, talk, follow(links, talk)[1]["current"], first)
    cast = [*returning, *strangers]
    rng.shuffle(cast)
    talk = speech(people, voices, cast, rng)
    moments = follow(links, talk)[1]
    return {m: shares(links, talk, labels, cast, {*returning}) for m, labels in moments.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run all trials, and print the shares with 95 % intervals."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.known_speakers",
        description="Names across recordings. Example: python -m benchmarks.known_speakers data",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with the sets of voices")
    parser.add_argument("--enrol", action="store_true", help="enrol, in place of a first meeting")
    parser.add_argument("--count", type=int, default=COUNT, help="pairs of conversations")
    options = parser.parse_args(arguments)
    tuning, judged = load_voices(options.folder).halves()
    windows = np.concatenate([talk.X for talk in conversations(tuning, 20, seed=11)])
    space = Space(mean=windows.mean(axis=0, dtype=np.float64))
    kept: dict[str, list[list[float]]] = {}
    for number in range(options.count):
        for moment, row in trial(judged, space, number, enrol=options.enrol).items():
            kept.setdefault(moment, []).append(row)
    for moment, rows in kept.items():
        values = 100 * np.array(rows)
        half = 1.96 * values.std(axis=0, ddof=1) / len(values) ** 0.5
        cells = zip(COLUMNS, values.mean(axis=0), half, strict=True)
        print(
            f"{moment}: " + "; ".join(f"{name} {mean:.1f} ± {by:.1f}" for name, mean, by in cells)
        )
    print(f"{len(rows)} pairs; {processor()}; linkstream {installed('linkstream')}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
