"""NumPy does not end the process if memory runs out at the first use of a function."""

from __future__ import annotations

import os
import subprocess
import sys

from memory.machine import HERE


def test_the_first_call_of_a_function_without_memory_does_not_crash(scarce):
    environment = os.environ | {"LD_PRELOAD": str(scarce), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, HERE / "loops.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
