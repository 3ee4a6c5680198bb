"""The contingency table of the metrics: how many vectors of each identity have each ID.

The table is sparse: its size does not exceed the number of vectors. In `y_pred`, −1 means that no
ID was given.
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

    Vectors without an ID count in `identity_sizes` and in no cell.

    Attributes:
        identities, ids: the labels of rows and columns.
        identity_sizes: number of vectors of each identity.
        rows, columns, counts: the cells that are not zero.
        n_vectors: number of vectors.
        n_unassigned: number of vectors without an ID.
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
        """Check two lists of labels, and return their table."""
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
    """Return rows, columns and counts of the cells of the best one-to-one matching.

    The matching is solved on the sparse table. Each identity also gets a column of its own of
    weight 0, so that every row can be matched. Each weight is raised by 1, since the solver takes
    0 for a missing edge; this adds the same to every full matching.
    """
    sparse, csgraph = _scipy()
    n, width = len(table.identities), len(table.ids)
    own = np.arange(n)
    weights = np.concatenate([table.counts + 1, np.ones(n, dtype=np.int64)]).astype(np.float64)
    rows = np.concatenate([table.rows, own])
    columns = np.concatenate([table.columns, width + own])
    graph = sparse.csr_matrix((weights, (rows, columns)), shape=(n, width + n))
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
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    names: tuple[str, str] = ("y_true", "y_pred"),
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return two lists of labels as arrays; raise ArgumentError if their lengths differ.

    Args:
        y_true: the first labels.
        y_pred: the second labels.
        names: the names of the two arguments, for errors.
    """
    first, second = checked_labels(names[0], y_true), checked_labels(names[1], y_pred)
    if len(first) != len(second):
        raise ArgumentError(
            f"{names[0]} has {len(first)} labels and {names[1]} {len(second)}",
            expected="one of each for every vector",
            remedy="Give both in order of arrival, none left out.",
        )
    return first, second


def checked_labels(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return labels as an array.

    Args:
        name: the name of the argument, for errors.
        values: the labels.

    Raises:
        ArgumentError: the labels are not one-dimensional, empty, not finite, or of another type
            than numbers or strings.
    """
    try:
        labels = np.asarray(values)
    except ValueError:  # rows of unequal lengths
        labels = np.empty(0, dtype=object)
    expected = "a list or 1-D array of whole numbers or strings"
    if labels.dtype.kind not in "biufUS":
        raise ArgumentError(
            f"{name} holds {labels.dtype if labels.size else 'values of several types'}",
            expected=expected,
            remedy="Use labels of one type, without None.",
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
            remedy="Label these vectors, or leave them out.",
        )
    return labels


def without_id(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which vectors have no ID."""
    if labels.dtype.kind in "if":
        return np.asarray(labels == NO_ID)
    return np.zeros(len(labels), dtype=np.bool_)
