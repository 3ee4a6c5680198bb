"""The table of verbs: one frozen dataclass for each call that changes a clusterer.

A verb has the fields, the order and the defaults of the `Links` method of its name; the function
it performs has the same parameters and the same return type. To add a verb, write the function, the
dataclass, and the method of `Links`; `tests/identity/test_verb_table.py` compares the three.

How a surface uses the table:

- `Links`, `Store` and `Client` have a method with the signature of the verb. A surface may add
  keyword parameters of its own, such as `idempotency_key=`, `payloads=` or `step=`: see
  verb_docs.py.
- The journal stores `verb.verb`, `verb.journal_arguments()` and `verb.vectors`. Replay is
  `VERBS[name].from_journal(arguments, rows).perform(core)`.
- HTTP reads a body with `VERBS[name].parse(body)`, and describes it by `VERBS[name].json_schema()`.
- The client sends `verb.to_json()`, or `verb.vectors` in binary and the rest as JSON.
- The command line builds the dataclass, and takes help from `VERBS[name].meaning()` and
  `VERBS[name].parameter_docs()`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import adding, checks, corrections, maintenance, rebuilding, removal
from linkstream.clusterer.core import Core, Float32s
from linkstream.clusterer.links import Links
from linkstream.clusterer.verb_values import plain, schema
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    dataclass_transform = lambda **_: lambda function: function  # noqa: E731

V = TypeVar("V", bound="Verb")

VERBS: dict[str, type[Verb]] = {}

# Array types, named for what they hold; the JSON schema reads the names.
Vector: TypeAlias = npt.ArrayLike
Vectors: TypeAlias = npt.ArrayLike
Weights: TypeAlias = npt.ArrayLike
VectorNumber: TypeAlias = "int | str"  # a str is the vector's own key in a store
VectorOrNumber: TypeAlias = npt.ArrayLike


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

    def perform(self, core: Core) -> Any:
        """Do it; return what the method of `Links` returns."""
        return type(self).function(core, **vars(self))

    @property
    def vectors(self) -> npt.ArrayLike | None:
        """The vectors that come with the call; None if there are none."""
        name = self.vectors_field
        return None if name is None else cast("npt.ArrayLike", getattr(self, name))

    def keys(self) -> dict[str, str]:
        """Return the fields in which a vector is given by its key, with the keys."""
        given, of = vars(self), getattr(self, "of", "vectors")
        keys = {name: given[name] for name in self.vector_names if isinstance(given[name], str)}
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
        return cls.parse(values)


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


@verb(adding.add)
class Add(Verb):
    """Add one vector; return the cluster it belongs to, and why."""

    vectors_field = "x"
    one_vector = True
    journal_omits_none = True

    x: Vector
    _: KW_ONLY
    weight: float = 1.0
    group: str | None = None


@verb(adding.add_many)
class AddMany(Verb):
    """Add vectors in order; return their IDs, the same as `add` one by one."""

    vectors_field = "X"
    journal_omits_none = True

    X: Vectors
    _: KW_ONLY
    weight: Weights = 1.0
    group: str | None = None


@verb(adding.add_group)
class AddGroup(Verb):
    """Add vectors seen together, such as faces of one photo; each gets a different cluster."""

    vectors_field = "X"
    journal_names: ClassVar[Mapping[str, str]] = {"group": "key"}
    journal_omits_none = True

    X: Vectors
    _: KW_ONLY
    group: str | None = None
    weight: Weights = 1.0


@verb(corrections.enrol)
class Enrol(Verb):
    """Add vectors of a known identity as prototypes; return the ID of its cluster."""

    vectors_field = "X"

    name: str
    X: Vectors
    _: KW_ONLY
    locked: bool = True


@verb(corrections.same)
class Same(Verb):
    """Declare two vectors, subclusters or clusters the same: they share a cluster from now on."""

    vector_names = ("a", "b")
    a: VectorNumber
    b: VectorNumber
    _: KW_ONLY
    of: str = "vectors"


@verb(corrections.different)
class Different(Verb):
    """Declare two vectors, subclusters or clusters different: they never share a cluster."""

    vector_names = ("a", "b")
    a: VectorNumber
    b: VectorNumber
    _: KW_ONLY
    of: str = "vectors"


@verb(corrections.move)
class Move(Verb):
    """Move a vector, with its share of the sums, into another cluster, where it stays."""

    vector_names = ("vector",)
    vector: VectorNumber
    cluster: int


@verb(corrections.retract)
class Retract(Verb):
    """Take back one correction, and nothing that came after it."""

    correction: int


@verb(corrections.name)
class Name(Verb):
    """Name a cluster that has no name. Clusters with different names are never joined."""

    cluster: int
    name: str
    _: KW_ONLY
    claim: bool = False


@verb(corrections.rename)
class Rename(Verb):
    """Change the name of a cluster."""

    cluster: int
    name: str | None


@verb(corrections.ignore)
class Ignore(Verb):
    """Leave a cluster out of suggestions and reviews; vectors still join it."""

    cluster: int
    on: bool = True


@verb(removal.remove)
class Remove(Verb):
    """Remove a vector exactly, as if it had never been added to the sums; its label is −1."""

    one_vector = True
    journal_omits_none = True
    vector_names = ("vector",)

    vector: VectorOrNumber
    _: KW_ONLY
    x: Vector | None = None
    cluster: int | None = None
    weight: float | None = None

    def __post_init__(self) -> None:
        """Raise ArgumentError if there are two vectors."""
        if self.x is not None and np.ndim(self.vector) != 0:
            raise ArgumentError(
                "two vectors to remove",
                expected="the number of a vector and x, or x alone",
                remedy="Leave out x=.",
            )

    @property
    def vectors(self) -> npt.ArrayLike | None:
        """The vector itself, if it was given."""
        return self.x if np.ndim(self.vector) == 0 else self.vector

    def journal_arguments(self) -> dict[str, Any]:
        """Return all but the vector itself."""
        given = ("x",) if np.ndim(self.vector) == 0 else ("x", "vector")
        arguments = super().journal_arguments()
        return {name: value for name, value in arguments.items() if name not in given}

    @classmethod
    def from_journal(cls, arguments: Mapping[str, Any], rows: Float32s | None) -> Verb:
        """Return the verb by number, by coordinates, or by both."""
        given = {} if rows is None else {"x" if "vector" in arguments else "vector": rows[0]}
        return cls.parse({**arguments, **given})


@verb(removal.forget)
class Forget(Verb):
    """Remove a cluster and all its vectors; if its identity comes back it is new."""

    cluster: int


@verb(removal.undo)
class Undo(Verb):
    """Undo the last change or vector; the state is then bit for bit what it was before."""

    _: KW_ONLY
    to: int | None = None


@verb(removal.redo)
class Redo(Verb):
    """Redo what the last `undo` took, with the same IDs; call it again for the undo before."""


@dataclass(frozen=True, eq=False)
class _Proposing(Verb):
    """A verb that proposes changes, or applies them; the journal holds those that were applied."""

    check: ClassVar[Callable[[object], None]]  # of thresholds that are no JSON object

    apply: bool = False

    def __post_init__(self) -> None:
        """Take thresholds as JSON has them; raise ArgumentError for anything else."""
        given = vars(self)["thresholds"]
        if isinstance(given, dict) and given.keys() == {each.name for each in fields(Thresholds)}:
            object.__setattr__(self, "thresholds", Thresholds(**given))
        else:
            type(self).check(given)

    def journal_arguments(self) -> dict[str, Any]:
        """Return the thresholds, if they were given."""
        given = vars(self)["thresholds"]
        return {} if given is None else {"thresholds": plain(given)}

    @classmethod
    def from_journal(cls, arguments: Mapping[str, Any], rows: Float32s | None) -> Verb:
        """Return the verb, applied."""
        return cls.parse({**arguments, "apply": True})


@verb(maintenance.settle)
class Settle(_Proposing):
    """Compare all subclusters with one another; propose which clusters to join and to cut."""

    check = checks.check_thresholds

    _: KW_ONLY
    thresholds: Thresholds | None = None


@verb(rebuilding.rebuild)
class Rebuild(_Proposing):
    """Cluster all vectors again: the same set gives the same clusters, whatever its order."""

    vectors_field = "vectors"
    adds = False
    check = checks.check_rebuild_thresholds

    _: KW_ONLY
    thresholds: Thresholds | str | None = None
    space: Space | None = None
    vectors: Vectors | None = None

    def __post_init__(self) -> None:
        """Take thresholds and space as JSON has them; raise ArgumentError for anything else."""
        super().__post_init__()
        given = self.space
        if isinstance(given, dict) and given.keys() == {each.name for each in fields(Space)}:
            object.__setattr__(self, "space", Space(**given))
        elif given is not None:
            checks.check_space(given)

    def journal_arguments(self) -> dict[str, Any]:
        """Return the thresholds and the space, if they were given."""
        space = {} if self.space is None else {"space": plain(self.space)}
        return {**super().journal_arguments(), **space}

    @classmethod
    def from_journal(cls, arguments: Mapping[str, Any], rows: Float32s | None) -> Verb:
        """Return the verb, applied."""
        given = {} if rows is None else {"vectors": rows}
        return cls.parse({**arguments, **given, "apply": True})
