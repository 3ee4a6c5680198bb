"""The table of vectors: one row for each, built block by block."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError
from linkstream.tables.columns import Column, PayloadColumns, fields_for
from linkstream.tables.frames import make_frame

BLOCK = 65_536  # rows that are read together
_TYPES = {
    "vector": "int64",
    "cluster": "int64",
    "time": "datetime64[us]",
    "cluster_margin": "float64",
    "probability": "float64",
    "held": "bool",
}

Integers = npt.NDArray[np.int64]


class RowTable:
    """Collects rows and returns them as columns.

    Args:
        own: the columns that every row has, in order, such as "vector", "cluster" and "name".
        columns: the columns to return, in order; None for all. Columns that are not among `own`
            are fields of payloads.
        keep: whether to keep rows; False only finds out the columns, for `blank`.
    """

    def __init__(
        self, own: Collection[str], columns: Collection[str] | None = None, *, keep: bool = True
    ) -> None:
        self._names, self._keep = own, keep
        self._wanted = None if columns is None else _checked(columns)
        self._own = [name for name in own if self._wanted is None or name in self._wanted]
        self._blocks: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in self._own}
        others = None if self._wanted is None else [c for c in self._wanted if c not in own]
        whole = others is None or "payload" in others
        fields = None if others is None else fields_for(others)
        self.reads_payloads = others is None or bool(others)
        self._payloads = PayloadColumns(fields, whole=whole, keep=keep)
        self.n_rows = 0

    def blank(self) -> RowTable:
        """Return a table without rows, whose columns have the names and types of this one."""
        made = RowTable(self._names, self._wanted)
        made._payloads, made.n_rows = self._payloads.blank(), self.n_rows
        return made

    def reads(self, name: str) -> bool:
        """Return whether a column that every row has is part of the table."""
        return name in self._blocks

    def add(self, block: Mapping[str, Any]) -> None:
        """Add rows: `vector` and the columns that `reads` and `reads_payloads` ask for.

        Args:
            block: columns of one length; `payload`, if there is one, has a value of JSON a row.
        """
        for name, blocks in self._blocks.items() if self._keep else ():
            blocks.append(np.asarray(block[name], dtype=_TYPES.get(name, object)))
        if self.reads_payloads:
            self._payloads.add(block.get("payload", [None] * len(block["vector"])))
        self.n_rows += len(block["vector"])

    def columns(self) -> dict[str, Column]:
        """Return the columns by name, in order."""
        found = {name: _column(name, blocks) for name, blocks in self._blocks.items()}
        if self.reads_payloads:
            found |= self._payloads.columns()
        if self._wanted is None:
            return found
        wanted = self._wanted
        return {n: found[n] if n in found else self._empty(n, found) for n in wanted}

    def frame(self, kind: str) -> Any:
        """Return the table as a frame.

        Args:
            kind: "pandas", "arrow" or "numpy".
        """
        return make_frame(self.columns(), kind)

    def _empty(self, name: str, found: Mapping[str, Column]) -> Column:
        """Return a column of a table without rows; raise ArgumentError if there are rows."""
        if self.n_rows:
            raise ArgumentError(
                f"the column {name!r}, which no row has",
                expected=f"some of {', '.join(found) or 'the columns of the table'}",
                remedy="Leave it out, or leave out columns= to see all columns there are.",
            )
        return Column.of_texts([])


def _column(name: str, blocks: list[npt.NDArray[Any]]) -> Column:
    """Return a column of all blocks; numbers that are NaN are missing."""
    values = _joined(name, blocks)
    return Column(values, np.isnan(values) if values.dtype.kind == "f" else None)


def _joined(name: str, blocks: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    empty = np.empty(0, dtype=_TYPES.get(name, object))
    return np.concatenate(blocks) if blocks else empty


def _checked(columns: Collection[str]) -> list[str]:
    names = [] if isinstance(columns, str) else list(columns)
    if (
        not names
        or len(set(map(str, names))) != len(names)
        or not all(isinstance(name, str) for name in names)
    ):
        raise ArgumentError(
            f"columns {columns!r:.80}",
            expected="a list of different names, at least one",
            remedy='Pass a list, as columns=["vector", "cluster"].',
        )
    return names


def names_of(names: Mapping[int, str], clusters: Integers) -> npt.NDArray[Any]:
    """Return the name of each cluster, None for one without; equal names are one object.

    Args:
        names: names by cluster.
        clusters: IDs of clusters, one a row.
    """
    distinct, places = np.unique(clusters, return_inverse=True)
    found = np.empty(len(distinct), dtype=object)
    found[:] = [names.get(cluster) for cluster in distinct.tolist()]
    named: npt.NDArray[Any] = found[places]
    return named
