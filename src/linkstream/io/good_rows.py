"""The rows of a file that a store can take; the others are noted, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.errors import LinkstreamError, UnknownIdError, VectorError
from linkstream.io.source import Block, Source
from linkstream.store import Store
from linkstream.store.own_columns import check_key, microseconds
from linkstream.store.payloads import check as check_payloads

SHOWN = 20  # wrong rows that are described; all are counted

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class BadRows:
    """The rows of a file that cannot be added: how many, and the first of them."""

    count: int = 0
    first: list[LinkstreamError] = field(default_factory=list)

    def note(self, error: LinkstreamError) -> None:
        """Count a row and keep its error if there is room."""
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(error)


class GoodRows:
    """The blocks of a source with only those rows that a store can take.

    A row is left out if its vector has no direction, if its key is missing or not usable, or if its
    time or its payload is not usable. Open the source with `bad_row=bad.note`, so that rows that
    cannot be read are noted, too.

    Args:
        source: the source.
        bad: notes the rows that are left out.
    """

    def __init__(self, source: Source, bad: BadRows) -> None:
        self._source, self._bad = source, bad
        self.row = 0  # number of the next row, among those that are not left out

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks; none is empty."""
        for block in self._source:
            good = self._good(block)
            found = block if good.all() else picked(block, np.flatnonzero(good))
            if len(found):
                first, self.row = self.row, self.row + len(found)
                yield Block(first, found.vectors, found.payloads, found.ids, found.at)

    def _good(self, block: Block) -> Mask:
        good = door.have_direction(block.vectors)
        for row in np.flatnonzero(~good):
            self._note(block, int(row), _no_direction(block.vectors[row]))
        if block.ids is not None:
            self._test(block, good, lambda row: check_key(block.ids[row]))  # type: ignore[index]
        if block.at is not None:
            self._test(block, good, lambda row: microseconds(block.at[row]))
        if block.payloads is not None:
            self._test_payloads(block, good)
        return good

    def _test_payloads(self, block: Block, good: Mask) -> None:
        payloads: Any = block.payloads
        try:
            check_payloads(payloads, len(block))
        except LinkstreamError:
            self._test(block, good, lambda row: check_payloads([payloads[row]], 1))

    def _test(self, block: Block, good: Mask, check: Callable[[int], object]) -> None:
        """Apply a check to each row that is good so far."""
        for row in np.flatnonzero(good):
            try:
                check(int(row))
            except LinkstreamError as error:  # noqa: PERF203
                good[row] = False
                self._note(block, int(row), error)

    def _note(self, block: Block, row: int, error: LinkstreamError) -> None:
        text = self._source.kind in ("csv", "jsonl")
        places = self._source.places
        number = block.first_row + row if places is None else places[row]
        where = f"{self._source.name}, {'line' if text else 'row'} {number}"
        remedy = "Correct the row, or leave it out."
        self._bad.note(
            VectorError(f"{where}: {error.seen}", expected=error.expected, remedy=remedy)
        )


def picked(block: Block, rows: npt.NDArray[np.int64]) -> Block:
    """Return some rows of a block."""

    def column(values: Any) -> Any:
        if values is None or isinstance(values, np.ndarray):
            return None if values is None else values[rows]
        return [values[row] for row in rows]

    columns = map(column, (block.payloads, block.ids, block.at))
    return Block(block.first_row, block.vectors[rows], *columns)


def new_rows(store: Store, block: Block) -> Block:
    """Return the rows of a block whose keys no vector of a store and no earlier row has.

    A block without keys is returned unchanged.
    """
    if block.ids is None:
        return block
    seen: set[str] = set()
    new = []
    for row, key in enumerate(block.ids):
        if key not in seen and not _is_there(store, key):
            new.append(row)
        seen.add(key)
    return block if len(new) == len(block) else picked(block, np.array(new, dtype=np.int64))


def _is_there(store: Store, key: str) -> bool:
    try:
        store.number(key)
    except UnknownIdError:
        return False
    return True


def _no_direction(vector: npt.NDArray[Any]) -> LinkstreamError:
    try:
        door.fixed(door.vector(vector, dimension=None))
    except LinkstreamError as error:
        return VectorError(
            error.seen.removeprefix("row 0 "), expected=error.expected, remedy=error.remedy
        )
    raise AssertionError("a vector that was refused")
