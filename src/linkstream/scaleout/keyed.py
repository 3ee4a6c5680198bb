"""Many streams: one clusterer a key, kept by Spark between batches as a snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from linkstream.clusterer import Links
from linkstream.engine.contract import KINDS
from linkstream.engine.events import Created, Joined, Linked
from linkstream.errors import ArgumentError, VectorError
from linkstream.scaleout import vectors
from linkstream.scaleout.carried import NULLS, Order
from linkstream.scaleout.settings import check_settings, schema_of, settings_of

VECTOR = "vector"  # the column of vectors, in a worker
PIECE = 2_000  # vectors after which events are read: the log of a clusterer is bounded
SAID = ("cluster", "number", "kind", "events")  # of a vector that was taken
SAID_BY_ROW = (Created.kind, Joined.kind, Linked.kind)  # events that tell what the row tells

Objects = npt.NDArray[np.object_]
Integers = npt.NDArray[np.int64]
_KINDS = np.array(KINDS, dtype=object)


@dataclass(frozen=True, slots=True)
class Plan:
    """What each worker is told.

    Attributes:
        begin: snapshot that each key begins with.
        order: columns that say what comes first.
        kept: columns that come out again.
        once: whether a row at or below the last that was seen of its key is left out.
        mark: whether a vector that cannot be used is marked; otherwise the stream stops.
        ttl_ms: how long a key without vectors is kept; None: for ever.
    """

    begin: bytes
    order: tuple[Order, ...]
    kept: tuple[str, ...]
    once: bool
    mark: bool
    ttl_ms: int | None


class KeyedLinks(StatefulProcessor):
    """What Spark runs for each key of a batch."""

    STATE = "links BINARY, last BIGINT, began BIGINT"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._settings = settings_of(Links.from_bytes(plan.begin, threads=1))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once a task, and by the driver when the query starts."""
        self._state = handle.getValueState("links", self.STATE, self._plan.ttl_ms)
        # Nothing is written there: Spark compares its schema with that of the checkpoint.
        handle.getValueState("settings", schema_of(self._settings), None)

    def close(self) -> None:
        """Nothing is held between tasks."""

    def handleInputRows(  # noqa: N802 - the name that Spark calls
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """All rows of one key in this batch."""
        plan, frame = self._plan, _one_frame(rows)
        links, last, began = self._found(key, timerValues)
        places = _in_order(frame, plan, key)
        if plan.once:
            places, last = _unseen(frame[plan.order[0].column].to_numpy(), places, last)
        if not len(places):
            return
        answers = _answers(links, frame[VECTOR].to_numpy()[places], plan, key)
        self._state.update((links.to_bytes(history=False), last, began))
        columns = {name: frame[name].array[places] for name in plan.kept} | answers
        if plan.ttl_ms is not None:
            columns["began"] = began
        yield pd.DataFrame(columns, copy=False)

    def _found(self, key: Any, timer: TimerValues) -> tuple[Links, int | None, int | None]:
        """The clusterer of the key, the last row that it saw, and when it began (ms, UTC)."""
        held = self._state.get()
        if held is not None:
            links = Links.from_bytes(bytes(held[0]), threads=1)
            check_settings(self._settings, links, key)
            return links, held[1], held[2]
        began = None
        if self._plan.ttl_ms is not None:
            # The time of the batch, which is the same however often the batch is run.
            began = int(timer.getCurrentProcessingTimeInMs())
        return Links.from_bytes(self._plan.begin, threads=1), None, began


def _one_frame(rows: Iterator[pd.DataFrame]) -> pd.DataFrame:
    frames = list(rows)
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _in_order(frame: pd.DataFrame, plan: Plan, key: Any) -> Integers:
    """Places of the rows, first come first; rows that are equal stay as they are."""
    places = np.arange(len(frame))
    nulls = set(frame[NULLS]) if plan.order else ()
    for order in reversed(plan.order):
        column = frame[order.column].to_numpy()
        gone = column.dtype.kind != "i" and pd.isna(column).any()
        if gone or any(flags[order.place] == "1" for flags in nulls):
            raise ArgumentError(
                f"of key {key}: a row without {order.name!r}, by which rows are ordered",
                expected="a value in each row",
                remedy="Leave such rows out of the stream.",
            )
        places = places[np.argsort(column[places], kind="stable")]
    return places


def _unseen(order: Any, places: Integers, last: int | None) -> tuple[Integers, int | None]:
    """Places of rows above the last that was seen, each once, and the last now."""
    ordered = order[places]
    new = np.append(True, ordered[1:] != ordered[:-1])
    if last is not None:
        new &= ordered > last
    places = places[new]
    return places, int(order[places[-1]]) if len(places) else last


def _answers(links: Links, values: Objects, plan: Plan, key: Any) -> dict[str, Any]:
    """Give all vectors to the clusterer; columns of what it said."""
    pieces = [values[first : first + PIECE] for first in range(0, len(values), PIECE)]
    said = [_said(links, piece, plan, key) for piece in pieces]
    if len(said) == 1:
        return said[0]
    return {name: np.concatenate([each[name] for each in said]) for name in said[0]}


def _said(links: Links, values: Objects, plan: Plan, key: Any) -> dict[str, Any]:
    problems, taken = _nothing(len(values)), None
    since = links.n_events
    try:
        links.add_many(vectors.rows(values))
    except VectorError as error:
        if not plan.mark:
            raise _named(error, key) from None
        good, problems[:] = vectors.usable(links, values)
        taken = np.flatnonzero(problems == None)  # noqa: E711 - element by element
        if not len(taken):
            return _spread({}, taken, problems)
        links.add_many(good)
    decisions = links.last_decisions
    assert decisions is not None, "vectors were added"
    n, first = len(decisions.cluster), decisions.first_sequence
    said = {
        "cluster": decisions.cluster,
        "number": np.arange(first, first + n),
        "kind": _KINDS[decisions.kind],
        "events": _told(links, since, first, n),
    }
    return said | {"problem": problems} if taken is None else _spread(said, taken, problems)


def _told(links: Links, since: int, first: int, n: int) -> Objects:
    """For each of the newest vectors, the events that it brought besides its own; or None."""
    told = _nothing(n)
    if links.n_events == since + n:  # each vector has one that says what its row does
        return told
    for event in links.events(since):
        if event.kind not in SAID_BY_ROW:
            place = event.vector - first
            told[place] = told[place] or []
            told[place].append(json.dumps(event.to_dict(), separators=(",", ":")))
    return told


def _spread(said: dict[str, Any], places: Integers, problems: Objects) -> dict[str, Any]:
    """Columns of the rows that were taken, as columns of all rows."""
    whole: dict[str, Any] = {name: _nothing(len(problems)) for name in SAID}
    for name, values in said.items():
        whole[name][places] = values
    return whole | {"problem": problems}


def _nothing(n: int) -> Objects:
    return np.full(n, None, dtype=object)


def _named(error: VectorError, key: Any) -> VectorError:
    """The same error, saying of which key."""
    return VectorError(
        f"of key {key}: {error.seen}",
        expected=error.expected,
        remedy="Mend the source, or pass bad='mark': such rows then come out with their problem.",
        row=error.row,
    )
