"""Files and databases of vectors, read and written with care, a block at a time.

`open_vectors` gives the vectors of a file, a pipe or a table in blocks, `read_vectors` all at once.
A file is judged by its content, not by its name, where that is possible. What it declares is
compared with the bytes that are there before anything is allocated; a file that lies, is cut short
or holds Python objects gives an InputFileError and costs nothing.
"""

from linkstream.io.databases import DatabaseSource, is_address
from linkstream.io.exporting import export, export_lines
from linkstream.io.importing import import_store
from linkstream.io.opening import open_vectors, read_vectors
from linkstream.io.source import ALL, Block, Source
from linkstream.io.tables import write_table
from linkstream.io.whole import whole_file

__all__ = [
    "ALL",
    "Block",
    "DatabaseSource",
    "Source",
    "export",
    "export_lines",
    "import_store",
    "is_address",
    "open_vectors",
    "read_vectors",
    "whole_file",
    "write_table",
]
