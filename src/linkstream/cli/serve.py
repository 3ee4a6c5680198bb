"""`linkstream serve`: a folder of stores, for programs and for people."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstream.cli import screen
from linkstream.cli.words import harmless
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.service.settings import Settings


def serve(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="The folder of the stores, one for each namespace."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="Where to listen; beyond this machine a token must be there.",
            show_default="127.0.0.1",
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port; 0 takes a free one.", show_default="7777")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file; its table service is read.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="The file of tokens.", show_default="DATA/tokens.json")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="A folder of pictures that payloads point into.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A name the service is called by; several times.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; several times."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Feed voices that come with the package, as if live.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Say whether it could serve, and end.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, as into a pipe.")] = False,
) -> None:
    """Serve a folder of stores over HTTP, with a page to look at them.

    Only this machine can call it until there is a token: linkstream token create. Ctrl-C or
    SIGTERM ends it: what is under way is answered, and the stores are closed. Settings come from
    the file, then from variables such as LINKSTREAM_PORT, then from here. See it at work:
    linkstream serve --demo (in a folder of its own, which goes when it ends).

    Example: linkstream serve stores --check
    """
    with ExitStack() as held:
        if demo and data is None:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="linkstream-demo-"))
            data = Path(folder)
        flags: dict[str, Any] = {
            "data": data,
            "host": host,
            "port": port,
            "tokens": token_file,
            "images": images,
        }
        flags |= {"allowed_hosts": allowed_host or None, "demo": demo or None}
        settings = _settings(config, _others(setting or []) | _given(flags))
        if check:
            _check(settings, as_json=as_json)
        else:
            _serve(settings, as_json=as_json)


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _others(pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for name, sign, _ in split:
        if not sign:
            raise ArgumentError(
                f"--set {name!r}", expected="NAME=VALUE", remedy="Try --set body_max=8MiB."
            )
    return {name.strip().replace("-", "_"): value for name, _, value in split}


def _settings(config: Path | None, flags: dict[str, Any]) -> Settings:
    from linkstream.service.settings import Settings

    return Settings.load(config, flags=flags)


def _check(settings: Settings, *, as_json: bool) -> None:
    from linkstream.service import running

    addresses = [str(name[0]) for _, name in running.check(settings)]
    needed = settings.token_file.exists()
    where = ", ".join(addresses)
    words = f"It could serve {settings.data} at {where}, port {settings.port}. " + (
        f"Callers need a token of {settings.token_file}."
        if needed
        else "No token is needed: this machine alone can call it."
    )
    record = {"data": str(settings.data), "addresses": addresses, "port": settings.port}
    screen.answer(record | {"tokens": needed}, words, as_json=as_json)


def _serve(settings: Settings, *, as_json: bool) -> None:
    from linkstream.service.running import serve as run

    _keep_log()

    def ready(url: str) -> None:
        if screen.speaks_json(as_json):
            screen.write_json({"url": url, "pid": os.getpid()})
        else:
            _tell(settings, url)
        sys.stdout.flush()

    run(settings, ready=ready)
    screen.note("Stopped. What was acknowledged is kept.")


def _tell(settings: Settings, url: str) -> None:
    make = f"linkstream token create {shlex.quote(str(settings.data))} --scope '*=admin'"
    lines = [f"The page: {url}", f"Serving {settings.data}; Ctrl-C ends it."]
    if settings.demo:
        lines.append("Five voices are heard at speaking pace, in the namespace voices.")
    if settings.token_file.exists():
        lines.append(f"Callers need a token. To make one: {make}")
    else:
        lines.append(f"All of this machine may call it. To let in only some: {make}")
    sys.stdout.write("".join(harmless(line) + "\n" for line in lines))


class _Lines(logging.Formatter):
    """A line a record; what it quotes is anybody's text."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return harmless(super().formatMessage(record))


def _keep_log() -> None:
    """Word of what goes wrong: on stderr, unless somebody has seen to it already."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
