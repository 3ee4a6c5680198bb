"""Text from elsewhere, made safe for a terminal.

Names of clusters, payloads and files may hold any text. Control characters could clear the screen,
direction marks could reverse a line; both are spelt out.
"""

from __future__ import annotations

import unicodedata

# Categories: control, format, surrogate, line separator, paragraph separator.
_HARMFUL = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"  # parts of words in some scripts, and of emoji


def harmless(words: object) -> str:
    """Return a text as one line, with control characters spelt out."""
    return "".join(_shown(letter) for letter in str(words))


def short(words: object, width: int = 40) -> str:
    """Return the beginning of a text, made harmless."""
    text = harmless(words)
    return text if len(text) <= width else text[: width - 1] + "…"


def _shown(letter: str) -> str:
    if letter in _JOINERS or unicodedata.category(letter) not in _HARMFUL:
        return letter
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
