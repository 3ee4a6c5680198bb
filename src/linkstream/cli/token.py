"""`linkstream token`: who may call a service."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstream.cli import call, screen
from linkstream.cli.commands import Command, with_format
from linkstream.cli.options import AsJson
from linkstream.cli.words import harmless, short
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.service.tokenfile import Token

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The folder of the service's stores.")]
Config = Annotated[Path | None, typer.Option(help="The TOML file of the service.")]
TokenFile = Annotated[
    Path | None, typer.Option(help="The file of tokens.", show_default="DATA/tokens.json")
]

group = typer.Typer(
    name="token", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@group.callback()
def token() -> None:
    """Say who may call a service: make, list and revoke tokens.

    A token lets its bearer read, write (and read) or administer (and all else) one namespace,
    several, or all of them. A service that runs takes notice within a second.

    Example: linkstream token create stores --scope people=write --label door
    """


@group.command(cls=Command)
@with_format
def create(
    data: Data,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE=SCOPE",
            help="What it may do: read, write or admin; * means all. Several times.",
        ),
    ] = None,
    label: Annotated[str, typer.Option(help="Whom it is for.")] = "",
    expires: Annotated[
        str | None, typer.Option(help="How long it works: 90d, 12h, 30m.", show_default="for ever")
    ] = None,
    rotate: Annotated[
        str | None, typer.Option(metavar="ID", help="Instead: one to follow this one.")
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option(help="How long the old one goes on working.", show_default="24h"),
    ] = None,
    token_file: TokenFile = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. Its secret is shown once: only a hash of it is kept.

    With --rotate the new one has the scopes and the label of the old one, and both work until the
    overlap is over: time to change it wherever it is used.

    Example: linkstream token create stores --scope people=read --scope door=write --expires 90d
    """
    from linkstream.service import tokens

    path = _path(data, token_file, config)
    seconds = None if expires is None else _seconds("--expires", expires, least=1)
    if rotate is None:
        if overlap is not None:
            raise _odd("--overlap without --rotate", "both, or neither")
        scopes = _scopes(scope or [])
        _make_folder(path.parent, data)
        made, secret = tokens.create(path, scopes, label=label, seconds=seconds)
        call.keep(f"token {made.id} is made; revoke it if its secret was not shown")
        return _tell(made, secret, None, as_json=as_json)
    if scope or label:
        raise _odd("--rotate with --scope or --label", "the ID alone: the new one takes both over")
    both = _seconds("--overlap", overlap or "24h", least=0)
    made, secret, old = tokens.rotate(path, rotate, overlap=both, seconds=seconds)
    call.keep(f"token {made.id} is made; revoke it if its secret was not shown")
    return _tell(made, secret, old, as_json=as_json)


@group.command("list", cls=Command)
@with_format
def list_(
    data: Data, token_file: TokenFile = None, config: Config = None, as_json: AsJson = False
) -> None:
    """List the tokens, without their secrets, which nobody has but their bearers.

    Example: linkstream token list stores
    """
    from linkstream.service import tokenfile

    now = time.time()
    found = tokenfile.read(_path(data, token_file, config))
    if screen.speaks_json(as_json):
        for one in found:
            screen.write_json(one.to_dict() | {"works": not one.ended(now)})
        return
    rows = screen.listing("Tokens", "ID", "label", "may", "made", "works until")
    for one in found:
        shown = one.to_dict()
        ends = "ended" if one.ended(now) else shown["expires"] or "no end"
        rows.add_row(one.id, short(one.label), short(_may(one)), shown["created"], ends)
    screen.people(stderr=False).print(rows if found else "No token.")


@group.command(cls=Command)
@with_format
def revoke(
    data: Data,
    id_: Annotated[str, typer.Argument(metavar="ID", help="Its ID, or its secret.")],
    token_file: TokenFile = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: from now on it lets nobody in.

    Where none is left, nobody gets in: a service does not open because its last token is gone.

    Example: linkstream token revoke stores 0a1b2c3d4e5f
    """
    from linkstream.service import tokens

    path = _path(data, token_file, config)
    gone, left = tokens.revoke(path, id_)
    call.keep(f"token {gone.id} is revoked")
    words = f"Revoked: {gone.id} {gone.label}".rstrip() + f". {left} left."
    if not left:
        words += f" Nobody gets in now. To serve without tokens, remove {path} and start it again."
    screen.answer({"id": gone.id, "label": gone.label, "left": left}, words, as_json=as_json)


def _tell(made: Token, secret: str, old: Token | None, *, as_json: bool) -> None:
    record: dict[str, Any] = made.to_dict() | {"secret": secret}
    if old is not None:
        record["rotates"] = old.to_dict()
    if screen.speaks_json(as_json):
        screen.write_json(record)
        return
    ends = record["expires"] or "it is revoked"
    lines = [secret, f"Shown once: keep it now. ID {made.id}, may {_may(made)}, until {ends}."]
    if old is not None:
        lines.append(f"The old one, {old.id}, works until {old.to_dict()['expires']}.")
    # Not by way of a table or a console, which would break a long line.
    sys.stdout.write("".join(harmless(line) + "\n" for line in lines))


def _may(one: Token) -> str:
    return ", ".join(f"{scope} {name}" for name, scope in one.scopes.items())


def _path(data: Path, token_file: Path | None, config: Path | None) -> Path:
    """The file that the service with these settings reads."""
    from linkstream.service.settings import Settings

    return Settings.load(config, flags={"data": data, "tokens": token_file}).token_file


def _make_folder(folder: Path, data: Path) -> None:
    """The data folder may be made by its first token; any other is there or is misspelt."""
    if folder != data:
        return
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ArgumentError(
            f"{str(folder)!r} cannot be made ({error.strerror})",
            expected="a folder, or a name for one in a folder that is there",
            remedy="Make it first.",
        ) from None


def _scopes(pairs: list[str]) -> dict[str, str]:
    """Scopes by namespace; said twice of one is an error, for one of the two would be lost."""
    from linkstream.service.tokenfile import check_scopes

    split = [pair.partition("=") for pair in pairs]
    scopes = {name: scope for name, _, scope in split}
    if not pairs or len(scopes) != len(split):
        seen = "a namespace that is there twice" if pairs else "no --scope"
        raise _odd(seen, "what it may do, once for each namespace")
    check_scopes(scopes)
    return scopes


def _seconds(name: str, text: str, *, least: int) -> float:
    found = _DURATION.fullmatch(text.strip())
    seconds = int(found[1]) * _UNITS[found[2]] if found else -1
    if seconds < least:
        raise ArgumentError(
            f"{name} {text!r}", expected="a time such as 90d, 12h, 30m or 45s", remedy="Try 90d."
        )
    return float(seconds)


def _odd(seen: str, expected: str) -> ArgumentError:
    return ArgumentError(
        seen, expected=expected, remedy="Try --scope people=write; see token create --help."
    )
