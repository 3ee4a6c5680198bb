"""A store made again from the folder that `export` wrote: every call, and every answer compared."""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from linkstream.errors import ArgumentError, LinkstreamError, StoreError
from linkstream.identity.healing import Healing
from linkstream.io.exporting import FORMAT, OPTIONS, PACKINGS, plain_answer
from linkstream.io.flow import Flow
from linkstream.io.jsonlines import DECODER
from linkstream.io.opening import open_vectors, regular
from linkstream.io.source import Source
from linkstream.io.whole import sync_folder
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import Store
from linkstream.store.journal import ADDING
from linkstream.store.replaying import VERBS

_LINE_MAX = 2**28  # of a call of millions of vectors, with its answer
_BAD = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


def import_store(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    engine: str = "auto",
    threads: int | None = None,
) -> None:
    """Make the store that was exported to a folder; it appears only when it is complete.

    Every call is done again, and its answer must be the one that was exported.

    Args:
        folder: what `export` wrote.
        path: the store to make; the name must be free.
        engine: as of `Store.open`.
        threads: as of `Store.open`.

    Raises:
        StoreError: the folder is not what `export` writes, or an answer differs; names the place.
        InputFileError: a file of it is missing or damaged.
    """
    folder, path = Path(folder), Path(path)
    if path.exists():
        raise ArgumentError(
            f"{str(path)!r} is there already", expected="a free name", remedy="Choose another."
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
    values = list(_lines(folder / "store.json", whole=True))
    about = values[0] if len(values) == 1 else None
    if not isinstance(about, dict) or type(about.get("export")) is not int:
        raise _differs(folder, "store.json", "it describes no store")
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
        options["thresholds"] = Thresholds(**about["thresholds"])
        options["heal"] = Healing.read(about["heal"])
        options["space"] = Space(
            mean=None if mean is None else np.array(mean, dtype=np.float64),
            model=about["space"]["model"],
            dimension=about["space"].get("dimension"),
        )
    except LinkstreamError:
        raise
    except _BAD as error:
        raise _differs(folder, "store.json", f"it describes no store ({error!r})") from None
    return options


def _replay(folder: Path, about: dict[str, Any], store: Store) -> None:
    payloads = _lines(folder / "payloads.jsonl")
    with ExitStack() as owned:
        vectors = owned.enter_context(_vectors(folder)) if about.get("rows") else None
        number = 0
        for mark, records in itertools.groupby(_lines(folder / "operations.jsonl"), key=_mark):
            with nullcontext() if mark is None else store.step(mark):
                for record in records:
                    number += 1
                    _check_done(folder, number, record, lambda r: _do(store, r, vectors, payloads))
        if number != about.get("operations"):
            raise _differs(folder, "operations.jsonl", f"it ends after operation {number}")
        left = next(payloads, None) is not None or (
            vectors is not None and vectors.row != vectors.n
        )
        if left:
            raise _differs(folder, "operations.jsonl", "vectors or payloads are left over")


def _mark(record: Any) -> str | None:
    """The command that a call was part of."""
    step = record.get("step") if isinstance(record, dict) else None
    return step[1] if isinstance(step, list) and len(step) == 2 else None


def _check_done(folder: Path, number: int, record: Any, do: Callable[[Any], Any]) -> None:
    """Do a call again; StoreError unless it is answered as it was."""
    what = f"operation {number}"
    try:
        same = record["number"] == number and plain_answer(do(record)) == record["result"]
    except (LinkstreamError, StopIteration, *_BAD) as error:
        raise _differs(folder, what, f"it cannot be done ({error})") from error
    if not same:
        raise _differs(folder, what, "its answer is another one now")


def _do(
    store: Store, record: dict[str, Any], vectors: Source | None, payloads: Iterator[Any]
) -> Any:
    verb, count = record["verb"], record["rows"]
    if verb not in VERBS:
        raise ValueError(f"a verb {verb!r}")
    arguments = {**record["arguments"], "idempotency_key": record["key"]}
    if record["payloads"]:
        attached = [next(payloads) for _ in range(count)]
        arguments |= {"payload": attached[0]} if verb == "add" else {"payloads": attached}
    if verb not in ADDING:
        return getattr(store, verb)(**arguments)
    rows = np.empty((0, 2)) if not count or vectors is None else vectors.read(count).vectors
    if verb == "add":
        return store.add(rows[0], **arguments)
    return getattr(store, verb)(X=rows, **arguments)


def _vectors(folder: Path) -> Source:
    for packing in PACKINGS:
        path = folder / f"vectors.{packing}"
        if path.exists():
            key, column = ("embedding", None) if packing == "npz" else (None, "embedding")
            return open_vectors(path, key=key, column=column)
    raise _differs(folder, "vectors", "there are none")


def _compare_events(folder: Path, about: dict[str, Any], store: Store) -> None:
    told = _lines(folder / "events.jsonl")
    number = 0
    for event in store.iter_events():
        if event.to_dict() != next(told, None):
            raise _differs(folder, f"event {event.sequence}", "it is another one now")
        number += 1
    if next(told, None) is not None or number != about.get("events"):
        raise _differs(folder, "events.jsonl", f"there are {number} events now")


def _lines(path: Path, *, whole: bool = False) -> Iterator[Any]:
    """The values of a file of JSON, one a line, or one in all."""
    with regular(path) as file:
        flow = Flow(str(path), file)
        number = 0
        while True:
            text = flow.read(_LINE_MAX + 1) if whole else flow.line(_LINE_MAX)
            if not text:
                return
            number += 1
            try:
                if len(text) > _LINE_MAX:
                    raise ValueError("too long")
                value = DECODER.decode(text.decode("utf-8"))
            except (ValueError, RecursionError) as error:
                what = path.name if whole else f"{path.name}, line {number}"
                raise _differs(path.parent, what, f"it is not JSON ({error})") from None
            yield value


def _differs(folder: Path, place: str, why: str) -> StoreError:
    return StoreError(
        f"{folder}, {place}: {why}",
        expected="what was exported",
        remedy="Export the store again, and leave the folder as it is.",
    )
