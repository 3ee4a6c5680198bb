"""Reads: the verbs that ask; nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.client import bodies, reading
from linkstream.client.asking import BINARY, Steps, get, post, verb
from linkstream.client.views import (
    ClusterDetail,
    ClusterView,
    Info,
    NamespaceView,
    Page,
    VectorView,
)
from linkstream.clusterer.checks import whole_number
from linkstream.engine.events import Event
from linkstream.errors import ArgumentError
from linkstream.explanation import Explanation
from linkstream.identity.corrections import Correction
from linkstream.identity.exemplars import Exemplars
from linkstream.identity.history import History
from linkstream.identity.paths import Pair
from linkstream.identity.review import Question
from linkstream.identity.settling import Settlement
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Step

PAGE = 1_000  # clusters or events asked for at a time


class Reads:
    """The side of a client that asks."""

    # The service

    @verb
    def health(self) -> Steps[dict[str, Any]]:
        """Whether the service is well: its status, version, and how many namespaces it has."""
        answer = yield get("healthz", whole=True)
        return answer.read(dict)

    @verb
    def whoami(self) -> Steps[dict[str, Any]]:
        """What the token allows, by namespace."""
        answer = yield get("v1/whoami", whole=True)
        return answer.read(dict)

    @verb
    def namespaces(self) -> Steps[list[NamespaceView]]:
        """The namespaces that the token may read."""
        answer = yield get("v1/namespaces", whole=True)
        return answer.read(reading.several("namespaces", NamespaceView))

    # The namespace

    @verb
    def info(self) -> Steps[Info]:
        """What the namespace holds, and what it was made with."""
        answer = yield get("")
        return answer.read(reading.info)

    @verb
    def thresholds(self) -> Steps[Thresholds]:
        """The three thresholds."""
        answer = yield get("thresholds")
        return answer.read(reading.reader(Thresholds))

    @verb
    def stats(self) -> Steps[dict[str, Any]]:
        """Figures and rates since the service began, as plain values."""
        answer = yield get("stats")
        return answer.read(dict)

    # Vectors and clusters

    @verb
    def predict(self, X: npt.ArrayLike) -> Steps[npt.NDArray[np.int64]]:
        """Ask for the cluster of each vector, changing nothing; −1 where it would be new."""
        rows = bodies.rows_of(X)
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        answer = yield bodies.sending("ask", rows, write=False)
        return answer.ids(len(rows))

    @verb
    def labels(self) -> Steps[npt.NDArray[np.int64]]:
        """Current cluster of every vector, in order of arrival; −1 for one removed."""
        answer = yield get("labels", accept=BINARY)
        return answer.ids(None, "labels")

    @verb
    def state_hash(self) -> Steps[str]:
        """Hex digest of the whole state, as `Links.state_hash`; equal states, equal digests."""
        answer = yield get("", slow=True, hash="true")
        return answer.read(lambda told: str(told["state_hash"]))

    @verb
    def clusters(
        self, *, order: str = "id", limit: int | None = None, matching: str | None = None
    ) -> Steps[list[ClusterView]]:
        """Clusters by "id", "size" (the largest first) or "recent" (the last seen first).

        Args:
            order: which come first.
            limit: so many at most; None: all.
            matching: only those whose name, or ID, has this text in it.
        """
        most = None if limit is None else whole_number("limit", limit, "how many clusters to show")
        found: dict[int, ClusterView] = {}  # by ID: pages may overlap while vectors come in
        offset, total = 0, 1
        while offset < total and (most is None or len(found) < most):
            answer = yield get("clusters", order=order, limit=PAGE, offset=offset, q=matching)
            some, total = answer.read(reading.clusters)
            found |= {each.id: each for each in some}
            offset = offset + len(some) if some else total
        return list(found.values())[:most]

    @verb
    def cluster(self, cluster_id: int) -> Steps[ClusterDetail]:
        """All that is to be seen of a cluster; of one joined into another, of that one."""
        answer = yield get(f"clusters/{_number(cluster_id)}")
        return answer.read(reading.cluster_detail)

    @verb
    def members(
        self, cluster_id: int, *, limit: int = 50, before: int | None = None
    ) -> Steps[Page]:
        """Vectors of a cluster, the newest first, with what was attached to them.

        For more, ask again with `before` as `next` says.
        """
        place = f"clusters/{_number(cluster_id)}/vectors"
        answer = yield get(place, limit=limit, before=before)
        return answer.read(reading.reader(Page))

    @verb
    def vector(self, vector: int) -> Steps[VectorView]:
        """Where a vector is now, and what was attached to it."""
        answer = yield get(f"vectors/{_number(vector)}")
        return answer.read(reading.reader(VectorView))

    @verb
    def payload(self, vector: int) -> Steps[Any]:
        """What was attached to a vector; None: nothing."""
        answer = yield get(f"vectors/{_number(vector)}")
        return answer.read(lambda told: told["payload"])

    @verb
    def resolve(self, cluster_id: int) -> Steps[int]:
        """The live cluster that an ID now stands for; −1: it was forgotten."""
        answer = yield get(f"clusters/{_number(cluster_id)}")
        return answer.read(lambda told: int(told["id"]))

    @verb
    def named(self, name: str) -> Steps[int]:
        """The cluster that has a name; ArgumentError where none has."""
        offset, total = 0, 1
        while offset < total:
            answer = yield get("clusters", order="id", limit=PAGE, offset=offset, q=name)
            some, total = answer.read(reading.clusters)
            for cluster in some:
                if cluster.name == name:
                    return cluster.id
            offset = offset + len(some) if some else total
        raise ArgumentError(
            f"the name {name!r}",
            expected="one that was given by name() or enrol()",
            remedy="clusters() shows the names there are.",
        )

    # Why

    @verb
    def explain(self, x: npt.ArrayLike, *, limit: int = 5) -> Steps[Explanation]:
        """Why a vector would get the answer it would get; changes nothing."""
        row = bodies.finite(bodies.row_of(x))[0].tolist()
        said = {"vector": row, "limit": limit}
        answer = yield post("explain", said, write=False)
        return answer.read(reading.reader(Explanation))

    @verb
    def explain_pair(self, a: int, b: int, *, of: str = "vectors") -> Steps[Pair]:
        """Why two vectors, subclusters or clusters are, or are not, in one cluster."""
        answer = yield get("explain", a=_number(a), b=_number(b), of=of)
        return answer.read(reading.reader(Pair))

    @verb
    def history(self, cluster_id: int) -> Steps[History]:
        """Birth, splits and joins of a cluster's ID."""
        answer = yield get(f"clusters/{_number(cluster_id)}")
        return answer.read(lambda told: reading.built(History, told["history"]))

    @verb
    def exemplars(self, cluster_id: int) -> Steps[Exemplars | None]:
        """Vectors of a cluster to look at; None where the service does not keep vectors."""
        answer = yield get(f"clusters/{_number(cluster_id)}")
        return answer.read(reading.cluster_detail).exemplars

    # What to look at next

    @verb
    def review_queue(self, limit: int = 20) -> Steps[list[Question]]:
        """The questions whose answers would put most right, best first.

        Answer by `same(q.a, q.b, of=q.of)` or `different(q.a, q.b, of=q.of)`, and ask again.
        """
        answer = yield get("review", limit=limit, slow=True)
        return answer.read(reading.several("questions", Question))

    @verb
    def suggest_merges(self, limit: int = 20) -> Steps[list[MergeSuggestion]]:
        """Pairs of clusters that may be one, by margin, best first."""
        answer = yield get("suggestions", limit=limit, slow=True)
        return answer.read(reading.several("merges", MergeSuggestion))

    @verb
    def suggest_splits(self, limit: int = 20) -> Steps[list[SplitSuggestion]]:
        """Edges that hold clusters together by the least margin, weakest first."""
        answer = yield get("suggestions", limit=limit, slow=True)
        return answer.read(reading.several("splits", SplitSuggestion))

    @verb
    def proposals(self) -> Steps[Settlement]:
        """What `settle` would change."""
        answer = yield get("settle", slow=True)
        return answer.read(reading.reader(Settlement))

    # What happened

    @verb
    def corrections(self) -> Steps[list[Correction]]:
        """All that people said by `same`, `different` and `move`, and that still holds."""
        answer = yield get("corrections")
        return answer.read(reading.several("corrections", Correction))

    @verb
    def events(self, since: int = 0, *, limit: int | None = None) -> Steps[list[Event]]:
        """Typed events from a sequence number on, oldest first; so many at most, or all."""
        since = whole_number("since", since, "the first event to tell of", least=0)
        most = None if limit is None else whole_number("limit", limit, "how many events to tell")
        found: list[Event] = []
        while most is None or len(found) < most:
            asked = PAGE if most is None else min(PAGE, most - len(found))
            answer = yield get("events", since=since, limit=asked)
            some, since = answer.read(reading.event_list)
            found += some
            if not some:
                break
        return found

    @verb
    def steps(self, limit: int = 20) -> Steps[list[Step]]:
        """What `undo(step=True)` takes back, the newest first; so many at most.

        Before them, with `undone`, comes what `redo` can bring back; the last of these first.
        """
        answer = yield get("steps", limit=limit, slow=True)
        return answer.read(reading.several("steps", Step))


def _number(value: object) -> int:
    """A whole number for a path or a query; the service says whether there is such a one."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentError(
            f"{value!r:.80} of type {type(value).__name__}",
            expected="a whole number: a cluster's ID, or that of a vector or subcluster",
            remedy="They come from add(), add_many(), clusters() and events().",
        )
    return int(value)
