"""Commands that look at a store and change nothing: inspect, explain, review, plot."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from linkstream.cli import outcome, screen, stores
from linkstream.cli.options import Limit, Of, StorePath, VectorFileOptions
from linkstream.cli.outcome import usage_error
from linkstream.cli.phrasing import reworded
from linkstream.cli.terminal_text import harmless, short

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkstream.store import Operation, Store

_FIRST = ("vectors", "subclusters", "clusters", "dimension", "thresholds")
_PICTURES = tuple(suffix[1:] for suffix in screen.PICTURES)


def inspect(
    store: StorePath,
    cluster: Annotated[str | None, "Show one cluster: its ID, or its name."] = None,
    limit: Limit = 10,
) -> None:
    """Show what is in a store, or all about one of its clusters.

    For a store: its counts, its biggest clusters, its last operations. For a cluster: its
    subclusters, its vectors with their payloads, and its history.

    Example: linkstream inspect people.links --cluster 0
    """
    with stores.reading(store) as opened:
        record = _store(opened, limit) if cluster is None else _cluster(opened, cluster, limit)
    if screen.wrote_json([record]):
        return
    if cluster is None:
        _show_store(record, store)
    else:
        _show_cluster(record)


def _store(store: Store, limit: int) -> dict[str, Any]:
    clusters = sorted(store.clusters(), key=lambda c: (-c.size, c.id))
    first = max(0, store.journal.n_operations - limit)
    return {
        "store": store.info() | {"confidence": store.confidence.summary()},
        "clusters": [_view(c) for c in clusters[:limit]],
        "operations": [_operation(o) for o in store.journal.operations(since=first)][-limit:],
    }


def _view(cluster: Any) -> dict[str, Any]:
    return {**asdict(cluster), "subclusters": len(cluster.subclusters)}


def _operation(operation: Operation) -> dict[str, Any]:
    call = {"number": operation.number, "verb": operation.verb, "arguments": operation.arguments}
    return {**call, "vectors": operation.n_rows, "key": operation.key}


def _cluster(store: Store, words: str, limit: int) -> dict[str, Any]:
    number = stores.cluster_id(store, words)
    found = store.cluster(number) if store.resolve(number) == number else None
    record: dict[str, Any] = {
        "cluster": {"id": number, "gone": True} if found is None else _view(found),
        "history": store.history(number).to_dict(),
        "story": str(store.history(number)).splitlines(),
    }
    if found is not None:
        record["subclusters"] = _subclusters(store, number)[:limit]
        record["members"] = _members(store, number, limit)
    return record


def _subclusters(store: Store, cluster: int) -> list[dict[str, int]]:
    """Return the subclusters of a cluster, the biggest first."""
    state = store.cluster_state(cluster)
    columns = {
        "number": state.numbers,
        "vectors": state.counts,
        "first_seen": state.first_seen,
        "last_seen": state.last_seen,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return sorted(found, key=lambda each: -each["vectors"])


def _members(store: Store, cluster: int, limit: int) -> list[dict[str, Any]]:
    """Return the newest vectors of a cluster with what the store keeps for them."""
    if not store.track_vectors:
        return []
    numbers = store.members(cluster, limit=limit)
    kept = zip(store.described(numbers), store.payloads(numbers), strict=True)
    return [{**own, "payload": payload} for own, payload in kept]


def _show_store(record: dict[str, Any], path: Path) -> None:
    console = screen.console()
    info = {name: record["store"].get(name) for name in _FIRST} | record["store"]
    info["probabilities"] = _how_sure(info.pop("confidence"))
    info["unsure"] = _unsure(info.pop("policy"), info.pop("held"))
    console.print(screen.pairs(harmless(path), _flat(info)))
    console.print()
    columns = ("ID", "name", "vectors", "subclusters", "first", "last")
    rows = screen.table("The biggest clusters", *columns)
    rows.columns[1].justify = "left"
    for c in record["clusters"]:
        numbers = (c["size"], c["subclusters"], c["first_seen"], c["last_seen"])
        rows.add_row(str(c["id"]), short(c["name"] or ""), *(f"{n:,}" for n in numbers))
    console.print(rows)
    console.print()
    rows = screen.listing("The last operations", "number", "verb", "vectors", "arguments")
    for o in record["operations"]:
        arguments = short(json.dumps(o["arguments"], ensure_ascii=False), 60)
        rows.add_row(str(o["number"]), o["verb"], str(o["vectors"] or ""), arguments)
    console.print(rows)


def _unsure(policy: dict[str, Any], n_held: int) -> str:
    """Return in one line what is done with unsure vectors, and how many are held."""
    below = f" (below {policy['probability']}; new clusters: {policy['new']})"
    told = {"take": "taken", "hold": "held" + below, "weigh": "weighed less" + below}
    return f"{told[policy['unsure']]}; {n_held:,} held now"


def _how_sure(confidence: dict[str, Any]) -> str:
    """Return in one line why probabilities are unknown, or what they rest on."""
    if confidence["why"]:
        return reworded(f"unknown: {confidence['why']}")
    drifted = ", but the newest answers contradict them" if confidence["drifted"] else ""
    return f"from {confidence['identities']} identities, {confidence['answers']} answers{drifted}"


def _flat(info: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are set, each as one line."""
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


def _show_cluster(record: dict[str, Any]) -> None:
    console = screen.console()
    view = {name: value for name, value in record["cluster"].items() if name != "id"}
    console.print(screen.pairs(f"Cluster {record['cluster']['id']}", _flat(view)))
    if record.get("subclusters"):
        rows = screen.table("Its biggest subclusters", "number", "vectors", "first", "last")
        for each in record["subclusters"]:
            rows.add_row(*(f"{value:,}" for value in each.values()))
        console.print("", rows, sep="\n")
    if record.get("members"):
        console.print("", _member_table(record["members"]), sep="\n")
    console.print("\nIts history")
    sys.stdout.write("".join(f"{harmless(line)}\n" for line in record["story"]))


def _member_table(members: list[dict[str, Any]]) -> Any:
    """Return the table of vectors; keys and times have columns if a vector has one."""
    own = [name for name in ("id", "time") if any(each[name] for each in members)]
    rows = screen.listing("Its newest vectors", "number", *own, "payload")
    for each in members:
        payload = each["payload"]
        told = "" if payload is None else json.dumps(payload, ensure_ascii=False)
        shown = (short(each[name] or "", 40) for name in own)
        rows.add_row(str(each["vector"]), *shown, short(told, 80))
    return rows


def explain(
    store: StorePath,
    vector: Annotated[
        str | None,
        Argument(metavar="[VECTOR]", help="A file, - for stdin, or numbers as [0.1,-0.2]."),
    ] = None,
    row: Annotated[int, Option(min=0, help="Which vector of the file.")] = 0,
    number: Annotated[
        str | None, Option("--vector", help="A vector of the store, by number or key.")
    ] = None,
    pair: Annotated[tuple[str, str] | None, Option(metavar="A B", help="Two of them.")] = None,
    of: Of = "vectors",
    limit: Limit = 5,
    *,
    vectors: VectorFileOptions,
) -> None:
    """Explain the decision for a vector, or why two are the same or not.

    For a vector: the nearest subclusters, the thresholds of each test, and what would change the
    decision. For a pair: the edges between them, or what separates them. Nothing is changed.

    Example: linkstream explain people.links voices.npy --row 7
    """
    if sum(each is not None for each in (vector, number, pair)) != 1:
        given = {"a vector": vector, "--vector": number, "--pair": pair}
        seen = " and ".join(name for name, value in given.items() if value is not None)
        raise usage_error(
            seen or "nothing to explain",
            "one of: a file or numbers, --vector N, --pair A B",
            "See linkstream explain --help.",
        )
    with stores.reading(store) as opened:
        found: Any
        if pair is not None:
            a, b = (stores.numbered(opened, words, of=of) for words in pair)
            found = opened.explain_pair(a, b, of=of)
        elif number is not None:
            found = opened.explain(opened.vectors([stores.vector(opened, number)])[0], limit=limit)
        else:
            found = opened.explain(_given_vector(vector or "", row, vectors), limit=limit)
    if not screen.wrote_json([found.to_dict()]):
        sys.stdout.write("\n".join(map(harmless, str(found).splitlines())) + "\n")


def _given_vector(words: str, row: int, options: VectorFileOptions) -> npt.ArrayLike:
    """Return a vector that was typed as numbers, or a row of a file."""
    if words.startswith("["):
        try:
            numbers: list[float] = json.loads(words)
        except ValueError as error:
            raise usage_error(
                f"a vector that cannot be read ({error})",
                "numbers as [0.1, -0.2, 0.3]",
                "Or give a file of vectors and --row.",
            ) from None
        return numbers
    with options.open(words if words == screen.STDOUT else Path(words)) as source:
        for block in source:
            if row < block.first_row + len(block):
                chosen: npt.NDArray[Any] = block.vectors[row - block.first_row]
                return chosen
        raise usage_error(
            f"row {row} of {source.name}", f"one of its {source.row} rows, from 0", "Check --row."
        )


def review(store: StorePath, limit: Limit = 5) -> None:
    """Show the questions whose answers would correct most vectors.

    Each question is whether two are the same: two clusters, or two parts of one. The answers are
    commands, in any order. Later questions depend on them. Nothing is changed.

    Example: linkstream review people.links --limit 2
    """
    with stores.reading(store) as opened:
        found = opened.review_queue(limit=limit)
    if screen.wrote_json(question.to_dict() for question in found):
        return
    console = screen.console()
    for question in found:
        two = f"{shlex.quote(str(store))} {question.a} {question.b} --of {question.of}"
        answers = f"  yes: linkstream merge {two}\n  no:  linkstream split {two}\n"
        console.print(f"{harmless(question)}\n{answers}", soft_wrap=True)
    if not found:
        console.print("There is no question whose answer would correct a vector.")


def plot(
    store: StorePath,
    output: Annotated[Path, "The folder, made if it is missing."] = Path(),
    only: Annotated[str | None, "Some of the four pictures, as graph,sizes."] = None,
    kind: Annotated[str, "png, svg or pdf."] = "png",
    limit: Annotated[int, Option(min=1, help="Subclusters in the graph.")] = 1500,
) -> None:
    """Draw a store: its graph, its stream, its sizes and its margins.

    The files are people-graph.png and so on: the biggest clusters as graphs of subclusters and
    edges; the arrival times of their vectors; the sizes; the margins of edges and of near pairs.

    Example: linkstream plot people.links --output pictures
    """
    from linkstream import plots

    drawings = {
        "graph": lambda links: plots.cluster_graphs(links, limit=limit),
        "timeline": plots.stream,
        "sizes": plots.sizes,
        "margins": plots.margins,
    }
    wanted = list(drawings) if only is None else [name.strip() for name in only.split(",")]
    for option, value, known in (("kind", [kind], _PICTURES), ("only", wanted, tuple(drawings))):
        if not set(value) <= {*known}:
            seen, remedy = f"--{option} {','.join(value)}", "Try --only graph,sizes --kind svg."
            raise usage_error(seen, f"some of {', '.join(known)}", remedy)
    screen.check_folder(output)
    written: list[str] = []
    with stores.reading(store) as opened:
        output.mkdir(parents=True, exist_ok=True)
        for name in wanted:
            path = output / f"{store.stem}-{name}.{kind}"
            plots.save(drawings[name](opened), path)
            written.append(str(path))
            outcome.note_change(f"{', '.join(written)} written")
    screen.answer({"pictures": written}, "Written: " + ", ".join(written))
