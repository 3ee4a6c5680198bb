"""The command line, one command a file.

Exit codes: 0 done, 1 a check failed or the run was broken off, 2 a wrong argument or file,
3 an optional dependency is not installed.
"""

from __future__ import annotations

import sys
from typing import Any

from linkstream.errors import LinkstreamError, MissingExtraError

_NEEDED = ("typer", "rich", "click")


def main() -> None:
    """Run the command line; errors are one line on stderr, without a traceback."""
    try:
        _app()()
    except MissingExtraError as error:
        _fail(error, code=3)
    except LinkstreamError as error:
        _fail(error, code=2)


def _app() -> Any:  # a Typer, which may not be installed
    try:
        from linkstream.cli.app import app
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module not in _NEEDED:
            raise
        raise MissingExtraError(module, extra="cli", purpose="The command line") from missing
    return app


def _fail(error: LinkstreamError, *, code: int) -> None:
    sys.stderr.write(f"error: {error}\n")
    sys.exit(code)
