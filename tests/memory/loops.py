"""Call functions of NumPy with operands of two types for the first time, and without memory.

A process of its own: NumPy keeps what it found at a first call. Prints the calls that crashed.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

import numpy as np

import linkstream.paper.floats  # noqa: F401 - lets NumPy look up its loops
from memory.child import Shortage, Shortfall

POINTS = 4
OPERANDS = [np.ones(5, kind) for kind in ("i8", "f4", "i4", "?", "f8", "u1")] + [2.0]
FUNCTIONS = (np.add, np.divide, np.maximum)


def crashes(shortage, call, k):
    child = os.fork()
    if child == 0:
        shortage.during(call, Shortfall("any", True), k)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def main():
    shortage = Shortage()
    for function in FUNCTIONS:
        for a, b in itertools.permutations(OPERANDS, 2):
            call = lambda f=function, a=a, b=b: f(a, b)  # noqa: E731
            if any(crashes(shortage, call, k) for k in range(POINTS)):
                kinds = (np.asarray(a).dtype, np.asarray(b).dtype)
                sys.stdout.write(f"{function.__name__} {kinds}\n")
            call()


if __name__ == "__main__":
    main()
