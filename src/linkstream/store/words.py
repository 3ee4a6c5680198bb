"""Words of payloads, and queries for them.

Texts become words in the same way on every machine and with every version of Python: letters
become small, accents are dropped, everything that is neither letter nor digit separates words. The
rules follow Unicode 3.2, which Python keeps for good; later characters are letters.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import ucd_3_2_0

from linkstream.errors import ArgumentError

WORD_MAX = 64  # characters of a word; the rest of a longer one is ignored
PREFIX_MIN = 2  # characters before the * of a beginning
TEXT_MAX = 1_000  # characters of a query
TERMS_MAX = 32  # words, phrases and fields of a query
BETWEEN = "\ue000"  # stands between two texts; no text has it as a word

_BETWEEN = f" {BETWEEN} "
_ACCENTS = range(0x300, 0x370)
# Chinese and Japanese are written without blanks: each character is a word.
_ALONE = (range(0x3040, 0x3100), range(0x3400, 0xA000), range(0xF900, 0xFB00))
_SCALARS = (str, int, float)  # and bool, which is an int

Words = list[str]


class _Table(dict[int, str]):
    """Translates characters to those of words; each is computed once."""

    def __missing__(self, code: int) -> str:
        found = self[code] = "".join(map(_of_word, ucd_3_2_0.normalize("NFKD", chr(code))))
        return found


def _of_word(char: str) -> str:
    """Return what a character is in a word: itself, nothing, or a blank."""
    kind, code = ucd_3_2_0.category(char), ord(char)
    if code in _ACCENTS:
        return ""
    if kind in ("Lu", "Lt"):
        lower: str = ucd_3_2_0.normalize("NFKD", char.lower())
        return "".join(c for c in lower if ord(c) not in _ACCENTS)
    if any(code in span for span in _ALONE) and kind[0] == "L":
        return f" {char} "
    return char if kind[0] in "LNM" or kind == "Cn" else " "


_TABLE = _Table()
_ASCII = "".join(_TABLE[code] for code in range(128)).encode() + bytes(128)


def _spaced(text: str) -> str:
    """Return a text with its words between blanks."""
    if text.isascii():
        return text.encode().translate(_ASCII).decode()
    return text.translate(_TABLE)


def words_of(text: str) -> Words:
    """Return the words of a text."""
    return _cut(_spaced(text).split())


def _cut(words: Words) -> Words:
    if max(map(len, words), default=0) <= WORD_MAX:
        return words
    return [word[:WORD_MAX] for word in words]


# Payloads


def words_in(payload: Any) -> Words:
    """Return the words of all texts in a payload, at any depth, in order."""
    return _cut(_BETWEEN.join(map(_spaced, _texts(payload, []))).split())


def _texts(value: Any, found: list[str]) -> list[str]:
    """Return the texts found so far and those in a value."""
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            _texts(each, found)
    return found


def fields_in(payload: Any) -> set[tuple[str, str]]:
    """Return the fields of a payload with their values as texts; a list has several values."""
    found: set[tuple[str, str]] = set()
    for name, value in payload.items() if isinstance(payload, dict) else ():
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, _SCALARS):
                found.add((name, as_text(each)))
    return found


def as_text(value: str | float) -> str:
    """Return a text, a number, true or false as text: 3, 3.0 and "3" are equal."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    whole = isinstance(value, int) or value.is_integer()
    return str(int(value)) if whole else repr(value)


def code_of(field: tuple[str, str]) -> str:
    """Return the word that stands for a field with its value; two fields may share it."""
    return format(zlib.crc32(f"{field[0]}\0{field[1]}".encode("utf-8", "replace")), "x")


# Queries


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow each other; with `begins`, the last is the beginning of a word."""

    words: tuple[str, ...]
    begins: bool = False

    def count(self, words: Words) -> int:
        """Return how often it occurs among words."""
        n, last = len(self.words) - 1, self.words[-1]
        starts = range(len(words) - n)
        return sum(
            (words[i + n].startswith(last) if self.begins else words[i + n] == last)
            and tuple(words[i : i + n]) == self.words[:n]
            for i in starts
        )


@dataclass(frozen=True, slots=True)
class Query:
    """What a payload must have: all terms, and all fields with these values."""

    terms: tuple[Term, ...]
    fields: tuple[tuple[str, str], ...]

    def expression(self) -> str:
        """Return the query for the index. It holds words only, never what a user typed."""
        parts = [
            f'words : "{" ".join(term.words)}"{" *" if term.begins else ""}' for term in self.terms
        ]
        return " AND ".join([*parts, *(f'fields : "{code_of(field)}"' for field in self.fields)])

    def share(self, payload: Any) -> float | None:
        """Return the share of the words of a payload that were sought; None if it does not match.

        The share is 0 if only fields were sought.
        """
        if self.fields and not set(self.fields) <= fields_in(payload):
            return None
        if not self.terms:
            return 0.0
        words = words_in(payload)
        counts = [term.count(words) for term in self.terms]
        if not all(counts):
            return None
        sought = sum(n * len(term.words) for n, term in zip(counts, self.terms, strict=True))
        return min(1.0, sought / (len(words) - words.count(BETWEEN)))


def query_of(text: object, where: object) -> Query:
    """Return the query for words, phrases in quotes and beginnings with *, and for fields.

    Any text is a query: characters that are part of no word separate words. Raise ArgumentError if
    it has no words, or too many.
    """
    found = Query(tuple(_terms(_checked(text))), _fields(where))
    n = len(found.terms) + len(found.fields)
    if not 0 < n <= TERMS_MAX:
        raise ArgumentError(
            f"a search for {n} words and fields",
            expected=f"1 to {TERMS_MAX}",
            remedy='Search for words, as search("red car"), or fields, as where={"file": "a.jpg"}.',
        )
    return found


def _checked(text: object) -> str:
    if text is None:
        return ""
    if isinstance(text, str) and len(text) <= TEXT_MAX:
        return text
    seen = f"a text of {len(text):,} characters" if isinstance(text, str) else f"{text!r:.80}"
    raise ArgumentError(
        f"a search for {seen}",
        expected=f"a text of at most {TEXT_MAX:,} characters",
        remedy="Search for a few words.",
    )


def _terms(text: str) -> Iterator[Term]:
    """Yield the terms of a text: every second part between quotes is a phrase."""
    for place, part in enumerate(text.split('"')):
        for some in [part] if place % 2 else part.split():
            words = tuple(words_of(some))
            begins = not place % 2 and some.endswith("*")
            if begins and words and len(words[-1]) < PREFIX_MIN:
                raise ArgumentError(
                    f"the beginning {some!r:.80}",
                    expected=f"at least {PREFIX_MIN} letters before the *",
                    remedy="Write more of the word.",
                )
            if words:
                yield Term(words, begins)


def _fields(where: object) -> tuple[tuple[str, str], ...]:
    if where is None:
        return ()
    if isinstance(where, Mapping) and all(
        isinstance(name, str)
        and isinstance(value, _SCALARS)
        and len(name) + len(as_text(value)) <= TEXT_MAX
        for name, value in where.items()
    ):
        return tuple((name, as_text(value)) for name, value in where.items())
    raise ArgumentError(
        f"where={where!r:.80}",
        expected=f"names of fields with texts, numbers or booleans, {TEXT_MAX:,} characters each",
        remedy='Pass a dict, as where={"file": "a.jpg"}.',
    )
