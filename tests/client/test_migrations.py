"""Both clients migrate a namespace to another encoder as a store does."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.client.errors import NotFoundError
from linkstream.errors import ArgumentError, UnknownIdError, VectorError

T = Thresholds(0.75, 0.9, 0.9)
OTHER = Thresholds(0.6, 0.5, 0.85)
TWO = Space(model="two")


def views(n=600):
    rng = np.random.default_rng(3)
    centres = np.repeat(rng.standard_normal((6, 12)), n // 6, axis=0)
    ones = (centres + 0.3 * rng.standard_normal(centres.shape)).astype("f4")
    return ones, (ones @ rng.standard_normal((12, 9))).astype("f4")


def test_a_migration_is_that_of_links(talk, service, name):
    ones, others = views()
    links = Links.from_thresholds(T)
    links.add_many(ones)
    expected = links.migrate(space=TWO, thresholds=OTHER)
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(ones, ids=[f"k{n}" for n in range(len(ones))])
        assert people.migration() is None
        assert people.migrate(space=TWO, thresholds=OTHER) == expected.status()
        assert people.add_reencoded(others[:300], np.arange(300)) == 300
        assert people.add_reencoded(others[300:305], keys=[f"k{n}" for n in range(300, 305)]) == 5
        expected.add(others[:305], range(305))
        assert people.migration() == people.migrate() == expected.status()
        assert people.missing_vectors(4).tolist() == expected.missing(4).tolist()
        assert people.predict_reencoded(others).tolist() == expected.predict(others).tolist()
        assert people.migration_report() == expected.report()
        assert people.finish_migration() == expected.finish()
        assert people.state_hash() == links.state_hash()
        assert people.info().dimension == 9
        assert people.review_queue() == links.review_queue()


@pytest.mark.parametrize("tracked", [True, False])
def test_a_namespace_that_keeps_no_vectors_migrates_as_links_do(talk, service, name, tracked):
    ones, others = views()
    options = {"keep_vectors": False} if tracked else {"track_vectors": False}
    links = Links.from_thresholds(T, **options)
    links.add_many(ones)
    expected = links.migrate(space=TWO, thresholds=OTHER)
    named = (np.arange(300),) if tracked else ()
    with talk(None, service, name) as people:
        people.create(T, **options)
        people.add_many(ones)
        before = people.state_hash()
        people.migrate(space=TWO, thresholds=OTHER)
        assert people.add_reencoded(others[:300], *named, old=ones[:300]) == 300
        expected.add(others[:300], *named, old=ones[:300])
        assert people.migration() == expected.status()
        assert people.migration().pairs == 300
        assert people.predict_reencoded(others).tolist() == expected.predict(others).tolist()
        assert people.migration_report() == expected.report()
        assert people.finish_migration() == expected.finish()
        assert people.state_hash() == links.state_hash()
        people.undo()
        assert people.state_hash() == before


def test_an_abandoned_migration_changes_nothing(talk, service, name):
    ones, others = views(60)
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(ones)
        before = people.state_hash()
        people.migrate()
        people.add_reencoded(others[:20], range(20))
        assert people.abandon_migration().reencoded == 20
        assert people.state_hash() == before
        for call in (people.finish_migration, people.abandon_migration, people.migration_report):
            with pytest.raises(NotFoundError, match="no migration under way"):
                call()


def test_the_end_is_a_job_that_is_followed_and_cancelled(talk, service, name):
    ones, others = views(60)
    links = Links.from_thresholds(T)
    links.add_many(ones)
    expected = links.migrate()
    expected.add(others[:40], range(40))
    shares = []
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(ones)
        people.migrate()
        people.add_reencoded(others[:40], range(40))
        preview = people.wait_for_rebuild(people.start_finish_migration(False).job, shares.append)
        assert (preview.apply, preview.result()) == (False, expected.report())
        assert shares[-1] == 1.0
        assert people.cancel_rebuild(preview.job).state == "done"
        assert people.migration() == expected.status()
        done = people.finish_migration(progress=shares.append, idempotency_key="end-1", hold=True)
        assert done == expected.finish()
        assert people.finish_migration(idempotency_key="end-1", hold=True) == done
        assert people.state_hash() == links.state_hash()


def test_an_end_that_cannot_be_raises_the_error_of_links(talk, service, name):
    ones, others = views(60)
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(ones)
        people.migrate()
        people.add_reencoded(others[:4], range(4))
        with pytest.raises(ArgumentError, match="4 of 60 vectors re-embedded"):
            people.finish_migration()
        with pytest.raises(ArgumentError, match="hold"):
            people.finish_migration(hold="yes")


def test_what_cannot_be_taken_raises_the_errors_of_links(talk, service, name):
    ones, others = views(60)
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(ones)
        people.migrate()
        with pytest.raises(UnknownIdError, match="vector 60"):
            people.add_reencoded(others[:2], [0, 60])
        with pytest.raises(ArgumentError, match="neither of numbers and keys"):
            people.add_reencoded(others[:2])
        with pytest.raises(ArgumentError, match="key 0, 0, of type int"):
            people.add_reencoded(others[:2], keys=[0, 1])
        with pytest.raises(VectorError):
            people.add_reencoded(np.full((1, 9), np.nan), [0])
        with pytest.raises(ArgumentError, match="type float"):
            people.migrate(thresholds=0.5)
        assert people.migration().reencoded == 0
