"""Words with speakers: `python examples/words_with_speakers.py WORDS.json TURNS.rttm OUT.json`.

WORDS.json is a transcript with times of words, as WhisperX writes it (`whisperx talk.wav
--output_format json`). TURNS.rttm has the turns of the same recording, for example from
`linkstream diarize`. OUT.json is the transcript with a "speaker" for each segment and each word;
the lines that were said are printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from linkstream.adapters.rttm import load_rttm
from linkstream.adapters.words import words_with_speakers


def lines(transcript: dict[str, Any]) -> Iterator[str]:
    """Yield what each speaker said in one go."""
    words = [word for segment in transcript["segments"] for word in segment.get("words", ())]
    for speaker, said in groupby(words, key=lambda word: word.get("speaker", "somebody")):
        yield f"{speaker}: {' '.join(word['word'].strip() for word in said)}"


def main(words: Path, turns: Path, out: Path) -> dict[str, Any]:
    """Read both files, write the transcript with speakers, and print its lines."""
    recordings = load_rttm(turns)
    if len(recordings) != 1:
        raise SystemExit(f"{turns} has {len(recordings)} recordings, expected one")
    (spoken,) = recordings.values()
    told = words_with_speakers(json.loads(words.read_text("utf-8")), spoken)
    out.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", "utf-8")
    for line in lines(told):
        print(line)
    return told


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*map(Path, sys.argv[1:]))
