"""The commands, put together; each is read from its file only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from linkstream import __version__
from linkstream.cli import RUNNING, STOPPED, UNREAD

# In the order of the help; the words are the first line of each command's docstring.
PANELS = {
    "Seeing it work": {
        "demo": "Cluster a real stream of voices as if live, and draw what happened.",
    },
    "Vectors in": {
        "cluster": "Give every vector of a file an ID, in order of arrival.",
        "watch": "Take files of vectors as they arrive in a folder.",
        "tune": "Find thresholds for an encoder, from labelled vectors.",
        "diagnose": "Say whether vectors suit Links, and thresholds suit the vectors.",
    },
    "Looking": {
        "inspect": "Show what is in a store, or all about one of its clusters.",
        "explain": "Say why a vector gets its answer, or why two are one or are not.",
        "events": "Tell what happened in a store, from the beginning or as it happens.",
        "plot": "Draw a store: its graph, its stream, its sizes and its margins.",
    },
    "Putting right": {
        "merge": "Say that two clusters are one; or, with none given, see which two may be.",
        "split": "Say that two are not one, or see where a cluster would come apart.",
        "name": "Give a cluster a name, another one, or none.",
        "retract": "Take back one correction; or, with none given, see which there are.",
        "forget": "Forget a cluster or a vector; with --erase, for good.",
        "undo": "Take back all that the last command did, or all from an event on.",
        "redo": "Bring back what the last undo took.",
    },
    "Serving": {
        "serve": "Serve a folder of stores over HTTP, with a page to look at them.",
        "token": "Say who may call a service: make, list and revoke tokens.",
    },
    "Care": {
        "verify": "Read all of a store and decide everything again.",
        "repair": "Save what can be read of a damaged store, after copying it aside.",
        "backup": "Copy a store while it is in use.",
        "export": "Write a store as plain files that other programs read.",
        "import": "Make a store from files that export wrote.",
        "compact": "Erase for good what was removed and forgotten, and shrink the file.",
    },
    "This machine": {
        "bench": "Measure how fast this machine takes vectors.",
        "doctor": "Say what is installed, which engine runs, and whether it answers right.",
    },
}
COMMANDS = {name: panel for panel, commands in PANELS.items() for name in commands}


class Commands(TyperGroup):
    """The commands by name. Listing them reads none of their files."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002, RUF100
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002, RUF100
        """What the list says of a command."""
        panel = COMMANDS.get(cmd_name)
        if panel is None:
            return None
        return TyperCommand(name=cmd_name, help=PANELS[panel][cmd_name], rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, now that it is called."""
        name, found, rest = super().resolve_command(ctx, args)
        RUNNING.set(name or "linkstream")
        return name, found and loaded(name or ""), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; being stopped, or no longer read, is no error to be shown."""
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:
            _let_go_of_stdout()
            raise typer.Exit(UNREAD) from None
        return answer


def loaded(name: str) -> Any:
    """A command of its own, read from its file; or a group of them, where that has one."""
    attribute = f"{name}_" if name == "import" else name
    module = importlib.import_module(f"linkstream.cli.{attribute}")
    if hasattr(module, "group"):
        return typer.main.get_command(module.group)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(getattr(module, attribute))
    return typer.main.get_command(alone)


def _let_go_of_stdout() -> None:
    # What is still in the buffer would be written, and fail, when Python ends.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


app = typer.Typer(
    name="linkstream",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"linkstream {__version__}")
        raise typer.Exit


@app.callback()
def linkstream(
    version: Annotated[  # noqa: ARG001, RUF100  # its callback does the work
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Cluster embeddings as they arrive: every vector gets a lasting ID at once.

    Example: linkstream demo
    """
