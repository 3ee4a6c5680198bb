"""Schemas of request bodies and answers, as described by /openapi.json."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    StrictBool,
    create_model,
)
from pydantic_core import PydanticCustomError

from linkstream.clusterer.checks import AT_ONCE
from linkstream.clusterer.verbs import VERBS, Verb
from linkstream.paper import thresholds
from linkstream.store.own_columns import KEY_MAX

Whole = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Row = Annotated[list[Number], SkipValidation]  # engine/door.py checks the numbers and names the row
Rows = Annotated[list[list[Number]], SkipValidation]
Numbers = Annotated[list[Number], Field(fail_fast=True)]
KeyText = Annotated[str, Field(min_length=1, max_length=KEY_MAX)]
References = Annotated[list[Whole | KeyText], Field(fail_fast=True, max_length=AT_ONCE)]
Moment = Number | Annotated[str, Field(max_length=64)]
Of = Literal["vectors", "subclusters", "clusters"]


LOOKUP_MAX = 10_000  # vectors in one request


class Body(BaseModel):
    """A JSON body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


# Bodies


class Explain(Body):
    """A vector to explain."""

    vector: Row
    limit: Annotated[int, Field(ge=1, le=100)] = 5


class Resolve(Body):
    """IDs to resolve; −1 stays −1."""

    ids: Annotated[list[Annotated[int, Field(ge=-1, le=2**53)]], Field(fail_fast=True)]


class Lookup(Body):
    """Vectors by number, or by their own keys."""

    vectors: Annotated[list[Whole | KeyText], Field(fail_fast=True, max_length=LOOKUP_MAX)]


class Thresholds(Body):
    """The three thresholds."""

    cluster_similarity: Number
    subcluster_similarity: Number
    pair_similarity_max: Number


def _check_thresholds(given: Any) -> Any:
    if isinstance(given, dict | Thresholds) or given in (None, "from clusters"):
        return given
    words = 'Input should be an object with the three thresholds, "from clusters" or null'
    raise PydanticCustomError("thresholds", words)


AnyThresholds = Annotated[
    Thresholds | Literal["from clusters"] | None, BeforeValidator(_check_thresholds)
]


class Space(Body):
    """The space of the vectors: encoder, mean vector to subtract, dimension."""

    model: str | None = None
    mean: Numbers | None = None
    dimension: Annotated[int, Field(ge=2, le=2**16)] | None = None


class Namespace(Body):
    """The options of a namespace: thresholds or a preset, and options of `Links`."""

    thresholds: Thresholds | None = None
    preset: str | None = None
    granularity: str | Number | None = None
    space: Space | None = None
    mode: Literal["paper", "best"] | None = None
    evidence: Literal["nearest", "cluster"] | None = None
    heal: Literal["join", "settle"] | None = None
    track_vectors: StrictBool | None = None
    keep_vectors: StrictBool | None = None
    max_subclusters: Annotated[int, Field(ge=1, le=2**31)] | None = None
    max_idle: Annotated[int, Field(ge=1, le=2**53)] | None = None
    min_size: Annotated[int, Field(ge=1, le=2**31)] | None = None
    rebuild_thresholds: Thresholds | None = None
    confidence: dict[str, Any] | bool | None = Field(
        None, description="a model, as `to_plain` gives it; true learns one from answers"
    )
    search: StrictBool | None = None


class Empty(Body):
    """An empty object."""


# Bodies of verbs, from the table of verbs

_TYPES: dict[str, Any] = {
    "int": Whole,
    "int | None": Whole | None,
    "float": Number,
    "float | None": Number | None,
    "str": str,
    "str | None": str | None,
    "bool": StrictBool,
    "Vector": Row,
    "Vectors": Rows,
    "Vector | None": Numbers | None,
    "VectorNumber": Whole | KeyText,
    "VectorNumbers": Whole | KeyText | References,
    "AnyCluster": Annotated[int, Field(ge=-1, le=2**53)],
    "VectorOrNumber": Whole | KeyText | References | Numbers,
    "ClusterOrNew": Annotated[int, Field(ge=-1, le=2**53)] | None,
    "Weights": Numbers | None,
    "Vectors | None": Rows | None,
    "Thresholds | None": Thresholds | None,
    "Thresholds | str | None": AnyThresholds,
    "Space | None": Space | None,
}
_NAMES = {"Vector": "vector", "Vectors": "vectors", "Weights": "weights"}  # in HTTP, by type
_PAYLOADS = (list[Any] | None, Field(None, description="One JSON value for each vector."))
_TIMES = "ISO 8601 with a zone, or seconds since 1970"
_KEY = f"text of up to {KEY_MAX} bytes that no other vector has"
_LISTS = {
    "at": (
        Moment | list[Moment | None] | None,
        Field(None, description=f"The time of each vector, or one for all: {_TIMES}."),
    ),
    "ids": (
        list[KeyText | None] | None,
        Field(None, description=f"The vectors' own keys: for each vector a {_KEY}, or null."),
    ),
}
_SEEN = {
    "clusters": (
        Annotated[list[Whole], Field(min_length=2, max_length=2)] | None,
        Field(None, description="Refuse with 409 unless the two are in these clusters now."),
    ),
}
_OWN: dict[str, dict[str, Any]] = {
    "same": _SEEN,
    "different": _SEEN,
    "add": {
        "payload": (Any, Field(None, description="A JSON value to store with the vector.")),
        "at": (Moment | None, Field(None, description=f"The time of the vector: {_TIMES}.")),
        "id": (KeyText | None, Field(None, description=f"The vector's own key: a {_KEY}.")),
    },
    "add_many": {"payloads": _PAYLOADS, **_LISTS},
    "add_group": {"payloads": _PAYLOADS, **_LISTS},
    "enrol": _LISTS,
    "undo": {
        "step": (StrictBool, Field(False, description="Undo the whole last step.")),
        "after": (
            Whole | None,
            Field(None, description="Refuse with 409 if an event of this number or above exists."),
        ),
    },
}


def _name(each: Any) -> str:
    """Return the name that HTTP has for a field of a verb."""
    return _NAMES.get(each.type, str(each.name))


def _member(verb: type[Verb], each: Any) -> tuple[Any, Any]:
    kind = Of if each.name == "of" else _TYPES[each.type]
    default = ... if verb.parameters[each.name] else each.default
    text = verb.parameter_docs()[each.name]
    return kind, Field(None if each.type == "Weights" else default, description=text)


def _body_of(verb: type[Verb]) -> type[Body]:
    """Make the body of a verb: its fields with defaults and texts, then those of HTTP alone."""
    members: dict[str, Any] = {_name(each): _member(verb, each) for each in fields(verb)}
    members |= _OWN.get(verb.verb, {})
    return create_model(verb.__name__, __base__=Body, __doc__=verb.meaning(), **members)


BODIES = {name: _body_of(verb) for name, verb in VERBS.items()}


RebuildJob = create_model(
    "RebuildJob",
    __base__=BODIES["rebuild"],
    __doc__=VERBS["rebuild"].meaning(),
    hold=(
        StrictBool,
        Field(False, description="If changes keep coming, hold them back for the last try."),
    ),
)


def to_verb(name: str, body: Body) -> Verb:
    """Return the verb that a body describes, without the fields of HTTP alone."""
    values = {each.name: getattr(body, _name(each)) for each in fields(VERBS[name])}
    if isinstance(values.get("thresholds"), Thresholds):
        values["thresholds"] = thresholds.Thresholds(**values["thresholds"].model_dump())
    if values.get("space") is not None:
        values["space"] = values["space"].model_dump()
    return VERBS[name].parse(values)


# Answers


class Problem(BaseModel):
    """An error: what was seen, what was expected, and the remedy."""

    model_config = ConfigDict(extra="allow")
    kind: str
    seen: str
    expected: str
    remedy: str


class Error(BaseModel):
    """The form of every error."""

    error: Problem


class Ids(BaseModel):
    """The cluster of each vector, and the number of the first vector."""

    first: int
    ids: list[int]


class Predictions(BaseModel):
    """The cluster that each vector would get; −1 for a new one."""

    ids: list[int]


class Resolved(BaseModel):
    """The live cluster that each ID stands for; −1 if it is gone."""

    ids: list[int]


class Decision(BaseModel):
    """The decision about one vector."""

    cluster: int
    subcluster: int
    kind: Literal["joined", "linked", "new", "held"]
    similarity: float | None
    threshold: float | None
    margin: float | None
    sequence: int
    cluster_margin: float | None
    probability: float | None


class Moved(BaseModel):
    """The decision about each of several vectors, and the events of the move."""

    decisions: list[Decision]
    before: int
    event: int


class Done(BaseModel):
    """The events of a change: numbers from `before` up to but excluding `event`."""

    before: int
    event: int


class Job(BaseModel):
    """A rebuild and how far it got; `report` is there when it was computed.

    `migration` has the rest of the report of the end of a migration: `status`, `loss` and
    `disagreements`; null for other rebuilds.
    """

    job: str
    state: Literal["waiting", "computing", "applying", "done", "failed", "cancelled"]
    apply: bool
    thresholds: dict[str, float] | str | None
    changes_space: bool
    migration: dict[str, Any] | None
    share: float
    tries: int
    seconds: float
    before: int | None
    event: int | None
    report: dict[str, Any] | None
    error: Problem | None


class Jobs(BaseModel):
    """The rebuild that runs or that ended last, without its report; empty if there is none."""

    rebuilds: list[Job]


class ClusterId(BaseModel):
    """The cluster with the enrolled name."""

    cluster: int


class Named(BaseModel):
    """A vector, its own key and its own time as ISO 8601 in UTC."""

    vector: int
    id: str | None
    time: str | None


class Member(Named):
    """A vector with its key, time and payload."""

    payload: Any


class NamedVectors(BaseModel):
    """Vectors in the order of the request."""

    vectors: list[Named]


class Members(BaseModel):
    """Vectors of a cluster, newest first; `next` is the `before` of the next page."""

    vectors: list[Member]
    next: int | None


class Hit(BaseModel):
    """A vector whose payload matches; `rank` is the share of its words that were sought."""

    vector: int
    cluster: int
    payload: Any
    rank: float


class Found(BaseModel):
    """What a search has found; `next` is the `before` of the next page."""

    hits: list[Hit]
    next: int | None


class Changes(BaseModel):
    """What differs between two moments, in figures and in words."""

    since: int
    until: int
    counts: dict[str, int]
    joined: list[list[int]]
    split: list[list[int]]
    new: list[int]
    gone: list[int]
    vectors: list[int] | None = None
    before: list[int] | None = None
    after: list[int] | None = None
    words: str


class Step(BaseModel):
    """All that one command did, or one call outside a command."""

    number: int
    command: str
    calls: int
    vectors: int
    event: int
    undone: bool


class Steps(BaseModel):
    """Steps, newest first; steps to redo come before steps to undo."""

    steps: list[Step]


class Events(BaseModel):
    """Events; `next` is the `since` of the next page."""

    events: list[dict[str, Any]]
    next: int


class Summary(BaseModel):
    """A namespace in a list; counts are null until it is first used after a start."""

    name: str
    vectors: int | None
    subclusters: int | None
    clusters: int | None
    dimension: int | None


class Namespaces(BaseModel):
    """All namespaces that the token may read."""

    namespaces: list[Summary]


class Whoami(BaseModel):
    """The scopes of the caller; `tokens` is whether the service has tokens."""

    scopes: dict[str, str]
    tokens: bool


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok", "degraded"]
    reasons: list[Literal["store", "disk"]]
    version: str
    namespaces: int
