"""Compute a rebuild on a thread of the caller; the writer thread then applies it.

Reads and writes go on while a rebuild is computed, on a copy of the state. If the store changes
meanwhile, the result does not fit it any more: with `hold` the writer thread computes the rebuild
again, and other calls wait; else the request is refused, and nothing changes.
"""

from __future__ import annotations

from typing import cast

from linkstream.clusterer import rebuilding
from linkstream.clusterer.rebuilding import Wanted
from linkstream.clusterer.verbs import VERBS, Rebuild
from linkstream.engine.linkage import Progress
from linkstream.errors import ChangedError
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.store.handle import StoreHandle
from linkstream.store.write_requests import WriteRequest


def prepare(store: StoreHandle, request: WriteRequest, progress: Progress) -> RebuildReport:
    """Compute the rebuild of a request, for the writer thread; return what it would change.

    Args:
        store: the store, which may go on meanwhile.
        request: a request for `rebuild` that was not submitted yet.
        progress: called with the share of the work that is done; it may raise to end the work.

    Raises:
        ChangedError: the vectors could not be read, since the store has changed.
    """
    verb = cast("Rebuild", VERBS["rebuild"].from_journal(request.arguments, request.rows))
    wanted = Wanted(verb.thresholds, verb.space, verb.vectors)
    request.seen = store.read(lambda model: model.n_events)
    source = store.read_core(lambda core: rebuilding.source_for_read(core, "rebuild", verb.vectors))
    if source is None:
        rebuilding.check_nothing_given(verb.thresholds, verb.space, verb.vectors)
        return RebuildReport()
    try:
        fetch = lambda numbers: store.read_core(lambda core: core.kept(numbers))  # noqa: E731
        made = rebuilding.prepare(source, fetch, wanted, progress)
    except Exception as error:
        before, event = source.state.n_events, store.read(lambda model: model.n_events)
        if event == before:
            raise
        raise changed(before, event) from error
    request.prepared = made
    return made.plan.report


def complete(request: WriteRequest) -> None:
    """Compute the state after the rebuild of a request, too: the writer thread has less to do."""
    if request.prepared is not None:
        request.prepared = rebuilding.complete(request.prepared)


def refuse_if_changed(request: WriteRequest) -> None:
    """Let the writer thread refuse a request if the store has changed since it was prepared."""
    made = request.prepared
    before = request.seen if made is None else made.source.state.n_events

    def check(event: int) -> None:
        if event != before:
            raise changed(before, event)

    request.check = check


def changed(before: int, event: int) -> ChangedError:
    """Return the error for a store that went on from one event to another."""
    return ChangedError(
        f"{event - before} more events than when the rebuild was computed",
        expected="no change between the computation of a rebuild and its application",
        remedy="Compute it again; if changes keep coming, hold them back meanwhile.",
    )
