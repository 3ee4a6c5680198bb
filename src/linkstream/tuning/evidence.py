"""What calibration learns from: vectors, pairs that are known, and vectors seen together; checked.

Everything is checked before any work, and cut to a sample that can be run hundreds of times: the
vectors of the pairs and groups, and the first ones of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError, SpaceError
from linkstream.space import Space
from linkstream.tuning.examples import VECTORS_MIN
from linkstream.tuning.measurements import Rows, brought

Pairs = npt.NDArray[np.intp]

VECTORS_MAX = 2500
PAIRS_MAX = 600  # of each kind


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A sample in order of arrival, and what is known of it; rows are those of the sample.

    Attributes:
        sample: unit vectors of the space.
        same: pairs of one identity, in an order of their own.
        different: pairs of two identities, likewise.
        groups: for each pair of `different` the group it comes from, or a number of its own.
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
        space: Space,
        seed: int,
    ) -> Evidence:
        """The evidence of the arguments of `calibrate`, or ArgumentError."""
        rows = _vectors(X, space)
        ours, theirs = _pairs("same", same, len(rows)), _pairs("different", different, len(rows))
        keys = _keys(groups, len(rows))
        _check_sides(same, different, groups)
        _check_apart(ours, theirs, keys)
        rng = np.random.default_rng(seed)
        ours, theirs = _some(ours, rng), _some(theirs, rng)
        kept = _kept(len(rows), np.concatenate([ours, theirs]).reshape(-1), keys)
        place = np.full(len(rows), -1)
        place[kept] = np.arange(len(kept))
        seen, origin = _pairs_of_groups(keys[kept], PAIRS_MAX * 10, rng)
        own = origin.max(initial=-1) + 1 + np.arange(len(theirs))
        source = "unlabelled" if groups is None else "groups"
        return cls(
            sample=brought(rows[kept], space),
            same=place[ours],
            different=np.concatenate([place[theirs], seen]),
            groups=np.concatenate([own, origin]),
            source=source if same is None else "pairs",
        )


def _vectors(X: npt.ArrayLike, space: Space) -> Rows:
    rows = door.vectors(X, dimension=None)
    door.check_norms(rows, norms(rows.astype(np.float64)))
    if len(rows) < VECTORS_MIN:
        raise ArgumentError(
            f"{len(rows)} vectors",
            expected=f"at least {VECTORS_MIN}, better a thousand or more",
            remedy="Give more of the stream; it need not be labelled.",
        )
    if space.dimension not in (None, rows.shape[1]):
        raise SpaceError(
            f"a space of dimension {space.dimension} for vectors of dimension {rows.shape[1]}",
            expected="the same dimension",
            remedy="Take the mean of vectors of the same encoder.",
        )
    return rows


def _pairs(name: str, given: npt.ArrayLike | None, n: int) -> Pairs:
    """Checked pairs, the lower row first, in ascending order, each once."""
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
            remedy="Leave it out: it says nothing.",
        )
    return np.unique(np.sort(pairs.astype(np.intp), axis=1), axis=0)


def _keys(groups: npt.ArrayLike | Iterable[Any] | None, n: int) -> npt.NDArray[np.intp]:
    """The group of each vector as a number from 0; −1 for none, and for a group of one."""
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
            remedy="Leave groups out where none are known.",
        )
    return np.where((group >= 0) & shared[group], group, -1)


def _check_sides(same: object, different: object, groups: object) -> None:
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


def _some(pairs: Pairs, rng: np.random.Generator) -> Pairs:
    return pairs[np.sort(rng.permutation(len(pairs))[:PAIRS_MAX])]


def _kept(n: int, known: Pairs, keys: npt.NDArray[np.intp]) -> Pairs:
    """Rows of the sample: those of pairs, of the first groups, and the first of all."""
    chosen = np.zeros(n, dtype=bool)
    chosen[known] = True
    for rows, most in ((np.flatnonzero(keys >= 0), VECTORS_MAX // 2), (np.arange(n), VECTORS_MAX)):
        new = rows[~chosen[rows]]
        chosen[new[: max(most - int(chosen.sum()), 0)]] = True
    return np.flatnonzero(chosen)


def _pairs_of_groups(
    keys: npt.NDArray[np.intp], most: int, rng: np.random.Generator
) -> tuple[Pairs, npt.NDArray[np.intp]]:
    """All pairs of vectors of a group, and the group of each; a seeded part of very many."""
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
    table = np.concatenate(found, axis=1).T
    table = table[np.sort(rng.permutation(len(table))[:most])]
    return np.sort(table[:, :2], axis=1), table[:, 2]


def _check_apart(same: Pairs, different: Pairs, keys: npt.NDArray[np.intp]) -> None:
    """No pair may be of one identity and of two."""
    apart = {tuple(pair) for pair in different.tolist()}
    both = [pair for pair in map(tuple, same.tolist()) if pair in apart]
    both += [(a, b) for a, b in same.tolist() if keys[a] >= 0 and keys[a] == keys[b]]
    if both:
        raise ArgumentError(
            f"the pair of rows {both[0][0]} and {both[0][1]}, both of one identity and of two",
            expected="each pair on one side only",
            remedy="Look at it again; vectors of one group are different identities.",
        )
