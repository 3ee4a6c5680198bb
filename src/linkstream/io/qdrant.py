"""Vectors of a Qdrant collection: on a server, or in a folder of Qdrant's local mode.

Points come page by page, ordered by their IDs or by a field of their payload. Qdrant has no
snapshot reads: while a collection is read, add new points at the end only.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from linkstream.errors import InputFileError
from linkstream.io.databases import (
    REMOVED,
    Address,
    DatabaseSource,
    skip_by_reading,
    translated_errors,
    vectors_of,
)
from linkstream.io.source import (
    ALL,
    Payloads,
    ReadOptions,
    Rows,
    Source,
    file_error,
    import_extra,
    quoted,
)

ADDRESS_WORDS = ("collection", "column", "order", "https")
API_KEY = "QDRANT_API_KEY"  # in the environment
PORT = 6333
TIES_MAX = 10_000  # points with the same value of the order
TIMEOUT_SECONDS = 30
LEAST = -1.7e308  # below every number of a payload
EARLIEST = "0001-01-01T00:00:00Z"
_FIELD = re.compile(r"[\w-]+")

# qdrant-client is not a dependency; its objects are Any throughout.
Client = Any
Record = Any


def qdrant(module: str = "qdrant_client") -> Any:
    """Import a module of qdrant-client."""
    return import_extra(module, extra="qdrant", purpose="A collection of Qdrant")


def open_qdrant(text: str, options: ReadOptions) -> DatabaseSource:
    """Open the vectors of a collection."""
    qdrant()
    address = Address.parse(text, *ADDRESS_WORDS)
    options = address.with_column(options)
    hint = f"; a key of the server goes into {API_KEY}"
    address.refuse_others((), "Qdrant", ", ".join(ADDRESS_WORDS), hint)
    order = address.options.get("order")
    _check_fields(order, *(() if options.payload == (ALL,) else options.payload))
    client, name, asked, secret = _connect(address)
    try:
        with _errors_of(name, secret):
            collection = _find_collection(client, name, asked)
            if not address.host:
                name = f"{name}?collection={collection}"
            reader = _QdrantReader(client, collection, order=order, secret=secret)
            return reader.open(name, options)
    except BaseException:
        client.close()
        raise


def _check_fields(*names: str | None) -> None:
    for name in names:
        if name is not None and not _FIELD.fullmatch(name):
            raise file_error(
                f"a field {name!r} of a payload",
                "letters, digits, _ and -: a field that is not within another",
                "Choose another field.",
            )


def _connect(address: Address) -> tuple[Client, str, str | None, str | None]:
    """Return a client, its name without secrets, the collection asked for, and the API key."""
    asked = address.options.get("collection")
    if not address.host:
        folder = Path(address.path)
        name = f"qdrant://{folder}"
        if not (folder / "meta.json").is_file():  # the client would create it
            raise file_error(
                f"{name} is no folder of Qdrant's", "one made in local mode", "Check the path."
            )
        with _errors_of(name, None):
            return qdrant().QdrantClient(path=str(folder)), name, asked, None
    within = address.path.strip("/")
    if bool(within) == bool(asked) or "/" in within:
        raise file_error(
            f"qdrant://{address.host} with {'two collections' if asked else 'no collection'}",
            f"qdrant://host:{PORT}/collection",
            "Name the collection after the host.",
        )
    secret = unquote(address.parts.password or "") or os.environ.get(API_KEY)
    secure = address.options.get("https", "false")
    if secure not in ("true", "false"):  # a typing error must not send a key in clear text
        raise file_error(f"https={secure!r}", "true or false", "Correct the address.")
    name = f"qdrant://{address.host}/{within or asked}"
    with _errors_of(name, secret):
        client = qdrant().QdrantClient(
            host=address.parts.hostname,
            port=address.parts.port or PORT,
            https=secure == "true",
            api_key=secret,
            timeout=TIMEOUT_SECONDS,
            check_compatibility=False,
        )
    return client, name, within or asked, secret


def _errors_of(name: str, secret: str | None) -> AbstractContextManager[None]:
    api = qdrant("qdrant_client.http.exceptions").ApiException
    return translated_errors(
        name,
        secret,
        (api, RuntimeError, ValueError, OSError, sqlite3.Error),
        expected="a Qdrant server or folder that accepts the request",
        remedy=f"Check host, port and {API_KEY}; the same command continues where it was.",
        message=_server_message,
    )


def _server_message(error: BaseException) -> str:
    """Return the message of the server out of its JSON answer, or else the error's own text."""
    try:
        return str(json.loads(getattr(error, "content", b""))["status"]["error"])
    except (ValueError, LookupError, TypeError):
        return str(error)


def _find_collection(client: Client, name: str, asked: str | None) -> str:
    there = sorted(each.name for each in client.get_collections().collections)
    if asked is None and len(there) == 1:
        return str(there[0])
    if asked is None or asked not in there:
        raise file_error(
            f"no collection {asked!r} in {name}" if asked else f"{name} has {len(there)}",
            f"one of its collections: {quoted(there) or 'none'}",
            "Name it: qdrant://host:6333/collection, or ?collection= of a folder.",
        )
    return asked


class _QdrantReader:
    """Reads the points of a collection by ID or by a field, and writes IDs back."""

    def __init__(
        self, client: Client, collection: str, *, order: str | None, secret: str | None
    ) -> None:
        self.client = client
        self._collection = collection
        self._order = order
        self._secret = secret
        self._models = qdrant("qdrant_client.models")
        self._schema: Any = {}
        self._vector: str | None = None
        self._held: list[Record] = []  # points that were read and not taken yet
        self._pages: Iterator[list[Record]] = iter(())
        self._expected = 0

    def open(self, name: str, options: ReadOptions) -> DatabaseSource:
        """Return the source of the collection; check that every point has a place in the order."""
        about = self.client.get_collection(self._collection)
        self._schema = about.payload_schema
        self._vector = _vector_name(name, about.config.params.vectors, options.column)
        source = DatabaseSource(
            name,
            options,
            self,
            kind="qdrant",
            location="/".join(("qdrant", self._collection, self._vector or "")),
            payload_columns=len(options.payload),
        )
        if self._order is None:
            self._pages = self._by_id(source)
        else:
            self._pages = self._by_field(source, self._order)
            self._expected = self._check_every_point_has(name, self._order)
        source.resources.callback(self.client.close)
        return source

    def take(self, source: Source, rows: int) -> Rows:
        assert isinstance(source, DatabaseSource)
        with _errors_of(source.name, self._secret):
            while len(self._held) < rows:
                page = next(self._pages, None)
                if page is None:
                    break
                self._held += [point for point in page if self._numbers(point) is not None]
        taken, self._held = self._held[:rows], self._held[rows:]
        if not taken:
            return np.empty((0, 0)), None
        there = [(point.payload or {}).get(source.field) for point in taken]
        if source.field is not None:
            for point, value in zip(taken, there, strict=True):
                _check_free(source, point, value)
        source.note_keys([[point.id, had] for point, had in zip(taken, there, strict=True)])
        vectors = vectors_of(source, [*map(self._numbers, taken)])
        # The client returns float64; Qdrant stores float32.
        return vectors.astype(np.float32), _payloads(source, taken)

    def _numbers(self, point: Record) -> Any:
        vector = point.vector
        return vector.get(self._vector) if isinstance(vector, dict) else vector

    def skip(self, source: Source, rows: int) -> int:
        return skip_by_reading(self, source, rows)

    def _scroll(self, source: DatabaseSource, **where: Any) -> tuple[list[Record], Any]:
        names = {*source.options.payload, source.field, self._order} - {None}
        asked: Any = True if ALL in names else sorted(map(str, names))
        found: tuple[list[Record], Any] = self.client.scroll(
            self._collection,
            with_payload=asked or False,
            with_vectors=[self._vector] if self._vector else True,
            **where,
        )
        return found

    def _by_id(self, source: DatabaseSource) -> Iterator[list[Record]]:
        after = None
        while True:
            page, after = self._scroll(source, limit=source.rows_per_block(), offset=after)
            yield page
            if after is None:
                return

    def _by_field(self, source: DatabaseSource, order: str) -> Iterator[list[Record]]:
        """Yield points by value and, for equal values, by ID."""
        tied: list[Record] = []  # points of the last value; the next page may have more
        seen = 0
        limit = source.rows_per_block()
        while True:
            last = tied[-1].order_value if tied else None
            start = self._models.OrderBy(key=order, start_from=last)
            page, _ = self._scroll(
                source, limit=limit, order_by=start, scroll_filter=self._without(tied)
            )
            _check_order(source.name, page, order)
            seen += len(page)
            tied += page
            last = page[-1].order_value if page else None
            ready = [point for point in tied if point.order_value != last]
            tied = tied[len(ready) :]
            yield sorted(ready, key=lambda point: (point.order_value, _rank(point.id)))
            if not page:
                self._check_count(source.name, seen, order)
                return
            if len(tied) > TIES_MAX:
                raise file_error(
                    f"{source.name} has more than {TIES_MAX:,} points of one value of {order!r}",
                    "a field that tells points apart, such as a time",
                    "Order by another field.",
                )

    def _check_every_point_has(self, name: str, order: str) -> int:
        """Return how many points can be ordered by a field; raise if others have a vector.

        Qdrant leaves a point without a value out of the order without an error
        (docs/choices.md, "Every point has a value of the order").
        """
        values = self._ordered_values(order)
        vector = self._models.HasVectorCondition(has_vector=self._vector or "")
        missing = self._count(must_not=values)
        if missing:  # points without the vector are not read anyway
            missing = self._count(must=[vector], must_not=values)
        if missing:
            lacking = self._models.Filter(must=[vector], must_not=values)
            raise self._no_order(name, order, missing, lacking)
        return self._count(should=values)

    def _ordered_values(self, order: str) -> list[Any]:
        """Return conditions: a point that can be ordered by the field meets one of them."""
        models, schema = self._models, self._schema.get(order)
        number = models.FieldCondition(key=order, range=models.Range(gte=LEAST))
        time = models.FieldCondition(key=order, range=models.DatetimeRange(gte=EARLIEST))
        indexed = {"integer": [number], "float": [number], "datetime": [time]}
        return indexed.get(schema and str(schema.data_type.value), [number, time])

    def _count(self, **conditions: Any) -> int:
        which = self._models.Filter(**conditions)
        return int(self.client.count(self._collection, count_filter=which, exact=True).count)

    def _no_order(self, name: str, order: str, missing: int, lacking: Any) -> InputFileError:
        (point, *_), _ = self.client.scroll(self._collection, scroll_filter=lacking, limit=1)
        there = quoted(sorted(point.payload or {})) or "nothing"
        n = self.client.count(self._collection, exact=True).count
        return file_error(
            f"{missing:,} of {n:,} points of {name} have no number or time in {order!r}, "
            f"the field of the order; point {point.id} has {there}",
            "a field in which every point has a number or a time",
            "Check its spelling, or give those points a value; without order= all go by ID.",
        )

    def _check_count(self, name: str, seen: int, order: str) -> None:
        """Raise if fewer points came than there were when the collection was opened."""
        if seen < self._expected:
            raise file_error(
                f"{name} gave {seen:,} points by {order!r}, and "
                f"{self._expected - seen:,} points with that field did not come",
                f"the {self._expected:,} points that there were at the beginning",
                "Do not change the collection while it is read; let a new index finish first.",
            )

    def _without(self, points: list[Record]) -> Any:
        if not points:
            return None
        had = self._models.HasIdCondition(has_id=[point.id for point in points])
        return self._models.Filter(must_not=[had])

    def prepare(self, source: DatabaseSource, field: str) -> None:
        _check_fields(field)
        schema = self._schema.get(field)
        kind = schema and str(schema.data_type.value)
        if field == self._order or kind not in (None, "integer"):
            raise file_error(
                f"field {field!r} of {source.name}, of {kind or 'the order'}, for the IDs",
                "a field of integers, or a new one",
                "Choose another name.",
            )

    def write(self, source: DatabaseSource, keys: list[Any], labels: list[int]) -> None:
        models, points = self._models, defaultdict(list)
        for (key, had), label in zip(keys, labels, strict=True):
            if had != (None if label == REMOVED else label):
                points[label].append(key)
        calls: list[Any] = []
        for label, ids in points.items():
            # By a filter: a point that was deleted meanwhile is no error.
            those = models.Filter(must=[models.HasIdCondition(has_id=ids)])
            if label == REMOVED:
                gone = models.DeletePayload(keys=[source.field], filter=those)
                calls.append(models.DeletePayloadOperation(delete_payload=gone))
            else:
                given = models.SetPayload(payload={source.field: label}, filter=those)
                calls.append(models.SetPayloadOperation(set_payload=given))
        if calls:
            with _errors_of(source.name, self._secret):
                self.client.batch_update_points(self._collection, calls, wait=True)


def _payloads(source: DatabaseSource, points: list[Record]) -> Payloads | None:
    asked = source.options.payload
    if not asked:
        return None
    there = [point.payload or {} for point in points]
    if asked == (ALL,):
        return [{k: v for k, v in each.items() if k != source.field} for each in there]
    return [{name: each.get(name) for name in asked} for each in there]


def _check_order(name: str, page: list[Record], order: str) -> None:
    for point in page:
        # A point with several values would come several times.
        if point.order_value is None or isinstance(point.payload.get(order), list):
            raise file_error(
                f"{name} has no single value of {order!r} for point {point.id}",
                "one number or time a point, and a Qdrant that returns it",
                "Order by another field, or bring qdrant-client up to date.",
            )


def _check_free(source: DatabaseSource, point: Record, value: Any) -> None:
    """Raise InputFileError if the field of the IDs holds a value that is no integer."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise file_error(
            f"point {point.id} of {source.name} has {value!r:.40} in {source.field!r}, for the IDs",
            "a field of integers, or a new one",
            "Choose another name.",
        )


def _vector_name(name: str, vectors: Any, asked: str | None) -> str | None:
    """Return the name of the vectors; None if the vectors of the collection have no names."""
    there = sorted(vectors) if isinstance(vectors, dict) else []
    if not there and not asked:
        return None
    chosen = asked or (there[0] if len(there) == 1 else None)
    if chosen not in there:
        raise file_error(
            f"no single vector {asked!r} in {name}" if asked else f"{name} has several vectors",
            f"one of {quoted(there)}" if there else "no column: it has no names",
            "Correct ?column= in the address.",
        )
    return chosen


def _rank(key: Any) -> tuple[bool, Any]:
    """Return the sort key of a point ID: numbers before texts, as Qdrant sorts them."""
    return isinstance(key, str), key
