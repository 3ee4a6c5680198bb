"""The commands, put together; each is read from its file only when it is called."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from linkstream import __version__
from linkstream.cli import RUNNING, ending
from linkstream.cli.commands import Command, with_format

# In the order of the help; the words are the first line of each command's docstring.
PANELS = {
    "Seeing it work": {
        "demo": "Cluster a real stream of voices as if live, and draw what happened.",
    },
    "Vectors in": {
        "cluster": "Give every vector of a file an ID, in order of arrival.",
        "watch": "Take files of vectors as they arrive in a folder.",
        "presets": "List the encoders whose thresholds are known.",
        "tune": "Find thresholds for an encoder, from labelled vectors.",
        "calibrate": "Find thresholds for an encoder, from pairs or from vectors alone.",
        "diagnose": "Say whether vectors suit Links, and thresholds suit the vectors.",
    },
    "Looking": {
        "inspect": "Show what is in a store, or all about one of its clusters.",
        "explain": "Say why a vector gets its answer, or why two are one or are not.",
        "events": "Tell what happened in a store, from the beginning or as it happens.",
        "plot": "Draw a store: its graph, its stream, its sizes and its margins.",
    },
    "Putting right": {
        "review": "Show what to ask a person next, so that few answers put most right.",
        "merge": "Say that two clusters are one; or, with none given, see which two may be.",
        "split": "Say that two are not one, or see where a cluster would come apart.",
        "move": "Put a vector into another cluster, for good.",
        "name": "Give a cluster a name, another one, or none.",
        "enrol": "Make a cluster of vectors of somebody known, with a name.",
        "settle": "Show which clusters an offline pass would join and cut; with --apply, do it.",
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

# What other programs call these commands.
_ELSEWHERE = {
    **dict.fromkeys(("add", "feed", "ingest", "fit"), "cluster"),
    **dict.fromkeys(("delete", "remove", "rm", "erase"), "forget"),
    **dict.fromkeys(("list", "ls", "show", "info", "stats"), "inspect"),
    **dict.fromkeys(("join", "same"), "merge"),
    **dict.fromkeys(("cut", "different"), "split"),
    **dict.fromkeys(("rename", "label"), "name"),
    **dict.fromkeys(("draw", "picture"), "plot"),
    **dict.fromkeys(("check", "fsck"), "verify"),
    "log": "events",
    "copy": "backup",
    "enroll": "enrol",
    "why": "explain",
}


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
        """Return the command itself, now that it is called; name the nearest one to a typo."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise typer.BadParameter(_unknown(args[0]), ctx=ctx)
        name, found, rest = super().resolve_command(ctx, args)
        RUNNING.set(name or "linkstream")
        return name, found and loaded(name or ""), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; if nobody reads its output any more, that is no error to be shown."""
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _let_go_of_stdout()
            raise typer.Exit(ending.UNREAD) from None
        return answer


def _unknown(typed: str) -> str:
    near = [_ELSEWHERE[typed]] if typed in _ELSEWHERE else []
    near += difflib.get_close_matches(typed, COMMANDS)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"there is no command {typed!r}.{meant}"


def loaded(name: str) -> Any:
    """A command of its own, read from its file; or a group of them, where that has one."""
    attribute = f"{name}_" if name == "import" else name
    module = importlib.import_module(f"linkstream.cli.{attribute}")
    if hasattr(module, "group"):
        return typer.main.get_command(module.group)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=Command)(with_format(getattr(module, attribute)))
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
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run() -> int:
    """Run the command of sys.argv; return its exit code.

    Raises:
        LinkstreamError, OSError: as the command does.
        ending.Declined: a question was answered with no, or not at all.
    """
    try:
        code = app(prog_name="linkstream", standalone_mode=False)
    except typer.Abort:
        raise ending.Declined from None
    except _WRONGLY_TYPED as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return ending.REFUSED
        return ending.refuse(_usage(error))
    return code if isinstance(code, int) else ending.DONE


# The error of Click, or of Typer's own copy of it, for words that cannot be read as a command.
_WRONGLY_TYPED: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def _usage(error: Any) -> str:
    """Return what was typed wrongly, and where to look."""
    context = getattr(error, "ctx", None)
    path = "linkstream" if context is None else context.command_path
    message = " ".join(error.format_message().split()).removeprefix("Invalid value: ")
    message = re.sub(r" \(Possible options?: (.*)\)$", r". Did you mean \1?", message)
    stop = "" if message.endswith((".", "?")) else "."
    return f"{message[:1].lower()}{message[1:]}{stop} See {path} --help."


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
