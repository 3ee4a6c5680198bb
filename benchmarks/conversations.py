"""Measure who spoke when: `python -m benchmarks.conversations FOLDER [--docs]`.

FOLDER contains voice_stream261.npz, voice_libri261.npz and voice_stream10.npz. Conversations are
made as `conversation_bed.py` says. Half of the voices are for tuning: thresholds and percentiles of
each method are chosen on 60 conversations of these. 200 conversations of the other voices are
judged. All methods get the same windows, less the mean of the tuning windows.

The rate is confusion: the share of speech with a wrong speaker, labels mapped to speakers at best
within a conversation. Speech is given. An interval is 95 % over conversations. Each method is also
run with the time model, whose parameters are the defaults: with delays, and for the whole
conversation. The command takes fifteen minutes on one core. It needs spectralcluster and
linkscluster.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import quality_tables
from benchmarks.conversation_bed import (
    SECONDS,
    Span,
    Voices,
    conversations,
    from_rttm,
    load_voices,
)
from benchmarks.conversation_methods import METHODS, Method, Parameters, Room, again, delayed
from benchmarks.machine import installed, processor
from linkstream.turn_model import TimeModel

PAGE = Path(__file__).resolve().parent.parent / "docs" / "diarization.md"
DELAYS = (0.0, 1.0, 2.0, 5.0)
COLUMNS = ("instant", *(f"{delay:g} s" for delay in DELAYS), "current", "current, timed")
FLOORS = ("main speaker of each window", "main speaker of each middle")
TUNING, JUDGED = 60, 200  # conversations
TUNING_SEED, JUDGED_SEED = 11, 1
REFERENCE = "links, healed"

Rates = npt.NDArray[np.float64]
Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Beds:
    """Conversations to tune on and conversations to judge."""

    tuning: list[Room]
    judged: list[Room]

    @classmethod
    def of(
        cls,
        voices: Voices,
        *,
        counts: tuple[int, int] = (TUNING, JUDGED),
        overlaps: bool = False,
        structures: Sequence[Sequence[Span]] | None = None,
        seconds: float = SECONDS,
    ) -> Beds:
        """Return conversations of the two halves of the voices.

        Args:
            voices: all voices.
            counts: number of conversations to tune on, and to judge.
            overlaps: whether turns may overlap in the judged conversations.
            structures: turns to use in place of generated ones in the judged conversations.
            seconds: length of a generated conversation.
        """
        halves = voices.halves()
        tuning = conversations(halves[0], counts[0], seed=TUNING_SEED, seconds=seconds)
        mean = np.concatenate([talk.X for talk in tuning]).mean(axis=0, dtype=np.float64)
        judged = conversations(
            halves[1],
            counts[1],
            seed=JUDGED_SEED,
            overlaps=overlaps,
            structures=structures,
            seconds=seconds,
        )
        rooms = [[Room.of(talk, mean) for talk in some] for some in (tuning, judged)]
        return cls(*rooms)


def rates(method: Method, parameters: Parameters, bed: Sequence[Room]) -> dict[str, Rates]:
    """Return the confusion of each conversation, by column."""
    kept: dict[str, list[float]] = {}
    for room in bed:
        for column, rate in judge(method, parameters, room).items():
            kept.setdefault(column, []).append(rate)
    return {column: np.array(values) for column, values in kept.items()}


def judge(method: Method, parameters: Parameters, room: Room) -> dict[str, float]:
    """Return the confusion of one conversation, by column."""
    found, model = method.run(room.X, parameters), TimeModel()
    rate = room.talk.confusion
    figures = {}
    if found.instant is not None:
        figures["instant"] = rate(found.instant)
        for delay in DELAYS:
            figures[f"{delay:g} s"] = rate(delayed(room, found, delay, model))
    figures["current"] = rate(found.final)
    figures["current, timed"] = rate(again(room, found.final, model))
    return figures


def interval(values: Rates) -> tuple[float, float]:
    """Return the mean in percent, and half the width of its 95 % interval."""
    return 100 * float(values.mean()), 196 * float(values.std(ddof=1)) / len(values) ** 0.5


def table(found: dict[str, dict[str, Rates]], bed: Sequence[Room]) -> Grid:
    """Return a row for each method, with intervals."""
    grid = [["method", *COLUMNS]]
    for name, columns in found.items():
        cells = [_cell(columns[c]) if c in columns else quality_tables.NONE for c in COLUMNS]
        grid.append([name, *cells])
    for name, labels in zip(FLOORS, ("dominant", "truth"), strict=True):
        floor = np.array([room.talk.confusion(getattr(room.talk, labels)) for room in bed])
        grid.append([name, *[quality_tables.NONE] * (len(COLUMNS) - 2), _cell(floor), ""])
    return grid


def _cell(values: Rates) -> str:
    mean, half = interval(values)
    return f"{mean:.1f} ± {half:.1f}"


def differences(found: dict[str, dict[str, Rates]]) -> Grid:
    """Return paired differences of each method to the reference, with intervals."""
    grid = [["method", *COLUMNS[1:]]]
    reference = found[REFERENCE]
    for name, columns in found.items():
        if name != REFERENCE:
            grid.append([name, *(_difference(columns, reference, c) for c in COLUMNS[1:])])
    return grid


def _difference(columns: dict[str, Rates], reference: dict[str, Rates], column: str) -> str:
    """Return the mean difference to the reference with the time model, in points."""
    against = "current, timed" if column == "current" else column
    if column not in columns:
        return quality_tables.NONE
    mean, half = interval(columns[column] - reference[against])
    return f"{mean:+.1f} ± {half:.1f}"


def body(found: dict[str, dict[str, Rates]], chosen: dict[str, Parameters], beds: Beds) -> str:
    """Return the text between the markers of the page."""
    hours = sum(room.talk.seconds for room in beds.judged) / 3600
    notes = [
        f"- **{method.name}**: {method.note} ({_values(chosen[method.name])})."
        for method in METHODS
        if method.name in chosen
    ]
    packages = ("linkstream", "numpy", "scipy", "linkscluster", "spectralcluster")
    versions = ", ".join(f"{name} {installed(name)}" for name in packages)
    return "\n\n".join(
        [
            f"{len(beds.judged)} conversations, {hours:.1f} hours of speech, percent of the time.",
            quality_tables.in_markdown(table(found, beds.judged)),
            f"Paired differences to *{REFERENCE}* in points, positive if it has less confusion; "
            "without the time model (*current*) to its current turns with the time model.",
            quality_tables.in_markdown(differences(found)),
            "\n".join(notes),
            "Made by `python -m benchmarks.conversations FOLDER --docs`; "
            f"{processor()}; {versions}.",
        ]
    )


def _values(parameters: Parameters) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in parameters.items())


def compare(
    beds: Beds, methods: Sequence[Method], cache: Path | None = None
) -> tuple[dict[str, dict[str, Rates]], dict[str, Parameters]]:
    """Tune and judge all methods; print a row for each.

    Args:
        beds: the conversations.
        methods: the methods.
        cache: folder for the results of each method; those that are there are not made again.
    """
    found: dict[str, dict[str, Rates]] = {}
    chosen: dict[str, Parameters] = {}
    for method in methods:
        path = cache / f"{method.name.replace(' ', '-')}.json" if cache else None
        if path and path.exists():
            known = json.loads(path.read_text())
            chosen[method.name] = known["parameters"]
            found[method.name] = {c: np.array(each) for c, each in known["rates"].items()}
        else:
            tuned = chosen.get(getattr(method, "tuned_as", ""))
            chosen[method.name] = tuned or method.tune(beds.tuning)
            found[method.name] = rates(method, chosen[method.name], beds.judged)
        if path:
            keep(path, chosen[method.name], found[method.name])
        cells = [f"{c} {_cell(values)}" for c, values in found[method.name].items()]
        print(f"{method.name} ({_values(chosen[method.name])}): {'; '.join(cells)}", flush=True)
    return found, chosen


def keep(path: Path, parameters: Parameters, found: dict[str, Rates]) -> None:
    """Write the parameters and the rates of a method to a file."""
    lists = {column: values.tolist() for column, values in found.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"parameters": parameters, "rates": lists}))


def main(arguments: list[str] | None = None) -> int:
    """Run all methods, print the rates, and write the page if `--docs` is given."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.conversations",
        description="Who spoke when, with evidence of time. Example: "
        "python -m benchmarks.conversations data --overlaps",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with the sets of voices")
    parser.add_argument("--turns", type=Path, help="folder of RTTM files: judge on their turns")
    parser.add_argument("--overlaps", action="store_true", help="let judged turns overlap")
    parser.add_argument("--count", type=int, default=JUDGED, help="conversations to judge")
    parser.add_argument("--docs", action="store_true", help="write the table into the page")
    parser.add_argument(
        "--cache", type=Path, help="folder for results; methods whose results are there do not run"
    )
    options = parser.parse_args(arguments)
    structures = from_rttm(options.turns) if options.turns else None
    if structures is not None and not structures:
        parser.error(f"no recording with 2 to 8 speakers in {options.turns}")
    beds = Beds.of(
        load_voices(options.folder),
        counts=(TUNING, options.count),
        overlaps=options.overlaps,
        structures=structures,
    )
    found, chosen = compare(beds, METHODS, options.cache)
    text = body(found, chosen, beds)
    print(text)
    if options.docs:
        quality_tables.put("overlaps" if options.overlaps else "conversations", text, page=PAGE)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
