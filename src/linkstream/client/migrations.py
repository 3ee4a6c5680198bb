"""A migration to another encoder: begin it, add vectors, ask about it, end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.client import rebuilds, views
from linkstream.client.rebuilds import RebuildJob
from linkstream.client.requests import Steps, fetch, finite, post, rows_of
from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.migration_checks import target_of, texts
from linkstream.clusterer.verb_values import plain
from linkstream.identity.migration_report import MigrationReport, MigrationStatus
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_ROWS = 256  # vectors of one request


def migrate(
    *, space: Space | None = None, thresholds: Thresholds | str | None = None
) -> Steps[MigrationStatus]:
    """Begin to change to another encoder, or go on with the migration under way; see `Store`.

    Args:
        space: the space of the other encoder; None takes its vectors as they are given.
        thresholds: thresholds for it; "from clusters" finds them from the present clusters; None
            takes those of the namespace.
    """
    target_of(space, thresholds)
    values = {"space": plain(space), "thresholds": plain(thresholds)}
    answer = yield post("migration", values)
    return answer.read(_status)


def migration() -> Steps[MigrationStatus | None]:
    """Return the status of the migration that is under way; None if there is none."""
    return fetch("migration", lambda values: values["migration"] and _status(values["migration"]))


def missing_vectors(limit: int = 1000) -> Steps[npt.NDArray[np.int64]]:
    """Return the numbers of vectors that were not re-embedded yet, the oldest first.

    Args:
        limit: how many, 10,000 at most.
    """
    read = lambda values: np.array([v["vector"] for v in values["vectors"]], np.int64)  # noqa: E731
    return fetch("migration/missing", read, limit=limit)


def add_reencoded(
    vectors: npt.ArrayLike,
    numbers: npt.ArrayLike | None = None,
    *,
    keys: Sequence[str] | None = None,
    old: npt.ArrayLike | None = None,
) -> Steps[int]:
    """Add vectors of the other encoder, in any order; return how many were taken.

    As `Migration.add`, but the vectors go in several requests: after an error some may be there.

    Args:
        vectors: rows of vectors, not centred.
        numbers: the number of the item of each row.
        keys: the items' own keys instead, which are texts.
        old: in a namespace that does not keep its vectors, those of the present encoder.
    """
    rows, taken = finite(rows_of(vectors)), 0
    before = None if old is None else finite(rows_of(old)).tolist()
    named = None if numbers is None else np.asarray(numbers).tolist()
    own = None if keys is None else texts(keys)
    for start in range(0, max(len(rows), 1), _ROWS):
        part = slice(start, start + _ROWS if start + _ROWS < len(rows) else None)
        values = {
            "vectors": rows[part].tolist(),
            "numbers": None if named is None else named[part],
            "ids": None if own is None else own[part],
            **({} if before is None else {"old": before[part]}),
        }
        answer = yield post("migration/vectors", values)
        taken += answer.read(lambda values: int(values["taken"]))
    return taken


def predict_reencoded(X: npt.ArrayLike) -> Steps[npt.NDArray[np.int64]]:
    """Return the cluster that each vector of the other encoder would get, −1 for a new one.

    Args:
        X: rows of vectors of the other encoder.
    """
    rows = finite(rows_of(X))
    answer = yield post("migration/ask", {"vectors": rows.tolist()}, write=False, slow=True)
    return answer.ids(len(rows))


def migration_report() -> Steps[MigrationReport]:
    """Return what the end of the migration would change, and what translation loses."""
    return fetch("migration/report", _report, slow=True)


def start_finish_migration(
    apply: bool = True, *, hold: bool = False, idempotency_key: str | None = None
) -> Steps[RebuildJob]:
    """Start to end the migration while reads and writes go on; return the job.

    The job is a rebuild: `rebuild_job`, `wait_for_rebuild` and `cancel_rebuild` take its ID. Its
    `result()` is a MigrationReport. It is computed again if something changes meanwhile, three
    times at most; then it fails with ChangedError.

    Args:
        apply: whether to go on with the other encoder, or only to tell what would change.
        hold: if changes keep coming, hold them back during the last computation.
        idempotency_key: the same call with the same key is one job, which is applied once.

    Raises:
        NotFoundError: none is under way.
    """
    values = {"apply": check_yes_no("apply", apply), "hold": check_yes_no("hold", hold)}
    answer = yield post("migration/finish", values, key=idempotency_key)
    return answer.read(RebuildJob.of)


def finish_migration(
    *,
    hold: bool = False,
    progress: Callable[[float], object] | None = None,
    idempotency_key: str | None = None,
) -> Steps[MigrationReport]:
    """Go on with the other encoder; return what changed. It may take minutes.

    An undo takes the change back, but not the end of the migration: add its vectors again then.
    The service computes it as a job; see `start_finish_migration`.

    Args:
        hold: if changes keep coming, hold them back during the last computation.
        progress: called each second with the share of the work that is done.
        idempotency_key: the same call with the same key is done once; repeat a call whose outcome
            is unknown with it. The report of one that was done has `rebuild.repeated`.

    Raises:
        NotFoundError: none is under way.
        ChangedError: vectors keep coming; nothing has changed.
    """
    job = yield from start_finish_migration(hold=hold, idempotency_key=idempotency_key)
    done = yield from rebuilds.wait_for_rebuild(job.job, progress)
    found = done.result()
    assert isinstance(found, MigrationReport), "the job ends a migration"
    return found


def abandon_migration() -> Steps[MigrationStatus]:
    """Drop the vectors of the other encoder; return the last status."""
    answer = yield post("migration/abandon", {})
    return answer.read(_status)


def _status(values: Any) -> MigrationStatus:
    return views.build(MigrationStatus, values)


def _report(values: Any) -> MigrationReport:
    return views.build(MigrationReport, values)
