"""Probabilities and policies after the vectors were replaced by those of another encoder."""

from __future__ import annotations

import numpy as np
import pytest

from confidence.sure import HELD, NEW
from linkstream import Links, Thresholds
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Model, Policy
from linkstream.store import Store
from streams import lobes

STREAM = lobes(np.random.default_rng(0), 400)
X = np.float32(STREAM.vectors)
TURNED = X @ np.float32(np.linalg.qr(np.random.default_rng(1).normal(size=(X.shape[1],) * 2))[0])
OTHER = "fitted to vectors of another encoder"


def links(**options):
    """Return a clusterer with 100 vectors, and a model that holds for it."""
    clusterer = Links(*STREAM.thresholds, **options)
    clusterer.confidence.use(model_of(clusterer))
    clusterer.add_many(X[:100])
    return clusterer


def model_of(clusterer):
    return Model(setting(clusterer.core), HELD, NEW, HELD, 40)


def migrated(clusterer):
    migration = clusterer.migrate()
    migration.add(TURNED[:100], list(range(100)))
    migration.finish()


def rebuilt(clusterer):
    clusterer.rebuild(True, vectors=TURNED[:100])


def copied(clusterer):
    return Links.from_bytes(clusterer.to_bytes())


@pytest.mark.parametrize("change", [migrated, rebuilt])
@pytest.mark.parametrize("again", [lambda same: same, copied])
def test_vectors_of_another_encoder_make_probabilities_unknown(change, again):
    clusterer = links()
    assert clusterer.add(X[100]).probability is not None
    clusterer.undo()
    change(clusterer)
    clusterer = again(clusterer)
    assert clusterer.confidence.why.startswith(OTHER)
    assert clusterer.add(TURNED[100]).probability is None
    assert clusterer.decide_many(TURNED[101:120]).probability is None


@pytest.mark.parametrize("change", [migrated, rebuilt])
def test_a_policy_rests_after_a_change_of_the_encoder_and_holds_again_after_its_undo(change):
    clusterer = links()
    clusterer.accept(0.9)
    change(clusterer)
    assert (clusterer.add_many(TURNED[100:300]) >= 0).all()
    assert copied(clusterer).core.policy is None
    rebuild = next(each for each in clusterer.events() if each.kind == "rebuilt")
    clusterer.undo(to=rebuild.sequence)
    assert clusterer.confidence.why == ""
    assert (clusterer.add_many(X[100:300]) == -1).any()


def test_a_model_and_a_policy_of_the_new_encoder_hold_also_in_a_copy():
    clusterer = links()
    rebuilt(clusterer)
    clusterer.confidence.use(model_of(clusterer))
    assert clusterer.confidence.why == ""
    clusterer.accept(0.9)
    twin = copied(clusterer)
    assert twin.confidence.why == ""
    assert (twin.policy, twin.policy.encoder >= 0) == (clusterer.policy, True)
    assert (twin.add_many(TURNED[100:300]) == -1).any()
    text = twin.policy.bounds
    assert Policy.from_bounds(text) == twin.policy
    for wrong in ("-2]", "true]", '"a"]', "1, 2]"):
        with pytest.raises(ValueError, match="policy"):
            Policy.from_bounds(text[: text.rindex(",") + 1] + wrong)


def test_answers_to_the_former_encoder_teach_a_new_model_nothing():
    clusterer = links()
    rebuilt(clusterer)
    clusterer.confidence.update()
    assert clusterer.confidence.why.startswith("fitted to 0 identities")


def test_a_rebuild_of_the_same_vectors_keeps_probabilities():
    clusterer = links()
    clusterer.rebuild(True)
    assert clusterer.confidence.why == ""


def test_a_store_forgets_probabilities_with_the_encoder_also_when_it_is_opened_again(tmp_path):
    path, model = tmp_path / "a.links", model_of(Links(*STREAM.thresholds))
    with Store.open(path, thresholds=Thresholds(*STREAM.thresholds), confidence=model) as store:
        store.add_many(X[:100])
        store.accept(0.9)
        migration = store.migrate()
        migration.add(TURNED[:100], list(range(100)))
        migration.finish()
        assert store.confidence.why.startswith(OTHER)
    with Store.open(path) as store:
        assert store.confidence.why.startswith(OTHER)
        assert (store.add_many(TURNED[100:300]) >= 0).all()
