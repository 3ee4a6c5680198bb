"""What refuses vectors that are held, or tells of them: judge, migrations, inspect."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli.command import run, shown
from confidence.sure import model_for
from linkstream import Links, Thresholds
from linkstream.errors import ArgumentError, LinkstreamError, RemovedError
from linkstream.store import Store
from streams import lobes

STREAM = lobes(np.random.default_rng(0), 700)
X = np.float32(STREAM.vectors)
N = 200
OPTIONS = {"thresholds": Thresholds(*STREAM.thresholds), "confidence": model_for(STREAM.thresholds)}


def holding():
    links = Links.from_thresholds(**OPTIONS)
    links.add(X[0])
    links.accept(0.8)
    links.add_many(X[1:N])
    return links


def test_judge_refuses_vectors_that_are_held_or_removed():
    links = holding()
    one, two = links.held(limit=2)
    links.remove(two.vector)
    links.remove(3)
    for vector, words in ((one.vector, "is held"), (two.vector, "removed"), (3, "removed")):
        with pytest.raises(RemovedError, match=words):
            links.judge(vector, True)
    assert links.core.up_to_date_ledger().answers.total == 0
    links.judge(int(np.flatnonzero(links.labels() >= 0)[5]), True)
    assert links.core.up_to_date_ledger().answers.total == 1


def test_judge_says_why_the_first_vector_cannot_be_judged():
    with pytest.raises(ArgumentError, match="The first vector was compared with none"):
        holding().judge(0)


def test_why_tells_how_many_answers_wait_for_an_update():
    links = Links(*STREAM.thresholds, confidence=True)
    links.add_many(X)
    for vector in range(1, 31):
        links.judge(vector, bool(vector % 3))
    assert "of which there are 0; 30 more count after confidence.update()" in links.confidence.why
    links.confidence.update()
    assert links.confidence.why.endswith("of which there are 30")


def test_a_migration_keeps_vectors_of_held_items_and_tells_that_they_wait():
    links, other = holding(), np.roll(X, 1, axis=1)
    waiting = [each.vector for each in links.held(limit=N)]
    migration = links.migrate()
    assert migration.add(other[:N], list(range(N))) == N
    status = migration.status()
    assert (status.held, status.missing) == (len(waiting), 0)
    assert f"{len(waiting)} held, to be decided on before the end" in str(status)
    with pytest.raises(LinkstreamError, match="are held"):
        migration.finish()
    links.accept()
    assert (migration.status().held, migration.missing().tolist()) == (0, [])
    migration.finish()


def test_inspect_shows_the_policy_and_how_many_vectors_are_held(tmp_path):
    path = tmp_path / "people.links"
    with Store.open(path, **OPTIONS) as store:
        store.add(X[0])
        assert store.info()["policy"]["unsure"] == "take"
        store.accept(0.8)
        store.add_many(X[1:N])
        n_held = len(store.held(limit=N))
        assert (store.info()["held"], store.info()["policy"]["probability"]) == (n_held, 0.8)
    words = shown("inspect", path, cwd=tmp_path)
    assert f"held (below 0.8; new clusters: 0.8); {n_held} held now" in words
    told = run("inspect", path, cwd=tmp_path).stdout
    assert json.loads(told)["store"]["held"] == n_held


def test_the_command_line_shows_key_and_payload_of_held_vectors(tmp_path):
    path = tmp_path / "people.links"
    with Store.open(path, **OPTIONS) as store:
        store.add(X[0])
        store.accept(0.8)
        own = [f"k{i}" for i in range(1, N)]
        store.add_many(X[1:N], ids=own, payloads=[{"file": each} for each in own])
        one, two, *_ = store.held()
    words = shown("held", path, cwd=tmp_path)
    assert f"vector {one.vector} ({one.id}): " in words
    assert f'{{"file": "{one.id}"}}' in words
    shown("assign", path, one.id, "--new", cwd=tmp_path)
    shown("forget", path, "--vector", two.id, "--yes", cwd=tmp_path)
    with Store.open(path) as store:
        assert not {one.vector, two.vector} & {each.vector for each in store.held(limit=N)}
