"""Test the checks of packages, Java and the session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from linkstream.errors import EngineUnavailableError, MissingExtraError
from linkstream.scaleout import environment
from linkstream.scaleout.environment import PROVIDER, ROCKSDB, VERSIONS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
OF_TREE = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))


@pytest.fixture
def versions(monkeypatch):
    """Return the versions of the packages, which a test may change."""
    told = {"pyspark": "4.1.0", "pandas": "2.2.0", "pyarrow": "18.0.0", "protobuf": "6.33.0"}

    def version(package):
        if told[package] is None:
            raise metadata.PackageNotFoundError(package)
        return told[package]

    monkeypatch.setattr(metadata, "version", version)
    return told


@pytest.fixture
def java(monkeypatch, tmp_path):
    """Put a fake Java on the PATH or below JAVA_HOME."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def put(said, *, below=folder, stream=2, shebang="#!/bin/sh\n"):
        below.mkdir(parents=True, exist_ok=True)
        program = below / "java"
        program.write_text(f"{shebang}printf '%s\\n' '{said}' >&{stream}\n")
        program.chmod(0o755)
        return program

    return put


class Session:
    """A fake session with the settings that are checked."""

    def __init__(self, **conf):
        self.settings = {name.replace("_", "."): value for name, value in conf.items()}
        self.conf = self

    def get(self, name, default=None):
        return self.settings.get(name, default)


def session(master="local[2]", python=sys.executable, provider=ROCKSDB):
    made = Session(spark_master=master, spark_pyspark_python=python)
    made.settings[PROVIDER] = provider
    made.settings = {name: value for name, value in made.settings.items() if value is not None}
    return made


def refused(error=EngineUnavailableError):
    return pytest.raises(error)


# Packages


def test_the_installed_versions_are_accepted():
    environment.check_packages()


def test_the_oldest_versions_are_accepted(versions):
    environment.check_packages()


@pytest.mark.parametrize("package", VERSIONS)
def test_a_missing_package_is_named_with_the_line_that_installs_it(versions, package):
    versions[package] = None
    with refused(MissingExtraError) as said:
        environment.check_packages()
    assert f"'{package}'" in said.value.seen
    assert 'pip install "linkstream[spark]"' in said.value.remedy
    assert isinstance(said.value, ImportError)


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("pyspark", "4.0.9"),
        ("pyspark", "3.5.6"),
        ("pyspark", "5.0.0"),
        ("pyspark", "5.0.0.dev1"),
        ("pyspark", "10.1"),
        ("pandas", "2.1.4"),
        ("pandas", "3.0.0"),
        ("pandas", "3.0.0rc1"),
        ("pandas", "3"),
        ("pyarrow", "17.0.0"),
        ("pyarrow", "9.0.0"),
        ("protobuf", "6.32.1"),
        ("protobuf", "5.99.0"),
        ("protobuf", "6"),
    ],
)
def test_a_version_outside_the_range_is_refused_with_the_range(versions, package, version):
    versions[package] = version
    with refused() as said:
        environment.check_packages()
    least, below = VERSIONS[package]
    assert said.value.seen == f"{package} {version}"
    assert f"{'.'.join(map(str, least))} or newer" in said.value.expected
    assert (below is None) == ("older than" not in said.value.expected)
    assert "linkstream[spark]" in said.value.remedy


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("pyspark", "4.1.0"),
        ("pyspark", "4.99.1"),
        ("pandas", "2.2"),
        ("pandas", "2.10.3"),
        ("pyarrow", "18.0.0"),
        ("pyarrow", "100.0.0"),
        ("protobuf", "6.33.5"),
        ("protobuf", "7.0.0"),
    ],
)
def test_a_version_within_the_range_is_accepted(versions, package, version):
    versions[package] = version
    environment.check_packages()


def test_messages_that_protobuf_refuses_are_reported_with_both_versions(versions, monkeypatch):
    class VersionError(Exception):
        """The error of protobuf, which is no ImportError."""

    def refuse(name):
        assert name.startswith("pyspark.")
        raise VersionError("gencode 6.33.0 runtime 5.29.1")

    versions["protobuf"] = "6.33.9"
    monkeypatch.setattr(environment, "import_module", refuse)
    with refused() as said:
        environment.check_packages()
    assert "6.33.9" in said.value.seen
    assert "PySpark 4.1.0" in said.value.seen
    assert "gencode 6.33.0 runtime 5.29.1" in said.value.seen
    assert "--upgrade" in said.value.remedy
    assert isinstance(said.value.__cause__, VersionError)


def test_the_checked_messages_exist():
    import_module("pyspark.sql.streaming.proto.StateMessage_pb2")


@pytest.mark.parametrize("package", ["pandas", "pyarrow", "pyspark"])
def test_packages_are_checked_before_they_are_imported(package):
    program = f"""
import sys
from importlib import metadata
version = metadata.version
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {package!r}:
            raise ModuleNotFoundError(name)
def told(name):
    if name == {package!r}:
        raise metadata.PackageNotFoundError(name)
    return version(name)
sys.meta_path.insert(0, Missing())
metadata.version = told
import linkstream.scaleout.spark
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": OF_TREE},
    )
    last = run.stderr.strip().splitlines()[-1]
    assert "MissingExtraError" in last
    assert f"{package!r}" in last


def test_the_extra_asks_for_the_versions_that_are_checked():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [Requirement(line) for line in told["project"]["optional-dependencies"]["spark"]]
    assert {each.name for each in asked} == VERSIONS.keys()
    for each in asked:
        least, below = VERSIONS[each.name]
        wanted = {f">={'.'.join(map(str, least))}"}
        if below is not None:
            wanted.add(f"<{'.'.join(map(str, below))}")
        assert {str(bound) for bound in each.specifier} == wanted
        assert each.marker is None


# Java


@pytest.mark.parametrize(
    "said",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'openjdk version "17" 2021-09-14',
        'java version "21.0.1" 2023-10-17 LTS',
        'openjdk version "25-ea" 2025-09-16',
        'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1" 2021-10-19',
    ],
)
def test_java_17_and_newer_is_accepted(java, said):
    program = java(said)
    assert environment.check_java() == str(program)


def test_the_version_of_java_is_read_from_both_streams(java):
    program = java('openjdk 17.0.1\nopenjdk version "17.0.1"', stream=1)
    assert environment.check_java() == str(program)


@pytest.mark.parametrize(
    "said",
    [
        'java version "1.8.0_392"',
        'openjdk version "11.0.21" 2023-10-17',
        'openjdk version "16.0.2" 2021-07-20',
        "No Java runtime present, requesting install.",
        "",
    ],
)
def test_an_older_java_is_refused_with_its_version(java, said):
    java(said)
    with refused() as told:
        environment.check_java()
    assert said in told.value.seen
    assert told.value.expected == "Java 17 or newer"
    assert "JAVA_HOME" in told.value.remedy


@pytest.mark.usefixtures("java")
def test_a_missing_java_is_reported():
    with refused() as told:
        environment.check_java()
    assert "no Java on the PATH" in told.value.seen


def test_java_home_comes_before_the_path(java, monkeypatch, tmp_path):
    java('openjdk version "11.0.21"')
    program = java('openjdk version "17.0.1"', below=tmp_path / "home" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert environment.check_java() == str(program)


def test_a_java_home_without_java_is_named(java, monkeypatch, tmp_path):
    java('openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with refused() as told:
        environment.check_java()
    assert f"JAVA_HOME={tmp_path / 'nothing'}" in told.value.seen


def test_an_empty_java_home_is_ignored(java, monkeypatch):
    program = java('openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", "")
    assert environment.check_java() == str(program)


def test_a_java_that_does_not_start_is_refused_not_a_stack_trace(java):
    java('openjdk version "17.0.1"', shebang="\x7fELF of another machine\n")
    with refused() as told:
        environment.check_java()
    assert told.value.expected == "Java 17 or newer"


# Sessions


@pytest.mark.parametrize("streams", [True, False])
def test_a_session_of_this_python_with_rocksdb_is_accepted(streams):
    environment.check_session(session(), streams=streams)


@pytest.mark.parametrize(
    ("provider", "word"),
    [
        (None, "Spark's default"),
        ("", "Spark's default"),
        ("org.apache.spark.sql.HDFSBackedStateStoreProvider", "HDFSBacked"),
    ],
)
def test_streams_need_rocksdb_and_the_remedy_is_the_line_to_write(provider, word):
    with refused() as said:
        environment.check_session(session(provider=provider), streams=True)
    assert word in said.value.seen
    assert "RocksDB" in said.value.expected
    name, value = re.findall(r'"([^"]+)"', said.value.remedy)
    assert (name, value) == (PROVIDER, ROCKSDB)


def test_a_corpus_needs_no_rocksdb():
    environment.check_session(session(provider=None), streams=False)


@pytest.mark.parametrize("master", ["local", "local[*]", "local-cluster[2,1,1024]"])
@pytest.mark.parametrize("python", ["/usr/bin/env", "no-such-python"])
def test_workers_of_another_python_are_refused_on_this_machine(master, python):
    with refused() as said:
        environment.check_session(session(master, python), streams=False)
    assert Path(python).name in said.value.seen
    assert sys.executable in said.value.expected
    assert "PYSPARK_PYTHON" in said.value.remedy


def test_the_environment_says_which_python_workers_run(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/env")
    with refused() as said:
        environment.check_session(session(python=None), streams=False)
    assert "/usr/bin/env" in said.value.seen
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    environment.check_session(session(python=None), streams=False)


def test_by_default_workers_run_the_python_on_the_path(monkeypatch, tmp_path):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused() as said:
        environment.check_session(session(python=None), streams=False)
    assert str(other) in said.value.seen
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    environment.check_session(session(python=None), streams=False)


def test_the_python_of_a_cluster_is_not_checked():
    environment.check_session(session("spark://host:7077", "/opt/python"), streams=True)
    environment.check_session(session("yarn", None), streams=True)


def test_packages_are_checked_before_the_session(versions):
    versions["pandas"] = "3.0.0"
    with refused() as said:
        environment.check_session(None, streams=True)
    assert said.value.seen == "pandas 3.0.0"
