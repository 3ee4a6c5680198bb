"""Vectors of a PostgreSQL table, in pgvector's types or in arrays.

Rows come through a server-side cursor, from one snapshot of the table, in an order without ties.
Names of tables and columns are looked up in the catalogue as values of a query, and quoted by the
driver.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkstream.io.databases import (
    REMOVED,
    Address,
    DatabaseSource,
    masked,
    skip_by_reading,
    translated_errors,
    unreadable,
    vectors_of,
)
from linkstream.io.source import (
    ALL,
    ReadOptions,
    Rows,
    Source,
    default_column,
    file_error,
    import_extra,
    quoted,
)

ADDRESS_WORDS = ("table", "column", "order")
CONNECT_SECONDS = 10
LOCK_SECONDS = 10
_ID_TYPES = ("bigint", "integer")
# The binary form of a vector: its length, two unused bytes, and the numbers, big-endian.
_PACKED = {"vector": ">f4", "halfvec": ">f2"}
_PACKED_HEADER = 4  # bytes
_LISTS = ("real[]", "double precision[]", "integer[]", "bigint[]", "smallint[]")
# Types that the driver returns as JSON has them; all others are cast to text.
_JSON_TYPES = ("boolean", "smallint", "integer", "bigint", "text", "json", "jsonb")

# psycopg is not a dependency; its objects are Any throughout.
Connection = Any
Query = Any


def psycopg(module: str = "psycopg") -> Any:
    """Import a module of psycopg."""
    return import_extra(module, extra="pgvector", purpose="A table of PostgreSQL")


def open_postgres(text: str, options: ReadOptions) -> DatabaseSource:
    """Open the vectors of a table."""
    psycopg()
    address = Address.parse(text, *ADDRESS_WORDS)
    options = address.with_column(options)
    table, order = (address.options.get(word, "") for word in ("table", "order"))
    name = f"postgresql://{address.host}{address.path}?table={table}"
    meanings = {
        "table": "name of the table",
        "order": "column, or columns with commas, by which rows came",
    }
    for word, meaning in meanings.items():
        if not address.options.get(word):
            raise file_error(
                f"an address without {word}",
                "postgresql://host/database?table=faces&order=id",
                f"Add {word}=, the {meaning}.",
            )
    connection, secret = _connect(address, name)
    try:
        with _errors_of(name, secret):
            layout = _find_layout(connection, name, table.split("."), order.split(","), options)
            return _open_table(name, options, _PostgresReader(connection, layout, options, secret))
    except BaseException:
        connection.close()
        raise


def _open_table(name: str, options: ReadOptions, reader: _PostgresReader) -> DatabaseSource:
    layout = reader.layout
    location = "/".join((layout.database, *layout.parts, layout.column))
    columns = len(reader.payload)
    source = DatabaseSource(
        name, options, reader, kind="postgresql", location=location, payload_columns=columns
    )
    reader.begin(source)
    source.resources.callback(reader.connection.close)
    source.resources.callback(reader.end_transaction)
    return source


def _connect(address: Address, name: str) -> tuple[Connection, str | None]:
    """Return a connection, and the password if the address has one."""
    driver = psycopg()
    known = {each.keyword.decode() for each in psycopg("psycopg.pq").Conninfo.get_defaults()}
    expected = f"{', '.join(ADDRESS_WORDS)}, or what PostgreSQL's own addresses have"
    address.refuse_others(known, "PostgreSQL", expected, "")
    try:
        given = psycopg("psycopg.conninfo").conninfo_to_dict(address.given)
    except driver.Error:  # its message may hold the password
        raise unreadable() from None
    secret = given.get("password")
    defaults = {"connect_timeout": CONNECT_SECONDS, "application_name": "linkstream"}
    try:
        # No prepared statements: a connection pooler may not support them.
        fixed = {"client_encoding": "utf8", "prepare_threshold": None}
        return driver.connect(**defaults | given | fixed), secret
    except driver.Error as error:
        raise file_error(
            f"{name}: no connection ({masked(str(error) or type(error).__name__, secret)})",
            "a PostgreSQL server that lets you in",
            "Check host, port, user and password; the last may be in PGPASSWORD.",
        ) from None


def _errors_of(name: str, secret: str | None) -> AbstractContextManager[None]:
    return translated_errors(
        name,
        secret,
        (psycopg().Error,),
        expected="a server that accepts the query",
        remedy="Correct what the server reports; the same command continues where it was.",
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a table, and those that are read."""

    oid: int  # number of the table in the catalogue
    parts: tuple[str, str]  # schema and table
    database: str
    types: dict[str, str]  # of the columns, without the schema of a type
    query_types: dict[str, str]  # of the columns, as a query has to name them
    column: str  # of the vectors
    order: list[str]  # columns to sort by; no two rows are equal in all of them
    key: list[str]  # columns that identify a row


def _find_layout(
    connection: Connection, name: str, parts: list[str], order: list[str], options: ReadOptions
) -> Layout:
    """Find a table and the columns asked for; raise InputFileError if one does not exist."""
    oid, schema, table = _find_table(connection, name, parts)
    rows = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a"
        " WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        (oid,),
    ).fetchall()
    # The type of an extension has its schema in front if that is not on the search path.
    types = {each: kind.rpartition(".")[2] for each, kind in rows}
    vectors = [each for each, kind in types.items() if kind in _PACKED]
    seen = f"{name} has {len(vectors)} columns of vectors"
    column = options.column or default_column(types, vectors, seen, "Add column= to the address.")
    for each in (column, *order, *(options.payload if options.payload != (ALL,) else ())):
        if each not in types:
            raise file_error(
                f"no column {each!r} in {name}", f"one of {quoted(list(types))}", "Check the name."
            )
    if types[column] not in (*_PACKED, *_LISTS):
        raise file_error(
            f"column {column!r} of {name} is of {types[column]}",
            "vector, halfvec, or an array of numbers",
            "Choose another column.",
        )
    key = _find_key(connection, name, oid, order)
    order = order + [each for each in key if each not in order]
    database = connection.info.dbname
    return Layout(oid, (schema, table), database, types, dict(rows), column, order, key)


def _find_table(connection: Connection, name: str, parts: list[str]) -> tuple[int, str, str]:
    """Return the number, the schema and the name of a table."""
    schema = parts[0] if len(parts) == 2 else None
    found = connection.execute(
        "SELECT c.oid, n.nspname, c.relname FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relname = %s AND c.relkind IN ('r', 'p')"
        " AND CASE WHEN %s::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = %s END",
        (parts[-1], schema, schema),
    ).fetchone()
    if found is None or len(parts) > 2:
        raise file_error(
            f"no table {'.'.join(parts)!r} in {name.partition('?')[0]}",
            "a table, or schema.table, written as it is there",
            "Check the name; capitals count. Views have no key and are not read.",
        )
    oid, schema, table = found
    return oid, schema, table


def _find_key(connection: Connection, name: str, oid: int, order: list[str]) -> list[str]:
    """Return columns that identify a row: the primary key, or else a unique index."""
    keys = [
        names
        for (names,) in connection.execute(
            "SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
            " WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL"
            " AND i.indexprs IS NULL GROUP BY i.indexrelid, i.indisprimary, i.indnkeyatts"
            # Columns that an index only includes do not make a row unique.
            " HAVING bool_and(a.attnotnull) AND count(*) = i.indnkeyatts"
            " ORDER BY i.indisprimary DESC, i.indexrelid",
            (oid,),
        )
    ]
    if not keys:
        raise file_error(
            f"{name} has no primary key, so rows may tie in the order {','.join(order)!r}",
            "a table in which each row can be told from the others",
            "Give it one: ALTER TABLE … ADD PRIMARY KEY (id).",
        )
    return list(keys[0])


class _PostgresReader:
    """Reads the rows of one snapshot of a table, and writes IDs back."""

    def __init__(
        self, connection: Connection, layout: Layout, options: ReadOptions, secret: str | None
    ) -> None:
        self.connection = connection
        self.layout = layout
        self.payload = options.payload_names(list(layout.types), layout.column)
        self._secret = secret
        self._sql = psycopg("psycopg.sql")
        self._table = self._sql.Identifier(*layout.parts)
        self._cursor: Any = None

    def begin(self, source: Source) -> None:
        """Begin a snapshot of the table: count the rows and open a cursor before the first."""
        column = self._sql.Identifier(self.layout.column)
        self.end_transaction()
        self.connection.isolation_level = psycopg().IsolationLevel.REPEATABLE_READ
        self.connection.read_only = True
        source.n = self._count_rows(source.name)
        read = (
            "SELECT {column}, ARRAY[{key}]::text[]{payload} FROM {table}"
            " WHERE {column} IS NOT NULL ORDER BY {order}"
        )
        comma = self._sql.SQL(", ")
        self._cursor = self.connection.cursor("linkstream", binary=True)
        self._cursor.execute(
            self._sql.SQL(read).format(
                column=column,
                table=self._table,
                key=comma.join(self._as_text(each) for each in self.layout.key),
                payload=self._sql.Composed([comma + self._as_json(each) for each in self.payload]),
                order=comma.join(map(self._sql.Identifier, self.layout.order)),
            )
        )

    def _count_rows(self, name: str) -> int:
        """Return how many rows have a vector; raise if one of them has NULL in the order.

        NULL sorts after every value, so the next new row would come in between
        (docs/choices.md, "No NULL in the order").
        """
        column, order = self._sql.Identifier(self.layout.column), self.layout.order
        null = "count(*) FILTER (WHERE {column} IS NOT NULL AND {each} IS NULL)"
        counts = [
            self._sql.SQL(null).format(column=column, each=self._sql.Identifier(each))
            for each in order
        ]
        query = self._sql.SQL("SELECT count({column}), {nulls} FROM {table}").format(
            column=column, nulls=self._sql.SQL(", ").join(counts), table=self._table
        )
        n, *nulls = self.connection.execute(query).fetchone()
        for each, missing in zip(order, nulls, strict=True):
            if missing:
                raise file_error(
                    f"{missing:,} of {n:,} rows of {name} have NULL in {each!r}, "
                    "a column of the order",
                    "a value in each row that has a vector",
                    "Fill them in, or order by a column that has no NULL, such as the key.",
                )
        return int(n)

    def end_transaction(self) -> None:
        """Close the cursor and end the snapshot, if there is one."""
        with suppress(psycopg().Error):  # a lost connection has nothing to end
            if self._cursor is not None:
                self._cursor.close()
            self.connection.rollback()
        self._cursor = None

    def _as_text(self, column: str) -> Query:
        return self._sql.SQL("{}::text").format(self._sql.Identifier(column))

    def _as_json(self, column: str) -> Query:
        kind = self.layout.types[column]
        if kind in _JSON_TYPES or kind.removesuffix("[]") in _JSON_TYPES:
            return self._sql.Identifier(column)
        if kind in ("real", "double precision"):  # JSON has no NaN and no infinity
            finite = "CASE WHEN {0} BETWEEN '-1e308' AND '1e308' THEN {0} END"
            return self._sql.SQL(finite).format(self._sql.Identifier(column))
        return self._as_text(column)

    def take(self, source: Source, rows: int) -> Rows:
        assert isinstance(source, DatabaseSource)
        with _errors_of(source.name, self._secret):
            taken = self._cursor.fetchmany(rows)
        if not taken:
            return np.empty((0, 0)), None
        source.note_keys([row[1] for row in taken])
        dtype = _PACKED.get(self.layout.types[self.layout.column])
        given = [row[0] for row in taken]
        if dtype is not None:
            given = [np.frombuffer(each, dtype=dtype, offset=_PACKED_HEADER) for each in given]
        vectors = vectors_of(source, given)
        if not source.options.payload:
            return vectors, None
        return vectors, [dict(zip(self.payload, row[2:], strict=True)) for row in taken]

    def skip(self, source: Source, rows: int) -> int:
        """Skip rows; read them if their keys are needed to write IDs back."""
        assert isinstance(source, DatabaseSource)
        if source.is_prepared:
            return skip_by_reading(self, source, rows)
        with _errors_of(source.name, self._secret):
            self._cursor.scroll(rows)
        return rows

    def prepare(self, source: DatabaseSource, field: str) -> None:
        """Check or create the column of the IDs, and begin a snapshot that has it."""
        kind = self.layout.types.get(field)
        if field in (*self.layout.key, *self.layout.order) or kind not in (None, *_ID_TYPES):
            raise file_error(
                f"column {field!r} of {source.name}, of {kind}, for the IDs",
                "a column of bigint that is not part of the key or of the order, or a new one",
                "Choose another name.",
            )
        with _errors_of(source.name, self._secret):
            self.end_transaction()
            if kind is None:
                self._add_column(field)
            self._check_permission(source.name, field)
            asked = source.options.payload
            self.payload = [each for each in self.payload if each != field or each in asked]
            source.payload_columns = len(self.payload)
            self.begin(source)

    def _check_permission(self, name: str, field: str) -> None:
        query = "SELECT has_column_privilege(%s::oid, %s::text, 'UPDATE')"
        (allowed,) = self.connection.execute(query, (self.layout.oid, field)).fetchone()
        if not allowed:
            raise file_error(
                f"column {field!r} of {name}, which this user may not change",
                "the right to update it",
                "Have it granted: GRANT UPDATE (column) ON table TO user.",
            )

    def _add_column(self, field: str) -> None:
        self.connection.read_only = False
        limit = self._sql.SQL("SET LOCAL lock_timeout = {}").format(f"{LOCK_SECONDS}s")
        add = "ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} bigint"
        self.connection.execute(limit)
        self.connection.execute(self._sql.SQL(add).format(self._table, self._sql.Identifier(field)))
        self.connection.commit()

    def write(self, source: DatabaseSource, keys: list[Any], labels: list[int]) -> None:
        query = self._update(source.field)
        ids = [None if label == REMOVED else label for label in labels]
        with _errors_of(source.name, self._secret):
            self.end_transaction()
            self.connection.isolation_level = psycopg().IsolationLevel.READ_COMMITTED
            self.connection.read_only = False
            # A raw cursor, for which a % in a name does not mark a parameter.
            raw = psycopg().RawCursor(self.connection)
            raw.execute(query, [*map(list, zip(*keys, strict=True)), ids])
            self.connection.commit()

    def _update(self, field: str | None) -> Query:
        """Return the query that writes IDs; its parameters are the key columns and the IDs."""
        sql, key = self._sql, self.layout.key
        names = [sql.Identifier(f"k{index}") for index in range(len(key))]
        texts = ", ".join(f"${number}::text[]" for number in range(1, len(key) + 1))
        equal = [
            sql.SQL("t.{0} = v.{1}::{2}").format(
                sql.Identifier(each), name, sql.SQL(self.layout.query_types[each])
            )
            for each, name in zip(key, names, strict=True)
        ]
        update = (
            "UPDATE {table} t SET {field} = v.label FROM unnest({texts}, {ids}::bigint[])"
            " AS v({names}, label) WHERE {equal} AND t.{field} IS DISTINCT FROM v.label"
        )
        return sql.SQL(update).format(
            table=self._table,
            field=sql.Identifier(field),
            texts=sql.SQL(texts),
            ids=sql.SQL(f"${len(key) + 1}"),
            names=sql.SQL(", ").join(names),
            equal=sql.SQL(" AND ").join(equal),
        )
