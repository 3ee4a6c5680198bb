"""The journal: each acknowledged call with its vectors, payloads, events and answer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import checks
from linkstream.clusterer.verb_docs import signature
from linkstream.clusterer.verbs import VERBS
from linkstream.confidence import Policy
from linkstream.engine.contract import Decision
from linkstream.engine.events import WIDTH
from linkstream.engine.fixed_point import DIMENSION_MAX
from linkstream.engine.forest import FULL
from linkstream.errors import StoreError
from linkstream.store import blocks
from linkstream.store.blocks import NOTHING, Attached, BlockReader, Times
from linkstream.store.file import damaged, distrusted, intact, sealed
from linkstream.store.payloads import Lines, value_of

PIECE = 1 << 20  # bytes of vectors in one row of their table, at most (but one vector at least)
ADDING = tuple(name for name, verb in VERBS.items() if verb.vectors_field and verb.adds)
IDS = tuple(name for name in ADDING if "NDArray" in signature(name).return_annotation)
LOST = "lost"  # the verb of an operation that a repair could not read
_COLUMNS = (
    "number, verb, arguments, first_vector, first_event, first_piece, rows, dimension, payloads, "
    "events, result, key, digest"
)
_STEP = "$step"  # stored with the arguments; no method has a parameter of that name
# The model of confidence tells the probability again: another processor may round it otherwise.
_DECISION = tuple(each.name for each in fields(Decision) if each.name != "probability")
_AT_ONCE = 64  # rows of one statement; other threads run meanwhile

Rows = npt.NDArray[np.float32]
Payloads = list[Any]


class Mark(NamedTuple):
    """The step of a call: the number of its first operation, and its command."""

    first: int
    command: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One acknowledged call of a method of `Links`.

    Attributes:
        number: its number, from 1 on.
        verb: the name of the method.
        arguments: the arguments except vectors and payloads, as JSON has them.
        first_vector: the number of vectors before it.
        first_event: the number of events before it.
        first_piece: the number of the first row of its vectors in their table.
        n_rows: how many vectors came with the call.
        dimension: the dimension of these vectors; 0 if there are none.
        attached: what came with its vectors, a sum of the flags of `store.blocks`.
        events: its events, one a row.
        result: the answer as bytes; `store.journal.answer` decodes it.
        key: the idempotency key; None if there is none.
        digest: SHA-256 of vectors and payloads, if there is a key.
        step: the step that it belongs to; None if the call is a step of its own.
    """

    number: int
    verb: str
    arguments: dict[str, Any]
    first_vector: int
    first_event: int
    first_piece: int
    n_rows: int
    dimension: int
    attached: int
    events: npt.NDArray[np.int64] = field(repr=False)
    result: bytes = field(repr=False)
    key: str | None = None
    digest: bytes | None = None
    step: Mark | None = None

    @property
    def has_payloads(self) -> bool:
        """Whether payloads came with the call."""
        return bool(self.attached & (blocks.LIST | blocks.FLAGS[blocks.PAYLOADS]))

    def has(self, table: str) -> bool:
        """Return whether it has rows in a table of blocks.

        Args:
            table: the name of the table.
        """
        return bool(self.attached & blocks.FLAGS[table])

    @property
    def n_pieces(self) -> int:
        """The number of rows that its vectors take in their table."""
        return -(-self.n_rows // rows_of_piece(self.dimension)) if self.n_rows else 0

    def taken(self) -> npt.NDArray[np.int64]:
        """Return which of its rows got numbers: all but those of weight 0."""
        missing_weights = checks.missing_weights(self.arguments.get("weight", 1.0), self.n_rows)
        return np.flatnonzero(np.array(missing_weights, dtype=np.int64) != FULL)

    def row(self, position: int) -> int:
        """Return the row of a vector.

        Args:
            position: its position among the vectors of the call that got numbers.
        """
        if isinstance(self.arguments.get("weight"), list):
            return int(self.taken()[position])
        return position


@dataclass(frozen=True, eq=False, slots=True)
class VectorBlock:
    """The vectors of an operation, the number of their first piece, and CRCs if known."""

    first_piece: int
    rows: Rows
    crcs: list[int] | None = None


def rows_of_piece(dimension: int) -> int:
    """Return how many vectors one piece holds."""
    return max(1, PIECE // (4 * max(dimension, 1)))


def write(connection: sqlite3.Connection, *operations: Operation) -> None:
    """Insert operations; the caller commits."""
    into = f"INSERT INTO operations ({_COLUMNS}, crc)"
    _insert(connection, into, [_row(operation) for operation in operations])


def _insert(connection: sqlite3.Connection, into: str, rows: list[tuple[object, ...]]) -> None:
    """Insert rows with few statements: each releases and takes Python's global lock."""
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        one = f"({', '.join('?' * len(some[0]))})"
        values = f"{into} VALUES {', '.join([one] * len(some))}"
        connection.execute(values, [value for row in some for value in row])


def _row(o: Operation) -> tuple[object, ...]:
    said = o.arguments if o.step is None else {**o.arguments, _STEP: list(o.step)}
    counts = o.first_vector, o.first_event, o.first_piece, o.n_rows, o.dimension
    events = np.ascontiguousarray(o.events, dtype="<i8").tobytes()
    decided = o.attached, events, o.result, o.key, o.digest
    arguments = json.dumps(said, sort_keys=True)
    return sealed("operations", o.number, o.verb, arguments, *counts, *decided)


def pieces(rows: Rows) -> Iterator[memoryview]:
    """Yield the bytes of each piece."""
    size = rows_of_piece(rows.shape[1])
    for start in range(0, len(rows), size):
        yield np.ascontiguousarray(rows[start : start + size], dtype="<f4").data.cast("B")


def write_vectors(connection: sqlite3.Connection, *blocks: VectorBlock) -> None:
    """Insert the vectors of operations; the caller commits."""
    rows = []
    for block in blocks:
        for i, body in enumerate(pieces(block.rows)):
            crc = None if block.crcs is None else block.crcs[i]
            rows.append(sealed("vectors", block.first_piece + i, body, blob_crc=crc))
    _insert(connection, "INSERT OR REPLACE INTO vectors", rows)


def write_piece(connection: sqlite3.Connection, piece: int, body: memoryview | bytes) -> None:
    """Write or replace one piece of vectors."""
    _insert(connection, "INSERT OR REPLACE INTO vectors", [sealed("vectors", piece, body)])


def write_list(connection: sqlite3.Connection, operation: int, payloads: Payloads) -> None:
    """Replace the payloads of an operation of format 1."""
    row = sealed("payloads", operation, json.dumps(payloads, allow_nan=False))
    connection.execute("INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)", row)


class Journal:
    """Reads the journal through a connection and checks each row."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self._blocks = BlockReader(connection, path)

    def operations(self, after: int, until: int | None = None) -> Iterator[Operation]:
        """Yield the operations after one, in order; raise DamagedStoreError if one is missing."""
        where = "number > ? AND number <= ?"
        query = f"SELECT {_COLUMNS}, crc FROM operations WHERE {where} ORDER BY number"
        for row in self._connection.execute(query, (after, 2**62 if until is None else until)):
            after += 1
            yield self._read(row, after)
        if until is not None and after != until:
            raise damaged(self._path, f"operation {after + 1} is missing")

    def before_event(self, event: int, last: int) -> int:
        """Return the number of an operation after which the event comes."""
        return max(self._reaching(event, last) - 1, 0)

    def holding(self, event: int, last: int) -> Operation:
        """Return the operation of an event; the newest operation is number `last`."""
        return self.operation(self._reaching(event, last))

    def _reaching(self, event: int, last: int) -> int:
        """Return the newest operation that begins at or before an event; 0 if there is none."""
        low, high = 0, last
        while low < high:
            middle = (low + high + 1) // 2
            if self.operation(middle).first_event > event:
                high = middle - 1
            else:
                low = middle
        return low

    def operation(self, number: int) -> Operation:
        """Return one operation."""
        query = f"SELECT {_COLUMNS}, crc FROM operations WHERE number = ?"
        row = self._connection.execute(query, (number,)).fetchone()
        if row is None:
            raise damaged(self._path, f"operation {number} is missing")
        return self._read(row, number)

    def last(self) -> int:
        """Return the number of the newest operation."""
        (number,) = self._connection.execute(
            "SELECT coalesce(max(number), 0) FROM operations"
        ).fetchone()
        return int(number)

    def vectors(self, operation: Operation) -> Rows | None:
        """Return all vectors of an operation as they were given; None if it has none."""
        if not operation.n_rows:
            return None
        first = operation.first_piece
        pieces = [self.piece(operation, first + i) for i in range(operation.n_pieces)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def piece(self, operation: Operation, piece: int) -> Rows:
        """Return one piece of the vectors of an operation."""
        if operation.verb == LOST:
            raise StoreError(
                f"{self._path}: the vectors of operation {operation.number}, which a repair could "
                "not read",
                expected="vectors that can be read",
                remedy="Look in the copy that the repair made, or in a backup.",
            )
        size = rows_of_piece(operation.dimension)
        length = min(size, operation.n_rows - size * (piece - operation.first_piece))
        query = "SELECT piece, body, crc FROM vectors WHERE piece = ?"
        row = self._connection.execute(query, (piece,)).fetchone()
        if (
            not intact("vectors", row)
            or row[0] != piece
            or len(row[1]) != 4 * length * operation.dimension
        ):
            what = f"vectors of operation {operation.number} (piece {piece})"
            raise damaged(self._path, f"{what} are missing or do not match their checksum")
        return np.frombuffer(row[1], dtype="<f4").reshape(length, operation.dimension)

    # What came with the vectors

    def attached(self, operation: Operation) -> Attached:
        """Return all columns that came with an operation, except a list of format 1."""
        return self._blocks.all_of(operation.number, operation.n_rows, operation.attached)

    def own(self, operation: Operation) -> Attached:
        """Return the vectors' own times and keys that came with an operation."""
        flags = operation.attached & (blocks.FLAGS[blocks.TIMES] | blocks.FLAGS[blocks.KEYS])
        return self._blocks.all_of(operation.number, operation.n_rows, flags) if flags else NOTHING

    def check_attached(self, operation: Operation) -> None:
        """Raise DamagedStoreError unless all that came with an operation can be read."""
        self.payloads(operation)
        with distrusted(self._path, f"keys of operation {operation.number}"):
            for line in self.attached(operation).keys or ():
                line.decode()

    def payloads(self, operation: Operation) -> Payloads | None:
        """Return the payloads of an operation; None if it has none."""
        if operation.attached & blocks.LIST:
            return self._list(operation)
        if not operation.has_payloads:
            return None
        lines = self.attached(operation).payloads or []
        with distrusted(self._path, f"payloads of operation {operation.number}"):
            return [value_of(line) for line in lines]

    def payload_lines(self, operation: Operation, block: int) -> Lines | None:
        """Return the payloads of a block as lines of JSON; None if the operation has none."""
        if operation.attached & blocks.LIST:
            some = self._list(operation)[block * blocks.ROWS : (block + 1) * blocks.ROWS]
            return [json.dumps(each).encode() for each in some]
        return self.lines(blocks.PAYLOADS, operation, block)

    def lines(self, table: str, operation: Operation, block: int) -> Lines | None:
        """Return the lines of a block; None if the operation has none in that table."""
        if not operation.has(table):
            return None
        return self._blocks.lines(table, operation.number, operation.n_rows, block)

    def times(self, operation: Operation, block: int) -> Times | None:
        """Return the times of a block; None if the operation has none."""
        if not operation.has(blocks.TIMES):
            return None
        return self._blocks.times(operation.number, operation.n_rows, block)

    def parsed(self, operation: Operation, line: bytes) -> Any:
        """Return the value of a line of payloads."""
        with distrusted(self._path, f"payloads of operation {operation.number}"):
            return value_of(line)

    def _list(self, operation: Operation) -> Payloads:
        """Return the payloads of an operation of format 1."""
        query = "SELECT operation, body, crc FROM payloads WHERE operation = ?"
        row = self._connection.execute(query, (operation.number,)).fetchone()
        if not intact("payloads", row) or row[0] != operation.number:
            what = f"payloads of operation {operation.number}"
            raise damaged(self._path, f"{what} are missing or do not match their checksum")
        with distrusted(self._path, f"payloads of operation {operation.number}"):
            payloads: Payloads = json.loads(row[1])
            if type(payloads) is not list or len(payloads) != operation.n_rows:
                raise ValueError("not one payload for each vector")
        return payloads

    def _read(self, row: tuple[Any, ...], number: int) -> Operation:
        if not intact("operations", row) or row[0] != number:
            what = f"operation {number} is missing or does not match its checksum"
            raise damaged(self._path, what)
        with distrusted(self._path, f"operation {number}"):
            return _operation(*row[:-1])


def _operation(number: int, verb: str, arguments: str, *rest: Any) -> Operation:
    vector, event, piece, rows, dimension, attached, events, result, key, digest = rest
    said = json.loads(arguments)
    if not isinstance(said, dict):
        raise TypeError("arguments without names")
    step = said.pop(_STEP, None)
    if min(vector, event, piece, rows) < 0 or not 0 <= dimension <= DIMENSION_MAX:
        raise ValueError("impossible counts")
    if not 0 <= attached < 2 * max(blocks.FLAGS.values()):
        raise ValueError("unknown columns")
    if verb in IDS and len(result) != 8 * rows:
        raise ValueError("not one ID for each vector")
    decided = np.frombuffer(events, dtype="<i8").reshape(-1, WIDTH).astype(np.int64, copy=False)
    mark = None if step is None else _mark(step, number)
    counts = vector, event, piece, rows, dimension
    return Operation(number, verb, said, *counts, attached, decided, result, key, digest, mark)


def _mark(step: Any, number: int) -> Mark:
    first, command = step
    if type(first) is not int or not 0 < first <= number or type(command) is not str:
        raise ValueError("an impossible step")
    return Mark(first, command)


def encoded(answer: Any) -> bytes:
    """Return an answer as bytes."""
    if isinstance(answer, np.ndarray):
        return answer.astype("<i8").tobytes()
    if isinstance(answer, Decision):
        return json.dumps(_told(answer)).encode()
    if isinstance(answer, list):  # of several vectors
        return json.dumps([_told(each) for each in answer]).encode()
    if isinstance(answer, Policy):
        return json.dumps(answer.bounds).encode()
    return json.dumps(answer if isinstance(answer, int) else None).encode()


def _told(decision: Decision) -> dict[str, Any]:
    told = {name: getattr(decision, name) for name in _DECISION}
    if decision.cluster_margin is None:  # the first version knew none
        del told["cluster_margin"]
    return told


def decoded(operation: Operation) -> Any:
    """Return the answer of an operation."""
    if operation.verb in IDS:
        return np.frombuffer(operation.result, dtype="<i8").astype(np.int64)
    answer = json.loads(operation.result)
    if operation.verb == "accept":
        return Policy.from_bounds(answer)
    if isinstance(answer, list):
        return [Decision(**each) for each in answer]
    return Decision(**answer) if isinstance(answer, dict) else answer
