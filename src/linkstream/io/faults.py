"""What is said of a file that cannot be read."""

from __future__ import annotations

import struct
import zipfile
import zlib

from linkstream.errors import InputFileError

SAVE_AGAIN = "Save it again from its source."

# What zipfile raises on an archive that is damaged or made up.
BAD_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,  # places outside the file
    NotImplementedError,
    RuntimeError,
    ValueError,  # also UnicodeError
    OverflowError,
    LookupError,
)


def fault(seen: str, expected: str, remedy: str) -> InputFileError:
    """The error of a file: what was seen of it, what would have done, and what helps."""
    return InputFileError(seen, expected=expected, remedy=remedy)


def reason(error: BaseException) -> str:
    """The first words of another library's error, for the sentence of ours."""
    lines = str(error).strip().splitlines()
    return lines[0][:100] if lines else type(error).__name__
