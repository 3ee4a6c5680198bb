"""Tables of a store: those of a clusterer, with what the store keeps for each vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import tabular
from linkstream.clusterer.tabular import OWN
from linkstream.errors import UnknownIdError
from linkstream.tables import RowTable, check_kind, make_frame

if TYPE_CHECKING:
    from linkstream.store.reader import StoreReader

BLOCK = 8_192  # rows that are read together; other calls run between two blocks

Integers = npt.NDArray[np.int64]


def to_frame(
    store: StoreReader,
    kind: str,
    cluster: int | None,
    since: int | None,
    columns: Sequence[str] | None,
) -> Any:
    """Return what `Store.to_frame` returns."""
    check_kind(kind)
    table = RowTable(OWN, columns)
    for block in blocks(store, table, cluster=cluster, since=since):
        table.add(block)
    return table.frame(kind)


def blocks(
    store: StoreReader, table: RowTable, *, cluster: int | None = None, since: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of vectors, with the columns that a table reads."""
    chosen = store.handle.read(lambda model: tabular.select(model.links.core, cluster, since))
    for block in chosen.blocks(BLOCK):
        yield {**block, **_kept(store, table, block["vector"])}


def _kept(store: StoreReader, table: RowTable, numbers: Integers) -> dict[str, Any]:
    """Return what the store keeps for vectors: the columns that a table reads, and no others."""
    return {"payload": _payloads(store, numbers)} if table.reads_payloads else {}


def _payloads(store: StoreReader, numbers: Integers) -> list[Any]:
    try:
        return store.payloads(numbers)
    except UnknownIdError:  # some were removed or undone since
        return [_payload(store, number) for number in numbers.tolist()]


def _payload(store: StoreReader, number: int) -> Any:
    try:
        return store.payloads([number])[0]
    except UnknownIdError:
        return None


def clusters_frame(store: StoreReader, kind: str, options: dict[str, Any]) -> Any:
    """Return what `Store.clusters_frame` returns."""
    check_kind(kind)
    found = store.handle.read(lambda model: tabular.cluster_columns(model.links.core, **options))
    return make_frame(found, kind)
