"""What every command has: --format, and its own words for errors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from linkstream.cli import call
from linkstream.errors import ArgumentError

FORMATS = ("text", "json")

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="text|json",
        help="Write words, or JSON lines.",
        show_default="words on a terminal, JSON lines into a pipe",
    ),
]


class Command(TyperCommand):
    """A command that notes what it is called with, so that errors can name its options."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        running = call.now()
        running.command = ctx.command_path.partition(" ")[2]
        running.flags = {each.name: _flag(each.opts) for each in self.params if _is_option(each)}
        running.values = dict(ctx.params)
        return super().invoke(ctx)


def with_format(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option --format, which overrides what a pipe or --json would choose."""
    name = "format_"

    @functools.wraps(function)
    def run(**given: Any) -> Any:
        call.now().format = _checked(given.pop(name), as_json=bool(given.get("as_json")))
        return function(**given)

    told = inspect.signature(function, eval_str=True)
    added = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Format)
    whole = told.replace(parameters=[*told.parameters.values(), added])
    vars(run)["__signature__"] = whole
    run.__annotations__ = {each.name: each.annotation for each in whole.parameters.values()}
    return run


def _checked(chosen: str | None, *, as_json: bool) -> str | None:
    if chosen is not None and chosen not in FORMATS:
        raise ArgumentError(
            f"--format {chosen}", expected=" or ".join(FORMATS), remedy="Try --format json."
        )
    if chosen == "text" and as_json:
        raise ArgumentError(
            "--json and --format text", expected="one of them", remedy="Leave one out."
        )
    return chosen


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts and parameter.opts[0].startswith("-"))


def _flag(forms: list[str]) -> str:
    """Return the long form of an option."""
    return max(forms, key=len)
