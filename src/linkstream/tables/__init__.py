"""Tables out: typed columns, and frames of pandas or tables of Arrow made from them."""

from linkstream.tables.columns import Column
from linkstream.tables.frames import KINDS, check_kind, make_frame
from linkstream.tables.rows import RowTable, names_of

__all__ = ["KINDS", "Column", "RowTable", "check_kind", "make_frame", "names_of"]
