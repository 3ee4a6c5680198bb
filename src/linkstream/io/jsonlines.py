"""`.jsonl`: a row a line, an array of numbers or an object that holds one."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from linkstream.io.faults import fault, reason
from linkstream.io.flow import Flow
from linkstream.io.source import ALL, DEFAULT_COLUMNS, Wanted
from linkstream.io.texts import Row, TextSource

DIGITS_MAX = 1000
_NUMBERS = {int, float}


class JsonLinesSource(TextSource):
    """Vectors of JSON lines. Empty lines are no rows."""

    def __init__(self, flow: Flow, wanted: Wanted) -> None:
        self._column = wanted.column
        wanted.refuse(flow.name, "key")
        super().__init__(flow, wanted, kind="jsonl")

    def _next_row(self) -> Row | None:
        while (line := self._next_line()) is not None:
            if line.strip():
                return self._row(self._value(line))
        return None

    def _skip_row(self) -> bool:
        while (line := self._next_line()) is not None:
            if line.strip():
                return True
        return False

    def _value(self, line: str) -> Any:
        try:
            return DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            raise fault(
                f"{self.where} is not JSON that can be used ({_said(error)})",
                "an array of numbers, or an object with one",
                "Mend the line.",
            ) from None

    def _row(self, value: Any) -> Row:
        if isinstance(value, dict):
            return self._row_of_object(value)
        if self._wanted.payload or self._wanted.column:
            raise fault(
                f"{self.where} has no columns", "an object", "Leave column and payload out."
            )
        return self._numbers(value, "the line"), None

    def _row_of_object(self, fields: dict[str, Any]) -> Row:
        if self._column is None:
            self._column = self._chosen(fields)
        if self._column not in fields:
            raise fault(
                f"{self.where} has no {self._column!r}",
                f"one of its fields: {_shown(fields)}",
                "Give the name of the vectors as column.",
            )
        numbers = self._numbers(fields[self._column], repr(self._column))
        asked = self._wanted.payload
        if not asked:
            return numbers, None
        names = [name for name in fields if name != self._column] if asked == (ALL,) else asked
        return numbers, {name: fields.get(name) for name in names}

    def _chosen(self, fields: dict[str, Any]) -> str:
        usual = [name for name in DEFAULT_COLUMNS if name in fields]
        lists = [name for name, value in fields.items() if isinstance(value, list)]
        if not usual and len(lists) != 1:
            raise fault(
                f"{self.where} has {len(lists)} fields that hold arrays",
                f"one of them, or {' or '.join(map(repr, DEFAULT_COLUMNS))}",
                "Give the name of the vectors as column.",
            )
        return (usual or lists)[0]

    def _numbers(self, value: Any, what: str) -> list[Any]:
        if not isinstance(value, list) or not set(map(type, value)) <= _NUMBERS:
            raise fault(
                f"{self.where}: {what} is no array of numbers",
                "numbers alone, none of them null",
                "Mend the line.",
            )
        return value


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which JSON does not have")


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field that is there twice")
    return fields


def _said(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else reason(error)


def _shown(fields: dict[str, Any]) -> str:
    return ", ".join(repr(name[:40]) for name in list(fields)[:10]) or "none"


DECODER = json.JSONDecoder(
    parse_int=_integer, parse_constant=_no_constant, object_pairs_hook=_fields
)
