"""The space: fitting a mean, refusing samples of few identities, and not mixing spaces."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds, saving
from linkstream.data import voice_halves, voice_stream
from linkstream.engine import snapshot
from linkstream.errors import (
    ArgumentError,
    DimensionError,
    SnapshotError,
    SpaceError,
    VectorError,
)
from linkstream.paper.generative import sample_cluster, sample_stream, sigma_of
from linkstream.paper.sphere import normalise
from linkstream.space import survey
from linkstream.store import Store

DIMENSION = 96
SIGMA = sigma_of(np.arccos(0.85), DIMENSION)


def cone(sizes, *, seed=0, tilt=1.0):
    """Identities of these sizes in a cone around one direction: strangers have similarity > 0."""
    rng = np.random.default_rng(seed)
    axis = normalise(rng.standard_normal(DIMENSION))
    centres = normalise(normalise(rng.standard_normal((len(sizes), DIMENSION))) + tilt * axis)
    X = [sample_cluster(c, k, SIGMA, rng) for c, k in zip(centres, sizes, strict=True)]
    y = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(y))
    return np.concatenate(X)[order], y[order]


def mean_of_identities(X, y):
    return np.mean([X[y == i].mean(axis=0) for i in np.unique(y)], axis=0)


def strangers(X, y, space):
    """Mean similarity of two vectors of different identities, in a space."""
    centred = normalise(space.centre(np.asarray(X, dtype=np.float32)))
    return (centred @ centred.T)[y[:, None] != y].mean()


def test_sixty_identities_fit_a_space_in_which_others_are_perpendicular():
    X, y = cone([12] * 90)
    space = Space.fit(X[y < 60], model="encoder-7")
    others = y >= 60
    assert space.model == "encoder-7"
    assert strangers(X[others], y[others], Space()) > 0.3
    assert abs(strangers(X[others], y[others], space)) < 0.05


@pytest.mark.parametrize("labelled", [False, True])
def test_five_identities_are_refused(labelled):
    X, y = cone([60] * 5)
    with pytest.raises(SpaceError, match=r"5 identities; expected at least 12") as caught:
        Space.fit(X, y=y if labelled else None)
    assert "min_identities" in caught.value.remedy


def test_five_real_speakers_with_many_vectors_are_refused():
    for half in voice_halves():
        with pytest.raises(SpaceError, match="identities"):
            Space.fit(half.X)


def test_min_identities_may_be_lowered():
    X, _ = cone([60] * 5)
    assert Space.fit(X, min_identities=3).mean is not None


def test_with_labels_the_mean_is_that_of_the_identities():
    X, y = cone([3, 200, *[10] * 20])
    space = Space.fit(X, y=y)
    np.testing.assert_allclose(space.mean, mean_of_identities(normalise(X), y), atol=1e-6)


def test_a_few_big_identities_hardly_change_the_mean():
    X, y = cone([600, 600, *[15] * 58])
    right = mean_of_identities(X, y)
    fitted = np.linalg.norm(Space.fit(X).mean - right)
    plain = np.linalg.norm(X.mean(axis=0) - right)
    assert fitted < 0.35 * plain


def test_copies_hardly_change_the_mean():
    X, _ = cone([15] * 40)
    copied = np.concatenate([X, np.repeat(X[:1], 400, axis=0)])
    fitted = np.linalg.norm(Space.fit(copied).mean - Space.fit(X).mean)
    plain = np.linalg.norm(copied.mean(axis=0) - X.mean(axis=0))
    assert fitted < 0.35 * plain


def test_perpendicular_strangers_give_a_space_without_a_mean():
    X, y = sample_stream(40, 10, DIMENSION, SIGMA, np.random.default_rng(1))
    assert Space.fit(X, model="m") == Space(model="m")
    assert Space.fit(X, y=y).mean is None


def test_lengths_do_not_matter():
    X, _ = cone([10] * 30)
    longer = X * np.random.default_rng(0).uniform(0.1, 9.0, (len(X), 1))
    np.testing.assert_allclose(Space.fit(longer).mean, Space.fit(X).mean, atol=1e-4)


def test_the_same_seed_draws_the_same_sample():
    X, _ = cone([40] * 80)  # more than are looked at
    space = Space.fit(X, seed=3)
    assert Space.fit(X, seed=3) == space
    assert Space.fit(X, seed=4) != space


@pytest.mark.parametrize(("low", "count", "high"), [(2, 3, 6), (7, 10, 13), (22, 30, 36)])
def test_the_number_of_identities_is_about_right(low, count, high):
    assert low <= survey(cone([20] * count)[0]).identities <= high


def test_surveys_with_and_without_labels_find_the_same_cone():
    X, y = cone([10] * 40)
    blind, told = survey(X), survey(X, y=y)
    assert blind.strangers == pytest.approx(told.strangers, abs=0.05)
    assert (blind.counted, told.counted, told.identities) == (False, True, 40)
    assert blind.length == pytest.approx(told.length, abs=0.05)


def test_identical_vectors_count_as_one_identity():
    X = np.repeat(voice_stream().X[:1], 50, axis=0)
    assert survey(X).identities == pytest.approx(1.0)
    with pytest.raises(SpaceError, match="about 1 identities"):
        Space.fit(X)


def test_bad_samples_are_refused():
    with pytest.raises(VectorError, match="1 vectors"):
        Space.fit(np.ones((1, 4)))
    with pytest.raises(VectorError, match="not finite"):
        Space.fit([[1.0, np.nan], [1.0, 0.0]])
    with pytest.raises(ArgumentError, match="labels of shape"):
        Space.fit(np.eye(4), y=[1, 2])


def test_the_error_for_spaces_of_different_models_names_both():
    a, b = Space(model="ge2e"), Space(model="arcface")
    a.check_same(Space(model="ge2e"))
    with pytest.raises(SpaceError, match=r"'arcface'; expected model 'ge2e'"):
        a.check_same(b)


def test_spaces_of_one_model_with_different_means_are_not_the_same():
    a = Space(mean=[0.5, 0.0, 0.0], model="m")
    with pytest.raises(SpaceError, match=r"no mean vector; expected .*length 0\.5"):
        a.check_same(Space(model="m"))


def test_the_repr_of_a_space_is_one_line():
    assert Space(mean=[0.3, 0.4], model="m").text() == (
        "model 'm', a mean vector of length 0.5 in 2 dimensions"
    )
    assert repr(Space()) == "Space(no model named, no mean vector)"


def test_a_space_without_a_mean_may_have_a_dimension():
    space = Space(model="m", dimension=np.int64(4))
    assert (space.dimension, type(space.dimension)) == (4, int)
    assert space.text() == "model 'm', no mean vector, 4 dimensions"
    assert space != Space(model="m")
    with pytest.raises(DimensionError, match="dimension 3; expected dimension 4: model 'm' makes"):
        Links(0.7, 0.6, 0.9, space=space).add([1.0, 0.0, 0.0])
    with pytest.raises(DimensionError, match="expected dimension 4: the space says"):
        Links(0.7, 0.6, 0.9, space=Space(dimension=4)).add([1.0, 0.0, 0.0])


@pytest.mark.parametrize("dimension", [0, 1, -4, True, 2.0, "4", 2**40])
def test_a_bad_dimension_is_refused(dimension):
    with pytest.raises(SpaceError, match="whole number from 2"):
        Space(dimension=dimension)


def test_a_mean_of_another_dimension_than_the_space_is_refused():
    assert Space([0.5, 0.0, 0.0], dimension=3).dimension == 3
    with pytest.raises(SpaceError, match="dimension 3 and dimension=4"):
        Space([0.5, 0.0, 0.0], dimension=4)


def test_spaces_of_two_dimensions_are_not_mixed_and_one_without_a_dimension_fits():
    known = Space(model="m", dimension=4)
    known.check_same(Space(model="m"))
    Space(model="m").check_same(known)
    with pytest.raises(SpaceError, match=r"5 dimensions; expected .* 4 dimensions"):
        known.check_same(Space(model="m", dimension=5))


@pytest.mark.parametrize("dimension", [1, -3, 2**40, "8", 2.5, [8], True, 5])
def test_a_snapshot_with_a_hostile_dimension_of_its_space_is_refused(dimension):
    links = Links(0.7, 0.6, 0.9, space=Space(model="m", dimension=4))
    links.add(np.ones(4))
    known = {"meta": saving._META, "arrays": saving._ARRAYS}
    meta, arrays = snapshot.decode(links.to_bytes(), **known)
    assert meta["space_dimension"] == 4
    with pytest.raises(SnapshotError):
        Links.from_bytes(snapshot.encode(meta | {"space_dimension": dimension}, arrays))


def test_a_store_refuses_a_space_of_another_dimension(tmp_path):
    path, thresholds = tmp_path / "a.links", Thresholds(0.7, 0.6, 0.9)
    options = {"thresholds": thresholds, "space": Space(model="m", dimension=4)}
    Store.open(path, **options).close()
    Store.open(path, **options).close()
    Store.open(path, space=Space(model="m")).close()
    with pytest.raises(ArgumentError, match="'dimension': 5"):
        Store.open(path, space=Space(model="m", dimension=5))


def test_a_saved_clusterer_refuses_vectors_of_another_space(tmp_path):
    links = Links(0.7, 0.6, 0.9, space=Space(model="encoder-7"))
    links.add(np.ones(4))
    links.save(tmp_path / "people.links")
    assert Links.load(tmp_path / "people.links", space=Space(model="encoder-7")).n_vectors == 1
    with pytest.raises(SpaceError, match="encoder-8"):
        Links.load(tmp_path / "people.links", space=Space(model="encoder-8"))
