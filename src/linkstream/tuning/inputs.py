"""Checked inputs of `tune` and `calibrate`.

All arguments are checked before any work. `calibrate` runs Links hundreds of times, so it works on
a sample: the vectors of the known pairs and groups, then the first vectors of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.contingency import checked_labels
from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError, SpaceError
from linkstream.space import Space
from linkstream.tuning.measurements import Rows, unit_vectors

Pairs = npt.NDArray[np.intp]

VECTORS_MIN = 10
VECTORS_MAX = 2500  # of a calibration
PAIRS_MAX = 600  # of each kind


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVectors:
    """Vectors and labels for `tune`; labels are whole numbers from 0, one per identity."""

    X: Rows
    y: npt.NDArray[np.int64]

    @classmethod
    def of(cls, X: npt.ArrayLike, y: npt.ArrayLike, space: Space | None = None) -> LabelledVectors:
        """Check the arguments of `tune`; raise ArgumentError if they cannot be used."""
        rows = checked_vectors(X, space, remedy="Label more of the stream.")
        labels = checked_labels("y", y)
        if len(labels) != len(rows):
            raise ArgumentError(
                f"{len(rows)} vectors and {len(labels)} labels",
                expected="one label for each vector",
                remedy="Give both in order of arrival, none left out.",
            )
        codes = np.unique(labels, return_inverse=True)[1]
        _check_identities(np.bincount(codes))
        return cls(rows, codes.astype(np.int64))

    def orders(self, n: int, *, seed: int) -> list[npt.NDArray[np.int64]]:
        """Return n orders of arrival: the given order, then seeded permutations."""
        given = np.arange(len(self.y))
        shuffled = [np.random.default_rng([seed, k]).permutation(given) for k in range(1, n)]
        return [given, *shuffled]


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationData:
    """A sample for `calibrate` in order of arrival; pairs hold row numbers of the sample.

    Attributes:
        sample: unit vectors of the space.
        same: pairs of one identity.
        different: pairs of two identities.
        groups: for each pair of `different`, the number of its group, or a number of its own.
        source: "pairs", "groups" or "unlabelled".
    """

    sample: Rows
    same: Pairs
    different: Pairs
    groups: npt.NDArray[np.intp]
    source: str

    @classmethod
    def of(
        cls,
        X: npt.ArrayLike,
        *,
        same: npt.ArrayLike | None,
        different: npt.ArrayLike | None,
        groups: npt.ArrayLike | Iterable[Any] | None,
        space: Space | None,
        seed: int,
    ) -> CalibrationData:
        """Check the arguments of `calibrate`; raise ArgumentError if they cannot be used."""
        remedy = "Give more of the stream; it need not be labelled."
        rows = checked_vectors(X, space, remedy=remedy)
        ours, theirs = _pairs("same", same, len(rows)), _pairs("different", different, len(rows))
        keys = _group_numbers(groups, len(rows))
        _check_both_kinds(same, different, groups)
        _check_no_contradiction(ours, theirs, keys)
        rng = np.random.default_rng(seed)
        ours, theirs = _drawn(ours, PAIRS_MAX, rng), _drawn(theirs, PAIRS_MAX, rng)
        chosen = _sample_rows(len(rows), np.concatenate([ours, theirs]).reshape(-1), keys)
        new_row = np.full(len(rows), -1)
        new_row[chosen] = np.arange(len(chosen))
        within, origin = _pairs_within_groups(keys[chosen], rng)
        own = origin.max(initial=-1) + 1 + np.arange(len(theirs))
        source = "unlabelled" if groups is None else "groups"
        return cls(
            sample=unit_vectors(rows[chosen], space or Space()),
            same=new_row[ours],
            different=np.concatenate([new_row[theirs], within]),
            groups=np.concatenate([own, origin]),
            source=source if same is None else "pairs",
        )


def check_whole_number(name: str, value: object, *, least: int, remedy: str) -> None:
    """Raise ArgumentError unless the argument is a whole number of `least` or more."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]  # a whole number by now
        raise ArgumentError(
            f"{name}={value!r}", expected=f"a whole number of {least} or more", remedy=remedy
        )


def checked_vectors(X: npt.ArrayLike, space: object, *, remedy: str) -> Rows:
    """Return the rows of X; raise ArgumentError or VectorError if they cannot be used."""
    rows = door.vectors(X, dimension=None)
    door.check_norms(rows, norms(rows.astype(np.float64)))
    if not (space is None or isinstance(space, Space)):
        raise ArgumentError(
            f"space is of type {type(space).__name__}",
            expected="a Space or None",
            remedy="Build it with linkstream.Space(mean=..., model=...).",
        )
    if space is not None and space.dimension not in (None, rows.shape[1]):
        raise SpaceError(
            f"a space of dimension {space.dimension} for vectors of dimension {rows.shape[1]}",
            expected="the same dimension",
            remedy="Use a space that was fitted on vectors of the same encoder.",
        )
    if len(rows) < VECTORS_MIN:
        raise ArgumentError(
            f"{len(rows)} vectors",
            expected=f"at least {VECTORS_MIN}, better a thousand or more",
            remedy=remedy,
        )
    return rows


def _check_identities(sizes: npt.NDArray[np.intp]) -> None:
    if len(sizes) == 1:
        raise ArgumentError(
            "labels of one identity only",
            expected="two or more identities, better thirty",
            remedy="Add labelled vectors of other identities.",
        )
    if sizes.max() == 1:
        raise ArgumentError(
            f"{len(sizes)} identities, each seen once",
            expected="at least one identity with several vectors, better most of them",
            remedy="Label several vectors of each identity.",
        )


def _pairs(name: str, given: npt.ArrayLike | None, n: int) -> Pairs:
    """Return checked pairs, each once, the lower row first, in ascending order."""
    if given is None:
        return np.empty((0, 2), dtype=np.intp)
    try:
        pairs = np.asarray(given)
    except ValueError:  # rows of unequal lengths
        pairs = np.empty(len(given), dtype=object)  # type: ignore[arg-type]
    if pairs.shape == (0,):
        pairs = np.empty((0, 2), dtype=np.intp)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ArgumentError(
            f"{name} of shape {pairs.shape} and dtype {pairs.dtype}",
            expected="pairs of row numbers, shape (m, 2), whole numbers",
            remedy="Name each vector by its row in X, from 0.",
        )
    outside = (pairs < 0) | (pairs >= n)
    if outside.any():
        raise ArgumentError(
            f"row {pairs[outside][0]} in {name}",
            expected=f"rows from 0 to {n - 1}, as there are in X",
            remedy="Name each vector by its row in X, from 0.",
        )
    itself = pairs[:, 0] == pairs[:, 1]
    if itself.any():
        raise ArgumentError(
            f"a pair of row {pairs[itself][0, 0]} with itself in {name}",
            expected="two different vectors",
            remedy="Remove this pair.",
        )
    return np.unique(np.sort(pairs.astype(np.intp), axis=1), axis=0)


def _group_numbers(groups: npt.ArrayLike | Iterable[Any] | None, n: int) -> npt.NDArray[np.intp]:
    """Return the group of each vector as a number from 0; −1 for no group or a group of one."""
    if groups is None:
        return np.full(n, -1)
    listed = groups.tolist() if isinstance(groups, np.ndarray) else groups
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise ArgumentError(
            f"groups of type {type(groups).__name__}",
            expected="a list or 1-D array of keys, one for each vector",
            remedy="Give −1 or None to a vector that was seen alone.",
        )
    keys = [key.item() if isinstance(key, np.generic) else key for key in listed]
    if len(keys) != n:
        raise ArgumentError(
            f"{n} vectors and {len(keys)} keys of groups",
            expected="one key for each vector",
            remedy="Give −1 or None to a vector that was seen alone.",
        )
    return _numbered(keys)


def _numbered(keys: list[Any]) -> npt.NDArray[np.intp]:
    wrong = [key for key in keys if not (key is None or isinstance(key, (int, str)))]
    if wrong:
        raise ArgumentError(
            f"key {wrong[0]!r} of type {type(wrong[0]).__name__}",
            expected="whole numbers or strings; −1 or None for none",
            remedy="Number the photos, or name them.",
        )
    codes: dict[int | str, int] = {}
    found = [-1 if key in (None, -1) else codes.setdefault(key, len(codes)) for key in keys]
    group = np.array(found, dtype=np.intp)
    shared = np.bincount(group[group >= 0], minlength=1) > 1
    if not shared.any():
        raise ArgumentError(
            "no two vectors with the same key",
            expected="groups of vectors seen together",
            remedy="Leave groups out if none are known.",
        )
    return np.where((group >= 0) & shared[group], group, -1)


def _check_both_kinds(same: object, different: object, groups: object) -> None:
    if same is not None and different is None and groups is None:
        raise ArgumentError(
            "pairs of one identity only",
            expected="pairs of two identities as well",
            remedy="Give `different`, or `groups` of vectors that were seen together.",
        )
    if different is not None and same is None:
        raise ArgumentError(
            "pairs of two identities only",
            expected="pairs of one identity as well",
            remedy="Give `same`, or say with `groups` which vectors were seen together.",
        )


def _check_no_contradiction(same: Pairs, different: Pairs, keys: npt.NDArray[np.intp]) -> None:
    """Raise ArgumentError if a pair is given both as one identity and as two."""
    apart = {tuple(pair) for pair in different.tolist()}
    both = [pair for pair in map(tuple, same.tolist()) if pair in apart]
    both += [(a, b) for a, b in same.tolist() if keys[a] >= 0 and keys[a] == keys[b]]
    if both:
        raise ArgumentError(
            f"the pair of rows {both[0][0]} and {both[0][1]}, both of one identity and of two",
            expected="each pair on one side only",
            remedy="Correct this pair; vectors of one group are different identities.",
        )


def _drawn(rows: Pairs, most: int, rng: np.random.Generator) -> Pairs:
    """Return at most `most` rows, drawn at random, in their old order."""
    return rows[np.sort(rng.permutation(len(rows))[:most])]


def _sample_rows(n: int, known: Pairs, keys: npt.NDArray[np.intp]) -> Pairs:
    """Return the rows of the sample: those of pairs, of the first groups, and the first of all."""
    chosen = np.zeros(n, dtype=bool)
    chosen[known] = True
    for rows, most in ((np.flatnonzero(keys >= 0), VECTORS_MAX // 2), (np.arange(n), VECTORS_MAX)):
        new = rows[~chosen[rows]]
        chosen[new[: max(most - int(chosen.sum()), 0)]] = True
    return np.flatnonzero(chosen)


def _pairs_within_groups(
    keys: npt.NDArray[np.intp], rng: np.random.Generator
) -> tuple[Pairs, npt.NDArray[np.intp]]:
    """Return the pairs of vectors that share a group, at most 6,000, and the group of each."""
    order = np.argsort(keys, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    found = []
    for rows in members:
        if keys[rows[0]] < 0:
            continue
        first, second = np.triu_indices(len(rows), 1)
        found.append(np.stack([rows[first], rows[second], keys[rows[first]]]))
    if not found:
        return np.empty((0, 2), dtype=np.intp), np.empty(0, dtype=np.intp)
    table = _drawn(np.concatenate(found, axis=1).T, 10 * PAIRS_MAX, rng)
    return np.sort(table[:, :2], axis=1), table[:, 2]
