"""Payloads: JSON values that people attach to vectors, stored as lines of text.

A line holds one value as UTF-8 JSON without line breaks; an empty line means no payload. The lines
of a call are checked once, in the thread of the caller, and then stored as they are.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from json import encoder
from typing import Any, NoReturn, overload

from linkstream.errors import ArgumentError
from linkstream.store import arrow_columns
from linkstream.store.arrow_columns import PAYLOADS_MAX, too_large

PAYLOAD_MAX = 64 << 10  # bytes of JSON
DEPTH_MAX = 32  # lists in lists
_SCALARS = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})
_NULL = b"null"
_TOGETHER, _TOGETHER_MAX = 256, 256 << 10  # lines that are checked at once, and their bytes

Lines = list[bytes]


class JsonLines(Sequence[Any]):
    r"""Payloads that are JSON text already: one value a line, which is stored as it is.

    A sequence of the values, which are parsed when they are read.

    >>> JsonLines(b'{"file": "a.jpg"}\n\n{"file": "b.jpg"}')[2]
    {'file': 'b.jpg'}
    """

    __slots__ = ("lines",)

    def __init__(self, data: str | bytes | Iterable[str | bytes]) -> None:
        r"""Take texts.

        Args:
            data: text in which a line feed ends each line, or a list of texts without line breaks.
                An empty line means None.
        """
        if isinstance(data, (str, bytes)):
            raw = data.encode() if isinstance(data, str) else data
            self.lines: Lines = raw.removesuffix(b"\n").split(b"\n") if raw else []
        else:
            self.lines = [_checked_line(each) for each in data]

    @classmethod
    def of(cls, lines: Lines) -> JsonLines:
        """Return a sequence of lines without line breaks, which are not checked.

        Args:
            lines: the lines; the sequence keeps this list.
        """
        made = cls.__new__(cls)
        made.lines = lines
        return made

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> JsonLines: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return JsonLines.of(self.lines[index])
        return value_of(self.lines[index])

    def __len__(self) -> int:
        return len(self.lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def _checked_line(text: object) -> bytes:
    line = text.encode() if isinstance(text, str) else text
    if not isinstance(line, bytes) or b"\n" in line:
        raise ArgumentError(
            f"{text!r:.80} as a line of JSON",
            expected="text without line breaks",
            remedy="Write each JSON value on one line.",
        )
    return line


def value_of(line: bytes) -> Any:
    """Return the value of a line; None if the line is empty."""
    return json.loads(line) if line else None


def check(payloads: Any, n: int) -> Lines:
    """Return payloads as lines; raise ArgumentError unless there is a JSON value for each vector.

    `payloads` is a list of values, `JsonLines`, or a table of Arrow whose columns are the fields.
    """
    if arrow_columns.is_table(payloads):
        payloads = JsonLines.of(arrow_columns.lines(payloads))
    listed = isinstance(payloads, Iterable) and not isinstance(payloads, (str, bytes, dict))
    given = payloads if isinstance(payloads, JsonLines) else list(payloads) if listed else []
    if not listed or len(given) != n:
        seen = f"{len(given)} payloads" if listed else f"payloads={payloads!r:.80}"
        raise ArgumentError(
            f"{seen} for {n} vectors",
            expected="a list with one for each vector",
            remedy="Use None for a vector without a payload.",
        )
    lines = _parsed(given.lines) if isinstance(given, JsonLines) else _encoded(given)
    if sum(map(len, lines)) > PAYLOADS_MAX:
        raise too_large()
    return lines


# Values


def _encoded(values: list[Any]) -> Lines:
    if _are_flat(values):
        try:
            made = _flat(values)
        except ValueError:  # the loop below names the row
            made = None
        if made is not None:
            return made
    lines: Lines = []
    encode, size = _encoder(), 0
    for row, value in enumerate(values):
        if value is None:
            lines.append(b"")
            continue
        try:
            line = encode(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise _not_json(row, error) from None
        if _is_suspect(line):
            _check_line(line, row, lambda value=value: value)  # type: ignore[misc]
        if not _is_plain(value):
            _check_same(line, value, row)
        size += len(line)
        if size > PAYLOADS_MAX:  # the caller raises the error
            return [*lines, line]
        lines.append(line)
    return lines


def _are_flat(values: list[Any]) -> bool:
    """Return whether all values are dicts from texts to texts, numbers, booleans and None."""
    return (
        {*map(type, values)} == {dict}
        and {*map(type, chain.from_iterable(values))} <= _TEXT
        and {*map(type, chain.from_iterable(map(dict.values, values)))} <= _SCALARS
    )


def _flat(values: list[Any]) -> Lines | None:
    """Return flat dicts as lines, which need no further check; None if some are too long."""
    encode, lines, size = _encoder(), list[bytes](), 0
    for start in range(0, len(values), _TOGETHER):
        part = [encode(value).encode() for value in values[start : start + _TOGETHER]]
        size += sum(map(len, part))
        if max(map(len, part)) > PAYLOAD_MAX or size > PAYLOADS_MAX:
            return None
        lines += part
    return lines


def _encoder() -> Callable[[Any], str]:
    """Return a function that encodes one value after the other; not to be shared by threads."""
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    options = None, ":", ",", False, False, False  # no indent, ..., refuse NaN
    encode = make({}, _refuse, encoder.encode_basestring, *options)
    return lambda value: "".join(encode(value, 0))


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"a value of type {type(value).__name__}")


def _is_plain(value: Any) -> bool:
    """Return whether a value consists of the types that JSON has, so that it comes back equal."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        if not {*map(type, value)} <= _TEXT:
            return False
        return {*map(type, value.values())} <= _SCALARS or all(map(_is_plain, value.values()))
    return kind in (list, tuple) and all(map(_is_plain, value))


def _check_same(line: bytes, value: Any, row: int) -> None:
    """Raise ArgumentError unless a value comes back equal from JSON."""
    plain = json.loads(line)
    if plain != value and not _same(plain, value):
        raise ArgumentError(
            f"payload {row} has keys that are not strings",
            expected="dicts with string keys",
            remedy="Convert the keys to strings.",
        )


def _same(plain: Any, value: Any) -> bool:
    """Return whether two values are equal when tuples count as lists."""
    if isinstance(plain, dict):
        return plain.keys() == value.keys() and all(_same(plain[k], value[k]) for k in plain)
    if isinstance(plain, list):
        return all(map(_same, plain, value))
    return bool(plain == value)


# Texts


def _parsed(lines: Lines) -> Lines:
    """Return lines without outer blanks; raise ArgumentError unless each is one JSON value."""
    made: Lines = []
    for start in range(0, len(lines), _TOGETHER):
        part = [line.strip(b" \t\r") for line in lines[start : start + _TOGETHER]]
        if _are_sound(part):
            made += [b"" if line == _NULL else line for line in part]
        else:
            made += _parsed_one_by_one(part, start)
    return made


def _are_sound(lines: Lines) -> bool:
    """Return whether lines are certainly JSON values within the limits, from one look at all.

    The values are read as one list, with a random text after each that no line can know: the texts
    are in their places only if each line is one value.
    """
    size = sum(map(len, lines))
    if size > _TOGETHER_MAX or any(map(_is_suspect, lines)):
        return False
    mark = secrets.token_hex(16)
    joined = f',"{mark}",'.encode().join(line or _NULL for line in lines)
    if b"\\u" in joined:  # escaped surrogates must come in pairs
        return False
    try:
        found = _DECODER.decode(f"[{joined.decode()}]")
    except (ValueError, RecursionError):
        return False
    return len(found) == 2 * len(lines) - 1 and found[1::2] == [mark] * (len(lines) - 1)


def _parsed_one_by_one(lines: Lines, first: int) -> Lines:
    scan: Any = _DECODER.scan_once  # type: ignore[attr-defined]
    made: Lines = []
    for row, line in enumerate(lines, first):
        if line:
            if _is_suspect(line):
                _check_line(line, row, lambda line=line: json.loads(line))  # type: ignore[misc]
            _check_text(line, row, scan)
        made.append(b"" if line == _NULL else line)
    return made


def _check_text(line: bytes, row: int, scan: Callable[[str, int], tuple[Any, int]]) -> None:
    try:
        text = line.decode()
        _, end = scan(text, 0)
        if end != len(text):
            raise ValueError(f"more than one value, at {end}")
        if "\\u" in text:  # escaped surrogates must come in pairs
            json.dumps(json.loads(text), ensure_ascii=False).encode()
    except StopIteration:
        raise _not_json(row, ValueError("no value")) from None
    except (ValueError, RecursionError) as error:
        raise _not_json(row, error) from None


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word}, which JSON does not have")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text:.40}, which is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


# Limits


def _is_suspect(line: bytes) -> bool:
    """Return whether a payload may be too long, or nested too deeply."""
    return len(line) > PAYLOAD_MAX or line.count(b"[") + line.count(b"{") > DEPTH_MAX


def _check_line(line: bytes, row: int, value: Callable[[], Any]) -> None:
    """Raise ArgumentError if a payload is too long or nested too deeply."""
    if len(line) > PAYLOAD_MAX:
        raise ArgumentError(
            f"payload {row} takes {len(line)} bytes",
            expected=f"at most {PAYLOAD_MAX}",
            remedy="Attach a reference to it instead.",
        )
    if line.count(b"[") + line.count(b"{") > DEPTH_MAX:
        _check_depth(value, row)


def _check_depth(value: Callable[[], Any], row: int) -> None:
    try:
        level = [value()]
    except (ValueError, RecursionError) as error:
        raise _not_json(row, error) from None
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list, tuple))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ArgumentError(
        f"payload {row} is nested more than {DEPTH_MAX} deep",
        expected="a smaller payload",
        remedy="Attach a reference to it instead.",
    )


def _not_json(row: int, error: Exception) -> ArgumentError:
    return ArgumentError(
        f"payload {row} is not JSON ({error!s:.200})",
        expected="strings, finite numbers, booleans, None, and lists and dicts of these",
        remedy="Convert the payload, or store a reference to it.",
    )
