"""Export a store to a table, or to a folder from which `import_store` makes the store again.

The folder holds `store.json` (the settings of the store), `operations.jsonl` (every call with its
result), the vectors of all calls as `vectors.npz` or `vectors.parquet`, `payloads.jsonl` (one line
for each vector of a call with payloads), `own.jsonl` (one line with `id` and `time` for each vector
of a call with keys or times) and `events.jsonl`.
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

from linkstream.clusterer.tabular import select
from linkstream.clusterer.verb_values import plain
from linkstream.errors import ArgumentError, StoreError
from linkstream.io.writing import (
    SUFFIXES,
    Table,
    atomic_file,
    json_lines,
    sync_folder,
    to_json,
    write_table,
)
from linkstream.store import Operation, Store, blocks, tabular
from linkstream.store.journal import ADDING, decoded

FORMAT = 2  # format 1 has no own.jsonl
PACKINGS = ("npz", "parquet")
OWN = {"ids": blocks.KEYS, "at": blocks.TIMES}  # arguments of calls, and their tables
OPTIONS = ("evidence", "track_vectors", "keep_vectors", "max_subclusters", "max_idle", "min_size")
OF_REBUILDS = "rebuild_thresholds"  # missing if rebuilds have none of their own
CONFIDENCE = "confidence"  # missing if the store was made without a model
CLUSTER_FORMATS = {".parquet": "parquet", ".jsonl": "jsonl", ".csv": "csv"}

_ROWS = 4096

Integers = npt.NDArray[np.int64]


def export(
    store: Store, target: str | os.PathLike[str], *, vectors: bool = False, packing: str = "npz"
) -> None:
    """Export a store; the target appears only when it is complete.

    Args:
        store: an open store; it may be read-only.
        target: a name that ends in `.parquet`, `.npz`, `.jsonl` or `.csv` for a table with one row
            for each vector that is not removed: `vector` (its number), `instant` (the ID that was
            returned when it was added), `cluster` (the ID it has now), `name`, with a model of
            confidence `cluster_margin` and `probability` (of the decision) and `held` (whether it
            waits for one, in cluster −1), `id` and `time` (its
            own key and time, as ISO 8601 in UTC), `payload`. Any other name for a folder, which
            must not exist yet, from which `import_store` makes the same store again.
        vectors: whether the table has a column `embedding`, too.
        packing: format of the vectors in the folder, `npz` or `parquet`.

    Raises:
        NotTrackedError: the store does not keep its vectors.
        StoreError: compaction erased some of the operations that a folder must hold.
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
        store: an open store; it may be read-only.
        vectors: whether each line has an `embedding`, too.

    Raises:
        NotTrackedError: the store does not keep its vectors.
    """
    for block in _table(store, embedding=vectors):
        yield from json_lines(block)


def export_clusters(store: Store, target: str | os.PathLike[str]) -> None:
    """Export one row for each cluster, as `clusters_frame`; the file appears when it is complete.

    Args:
        store: an open store; it may be read-only.
        target: a name that ends in `.parquet`, `.jsonl` or `.csv`.
    """
    form = CLUSTER_FORMATS.get(Path(target).suffix.lower())
    if form is None:
        raise ArgumentError(
            f"a table of clusters to {str(target)!r}",
            expected=f"a name that ends in {', '.join(CLUSTER_FORMATS)}",
            remedy="Choose one of these.",
        )
    parts = tabular.encoded_clusters(store, form)
    with atomic_file(target) as stream:
        for part in parts:
            stream.write(part)


def _table(store: Store, *, embedding: bool) -> Iterator[Table]:
    found = store.handle.read_core(select)
    if embedding:
        store.vectors([])  # raises before anything is written
    instants = _instants(store, store.n_vectors)
    for start in range(0, max(1, len(found.vectors)), _ROWS):
        part = slice(start, start + _ROWS)
        numbers, clusters = found.vectors[part], found.clusters[part]
        block: dict[str, Any] = {
            "vector": numbers,
            "instant": instants[numbers],
            "cluster": clusters,
            "name": [found.names.get(cluster) for cluster in clusters.tolist()],
            **{name: column[part] for name, column in found.told.items()},
            **_own_columns(store.described(numbers)),
            "payload": store.payloads(numbers),
        }
        if embedding:
            block["embedding"] = store.vectors(numbers)
        yield block


def _own_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in ("id", "time")}


def _instants(store: Store, n: int) -> Integers:
    """Return the ID returned for each vector; undo frees numbers, which are then used again."""
    instants = np.full(n, -1, dtype=np.int64)
    for operation in store.journal.operations():
        if operation.verb in ADDING and operation.n_rows:
            ids = _ids(operation)
            part = instants[operation.first_vector :][: len(ids)]
            part[:] = ids[: len(part)]
    return instants


def _ids(operation: Operation) -> Integers:
    """Return the ID returned for each vector of an operation that got a number."""
    answer, taken = decoded(operation), operation.taken()
    if isinstance(answer, np.ndarray):
        ids: Integers = answer[taken]
        return ids
    return np.full(len(taken), getattr(answer, "cluster", answer), dtype=np.int64)


def _export_folder(store: Store, folder: Path, packing: str) -> None:
    about = store.info()
    if about["undo_from"]:
        raise StoreError(
            f"{store.path}: operations up to {about['undo_from']} cannot be replayed",
            expected="a store that was never compacted, and keeps its vectors",
            remedy="Copy it with store.backup(path), or export a table.",
        )
    if folder.exists():
        raise ArgumentError(
            f"{str(folder)!r} already exists",
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
    for place, dimension in enumerate(rows):  # a rebuild may have brought vectors of another one
        name = f"vectors-{dimension}.{packing}" if place else f"vectors.{packing}"
        write_table(folder / name, _vectors(store, last, dimension))
    with atomic_file(folder / "events.jsonl", "w") as stream:
        for event in store.journal.events():
            if event.sequence < about["events"]:
                stream.write(to_json(event.to_dict()) + "\n")
    made_with = store.handle.description["thresholds"]
    first = store.handle.read_core(lambda core: core.epochs.known[0].space)
    described = {
        "export": FORMAT,
        "linkstream": about["linkstream"],
        "thresholds": made_with,
        "space": plain(first),
        "heal": about["heal"],
        **{name: about[name] for name in OPTIONS},
        **{name: about[name] for name in (OF_REBUILDS, CONFIDENCE) if name in about},
        "search": about["search"],
        "operations": last,
        "events": about["events"],
        "rows": sum(rows.values()),
        **({"dimensions": list(rows)} if len(rows) > 1 else {}),
    }
    with atomic_file(folder / "store.json", "w") as stream:
        stream.write(json.dumps(described, indent=1, allow_nan=False) + "\n")


def _write_operations(store: Store, folder: Path, last: int) -> dict[int, int]:
    """Write operations and payloads, one a line; return the number of vectors by dimension."""
    rows: dict[int, int] = {}
    with (
        atomic_file(folder / "operations.jsonl", "w") as operations,
        atomic_file(folder / "payloads.jsonl", "w") as payloads,
        atomic_file(folder / "own.jsonl", "w") as own,
    ):
        for operation in store.journal.operations():
            if operation.number > last:
                break
            operations.write(to_json(_record(operation)) + "\n")
            for payload in store.journal.payloads(operation) or ():
                payloads.write(to_json(payload) + "\n")
            for line in store.journal.own(operation):
                own.write(to_json(line) + "\n")
            if operation.n_rows:
                rows[operation.dimension] = rows.get(operation.dimension, 0) + operation.n_rows
    return rows


def _record(operation: Operation) -> dict[str, Any]:
    step = {} if operation.step is None else {"step": list(operation.step)}
    return {
        "number": operation.number,
        "verb": operation.verb,
        "arguments": operation.arguments,
        "rows": operation.n_rows,
        "dimension": operation.dimension,
        "payloads": operation.has_payloads,
        "own": [name for name, table in OWN.items() if operation.has(table)],
        "key": operation.key,
        "result": plain_result(decoded(operation)),
        **step,
    }


def plain_result(answer: Any) -> Any:
    """Return the result of a call as JSON has it; None if the result is no ID.

    Without the probability of a decision: the model of confidence tells it again.
    """
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, int):
        return answer
    fields = getattr(answer, "__dataclass_fields__", {})
    told = {name: getattr(answer, name) for name in fields if name != "probability"}
    return told if "cluster" in fields else None


def _vectors(store: Store, last: int, dimension: int) -> Iterator[Table]:
    for operation in store.journal.operations():
        wanted = operation.number <= last and operation.dimension == dimension
        rows = store.journal.vectors(operation) if wanted else None
        if rows is None:
            continue
        for start in range(0, len(rows), _ROWS):
            yield {"embedding": rows[start : start + _ROWS]}
