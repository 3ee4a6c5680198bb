"""Lines of text: what is common to `.jsonl` and `.csv`. Lines are counted from 1, as editors do."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from linkstream.io.faults import fault
from linkstream.io.flow import Flow
from linkstream.io.source import Payloads, Source, Vectors, Wanted, finite_row

# The longest vector with every digit of its numbers takes less than half of this.
LINE_MAX = 4 * 2**20

Row = tuple[list[Any], dict[str, Any] | None]


class TextSource(Source):
    """Rows of text. The first is read at once: it says the dimension."""

    def __init__(self, flow: Flow, wanted: Wanted, *, kind: str) -> None:
        super().__init__(flow.name, wanted, kind=kind, n=None, dimension=None)
        self._flow = flow
        self._line = 0
        self._first: Row | None = self._next_row()
        if self._first is not None:
            self._settle_dimension(len(self._first[0]), f"{self.where} has a vector")

    @abstractmethod
    def _next_row(self) -> Row | None:
        """Numbers and payload of the next row, or None at the end."""

    @abstractmethod
    def _skip_row(self) -> bool:
        """Go over the next row, as cheaply as may be; False at the end."""

    @property
    def where(self) -> str:
        """The line that was read last, for errors."""
        return f"{self.name}, line {self._line}"

    @property
    def progress(self) -> float | None:
        """How much has been read, by bytes."""
        return self._flow.progress

    def _take(self, rows: int) -> tuple[Vectors, Payloads | None]:
        vectors: list[Vectors] = []
        payloads: Payloads = []
        while len(vectors) < rows and not (vectors and self._flow.line_is_late()):
            row, self._first = self._first or self._next_row(), None
            if row is None:
                break
            numbers, payload = row
            if len(numbers) != self.dimension:
                self._settle_dimension(len(numbers), f"{self.where} has a vector")
            vectors.append(finite_row(numbers, self.where))
            if payload is not None:
                payloads.append(payload)
        table = np.array(vectors, dtype=np.float64).reshape(len(vectors), self.dimension or 0)
        return table, payloads if self._wanted.payload else None

    def _pass_over(self, rows: int) -> int:
        done = 0
        if rows and self._first is not None:
            self._first, done = None, 1
        while done < rows and self._skip_row():
            done += 1
        return done

    def _next_line(self) -> str | None:
        """The next line as text, or None at the end."""
        line = self._flow.line(LINE_MAX)
        if line is None:
            return None
        self._line += 1
        if len(line) > LINE_MAX:
            raise fault(
                f"{self.where} is longer than {LINE_MAX} bytes",
                "one vector a line",
                "Check that the file holds one row a line.",
            )
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise fault(
                f"{self.where} is not text (byte {line[error.start]:#04x} at {error.start})",
                "UTF-8",
                "Save the file as UTF-8.",
            ) from None
        return text.removeprefix("\ufeff") if self._line == 1 else text
