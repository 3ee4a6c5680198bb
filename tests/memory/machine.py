"""The way to speak to a process whose memory can be made to run short."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")


def compiler():
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    assert found, "no C++ compiler: these tests need one"
    return found


def compile_library(target):
    """The library that makes allocations fail. Without a compiler: an error."""
    flags = ["-std=c++17", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra"]
    only = ["-DSCARCE_NO_MALLOC"] if SANITIZED else []
    command = [compiler(), *flags, *only, "-o", target, HERE / "scarce.cpp", "-ldl"]
    subprocess.run(command, check=True)
    return target


class Machine:
    """A process with a shortage to come; children of it are the cases."""

    def __init__(self, library):
        loaded = [str(library), *os.environ.get("LD_PRELOAD", "").split()]
        changes = {
            "LD_PRELOAD": " ".join(loaded),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",  # so that a place is the same one in another run
        }
        if SANITIZED:
            given = os.environ.get("ASAN_OPTIONS", "")
            changes["ASAN_OPTIONS"] = f"{given}:verify_asan_link_order=0"
        self._process = subprocess.Popen(
            [sys.executable, HERE / "child.py"],
            env=os.environ | changes,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n", "the process did not start"

    def run(self, job):
        """What was seen, for each shortage of a job."""
        print(json.dumps(asdict(job)), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def bad(reports):
    """What must not have been seen: how memory failed, how often, at which place first."""
    return [
        f"{each['kind']} {'for good' if each['for_good'] else 'once'}: {text} "
        f"({count} times, first at allocation {first})"
        for each in reports
        for text, (count, first) in each["verdicts"].items()
        if not text.startswith("good")
    ]
