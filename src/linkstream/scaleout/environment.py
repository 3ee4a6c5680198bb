"""Check packages, Java and the Spark session before a job starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING

from linkstream.errors import EngineUnavailableError, MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
JAVA_MIN = 17

# Package → the tested versions: the lowest, and the first too new. The extra "spark" asks for them.
VERSIONS = {
    "pyspark": ((4, 1), (5,)),
    "pandas": ((2, 2), (3,)),
    "pyarrow": ((18,), None),
    "protobuf": ((6, 33), None),
}


def check_packages() -> None:
    """Raise MissingExtraError or EngineUnavailableError if a package is missing or untested."""
    for package, (least, below) in VERSIONS.items():
        try:
            seen = metadata.version(package)
        except metadata.PackageNotFoundError as missing:
            raise MissingExtraError(package, extra="spark", purpose="Spark") from missing
        numbers = tuple(map(int, re.findall(r"\d+", seen)[:3]))
        if numbers < least or (below is not None and numbers >= below):
            raise EngineUnavailableError(
                f"{package} {seen}",
                expected=_range(package),
                remedy='Run: pip install "linkstream[spark]"',
            )
    _check_messages()


def _range(package: str) -> str:
    least, below = VERSIONS[package]
    words = [f"{package} {'.'.join(map(str, least))} or newer"]
    if below is not None:
        words.append(f"older than {'.'.join(map(str, below))}")
    return ", ".join(words)


def _check_messages() -> None:
    """Raise EngineUnavailableError if PySpark's messages do not load with this protobuf."""
    try:
        import_module("pyspark.sql.streaming.proto.StateMessage_pb2")
    except Exception as refused:  # protobuf raises an error of an undocumented class
        raise EngineUnavailableError(
            f"protobuf {metadata.version('protobuf')}, which PySpark "
            f"{metadata.version('pyspark')} refuses ({refused})",
            expected="the version that PySpark's messages were made for, or a newer one",
            remedy='Run: pip install --upgrade "linkstream[spark]"',
        ) from refused


def check_java() -> str:
    """Return the command that starts Java; raise EngineUnavailableError if it is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    found = shutil.which(java)
    remedy = f"Install a JRE of version {JAVA_MIN} or newer, or point JAVA_HOME to one."
    if found is None:
        where = f"under JAVA_HOME={home}" if home else "on the PATH, and no JAVA_HOME"
        raise EngineUnavailableError(
            f"no Java {where}", expected=f"Java {JAVA_MIN} or newer", remedy=remedy
        )
    output = _version_output(found)
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version[1]) < JAVA_MIN:
        raise EngineUnavailableError(
            f"Java that reports {output.strip().partition(chr(10))[0]!r}",
            expected=f"Java {JAVA_MIN} or newer",
            remedy=remedy,
        )
    return found


def _version_output(java: str) -> str:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:  # a program of another platform, for example
        return str(error)
    return done.stderr + done.stdout


def check_session(session: SparkSession, *, streams: bool) -> None:
    """Raise EngineUnavailableError if a session cannot run the job, a stream or a batch."""
    check_packages()
    _check_workers(session)
    provider = session.conf.get(PROVIDER, "") or "Spark's default"
    if streams and "RocksDB" not in provider:
        raise EngineUnavailableError(
            f"a session whose state store is {provider}",
            expected="RocksDB, the one that keeps state by key for transformWithState",
            remedy=f'Before the stream starts: spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )


def _check_workers(session: SparkSession) -> None:
    """Raise EngineUnavailableError if workers on this machine would run another Python.

    On a cluster the administrator installs linkstream; Spark compares versions itself.
    """
    if (session.conf.get("spark.master", "") or "").split("[")[0] not in ("local", "local-cluster"):
        return
    python = os.environ.get("PYSPARK_PYTHON", "python3")
    python = session.conf.get("spark.pyspark.python", python) or python
    found = shutil.which(python)
    if found is None or Path(found).parent != Path(sys.executable).parent:
        raise EngineUnavailableError(
            f"workers that would run {found or python!r}",
            expected=f"the Python of this process, {sys.executable!r}",
            remedy='Before the session begins: os.environ["PYSPARK_PYTHON"] = sys.executable',
        )
