"""Shapes: what requests and answers look like, as /openapi.json tells it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, StrictBool

Whole = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Row = Annotated[list[Number], SkipValidation]  # the door judges numbers, and names the row
Rows = Annotated[list[list[Number]], SkipValidation]
Numbers = Annotated[list[Number], Field(fail_fast=True)]
Of = Literal["vectors", "subclusters", "clusters"]


class Said(BaseModel):
    """A body: nothing is in it that is not known."""

    model_config = ConfigDict(extra="forbid")


# Bodies


class Vectors(Said):
    """Vectors, in order of arrival."""

    vectors: Rows
    payloads: list[Any] | None = None
    weights: Numbers | None = None
    group: str | None = None


class OneVector(Said):
    """One vector."""

    vector: Row
    payload: Any = None
    weight: Number = 1.0
    group: str | None = None


class Grouped(Said):
    """Vectors seen together: all get different clusters."""

    vectors: Rows
    payloads: list[Any] | None = None
    weights: Numbers | None = None
    key: str | None = None


class Enrolled(Said):
    """Vectors of somebody known."""

    name: str
    vectors: Rows
    locked: StrictBool = True


class Asked(Said):
    """A vector to explain."""

    vector: Row
    limit: Annotated[int, Field(ge=1, le=100)] = 5


class Thresholds(Said):
    """The three thresholds."""

    cluster_similarity: Number
    subcluster_similarity: Number
    pair_similarity_max: Number


class Space(Said):
    """The space of the vectors: which encoder, the mean that is taken off, and the dimension."""

    model: str | None = None
    mean: Numbers | None = None
    dimension: Annotated[int, Field(ge=2, le=2**16)] | None = None


class Namespace(Said):
    """What a namespace is made with: thresholds, or a preset."""

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


class Two(Said):
    """Two vectors, subclusters or clusters."""

    a: Whole
    b: Whole
    of: Of = "vectors"


class Move(Said):
    """A vector, and where it belongs."""

    vector: Whole
    cluster: Whole


class Retract(Said):
    """A correction, by the number of its event."""

    correction: Whole


class Name(Said):
    """A name for a cluster; `claim`: its ID goes with the name's prototypes."""

    cluster: Whole
    name: str
    claim: StrictBool = False


class Rename(Said):
    """Another name; null: none."""

    cluster: Whole
    name: str | None


class Ignore(Said):
    """Whether a cluster is left out of suggestions and reviews."""

    cluster: Whole
    on: StrictBool = True


class Remove(Said):
    """A vector to take out."""

    vector: Whole


class Forget(Said):
    """A cluster to forget."""

    cluster: Whole


class Undo(Said):
    """How far back; null: the last change. `after`: only if no event came from that number on.

    `step`: the whole last step.
    """

    to: Whole | None = None
    step: bool = False
    after: Whole | None = None


class Nothing(Said):
    """Nothing need be said."""


# Answers


class Problem(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(extra="allow")
    kind: str
    seen: str
    expected: str
    remedy: str


class Error(BaseModel):
    """The shape of every error."""

    error: Problem


class Ids(BaseModel):
    """The cluster of each vector; `first` is the number that the first of them got."""

    first: int
    ids: list[int]


class Answers(BaseModel):
    """The cluster of each vector; −1: it would be new."""

    ids: list[int]


class Decision(BaseModel):
    """What happened to one vector."""

    cluster: int
    subcluster: int
    kind: Literal["joined", "linked", "new"]
    similarity: float | None
    threshold: float | None
    margin: float | None
    sequence: int


class Done(BaseModel):
    """A change was made, by the events from number `before` up to, not with, `event`."""

    before: int
    event: int


class Found(BaseModel):
    """The cluster that was made or found."""

    cluster: int


class Cluster(BaseModel):
    """A cluster; `subclusters` is how many it has."""

    id: int
    size: int
    subclusters: int
    name: str | None
    first_seen: int
    last_seen: int
    pending: bool
    ignored: bool


class Clusters(BaseModel):
    """A page of clusters, of so many."""

    total: int
    clusters: list[Cluster]


class Member(BaseModel):
    """A vector, and what was attached to it."""

    vector: int
    payload: Any


class Members(BaseModel):
    """Vectors of a cluster, newest first; `next` goes into `before` for more."""

    vectors: list[Member]
    next: int | None


class Step(BaseModel):
    """What one command did, or one call that was part of none."""

    number: int
    command: str
    calls: int
    vectors: int
    event: int
    undone: bool


class Steps(BaseModel):
    """Steps, the newest first; those that can be redone come before those that can be undone."""

    steps: list[Step]


class Events(BaseModel):
    """Events; `next` goes into `since` for more."""

    events: list[dict[str, Any]]
    next: int


class Summary(BaseModel):
    """A namespace in a list; figures are null until it is first used after a start."""

    name: str
    vectors: int | None
    subclusters: int | None
    clusters: int | None
    dimension: int | None


class Namespaces(BaseModel):
    """All namespaces that one may read."""

    namespaces: list[Summary]


class Whoami(BaseModel):
    """What a token allows; `tokens`: whether any exist."""

    scopes: dict[str, str]
    tokens: bool


class Health(BaseModel):
    """How the service is."""

    status: Literal["ok", "degraded"]
    version: str
    namespaces: int
