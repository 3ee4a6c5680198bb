"""`linkstream token`: the tokens of a service."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from linkstream.cli import outcome, screen
from linkstream.cli.options import Command, TokenFile, as_command
from linkstream.cli.outcome import usage_error
from linkstream.cli.terminal_text import harmless, short
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.service.tokenfile import Token

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)

Data = Annotated[Path, Argument(metavar="DATA", help="The folder of the service's stores.")]
Config = Annotated[Path | None, "The TOML file of the service."]

group = typer.Typer(
    name="token", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@group.callback()
def token() -> None:
    """Create, list and revoke the tokens of a service.

    A token lets its holder read, write (and read) or administer (and all else) one namespace,
    several, or all of them. A running service notices a change within a second.

    Example: linkstream token create stores --scope people=write --label door
    """


@group.command(cls=Command)
@as_command
def create(
    data: Data,
    scope: Annotated[
        list[str] | None,
        Option(metavar="NAMESPACE=SCOPE", help="read, write or admin; * is all. Repeatable."),
    ] = None,
    label: Annotated[str, "A note on who uses it."] = "",
    expires: Annotated[str | None, "How long the token works, as 90d; else for ever."] = None,
    rotate: Annotated[str | None, Option(metavar="ID", help="Replace this token.")] = None,
    overlap: Annotated[str | None, "How long the old token works; else 24h."] = None,
    token_file: TokenFile = None,
    config: Config = None,
) -> None:
    """Create a token. Its secret is shown once: only a hash of it is kept.

    With --rotate the new token has the scopes and the label of the old one, and both work until
    the overlap is over.

    Example: linkstream token create stores --scope people=read --scope door=write --expires 90d
    """
    from linkstream.service import tokens

    path = _path(data, token_file, config)
    seconds = None if expires is None else _seconds("--expires", expires, least=1)
    old = None
    if rotate is None:
        if overlap is not None:
            raise _odd("--overlap without --rotate", "both, or neither")
        scopes = _scopes(scope or [])
        _make_folder(path.parent, data)
        made, secret = tokens.create(path, scopes, label=label, seconds=seconds)
    elif scope or label:
        raise _odd("--rotate with --scope or --label", "the ID alone: the new token keeps both")
    else:
        both = _seconds("--overlap", overlap or "24h", least=0)
        made, secret, old = tokens.rotate(path, rotate, overlap=both, seconds=seconds)
    outcome.note_change(f"token {made.id} is made; revoke it if its secret was not shown")
    _show(made, secret, old)


@group.command("list", cls=Command)
@as_command
def list_(data: Data, token_file: TokenFile = None, config: Config = None) -> None:
    """List the tokens, without their secrets.

    Example: linkstream token list stores
    """
    from linkstream.service import tokenfile

    now = time.time()
    found = tokenfile.read(_path(data, token_file, config))
    if screen.wrote_json(one.to_dict() | {"works": not one.ended(now)} for one in found):
        return
    rows = screen.listing("Tokens", "ID", "label", "may", "made", "works until")
    for one in found:
        shown = one.to_dict()
        ends = "ended" if one.ended(now) else shown["expires"] or "no end"
        rows.add_row(one.id, short(one.label), short(_may(one)), shown["created"], ends)
    screen.console().print(rows if found else "No token.")


@group.command(cls=Command)
@as_command
def revoke(
    data: Data,
    id_: Annotated[str, Argument(metavar="ID", help="Its ID, or its secret.")],
    token_file: TokenFile = None,
    config: Config = None,
) -> None:
    """Revoke a token: from now on it is refused.

    If no token is left, every call is refused: a service does not open when its last token is gone.

    Example: linkstream token revoke stores 0a1b2c3d4e5f
    """
    from linkstream.service import tokens

    path = _path(data, token_file, config)
    gone, left = tokens.revoke(path, id_)
    outcome.note_change(f"token {gone.id} is revoked")
    words = f"Revoked: {gone.id} {gone.label}".rstrip() + f". {left} left."
    if not left:
        words += (
            f" Every call is refused now. To serve without tokens, remove {path} and restart it."
        )
    screen.answer({"id": gone.id, "label": gone.label, "left": left}, words)


def _show(made: Token, secret: str, old: Token | None) -> None:
    record: dict[str, Any] = made.to_dict() | {"secret": secret}
    if old is not None:
        record["rotates"] = old.to_dict()
    if screen.wrote_json([record]):
        return
    ends = record["expires"] or "it is revoked"
    lines = [secret, f"Shown once: keep it now. ID {made.id}, may {_may(made)}, until {ends}."]
    if old is not None:
        lines.append(f"The old one, {old.id}, works until {old.to_dict()['expires']}.")
    # Not by a console, which would break a long line.
    sys.stdout.write("".join(harmless(line) + "\n" for line in lines))


def _may(one: Token) -> str:
    return ", ".join(f"{scope} {name}" for name, scope in one.scopes.items())


def _path(data: Path, token_file: Path | None, config: Path | None) -> Path:
    """Return the file that the service with these settings reads."""
    from linkstream.service.settings import Settings

    return Settings.load(config, flags={"data": data, "tokens": token_file}).token_file


def _make_folder(folder: Path, data: Path) -> None:
    """Make the data folder for its first token; any other folder must exist."""
    if folder != data:
        return
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise usage_error(
            f"{str(folder)!r} cannot be made ({error.strerror})",
            "a folder, or a new name in an existing folder",
            "Make it first.",
        ) from None


def _scopes(pairs: list[str]) -> dict[str, str]:
    """Return scopes by namespace; raise ArgumentError if a namespace is given twice."""
    from linkstream.service.tokenfile import check_scopes

    split = [pair.partition("=") for pair in pairs]
    scopes = {name: scope for name, _, scope in split}
    if not pairs or len(scopes) != len(split):
        seen = "a namespace given twice" if pairs else "no --scope"
        raise _odd(seen, "what it allows, once for each namespace")
    check_scopes(scopes)
    return scopes


def _seconds(name: str, text: str, *, least: int) -> float:
    found = _DURATION.fullmatch(text.strip())
    seconds = int(found[1]) * _UNITS[found[2]] if found else -1
    if seconds < least:
        raise usage_error(f"{name} {text!r}", "a time such as 90d, 12h, 30m or 45s", "Try 90d.")
    return float(seconds)


def _odd(seen: str, expected: str) -> ArgumentError:
    return usage_error(seen, expected, "Try --scope people=write; see token create --help.")
