"""Run a command and press Ctrl-C at the n-th call of a function; a program for test_interrupts.py.

`python interrupted.py N FOLDER WORD...` runs `linkstream WORD...`. The moment is counted, not
timed, so that each run is the same. With N = 0 nothing is pressed, and FOLDER/calls says how many
calls there were, those of the imports and of the end of the process among them.
"""

import atexit
import os
import signal
import sys
from pathlib import Path


def press():
    """Send SIGINT to this process from another one, as a terminal does."""
    try:
        child = os.fork()
    except RuntimeError:  # Python does not fork while it ends
        os.kill(os.getpid(), signal.SIGINT)
        return
    if child == 0:
        os.kill(os.getppid(), signal.SIGINT)
        os._exit(0)
    os.waitpid(child, 0)


def run(moment, folder):
    """Run the command of sys.argv, and press Ctrl-C at a moment."""
    from linkstream.cli import main

    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        if event == "call":
            calls += 1
            if calls == moment:
                press()

    if not moment:
        atexit.register(lambda: (folder / "calls").write_text(str(calls)))
    sys.setprofile(count)
    main()


if __name__ == "__main__":
    number, place = int(sys.argv[1]), Path(sys.argv[2])
    sys.argv = ["linkstream", *sys.argv[3:]]
    run(number, place)
