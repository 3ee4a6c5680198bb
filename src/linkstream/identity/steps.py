"""Change plain Python containers in steps that can be rolled back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MISSING: Any = object()


class Steps:
    """Change containers; while a change is open, record how to roll back each step."""

    __slots__ = ("_back",)

    def __init__(self) -> None:
        self._back: list[Callable[[], object]] | None = None

    def __deepcopy__(self, _memo: object) -> Steps:
        return Steps()

    @property
    def is_open(self) -> bool:
        """Whether a change is open."""
        return self._back is not None

    def begin(self) -> None:
        """Open a change."""
        self._back = []

    def commit(self) -> None:
        """Keep all steps."""
        self._back = None

    def since(self, start: int, *, without: list[Any]) -> list[Callable[[], object]]:
        """Return what rolls back the steps from a number on, without appends to one list."""
        assert self._back is not None, "a change is open"
        return [step for step in self._back[start:] if not _appends_to(step, without)]

    def __len__(self) -> int:
        return 0 if self._back is None else len(self._back)

    def take_back(self, to: int) -> None:
        """Roll back the newest steps until `to` steps are left."""
        assert self._back is not None, "a change is open"
        while len(self._back) > to:
            self._back[-1]()
            self._back.pop()

    def put(self, mapping: dict[K, V], key: K, value: V) -> None:
        """Set an entry."""
        if self._back is not None:
            old = mapping.get(key, _MISSING)
            self._back.append(
                partial(mapping.pop, key, None)
                if old is _MISSING
                else partial(mapping.__setitem__, key, old)
            )
        mapping[key] = value

    def pop(self, mapping: dict[K, V], key: K) -> V | None:
        """Remove and return an entry; None if there is none."""
        if key not in mapping:
            return None
        if self._back is not None:
            self._back.append(partial(mapping.__setitem__, key, mapping[key]))
        return mapping.pop(key)

    def add(self, members: set[K], member: K) -> None:
        """Add a member to a set."""
        if self._back is not None and member not in members:
            self._back.append(partial(members.discard, member))
        members.add(member)

    def discard(self, members: set[K], member: K) -> None:
        """Remove a member from a set, if it is there."""
        if self._back is not None and member in members:
            self._back.append(partial(members.add, member))
        members.discard(member)

    def append(self, values: list[V], value: V) -> None:
        """Append a value to a list."""
        if self._back is not None:
            self._back.append(partial(_cut, values, len(values)))
        values.append(value)

    def remove(self, values: list[V], value: V) -> None:
        """Remove a value from a list."""
        place = values.index(value)
        if self._back is not None:
            self._back.append(partial(_restore, values, [*values]))
        del values[place]

    def assign(self, owner: object, name: str, value: object) -> None:
        """Set an attribute."""
        if self._back is not None:
            self._back.append(partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)


def _appends_to(step: Callable[[], object], values: list[Any]) -> bool:
    return isinstance(step, partial) and step.func is _cut and step.args[0] is values


def _cut(values: list[Any], size: int) -> None:
    del values[size:]


def _restore(values: list[Any], old: list[Any]) -> None:
    values[:] = old
