"""Photos and corrections on clusters of the paper: both help, and corrections hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkstream import Links
from linkstream.metrics import accuracy, conflation_fracture
from linkstream.paper.generative import sample_cluster, sigma_of
from streams import ENGINES, around, unit

engines = pytest.mark.parametrize("engine", ENGINES)
configurations = pytest.mark.parametrize(
    "options", [{}, {"evidence": "cluster", "heal": "settle"}], ids=["paper", "healed"]
)
DIMENSION, TYPICAL, SIBLINGS, PEOPLE = 64, 0.8, 0.85, 6
THRESHOLDS = (0.72, 0.62, 0.72)  # as for strangers with that typical similarity to their centre


class Faces:
    """People as clusters of the paper; the first two are siblings with similar vectors."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.centres = unit(self.rng.standard_normal((PEOPLE, DIMENSION)))
        self.centres[1] = around(self.rng, self.centres[:1], SIBLINGS)[0]
        self.sigma = sigma_of(math.acos(TYPICAL), DIMENSION)

    def of(self, people):
        """Return a vector of each of these people, in this order."""
        who = np.asarray(people)
        X = np.empty((len(who), DIMENSION), dtype=np.float32)
        for one in np.unique(who):
            there = who == one
            X[there] = sample_cluster(self.centres[one], int(there.sum()), self.sigma, self.rng)
        return X

    def photos(self, n):
        """Return the people of n photos: the siblings on every other one, two others on each."""
        groups = []
        for _ in range(n):
            siblings = self.rng.permutation(2)[: self.rng.integers(1, 3)]
            groups.append([*siblings, *self.rng.choice(np.arange(2, PEOPLE), 2, replace=False)])
        return groups


def taken(groups, X, engine, *, together, **options):
    """Return a clusterer with the photos added as groups, or vector by vector."""
    links = Links(*THRESHOLDS, engine=engine, threads=1, **options)
    for rows in np.split(X, np.cumsum([len(group) for group in groups])[:-1]):
        (links.add_group if together else links.add_many)(rows)
    return links


def sharing(groups, labels):
    """Return vectors that share a cluster with an earlier one of their photo."""
    parts = np.split(labels, np.cumsum([len(group) for group in groups])[:-1])
    return sum(len(part) - len(set(part.tolist())) for part in parts)


@engines
@configurations
def test_groups_separate_siblings_that_vectors_alone_do_not(engine, options):
    rises, conflated, shared = [], [], []
    for seed in range(8):
        faces = Faces(seed)
        groups = faces.photos(40)
        y = np.concatenate(groups)
        X = faces.of(y)
        ways = [taken(groups, X, engine, together=way, **options) for way in (False, True)]
        plain, photos = (links.labels() for links in ways)
        rises.append(accuracy(y, photos) - accuracy(y, plain))
        conflated.append([conflation_fracture(y, way).conflation for way in (plain, photos)])
        shared.append([sharing(groups, way) for way in (plain, photos)])
    assert min(rises) >= 0.0
    assert np.mean(rises) > 0.08
    assert np.mean(conflated, axis=0)[1] < np.mean(conflated, axis=0)[0] / 3
    before, after = np.sum(shared, axis=0)  # two faces of one photo under one ID
    assert before > 40
    assert after == 0


def corrected(faces, engine, **options):
    """Correct siblings that share a cluster; return the corrected pairs."""
    y = faces.rng.integers(PEOPLE, size=120)
    links = Links(*THRESHOLDS, engine=engine, threads=1, **options)
    links.add_many(faces.of(y))
    labels, (elder, younger, third, fourth) = (
        links.labels(),
        (np.flatnonzero(y == i) for i in range(4)),
    )
    a, b = next((a, b) for a in elder for b in younger if labels[a] == labels[b])
    links.different(a, b)
    home = links.labels()[b]
    strayed = next(v for v in younger if links.labels()[v] != home)
    links.move(strayed, home)
    links.same(third[0], third[-1])
    links.different(third[0], fourth[0])
    return (
        links,
        [(b, strayed), (third[0], third[-1])],
        [(a, b), (a, strayed), (third[0], fourth[0])],
    )


def hold(links, one, apart):
    labels = links.labels()
    return all(labels[a] == labels[b] for a, b in one) and all(
        labels[a] != labels[b] for a, b in apart
    )


@engines
@configurations
@pytest.mark.parametrize("saved", [False, True], ids=["kept", "saved and loaded"])
def test_corrections_hold_after_hundreds_of_vectors_of_the_same_people(
    engine, options, saved, tmp_path
):
    faces = Faces(3)
    links, one, apart = corrected(faces, engine, **options)
    assert hold(links, one, apart)
    for _ in range(10):
        links.add_many(faces.of(faces.rng.integers(2, size=50)))
        assert hold(links, one, apart)
        if saved:
            links.save(tmp_path / "snapshot")
            links = Links.load(tmp_path / "snapshot", engine=engine, threads=1)
    links.settle(apply=True)
    assert hold(links, one, apart)


@engines
def test_clusters_separated_by_groups_stay_apart_after_loading(engine):
    faces = Faces(4)
    groups = faces.photos(15)
    links = taken(groups, faces.of(np.concatenate(groups)), engine, together=True)
    links = Links.from_bytes(links.to_bytes(), engine=engine, threads=1)
    links.add_many(faces.of(faces.rng.integers(2, size=500)))
    links.settle(apply=True)
    n = sum(map(len, groups))
    assert sharing(groups, links.labels()[:n]) == 0


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@configurations
def test_both_engines_agree_after_corrections(options):
    states = set()
    for engine in ENGINES:
        faces = Faces(5)
        links, _, _ = corrected(faces, engine, **options)
        links.add_many(faces.of(faces.rng.integers(PEOPLE, size=200)))
        states.add(links.state_hash())
    assert len(states) == 1
