"""What jobs compute: a rebuild, or the end of a migration to another encoder, which is one, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from linkstream.clusterer.verb_values import plain
from linkstream.engine.linkage import Progress
from linkstream.errors import IdempotencyError
from linkstream.identity.migration_report import MigrationReport, MigrationStatus
from linkstream.identity.rebuild_report import REPEATED, RebuildReport
from linkstream.store.handle import StoreHandle
from linkstream.store.journal import Operation
from linkstream.store.migrating import Ending, prepare_end
from linkstream.store.prepared import complete, prepare, refuse_if_changed
from linkstream.store.write_requests import WriteRequest, request_of

if TYPE_CHECKING:
    from linkstream.clusterer.verbs import Rebuild


class Work(Protocol):
    """What a job computes, and then applies.

    Attributes:
        apply: whether it is applied, else it only tells what would change.
        report: what changes, or has changed; None until it was computed.
    """

    apply: bool
    report: RebuildReport | None

    def described(self) -> dict[str, Any]:
        """Return the fields of a job that say what it was started with."""

    def prepare(
        self, handle: StoreHandle, key: str | None, progress: Progress
    ) -> WriteRequest | None:
        """Compute the report on any thread; return what applies it, None if that is not wanted.

        The request is refused if the store has changed meanwhile.
        """

    def applied(self, handle: StoreHandle, request: WriteRequest) -> None:
        """Note the report of the request that was done; on any thread."""

    def repeat(self, key: str, before: Operation) -> WriteRequest | None:
        """Return the request whose first answer the store knows, or note that it was done.

        Raise IdempotencyError if it was another call that used the key.
        """


class RebuildWork:
    """A rebuild, as its request described it."""

    report: RebuildReport | None = None

    def __init__(self, verb: Rebuild) -> None:
        self.apply, self._verb = verb.apply, verb

    def described(self) -> dict[str, Any]:
        """Return its thresholds, and whether it changes the space."""
        verb = self._verb
        changes = verb.space is not None or verb.vectors is not None
        return {
            "thresholds": plain(verb.thresholds),
            "changes_space": changes,
            "migration": None,
        }

    def prepare(
        self, handle: StoreHandle, key: str | None, progress: Progress
    ) -> WriteRequest | None:
        """Compute the rebuild."""
        request = request_of(self._verb, key=key)
        self.report = prepare(handle, request, progress)
        if not self.apply:
            return None
        complete(request)
        refuse_if_changed(request)
        return request

    def applied(self, handle: StoreHandle, request: WriteRequest) -> None:
        """Note the report."""
        self.report = request.answer or REPEATED

    def repeat(self, key: str, before: Operation) -> WriteRequest | None:
        """Return the same request, which the store compares with the first one."""
        return request_of(self._verb, key=key)


class EndOfMigration:
    """The end of the migration that is under way."""

    report: RebuildReport | None = None

    def __init__(self, status: MigrationStatus | None, *, apply: bool) -> None:
        """Describe it.

        Args:
            status: how far the migration is; None if none is under way any more.
            apply: whether to end it, or only to tell what that would change.
        """
        self.apply = apply
        self._told = MigrationReport(status or MigrationStatus(0, 0, 0))
        self._ending: Ending | None = None

    def described(self) -> dict[str, Any]:
        """Return the report without the rebuild, which is the report of the job."""
        told = self._told.to_dict()
        del told["rebuild"]
        return {"thresholds": None, "changes_space": True, "migration": told}

    def prepare(
        self, handle: StoreHandle, key: str | None, progress: Progress
    ) -> WriteRequest | None:
        """Compute what the end changes."""
        self._ending, request = prepare_end(handle, progress, apply=self.apply, key=key)
        self._tell(self._ending.report)
        return request

    def _tell(self, found: MigrationReport) -> None:
        self._told, self.report = found, found.rebuild

    def applied(self, handle: StoreHandle, request: WriteRequest) -> None:
        """Note the report, and let reviews ask about disagreements."""
        assert self._ending is not None, "it was prepared"
        self._tell(self._ending.applied(handle, request.answer))

    def repeat(self, key: str, before: Operation) -> WriteRequest | None:
        """Note that it was done; what was added is dropped, so that no request can be compared."""
        if before.verb != "rebuild":
            raise IdempotencyError(
                f"idempotency_key={key!r:.80}, which operation {before.number} used for "
                f"{before.verb}",
                expected="the same call as before",
                remedy="Use a new key for each call.",
            )
        self.report = REPEATED
        return None
