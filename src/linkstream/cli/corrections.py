"""Commands that correct the clusters of a store, each by a verb of `linkstream.clusterer.verbs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from linkstream.cli import screen, stores
from linkstream.cli.options import ClusterName, Limit, Of, StorePath, VectorFileOptions, Yes
from linkstream.cli.outcome import usage_error
from linkstream.cli.phrasing import reworded
from linkstream.errors import UnknownIdError

if TYPE_CHECKING:
    from linkstream.identity.suggestions import SplitSuggestion
    from linkstream.store import Store

_ALL = 2**31


def merge(
    store: StorePath,
    a: Annotated[
        str | None, Argument(metavar="[A]", help="A cluster: its ID, or its name.")
    ] = None,
    b: Annotated[str | None, Argument(metavar="[B]", help="The other one.")] = None,
    of: Of = "clusters",
    limit: Limit = 5,
) -> None:
    """Declare two clusters the same; without arguments, suggest which.

    They share a cluster from now on. The one with a name keeps its ID, else the older one; the
    other ID stands for it for ever. A merge that earlier corrections forbid is refused, with the
    corrections that forbid it.

    Example: linkstream merge people.links 0 1
    """
    if a is None:
        _suggest_merges(store, limit)
        return
    if b is None:
        raise usage_error(f"one cluster, {a}", "two, or none", "Name the other one as well.")
    with stores.writing(store) as opened:
        one, other = (stores.numbered(opened, words, of=of) for words in (a, b))
        before = opened.n_events
        stores.perform(opened, "same", a=one, b=other, of=of)
        live = opened.explain_pair(one, other, of=of).clusters[0]
        words = f"{a} and {b} are the same: {stores.called(opened, live)}."
        merged = [one, other]
        if opened.n_events == before:
            words = f"Nothing to do: {a} and {b} are one already: {stores.called(opened, live)}."
            merged = []
    screen.answer({"merged": merged, "cluster": live}, words)


def _suggest_merges(path: Path, limit: int) -> None:
    with stores.reading(path) as opened:
        found = opened.suggest_merges(limit=limit)
    if screen.wrote_json(pair.to_dict() for pair in found):
        return
    console = screen.console()
    for pair in found:
        console.print(str(pair))
    if found:
        one, other = found[0].clusters
        console.print(f"\nTo merge the first two: linkstream merge {path} {one} {other}")
    else:
        console.print("No two clusters are near each other.")


def split(
    store: StorePath,
    a: Annotated[str, Argument(metavar="A", help="A number or key; alone, a cluster.")],
    b: Annotated[str | None, Argument(metavar="[B]", help="The other one.")] = None,
    of: Of = "vectors",
    apply: Annotated[bool, "With one cluster: cut its weakest link."] = False,
    limit: Limit = 5,
) -> None:
    """Declare two different; with one cluster, show its weakest links.

    Two vectors, subclusters or clusters never share a cluster again; if they do now, the weakest
    link between them is cut. With one cluster, its weakest links are shown, and --apply cuts the
    first of them for ever.

    Example: linkstream split people.links 0 205
    """
    if b is None:
        _split_one(store, a, limit=limit, apply=apply)
        return
    if apply:
        raise usage_error(
            "--apply with two numbers",
            "--apply with one cluster",
            "Leave --apply out: two numbers are split without it.",
        )
    with stores.writing(store) as opened:
        one, other = (stores.numbered(opened, words, of=of) for words in (a, b))
        record = _declare_different(opened, one, other, of)
    first, second = record["clusters"]
    words = f"{of} {one} and {other} are different: they are in clusters {first} and {second}."
    screen.answer(record, words)


def _declare_different(opened: Store, one: int, other: int, of: str) -> dict[str, Any]:
    stores.perform(opened, "different", a=one, b=other, of=of)
    clusters = opened.explain_pair(one, other, of=of).clusters
    return {"different": [one, other], "of": of, "clusters": list(clusters)}


def _split_one(path: Path, words: str, *, limit: int, apply: bool) -> None:
    with (stores.writing if apply else stores.reading)(path) as opened:
        cluster = stores.cluster_id(opened, words)
        found = [s for s in opened.suggest_splits(limit=_ALL) if s.cluster == cluster][:limit]
        if apply:
            _cut(opened, words, found)
            return
    if screen.wrote_json(each.to_dict() for each in found):
        return
    console = screen.console()
    for each in found:
        console.print(str(each))
    if found:
        console.print(f"\nTo cut the first: linkstream split {path} {cluster} --apply")
    else:
        console.print(f"cluster {cluster} is one subcluster, or held together by corrections.")


def _cut(opened: Store, words: str, found: list[SplitSuggestion]) -> None:
    if not found:
        raise usage_error(
            f"cluster {words}, which is one subcluster or held together by corrections",
            "a cluster of several subclusters",
            "Name two vectors of it: linkstream split STORE A B.",
        )
    record = _declare_different(opened, *found[0].subclusters, "subclusters")
    first, second = record["clusters"]
    screen.answer(record, f"Cut: clusters {first} and {second}.")


def move(
    store: StorePath,
    vector: Annotated[
        list[str], Argument(metavar="VECTOR...", help="Numbers in the stream, or own keys.")
    ],
    cluster: Annotated[
        str, Argument(metavar="CLUSTER", help="Its ID, or its name; `-- -1` for a new one.")
    ],
) -> None:
    """Move vectors to another cluster, where they stay.

    The share of a vector in the sums of its old cluster moves with it. Several vectors move as one
    change: all or none. A move that earlier corrections forbid is refused, and so is a move to a
    cluster that was forgotten.

    Example: linkstream move people.links 7 6
    """
    with stores.writing(store) as opened:
        numbers = [stores.vector(opened, words) for words in vector]
        target = stores.cluster_id(opened, cluster)
        found = stores.perform(opened, "move", vector=numbers, cluster=target)
        live = opened.resolve(found[-1].cluster)
        who = stores.called(opened, live)
    if len(numbers) == 1:
        record = {"vector": numbers[0], "cluster": live, "subcluster": found[0].subcluster}
        screen.answer(record, f"Vector {numbers[0]} is in {who} now.")
    else:
        screen.answer({"vectors": numbers, "cluster": live}, f"{len(numbers)} vectors: {who}.")


def name(
    store: StorePath,
    cluster: ClusterName,
    name: Annotated[str | None, Argument(metavar="[NAME]", help="The name.")] = None,
    rename: Annotated[bool, "Replace the name if it has one."] = False,
    clear: Annotated[bool, "Remove its name."] = False,
    claim: Annotated[bool, "At a split, its largest subcluster keeps the name."] = False,
) -> None:
    """Name or rename a cluster, or remove its name.

    Clusters with different names are never joined. A name belongs to one cluster.

    Example: linkstream name people.links 0 Ann
    """
    if (name is None) != clear or (rename and clear) or (claim and (rename or clear)):
        given = {"a name": name, "--rename": rename, "--clear": clear, "--claim": claim}
        raise usage_error(
            " with ".join(word for word, value in given.items() if value) or "no name",
            "a name, a name with --rename, a name with --claim, or --clear alone",
            "See linkstream name --help.",
        )
    _check_text(name)
    with stores.writing(store) as opened:
        number = stores.cluster_id(opened, cluster)
        if name is None or rename:
            stores.perform(opened, "rename", cluster=number, name=name)
        else:
            stores.perform(opened, "name", cluster=number, name=name, claim=claim)
        live = opened.resolve(number)
    words = f"Cluster {live} has no name now." if name is None else f"Cluster {live} is {name}."
    screen.answer({"cluster": live, "name": name}, words)


def _check_text(name: str | None) -> None:
    """Raise ArgumentError for bytes that are no text, which the shell hands over as surrogates."""
    try:
        (name or "").encode()
    except UnicodeEncodeError:
        raise usage_error(f"the name {name!r}", "a text", "Write it in UTF-8.") from None


def enrol(
    store: StorePath,
    name: Annotated[str, Argument(metavar="NAME", help="The name of the identity.")],
    file: Annotated[str, "Vectors of this identity alone, as for cluster."],
    drift: Annotated[bool, "Let the vectors given here move as others join them."] = False,
    *,
    vectors: VectorFileOptions,
) -> None:
    """Add vectors of a known identity as a cluster with a name.

    Vectors that arrive later join the cluster. The vectors given here stay as they are, unless
    --drift is given. If a cluster has the name already, the vectors are added to that cluster.
    Other clusters are left as they are: join them with `linkstream merge`.

    Example: linkstream enrol people.links Bea arrivals/monday.npy
    """
    rows = vectors.read(file)
    with stores.writing(store) as opened:
        cluster = stores.perform(opened, "enrol", name=name, X=rows, locked=not drift)
    record = {"cluster": cluster, "name": name, "vectors": len(rows)}
    words = f"{name} is cluster {cluster}, with {len(rows):,} vectors of {file}."
    screen.answer(record, words)


def ignore(
    store: StorePath,
    cluster: ClusterName,
    off: Annotated[bool, "Include the cluster again."] = False,
) -> None:
    """Leave a cluster out of suggestions and reviews.

    Vectors still join the cluster. Use it for clusters that are no identity, such as noise.

    Example: linkstream ignore people.links 6
    """
    with stores.writing(store) as opened:
        number = stores.cluster_id(opened, cluster)
        stores.perform(opened, "ignore", cluster=number, on=not off)
        state = "included again" if off else "ignored"
        words = f"{stores.called(opened, number).capitalize()} is {state}."
    screen.answer({"cluster": number, "ignored": not off}, words)


def settle(store: StorePath, apply: Annotated[bool, "Join and cut the clusters."] = False) -> None:
    """Show which clusters an offline pass would join and cut; --apply does it.

    All subclusters are compared with one another by the test of the paper. Corrections and names
    stay as they are. `linkstream undo` takes it back.

    Example: linkstream settle people.links
    """
    from linkstream.cli.outputs import share_bar

    opening = stores.writing if apply else stores.reading
    with opening(store) as opened, share_bar("settling") as bar:
        found = stores.perform(opened, "settle", own={"progress": bar}, apply=apply)
    if screen.wrote_json([found.to_dict()]):
        return
    sys.stdout.write(f"{found}\n")
    if not apply and (found.joins or found.cuts):
        sys.stdout.write(f"\nTo do it: linkstream settle {store} --apply\n")


def retract(
    store: StorePath,
    correction: Annotated[
        int | None, Argument(metavar="[CORRECTION]", help="Its number, as the list shows it.")
    ] = None,
) -> None:
    """Take back one correction; without arguments, list the corrections.

    Later corrections stay. Two that were the same only because of it are separated, unless the
    vectors or another correction hold them together; two that it separated are not joined, but may
    be from now on. `linkstream undo` brings the correction back.

    Example: linkstream retract people.links
    """
    if correction is None:
        _list_corrections(store)
        return
    with stores.writing(store) as opened:
        active = {each.number: each for each in opened.corrections()}
        if correction not in active:
            raise UnknownIdError(
                f"correction {correction}",
                expected="the number of an active correction",
                remedy=f"linkstream retract {store} shows them.",
            )
        stores.perform(opened, "retract", correction=correction)
        left = len(opened.corrections())
    words = f"Retracted {reworded(str(active[correction]))}; {left:,} left."
    screen.answer({"retracted": correction, "corrections": left}, words)


def _list_corrections(path: Path) -> None:
    with stores.reading(path) as opened:
        found = opened.corrections()
    if screen.wrote_json([{"corrections": [each.to_dict() for each in found]}]):
        return
    console = screen.console()
    for correction in found:
        console.print(reworded(str(correction)))
    if found:
        console.print(f"\nTo take back the last: linkstream retract {path} {found[-1].number}")
    else:
        console.print("There are no corrections.")


def forget(
    store: StorePath,
    cluster: Annotated[
        str | None, Argument(metavar="[CLUSTER]", help="Its ID, or its name.")
    ] = None,
    vector: Annotated[
        list[str] | None, "Instead of a cluster: a vector, by number or key. May be repeated."
    ] = None,
    erase: Annotated[bool, "Erase its bytes from the files; it cannot be undone."] = False,
    yes: Yes = False,
) -> None:
    """Remove a cluster or a vector; with --erase, also from the disk.

    Without --erase it can be undone: vectors and payloads stay in the file until
    `linkstream compact`. The command asks first; without a terminal, --yes is needed.

    Example: linkstream forget people.links 3 --yes
    """
    if (cluster is None) == (not vector):
        raise usage_error(
            "neither a cluster nor --vector" if cluster is None else "a cluster and --vector",
            "one of the two",
            "linkstream forget STORE CLUSTER, or linkstream forget STORE --vector N.",
        )
    with stores.reading(store) as opened:
        number = None if cluster is None else stores.cluster_id(opened, cluster)
        some = [stores.vector(opened, words) for words in vector or ()]
        many = f"vector{'s' * (len(some) > 1)} {', '.join(map(str, some))}"
        what = many if number is None else stores.called(opened, number)
    how = " for good, and end all undo before it" if erase else ""
    stores.confirm(f"forget {what}{how}", yes=yes)
    with stores.writing(store) as opened:
        _remove(opened, number, some)
        if erase:
            stores.compact(opened, store)
    one = some[0] if len(some) == 1 else some or None
    record = {"cluster": number, "vector": one, "erased": erase}
    after = "No byte of it is left in the files." if erase else "linkstream undo brings it back."
    screen.answer(record, f"Forgotten: {what}. {after}")


def _remove(opened: Store, cluster: int | None, vectors: list[int]) -> None:
    if cluster is not None:
        stores.perform(opened, "forget", cluster=cluster)
    else:
        stores.perform(opened, "remove", vector=vectors[0] if len(vectors) == 1 else vectors)
