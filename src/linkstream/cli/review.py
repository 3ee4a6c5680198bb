"""`linkstream review`: what to ask a person next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.cli.words import harmless

if TYPE_CHECKING:
    from linkstream.identity.review import Question


def review(
    store: StorePath,
    limit: Annotated[int, typer.Option(min=1, help="Questions to show.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show what to ask a person next, so that few answers put most right.

    Each question is whether two are the same: two clusters, or two parts of one. The answers are
    commands, in any order. Later questions learn from them. Nothing is changed.

    Example: linkstream review people.links --limit 2
    """
    with opening.reading(store) as opened:
        found = opened.review_queue(limit=limit)
    if screen.speaks_json(as_json):
        for question in found:
            screen.write_json(question.to_dict())
        return
    console = screen.people(stderr=False)
    for question in found:
        for line in _lines(question, store):
            console.print(line, soft_wrap=True)
    if not found:
        console.print("No two are so alike, or so unlike, that it is worth asking.")


def _lines(question: Question, path: Path) -> list[str]:
    """Return a question and the commands that answer it."""
    store, two = shlex.quote(str(path)), f"{question.a} {question.b} --of {question.of}"
    return [
        harmless(str(question)),
        f"  yes: linkstream merge {store} {two}",
        f"  no:  linkstream split {store} {two}",
        "",
    ]
