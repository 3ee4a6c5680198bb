"""Reading: the service's plain values made the objects that `Links` gives, checked on the way."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from linkstream.client.views import ClusterDetail, ClusterView, Info
from linkstream.engine import events
from linkstream.engine.events import Event
from linkstream.identity.settling import Settlement

T = TypeVar("T")


def reader(kind: type[T]) -> Callable[[Any], T]:
    """A reader of one object. Values that its class does not know are passed over."""
    return functools.partial(built, kind)


def several(name: str, kind: type[T]) -> Callable[[Any], list[T]]:
    """A reader of a list of objects, under a name."""
    return lambda told: [built(kind, each) for each in told[name]]


def built(kind: type[T], told: Any) -> T:
    """A dataclass from plain values; TypeError or KeyError where they do not fit."""
    if not isinstance(told, dict):
        raise TypeError(f"{told!r:.80} for a {kind.__name__}")
    given = {}
    hashable: Any = kind
    for name, expected, needed in _fields(hashable):
        if needed or name in told:
            given[name] = _value(expected, told[name], name)
    return kind(**given)


@functools.cache
def _fields(kind: Any) -> list[tuple[str, Any, bool]]:
    """Name, type, and whether it must be given, of each field."""
    hints = get_type_hints(kind)
    return [
        (field.name, hints[field.name], field.default is dataclasses.MISSING)
        for field in dataclasses.fields(kind)
    ]


def _value(expected: Any, told: Any, name: str) -> Any:
    """A plain value as a field has it."""
    origin, inner = get_origin(expected), get_args(expected)
    if expected is Any:
        return told
    if origin in (Union, types.UnionType):  # always: something, or None
        (some,) = (each for each in inner if each is not type(None))
        return None if told is None else _value(some, told, name)
    if origin is tuple and isinstance(told, list):
        return _items(inner, told, name)
    if origin is Literal and told in inner:
        return told
    if expected is float and type(told) in (int, float):
        return float(told)
    if expected in (int, str, bool) and type(told) is expected:
        return told
    if expected is Event:
        return events.from_dict(told)
    if dataclasses.is_dataclass(expected) and isinstance(expected, type):
        return built(expected, told)
    raise TypeError(f"{told!r:.80} for {name}")


def _items(inner: tuple[Any, ...], told: list[Any], name: str) -> tuple[Any, ...]:
    kinds = (inner[0],) * len(told) if inner[-1] is Ellipsis else inner
    if len(kinds) != len(told):
        raise TypeError(f"{len(told)} values for {name}")
    return tuple(_value(kind, each, name) for kind, each in zip(kinds, told, strict=True))


def event_list(told: Any) -> tuple[list[Event], int]:
    """Events, and from which sequence number on there may be more."""
    return [events.from_dict(each) for each in told["events"]], int(told["next"])


def settlement(told: Any) -> Settlement | None:
    """What a settlement changed; None where nothing is told of it."""
    return None if told is None or "joins" not in told else built(Settlement, told)


def info(told: Any) -> Info:
    """What a namespace is."""
    figures = {f"n_{name}": told[name] for name in ("vectors", "subclusters", "clusters", "events")}
    return built(Info, {**told, **figures, "told": told})


def cluster_view(told: Any) -> ClusterView:
    """A cluster in few words."""
    return built(ClusterView, {**told, "n_subclusters": told["subclusters"]})


def clusters(told: Any) -> tuple[list[ClusterView], int]:
    """Clusters, and how many there are in all."""
    return [cluster_view(each) for each in told["clusters"]], int(told["total"])


def cluster_detail(told: Any) -> ClusterDetail:
    """All that is to be seen of a cluster."""
    seen = told["cluster"]
    if seen is not None:
        seen = {**seen, "n_subclusters": seen["subclusters"]}
    return built(ClusterDetail, {**told, "cluster": seen})
