"""The base of the table of verbs: what every call that changes a clusterer can do; see verbs.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import checks
from linkstream.clusterer.core import Core, Float32s
from linkstream.clusterer.links import Links
from linkstream.clusterer.verb_values import plain, schema
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    dataclass_transform = lambda **_: lambda function: function  # noqa: E731

V = TypeVar("V", bound="Verb")

VERBS: dict[str, type[Verb]] = {}


@dataclass(frozen=True, eq=False)
class Verb:
    """One call that changes a clusterer.

    Attributes:
        verb: name of the verb, and of the method of `Links`.
        function: the function that does it, which takes a `Core` and the fields.
        parameters: names of the fields, and whether each is required.
        vectors_field: the field that holds the vectors to add; None if there is none.
        one_vector: whether the verb takes one vector, not rows of vectors.
        adds: whether it adds the vectors that come with it.
        journal_names: names of fields in the journal, where they differ.
        journal_omits_none: whether the journal leaves out fields that are None.
        vector_names: fields that hold a vector by number or by its own key.
        found: attributes of the answer that the journal stores, for the function when it is
            replayed.
    """

    verb: ClassVar[str]
    function: ClassVar[Callable[..., Any]]
    parameters: ClassVar[Mapping[str, bool]]
    vectors_field: ClassVar[str | None] = None
    one_vector: ClassVar[bool] = False
    adds: ClassVar[bool] = True
    journal_names: ClassVar[Mapping[str, str]] = {}
    journal_omits_none: ClassVar[bool] = False
    vector_names: ClassVar[tuple[str, ...]] = ()
    found: ClassVar[tuple[str, ...]] = ()

    def perform(self, core: Core) -> Any:
        """Do it; return what the method of `Links` returns."""
        return type(self).function(core, **vars(self))

    @property
    def vectors(self) -> npt.ArrayLike | None:
        """The vectors that come with the call; None if there are none."""
        name = self.vectors_field
        return None if name is None else cast("npt.ArrayLike", getattr(self, name))

    def keys(self) -> dict[str, Any]:
        """Return the fields in which vectors are given by their keys, as they were given."""
        given, of = vars(self), getattr(self, "of", "vectors")
        keys = {name: given[name] for name in self.vector_names if _has_keys(given[name])}
        if keys and of != "vectors":
            raise ArgumentError(
                f"the key {next(iter(keys.values()))!r:.80} with of={of!r:.80}",
                expected=f"the number of one of the {of}",
                remedy="Only vectors have keys; leave of= out to name vectors.",
            )
        return keys

    @classmethod
    def parse(cls, arguments: Mapping[str, Any]) -> Verb:
        """Return the verb with these arguments by name; raise ArgumentError if the names differ.

        Values are checked when the verb is performed.
        """
        names = cls.parameters
        unknown = [name for name in arguments if name not in names]
        missing = [name for name, required in names.items() if required and name not in arguments]
        if unknown or missing:
            seen = f"unknown {unknown}" if unknown else f"missing {missing}"
            raise ArgumentError(
                f"arguments of {cls.verb}: {seen}",
                expected=f"arguments named {', '.join(names) or 'nothing'}",
                remedy="Pass exactly these arguments.",
            )
        return cls(**arguments)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain values; `parse` takes them back."""
        return {name: plain(value) for name, value in vars(self).items()}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        docs = cls.parameter_docs()
        return {
            "title": cls.verb,
            "description": cls.meaning(),
            "type": "object",
            "properties": {f.name: schema(f, docs[f.name]) for f in fields(cls)},
            "required": [name for name, required in cls.parameters.items() if required],
            "additionalProperties": False,
        }

    @classmethod
    def meaning(cls) -> str:
        """Return what the verb does, in one sentence."""
        return (inspect.getdoc(cls) or "").splitlines()[0]

    @classmethod
    def parameter_docs(cls) -> dict[str, str]:
        """Return what each parameter means."""
        text = inspect.getdoc(getattr(Links, cls.verb)) or ""
        section = re.search(r"^Args:\n((?:    .*\n?)+)", text, re.MULTILINE)
        found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.M)
        return {name: re.sub(r"\s+", " ", words) for name, words in found if name in cls.parameters}

    def journal_arguments(self) -> dict[str, Any]:
        """Return the arguments that the journal stores: the fields except the vectors.

        The weights of vectors to add are left out if all are 1.
        """
        arguments = {
            self.journal_names.get(name, name): plain(value)
            for name, value in vars(self).items()
            if name != self.vectors_field and not (value is None and self.journal_omits_none)
        }
        if self.vectors_field is not None and "weight" in self.parameters:
            arguments.pop("weight", None)
            weight = vars(self)["weight"]
            n = 1 if self.one_vector else len(cast("npt.NDArray[Any]", self.vectors))
            full = type(weight) is float and weight == 1.0
            if not full and any(checks.missing_weights(weight, n)):
                arguments["weight"] = np.asarray(weight, dtype=np.float64).tolist()
        return arguments

    @classmethod
    def from_journal(cls, arguments: Mapping[str, Any], rows: Float32s | None) -> Verb:
        """Return the verb that the journal holds: its arguments, and the vectors that came."""
        values = dict(arguments)
        for name, stored in cls.journal_names.items():
            if stored in values:
                values[name] = values.pop(stored)
        if cls.vectors_field is not None:
            values[cls.vectors_field] = [] if rows is None else rows[0] if cls.one_vector else rows
        found = {name: values.pop(name) for name in cls.found if name in values}
        made = cls.parse(values)
        vars(made).update(found)
        return made


def _has_keys(value: object) -> bool:
    """Return whether a field holds the key of a vector, or several vectors and keys."""
    listed = value if isinstance(value, list) else [value]
    return any(isinstance(each, str) for each in listed)


@dataclass_transform(eq_default=False, frozen_default=True)
def verb(function: Callable[..., Any]) -> Callable[[type[V]], type[V]]:
    """Make a class a verb that performs a function, and enter it in the table."""

    def enter(cls: type[V]) -> type[V]:
        cls.function = staticmethod(function)
        cls.verb = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        VERBS[cls.verb] = made = dataclass(frozen=True, eq=False)(cls)
        made.parameters = {each.name: each.default is MISSING for each in fields(made)}
        return made

    return enter
