"""The table of verbs: one frozen dataclass for each call that changes a clusterer.

A verb has the fields, the order and the defaults of the `Links` method of its name; the function
it performs has the same parameters and the same return type. To add a verb, write the function, the
dataclass, and the method of `Links`; `tests/identity/test_verb_table.py` compares the three.

How a surface uses the table:

- `Links`, `Store` and `Client` have a method with the signature of the verb. A surface may add
  keyword parameters of its own: see verb_docs.py.
- The journal stores `verb.verb`, `verb.journal_arguments()` and `verb.vectors`. Replay is
  `VERBS[name].from_journal(arguments, rows).perform(core)`.
- HTTP reads a body with `VERBS[name].parse(body)`, and describes it by `VERBS[name].json_schema()`.
- The client sends `verb.to_json()`, or `verb.vectors` in binary and the rest as JSON.
- The command line builds the dataclass; its help is `meaning()` and `parameter_docs()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import (
    adding,
    checks,
    corrections,
    maintenance,
    moving,
    policies,
    rebuilding,
    removal,
)
from linkstream.clusterer.core import Float32s
from linkstream.clusterer.learning import judge
from linkstream.clusterer.verb_base import VERBS as VERBS
from linkstream.clusterer.verb_base import Verb as Verb
from linkstream.clusterer.verb_base import verb
from linkstream.clusterer.verb_values import plain
from linkstream.errors import ArgumentError
from linkstream.identity.rebuild_sums import SubclusterSums
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

# Array types, named for what they hold; the JSON schema reads the names.
Vector: TypeAlias = npt.ArrayLike
Vectors: TypeAlias = npt.ArrayLike
Weights: TypeAlias = npt.ArrayLike
VectorNumber: TypeAlias = "int | str"  # a str is the vector's own key in a store
VectorNumbers: TypeAlias = "int | str | Sequence[int | str]"  # one, or several
AnyCluster: TypeAlias = int  # −1: a new one
VectorOrNumber: TypeAlias = npt.ArrayLike
ClusterOrNew: TypeAlias = "int | None"  # −1: a new one


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


@verb(moving.move)
class Move(Verb):
    """Move a vector, with its share of the sums, into another cluster, where it stays."""

    vector_names = ("vector",)
    vector: VectorNumbers
    cluster: AnyCluster

    def __post_init__(self) -> None:
        """Take several vectors as a plain list; raise ArgumentError if one is there twice."""
        listed = checks.several_vectors(self.vector)
        object.__setattr__(self, "vector", self.vector if listed is None else listed)


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


@verb(judge)
class Judge(Verb):
    """Say whether the decision on a vector was right; probabilities learn from it."""

    vector_names = ("vector",)
    vector: VectorNumber
    right: bool = True


@verb(policies.accept)
class Accept(Verb):
    """Say from which probability on decisions are taken, and what is done with the others."""

    found = ("bounds",)

    probability: float | None = None
    _: KW_ONLY
    new: float | None = None
    unsure: str = "hold"
    weight: float = 0.5


@verb(policies.assign)
class Assign(Verb):
    """Decide on a vector that is held: put it into a cluster, a new one, or by the tests."""

    vector_names = ("vector",)
    vector: VectorNumber
    cluster: ClusterOrNew = None


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
        """Take several numbers as a plain list; raise ArgumentError if there are two vectors."""
        listed = checks.several_vectors(self.vector)
        object.__setattr__(self, "vector", self.vector if listed is None else listed)
        if self.x is not None and np.ndim(self.vector) != 0:
            raise ArgumentError(
                "two vectors to remove",
                expected="the number of a vector and x, or x alone",
                remedy="Leave out x=.",
            )

    @property
    def vectors(self) -> npt.ArrayLike | None:
        """The vector itself, if it was given."""
        return self.x if self._is_numbered else self.vector

    @property
    def _is_numbered(self) -> bool:
        """Whether vectors are given by number or key, not by coordinates."""
        return np.ndim(self.vector) == 0 or checks.several_vectors(self.vector) is not None

    def journal_arguments(self) -> dict[str, Any]:
        """Return all but the vector itself."""
        given = ("x",) if self._is_numbered else ("x", "vector")
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
        else:
            checks.check_space(given)

    def journal_arguments(self) -> dict[str, Any]:
        """Return the thresholds and the space, if they were given, and what the vectors are."""
        told = {"space": plain(self.space), "of": getattr(self.vectors, "of", None)}
        return {**super().journal_arguments(), **{k: v for k, v in told.items() if v is not None}}

    @classmethod
    def from_journal(cls, arguments: Mapping[str, Any], rows: Float32s | None) -> Verb:
        """Return the verb, applied; the rows may be sums, as `SubclusterSums` writes them."""
        told = {name: value for name, value in arguments.items() if name != "of"}
        vectors = rows if "of" not in arguments else SubclusterSums.of_rows(rows)
        return cls.parse({**told, "vectors": vectors, "apply": True})
