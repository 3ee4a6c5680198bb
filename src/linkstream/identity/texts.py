"""Find the number of a text in a list that grows, and may be rolled back."""

from __future__ import annotations

import re
from collections.abc import Collection

_FIGURES = re.compile(r"[0-9.e→ -]+")  # the text on a change of thresholds
_LONE = re.compile("[\ud800-\udfff]")  # half a character, which no file can hold


class TextNumbers:
    """Places of texts in a list; each is checked when it is used, so that it needs no rollback."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._n_read = 0  # texts of the list that were read

    def find(self, texts: list[str], text: str) -> int:
        """Return the place of a text; −1 if it is not there. Reads each text once."""
        for place in range(min(self._n_read, len(texts)), len(texts)):
            if self._known(texts, texts[place]) < 0:
                self._places[texts[place]] = place
        self._n_read = len(texts)
        return self._known(texts, text)

    def _known(self, texts: list[str], text: str) -> int:
        place = self._places.get(text, -1)
        return place if 0 <= place < len(texts) and texts[place] == text else -1


def is_name(name: object) -> bool:
    """Return whether this can be a cluster's name: a text, not blank, of whole characters."""
    return isinstance(name, str) and bool(name.strip()) and not _LONE.search(name)


def without_unused(texts: list[str], used: Collection[str]) -> list[str]:
    """Return texts with those blank that are neither in use nor on thresholds."""
    return [text if text in used or _FIGURES.fullmatch(text) else "" for text in texts]
