"""A store written out, to be read by others: a table, or a folder to make the store again from.

The folder holds `store.json` (what the store was made with), `operations.jsonl` (every call, with
its answer), the vectors of all calls as `vectors.npz` or `vectors.parquet`, `payloads.jsonl` (a
line for each vector of a call that had any) and `events.jsonl`.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError, StoreError
from linkstream.io.tables import SUFFIXES, Table, json_lines, write_table
from linkstream.io.whole import sync_folder, whole_file
from linkstream.store import Operation, Store
from linkstream.store.journal import IDS
from linkstream.store.replaying import decoded

FORMAT = 1
PACKINGS = ("npz", "parquet")
OPTIONS = ("evidence", "track_vectors", "keep_vectors", "max_subclusters", "max_idle", "min_size")

_ROWS = 4096

Integers = npt.NDArray[np.int64]


def export(
    store: Store, target: str | os.PathLike[str], *, vectors: bool = False, packing: str = "npz"
) -> None:
    """Write a store out; the target appears only when it is complete.

    Args:
        store: an open store; a read-only one will do.
        target: a name that ends in `.parquet`, `.npz`, `.jsonl` or `.csv` for a table, one row for
            each vector that is there: `vector` (its number), `instant` (the ID that was answered),
            `cluster` (the ID it has now), `name`, `payload`. Any other name for a folder, which
            must not be there yet, from which `import_store` makes the same store again.
        vectors: whether the table has the `embedding` too.
        packing: how the folder holds the vectors, `npz` or `parquet`.

    Raises:
        NotTrackedError: the store does not keep what was asked for.
        StoreError: the operations since the beginning, which a folder holds, are not all there:
            compaction erased some.
    """
    target = Path(target)
    if packing not in PACKINGS:
        raise ArgumentError(
            f"packing {packing!r}", expected=" or ".join(PACKINGS), remedy="Choose one of these."
        )
    if target.suffix.lower() in SUFFIXES:
        write_table(target, _table(store, embedding=vectors), encoded=("payload",))
    else:
        _export_folder(store, target, packing)


def export_lines(store: Store, *, vectors: bool = False) -> Iterator[str]:
    """Return the table of a store as JSON lines, one for each vector, as `export` writes them.

    Args:
        store: an open store; a read-only one will do.
        vectors: whether each line has the `embedding` too.

    Raises:
        NotTrackedError: the store does not keep what was asked for.
    """
    for block in _table(store, embedding=vectors):
        yield from json_lines(block)


def _table(store: Store, *, embedding: bool) -> Iterator[Table]:
    labels = store.labels()
    if embedding:
        store.vectors([])  # refuses before anything is written
    instants = _instants(store, len(labels))
    names = {cluster.id: cluster.name for cluster in store.clusters()}
    there = np.flatnonzero(labels >= 0)
    for start in range(0, max(1, len(there)), _ROWS):
        numbers = there[start : start + _ROWS]
        block: dict[str, Any] = {
            "vector": numbers,
            "instant": instants[numbers],
            "cluster": labels[numbers],
            "name": [names.get(label) for label in labels[numbers].tolist()],
            "payload": store.payloads(numbers),
        }
        if embedding:
            block["embedding"] = store.vectors(numbers)
        yield block


def _instants(store: Store, n: int) -> Integers:
    """The ID that was answered for each vector; a number that undo freed is given anew."""
    instants = np.full(n, -1, dtype=np.int64)
    for operation in store.operations():
        if operation.n_rows:
            ids = _ids(operation)
            part = instants[operation.first_vector :][: len(ids)]
            part[:] = ids[: len(part)]
    return instants


def _ids(operation: Operation) -> Integers:
    """The ID that was answered for each vector of a call that got a number."""
    answer, taken = decoded(operation), operation.taken()
    if operation.verb in IDS:
        ids: Integers = answer[taken]
        return ids
    return np.full(len(taken), getattr(answer, "cluster", answer), dtype=np.int64)


def _export_folder(store: Store, folder: Path, packing: str) -> None:
    about = store.info()
    if about["undo_from"]:
        raise StoreError(
            f"{store.path}: operations up to {about['undo_from']} cannot be done again",
            expected="a store that was never compacted, and keeps its vectors",
            remedy="Copy it with store.backup(path), or export a table.",
        )
    if folder.exists():
        raise ArgumentError(
            f"{str(folder)!r} is there already",
            expected=f"a name that is free, or a table ({', '.join(SUFFIXES)})",
            remedy="Choose another name.",
        )
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir()
    except OSError as error:
        raise ArgumentError(
            f"{str(folder)!r} cannot be made ({error.strerror or error})",
            expected="a folder that may be written to",
            remedy="Choose another one.",
        ) from None
    try:
        _fill(store, partial, packing, about)
        sync_folder(partial)
        partial.rename(folder)
        sync_folder(folder.absolute().parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fill(store: Store, folder: Path, packing: str, about: dict[str, Any]) -> None:
    last = about["operations"]
    rows = _write_operations(store, folder, last)
    if rows:
        write_table(folder / f"vectors.{packing}", _vectors(store, last))
    with whole_file(folder / "events.jsonl", "w") as stream:
        for event in store.iter_events():
            if event.sequence < about["events"]:
                stream.write(_line(event.to_dict()))
    mean = store.space.mean
    described = {
        "export": FORMAT,
        "linkstream": about["linkstream"],
        "thresholds": about["thresholds"],
        "space": {
            "model": store.space.model,
            "mean": None if mean is None else np.asarray(mean, dtype=np.float64).tolist(),
            "dimension": store.space.dimension,
        },
        "heal": about["heal"],
        **{name: about[name] for name in OPTIONS},
        "operations": last,
        "events": about["events"],
        "rows": rows,
    }
    with whole_file(folder / "store.json", "w") as stream:
        stream.write(json.dumps(described, indent=1, allow_nan=False) + "\n")


def _write_operations(store: Store, folder: Path, last: int) -> int:
    """Calls and payloads, a line each; how many vectors came with them."""
    rows = 0
    with (
        whole_file(folder / "operations.jsonl", "w") as calls,
        whole_file(folder / "payloads.jsonl", "w") as attached,
    ):
        for operation in store.operations():
            if operation.number > last:
                break
            calls.write(_line(_record(operation)))
            for payload in store.payloads_of(operation) or ():
                attached.write(_line(payload))
            rows += operation.n_rows
    return rows


def _record(operation: Operation) -> dict[str, Any]:
    step = {} if operation.step is None else {"step": list(operation.step)}
    return {
        "number": operation.number,
        "verb": operation.verb,
        "arguments": operation.arguments,
        "rows": operation.n_rows,
        "payloads": operation.has_payloads,
        "key": operation.key,
        "result": plain_answer(decoded(operation)),
        **step,
    }


def plain_answer(answer: Any) -> Any:
    """An answer as JSON has it; None for those that are no IDs."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, int):
        return answer
    fields = getattr(answer, "__dataclass_fields__", {})
    return {name: getattr(answer, name) for name in fields} if "cluster" in fields else None


def _vectors(store: Store, last: int) -> Iterator[Table]:
    for operation in store.operations():
        rows = store.vectors_of(operation) if operation.number <= last else None
        if rows is None:
            continue
        for start in range(0, len(rows), _ROWS):
            yield {"embedding": rows[start : start + _ROWS]}


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False) + "\n"
