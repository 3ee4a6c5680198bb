"""Schemas of request bodies and answers, as described by /openapi.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, StrictBool

Whole = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Row = Annotated[list[Number], SkipValidation]  # engine/door.py checks the numbers and names the row
Rows = Annotated[list[list[Number]], SkipValidation]
Numbers = Annotated[list[Number], Field(fail_fast=True)]
Of = Literal["vectors", "subclusters", "clusters"]


class Body(BaseModel):
    """A JSON body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


# Bodies


class Vectors(Body):
    """Vectors, in order of arrival."""

    vectors: Rows
    payloads: list[Any] | None = None
    weights: Numbers | None = None
    group: str | None = None


class OneVector(Body):
    """One vector."""

    vector: Row
    payload: Any = None
    weight: Number = 1.0
    group: str | None = None


class Grouped(Body):
    """Vectors seen together: all get different clusters."""

    vectors: Rows
    payloads: list[Any] | None = None
    weights: Numbers | None = None
    key: str | None = None


class Enrol(Body):
    """Prototypes of a known identity."""

    name: str
    vectors: Rows
    locked: StrictBool = True


class Explain(Body):
    """A vector to explain."""

    vector: Row
    limit: Annotated[int, Field(ge=1, le=100)] = 5


class Thresholds(Body):
    """The three thresholds."""

    cluster_similarity: Number
    subcluster_similarity: Number
    pair_similarity_max: Number


class Space(Body):
    """The space of the vectors: encoder, mean vector to subtract, dimension."""

    model: str | None = None
    mean: Numbers | None = None
    dimension: Annotated[int, Field(ge=2, le=2**16)] | None = None


class Namespace(Body):
    """The options of a namespace: thresholds or a preset, and options of `Links`."""

    thresholds: Thresholds | None = None
    preset: str | None = None
    space: Space | None = None
    evidence: Literal["nearest", "cluster"] | None = None
    heal: Literal["join", "settle"] | None = None
    track_vectors: StrictBool | None = None
    keep_vectors: StrictBool | None = None
    max_subclusters: Annotated[int, Field(ge=1, le=2**31)] | None = None
    max_idle: Annotated[int, Field(ge=1, le=2**53)] | None = None
    min_size: Annotated[int, Field(ge=1, le=2**31)] | None = None


class Pair(Body):
    """Two vectors, subclusters or clusters."""

    a: Whole
    b: Whole
    of: Of = "vectors"


class Move(Body):
    """A vector and its new cluster."""

    vector: Whole
    cluster: Whole


class Retract(Body):
    """A correction, by the number of its event."""

    correction: Whole


class Name(Body):
    """A name for a cluster; with `claim` its largest subcluster keeps ID and name at a split."""

    cluster: Whole
    name: str
    claim: StrictBool = False


class Rename(Body):
    """A new name; null removes the name."""

    cluster: Whole
    name: str | None


class Ignore(Body):
    """Whether a cluster is left out of suggestions and reviews."""

    cluster: Whole
    on: StrictBool = True


class Remove(Body):
    """A vector to remove."""

    vector: Whole


class Forget(Body):
    """A cluster to forget."""

    cluster: Whole


class Undo(Body):
    """What to take back: everything from the event `to` on; null for the last change.

    With `step`, the whole last step. With `after`, only if no event came from that
    number on.
    """

    to: Whole | None = None
    step: bool = False
    after: Whole | None = None


class Settle(Body):
    """Whether to apply the joins and cuts, or to propose them."""

    apply: StrictBool = False


class Empty(Body):
    """An empty object."""


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


class Decision(BaseModel):
    """The decision about one vector."""

    cluster: int
    subcluster: int
    kind: Literal["joined", "linked", "new"]
    similarity: float | None
    threshold: float | None
    margin: float | None
    sequence: int


class Done(BaseModel):
    """The events of a change: numbers from `before` up to but excluding `event`."""

    before: int
    event: int


class ClusterId(BaseModel):
    """The cluster with the enrolled name."""

    cluster: int


class Cluster(BaseModel):
    """A cluster; `subclusters` is their number."""

    id: int
    size: int
    subclusters: int
    name: str | None
    first_seen: int
    last_seen: int
    pending: bool
    ignored: bool


class Clusters(BaseModel):
    """A page of clusters, and how many there are in all."""

    total: int
    clusters: list[Cluster]


class Member(BaseModel):
    """A vector and its payload."""

    vector: int
    payload: Any


class Members(BaseModel):
    """Vectors of a cluster, newest first; `next` is the `before` of the next page."""

    vectors: list[Member]
    next: int | None


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
    version: str
    namespaces: int
