"""The process of ServiceForker: imports everything once, then forks a service for each job."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

# Imported here, so that a child need not.
import linkstream.cli.serve
import linkstream.service.app
import linkstream.service.server  # noqa: F401
from linkstream.cli import main as command
from service.internals import inject


def serve(job):
    """Run the command in a forked process, detached from its parent."""
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    errors = os.open(job["output"] + ".errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, place in enumerate((nothing, output, errors)):
        os.dup2(place, number)
    sys.stdin = open(0)  # noqa: SIM115 - as a fresh process has them
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
    if job["fault"] is not None:
        inject(**job["fault"])
    sys.argv = ["linkstream", *job["words"]]
    status = 1
    try:
        command()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def ended(pid):
    """Return the exit status of a child; None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return [os.waitstatus_to_exitcode(status)] if found else None


def main():
    for line in sys.stdin:
        job = json.loads(line)
        if "ended" in job:
            answer = ended(job["ended"])
        else:
            answer = os.fork()
            if answer == 0:
                serve(job)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
