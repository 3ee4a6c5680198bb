"""Read and write files and databases of vectors, block by block.

`open_vectors` opens a file, a pipe or a table; `read_vectors` returns all vectors at once. The kind
of a file follows from its content where possible, not from its name. What a file declares is
compared with its bytes before memory is allocated: a file that is damaged, cut short, hostile or
holds Python objects raises InputFileError.
"""

from linkstream.io.databases import DatabaseSource, is_address
from linkstream.io.exporting import export, export_clusters, export_lines
from linkstream.io.importing import import_store
from linkstream.io.opening import open_vectors, read_vectors
from linkstream.io.source import ALL, Block, Source
from linkstream.io.writing import atomic_file, write_table

__all__ = [
    "ALL",
    "Block",
    "DatabaseSource",
    "Source",
    "atomic_file",
    "export",
    "export_clusters",
    "export_lines",
    "import_store",
    "is_address",
    "open_vectors",
    "read_vectors",
    "write_table",
]
