"""Errors of validation in plain words, instead of those of pydantic."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any

from linkstream.errors import ArgumentError

_UNSAID = ("body", "query", "path", "header", "Thresholds")  # parts of a place no client wrote
# Parts that name a type of pydantic, such as `list[int]` or `function-plain[check()]`.
_TYPES = re.compile(
    r"(int|str|float|bool|bytes|none|any|nullable|[a-z]+(-[a-z]+)+|[a-zA-Z-]+\[.*\])$"
)
_LEAD = re.compile(r"(Value error, |Assertion failed, )?(Input|Value) should (be|have) ?")
# What is expected, by the kind of the problem or the start of it; the longest that fits counts.
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "finite_number": "a finite number",
    "bool": "true or false",
    "string": "a text",
    "string_too_long": "a text of at most {max_length} characters",
    "string_too_short": "a text of at least {min_length} characters",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "literal_error": "one of {expected}",
    "enum": "one of {expected}",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "too_long": "at most {max_length} entries",
    "too_short": "at least {min_length} entries",
    "dict": "an object",
    "mapping": "an object",
    "model": "an object",
    "dataclass": "an object",
    "none_required": "null",
    "json": "JSON",
}
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60
_SHOWN.maxlong = 30
_SHOWN.maxlevel = _SHOWN.maxlist = _SHOWN.maxdict = 2


def invalid(problem: Mapping[str, Any]) -> ArgumentError:
    """Return the error for the first problem that pydantic found.

    Args:
        problem: an entry of `ValidationError.errors()`.
    """
    parts = [str(part) for part in problem["loc"]]
    place = ".".join(p for p in parts if p not in _UNSAID and not _TYPES.match(p))
    remedy = "Correct the request; /openapi.json describes it. Nothing has changed."
    if problem["type"] == "missing":
        expected = f"a value of {place!s:.100}" if place else "a body"
        return ArgumentError(f"no {place or 'body'!s:.100}", expected=expected, remedy=remedy)
    if problem["type"] == "extra_forbidden":
        seen = f"{place!r:.100}, an unknown field"
        return ArgumentError(seen, expected="known fields only", remedy=remedy)
    seen = f"{place or 'the body'!s:.100}: {_shown(problem.get('input'))}"
    return ArgumentError(seen, expected=_expected(problem), remedy=remedy)


def _expected(problem: Mapping[str, Any]) -> str:
    kind, context = problem["type"], problem.get("ctx") or {}
    fitting = [known for known in _EXPECTED if kind == known or kind.startswith(f"{known}_")]
    if fitting:
        try:
            return _EXPECTED[max(fitting, key=len)].format_map(context)
        except KeyError:  # a limit that pydantic does not tell
            pass
    words = _LEAD.sub("", str(problem["msg"]), count=1)
    return f"{words!s:.200}" or "the schema of this route in /openapi.json"


def _shown(value: Any) -> str:
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else _SHOWN.repr(value)
