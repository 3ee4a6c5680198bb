"""Vectors of a PostgreSQL table, of pgvector's types or of arrays.

Rows come through a cursor of the server's, all of one moment, in an order in which no two rows
tie. Names of tables and columns are looked up among those there are, and quoted by the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from linkstream.errors import InputFileError
from linkstream.io.catalogue import PACKED, Layout, layout_of
from linkstream.io.databases import REMOVED, Address, DatabaseSource, as_vectors, told, unreadable
from linkstream.io.faults import extra_module, fault
from linkstream.io.source import Payloads, Vectors, Wanted

OURS = ("table", "column", "order")
CONNECT_SECONDS = 10
LOCK_SECONDS = 10
_ID_TYPES = ("bigint", "integer")
_HEAD = 4  # bytes before the numbers of a vector
# What the driver gives as JSON has it; everything else is told as text.
_PLAIN = ("boolean", "smallint", "integer", "bigint", "text", "json", "jsonb")

# psycopg is not a dependency; its objects are Any throughout.
Connection = Any
Query = Any


def psycopg(module: str = "psycopg") -> Any:
    """A module of psycopg, taken up when it is needed."""
    return extra_module(module, extra="pgvector", purpose="A table of PostgreSQL")


def open_postgres(text: str, wanted: Wanted) -> PostgresSource:
    """The vectors of a table, by its address."""
    psycopg()
    address = Address.of(text, *OURS)
    wanted = address.column(wanted)
    table, order = (address.options.get(name, "") for name in ("table", "order"))
    name = f"postgresql://{address.host}{address.path}?table={table}"
    for word, value in (("table", table), ("order", order)):
        if not value:
            raise fault(
                f"an address without {word}",
                "postgresql://host/database?table=faces&order=id",
                f"Add {word}=, the {_MEANING[word]}.",
            )
    connection, secret = _connected(address, name)
    try:
        parts = table.split(".")
        with _guarded(name, secret):
            layout = layout_of(connection, name, parts, order.split(","), wanted)
            return PostgresSource(name, wanted, connection, layout, secret)
    except BaseException:
        connection.close()
        raise


_MEANING = {
    "table": "name of the table",
    "order": "column, or columns with commas, by which rows came",
}


def _connected(address: Address, name: str) -> tuple[Connection, str | None]:
    driver = psycopg()
    known = {each.keyword.decode() for each in psycopg("psycopg.pq").Conninfo.get_defaults()}
    for word in address.others:
        if word not in known:
            if not word.isidentifier():
                raise unreadable()
            raise fault(
                f"{word!r} in an address of PostgreSQL",
                f"{', '.join(OURS)}, or what PostgreSQL's own addresses have",
                "Check its spelling.",
            )
    try:
        given = psycopg("psycopg.conninfo").conninfo_to_dict(address.given)
    except driver.Error:  # its words may hold the password
        raise unreadable() from None
    secret = given.get("password")
    usual = {"connect_timeout": CONNECT_SECONDS, "application_name": "linkstream"}
    try:
        # Nothing is prepared: poolers between us and the server may not know of it.
        fixed = {"client_encoding": "utf8", "prepare_threshold": None}
        return driver.connect(**usual | given | fixed), secret
    except driver.Error as error:
        raise fault(
            f"{name}: no connection ({told(error, secret)})",
            "a PostgreSQL server that lets you in",
            "Check host, port, user and password; the last may be in PGPASSWORD.",
        ) from None


@contextmanager
def _guarded(name: str, secret: str | None) -> Iterator[None]:
    """What the server refuses is told as an error of ours."""
    try:
        yield
    except psycopg().Error as error:
        raise fault(
            f"{name}: {told(error, secret)}",
            "a server that goes along",
            "Mend what it says; the same command goes on where it was.",
        ) from None


class PostgresSource(DatabaseSource):
    """Rows of a table, all of one moment."""

    def __init__(
        self, name: str, wanted: Wanted, connection: Connection, layout: Layout, secret: str | None
    ) -> None:
        super().__init__(name, wanted, kind="postgresql", n=None, dimension=None)
        self._connection, self._layout, self._secret = connection, layout, secret
        self._sql = psycopg("psycopg.sql")
        self._table = self._sql.Identifier(*layout.parts)
        self._payload = self._rest(list(layout.types), layout.column)
        self.place = "/".join((layout.database, *layout.parts, layout.column))
        self._cursor: Any = None
        self._begin()
        self._owned.callback(connection.close)
        self._owned.callback(self._let_go)

    @property
    def payload_columns(self) -> int:
        """How many columns make the payload of a row."""
        return len(self._payload)

    def _begin(self) -> None:
        """One moment of the table: how many rows, and a cursor before the first."""
        connection, column = self._connection, self._sql.Identifier(self._layout.column)
        self._let_go()
        connection.isolation_level = psycopg().IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        self.n = self._count_rows()
        read = (
            "SELECT {column}, ARRAY[{key}]::text[]{payload} FROM {table}"
            " WHERE {column} IS NOT NULL ORDER BY {order}"
        )
        comma = self._sql.SQL(", ")
        self._cursor = connection.cursor("linkstream", binary=True)
        self._cursor.execute(
            self._sql.SQL(read).format(
                column=column,
                table=self._table,
                key=comma.join(self._as_text(each) for each in self._layout.key),
                payload=self._sql.Composed([comma + self._as_json(each) for each in self._payload]),
                order=comma.join(map(self._sql.Identifier, self._layout.order)),
            )
        )

    def _count_rows(self) -> int:
        """Return how many rows have a vector; refuse if one of them has NULL in the order.

        NULL sorts after every value, so the next new row would come in between
        (docs/choices.md, "No NULL in the order").
        """
        column, order = self._sql.Identifier(self._layout.column), self._layout.order
        null = "count(*) FILTER (WHERE {column} IS NOT NULL AND {each} IS NULL)"
        counts = [
            self._sql.SQL(null).format(column=column, each=self._sql.Identifier(each))
            for each in order
        ]
        query = self._sql.SQL("SELECT count({column}), {nulls} FROM {table}").format(
            column=column, nulls=self._sql.SQL(", ").join(counts), table=self._table
        )
        n, *nulls = self._connection.execute(query).fetchone()
        for each, missing in zip(order, nulls, strict=True):
            if missing:
                raise fault(
                    f"{missing:,} of {n:,} rows of {self.name} have NULL in {each!r}, "
                    "a column of the order",
                    "a value in each row that has a vector",
                    "Fill them in, or order by a column that has no NULL, such as the key.",
                )
        return int(n)

    def _let_go(self) -> None:
        """End the moment that is read, if there is one."""
        with suppress(psycopg().Error):  # of a connection that is lost, nothing is left to end
            if self._cursor is not None:
                self._cursor.close()
            self._connection.rollback()
        self._cursor = None

    def _as_text(self, column: str) -> Query:
        return self._sql.SQL("{}::text").format(self._sql.Identifier(column))

    def _as_json(self, column: str) -> Query:
        kind = self._layout.types[column]
        if kind in _PLAIN or kind.removesuffix("[]") in _PLAIN:
            return self._sql.Identifier(column)
        if kind in ("real", "double precision"):  # which JSON has no NaN and no infinity of
            finite = "CASE WHEN {0} BETWEEN '-1e308' AND '1e308' THEN {0} END"
            return self._sql.SQL(finite).format(self._sql.Identifier(column))
        return self._as_text(column)

    def _take(self, rows: int) -> tuple[Vectors, Payloads | None]:
        with self._failing():
            taken = self._cursor.fetchmany(rows)
        if not taken:
            return np.empty((0, 0)), None
        self._note_keys([row[1] for row in taken])
        numbers = PACKED.get(self._layout.types[self._layout.column])
        given = [row[0] for row in taken]
        if numbers is not None:
            given = [np.frombuffer(each, dtype=numbers, offset=_HEAD) for each in given]
        vectors, dimension = as_vectors(self, given, self.row)
        self._settle_dimension(dimension, f"{self.name}, row {self.row} has a vector")
        if not self._wanted.payload:
            return vectors, None
        return vectors, [dict(zip(self._payload, row[2:], strict=True)) for row in taken]

    def _pass_over(self, rows: int) -> int:
        if self._spool is not None:  # which rows they are has to be known
            there = 0
            while there < rows:
                some = len(self._take(min(rows - there, self._rows_at_once()))[0])
                if not some:
                    break
                there += some
            return there
        with self._failing():
            self._cursor.scroll(rows)
        return rows

    def _failing(self) -> Any:
        return _guarded(self.name, self._secret)

    # Writing back

    def _prepare(self, field: str) -> None:
        layout = self._layout
        kind = layout.types.get(field)
        if field in (*layout.key, *layout.order) or kind not in (None, *_ID_TYPES):
            raise self._not_for_ids(field, kind)
        with self._failing():
            self._let_go()
            if kind is None:
                self._add_column(field)
            self._check_allowed(field)
            self._payload = [
                each for each in self._payload if each != field or each in self._wanted.payload
            ]
            self._begin()

    def _not_for_ids(self, field: str, kind: str | None) -> InputFileError:
        return fault(
            f"column {field!r} of {self.name}, of {kind}, for the IDs",
            "a column of bigint that is not part of the key or of the order, or a new one",
            "Choose another name.",
        )

    def _check_allowed(self, field: str) -> None:
        """Before the work, not after it."""
        asked = "SELECT has_column_privilege(%s::oid, %s::text, 'UPDATE')"
        (allowed,) = self._connection.execute(asked, (self._layout.oid, field)).fetchone()
        if not allowed:
            raise fault(
                f"column {field!r} of {self.name}, which this user may not change",
                "the right to update it",
                "Have it granted: GRANT UPDATE (column) ON table TO user.",
            )

    def _add_column(self, field: str) -> None:
        self._connection.read_only = False
        limit = self._sql.SQL("SET LOCAL lock_timeout = {}").format(f"{LOCK_SECONDS}s")
        add = "ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} bigint"
        self._connection.execute(limit)
        self._connection.execute(
            self._sql.SQL(add).format(self._table, self._sql.Identifier(field))
        )
        self._connection.commit()

    def _write(self, keys: list[Any], labels: list[int]) -> None:
        names = [self._sql.Identifier(f"k{place}") for place in range(len(self._layout.key))]
        texts = ", ".join(f"${place}::text[]" for place in range(1, len(names) + 1))
        same = [
            self._sql.SQL("t.{0} = v.{1}::{2}").format(
                self._sql.Identifier(each),
                name,
                self._sql.SQL(self._layout.spelled[each]),
            )
            for each, name in zip(self._layout.key, names, strict=True)
        ]
        update = (
            "UPDATE {table} t SET {field} = v.label FROM unnest({texts}, {ids}::bigint[])"
            " AS v({names}, label) WHERE {same} AND t.{field} IS DISTINCT FROM v.label"
        )
        query = self._sql.SQL(update).format(
            table=self._table,
            field=self._sql.Identifier(self._field),
            texts=self._sql.SQL(texts),
            ids=self._sql.SQL(f"${len(names) + 1}"),
            names=self._sql.SQL(", ").join(names),
            same=self._sql.SQL(" AND ").join(same),
        )
        ids = [None if label == REMOVED else label for label in labels]
        with self._failing():
            self._let_go()
            self._connection.isolation_level = psycopg().IsolationLevel.READ_COMMITTED
            self._connection.read_only = False
            # Raw: a % of a name is no place for a value.
            raw = psycopg().RawCursor(self._connection)
            raw.execute(query, [*map(list, zip(*keys, strict=True)), ids])
            self._connection.commit()
