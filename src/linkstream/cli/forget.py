"""`linkstream forget`: a cluster or a vector, taken out; if asked, from the disk as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath, Yes
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.store import Store


def forget(
    store: StorePath,
    cluster: Annotated[
        str | None, typer.Argument(metavar="[CLUSTER]", help="Its ID, or its name.")
    ] = None,
    vector: Annotated[int | None, typer.Option(help="Instead: a vector, by its number.")] = None,
    erase: Annotated[
        bool, typer.Option("--erase", help="Leave no byte of it in the files; not to be undone.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Forget a cluster or a vector; with --erase, for good.

    Without --erase it can be undone, so its vectors and payloads stay in the file until
    `linkstream compact`. You are asked first; without a terminal to ask on, --yes is needed.

    Example: linkstream forget people.links 3 --yes
    """
    if (cluster is None) == (vector is None):
        raise ArgumentError(
            "neither a cluster nor --vector" if cluster is None else "a cluster and --vector",
            expected="one of the two",
            remedy="linkstream forget STORE CLUSTER, or linkstream forget STORE --vector N.",
        )
    with opening.reading(store) as opened:
        number = None if cluster is None else opening.cluster_id(opened, cluster)
        what = f"vector {vector}" if number is None else opening.called(opened, number)
    how = " for good, and end all undo before it" if erase else ""
    opening.confirm(f"forget {what}{how}", yes=yes)
    with opening.writing(store) as opened:
        _take_out(opened, number, vector)
        if erase:
            opening.compact(opened, store)
    record = {"cluster": number, "vector": vector, "erased": erase}
    after = "Nothing of it is left in the files." if erase else "linkstream undo brings it back."
    screen.answer(record, f"Forgotten: {what}. {after}", as_json=as_json)


def _take_out(opened: Store, cluster: int | None, vector: int | None) -> None:
    if cluster is not None:
        opened.forget(cluster)
    elif vector is not None:
        opened.remove(vector)
