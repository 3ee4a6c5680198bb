"""The demo: voices at speaking pace, added like any other vectors."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from urllib.parse import urlsplit

import numpy as np
import pytest

from linkstream import Links
from linkstream.cli import demo as shown
from linkstream.data import voice_halves
from linkstream.paper.thresholds import Thresholds
from linkstream.service import demo, running
from linkstream.service.sessions import Session, Sessions
from linkstream.service.settings import Settings
from linkstream.store import Store


@pytest.fixture(scope="module")
def voices():
    return voice_halves()[1]


def fed(tmp_path, *, meanwhile=None, **options):
    """Run the demo to its end, or until other work is done."""

    async def run():
        sessions = Sessions(Settings(data=tmp_path / "data"))
        await sessions.start()
        try:
            feeding = asyncio.ensure_future(demo.feed(sessions, **{"step": 0.0} | options))
            if meanwhile is not None:
                await meanwhile(sessions)
            await asyncio.wait_for(feeding, 60)
        finally:
            await sessions.stop()

    asyncio.run(run())


def stored(tmp_path):
    return Store.open(tmp_path / "data" / "voices.links", threads=1)


async def after(sessions, n):
    """Wait until n vectors are added."""
    while "voices" not in sessions.open or sessions.open["voices"].store.n_vectors < n:
        await asyncio.sleep(0.005)


def test_all_voices_are_added_with_reader_and_time(tmp_path, voices, caplog):
    with caplog.at_level(logging.INFO, "linkstream.service"):
        fed(tmp_path)
    assert "all 801 windows" in caplog.text
    with stored(tmp_path) as store:
        assert store.n_vectors == len(voices.X)
        first, last = store.payloads([0, 800])
        plain = Links.from_thresholds(demo.THRESHOLDS, threads=1)
        plain.add_many(voices.X)
        np.testing.assert_array_equal(store.labels(), plain.labels())
    assert first == {"reader": "A", "t": 0.0}
    assert last["reader"] in "ABCDE"
    assert last["t"] == 320.0


def test_the_demo_has_the_stream_and_thresholds_of_the_command(voices):
    assert demo.THRESHOLDS == shown.THRESHOLDS
    assert demo.STEP == shown.WINDOW_STEP
    letters = shown._letters(voices)
    payloads = demo._payloads(voices, 0, len(voices.X))
    assert [each["reader"] for each in payloads] == letters


def test_some_windows_are_added_at_once_and_the_rest_one_by_one(tmp_path):
    async def look(sessions):
        await after(sessions, 123)
        sessions.stopping.set()

    fed(tmp_path, meanwhile=look)
    with stored(tmp_path) as store:
        sizes = [operation.n_rows for operation in store.journal.operations()]
    assert sizes[:4] == [120, 1, 1, 1]


def test_a_restarted_demo_continues(tmp_path, voices):
    async def stop_soon(sessions):
        await after(sessions, 130)
        sessions.stopping.set()

    fed(tmp_path, meanwhile=stop_soon)
    with stored(tmp_path) as store:
        assert 130 <= store.n_vectors < len(voices.X)
    fed(tmp_path)
    fed(tmp_path)
    with stored(tmp_path) as store:
        assert store.n_vectors == len(voices.X)


def test_stopping_the_service_ends_the_demo_and_closes_its_store(tmp_path):
    settings = Settings(data=tmp_path / "data", port=0, demo=True)
    with running.background(settings) as url:
        place = urlsplit(url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        vectors = 0
        while vectors < demo.AT_ONCE:
            connection.request("GET", "/v1/namespaces")
            found = json.loads(connection.getresponse().read())["namespaces"]
            vectors = sum(each["vectors"] or 0 for each in found)
        connection.close()
    with stored(tmp_path) as store:
        assert vectors <= store.n_vectors < 801


def test_the_demo_waits_while_the_service_is_busy(tmp_path, voices, monkeypatch):
    from linkstream.service.responses import busy

    left, write = [3], Session.write

    async def sometimes(self, call, size=0):
        if left[0]:
            left[0] -= 1
            raise busy("much", "less")
        return await write(self, call, size)

    monkeypatch.setattr(Session, "write", sometimes)
    fed(tmp_path)
    with stored(tmp_path) as store:
        assert store.n_vectors == len(voices.X)


def test_an_existing_namespace_with_other_options_is_left_alone(tmp_path, caplog):
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "voices.links"
    with Store.open(path, thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
        store.add([1.0, 0.0])
    fed(tmp_path)
    assert "the demo has ended" in caplog.text
    with stored(tmp_path) as store:
        assert store.n_vectors == 1
