"""Many streams: one clusterer a key, kept by Spark between batches as a snapshot.

A key keeps the settings that it began with. A stream that is started again with other settings
would use them for new keys only (docs/choices.md, "A checkpoint keeps its settings"), so that is
refused. The settings are part of the schema of the state: Spark writes the schema into the
checkpoint and compares it when a query starts. Spark shows names and compares types: by position in
its own encoding of the state, by name in Avro. So the schema has fields whose names show the
settings, and fields of fixed names whose types are a digest of them.
"""

from __future__ import annotations

import hashlib
import json
import re
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
from pyspark.sql.types import ArrayType, BooleanType, DataType, DoubleType, StringType, StructType

from linkstream.clusterer import Links
from linkstream.confidence import Model
from linkstream.engine.contract import KINDS, Decisions
from linkstream.engine.events import Created, Joined, Linked
from linkstream.errors import ArgumentError, VectorError
from linkstream.scaleout import vectors
from linkstream.scaleout.columns import NULLS, OrderColumn
from linkstream.store import about

VECTOR = "vector"  # the column of vectors, in a worker
PIECE = 2_000  # vectors between two reads of the event log, which is bounded
RESULTS = ("cluster", "number", "kind", "events")  # columns of a vector that was added
TOLD = ("cluster_margin", "probability")  # further columns, where there is a model of confidence
ROW_EVENTS = (Created.kind, Joined.kind, Linked.kind)  # events that the row itself tells

# A digit of the digest is one of these types in 0, 1 or 2 arrays; Spark converts none to another.
DIGIT_TYPES = (BooleanType(), StringType(), DoubleType())
DEPTHS = 3
DIGITS = 14  # of base 9: 44 bits
HEADING = "linkstream_settings"
SETTING_CHARACTERS = 60  # of a setting in the name of a field
# In a fixed order, without settings that later versions add: checkpoints outlive versions.
SETTING_NAMES = (
    *("cluster_similarity", "subcluster_similarity", "pair_similarity_max", "model", "mean"),
    *("evidence", "heal", "max_subclusters", "max_idle", "min_size"),
    *("track_vectors", "keep_vectors"),
)

Settings = dict[str, str]
Objects = npt.NDArray[np.object_]
Integers = npt.NDArray[np.int64]
_KINDS = np.array(KINDS, dtype=object)


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of the workers.

    Attributes:
        begin: snapshot that each key begins with.
        order: columns to sort the rows of a batch by.
        kept: columns that are returned.
        once: whether a row at or below the last row of its key is dropped.
        mark: whether an unusable vector is marked; otherwise it stops the stream.
        ttl_ms: milliseconds after which a key without vectors is dropped; None for never.
        model: the model of confidence; None tells no probabilities.
    """

    begin: bytes
    order: tuple[OrderColumn, ...]
    kept: tuple[str, ...]
    once: bool
    mark: bool
    ttl_ms: int | None
    model: Model | None = None

    @property
    def told(self) -> tuple[str, ...]:
        """The columns of a vector about how sure its decision is."""
        return () if self.model is None else TOLD


class KeyedLinks(StatefulProcessor):
    """The processor that Spark runs for each key of a batch."""

    STATE = "links BINARY, last BIGINT, began BIGINT"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._settings = settings_of(Links.from_bytes(plan.begin, threads=1))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state. Spark calls this once a task, and when the query starts."""
        self._state = handle.getValueState("links", self.STATE, self._plan.ttl_ms)
        # Never written to: Spark compares its schema with that of the checkpoint.
        handle.getValueState("settings", schema_of(self._settings), None)

    def close(self) -> None:
        """Do nothing: no resources are held between tasks."""

    def handleInputRows(  # noqa: N802 - the name that Spark calls
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """Cluster all rows of one key in this batch."""
        plan, frame = self._plan, _one_frame(rows)
        links, last, began = self._load(key, timerValues)
        rows_in_order = _in_order(frame, plan, key)
        if plan.once:
            offsets = frame[plan.order[0].column].to_numpy()
            rows_in_order, last = _new_rows(offsets, rows_in_order, last)
        if not len(rows_in_order):
            return
        results = _cluster(links, frame[VECTOR].to_numpy()[rows_in_order], plan, key)
        self._state.update((links.to_bytes(history=False), last, began))
        columns = {name: frame[name].array[rows_in_order] for name in plan.kept} | results
        if plan.ttl_ms is not None:
            columns["began"] = began
        yield pd.DataFrame(columns, copy=False)

    def _load(self, key: Any, timer: TimerValues) -> tuple[Links, int | None, int | None]:
        """Return the clusterer of a key, its last row, and when it began (ms, UTC)."""
        held = self._state.get()
        if held is not None:
            links = Links.from_bytes(bytes(held[0]), threads=1)
            check_settings(self._settings, links, key)
            if links.confidence.model != self._plan.model:
                links.confidence.use(self._plan.model)
            return links, held[1], held[2]
        began = None
        if self._plan.ttl_ms is not None:
            # The time of the batch, which is the same if the batch is run again.
            began = int(timer.getCurrentProcessingTimeInMs())
        return Links.from_bytes(self._plan.begin, threads=1), None, began


def _one_frame(rows: Iterator[pd.DataFrame]) -> pd.DataFrame:
    frames = list(rows)
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _in_order(frame: pd.DataFrame, plan: Plan, key: Any) -> Integers:
    """Return the row indices sorted by the order columns; the sort is stable."""
    rows = np.arange(len(frame))
    nulls = set(frame[NULLS]) if plan.order else ()
    for order in reversed(plan.order):
        column = frame[order.column].to_numpy()
        gone = column.dtype.kind != "i" and pd.isna(column).any()
        if gone or any(flags[order.flag] == "1" for flags in nulls):
            raise ArgumentError(
                f"of key {key}: a row without {order.name!r}, by which rows are ordered",
                expected="a value in each row",
                remedy="Leave such rows out of the stream.",
            )
        rows = rows[np.argsort(column[rows], kind="stable")]
    return rows


def _new_rows(offsets: Any, rows: Integers, last: int | None) -> tuple[Integers, int | None]:
    """Return the rows above the last offset, each offset once, and the new last offset."""
    ordered = offsets[rows]
    new = np.append(True, ordered[1:] != ordered[:-1])
    if last is not None:
        new &= ordered > last
    rows = rows[new]
    return rows, int(offsets[rows[-1]]) if len(rows) else last


def _cluster(links: Links, values: Objects, plan: Plan, key: Any) -> dict[str, Any]:
    """Add all vectors to the clusterer; return the columns of the results."""
    pieces = [values[first : first + PIECE] for first in range(0, len(values), PIECE)]
    results = [_cluster_piece(links, piece, plan, key) for piece in pieces]
    if len(results) == 1:
        return results[0]
    return {name: np.concatenate([each[name] for each in results]) for name in results[0]}


def _cluster_piece(links: Links, values: Objects, plan: Plan, key: Any) -> dict[str, Any]:
    problems, added = _nones(len(values)), None
    since = links.n_events
    try:
        links.add_many(vectors.rows(values))
    except VectorError as error:
        if not plan.mark:
            raise _with_key(error, key) from None
        good, problems[:] = vectors.usable(links, values)
        added = np.flatnonzero(problems == None)  # noqa: E711 - element by element
        if not len(added):
            return _expanded({}, added, problems, plan)
        links.add_many(good)
    decisions = links.last_decisions
    assert decisions is not None, "vectors were added"
    n, first = len(decisions.cluster), decisions.first_sequence
    results = {
        "cluster": decisions.cluster,
        "number": np.arange(first, first + n),
        "kind": _KINDS[decisions.kind],
        "events": _other_events(links, since, first, n),
        **_how_sure(decisions, plan),
    }
    if added is None:
        return results | {"problem": problems}
    return _expanded(results, added, problems, plan)


def _how_sure(decisions: Decisions, plan: Plan) -> dict[str, Any]:
    """Return margins and probabilities; NaN, which Spark reads as null, where unknown."""
    if plan.model is None:
        return {}
    unknown = np.full(len(decisions.cluster), np.nan)
    probability = unknown if decisions.probability is None else decisions.probability
    return dict(zip(TOLD, (decisions.cluster_margin, probability), strict=True))


def _other_events(links: Links, since: int, first: int, n: int) -> Objects:
    """Return for each new vector its events beyond those the row tells, as JSON; or None."""
    others = _nones(n)
    if links.n_events == since + n:  # each vector has one event, which its row tells
        return others
    for event in links.events(since):
        if event.kind not in ROW_EVENTS:
            row = event.vector - first
            others[row] = others[row] or []
            others[row].append(json.dumps(event.to_dict(), separators=(",", ":")))
    return others


def _expanded(
    results: dict[str, Any], rows: Integers, problems: Objects, plan: Plan
) -> dict[str, Any]:
    """Return the columns of the added rows as columns of all rows."""
    columns: dict[str, Any] = {name: _nones(len(problems)) for name in (*RESULTS, *plan.told)}
    for name, values in results.items():
        columns[name][rows] = values
    return columns | {"problem": problems}


def _nones(n: int) -> Objects:
    return np.full(n, None, dtype=object)


def _with_key(error: VectorError, key: Any) -> VectorError:
    """Return an error of a vector with the key in its message."""
    return VectorError(
        f"of key {key}: {error.seen}",
        expected=error.expected,
        remedy="Correct the source, or pass bad='mark' to return such rows with their problem.",
        row=error.row,
    )


def settings_of(links: Links) -> Settings:
    """Return the settings that determine the results of a clusterer, as text by name."""
    described = about.of(links, keep=links.keep_vectors)
    plain: dict[str, Any] = {**described, **described["thresholds"], **described["space"]}
    return {name: _text(plain[name]) for name in SETTING_NAMES}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else repr(value)


def schema_of(settings: Settings) -> StructType:
    """Return a schema whose types differ if the settings differ, for Spark to compare.

    The names hold only characters that every encoding of the state allows.
    """
    schema = StructType().add(HEADING, BooleanType())
    for name, value in settings.items():
        legal = re.sub(r"\W+", "_", f"{name}_{value}", flags=re.ASCII).strip("_")
        schema = schema.add(legal[:SETTING_CHARACTERS], BooleanType())
    number = int.from_bytes(hashlib.sha256(json.dumps(settings).encode()).digest(), "big")
    for index in range(DIGITS):
        number, digit = divmod(number, DEPTHS * len(DIGIT_TYPES))
        schema = schema.add(f"digest_{index}", _digit(digit))
    return schema


def _digit(digit: int) -> DataType:
    depth, leaf = divmod(digit, len(DIGIT_TYPES))
    kind: DataType = DIGIT_TYPES[leaf]
    for _ in range(depth):
        kind = ArrayType(kind)
    return kind


def check_settings(asked: Settings, links: Links, key: Any) -> None:
    """Raise ArgumentError if the checkpoint holds a key with other settings."""
    held = settings_of(links)
    if held == asked:
        return
    name = next(name for name in asked if held.get(name) != asked[name])
    raise ArgumentError(
        f"{name}={asked[name]} for key {key}, which the checkpoint holds with {name}={held[name]}",
        expected="the settings that the stream began with",
        remedy="Start with those settings; for others begin a new checkpoint.",
    )
