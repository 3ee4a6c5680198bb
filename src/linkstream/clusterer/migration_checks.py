"""Checks and errors of migrations to another encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import check_rebuild_thresholds, check_space
from linkstream.clusterer.core import Core
from linkstream.clusterer.migration_items import Target
from linkstream.errors import ArgumentError, ChangedError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

TRIES = 5  # of a long call, while vectors keep coming

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Kind:
    """Whether a clusterer knows its vectors by number, and whether it keeps them."""

    tracked: bool
    kept: bool

    @classmethod
    def of(cls, core: Core) -> Kind:
        """Return the kind of a clusterer."""
        return cls(core.track_vectors, core.track_vectors and core.keep_vectors)


def texts(keys: Sequence[str]) -> list[str]:
    """Return keys as a list; raise ArgumentError unless each is a text."""
    found = keys.tolist() if isinstance(keys, np.ndarray) else keys
    remedy = "Pass keys as texts, such as '17'; the numbers of vectors go into numbers=."
    if not isinstance(found, (list, tuple)):
        seen, expected = f"keys of type {type(keys).__name__}", "a list of texts"
        raise ArgumentError(seen, expected=expected, remedy=remedy)
    for place, key in enumerate(found):
        if not isinstance(key, str):
            seen = f"key {place}, {key!r:.80}, of type {type(key).__name__}"
            raise ArgumentError(seen, expected="a text for each key", remedy=remedy)
    return list(found)


def nothing_to_migrate() -> ArgumentError:
    """Return the error for a clusterer without vectors."""
    return ArgumentError(
        "a migration of a clusterer without vectors",
        expected="a clusterer with vectors",
        remedy="Begin a new clusterer for the other encoder.",
    )


def nothing_left() -> ArgumentError:
    """Return the error for a migration whose vectors were all removed."""
    return ArgumentError(
        "a migration of a clusterer whose vectors were all removed",
        expected="a clusterer with vectors",
        remedy="Abandon the migration, or add vectors first.",
    )


def kept_changing(error: ChangedError) -> ChangedError:
    """Return the error for changes during each try of a long call."""
    return ChangedError(
        error.seen,
        expected=f"no change meanwhile in one of {TRIES} tries",
        remedy="Nothing has changed and the migration goes on: try again when fewer vectors come.",
    )


def ended() -> ArgumentError:
    """Return the error for a migration that has ended."""
    return ArgumentError(
        "a migration that was finished or abandoned",
        expected="one that is under way",
        remedy="Call migrate() to begin another one.",
    )


def target_of(space: Space | None, thresholds: Thresholds | str | None) -> Target:
    """Return what a migration leads to; raise ArgumentError for values of other types."""
    check_rebuild_thresholds(thresholds)
    return Target(check_space(space), thresholds)
