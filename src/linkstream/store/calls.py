"""Calls: what a caller says, checked and made plain before it takes its place in the line."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import check_yes_no
from linkstream.engine import door
from linkstream.errors import ArgumentError
from linkstream.identity import weights
from linkstream.store import journal
from linkstream.store.clerk import Ticket
from linkstream.store.journal import Payloads, Rows

KEY_MAX = 255  # characters
PAYLOAD_MAX = 64 << 10  # characters of JSON
PAYLOADS_MAX = 64 << 20  # of all payloads of a call
DEPTH_MAX = 32  # lists in lists
ROWS_MAX = 1 << 22  # vectors in one call


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Vectors for `feed`, with what goes with them; as the arguments of `add_many`."""

    X: npt.ArrayLike
    weight: npt.ArrayLike = 1.0
    payloads: Iterable[Any] | None = None
    idempotency_key: str | None = None


def adding(
    verb: str,
    X: npt.ArrayLike,
    weight: npt.ArrayLike,
    group: str | None,
    payloads: Iterable[Any] | None,
    key: str | None,
) -> Ticket:
    """A call that brings vectors."""
    rows = _rows(X, one=verb == "add")
    said: dict[str, Any] = {"key" if verb == "add_group" else "group": group}
    if not (type(weight) is float and weight == 1.0) and any(weights.lights(weight, len(rows))):
        said["weight"] = np.asarray(weight, dtype=np.float64).tolist()
    arguments = {name: value for name, value in said.items() if value is not None}
    plain = None if payloads is None else _payloads(payloads, len(rows))
    return _ticket(verb, arguments, rows if len(rows) else None, plain, key)


def check_batches(batches: object) -> None:
    """ArgumentError unless batches can be had one after the other."""
    if not isinstance(batches, Iterable):
        raise ArgumentError(
            f"batches of type {type(batches).__name__}",
            expected="something that gives arrays, or Batch, one after the other",
            remedy="One array goes to add_many().",
        )


def of_batch(batch: npt.ArrayLike | Batch, *, after: Ticket | None, renew: bool) -> Ticket:
    """A batch of a stream of them, after the one before it."""
    given = batch if isinstance(batch, Batch) else Batch(batch)
    ticket = adding("add_many", given.X, given.weight, None, given.payloads, given.idempotency_key)
    if ticket.rows is not None and np.may_share_memory(ticket.rows, np.asarray(given.X)):
        ticket.rows = ticket.rows.copy()  # the caller may fill its array anew
    ticket.after, ticket.renew = after, renew
    if ticket.rows is not None:  # done here, it is not done where others wait for it
        ticket.crcs = [zlib.crc32(body) for body in journal.pieces(ticket.rows)]
    return ticket


def enrolling(name: str, X: npt.ArrayLike, locked: bool, key: str | None) -> Ticket:
    """A call that brings prototypes."""
    rows = _rows(X, one=False)
    ticket = _ticket("enrol", {"name": name, "locked": locked}, rows, None, key)
    ticket.alone = True
    return ticket


def removing(
    vector: npt.ArrayLike,
    x: npt.ArrayLike | None,
    cluster: int | None,
    weight: float | None,
    key: str | None,
) -> Ticket:
    """A call that takes a vector out: by number, by its coordinates, or by both."""
    said: dict[str, Any] = {"cluster": cluster, "weight": weight}
    by_number = np.ndim(vector) == 0
    if by_number:
        said["vector"] = vector
    given = x if by_number else vector
    if not by_number and x is not None:
        raise ArgumentError(
            "two vectors to remove", expected="a number and x, or x alone", remedy="Leave x out."
        )
    rows = None if given is None else _rows(given, one=True)
    arguments = {name: value for name, value in said.items() if value is not None}
    ticket = _ticket("remove", arguments, rows, None, key)
    ticket.alone = True
    return ticket


def undoing(to: int | None, step: bool, key: str | None) -> Ticket:
    """A call that takes back: the last change, all from an event on, or the last step."""
    if not check_yes_no("step", step):
        return saying("undo", {"to": to}, key)
    if to is not None:
        raise ArgumentError(
            f"undo(to={to!r:.80}, step=True)",
            expected="one of them",
            remedy="Leave one out: to= takes back all from an event on, step= the last step.",
        )
    return saying("undo", {"to": None, "step": True}, key)


def saying(verb: str, arguments: dict[str, Any], key: str | None) -> Ticket:
    """A person's word."""
    ticket = _ticket(verb, arguments, None, None, key)
    ticket.alone = True
    return ticket


def _ticket(
    verb: str,
    arguments: dict[str, Any],
    rows: Rows | None,
    payloads: Payloads | None,
    key: str | None,
) -> Ticket:
    ticket = Ticket(verb=verb, arguments=_plain(arguments), rows=rows, payloads=payloads, key=key)
    if key is not None:
        _check_key(key)
        ticket.digest = _digest(rows, payloads)
    return ticket


def _rows(X: npt.ArrayLike, *, one: bool) -> Rows:
    rows = door.vector(X, dimension=None) if one else door.vectors(X, dimension=None)
    if len(rows) > ROWS_MAX:
        raise ArgumentError(
            f"{len(rows)} vectors in one call",
            expected=f"at most {ROWS_MAX}",
            remedy="Split them, or let feed() take them batch by batch.",
        )
    return rows


def _digest(rows: Rows | None, payloads: Payloads | None) -> bytes:
    sha = hashlib.sha256(b"" if rows is None else np.ascontiguousarray(rows, dtype="<f4").data)
    shape = None if rows is None else rows.shape
    sha.update(json.dumps([shape, payloads], sort_keys=True).encode())
    return sha.digest()


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments as JSON has them."""
    if not arguments:
        return {}
    try:
        plain: dict[str, Any] = json.loads(json.dumps(arguments, default=_number))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"arguments that are no plain values ({error})",
            expected="numbers and texts",
            remedy="Pass plain Python values.",
        ) from None
    return plain


def _number(value: object) -> object:
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__}")


def _payloads(payloads: Iterable[Any], n: int) -> Payloads:
    listed = isinstance(payloads, Iterable) and not isinstance(payloads, (str, bytes, dict))
    given = list(payloads) if listed else []
    if not listed or len(given) != n:
        seen = f"{len(given)} payloads" if listed else f"payloads={payloads!r:.80}"
        raise ArgumentError(
            f"{seen} for {n} vectors",
            expected="a list with one for each vector",
            remedy="None stands for nothing attached.",
        )
    plain, size = [], 0
    for place, value in enumerate(given):
        text = _payload_text(value, place)
        size += len(text)
        if size > PAYLOADS_MAX:
            raise ArgumentError(
                f"payloads of more than {PAYLOADS_MAX} characters of JSON in one call",
                expected="less",
                remedy="Split the call, or attach references to where things lie.",
            )
        plain.append(_payload(value, text, place))
    return plain


def _payload_text(value: Any, place: int) -> str:
    _check_depth(value, place)
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"payload {place} is not JSON ({error})",
            expected="texts, finite numbers, yes or no, None, lists and objects of them",
            remedy="Make it plain, or attach a reference to where it lies.",
        ) from None
    if len(text) > PAYLOAD_MAX:
        raise ArgumentError(
            f"payload {place} takes {len(text)} characters",
            expected=f"at most {PAYLOAD_MAX}",
            remedy="Attach a reference to where it lies.",
        )
    return text


def _payload(value: Any, text: str, place: int) -> Any:
    """What JSON makes of it, which must be the same."""
    plain = json.loads(text)
    if plain != value and not _same(plain, value):
        raise ArgumentError(
            f"payload {place} has fields that are no texts",
            expected="objects whose fields are texts",
            remedy="Make them texts.",
        )
    return plain


def _check_depth(value: Any, place: int) -> None:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list, tuple))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
        if len(level) > PAYLOAD_MAX:
            break
    raise ArgumentError(
        f"payload {place} is nested more than {DEPTH_MAX} deep, or has too many parts",
        expected="a smaller payload",
        remedy="Attach a reference to where it lies.",
    )


def _same(plain: Any, value: Any) -> bool:
    """Whether JSON gave back what it was given; tuples come back as lists."""
    if isinstance(plain, dict):
        return plain.keys() == value.keys() and all(_same(plain[k], value[k]) for k in plain)
    if isinstance(plain, list):
        return all(map(_same, plain, value))
    return bool(plain == value)


def _check_key(key: object) -> None:
    if isinstance(key, str) and 0 < len(key) <= KEY_MAX and _encodable(key):
        return
    shown = f"{key!r:.80}" if isinstance(key, str) else f"one of type {type(key).__name__}"
    raise ArgumentError(
        f"idempotency_key: {shown}",
        expected=f"a text of 1 to {KEY_MAX} characters",
        remedy="Make one for each call, and give the same one again to retry it.",
    )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
