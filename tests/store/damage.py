"""Small stores with something of everything, what they answer, and ways to damage them."""

from __future__ import annotations

import contextlib
import json
import resource
import time
from typing import NamedTuple

import numpy as np

from linkstream.errors import (
    ArgumentError,
    DamagedStoreError,
    IdempotencyError,
    StoreError,
    StoreLockedError,
)
from linkstream.store import Store
from store.internals import LOG_FRAME, LOG_HEAD, PAGE
from store.operations import THRESHOLDS, state_of, vectors

X = vectors(np.random.default_rng(2), 40)
NAME = "people.links"
WAL = NAME + "-wal"
ROOM = 1 << 28  # bytes that a small store may take on top of what there was
SOON = 10.0  # seconds in which it has to answer


class Sample(NamedTuple):
    """Files of a store; what it answers; where it was after each commit."""

    files: dict[str, bytes]
    answers: list[object]
    earlier: list[object]


def filled(store):
    """A small store with something of everything; where it is after each call."""
    yield state_of(store)
    store.add_many(X[:9], payloads=[f"row {i}" for i in range(9)], idempotency_key="first")
    yield state_of(store)
    store.add_many(X[9:12], weight=[0.5, 0.0, 1.0])
    yield state_of(store)
    store.undo()
    yield state_of(store)
    store.add_group(X[12:15], group="photo", idempotency_key="second", payloads=[1, None, {"a": 2}])
    yield state_of(store)
    store.name(int(store.labels()[0]), "Ann")
    yield state_of(store)
    store.different(0, 1)
    yield state_of(store)


def more(store):
    """What is done after a reopening, and stays in the log; where it is after each of them."""
    store.add_many(X[15:20], idempotency_key="third")
    yield state_of(store)
    store.add(X[20], payload="one")
    yield state_of(store)
    store.remove(4)
    yield state_of(store)
    store.add_many(X[21:23])
    yield state_of(store)


def asked(store):
    """All answers of a store, and those to what is done next."""
    yield state_of(store)
    yield [json.dumps(event.to_dict()) for event in store.events()]
    yield [(view.id, view.size, view.name) for view in store.clusters()]
    yield [
        (op.number, op.verb, json.dumps(op.arguments), op.key) for op in store.journal.operations()
    ]
    yield store.named("Ann")
    yield store.predict(X).tolist()
    yield store.add_many(
        X[:9], payloads=[f"row {i}" for i in range(9)], idempotency_key="first"
    ).tolist()
    with contextlib.suppress(IdempotencyError):
        store.add_many(X[:8], idempotency_key="second")
        yield "taken"
    yield store.add_many(X[30:], payloads=list(range(10))).tolist()
    yield state_of(store)
    store.remove(13)
    yield state_of(store)
    with contextlib.suppress(ArgumentError):  # it lies before a compaction
        store.undo(to=6)
    yield state_of(store)
    yield store.add_many(X[23:30]).tolist()
    yield state_of(store)


def sample(folder, *, killed, compacted=False):
    path = folder / NAME
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        earlier = list(filled(store))
        if compacted:
            store.remove(2)
            store.compact()
            earlier.append(state_of(store))
    if killed:
        with Store.open(path, threads=1) as store:
            earlier += more(store)
            files = files_of(path)
        assert len(files[WAL]) > 4 * PAGE
    else:
        files = files_of(path)
        assert WAL not in files
    answers, error = look(folder, files)
    assert error is None
    assert answers[0] == earlier[-1]
    return Sample(files, answers, earlier)


def files_of(path):
    """As a kill would leave them; the shared memory is made anew by whoever opens first."""
    wal = path.with_name(WAL)
    return {file.name: file.read_bytes() for file in (path, wal) if file.exists()}


def fresh(folder, files):
    """Lay down files, and nothing else."""
    for old in folder.iterdir():
        old.unlink(missing_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def look(folder, files, *, briefly=False):
    """Lay down files, open them, ask; the answers, and the StoreError that ended them, if any."""
    if files is not None:
        fresh(folder, files)
    answers = []
    try:
        with Store.open(folder / NAME, threads=1) as store:
            if briefly:
                return [state_of(store)], None
            answers.extend(asked(store))
            # Last, since nobody should have to verify a store to be told no lies by it.
            store.verify()
    except StoreLockedError:
        raise AssertionError("an opening that failed has kept the lock") from None
    except StoreError as error:
        return answers, error
    return answers, None


def fault(folder, sound, files, *, prefix=False, briefly=False):
    """What is wrong with how a damaged store behaves; None: nothing."""
    start = time.monotonic()
    try:
        answers, error = look(folder, files, briefly=briefly)
    except Exception as bare:  # whatever it is, it is not the store's own
        return f"{type(bare).__name__}: {bare}"
    if time.monotonic() - start > SOON:
        return "it takes too long"
    if prefix and answers and answers[0] != sound.answers[0]:
        return None if answers[0] in sound.earlier else "another answer"
    for step, (answer, right) in enumerate(zip(answers, sound.answers, strict=False)):
        if answer != right:
            return f"another answer at step {step}"
    if error is None and not briefly and len(answers) < len(sound.answers):
        return "answers are missing"
    if isinstance(error, DamagedStoreError) and NAME not in str(error):
        return f"an error without a file: {error}"
    return None


def faults(folder, sound, name, changes, **how):
    """Places of a file where a change is not borne well.

    Of a change far from all that the file holds, only where the store is is asked.
    """
    found, before = {}, sound.files.get(name, b"")
    with bounded():
        for offset, data in changes:
            near = (
                before[max(0, offset[0] - 32) : offset[0] + 32]
                if isinstance(offset, tuple)
                else b"1"
            )
            files = sound.files | {name: data}
            wrong = fault(folder, sound, files, briefly=not any(near), **how)
            if wrong is not None:
                found[offset] = wrong
    return found


@contextlib.contextmanager
def bounded():
    """Limit memory to a little more than a small store needs."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# Which bytes to change.


def flips(data, offsets, mask=None):
    """Each offset with a bit changed, another one each time, or with a mask."""
    for offset in sorted(offsets):
        changed = bytearray(data)
        changed[offset] ^= mask or 1 << (offset * 2654435761 >> 7) % 8
        yield (offset, changed[offset] ^ data[offset]), bytes(changed)


def pages(data, *, step, empty):
    """Places in a database: all headers, some of what it holds, and a few of what is empty.

    Headers are those of the file and of each page, with its list of cells.
    """
    offsets = set(range(100))
    for start in range(0, len(data), PAGE):
        head = start + (100 if start == 0 else 0)
        cells = int.from_bytes(data[head + 3 : head + 5], "big")
        offsets |= set(range(head, head + 12 + 2 * min(cells, 40)))
    inside = [
        offset for offset in range(len(data)) if data[offset] or any(data[offset - 3 : offset + 3])
    ]
    offsets |= set(inside[::step])
    if empty is not None:
        offsets |= set(range(0, len(data), empty))
    return {offset for offset in offsets if offset < len(data)}


def frames(data, step):
    """Places in a log: its header, those of its frames, and some of what they hold."""
    offsets = set(range(LOG_HEAD))
    for start in range(LOG_HEAD, len(data), LOG_FRAME):
        offsets |= set(range(start, start + 24, 1 if step == 1 else 3))
    inside = [offset for offset in range(len(data)) if data[offset]]
    return {offset for offset in offsets | set(inside[::step]) if offset < len(data)}
