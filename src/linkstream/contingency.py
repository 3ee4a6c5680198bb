"""The table behind the metrics: how many vectors of each identity were given each ID.

Kept sparse, so that thousands of identities and IDs cost no more than their vectors. In `y_pred`,
−1 means that no ID was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, MissingExtraError

Integers = npt.NDArray[np.int64]

NO_ID = -1


@dataclass(frozen=True, slots=True)
class Table:
    """The contingency table: `counts[i]` vectors of identity `rows[i]` have ID `columns[i]`.

    Vectors without an ID are in `identity_sizes` and in no cell.
    """

    identities: npt.NDArray[Any]
    ids: npt.NDArray[Any]
    identity_sizes: Integers
    rows: Integers
    columns: Integers
    counts: Integers
    n_vectors: int
    n_unassigned: int

    @classmethod
    def of(cls, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Table:
        """The table of two lists of labels, checked."""
        labels_true, labels_pred = pair_of_labels(y_true, y_pred)
        identities, who, sizes = np.unique(labels_true, return_inverse=True, return_counts=True)
        given = ~without_id(labels_pred)
        ids, which = np.unique(labels_pred[given], return_inverse=True)
        width = max(len(ids), 1)
        cells, counts = np.unique(who[given] * width + which, return_counts=True)
        return cls(
            identities=identities,
            ids=ids,
            identity_sizes=sizes.astype(np.int64),
            rows=cells // width,
            columns=cells % width,
            counts=counts.astype(np.int64),
            n_vectors=len(labels_true),
            n_unassigned=int(np.count_nonzero(~given)),
        )


def best_matching(table: Table) -> tuple[Integers, Integers, Integers]:
    """Rows, columns and counts of the cells of the best one-to-one matching.

    Solved on the sparse table. Each identity also gets a column of its own that is worth nothing,
    so that every row can be matched; and each edge one more than it is worth, since the solver
    takes a 0 for no edge. That adds the same to every full matching.
    """
    sparse, csgraph = _scipy()
    n, width = len(table.identities), len(table.ids)
    own = np.arange(n)
    worth = np.concatenate([table.counts + 1, np.ones(n, dtype=np.int64)]).astype(np.float64)
    rows = np.concatenate([table.rows, own])
    columns = np.concatenate([table.columns, width + own])
    graph = sparse.csr_matrix((worth, (rows, columns)), shape=(n, width + n))
    row, column = csgraph.min_weight_full_bipartite_matching(graph, maximize=True)
    matched = column < width
    counts = np.asarray(graph[row, column]).ravel().astype(np.int64) - 1
    return row[matched], column[matched], counts[matched]


def _scipy() -> tuple[Any, Any]:
    try:
        from scipy import sparse
        from scipy.sparse import csgraph
    except ImportError as missing:
        raise MissingExtraError(
            "scipy", extra="metrics", purpose="Matching IDs to identities"
        ) from missing
    return sparse, csgraph


def pair_of_labels(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Two lists of labels as arrays of equal length, or ArgumentError."""
    labels_true, labels_pred = _labels("y_true", y_true), _labels("y_pred", y_pred)
    if len(labels_true) != len(labels_pred):
        raise ArgumentError(
            f"y_true has {len(labels_true)} labels and y_pred {len(labels_pred)}",
            expected="one of each for every vector",
            remedy="Give both in order of arrival, none left out.",
        )
    return labels_true, labels_pred


def _labels(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        labels = np.asarray(values)
    except ValueError:  # rows of unequal lengths
        labels = np.empty(0, dtype=object)
    expected = "a list or 1-D array of labels: whole numbers or strings"
    if labels.dtype.kind not in "biufUS":
        raise ArgumentError(
            f"{name} holds {labels.dtype if labels.size else 'values of several kinds'}",
            expected=expected,
            remedy="Use one kind of label, without None.",
        )
    if labels.ndim != 1 or not len(labels):
        raise ArgumentError(
            f"{name} has shape {labels.shape}",
            expected=f"{expected}, at least one",
            remedy="Flatten it, or check that the stream was not empty.",
        )
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        first = int(np.argmin(np.isfinite(labels)))
        raise ArgumentError(
            f"{name} is {labels[first]} at position {first}",
            expected=expected,
            remedy="Leave such vectors out, or label them; −1 in y_pred says: no ID given.",
        )
    return labels


def without_id(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which vectors were given no ID."""
    if labels.dtype.kind in "if":
        return np.asarray(labels == NO_ID)
    return np.zeros(len(labels), dtype=np.bool_)
