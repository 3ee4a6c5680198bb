"""Vectors of a Qdrant collection: of a server, or of a folder in Qdrant's local mode.

Points come page by page, by their IDs or by a field of their payload. A server shows no single
moment of a collection: leave it as it is while it is read, but for new points at the end.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from linkstream.errors import InputFileError
from linkstream.io.databases import REMOVED, Address, DatabaseSource, as_vectors, told, unreadable
from linkstream.io.faults import extra_module, fault
from linkstream.io.source import ALL, Payloads, Vectors, Wanted

OURS = ("collection", "column", "order", "https")
API_KEY = "QDRANT_API_KEY"  # in the environment
PORT = 6333
TIES = 10_000  # points of one value of the order, at most
SECONDS = 30
LEAST = -1.7e308  # no number of a payload is below
EARLIEST = "0001-01-01T00:00:00Z"
_FIELD = re.compile(r"[\w-]+")

# qdrant-client is not a dependency; its objects are Any throughout.
Client = Any
Record = Any


def qdrant(module: str = "qdrant_client") -> Any:
    """A module of qdrant-client, taken up when it is needed."""
    return extra_module(module, extra="qdrant", purpose="A collection of Qdrant")


def open_qdrant(text: str, wanted: Wanted) -> QdrantSource:
    """The vectors of a collection, by its address."""
    qdrant()
    address = Address.of(text, *OURS)
    wanted = address.column(wanted)
    if address.others:
        if not address.others[0].isidentifier():
            raise unreadable()
        raise fault(
            f"{address.others[0]!r} in an address of Qdrant",
            ", ".join(OURS),
            f"Check its spelling; a key of the server goes into {API_KEY}.",
        )
    order = address.options.get("order")
    _check_fields(order, *(() if wanted.payload == (ALL,) else wanted.payload))
    client, name, collection, secret = _client(address)
    try:
        with _guarded(name, secret):
            chosen = _collection(client, name, collection)
            if not address.host:
                name = f"{name}?collection={chosen}"
            return QdrantSource(name, wanted, client, chosen, order=order, secret=secret)
    except BaseException:
        client.close()
        raise


def _check_fields(*names: str | None) -> None:
    for name in names:
        if name is not None and not _FIELD.fullmatch(name):
            raise fault(
                f"a field {name!r} of a payload",
                "letters, digits, _ and -: a field that is not within another",
                "Choose another field.",
            )


def _client(address: Address) -> tuple[Client, str, str | None, str | None]:
    """A client, its name without secrets, the collection asked for, and what must not be told."""
    asked = address.options.get("collection")
    if not address.host:
        folder = Path(address.path)
        name = f"qdrant://{folder}"
        if not (folder / "meta.json").is_file():  # the client would make it
            raise fault(f"{name} is no folder of Qdrant's", "one made in local mode", "Check it.")
        with _guarded(name, None):
            return qdrant().QdrantClient(path=str(folder)), name, asked, None
    within = address.path.strip("/")
    if bool(within) == bool(asked) or "/" in within:
        raise fault(
            f"qdrant://{address.host} with {'two collections' if asked else 'no collection'}",
            f"qdrant://host:{PORT}/collection",
            "Name the collection after the host.",
        )
    secret = unquote(address.parts.password or "") or os.environ.get(API_KEY)
    secure = address.options.get("https", "false")
    if secure not in ("true", "false"):  # a slip must not send a key in the clear
        raise fault(f"https={secure!r}", "true or false", "Mend the address.")
    name = f"qdrant://{address.host}/{within or asked}"
    with _guarded(name, secret):
        client = qdrant().QdrantClient(
            host=address.parts.hostname,
            port=address.parts.port or PORT,
            https=secure == "true",
            api_key=secret,
            timeout=SECONDS,
            check_compatibility=False,
        )
    return client, name, within or asked, secret


@contextmanager
def _guarded(name: str, secret: str | None) -> Iterator[None]:
    """What Qdrant refuses is told as an error of ours."""
    exceptions = qdrant("qdrant_client.http.exceptions")
    kinds = (exceptions.ApiException, RuntimeError, ValueError, OSError, sqlite3.Error)
    try:
        yield
    except kinds as error:
        if hasattr(error, "remedy"):  # ours already
            raise
        raise fault(
            f"{name}: {told(_plain(error), secret)}",
            "a Qdrant that answers and goes along",
            f"Check host, port and {API_KEY}; the same command goes on where it was.",
        ) from None


def _plain(error: BaseException) -> BaseException:
    """What a server said, out of the answer it is wrapped in."""
    try:
        said = json.loads(getattr(error, "content", b""))["status"]["error"]
    except (ValueError, LookupError, TypeError):
        return error
    return RuntimeError(str(said))


def _collection(client: Client, name: str, asked: str | None) -> str:
    there = sorted(each.name for each in client.get_collections().collections)
    if asked is None and len(there) == 1:
        return str(there[0])
    if asked is None or asked not in there:
        shown = ", ".join(map(repr, there[:10])) or "none"
        raise fault(
            f"no collection {asked!r} in {name}" if asked else f"{name} has {len(there)}",
            f"one of its collections: {shown}",
            "Name it: qdrant://host:6333/collection, or ?collection= of a folder.",
        )
    return asked


class QdrantSource(DatabaseSource):
    """Points of a collection, by ID or by a field."""

    def __init__(
        self,
        name: str,
        wanted: Wanted,
        client: Client,
        collection: str,
        *,
        order: str | None,
        secret: str | None,
    ) -> None:
        super().__init__(name, wanted, kind="qdrant", n=None, dimension=None)
        self._client, self._collection, self._secret = client, collection, secret
        self._models = qdrant("qdrant_client.models")
        self._order = order
        about = client.get_collection(collection)
        self._schema = about.payload_schema
        self._vector = _named(name, about.config.params.vectors, wanted.column)
        self.place = "/".join(("qdrant", collection, self._vector or ""))
        self._held: list[Record] = []
        self._pages = self._by_id() if order is None else self._by_field(order)
        self._expected = 0 if order is None else self._check_every_point_has(order)
        self._owned.callback(client.close)

    @property
    def payload_columns(self) -> int:
        """How many fields make the payload of a row; of all, one that holds them."""
        return len(self._wanted.payload)

    def _take(self, rows: int) -> tuple[Vectors, Payloads | None]:
        with _guarded(self.name, self._secret):
            while len(self._held) < rows:
                page = next(self._pages, None)
                if page is None:
                    break
                self._held += [point for point in page if self._numbers(point) is not None]
        taken, self._held = self._held[:rows], self._held[rows:]
        if not taken:
            return np.empty((0, 0)), None
        for point in taken if self._field else ():
            self._check_free(point, self._field)
        there = [(point.payload or {}).get(self._field) for point in taken]
        self._note_keys([[point.id, had] for point, had in zip(taken, there, strict=True)])
        vectors, dimension = as_vectors(self, [*map(self._numbers, taken)], self.row)
        self._settle_dimension(dimension, f"{self.name}, row {self.row} has a vector")
        # A client speaks of float64; the numbers are float32, as everywhere in Qdrant.
        return vectors.astype(np.float32), self._payloads(taken)

    def _numbers(self, point: Record) -> Any:
        vector = point.vector
        return vector.get(self._vector) if isinstance(vector, dict) else vector

    def _payloads(self, points: list[Record]) -> Payloads | None:
        wanted = self._wanted.payload
        if not wanted:
            return None
        kept = [point.payload or {} for point in points]
        if wanted == (ALL,):
            return [{k: v for k, v in each.items() if k != self._field} for each in kept]
        return [{name: each.get(name) for name in wanted} for each in kept]

    def _pass_over(self, rows: int) -> int:
        there = 0
        while there < rows:
            some = len(self._take(min(rows - there, self._rows_at_once()))[0])
            if not some:
                break
            there += some
        return there

    def _scroll(self, **where: Any) -> tuple[list[Record], Any]:
        names = {*self._wanted.payload, self._field, self._order} - {None}
        asked: Any = True if ALL in names else sorted(map(str, names))
        found: tuple[list[Record], Any] = self._client.scroll(
            self._collection,
            with_payload=asked or False,
            with_vectors=[self._vector] if self._vector else True,
            **where,
        )
        return found

    def _by_id(self) -> Iterator[list[Record]]:
        after = None
        while True:
            page, after = self._scroll(limit=self._rows_at_once(), offset=after)
            yield page
            if after is None:
                return

    def _by_field(self, order: str) -> Iterator[list[Record]]:
        """By value and, where values are alike, by ID; those of one value come together."""
        tied: list[Record] = []  # of the last value, which may go on
        seen = 0
        limit = self._rows_at_once()
        while True:
            last = tied[-1].order_value if tied else None
            start = self._models.OrderBy(key=order, start_from=last)
            page, _ = self._scroll(limit=limit, order_by=start, scroll_filter=self._but(tied))
            self._check_order(page, order)
            seen += len(page)
            tied += page
            last = page[-1].order_value if page else None
            ready = [point for point in tied if point.order_value != last]
            tied = tied[len(ready) :]
            yield sorted(ready, key=lambda point: (point.order_value, _rank(point.id)))
            if not page:
                self._check_all_came(seen, order)
                return
            if len(tied) > TIES:
                raise fault(
                    f"{self.name} has more than {TIES:,} points of one value of {order!r}",
                    "a field that tells points apart, such as a time",
                    "Order by another field.",
                )

    def _check_order(self, page: list[Record], order: str) -> None:
        for point in page:
            # A point with several values would come several times.
            if point.order_value is None or isinstance(point.payload.get(order), list):
                raise fault(
                    f"{self.name} has no single value of {order!r} for point {point.id}",
                    "one number or time a point, and a Qdrant that says it",
                    "Order by another field, or bring qdrant-client up to date.",
                )

    def _check_every_point_has(self, order: str) -> int:
        """Return how many points can be ordered by a field; refuse if others have a vector.

        Qdrant leaves a point without a value out of the order and says nothing
        (docs/choices.md, "Every point has a value of the order").
        """
        values = self._ordered_values(order)
        vector = self._models.HasVectorCondition(has_vector=self._vector or "")
        missing = self._count(must_not=values)
        if missing:  # a point without the vector would be left out in any case
            missing = self._count(must=[vector], must_not=values)
        if missing:
            lacking = self._models.Filter(must=[vector], must_not=values)
            raise self._no_order(order, missing, lacking)
        return self._count(should=values)

    def _ordered_values(self, order: str) -> list[Any]:
        """Conditions of which a point meets one if it has a value that Qdrant can order by."""
        models, schema = self._models, self._schema.get(order)
        number = models.FieldCondition(key=order, range=models.Range(gte=LEAST))
        time = models.FieldCondition(key=order, range=models.DatetimeRange(gte=EARLIEST))
        indexed = {"integer": [number], "float": [number], "datetime": [time]}
        return indexed.get(schema and str(schema.data_type.value), [number, time])

    def _count(self, **conditions: Any) -> int:
        which = self._models.Filter(**conditions)
        return int(self._client.count(self._collection, count_filter=which, exact=True).count)

    def _no_order(self, order: str, missing: int, lacking: Any) -> InputFileError:
        (point, *_), _ = self._client.scroll(self._collection, scroll_filter=lacking, limit=1)
        there = ", ".join(map(repr, sorted(point.payload or {})[:10])) or "nothing"
        n = self._client.count(self._collection, exact=True).count
        return fault(
            f"{missing:,} of {n:,} points of {self.name} have no number or time in {order!r}, "
            f"the field of the order; point {point.id} has {there}",
            "a field in which every point has a number or a time",
            "Check its spelling, or give those points a value; without order= all go by ID.",
        )

    def _check_all_came(self, seen: int, order: str) -> None:
        """Raise if fewer points came than there were when the collection was opened."""
        if seen < self._expected:
            raise fault(
                f"{self.name} gave {seen:,} points by {order!r}, and "
                f"{self._expected - seen:,} points with that field did not come",
                f"the {self._expected:,} points that there were at the beginning",
                "Leave the collection as it is while it is read; a new index must be complete.",
            )

    def _but(self, points: list[Record]) -> Any:
        if not points:
            return None
        had = self._models.HasIdCondition(has_id=[point.id for point in points])
        return self._models.Filter(must_not=[had])

    # Writing back

    def _prepare(self, field: str) -> None:
        _check_fields(field)
        schema = self._schema.get(field)
        kind = schema and str(schema.data_type.value)
        if field == self._order or kind not in (None, "integer"):
            raise fault(
                f"field {field!r} of {self.name}, of {kind or 'the order'}, for the IDs",
                "a field of integers, or a new one",
                "Choose another name.",
            )

    def _check_free(self, point: Record, field: str | None) -> None:
        value = (point.payload or {}).get(field)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise fault(
                f"point {point.id} of {self.name} has {value!r:.40} in {field!r}, for the IDs",
                "a field of integers, or a new one",
                "Choose another name.",
            )

    def _write(self, keys: list[Any], labels: list[int]) -> None:
        models, points = self._models, defaultdict(list)
        for (key, had), label in zip(keys, labels, strict=True):
            if had != (None if label == REMOVED else label):
                points[label].append(key)
        calls: list[Any] = []
        for label, ids in points.items():
            # By a filter: a point that was deleted meanwhile is nobody's mistake.
            those = models.Filter(must=[models.HasIdCondition(has_id=ids)])
            if label == REMOVED:
                gone = models.DeletePayload(keys=[self._field], filter=those)
                calls.append(models.DeletePayloadOperation(delete_payload=gone))
            else:
                given = models.SetPayload(payload={self._field: label}, filter=those)
                calls.append(models.SetPayloadOperation(set_payload=given))
        if calls:
            with _guarded(self.name, self._secret):
                self._client.batch_update_points(self._collection, calls, wait=True)


def _named(name: str, vectors: Any, asked: str | None) -> str | None:
    """The name of the vectors of a collection that has several; None where they have none."""
    there = sorted(vectors) if isinstance(vectors, dict) else []
    if not there and not asked:
        return None
    chosen = asked or (there[0] if len(there) == 1 else None)
    if chosen not in there:
        raise fault(
            f"no single vector {asked!r} in {name}" if asked else f"{name} has several vectors",
            f"one of {', '.join(map(repr, there[:10]))}" if there else "no column: it has no names",
            "Mend column= in the address.",
        )
    return chosen


def _rank(key: Any) -> tuple[bool, Any]:
    """Numbers before texts, as Qdrant itself has them."""
    return isinstance(key, str), key
