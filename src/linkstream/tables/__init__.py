"""Tables out: typed columns, and frames of pandas or tables of Arrow made from them."""

from linkstream.tables.columns import Column
from linkstream.tables.frames import KINDS, check_kind, make_frame
from linkstream.tables.rows import RowTable, names_of
from linkstream.tables.streams import FORMATS, check_format, encoded

__all__ = [
    "FORMATS",
    "KINDS",
    "Column",
    "RowTable",
    "check_format",
    "check_kind",
    "encoded",
    "make_frame",
    "names_of",
]
