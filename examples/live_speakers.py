"""Live speakers (the ten bundled voices): `python examples/live_speakers.py [FOLDER]`.

Windows of 1.6 s of LibriSpeech readers arrive one by one. Each gets its speaker at once; after the
last one, the turns are computed again from the final clusters. One reader is enrolled beforehand,
with three windows that also occur in the stream. Writes live_speakers.rttm and live_speakers.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linkstream import Links, plots
from linkstream.adapters.diarization import Diarizer, Turn
from linkstream.data import voice_stream

LENGTH = 1.6  # seconds of a window


def draw(rows: dict[str, list[Turn]], path: Path) -> None:
    """Draw a bar for each list of turns, coloured by speaker; speakers below 10 s are grey."""
    heard: dict[str, float] = {}
    for turn in rows["current"]:
        heard[turn.speaker] = heard.get(turn.speaker, 0.0) + turn.duration
    biggest = sorted((who for who in heard if heard[who] > 10), key=lambda who: -heard[who])
    colours = dict(zip(biggest, plots.PALETTE, strict=False))
    figure = plots.new_figure(9.0, 2.6)
    axes = figure.add_subplot()
    for place, turns in enumerate(rows.values()):
        for turn in turns:
            colour = colours.get(turn.speaker, plots.FRAGMENT)
            axes.broken_barh([(turn.start, turn.duration)], (place - 0.4, 0.8), color=colour)
    for speaker, colour in colours.items():
        axes.plot([], [], "s", color=colour, label=speaker)
    axes.set(yticks=range(len(rows)), yticklabels=rows, ylim=(1.6, -0.6), xlabel="time (s)")
    axes.set_xlim(0, max(turn.end for turn in rows["current"]))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")
    plots.save(figure, path)


def main(folder: Path) -> Diarizer:
    """Follow the stream, print each change of speaker, write the final turns."""
    stream = voice_stream()
    links = Links.preset("ge2e-windows")
    known = np.flatnonzero(stream.y == stream.y[400])[:3]
    links.enrol("Ann", stream.X[known])
    diarizer = Diarizer(links, uri="readers", gap=0.5)
    speaking = None
    for start, x in zip(stream.t.tolist(), stream.X, strict=True):
        (turn,) = diarizer.add(start, start + LENGTH, x)
        if turn.speaker != speaking and start < 60:
            print(f"{start:6.1f} s  {turn.speaker}")
        speaking = turn.speaker
    instant, current = diarizer.instant(), diarizer.current()
    print(f"turns: {len(instant)} as they were told, {len(current)} as they are seen now")
    (folder / "live_speakers.rttm").write_text(diarizer.rttm(), "utf-8")
    draw({"instant": instant, "current": current}, folder / "live_speakers.png")
    return diarizer


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
