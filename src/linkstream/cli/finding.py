"""Commands that find something in a store: search, changes."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Argument, Option

from linkstream.cli import outcome, outputs, screen, stores
from linkstream.cli.options import Limit, StorePath
from linkstream.cli.outcome import usage_error
from linkstream.cli.terminal_text import harmless, short

if TYPE_CHECKING:
    from linkstream.store import Found, Store

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def search(
    store: StorePath,
    words: Annotated[
        str | None, Argument(metavar="[WORDS]", help='Words, "phrases" and beginnin*.')
    ] = None,
    field: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="A field of the payload; repeatable.")
    ] = None,
    cluster: Annotated[str | None, "Only vectors of this cluster: its ID, or its name."] = None,
    limit: Limit = 20,
    before: Annotated[int | None, Option(min=0, help="Only vectors with a lower number.")] = None,
    best: Annotated[bool, "The best hits first, instead of the newest."] = False,
    on: Annotated[bool, "Make the search index of the store, once."] = False,
    off: Annotated[bool, "Delete the search index."] = False,
) -> None:
    """Find vectors by the words and fields of their payloads.

    All words must occur; capital letters and accents make no difference. The store needs a search
    index, which --on makes from all payloads and which then grows with the store.

    Example: linkstream search people.links '"window 7"' --field file=five.wav
    """
    if on or off:
        _switch(store, on=on, off=off, words=words)
        return
    where = dict(_pair(each) for each in field or ())
    with stores.reading(store) as opened:
        only = None if cluster is None else stores.cluster_id(opened, cluster)
        order = "best" if best else "newest"
        options: dict[str, Any] = {"cluster": only, "limit": limit, "order": order}
        found = opened.search(words, where=where, before=before, **options)
    if not screen.wrote_json(found.to_dict()["hits"]):
        _show(found)


def _pair(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise usage_error(
            f"--field {given}", "NAME=VALUE", "Write the name of the field, then its value."
        )
    return name, value


def _switch(path: StorePath, *, on: bool, off: bool, words: str | None) -> None:
    if (on and off) or words is not None:
        seen = "--on and --off" if on and off else f"--{'on' if on else 'off'} and words"
        raise usage_error(seen, "one of them", "Search once the index is there.")
    with stores.writing(path) as opened, outputs.share_bar("Reading payloads") as bar:
        opened.set_search(on, progress=bar)
        outcome.note_change(f"the search index of {path} is {'made' if on else 'deleted'}")
    told = "has a search index now" if on else "has no search index now"
    screen.answer({"store": str(path), "search": on}, f"{path} {told}.")


def _show(found: Found) -> None:
    console = screen.console()
    if not found.hits:
        console.print("No payload has all of this.")
    rows = screen.listing("Vectors found", "vector", "cluster", "payload")
    for hit in found.hits:
        payload = short(json.dumps(hit.payload, ensure_ascii=False), 80)
        rows.add_row(str(hit.vector), "held" if hit.cluster < 0 else str(hit.cluster), payload)
    if found.hits:
        console.print(rows)
    if found.next is not None:
        console.print(f"There may be more: add --before {found.next}.")


def changes(
    store: StorePath,
    since: Annotated[
        str, Option(metavar="N|DATE", help="A number of events, or a time such as 2026-05-04.")
    ] = "0",
    until: Annotated[str | None, Option(metavar="N|DATE", help="The same; else now.")] = None,
) -> None:
    """Show what changed between two moments, in vectors and in clusters.

    Vectors added, removed and moved; clusters joined, split off, new and gone. What was done and
    undone in between does not count. A DATE stands for the first call that brought a vector of that
    time or later. JSON also has the label of each vector before and after.

    Example: linkstream changes people.links --since 10
    """
    with stores.reading(store) as opened:
        first = _moment(opened, since)
        found = opened.changes(first, None if until is None else _moment(opened, until))
    if not screen.wrote_json([found.to_dict()]):
        sys.stdout.write("".join(f"{harmless(line)}\n" for line in str(found).splitlines()))


def _moment(store: Store, words: str) -> int:
    """Return the number of events before a moment."""
    if words.isdecimal() and len(words) < 19:
        return int(words)
    return _event_at(store, _time(words), words)


def _time(words: str) -> int:
    """Return a time as microseconds since 1970; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(words)
    except ValueError:
        raise usage_error(
            f"a moment {words!r:.80}",
            "a number of events, or a time such as 2026-05-04 or 2026-05-04T08:30",
            "linkstream events STORE shows the numbers of events.",
        ) from None
    time = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return (time - _EPOCH) // (datetime.resolution)


def _event_at(store: Store, time: int, words: str) -> int:
    """Return the first event of the first call with a vector of a time or later."""
    has_times = False
    for operation in store.journal.operations():
        times = store.journal.times(operation)
        if times is not None and np.any(times != np.iinfo(np.int64).min):
            has_times = True
            if times.max() >= time:
                return operation.first_event
    if has_times:
        return store.n_events
    raise usage_error(
        f"{words} for a store whose vectors have no times",
        "a number of events",
        "linkstream events STORE shows the numbers of events.",
    )
