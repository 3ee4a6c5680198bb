"""Compare a surface with the table of verbs: parameter names, kinds, defaults, return types.

A surface is `Links`, `Store`, `Client`, HTTP or the command line. Each function returns the
differences as sentences, so that a test is `assert parity.differences_of_method(...) == []`.

- `differences_of_method(surface, verb, method)`: a method of Python, blocking or asynchronous.
- `differences_of_schema(surface, verb, schema)`: the JSON schema of a request body.
- `differences_of_options(surface, verb, options)`: options of a command, by name, with defaults.

`EXTRAS` and `LEFT_OUT` are the only places that list where a surface differs on purpose.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from linkstream import Links
from linkstream.clusterer.verbs import VERBS

REQUIRED = inspect.Parameter.empty
ANY_VERB = "*"

_KEY = {"idempotency_key": None}
_STORE: dict[str, dict[str, Any]] = {
    ANY_VERB: _KEY,
    "add": {"payload": None, "at": None, "id": None},
    "add_many": {"payloads": None, "at": None, "ids": None},
    "add_group": {"payloads": None, "at": None, "ids": None},
    "enrol": {"at": None, "ids": None},
    "settle": {"progress": None},
    "rebuild": {"progress": None},
    "undo": {"step": False},
}
_COLUMNS = {verb: _STORE[verb] for verb in ("add", "add_many", "add_group", "enrol")}

# Parameters that a surface has in addition to those of the verb, with their defaults.
EXTRAS: dict[str, dict[str, dict[str, Any]]] = {
    "Links": {verb: _STORE[verb] for verb in ("settle", "rebuild")},
    "Store": _STORE,
    "Client": {**_STORE, "settle": {}, "rebuild": {}, "undo": {"step": False, "after": None}},
    "HTTP": {
        **_COLUMNS,
        "undo": {"step": False, "after": None},
        "same": {"clusters": None},
        "different": {"clusters": None},
    },
    "command line": {},
}
# Parameters of the verb that a surface does not have, with the reason.
LEFT_OUT: dict[str, dict[str, dict[str, str]]] = {}


class Parameter(NamedTuple):
    """A parameter as a surface shows it; `keyword` is None if the surface has no positions."""

    name: str
    default: Any
    keyword: bool | None = None


def expected(surface: str, verb: str) -> list[Parameter]:
    """Return the parameters that a surface must have for a verb: the verb's, then its own."""
    signature = inspect.signature(getattr(Links, verb))
    left_out = LEFT_OUT.get(surface, {}).get(verb, {})
    of_links = EXTRAS["Links"].get(verb, {})
    parameters = [each for name, each in signature.parameters.items() if name not in of_links]
    told = [_parameter(each) for each in parameters[1:]]
    own = EXTRAS[surface]
    extras = {**own.get(verb, {}), **own.get(ANY_VERB, {})}
    return [
        *(each for each in told if each.name not in left_out),
        *(Parameter(name, default, keyword=True) for name, default in extras.items()),
    ]


def differences_of_method(surface: str, verb: str, method: Callable[..., Any] | None) -> list[str]:
    """Compare a method: names in order, kinds, defaults, return type, documented parameters."""
    if method is None:
        return [f"{surface} has no method {verb}"]
    signature = inspect.signature(method)
    seen = [_parameter(p) for name, p in signature.parameters.items() if name != "self"]
    returns = _text(signature.return_annotation)
    wanted = _text(inspect.signature(getattr(Links, verb)).return_annotation)
    found = _differences(f"{surface}.{verb}", seen, expected(surface, verb))
    if returns != wanted:
        found.append(f"{surface}.{verb} returns {returns}, not {wanted}")
    docs = inspect.getdoc(method) or ""
    found += [f"{surface}.{verb}: {p.name} has no text" for p in seen if f"{p.name}: " not in docs]
    if VERBS[verb].meaning() not in docs:
        found.append(f"{surface}.{verb} does not say: {VERBS[verb].meaning()}")
    return found


def differences_of_schema(surface: str, verb: str, schema: Mapping[str, Any]) -> list[str]:
    """Compare a JSON schema: names, required names, defaults, descriptions."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    seen = [
        Parameter(name, REQUIRED if name in required else each.get("default"))
        for name, each in properties.items()
    ]
    found = differences_of_parameters(surface, verb, seen)
    found += [
        f"{surface} {verb}: {name} has no description"
        for name, each in properties.items()
        if not each.get("description")
    ]
    return found


def differences_of_options(surface: str, verb: str, options: Mapping[str, Any]) -> list[str]:
    """Compare options by name with their defaults; `REQUIRED` is the default of an argument."""
    seen = [Parameter(name, default) for name, default in options.items()]
    return differences_of_parameters(surface, verb, seen)


def differences_of_parameters(surface: str, verb: str, seen: list[Parameter]) -> list[str]:
    """Compare parameters without positions, in any order."""
    wanted = [each._replace(keyword=None) for each in expected(surface, verb)]
    return _differences(f"{surface} {verb}", sorted(seen, key=_name), sorted(wanted, key=_name))


def _differences(title: str, seen: list[Parameter], wanted: list[Parameter]) -> list[str]:
    names, right = [each.name for each in seen], [each.name for each in wanted]
    if names != right:
        return [f"{title} has the parameters {names}, not {right}"]
    return [
        f"{title}: {one} is not {two}" for one, two in zip(seen, wanted, strict=True) if one != two
    ]


def _parameter(each: inspect.Parameter) -> Parameter:
    return Parameter(each.name, each.default, each.kind is each.KEYWORD_ONLY)


def _name(parameter: Parameter) -> str:
    return parameter.name


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "None")
