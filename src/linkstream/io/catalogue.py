"""A table of PostgreSQL as it is: its columns, their types, and what tells its rows apart.

Names are looked up among those there are, as values of a query and never as parts of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkstream.io.faults import fault
from linkstream.io.source import ALL, DEFAULT_COLUMNS, Wanted

# As a vector is sent: how many numbers, nothing, and the numbers; the highest byte first.
PACKED = {"vector": ">f4", "halfvec": ">f2"}
_LISTS = ("real[]", "double precision[]", "integer[]", "bigint[]", "smallint[]")

Connection = Any


@dataclass(frozen=True, slots=True)
class Layout:
    """A table as it is: its columns by name with their types, and what is read of it."""

    oid: int
    parts: tuple[str, str]  # schema and table
    database: str
    types: dict[str, str]  # without the schema of a type
    spelled: dict[str, str]  # with it, as the server writes it in a query
    column: str
    order: list[str]  # in which no two rows tie
    key: list[str]  # by which a row is found again


def layout_of(
    connection: Connection, name: str, parts: list[str], order: list[str], wanted: Wanted
) -> Layout:
    """Find a table and what is wanted of it; InputFileError for what is not there."""
    oid, schema, table = _found(connection, name, parts)
    rows = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a"
        " WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        (oid,),
    ).fetchall()
    # A type of an extension is written with its schema where that is not on the search path.
    spelled = dict(rows)
    types = {each: kind.rpartition(".")[2] for each, kind in rows}
    column = wanted.column or next((each for each in DEFAULT_COLUMNS if each in types), None)
    if column is None:
        vectors = [each for each, kind in types.items() if kind in PACKED]
        if len(vectors) != 1:
            raise fault(
                f"{name} has {len(vectors)} columns of vectors",
                f"one, or a column {' or '.join(map(repr, DEFAULT_COLUMNS))}",
                "Add column= to the address.",
            )
        column = vectors[0]
    for each in (column, *order, *(wanted.payload if wanted.payload != (ALL,) else ())):
        if each not in types:
            shown = ", ".join(map(repr, list(types)[:10]))
            raise fault(f"no column {each!r} in {name}", f"one of {shown}", "Check it.")
    if types[column] not in (*PACKED, *_LISTS):
        raise fault(
            f"column {column!r} of {name} is of {types[column]}",
            "vector, halfvec, or an array of numbers",
            "Choose another column.",
        )
    key = _key(connection, name, oid, order)
    whole = order + [each for each in key if each not in order]
    database = connection.info.dbname
    return Layout(oid, (schema, table), database, types, spelled, column, whole, key)


def _found(connection: Connection, name: str, parts: list[str]) -> tuple[int, str, str]:
    """The table of a name, or of a schema and a name."""
    schema = parts[0] if len(parts) == 2 else None
    found = connection.execute(
        "SELECT c.oid, n.nspname, c.relname FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relname = %s AND c.relkind IN ('r', 'p')"
        " AND CASE WHEN %s::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = %s END",
        (parts[-1], schema, schema),
    ).fetchone()
    if found is None or len(parts) > 2:
        raise fault(
            f"no table {'.'.join(parts)!r} in {name.partition('?')[0]}",
            "a table, or schema.table, written as it is there",
            "Check the name; capitals count. Views have no key and are not read.",
        )
    oid, schema, table = found
    return oid, schema, table


def _key(connection: Connection, name: str, oid: int, order: list[str]) -> list[str]:
    """Columns that tell one row from every other: the primary key, or others that can."""
    keys = [
        names
        for (names,) in connection.execute(
            "SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
            " WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL"
            " AND i.indexprs IS NULL GROUP BY i.indexrelid, i.indisprimary, i.indnkeyatts"
            # Columns that are only carried along by an index make no row unique.
            " HAVING bool_and(a.attnotnull) AND count(*) = i.indnkeyatts"
            " ORDER BY i.indisprimary DESC, i.indexrelid",
            (oid,),
        )
    ]
    if not keys:
        raise fault(
            f"{name} has no primary key, so rows may tie in the order {','.join(order)!r}",
            "a table in which each row can be told from the others",
            "Give it one: ALTER TABLE … ADD PRIMARY KEY (id).",
        )
    return list(keys[0])
