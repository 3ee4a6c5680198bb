"""Tables and reports of a store: those of a clusterer, with what the store keeps for vectors.

`StoreReader` takes `to_frame`, `clusters_frame` and `changes` as its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import tabular
from linkstream.clusterer.tabular import Selection
from linkstream.errors import UnknownIdError
from linkstream.identity.changes import Changes
from linkstream.tables import Column, RowTable, check_format, check_kind, encoded, make_frame

if TYPE_CHECKING:
    from linkstream.store.reader import StoreReader

BLOCK = 8_192  # rows that are read together; other calls run between two blocks

Integers = npt.NDArray[np.int64]


def to_frame(
    self: StoreReader,
    kind: str = "pandas",
    *,
    cluster: int | None = None,
    since: int | None = None,
    columns: Sequence[str] | None = None,
) -> Any:
    """As `Links.to_frame`.

    Columns: `vector` (its number), `cluster`, `name` (of the cluster; None if it has none),
    `cluster_margin` and `probability` (of the decision) and `held` where there is a model of
    confidence, `id` and `time` (the vector's own, in UTC), and one for each field of payloads: see
    docs/tables.md.
    Clusters are those of one moment; the rest is read after it, in blocks, while others may write.
    """
    check_kind(kind)
    chosen = _chosen(self, cluster, since, columns)
    table = RowTable((*chosen.own, "id", "time"), columns)
    for block in _blocks(self, table, chosen):
        table.add(block)
    return table.frame(kind)


def encoded_rows(
    store: StoreReader,
    form: str,
    *,
    cluster: int | None = None,
    since: int | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[bytes]:
    """Yield the table of `to_frame` as bytes of a file, block by block, in bounded memory.

    Payloads are read twice if the table has columns of them: first for the types of the columns.
    Until these are known, the parts are empty.
    """
    check_format(form)
    chosen = _chosen(store, cluster, since, columns)
    table = RowTable((*chosen.own, "id", "time"), columns, keep=False)
    for block in _blocks(store, table, chosen) if table.reads_payloads else ():
        table.add(block)
        yield b""
    yield from encoded(_columns(store, table, chosen), form)


def _columns(store: StoreReader, table: RowTable, chosen: Selection) -> Iterator[dict[str, Column]]:
    """Yield the columns of each block of rows, at least of one."""
    yield table.blank().columns()
    for block in _blocks(store, table, chosen):
        part = table.blank()
        part.add(block)
        yield part.columns()


def encoded_clusters(store: StoreReader, form: str, **options: Any) -> Iterator[bytes]:
    """Yield the table of `clusters_frame` as bytes of a file."""
    check_format(form)
    found = store.handle.read(lambda model: tabular.cluster_columns(model.links.core, **options))
    yield from encoded(iter([found]), form)


def _chosen(
    store: StoreReader, cluster: int | None, since: int | None, columns: Sequence[str] | None
) -> Selection:
    return store.handle.read(
        lambda model: tabular.select(model.links.core, cluster, since, columns)
    )


def _blocks(store: StoreReader, table: RowTable, chosen: Selection) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of vectors, with the columns that a table reads."""
    for block in chosen.blocks(BLOCK):
        yield {**block, **_kept(store, table, block["vector"])}


def _kept(store: StoreReader, table: RowTable, numbers: Integers) -> dict[str, Any]:
    """Return what the store keeps for vectors: the columns that a table reads, and no others."""
    found: dict[str, Any] = {}
    if table.reads("id"):
        found["id"] = _read(store.keys, numbers)
    if table.reads("time"):
        found["time"] = _read(_times_of(store), numbers)
    if table.reads_payloads:
        found["payload"] = _read(store.payloads, numbers)
    return found


def _times_of(store: StoreReader) -> Callable[[Any], list[Any]]:
    return lambda numbers: list(store.times(numbers))


def _read(read: Callable[[Any], list[Any]], numbers: Integers) -> list[Any]:
    """Return what vectors have; None for those that were removed or undone since."""
    try:
        return read(numbers)
    except UnknownIdError:
        return [_read_one(read, number) for number in numbers.tolist()]


def _read_one(read: Callable[[Any], list[Any]], number: int) -> Any:
    try:
        return read([number])[0]
    except UnknownIdError:
        return None


def clusters_frame(
    self: StoreReader,
    kind: str = "pandas",
    *,
    order: str = "id",
    limit: int | None = None,
    exemplars: int = 3,
) -> Any:
    """As `Links.clusters_frame`."""
    check_kind(kind)
    options: dict[str, Any] = {"order": order, "limit": limit, "exemplars": exemplars}
    return make_frame(
        self.handle.read(lambda model: tabular.cluster_columns(model.links.core, **options)), kind
    )


def changes(self: StoreReader, since: int = 0, until: int | None = None) -> Changes:
    """As `Links.changes`.

    A moment is a number of events: keep `n_events` now to ask for the changes since. The first call
    reads the journal once, later calls only what is new, in the thread of the caller; the answer
    then costs what the events between the two moments changed.
    """
    return self.followed.changes(since, until)
