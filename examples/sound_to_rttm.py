"""From sound to RTTM with an encoder of yours: `python examples/sound_to_rttm.py TALK.wav`.

Install one first: `pip install "linkstream[resemblyzer]"` (it brings PyTorch). The sound is cut
into windows of 1.6 s every 0.4 s; quiet windows are skipped as silence. The encoder turns each of
the others into a vector, and the vector gets its speaker. Writes TALK.rttm. On the command line,
`linkstream diarize TALK.wav` does the same; this is the place to change a step. For another
encoder, pass a function and a clusterer with thresholds for it, from a preset or from
`linkstream.tuning`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from linkstream import Links
from linkstream.adapters.diarization import Diarizer
from linkstream.adapters.sound import STEP, Encoder, read_sound, resemblyzer, speech_windows


def main(path: Path, encode: Encoder | None = None, links: Links | None = None) -> Path:
    """Write the turns beside the sound file; return the path."""
    encode = encode or resemblyzer()
    clusterer = links or Links.preset("ge2e-turns")
    diarizer = Diarizer(clusterer, uri=path.stem, gap=STEP, delay=1.0)
    for start, end, sound in speech_windows(read_sound(path)):
        diarizer.add(start, end, encode(sound))
    diarizer.finish()
    for turn in diarizer.current():
        print(f"{turn.start:8.2f} – {turn.end:8.2f} s  {turn.speaker}")
    target = path.with_suffix(".rttm")
    target.write_text(diarizer.rttm(), "utf-8")
    return target


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("python examples/sound_to_rttm.py TALK.wav")
    main(Path(sys.argv[1]))
