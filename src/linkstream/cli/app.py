"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from linkstream import __version__
from linkstream.cli.cluster import cluster
from linkstream.cli.demo import demo
from linkstream.cli.diagnose import diagnose
from linkstream.cli.doctor import doctor
from linkstream.cli.tune import tune

app = typer.Typer(
    name="linkstream",
    no_args_is_help=True,
    add_completion=False,
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


app.command()(demo)
app.command()(cluster)
app.command()(tune)
app.command()(diagnose)
app.command()(doctor)
