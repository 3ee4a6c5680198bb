"""Run the commands of docs/vector-stores.md against a real server and a real folder."""

from __future__ import annotations

import re
import shlex
from contextlib import closing
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models
from tests.io.postgres_server import PASSWORD, labels_in, make, written

from cli.command import shown

PAGE = (Path(__file__).parents[2] / "docs/vector-stores.md").read_text("utf-8")
LINES = [
    (line.replace("\\\n", " "), told)
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, flags=re.M | re.S)
    for line, told in re.findall(r"^\$ (.*?[^\\])\n(.*?)(?=^\$ |\Z)", block, flags=re.M | re.S)
]
NOT_QDRANT = [(line, told) for line, told in LINES if "qdrant://" not in line]
QDRANT = [(line, told) for line, told in LINES if "qdrant://" in line]


def check(lines, there, here, folder):
    """Run the commands, with the address of the page replaced by the one of the test."""
    for line, told in lines:
        words = shlex.split(line.replace(there, here))
        assert words[0] == "linkstream"
        seen = "".join(shown(*words[1:], cwd=folder).split())
        parts = (re.escape("".join(part.split())) for part in told.split("…"))
        assert re.fullmatch(".*".join(parts), seen), f"{line}\n{seen}"


def test_the_commands_of_the_page_work_on_a_table(server, db, faces, tmp_path, monkeypatch):
    make(db, faces)
    before = [
        (line, told.replace("localhost/people", f"{server.host}:{server.port}/postgres"))
        for line, told in NOT_QDRANT
    ]
    assert len(before) == 3
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    here = f"postgres@{server.host}:{server.port}/postgres"
    check(before, "ann@localhost/people", here, tmp_path)
    assert written(db) == labels_in(tmp_path / "people.links")


@pytest.mark.usefixtures("quick_qdrant")
def test_the_commands_of_the_page_work_on_a_collection(faces, tmp_path):
    folder = tmp_path / "q"
    with closing(QdrantClient(path=str(folder))) as client:
        config = models.VectorParams(size=faces.shape[1], distance=models.Distance.DOT)
        client.create_collection("faces", vectors_config=config)
        client.upsert(
            "faces",
            [
                models.PointStruct(id=400 - time, vector=x.tolist(), payload={"time": time})
                for time, x in enumerate(faces[:400])
            ],
        )
    lines = [(line, told.replace("/srv/qdrant", str(folder))) for line, told in QDRANT]
    assert len(lines) == 1
    check(lines, "/srv/qdrant", str(folder), tmp_path)
    with closing(QdrantClient(path=str(folder))) as client:
        points, _ = client.scroll("faces", limit=400)
    ids = {point.payload["time"]: point.payload["cluster_id"] for point in points}
    assert [ids[time] for time in range(400)] == labels_in(tmp_path / "people.links")
