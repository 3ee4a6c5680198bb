"""`linkstream watch`: add each arriving file once."""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import pytest

from cli.command import begin, json_lines, refused, run
from linkstream.data import voice_halves
from linkstream.store import Store

OPTIONS = ("--store", "people.links", "--preset", "ge2e-windows", "--every", "0.02")


@pytest.fixture(scope="module")
def voices():
    return voice_halves()[1].X


@pytest.fixture
def place(tmp_path, voices):
    (tmp_path / "in").mkdir()
    for number, name in enumerate(("b.npy", "a.npy")):
        np.save(tmp_path / "in" / name, voices[50 * number : 50 * number + 50])
        os.utime(tmp_path / "in" / name, (number, number))
    return tmp_path


def once(place, *options):
    done = run("watch", "in", *OPTIONS, "--once", *options, cwd=place)
    return done.returncode, json_lines(done.stdout)


def n_vectors(place):
    with Store.open(place / "people.links", read_only=True) as store:
        return store.n_vectors


def test_existing_files_are_added_oldest_first(place, voices):
    code, lines = once(place)
    assert code == 0
    assert [(line["file"], line["taken"]) for line in lines] == [("b.npy", 50), ("a.npy", 50)]
    with Store.open(place / "people.links", read_only=True) as store:
        np.testing.assert_allclose(store.vectors([0, 99]), voices[[0, 99]], rtol=1e-6)


def test_a_restart_adds_no_file_twice(place):
    once(place)
    _, lines = once(place)
    assert [line["taken"] for line in lines] == [0, 0]
    assert n_vectors(place) == 100


def test_new_rows_of_a_grown_file_and_copies_of_other_names_are_added(place, voices):
    once(place)
    np.save(place / "in" / "b.npy", voices[:80])
    np.save(place / "in" / "c.npy", voices[:50])
    _, lines = once(place)
    assert {line["file"]: line["taken"] for line in lines} == {"a.npy": 0, "b.npy": 30, "c.npy": 50}


def test_files_of_other_types_are_not_read(place):
    for name in (".hidden.npy", "notes.txt", "a.npy.partial"):
        (place / "in" / name).write_text("nothing")
    (place / "in" / "folder.npy").mkdir()
    assert len(once(place)[1]) == 2


def test_an_unusable_file_is_reported_and_the_others_are_added(place):
    (place / "in" / "0.npy").write_bytes(b"no array")
    code, lines = once(place)
    assert code == 6  # the others are kept
    assert [("error" in line, line["taken"]) for line in lines] == [
        (False, 50),
        (False, 50),
        (True, 0),
    ]


def test_a_missing_folder_is_refused(tmp_path):
    refused(run("watch", "none", *OPTIONS, cwd=tmp_path))


@pytest.mark.parametrize(
    ("how", "code", "told"),
    [
        (signal.SIGINT, 130, "Interrupted. Kept: 130 new rows are in people.links; "),
        (signal.SIGTERM, 0, ""),
    ],
)
def test_watch_adds_arriving_files_and_stops_cleanly(place, voices, how, code, told):
    process = begin("watch", "in", *OPTIONS, cwd=place)
    assert json.loads(process.stdout.readline())["file"] == "b.npy"
    assert json.loads(process.stdout.readline())["file"] == "a.npy"
    np.save(place / "in" / ".new.npy", voices[100:130])
    (place / "in" / ".new.npy").rename(place / "in" / "new.npy")
    assert json.loads(process.stdout.readline())["taken"] == 30
    process.send_signal(how)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (code, "")
    assert err.startswith(told) if told else not err
    assert n_vectors(place) == 130


def test_watch_waits_for_a_growing_file(place, voices):
    process = begin("watch", "in", *OPTIONS, "--every", "0.3", "--dimension", "256", cwd=place)
    process.stdout.readline(), process.stdout.readline()
    with (place / "in" / "slow.f32").open("wb") as slow:
        for number in range(6):
            slow.write(voices[number].astype("<f4").tobytes())
            slow.flush()
            time.sleep(0.1)
    line = json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=30)
    assert (line["file"], line["taken"]) == ("slow.f32", 6)
