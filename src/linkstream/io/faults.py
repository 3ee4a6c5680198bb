"""What is said of a file that cannot be read."""

from __future__ import annotations

import importlib
import struct
import zipfile
import zlib
from typing import Any

from linkstream.errors import InputFileError, MissingExtraError

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


def extra_module(module: str, *, extra: str, purpose: str) -> Any:
    """A module of an optional package, taken up when it is needed; MissingExtraError without it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtraError(package, extra=extra, purpose=purpose) from None
