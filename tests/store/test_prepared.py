"""A rebuild that is computed beside the writer thread, and applied if nothing has changed."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Space, Thresholds
from linkstream.clusterer import rebuilding
from linkstream.clusterer.verbs import Rebuild
from linkstream.errors import ChangedError
from linkstream.store import Store
from linkstream.store.prepared import complete, prepare, refuse_if_changed
from linkstream.store.write_requests import request_of

T = Thresholds(0.6, 0.5, 0.85)
KINDS = {
    "as it is": {},
    "other thresholds": {"thresholds": Thresholds(0.5, 0.45, 0.8)},
    "another mean": {"space": Space(np.full(12, 0.05))},
    "another encoder": {"vectors": np.random.default_rng(5).standard_normal((60, 7))},
}


def sample(n=60, dimension=12):
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((9, dimension))
    return (centres[rng.integers(9, size=n)] + 0.6 * rng.standard_normal((n, dimension))).astype(
        np.float32
    )


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "x.links", thresholds=T) as opened:
        opened.add_many(sample())
        yield opened


def refuse_to_compute(monkeypatch):
    """Let no rebuild be computed from now on."""
    monkeypatch.setattr(rebuilding, "prepare", lambda *_: pytest.fail("computed again"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_prepared_is_applied_as_if_the_writer_had_computed_it(
    store, tmp_path, monkeypatch, kind
):
    store.backup(tmp_path / "y.links")
    with Store.open(tmp_path / "y.links") as other:
        other.rebuild(True, **KINDS[kind])
        expected = other.state_hash()
    request = request_of(Rebuild(True, **KINDS[kind]), key=None)
    shares = []
    proposed = prepare(store.handle, request, shares.append)
    assert proposed == store.rebuild(**KINDS[kind])
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    complete(request)
    refuse_if_changed(request)
    with monkeypatch.context() as patched:
        refuse_to_compute(patched)
        done = store.handle.submit(request).result()
    assert (done.applied, done.flows) == (True, proposed.flows)
    assert store.state_hash() == expected
    assert store.verify().operations == 2


def test_a_store_that_has_changed_refuses_what_was_prepared_and_stays_as_it_is(store):
    request = request_of(Rebuild(True), key=None)
    prepare(store.handle, request, lambda _: None)
    refuse_if_changed(request)
    store.add(sample()[0])
    before = store.state_hash()
    with pytest.raises(ChangedError, match="1 more events"):
        store.handle.submit(request).result()
    assert store.state_hash() == before
    store.name(0, "Ann")  # writes go on


def test_without_refusal_the_writer_computes_again_for_what_came(store, tmp_path):
    request = request_of(Rebuild(True), key=None)
    prepare(store.handle, request, lambda _: None)
    store.add_many(sample(80)[60:])
    store.backup(tmp_path / "y.links")
    with Store.open(tmp_path / "y.links") as other:
        other.rebuild(True)
        expected = other.state_hash()
    assert store.handle.submit(request).result().n_vectors == 80
    assert store.state_hash() == expected


def test_vectors_that_vanish_while_they_are_read_are_a_change(store):
    def undo(share):
        if share < 0.1:
            store.undo(to=0)

    with pytest.raises(ChangedError, match="more events"):
        prepare(store.handle, request_of(Rebuild(True), key=None), undo)


def test_the_caller_ends_the_computation_by_raising(store):
    def stop(share):
        raise InterruptedError

    request = request_of(Rebuild(True), key=None)
    with pytest.raises(InterruptedError):
        prepare(store.handle, request, stop)
    assert request.prepared is None


def test_an_empty_store_has_nothing_to_rebuild(tmp_path):
    with Store.open(tmp_path / "x.links", thresholds=T) as store:
        request = request_of(Rebuild(True), key=None)
        assert prepare(store.handle, request, lambda _: None).flows == ()
        refuse_if_changed(request)
        assert store.handle.submit(request).result().applied
