"""`.parquet`, read row group by row group and page by page.

The footer is not believed: rows and bytes it declares must add up and lie in the file, before
anything of them is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from linkstream.engine.fixed_point import DIMENSION_MAX
from linkstream.io.columns import BatchSource, arrow, chosen_columns, damage, damaged
from linkstream.io.faults import fault
from linkstream.io.footer import RowGroup, read_footer
from linkstream.io.source import BLOCK_BYTES, Source, Wanted

_BUFFER = 2**20


def open_parquet(path: Path, file: IO[bytes], wanted: Wanted) -> Source:
    """The rows of a column of a Parquet file."""
    wanted.refuse(str(path), "key")
    pq = arrow("pyarrow.parquet")
    read_footer(str(path), file, "")  # before pyarrow does
    try:
        reader = pq.ParquetFile(
            path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
        )
        schema = reader.schema_arrow
    except damage() as error:
        raise damaged(str(path), error) from None
    try:
        columns = chosen_columns(str(path), schema, wanted)
        groups = read_footer(str(path), file, columns[0])
        return ParquetSource(path, wanted, reader, columns, groups)
    except BaseException:
        reader.close()
        raise


class ParquetSource(BatchSource):
    """Vectors of a Parquet file; row groups that are skipped are not read."""

    def __init__(
        self,
        path: Path,
        wanted: Wanted,
        reader: Any,
        columns: tuple[str, list[str]],
        groups: list[RowGroup],
    ) -> None:
        n = sum(group.rows for group in groups)
        super().__init__(str(path), wanted, kind="parquet", n=n, columns=columns)
        self._reader = reader
        self._groups = groups
        self._owned.callback(reader.close)
        self._rows = self._rows_of_batch()
        self._read_from(0)
        self._begin()

    def _rows_of_batch(self) -> int:
        """Rows at a time, by the longest vectors that a row group has on average."""
        longest = max((-(-group.values // max(1, group.rows)) for group in self._groups), default=1)
        if longest > DIMENSION_MAX:
            raise fault(
                f"{self.name} has vectors of dimension {longest}",
                f"a dimension from 1 to {DIMENSION_MAX}",
                "Choose another column.",
            )
        return max(1, min(self._wanted.block, BLOCK_BYTES // (8 * max(1, longest))))

    def _read_from(self, group: int) -> None:
        try:
            self._batches = self._reader.iter_batches(
                batch_size=self._rows,
                row_groups=list(range(group, len(self._groups))),
                columns=[self._column, *self._payload],
                use_threads=False,
            )
        except damage() as error:
            raise damaged(self.name, error) from None
        self._batch = None

    def _pass_over(self, rows: int) -> int:
        target, start, group = self.row + rows, 0, 0
        while group < len(self._groups) and start + self._groups[group].rows <= target:
            start += self._groups[group].rows
            group += 1
        self._read_from(group)
        return self._drop(target - start) + start - self.row
