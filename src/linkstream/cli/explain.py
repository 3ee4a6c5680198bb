"""`linkstream explain`: why."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy.typing as npt
import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, Column, Dimension, Key, StorePath
from linkstream.cli.words import harmless
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.store import Store


def explain(
    store: StorePath,
    vector: Annotated[
        str | None,
        typer.Argument(
            metavar="[VECTOR]", help="A file of vectors, - for stdin, or numbers as [0.1,-0.2]."
        ),
    ] = None,
    row: Annotated[int, typer.Option(min=0, help="Which vector of the file.")] = 0,
    number: Annotated[
        int | None, typer.Option("--vector", min=0, help="Instead: a vector of the store.")
    ] = None,
    pair: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="A B", help="Instead: two that are one, or are not."),
    ] = None,
    of: Annotated[
        str, typer.Option(help="What A and B are: vectors, subclusters or clusters.")
    ] = "vectors",
    limit: Annotated[int, typer.Option(min=1, help="Subclusters to show.")] = 5,
    column: Column = None,
    key: Key = None,
    dimension: Dimension = None,
    as_json: AsJson = False,
) -> None:
    """Say why a vector gets its answer, or why two are one or are not.

    Of a vector: the nearest subclusters, what each test asks, and what would change the answer. Of
    a pair: the edges between them, or what keeps them apart. Nothing is changed.

    Example: linkstream explain people.links voices.npy --row 7
    """
    if sum(each is not None for each in (vector, number, pair)) != 1:
        given = {"a vector": vector, "--vector": number, "--pair": pair}
        seen = " and ".join(name for name, value in given.items() if value is not None)
        raise ArgumentError(
            seen or "nothing to explain",
            expected="one of: a file or numbers, --vector N, --pair A B",
            remedy="See linkstream explain --help.",
        )
    with opening.reading(store) as opened:
        found: Any
        if pair is not None:
            found = opened.explain_pair(*pair, of=of)
        elif number is not None:
            found = opened.explain(_of_store(opened, number), limit=limit)
        else:
            x = _given(vector or "", row, column=column, key=key, dimension=dimension)
            found = opened.explain(x, limit=limit)
    if screen.speaks_json(as_json):
        screen.write_json(found.to_dict())
    else:
        sys.stdout.write("\n".join(map(harmless, str(found).splitlines())) + "\n")


def _of_store(opened: Store, number: int) -> npt.NDArray[Any]:
    row: npt.NDArray[Any] = opened.vectors([number])[0]
    return row


def _given(words: str, row: int, **where: Any) -> npt.ArrayLike:
    """A vector as the caller wrote it, or a row of a file."""
    if words.startswith("["):
        try:
            numbers: list[float] = json.loads(words)
        except ValueError as error:
            raise ArgumentError(
                f"a vector that cannot be read ({error})",
                expected="numbers as [0.1, -0.2, 0.3]",
                remedy="Or give a file of vectors and --row.",
            ) from None
        return numbers
    from linkstream.io import open_vectors

    with open_vectors(words if words == "-" else Path(words), **where) as source:
        for block in source:
            if row < block.first_row + len(block):
                chosen: npt.NDArray[Any] = block.vectors[row - block.first_row]
                return chosen
        raise ArgumentError(
            f"row {row} of {source.name}",
            expected=f"one of its {source.row} rows, from 0",
            remedy="Check --row.",
        )
