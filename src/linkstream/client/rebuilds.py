"""Rebuilds that the service runs as jobs: start one, ask how far it is, wait for it, cancel it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy.typing as npt

from linkstream.client import errors, views
from linkstream.client.requests import Request, Steps, fetch, get, post
from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.verbs import Rebuild
from linkstream.errors import ArgumentError, LinkstreamError
from linkstream.identity.migration_report import MigrationReport
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_WAIT = 20  # seconds that one request waits for the end of a job
_OFTEN = 1  # if its progress is wanted
_ID = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True)
class RebuildJob:
    """A rebuild that the service runs, and how far it got.

    Attributes:
        job: its ID.
        state: "waiting", "computing", "applying"; or, at the end, "done", "failed" or "cancelled".
        apply: whether it is applied, or only tells what would change.
        thresholds: as it was started with: plain values, "from clusters" or None.
        changes_space: whether it was started with `space=` or `vectors=`.
        share: the share of the present computation that is done.
        tries: how often it was computed, since the namespace had changed meanwhile.
        seconds: since its start, until its end.
        before: the first event of the rebuild; None if it was not applied.
        event: the first event after it.
        report: what changes, or has changed; None until it was computed.
        migration: the whole report if it is the end of a migration, else None; before it was
            computed it has the status alone.
        error: why it failed; None otherwise.
    """

    job: str
    state: Literal["waiting", "computing", "applying", "done", "failed", "cancelled"]
    apply: bool
    thresholds: Any
    changes_space: bool
    share: float
    tries: int
    seconds: float
    before: int | None
    event: int | None
    report: RebuildReport | None
    migration: MigrationReport | None = None
    error: Any = None

    @classmethod
    def of(cls, values: Any) -> RebuildJob:
        """Return the job that plain values describe."""
        values = dict(values)
        if (told := values.get("migration")) is not None:
            rebuild = {} if values["report"] is None else {"rebuild": values["report"]}
            values["migration"] = {**told, **rebuild}
        found = views.build(cls, values)
        return (
            found if found.error is None else replace(found, error=errors.from_values(found.error))
        )

    @property
    def ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state in ("done", "failed", "cancelled")

    def result(self) -> RebuildReport | MigrationReport:
        """Return the report of a job that is done, its `migration` if it has one.

        A job that failed raises its error.

        Raises:
            ArgumentError: it is not done.
        """
        if isinstance(self.error, LinkstreamError):
            raise self.error
        if self.state != "done" or self.report is None:
            seen, remedy = f"a rebuild that is {self.state}", "wait_for_rebuild() waits for it."
            raise ArgumentError(seen, expected="one that is done", remedy=remedy)
        return self.migration or self.report


def start_rebuild(
    apply: bool = False,
    *,
    thresholds: Thresholds | str | None = None,
    space: Space | None = None,
    vectors: npt.ArrayLike | None = None,
    hold: bool = False,
    idempotency_key: str | None = None,
) -> Steps[RebuildJob]:
    """Start a rebuild that the service computes while reads and writes go on; return the job.

    It is applied if nothing has changed in between, else computed again, three times at most; then
    it fails with ChangedError. Needs a token of scope write.

    Args:
        apply: whether to apply it, as for `rebuild`.
        thresholds: as for `rebuild`.
        space: as for `rebuild`.
        vectors: as for `rebuild`; they have to fit into one request. For more, use `migrate`.
        hold: if changes keep coming, hold them back during the last computation.
        idempotency_key: the same call with the same key is one job, which is applied once.
    """
    check_yes_no("apply", apply)
    values = Rebuild(apply, thresholds=thresholds, space=space, vectors=vectors).to_json()
    values["hold"] = check_yes_no("hold", hold)
    answer = yield post("rebuilds", values, key=idempotency_key)
    return answer.read(RebuildJob.of)


def rebuild_jobs() -> Steps[list[RebuildJob]]:
    """Return the rebuild that runs or that ended last, without its report; empty without one."""
    return fetch("rebuilds", lambda values: [RebuildJob.of(each) for each in values["rebuilds"]])


def rebuild_job(job: str) -> Steps[RebuildJob]:
    """Return how far a rebuild is.

    Args:
        job: the ID of the job.

    Raises:
        NotFoundError: the service was restarted since, or another rebuild was started.
    """
    return fetch(_path(job), RebuildJob.of)


def wait_for_rebuild(
    job: str, progress: Callable[[float], object] | None = None
) -> Steps[RebuildJob]:
    """Wait until a rebuild has ended; return it. Its `result()` is the report.

    Args:
        job: the ID of the job.
        progress: called each second with the share of the work that is done.

    Raises:
        NotFoundError: the service was restarted since, or another rebuild was started.
    """
    while True:
        answer = yield get(_path(job), wait=_WAIT if progress is None else _OFTEN)
        found = answer.read(RebuildJob.of)
        if progress is not None:
            progress(found.share)
        if found.ended:
            return found


def cancel_rebuild(job: str) -> Steps[RebuildJob]:
    """Cancel a rebuild, or forget one that has ended; return its last state.

    A rebuild that is "applying" may still be done; `undo(to=done.before)` takes it back then.

    Args:
        job: the ID of the job.
    """
    answer = yield Request("DELETE", _path(job))
    return answer.read(RebuildJob.of)


def _path(job: object) -> str:
    if not isinstance(job, str) or not _ID.fullmatch(job):
        seen, remedy = f"the job {job!r:.80}", "Pass the `job` of what start_rebuild() returned."
        raise ArgumentError(seen, expected="the ID of a job", remedy=remedy)
    return f"rebuilds/{job}"
