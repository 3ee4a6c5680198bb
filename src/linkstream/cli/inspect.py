"""`linkstream inspect`: what is in a store."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.cli.words import harmless, short

if TYPE_CHECKING:
    from linkstream.store import Operation, Store

_FIRST = ("vectors", "subclusters", "clusters", "dimension", "thresholds")


def inspect(
    store: StorePath,
    cluster: Annotated[
        str | None, typer.Option(help="All about one cluster: its ID, or its name.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Clusters, operations, vectors to show.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show what is in a store, or all about one of its clusters.

    The figures, the biggest clusters, the last operations; of a cluster its subclusters, its
    vectors with what was kept beside them, and what became of it.

    Example: linkstream inspect people.links --cluster 0
    """
    with opening.reading(store) as opened:
        record = _whole(opened, limit) if cluster is None else _one(opened, cluster, limit)
    if screen.speaks_json(as_json):
        screen.write_json(record)
    elif cluster is None:
        _tell_whole(record, store)
    else:
        _tell_one(record)


def _whole(store: Store, limit: int) -> dict[str, Any]:
    clusters = sorted(store.clusters(), key=lambda c: (-c.size, c.id))
    first = max(0, store.journal.n_operations - limit)
    return {
        "store": store.info(),
        "clusters": [_view(c) for c in clusters[:limit]],
        "operations": [_told(o) for o in store.journal.operations(since=first)][-limit:],
    }


def _view(cluster: Any) -> dict[str, Any]:
    return {**asdict(cluster), "subclusters": len(cluster.subclusters)}


def _told(operation: Operation) -> dict[str, Any]:
    return {
        "number": operation.number,
        "verb": operation.verb,
        "arguments": operation.arguments,
        "vectors": operation.n_rows,
        "key": operation.key,
    }


def _one(store: Store, words: str, limit: int) -> dict[str, Any]:
    number = opening.cluster_id(store, words)
    found = [c for c in store.clusters() if c.id == number]
    record: dict[str, Any] = {
        "cluster": _view(found[0]) if found else {"id": number, "gone": True},
        "history": store.history(number).to_dict(),
        "story": str(store.history(number)).splitlines(),
    }
    if found:
        record["subclusters"] = _subclusters(store, number)[:limit]
        record["members"] = _members(store, number, limit)
    return record


def _subclusters(store: Store, cluster: int) -> list[dict[str, int]]:
    """The subclusters of a cluster, the biggest first."""
    state = store.state()
    here = np.flatnonzero(state.clusters == cluster)
    here = here[np.argsort(-state.counts[here], kind="stable")]
    names = ("number", "vectors", "first_seen", "last_seen")
    columns = (state.numbers, state.counts, state.first_seen, state.last_seen)
    rows = zip(*(column[here].tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _members(store: Store, cluster: int, limit: int) -> list[dict[str, Any]]:
    """The newest vectors of a cluster, with what was kept beside them; none if not tracked."""
    if not store.track_vectors:
        return []
    numbers = np.flatnonzero(store.labels() == cluster)[::-1][:limit].tolist()
    kept = store.payloads(numbers)
    return [{"vector": n, "payload": p} for n, p in zip(numbers, kept, strict=True)]


def _tell_whole(record: dict[str, Any], path: Path) -> None:
    console = screen.people(stderr=False)
    info = {name: record["store"].get(name) for name in _FIRST} | record["store"]
    console.print(screen.pairs(harmless(path), _figures(info)))
    console.print()
    columns = ("ID", "name", "vectors", "subclusters", "first", "last")
    rows = screen.table("The biggest clusters", *columns)
    rows.columns[1].justify = "left"
    for c in record["clusters"]:
        numbers = (c["size"], c["subclusters"], c["first_seen"], c["last_seen"])
        rows.add_row(str(c["id"]), short(c["name"] or ""), *(f"{n:,}" for n in numbers))
    console.print(rows)
    console.print()
    rows = screen.listing("The last operations", "number", "what", "vectors", "with")
    for o in record["operations"]:
        told = short(json.dumps(o["arguments"], ensure_ascii=False), 60)
        rows.add_row(str(o["number"]), o["verb"], str(o["vectors"] or ""), told)
    console.print(rows)


def _figures(info: dict[str, Any]) -> dict[str, Any]:
    """What is said of a store or a cluster, in one line each; what is not set is left out."""
    flat: dict[str, Any] = {}
    for name, value in info.items():
        if isinstance(value, dict):
            told = (f"{k} {short(screen.figure(v), 20)}" for k, v in value.items() if v is not None)
            value = ", ".join(told)
        elif isinstance(value, list):
            value = ", ".join(map(screen.figure, value))
        if value is not None and name != "path":
            flat[name.replace("_", " ")] = value
    return flat


def _tell_one(record: dict[str, Any]) -> None:
    console = screen.people(stderr=False)
    view = {name: value for name, value in record["cluster"].items() if name != "id"}
    console.print(screen.pairs(f"Cluster {record['cluster']['id']}", _figures(view)))
    if record.get("subclusters"):
        console.print()
        rows = screen.table("Its biggest subclusters", "number", "vectors", "first", "last")
        for each in record["subclusters"]:
            rows.add_row(*(f"{value:,}" for value in each.values()))
        console.print(rows)
    if record.get("members"):
        console.print()
        rows = screen.listing("Its newest vectors", "number", "kept beside it")
        for each in record["members"]:
            payload = each["payload"]
            told = "" if payload is None else json.dumps(payload, ensure_ascii=False)
            rows.add_row(str(each["vector"]), short(told, 80))
        console.print(rows)
    console.print("\nWhat became of it")
    sys.stdout.write("".join(f"{harmless(line)}\n" for line in record["story"]))
