"""Columns of Arrow as lines of JSON, column by column: most columns need no Python value per cell.

pyarrow is not needed unless a table comes in.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from linkstream.errors import ArgumentError

PAYLOADS_MAX = 64 << 20  # bytes of JSON of all payloads of a call
_ESCAPED = r'["\\\x00-\x1f]'  # characters that JSON escapes
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def is_table(value: object) -> bool:
    """Return whether a value is a table or a batch of pyarrow."""
    pa = sys.modules.get("pyarrow")
    return pa is not None and isinstance(value, (pa.Table, pa.RecordBatch))


def lines(table: Any) -> list[bytes]:
    """Return each row as a line of JSON, an object with the columns as fields.

    Times and decimals become texts, NaN becomes null. Raise ArgumentError for other types.
    """
    names, n = list(table.schema.names), table.num_rows
    if len(set(names)) != len(names):
        raise ArgumentError(
            "a table with two columns of one name",
            expected="a name for each column",
            remedy="Rename a column.",
        )
    columns, room = [], PAYLOADS_MAX
    try:
        for each in table.columns:
            columns.append(column(_whole(each), room))
            room -= _size(columns[-1])
            if room < 0:
                raise too_large()
    except ArgumentError:
        raise
    except (ValueError, TypeError, RecursionError) as error:  # also those of pyarrow
        raise ArgumentError(
            f"a column that JSON cannot hold ({error!s:.200})",
            expected="texts, finite numbers, times, and lists of these",
            remedy="Leave the column out, or convert it.",
        ) from None
    return joined(names, columns, n)


def too_large() -> ArgumentError:
    """Return the error for more payloads than a call may have."""
    return ArgumentError(
        f"payloads of more than {PAYLOADS_MAX} bytes of JSON in one call",
        expected=f"at most {PAYLOADS_MAX} bytes",
        remedy="Split the call, or store references instead of the values.",
    )


def _size(texts: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(pc.binary_length(texts)).as_py() or 0)


def _whole(each: Any) -> Any:
    return each.combine_chunks() if hasattr(each, "combine_chunks") else each


def joined(names: Sequence[str], columns: Sequence[Any], n: int) -> list[bytes]:
    """Return rows as lines of JSON, from columns of JSON texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not names:
        return [b"{}"] * n
    parts: list[Any] = []
    for i, (name, texts) in enumerate(zip(names, columns, strict=True)):
        start = f"{',' if i else '{'}{_encode(name)}:"
        parts += [pa.scalar(start, pa.large_string()), texts]
    made = pc.binary_join_element_wise(*parts, pa.scalar("}", pa.large_string()), _nothing())
    found: list[bytes] = made.cast(pa.large_binary()).to_pylist()
    return found


def _nothing() -> Any:
    """Return the separator of texts that are joined."""
    import pyarrow as pa

    return pa.scalar("", pa.large_string())


def column(values: Any, room: int = PAYLOADS_MAX) -> Any:
    """Return a column as JSON texts; raise ArgumentError if they need more than `room` bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_dictionary(values.type):  # each value once, however often it occurs
        return _looked_up(column(values.dictionary, room), values.indices, room)
    if types.is_string(values.type) or types.is_large_string(values.type):
        texts = _quoted(values)
    elif types.is_integer(values.type) or types.is_boolean(values.type):
        texts = values.cast(pa.large_string())
    elif types.is_temporal(values.type) or types.is_decimal(values.type):
        texts = _quoted(values.cast(pa.string()))
    else:
        encode = repr if types.is_floating(values.type) else _encode
        plain = map(without_nan, _values(values))
        texts = pa.array([None if x is None else encode(x) for x in plain], pa.large_string())
    return pc.fill_null(texts, "null")


def _looked_up(texts: Any, indices: Any, room: int) -> Any:
    """Return texts by index, "null" where there is none."""
    import pyarrow.compute as pc

    sizes = pc.binary_length(texts).take(indices)
    if (pc.sum(sizes).as_py() or 0) > room:
        raise too_large()
    return pc.fill_null(texts.take(indices), "null")


def _quoted(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = texts.cast(pa.large_string())
    if pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
        encode: Callable[[Any], str] = _encode
        escaped = [None if text is None else encode(text) for text in texts.to_pylist()]
        return pa.array(escaped, pa.large_string())
    quote = pa.scalar('"', pa.large_string())
    return pc.binary_join_element_wise(quote, texts, quote, _nothing())


def _values(values: Any) -> list[Any]:
    import pyarrow.types as types

    if types.is_temporal(values.type) or types.is_decimal(values.type):
        import pyarrow as pa

        values = values.cast(pa.string())
    listed: list[Any] = values.to_pylist()
    return listed


def without_nan(value: Any) -> Any:
    """Replace NaN, which tables use for missing values, by None; refuse infinite numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isinf(value):
            raise ValueError("an infinite number in the payload")
        return None
    if isinstance(value, list):
        return [without_nan(each) for each in value]
    if isinstance(value, dict):
        return {name: without_nan(each) for name, each in value.items()}
    return value
