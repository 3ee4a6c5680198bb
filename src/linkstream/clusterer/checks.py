"""Checks of plain arguments: each returns the argument, or raises ArgumentError."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import FULL
from linkstream.errors import ArgumentError
from linkstream.identity.cluster_labels import FROM_CLUSTERS
from linkstream.identity.ledger import KINDS
from linkstream.identity.rebuild_thresholds import RebuildThresholds
from linkstream.identity.texts import is_name
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

AT_ONCE = 10_000  # vectors that one call moves or removes
EVIDENCE = ("nearest", "cluster")  # what decides on a vector that joins no subcluster


def whole_number(name: str, value: int, meaning: str, *, least: int = 1) -> int:
    """Return a whole number of `least` or more; raise ArgumentError, with its meaning, if not."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ArgumentError(
            f"{name}={value!r:.80}",
            expected=f"a whole number of {least} or more",
            remedy=f"It says {meaning}.",
        )
    return min(int(value), 2**62)


def check_yes_no(name: str, value: object) -> bool:
    """Return a truth value; raise ArgumentError for anything but True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(
            f"{name}={value!r:.80}", expected="True or False", remedy="Pass one of the two."
        )
    return bool(value)


def check_ids(ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return cluster IDs as an array; raise ArgumentError unless they are a list of integers."""
    return _integers("IDs", ids, "IDs come from add(), add_many(), labels() or clusters().")


def check_numbers(numbers: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    """Return numbers of vectors likewise."""
    return _integers("numbers", numbers, "A vector's number is its place in order of arrival.")


def _integers(name: str, values: npt.ArrayLike | None, remedy: str) -> npt.NDArray[np.int64]:
    try:
        given = np.asarray(values)
    except ValueError:  # rows of unequal lengths
        given = np.empty((0, 0))
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name} of shape {given.shape} and type {given.dtype}",
            expected="a list or 1-D array of integers",
            remedy=remedy,
        )
    wide = given.dtype == np.uint64
    return (np.minimum(given, np.uint64(2**62)) if wide else given).astype(np.int64)


def several_vectors(vector: object) -> list[Any] | None:
    """Return numbers or keys of vectors that were given as a list; None for a single vector.

    Coordinates are no such list: numbers are integers.
    """
    if isinstance(vector, np.ndarray) and vector.ndim == 1 and vector.dtype.kind in "iu":
        vector = vector.tolist()
    if not isinstance(vector, (list, tuple)) or not vector:
        return None
    kinds = (int, np.integer, str)
    if not all(isinstance(each, kinds) and not isinstance(each, bool) for each in vector):
        return None
    listed = [each if isinstance(each, str) else int(each) for each in vector]
    if len(set(listed)) < len(listed) or len(listed) > AT_ONCE:
        raise ArgumentError(
            f"{len(listed)} vectors, {len(set(listed))} of them different",
            expected=f"different vectors, at most {AT_ONCE} in one call",
            remedy="Name each vector once; split a long list into several calls.",
        )
    return listed


def check_kind(of: str) -> None:
    """Raise ArgumentError unless `of` is "vectors", "subclusters" or "clusters"."""
    if not isinstance(of, str) or of not in KINDS:
        raise ArgumentError(
            f"of={of!r}",
            expected=" or ".join(map(repr, KINDS)),
            remedy="It says what the two numbers are.",
        )


def check_name(name: object) -> None:
    """Raise ArgumentError unless `name` can be a cluster's name."""
    if not is_name(name):
        raise ArgumentError(
            f"the name {name!r}",
            expected="a text that is not empty, of whole characters",
            remedy="rename(cluster, None) takes a name away.",
        )


def check_group(group: object) -> None:
    """Raise ArgumentError unless `group` is a text or None."""
    if not (group is None or isinstance(group, str)):
        raise ArgumentError(
            f"a group of type {type(group).__name__}",
            expected="a text",
            remedy="Name the photo, or whatever the vectors were seen in.",
        )


def check_space(space: object) -> Space:
    """Return the space, or one without a mean for None; raise ArgumentError for anything else."""
    if not (space is None or isinstance(space, Space)):
        raise ArgumentError(
            f"space is of type {type(space).__name__}",
            expected="a Space or None",
            remedy="Build it with linkstream.Space(mean=..., model=...).",
        )
    return space or Space()


def missing_weights(weight: npt.ArrayLike, n: int) -> list[int]:
    """Return how many 256ths each of n vectors weighs less than 1; FULL means weight 0.

    >>> missing_weights(0.5, 2), missing_weights([1.0, 0.0, 0.001], 3)
    ([128, 128], [0, 256, 255])
    """
    try:
        given = np.broadcast_to(np.asarray(weight, dtype=np.float64), (n,)).tolist()
    except (TypeError, ValueError):
        given = [math.nan]
    if not all(0.0 <= value <= 1.0 for value in given):
        raise ArgumentError(
            f"weight={weight!r:.80}",
            expected="a number from 0 to 1, or one for each vector",
            remedy="1 is a vector of full quality; 0 asks without learning.",
        )
    return [FULL - max(round(value * FULL), 1) if value else FULL for value in given]


def check_thresholds(thresholds: object) -> None:
    """Raise ArgumentError unless `thresholds` is a Thresholds or None."""
    if not (thresholds is None or isinstance(thresholds, Thresholds)):
        raise ArgumentError(
            f"thresholds of type {type(thresholds).__name__}",
            expected="Thresholds or None",
            remedy="None takes those of the clusterer.",
        )


def for_rebuilds(given: object, stream: Thresholds) -> RebuildThresholds | None:
    """Return thresholds of rebuilds beside those of the stream; raise ArgumentError if wrong."""
    check_thresholds(given)
    return RebuildThresholds(given, stream) if isinstance(given, Thresholds) else None


def check_rebuild_thresholds(thresholds: object) -> None:
    """Raise ArgumentError unless `thresholds` is a Thresholds, "from clusters" or None."""
    known = thresholds is None or isinstance(thresholds, Thresholds)
    if known or (isinstance(thresholds, str) and thresholds == FROM_CLUSTERS):
        return
    kind = f" of type {type(thresholds).__name__}"
    raise ArgumentError(
        f"thresholds{f'={thresholds!r:.80}' if isinstance(thresholds, str) else kind}",
        expected=f"Thresholds, {FROM_CLUSTERS!r} or None",
        remedy="None takes those of the clusterer.",
    )


def check_evidence(evidence: str) -> bool:
    """Return whether whole clusters are the evidence; raise ArgumentError for an unknown word."""
    if evidence not in EVIDENCE:
        raise ArgumentError(
            f"evidence={evidence!r}",
            expected=" or ".join(map(repr, EVIDENCE)),
            remedy="'nearest' is the paper's: the most similar subcluster alone decides.",
        )
    return evidence == EVIDENCE[1]


def check_keep_vectors(keep_vectors: bool | None, *, track_vectors: bool) -> bool:
    """Return whether to keep vectors; raise ArgumentError if they are not tracked."""
    if keep_vectors and not track_vectors:
        raise ArgumentError(
            "keep_vectors=True with track_vectors=False",
            expected="vectors that are tracked",
            remedy="Leave track_vectors=True; vectors are then kept too, unless you say otherwise.",
        )
    return track_vectors if keep_vectors is None else bool(keep_vectors)
