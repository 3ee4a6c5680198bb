"""The verbs that read much at once: tables, reports of changes, and search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkstream.client import views
from linkstream.client.requests import Request, Steps, fetch, get, query_of
from linkstream.clusterer.checks import whole_number
from linkstream.errors import ArgumentError
from linkstream.identity.changes import Changes
from linkstream.store import Found
from linkstream.store.words import query_of as checked_query
from linkstream.tables import check_kind, make_frame
from linkstream.tables.frames import columns_of

ARROW = "application/vnd.apache.arrow.stream"


def search(
    words: str | None = None,
    *,
    where: Mapping[str, str | float] | None = None,
    cluster: int | None = None,
    limit: int = 20,
    offset: int = 0,
    before: int | None = None,
    order: str = "newest",
) -> Steps[Found]:
    """Return vectors whose payloads have all the words and fields, as `Store.search`.

    The namespace must have been made with `search=True`.

    Args:
        words: words to find in any text of the payload; a "phrase in quotes" has words that follow
            each other, and wor* finds all words that begin so. None: any.
        where: fields of the payload with the values that they must have, compared as texts.
        cluster: only vectors of this cluster; None: of all.
        limit: how many at most, up to 200.
        offset: how many to leave out first.
        before: only vectors with a lower number; the `next` of the answer before.
        order: "newest" first, or "best" first.
    """
    query = checked_query(words, where)
    options = {"cluster": cluster, "before": before, "order": order}
    options |= {"limit": whole_number("limit", limit, "how many to return")}
    options |= {"offset": whole_number("offset", offset, "how many to leave out", least=0)}
    fields = {f"field.{name}": value for name, value in query.fields}
    request = Request("GET", "search", query_of({"q": words, **options, **fields}), slow=True)
    answer = yield request
    return answer.read(views.reader(Found))


def changes(since: int = 0, until: int | None = None) -> Steps[Changes]:
    """Return what differs between two moments, as `Links.changes`.

    Args:
        since: the first moment: how many events there were.
        until: the second moment; None: now.
    """
    options: dict[str, Any] = {"since": since, "until": until, "vectors": "true"}
    return fetch("changes", _changes, slow=True, **options)


def _changes(values: Any) -> Changes:
    arrays = {
        name: np.array(values[name], dtype=np.int64) for name in ("vectors", "before", "after")
    }
    return Changes(
        since=int(values["since"]),
        until=int(values["until"]),
        joined=tuple((int(a), int(b)) for a, b in values["joined"]),
        split=tuple((int(a), int(b)) for a, b in values["split"]),
        new=tuple(map(int, values["new"])),
        gone=tuple(map(int, values["gone"])),
        **arrays,
    )


def to_frame(
    kind: str = "pandas",
    *,
    cluster: int | None = None,
    since: int | None = None,
    columns: Sequence[str] | None = None,
) -> Steps[Any]:
    """Return one row for each vector, as `Store.to_frame`; the service sends Arrow.

    Args:
        kind: "pandas" for a DataFrame, "arrow" for a Table, "numpy" for a dict of arrays.
        cluster: only vectors of this cluster; None: of all.
        since: the number of the first vector; None: 0.
        columns: the columns to return, in order; None for all.
    """
    if isinstance(columns, str) or any("," in name for name in columns or ()):
        raise ArgumentError(
            f"columns={columns!r:.80}",
            expected="a list of names without commas",
            remedy='Pass a list, as columns=["vector", "cluster"].',
        )
    joined = None if columns is None else ",".join(columns)
    return _table("tables/vectors", kind, cluster=cluster, since=since, columns=joined)


def clusters_frame(
    kind: str = "pandas", *, order: str = "id", limit: int | None = None, exemplars: int = 3
) -> Steps[Any]:
    """Return one row for each cluster, as `Store.clusters_frame`; the service sends Arrow.

    Args:
        kind: "pandas" for a DataFrame, "arrow" for a Table, "numpy" for a dict of arrays.
        order: "id", "size" (largest first) or "recent" (last seen first).
        limit: how many at most; None for all.
        exemplars: how many vectors to show of each, the newest first.
    """
    options: dict[str, Any] = {"order": order, "limit": limit, "exemplars": exemplars}
    return _table("tables/clusters", kind, **options)


def _table(path: str, kind: str, **query: Any) -> Steps[Any]:
    check_kind(kind)
    check_kind("arrow")
    answer = yield get(path, accept=ARROW, slow=True, **query)
    return make_frame(columns_of(answer.body), kind)
