"""Bytes lost or changed: the answers of before, or an error that says so; never another answer.

A damaged store is asked for all it has, and then to go on: a key that comes again, a vector that
is removed, an undo. What it answers must be what the sound one answers, up to the offset where it
raises a StoreError. Only a log that lost its tail may be that of an earlier commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from linkstream.errors import StoreError
from linkstream.store import Store, repair
from store.damage import NAME, WAL, faults, flips, frames, fresh, look, pages, sample
from store.internals import LOG_FRAME, LOG_HEAD, PAGE
from store.operations import THRESHOLDS


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A store that was closed: one file."""
    return sample(tmp_path_factory.mktemp("clean"), killed=False)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A store whose process was killed: a file, and a log with the last commits."""
    return sample(tmp_path_factory.mktemp("killed"), killed=True)


@pytest.fixture(scope="module")
def compacted(tmp_path_factory):
    """A store that was compacted after vectors had been removed."""
    return sample(tmp_path_factory.mktemp("compacted"), killed=False, compacted=True)


def test_an_intact_store_shows_no_fault(clean, killed, compacted, folder):
    for sound in (clean, killed, compacted):
        files = sound.files
        assert faults(folder, sound, NAME, [("nowhere", files[NAME])]) == {}
        assert faults(folder, sound, NAME, [("nowhere", files[NAME])], prefix=True) == {}


# Changed bytes.


def every(data):
    """Each byte, with another change each."""
    return flips(data, range(len(data)))


def several(data):
    """Each byte that stands for something, with several changes."""
    for mask in (0x01, 0x80, 0xFF):
        yield from flips(data, pages(data, step=1, empty=None), mask)


LONG = [pytest.param(every, marks=pytest.mark.long), pytest.param(several, marks=pytest.mark.long)]


def short_and_long(step):
    def some(data):
        return flips(data, pages(data, step=step, empty=PAGE))

    ids = ["some", "all", "several"]
    return pytest.mark.parametrize("changes", [some, *LONG], ids=ids)


@short_and_long(101)
def test_a_changed_byte_of_a_closed_store_gives_no_other_answer(clean, folder, changes):
    assert faults(folder, clean, NAME, changes(clean.files[NAME])) == {}


@short_and_long(331)
def test_a_changed_byte_of_a_compacted_store_gives_no_other_answer(compacted, folder, changes):
    assert faults(folder, compacted, NAME, changes(compacted.files[NAME])) == {}


@short_and_long(331)
def test_a_changed_byte_beside_a_log_gives_no_other_answer(killed, folder, changes):
    assert faults(folder, killed, NAME, changes(killed.files[NAME])) == {}


@pytest.mark.parametrize(
    "step", [521, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_a_changed_byte_of_the_log_gives_an_earlier_commit_at_worst(killed, folder, step):
    data = killed.files[WAL]
    assert faults(folder, killed, WAL, flips(data, frames(data, step)), prefix=True) == {}


def test_pages_of_zeros_give_no_other_answer(clean, killed, folder):
    for sound in (clean, killed):
        data = sound.files[NAME]
        changes = []
        for start in range(0, len(data), PAGE):
            for size in (512, 4096, PAGE):
                cut = data[:start] + bytes(size) + data[start + size :]
                changes.append(((start, size), cut))
        assert faults(folder, sound, NAME, changes) == {}


def test_swapped_pages_give_no_other_answer(clean, folder):
    data = clean.files[NAME]
    parts = [data[start : start + PAGE] for start in range(0, len(data), PAGE)]
    changes = [
        ((i, j), b"".join([*parts[:i], parts[j], *parts[i + 1 :]]))
        for i in range(1, len(parts))
        for j in range(1, len(parts))
        if i != j
    ]
    assert faults(folder, clean, NAME, changes) == {}


# Files cut short.


def cuts(data, edges, step):
    """Shorter and shorter: at the edges of pages or frames, beside them, and anywhere."""
    offsets = {offset + by for offset in edges for by in (-1, 0, 1, 20, 30)}
    offsets |= {*range(0, len(data), step), 0, 1, 16, 31, 99}
    return ((offset, data[:offset]) for offset in sorted(offsets) if 0 <= offset < len(data))


STEPS = pytest.mark.parametrize("step", [14983, pytest.param(211, marks=pytest.mark.long)])


@STEPS
def test_a_truncated_store_is_refused(clean, folder, step):
    data = clean.files[NAME]
    assert faults(folder, clean, NAME, cuts(data, range(0, len(data), PAGE), step)) == {}


@STEPS
def test_a_truncated_store_beside_a_log_is_refused(killed, folder, step):
    data = killed.files[NAME]
    assert faults(folder, killed, NAME, cuts(data, range(0, len(data), PAGE), step)) == {}


@STEPS
def test_a_truncated_log_gives_an_earlier_commit(killed, folder, step):
    data = killed.files[WAL]
    changes = cuts(data, range(LOG_HEAD, len(data), LOG_FRAME), step)
    assert faults(folder, killed, WAL, changes, prefix=True) == {}


def test_a_lost_log_gives_the_commit_before_it(killed, folder):
    answers, error = look(folder, {NAME: killed.files[NAME]})
    assert error is not None or answers[0] in killed.earlier


def test_bytes_after_the_end_of_a_store_give_no_other_answer(clean, folder):
    data = clean.files[NAME]
    changes = [(n, data + bytes([n % 256]) * n) for n in (1, 100, PAGE, 3 * PAGE + 5)]
    assert faults(folder, clean, NAME, changes) == {}


# Files of other kinds.


@pytest.mark.parametrize(
    "data", [b"x", b"SQLite format 3\0", bytes(4096), b"LINKSNAP" + bytes(100), b"hello\n" * 999]
)
def test_a_file_of_another_kind_is_refused_and_left_alone(folder, data):
    path = folder / NAME
    path.write_bytes(data)
    for options in ({}, {"thresholds": THRESHOLDS}, {"read_only": True}):
        with pytest.raises(StoreError, match=NAME):
            Store.open(path, **options)
        assert path.read_bytes() == data


# Repair saves what can be saved, of whatever is there.


@pytest.mark.parametrize("step", [16411, pytest.param(401, marks=pytest.mark.long)])
def test_repair_of_any_damage_gives_a_store_or_a_store_error(clean, folder, step):
    data = clean.files[NAME]
    saved = 0
    for _, changed in flips(data, {*range(7, len(data), step), *range(0, 120, 5)}):
        files = clean.files | {NAME: changed}
        fresh(folder, files)
        try:
            repaired = repair(folder / NAME)
        except StoreError:
            continue
        assert Path(repaired.copy).exists()
        with Store.open(folder / NAME, threads=1, read_only=True) as store:
            store.verify()
        answers, error = look(folder, None, briefly=repaired.lost_before > 0)
        assert error is None or repaired.lost_before
        assert not answers or answers[0] in clean.earlier
        saved += bool(answers) and answers[0] == clean.earlier[-1]
    assert saved > 0
