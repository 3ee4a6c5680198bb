"""Words that come from elsewhere, made fit for a terminal.

Names of clusters, payloads and files are anybody's text. On a terminal a control character can
clear the screen, a mark of direction can turn a line round; neither gets there.
"""

from __future__ import annotations

import unicodedata

# Controls, surrogates, marks of format and of lines; spaces other than the plain one are let be.
_HARMFUL = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"  # parts of words in some scripts, and of pictures


def harmless(words: object) -> str:
    """A text as one line that shows what is in it and moves no cursor: escapes are spelt out."""
    return "".join(_shown(letter) for letter in str(words))


def short(words: object, width: int = 40) -> str:
    """The beginning of a text, harmless."""
    text = harmless(words)
    return text if len(text) <= width else text[: width - 1] + "…"


def _shown(letter: str) -> str:
    if letter in _JOINERS or unicodedata.category(letter) not in _HARMFUL:
        return letter
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
