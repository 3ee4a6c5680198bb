"""Idempotency: the same call under the same key is done once, and answered as it was then."""

from __future__ import annotations

from linkstream.errors import IdempotencyError
from linkstream.store.clerk import Ticket
from linkstream.store.journal import Operation
from linkstream.store.model import Model
from linkstream.store.replaying import decoded


def answered(ticket: Ticket, model: Model, pending: dict[str, Ticket]) -> bool:
    """Whether a call was made before under its key; it then has its answer."""
    if ticket.key is None:
        return False
    under_way = pending.get(ticket.key)
    found = None if under_way is None else under_way.operation
    found = found or model.done(ticket.key)  # the pen may just have written it
    if found is None or (ticket.renew and not model.left_of(found)):
        return False
    _check_same(ticket, found)
    ticket.answer, ticket.first = decoded(found), found.first_vector
    ticket.events = found.first_event, found.first_event + len(found.events)
    return True


def _check_same(ticket: Ticket, found: Operation) -> None:
    if (ticket.verb, ticket.arguments, ticket.digest) != (
        found.verb,
        found.arguments,
        found.digest,
    ):
        raise IdempotencyError(
            f"idempotency_key={ticket.key!r}, which operation {found.number} was done under, "
            "for another call",
            expected="the very same call again",
            remedy="Use a new key for each call.",
        )
