"""`linkstream retract`: one correction no longer holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.cli.phrasing import said
from linkstream.errors import UnknownIdError


def retract(
    store: StorePath,
    correction: Annotated[
        int | None,
        typer.Argument(metavar="[CORRECTION]", help="Its number, as the list shows it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take back one correction; or, with none given, see which there are.

    What came after it stays. Two that were only one by its word come apart, unless the evidence or
    another correction holds them; two that it put apart are not joined, but may be from now on.
    `linkstream undo` brings it back.

    Example: linkstream retract people.links
    """
    if correction is None:
        _show(store, as_json=as_json)
        return
    with opening.writing(store) as opened:
        holding = {each.number: each for each in opened.corrections()}
        if correction not in holding:
            raise UnknownIdError(
                f"correction {correction}",
                expected="the number of one that still holds",
                remedy=f"linkstream retract {store} shows them.",
            )
        opened.retract(correction)
        left = len(opened.corrections())
    record = {"retracted": correction, "corrections": left}
    words = f"Retracted {said(str(holding[correction]))}; {left:,} hold."
    screen.answer(record, words, as_json=as_json)


def _show(path: Path, *, as_json: bool) -> None:
    with opening.reading(path) as opened:
        found = opened.corrections()
    if screen.speaks_json(as_json):
        screen.write_json({"corrections": [each.to_dict() for each in found]})
        return
    console = screen.people(stderr=False)
    for correction in found:
        console.print(said(str(correction)))
    if found:
        console.print(f"\nTo take back the last: linkstream retract {path} {found[-1].number}")
    else:
        console.print("No correction was made that still holds.")
