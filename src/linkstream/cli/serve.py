"""`linkstream serve`: serve a folder of stores over HTTP."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from linkstream.cli import screen
from linkstream.cli.options import TokenFile
from linkstream.cli.outcome import usage_error
from linkstream.cli.terminal_text import harmless

if TYPE_CHECKING:
    from linkstream.service.settings import Settings


def serve(
    data: Annotated[
        Path | None, Argument(metavar="[DATA]", help="The folder of the stores.")
    ] = None,
    host: Annotated[
        str | None, Option(help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[int | None, Option(help="0 chooses a free port.", show_default="7777")] = None,
    config: Annotated[Path | None, "A TOML file with a table named service."] = None,
    token_file: TokenFile = None,
    images: Annotated[Path | None, "A folder of pictures that payloads point into."] = None,
    allowed_host: Annotated[list[str] | None, "A host name of the service; repeatable."] = None,
    setting: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Any other setting; may be repeated."),
    ] = None,
    demo: Annotated[bool, "Add the voices of the package, as if live."] = False,
    check: Annotated[bool, "Check whether it could serve, and end."] = False,
) -> None:
    """Serve a folder of stores over HTTP, with a page to look at them.

    DATA holds one store for each namespace. Without a token only this machine can call the service,
    and a --host that other machines reach is refused: linkstream token create. Ctrl-C or SIGTERM
    ends it: running requests are answered, and the stores are closed, within stop_seconds; a second
    signal ends it at once. The exit code is 0, and all that was acknowledged is kept. Slow reads,
    such as reviews, share slow_threads, slow_calls and slow_bytes. Settings come from the file,
    then from variables such as LINKSTREAM_PORT, then from the options. To try it: linkstream serve
    --demo, which uses a temporary folder.

    Example: linkstream serve stores --check
    """
    from linkstream.service.settings import Settings

    signalled = False
    with ExitStack() as held:
        if demo and data is None:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="linkstream-demo-"))
            data = Path(folder)
        flags: dict[str, Any] = {"data": data, "host": host, "port": port, "tokens": token_file}
        flags |= {"images": images, "allowed_hosts": allowed_host or None, "demo": demo or None}
        given = {name: value for name, value in flags.items() if value is not None}
        settings = Settings.load(config, flags=_others(setting or []) | given)
        if check:
            _check(settings)
        else:
            signalled = _serve(settings)
    if signalled:
        _leave()


def _others(pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for name, sign, _ in split:
        if not sign:
            raise usage_error(f"--set {name!r}", "NAME=VALUE", "Try --set body_max=8MiB.")
    return {name.strip().replace("-", "_"): value for name, _, value in split}


def _check(settings: Settings) -> None:
    from linkstream.service import running

    addresses = [str(name[0]) for _, name in running.check(settings)]
    needed = settings.token_file.exists()
    where = ", ".join(addresses)
    words = f"It could serve {settings.data} at {where}, port {settings.port}. " + (
        f"Callers need a token of {settings.token_file}."
        if needed
        else "No token is needed: only this machine can call it."
    )
    record = {"data": str(settings.data), "addresses": addresses, "port": settings.port}
    screen.answer(record | {"tokens": needed}, words)


def _serve(settings: Settings) -> bool:
    """Serve; return whether a signal has ended it."""
    from linkstream.service.running import serve as run

    _configure_logging()

    def ready(url: str) -> None:
        if screen.speaks_json():
            screen.write_json({"url": url, "pid": os.getpid()})
        else:
            _show_address(settings, url)
        sys.stdout.flush()

    signalled = run(settings, ready=ready)
    screen.note("Stopped. What was acknowledged is kept.")
    return signalled


def _leave() -> None:
    """End the process; Python would wait for the threads of reads that nobody waits for."""
    from linkstream.service.stopping import end_process

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    end_process()


def _show_address(settings: Settings, url: str) -> None:
    make = f"linkstream token create {shlex.quote(str(settings.data))} --scope '*=admin'"
    lines = [f"The page: {url}", f"Serving {settings.data}; Ctrl-C ends it."]
    if settings.demo:
        lines.append("Five voices are added at speaking pace, in the namespace voices.")
    if settings.token_file.exists():
        lines.append(f"Callers need a token. To make one: {make}")
    else:
        lines.append(f"Every program on this machine may call it. To require a token: {make}")
    sys.stdout.write("".join(harmless(line) + "\n" for line in lines))


class _Lines(logging.Formatter):
    """Format a record as one line, with control characters spelt out."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return harmless(super().formatMessage(record))


def _configure_logging() -> None:
    """Log to stderr, unless logging is configured already."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
