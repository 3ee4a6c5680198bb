"""Make each allocation of each operation of the C++ engine fail, without Python.

See engine_points.cpp. After std::bad_alloc the engine is as before, the same call then succeeds,
and later decisions are the same. The program is built with the address sanitizer.
"""

from __future__ import annotations

import subprocess

import pytest

from memory.machine import HERE, compiler

ROOT = HERE.parents[1]
FULL = 64  # the number of vectors that fills most tables
STARTS = (1, 2, 31, 32, 33, 60, 63, 64, 65, 127, 128, 129, 255, 256, 257, 600)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Compile the program; fail without a compiler that has sanitizers."""
    made = tmp_path_factory.mktemp("engine") / "engine_points"
    sources = [
        HERE / "engine_points.cpp",
        *(ROOT / "cpp" / "kernels" / name for name in ("dispatch.cpp", "scan_portable.cpp")),
    ]
    sanitize = ["-fsanitize=address", "-O0", "-g1"]  # the fastest to build
    checks = ["-D_GLIBCXX_ASSERTIONS", "-D_GLIBCXX_SANITIZE_VECTOR"]
    as_the_core = ["-std=c++17", "-ffp-contract=off", "-fopenmp-simd", "-pthread"]
    folders = [f"-I{ROOT / 'cpp' / name}" for name in ("include", "kernels")]
    command = [compiler(), *as_the_core, *sanitize, *checks, *folders, *sources, "-o", made]
    subprocess.run(command, check=True)
    return made


def run(program, *numbers):
    words = [str(program), *map(str, numbers)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout


def test_the_engine_is_as_before_after_an_allocation_that_failed(program):
    run(program, 4, 1, FULL)


def test_an_operation_without_its_vector_at_one_start_is_skipped_there(program):
    assert "withdraw one of several: skipped" in run(program, 64, 1, 1, FULL)


def test_an_operation_that_is_skipped_at_every_start_is_an_error(program):
    done = subprocess.run([str(program), "64", "1", "1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "BAD withdraw one of several was skipped at every start" in done.stdout


@pytest.mark.long
def test_the_engine_is_as_before_after_any_allocation_that_failed(program):
    run(program, 1, 0, *STARTS)
