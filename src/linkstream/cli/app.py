"""The table of commands; the module of a command is imported when the command is called."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from linkstream import __version__
from linkstream.cli import outcome
from linkstream.cli.signals import import_numpy

# In the order of the help. The words are the first line of the docstring of each command.
PANELS = {
    "Try it": {"demo": "Cluster a real stream of voices as if live, and draw the result."},
    "Add vectors": {
        "cluster": "Give every vector of a file an ID, in order of arrival.",
        "watch": "Add files of vectors as they arrive in a folder.",
        "diarize": "Tell who spoke when: turns from embeddings of speech with times.",
        "presets": "List the encoders whose thresholds are known, and their levels.",
        "levels": "Show vectors at several levels of granularity, to choose one by looking.",
        "tune": "Find thresholds for an encoder, from labelled vectors.",
        "calibrate": "Find thresholds for an encoder, from pairs or from vectors alone.",
        "diagnose": "Test whether vectors suit Links, and thresholds suit the vectors.",
    },
    "Inspect": {
        "inspect": "Show what is in a store, or all about one of its clusters.",
        "explain": "Explain the decision for a vector, or why two are the same or not.",
        "search": "Find vectors by the words and fields of their payloads.",
        "changes": "Show what changed between two moments, in vectors and in clusters.",
        "events": "Show the events of a store, from the beginning or as they happen.",
        "confidence": "Show whether a store tells probabilities, and whether they hold.",
        "plot": "Draw a store: its graph, its stream, its sizes and its margins.",
    },
    "Correct": {
        "review": "Show the questions whose answers would correct most vectors.",
        "merge": "Declare two clusters the same; without arguments, suggest which.",
        "split": "Declare two different; with one cluster, show its weakest links.",
        "move": "Move vectors to another cluster, where they stay.",
        "accept": "Say what is done with vectors whose decision is unsure.",
        "held": "List the vectors that wait for a decision, and what they would get.",
        "assign": "Decide on a vector that is held.",
        "name": "Name or rename a cluster, or remove its name.",
        "enrol": "Add vectors of a known identity as a cluster with a name.",
        "ignore": "Leave a cluster out of suggestions and reviews.",
        "judge": "Say that the decision on a vector was right, or wrong.",
        "settle": "Show which clusters an offline pass would join and cut; --apply does it.",
        "rebuild": "Show what clustering all vectors again would change; --apply does it.",
        "retract": "Take back one correction; without arguments, list the corrections.",
        "forget": "Remove a cluster or a vector; with --erase, also from the disk.",
        "undo": "Undo the last command, or everything from an event on.",
        "redo": "Redo what the last undo took.",
    },
    "Serve": {
        "serve": "Serve a folder of stores over HTTP, with a page to look at them.",
        "token": "Create, list and revoke the tokens of a service.",
    },
    "Maintain": {
        "verify": "Read all of a store and decide everything again.",
        "repair": "Save what can be read of a damaged store, after copying it.",
        "backup": "Copy a store while it is in use.",
        "export": "Write a store as plain files that other programs read.",
        "import": "Make a store from files that export wrote.",
        "migrate": "Change to another encoder, while the store goes on with the old one.",
        "compact": "Erase removed vectors from the disk, and shrink the file.",
    },
    "This machine": {
        "bench": "Measure how many vectors a second this machine adds.",
        "doctor": "Show what is installed, which engine runs, and whether it works.",
    },
}
COMMANDS = {name: panel for panel, commands in PANELS.items() for name in commands}

# Modules that hold several commands; any other command has a module of its own name.
_MODULES = {
    **dict.fromkeys(PANELS["Correct"], "corrections"),  # but for those below
    "rebuild": "rebuilding",
    "judge": "confidence",
    **dict.fromkeys(("accept", "held", "assign"), "unsure"),
    **dict.fromkeys(("presets", "tune", "calibrate", "diagnose"), "tuning"),
    **dict.fromkeys(("inspect", "explain", "review", "plot"), "queries"),
    **dict.fromkeys(("events", "undo", "redo"), "history"),
    **dict.fromkeys(("search", "changes"), "finding"),
    **dict.fromkeys(("verify", "repair", "backup", "export", "import", "compact"), "maintenance"),
}

# Words of other programs, and the commands to suggest for them.
_SYNONYMS = {
    **dict.fromkeys(("add", "feed", "ingest", "fit"), "cluster"),
    **dict.fromkeys(("delete", "remove", "rm", "erase"), "forget"),
    **dict.fromkeys(("list", "ls", "show", "info", "stats"), "inspect"),
    **dict.fromkeys(("join", "same"), "merge"),
    **dict.fromkeys(("cut", "different"), "split"),
    **dict.fromkeys(("rename", "label"), "name"),
    **dict.fromkeys(("draw", "picture"), "plot"),
    **dict.fromkeys(("check", "fsck"), "verify"),
    **dict.fromkeys(("find", "grep"), "search"),
    "diff": "changes",
    "log": "events",
    "copy": "backup",
    "enroll": "enrol",
    "why": "explain",
}


class Commands(TyperGroup):
    """The commands by name. Listing them imports none of their modules."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002, RUF100
        """Return all names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002, RUF100
        """Return a command with its name and first line only."""
        panel = COMMANDS.get(cmd_name)
        if panel is None:
            return None
        return TyperCommand(name=cmd_name, help=PANELS[panel][cmd_name], rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called; suggest the nearest one for a typo."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise typer.BadParameter(_unknown(args[0]), ctx=ctx)
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and loaded(name or ""), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; end quietly if the reader of its output has closed it."""
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_stdout()
            raise typer.Exit(outcome.UNREAD) from None
        return answer


def _unknown(typed: str) -> str:
    near = [_SYNONYMS[typed]] if typed in _SYNONYMS else []
    near += difflib.get_close_matches(typed, COMMANDS)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"there is no command {typed!r}.{meant}"


def function_of(name: str) -> Callable[..., Any]:
    """Import the function of a command."""
    module = importlib.import_module(f"linkstream.cli.{_MODULES.get(name, name)}")
    function: Callable[..., Any] = getattr(module, f"{name}_" if name == "import" else name)
    return function


def loaded(name: str) -> Any:
    """Import a command, or a group of commands."""
    from linkstream.cli.options import Command, as_command

    import_numpy()
    function = function_of(name)
    group = getattr(sys.modules[function.__module__], "group", None)
    if group is None:
        group = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        group.command(name, cls=Command)(as_command(function))
    return typer.main.get_command(group)


def _discard_stdout() -> None:
    # Python would try to write the rest of the buffer at exit, and fail.
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
        Declined: the user answered a question with no.
    """
    try:
        code = app(prog_name="linkstream", standalone_mode=False)
    except typer.Abort:
        raise outcome.Declined from None
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return outcome.REFUSED
        return outcome.refuse(_usage(error))
    return code if isinstance(code, int) else outcome.DONE


# The error of Click, or of Typer's copy of Click, for a command line that cannot be parsed.
_USAGE_ERROR: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def _usage(error: Any) -> str:
    """Return what was mistyped, and where to look."""
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
        bool, Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Cluster embeddings as they arrive: every vector gets a lasting ID at once.

    Example: linkstream demo
    """
