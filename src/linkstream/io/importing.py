"""Make a store from an exported folder: replay every operation and compare every result."""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from linkstream.clusterer.confidence import model_of
from linkstream.clusterer.verbs import VERBS
from linkstream.errors import ArgumentError, LinkstreamError, StoreError
from linkstream.identity.settling import Healing
from linkstream.io.bytestream import ByteStream
from linkstream.io.exporting import (
    CONFIDENCE,
    FORMAT,
    OF_REBUILDS,
    OPTIONS,
    PACKINGS,
    plain_result,
)
from linkstream.io.opening import open_regular, open_vectors
from linkstream.io.source import Source
from linkstream.io.text_files import DECODER
from linkstream.io.writing import sync_folder
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import Store
from linkstream.store.write_requests import request_of

Sources = dict[int, Source]  # of vectors, by dimension; 0 stands for the only one

_LINE_MAX = 2**28  # bytes: an operation on millions of vectors, with its result
_BAD_RECORD = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


def import_store(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    engine: str = "auto",
    threads: int | None = None,
) -> None:
    """Make the store that was exported to a folder; the store appears only when it is complete.

    Every operation is replayed, and its result must be the exported one.

    Args:
        folder: a folder that `export` wrote.
        path: the store to make; it must not exist yet.
        engine: engine of the store, as for `Store.open`.
        threads: threads of the engine, as for `Store.open`.

    Raises:
        StoreError: the folder was not written by `export`, or a result differs.
        InputFileError: a file of the folder is missing or damaged.
    """
    folder, path = Path(folder), Path(path)
    if path.exists():
        raise ArgumentError(
            f"{str(path)!r} already exists", expected="a new name", remedy="Choose another."
        )
    about = _about(folder)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        options = {**_options(folder, about), "engine": engine, "threads": threads}
        with Store.open(partial, **options) as store:
            _replay(folder, about, store)
            _compare_events(folder, about, store)
        partial.rename(path)
        sync_folder(path.absolute().parent)
    finally:
        for ending in ("", "-wal", "-shm", ".lock"):
            partial.with_name(partial.name + ending).unlink(missing_ok=True)


def _about(folder: Path) -> dict[str, Any]:
    values = list(_lines(folder / "store.json", one=True))
    about = values[0] if len(values) == 1 else None
    if not isinstance(about, dict) or type(about.get("export")) is not int:
        raise _differs(folder, "store.json", "it does not describe a store")
    if about["export"] > FORMAT:
        raise StoreError(
            f"{folder}: exported in format {about['export']}",
            expected=f"format {FORMAT} or older",
            remedy="Upgrade linkstream to import it.",
        )
    return about


def _options(folder: Path, about: dict[str, Any]) -> dict[str, Any]:
    try:
        mean = about["space"]["mean"]
        options = {name: about[name] for name in OPTIONS}
        options["search"] = about.get("search", False)
        options["thresholds"] = Thresholds(**about["thresholds"])
        if CONFIDENCE in about:
            options[CONFIDENCE] = model_of(about[CONFIDENCE])
        if OF_REBUILDS in about:
            options[OF_REBUILDS] = Thresholds(**about[OF_REBUILDS])
        options["heal"] = Healing.read(about["heal"])
        options["space"] = Space(
            mean=None if mean is None else np.array(mean, dtype=np.float64),
            model=about["space"]["model"],
            dimension=about["space"].get("dimension"),
        )
    except LinkstreamError:
        raise
    except _BAD_RECORD as error:
        raise _differs(folder, "store.json", f"it does not describe a store ({error!r})") from None
    return options


def _replay(folder: Path, about: dict[str, Any], store: Store) -> None:
    payloads, own = _lines(folder / "payloads.jsonl"), iter(())
    if about["export"] > 1:
        own = _lines(folder / "own.jsonl")
    with ExitStack() as owned:
        vectors: Sources = {}
        dimensions = about.get("dimensions", [0]) if about.get("rows") else []
        for place, dimension in enumerate(dimensions):
            name = f"vectors-{dimension}" if place else "vectors"
            vectors[dimension] = owned.enter_context(_vectors(folder, name))
        number = 0
        for mark, records in itertools.groupby(_lines(folder / "operations.jsonl"), key=_mark):
            with nullcontext() if mark is None else store.step(mark):
                for record in records:
                    number += 1
                    replay = partial(_replay_one, store, vectors, payloads, own)
                    _check_replay(folder, number, record, replay)
        if number != about.get("operations"):
            raise _differs(folder, "operations.jsonl", f"it ends after operation {number}")
        left = next(chain(payloads, own), None) is not None or any(
            source.row != source.n for source in vectors.values()
        )
        if left:
            raise _differs(folder, "operations.jsonl", "vectors or payloads are left over")


def _mark(record: Any) -> str | None:
    """Return the command that an operation was part of, or None."""
    step = record.get("step") if isinstance(record, dict) else None
    return step[1] if isinstance(step, list) and len(step) == 2 else None


def _check_replay(folder: Path, number: int, record: Any, replay: Callable[[Any], Any]) -> None:
    """Replay an operation; raise StoreError if its result differs."""
    what = f"operation {number}"
    try:
        told = record["result"]
        if isinstance(told, dict):  # earlier versions wrote the probability, which was null
            told = {name: value for name, value in told.items() if name != "probability"}
        same = record["number"] == number and plain_result(replay(record)) == told
    except (LinkstreamError, StopIteration, *_BAD_RECORD) as error:
        raise _differs(folder, what, f"it cannot be replayed ({error})") from error
    if not same:
        raise _differs(folder, what, "its result differs")


def _replay_one(
    store: Store,
    vectors: Sources,
    payloads: Iterator[Any],
    own: Iterator[Any],
    record: dict[str, Any],
) -> Any:
    verb, count, arguments = VERBS.get(record["verb"]), record["rows"], {**record["arguments"]}
    if verb is None:
        raise ValueError(f"an unknown verb {record['verb']!r}")
    attached = [next(payloads) for _ in range(count)] if record["payloads"] else None
    source = vectors.get(record.get("dimension", 0), vectors.get(0))
    rows = None if not count or source is None else source.read(count).vectors
    step = arguments.pop("step", False)
    call = verb.from_journal(arguments, rows)
    columns = _own(record.get("own", []), [next(own) for _ in range(count) if record.get("own")])
    request = request_of(call, payloads=attached, key=record["key"], step=step, **columns)
    return store.handle.submit(request).result()


def _own(names: list[str], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the keys and times of the vectors of a call, as far as it has them."""
    columns = {"ids": [row["id"] for row in rows], "at": [row["time"] for row in rows]}
    return {name: columns[name] for name in names}


def _vectors(folder: Path, name: str) -> Source:
    for packing in PACKINGS:
        path = folder / f"{name}.{packing}"
        if path.exists():
            key, column = ("embedding", None) if packing == "npz" else (None, "embedding")
            return open_vectors(path, key=key, column=column)
    raise _differs(folder, "vectors", "there are none")


def _compare_events(folder: Path, about: dict[str, Any], store: Store) -> None:
    exported = _lines(folder / "events.jsonl")
    number = 0
    for event in store.journal.events():
        if event.to_dict() != next(exported, None):
            raise _differs(folder, f"event {event.sequence}", "it differs")
        number += 1
    if next(exported, None) is not None or number != about.get("events"):
        raise _differs(folder, "events.jsonl", f"there are {number} events now")


def _lines(path: Path, *, one: bool = False) -> Iterator[Any]:
    """Yield the values of a JSON file: one for each line, or one for the file."""
    with open_regular(path) as file:
        stream = ByteStream(str(path), file)
        number = 0
        while True:
            text = stream.read(_LINE_MAX + 1) if one else stream.read_line(_LINE_MAX)
            if not text:
                return
            number += 1
            try:
                if len(text) > _LINE_MAX:
                    raise ValueError("too long")
                value = DECODER.decode(text.decode("utf-8"))
            except (ValueError, RecursionError) as error:
                what = path.name if one else f"{path.name}, line {number}"
                raise _differs(path.parent, what, f"it is not JSON ({error})") from None
            yield value


def _differs(folder: Path, where: str, why: str) -> StoreError:
    return StoreError(
        f"{folder}, {where}: {why}",
        expected="the folder as it was exported",
        remedy="Export the store again, and do not change the folder.",
    )
