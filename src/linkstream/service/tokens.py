"""Tokens: who may call a service, and for what.

A secret is shown once, when it is made; the file keeps its SHA-256 alone. A secret has 256 random
bits, so no slow hash is needed to keep it from being guessed. Whatever is wrong with the file, the
door stays shut.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from linkstream.errors import ArgumentError
from linkstream.service import tokenfile
from linkstream.service.tokenfile import ALL, SCOPES, Token

LOOK_SECONDS = 1.0  # between two looks at the file, so revoking works within so long

_SECRET = re.compile(r"lsk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)
_NO_DIGEST = "0" * 64  # compared with where there is no such token, to take as long

_log = logging.getLogger("linkstream.service")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a caller may do: a scope for each namespace it was given, or for all."""

    scopes: Mapping[str, str]
    token: Token | None = None
    """The token it comes from; None where no token is needed."""

    def allows(self, scope: str, namespace: str | None) -> bool:
        """Whether it reaches so far there. Without a namespace: what belongs to none.

        >>> Grant({"door": "write"}).allows("read", "door")
        True
        >>> Grant({"door": "write"}).allows("read", None)
        False
        """
        enough = SCOPES[SCOPES.index(scope) :]
        here = None if namespace is None else self.scopes.get(namespace)
        return self.scopes.get(ALL) in enough or here in enough

    @property
    def namespaces(self) -> frozenset[str] | None:
        """Those it may read; None means all."""
        return None if ALL in self.scopes else frozenset(self.scopes)


EVERYTHING = Grant({ALL: "admin"})


class Tokens:
    """The tokens of a service, as its file has them now.

    The file is read again when it has changed. A file that was there and is gone, is damaged, or
    holds no token lets nobody in: only a service that never had one is open.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._mark: object = None
        self._looked = 0.0
        self._tokens: dict[str, Token] = {}
        self._needed = False

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time
    ) -> Tokens:
        """The tokens of a file; none where there is no file.

        Raises:
            ArgumentError: the file is damaged, or others may write to it.
        """
        tokens = cls(Path(path), clock=clock)
        tokens._mark = tokenfile.mark(tokens._path)
        tokens._take()
        tokens._looked = time.monotonic()
        return tokens

    @property
    def any(self) -> bool:
        """Whether callers need a token. Once they do, they do until the service ends."""
        self._look()
        return self._needed

    def live(self) -> list[Token]:
        """Tokens that work now."""
        self._look()
        now = self._clock()
        return [token for token in self._tokens.values() if not token.ended(now)]

    def grant(self, secret: str | None) -> Grant | None:
        """What a secret allows; None if it is wrong, expired or missing.

        Where no token is needed, everything is allowed to everybody.
        """
        self._look()
        if not self._needed:
            return EVERYTHING
        found = None if secret is None else _SECRET.fullmatch(secret)
        if secret is None or found is None:
            return None
        token = self._tokens.get(found[1])
        right = hmac.compare_digest(digest(secret), _NO_DIGEST if token is None else token.sha256)
        if token is None or not right or token.ended(self._clock()):
            return None
        return Grant(token.scopes, token)

    def holds(self, grant: Grant) -> bool:
        """Whether what was granted is so still; for answers that go on for long."""
        self._look()
        if grant.token is None:
            return not self._needed
        now = self._tokens.get(grant.token.id)
        return now is not None and now.sha256 == grant.token.sha256 and not now.ended(self._clock())

    def _look(self) -> None:
        """See whether the file has changed, now and then."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        mark = tokenfile.mark(self._path)
        if mark == self._mark:
            return
        try:
            self._mark = mark
            self._take()
        except ArgumentError as error:
            self._tokens = {}
            _log.error("no token is accepted: %s", error)  # noqa: TRY400, RUF100

    def _take(self) -> None:
        self._needed = self._needed or self._mark is not None
        self._tokens = {token.id: token for token in tokenfile.read(self._path)}
        self._needed = self._needed or bool(self._tokens)  # made between the look and the reading


def digest(secret: str) -> str:
    """What the file keeps of a secret."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


# What `linkstream token` does. Each reads the file, changes it and writes it whole.


def create(
    path: Path,
    scopes: Mapping[str, str],
    *,
    label: str = "",
    seconds: float | None = None,
    now: float | None = None,
) -> tuple[Token, str]:
    """A new token, and its secret, which nobody can tell a second time.

    Args:
        path: the file of tokens; made where it is not.
        scopes: "read", "write" or "admin" by namespace, "*" for all.
        label: whom it is for.
        seconds: after which it ends; None: never.
        now: seconds since 1970, if not by the clock.
    """
    now = time.time() if now is None else now
    ends = None if seconds is None else now + seconds
    with _changing(path) as tokens:
        token, secret = _made(tokens, scopes, label, now, ends)
        tokens.append(token)
    return token, secret


def rotate(
    path: Path,
    old: str,
    *,
    overlap: float,
    seconds: float | None = None,
    now: float | None = None,
) -> tuple[Token, str, Token]:
    """A new token with the scopes and label of another, which ends after the overlap, in seconds.

    Where none are said, it lasts as many seconds as the old one did. Answers with the new one, its
    secret, and the old one as it is now.
    """
    now = time.time() if now is None else now
    with _changing(path) as tokens:
        place = _place(tokens, old, path)
        before = tokens[place]
        if seconds is None and before.expires is not None:
            seconds = max(before.expires - before.created, 1.0)
        ends = None if seconds is None else now + seconds
        token, secret = _made(tokens, before.scopes, before.label, now, ends)
        # An old one that would have ended sooner still does.
        last = min(now + overlap, now + overlap if before.expires is None else before.expires)
        tokens[place] = replace(before, expires=float(int(last)))
        tokens.append(token)
        return token, secret, tokens[place]


def revoke(path: Path, token_id: str) -> tuple[Token, int]:
    """Take a token out of the file; says which it was, and how many are left."""
    with _changing(path) as tokens:
        gone = tokens.pop(_place(tokens, token_id, path))
        return gone, len(tokens)


@contextmanager
def _changing(path: Path) -> Iterator[list[Token]]:
    with tokenfile.locked(path):
        tokens = tokenfile.read(path)
        yield tokens
        tokenfile.write(path, tokens)


def _made(
    tokens: list[Token], scopes: Mapping[str, str], label: str, now: float, ends: float | None
) -> tuple[Token, str]:
    token_id = secrets.token_hex(6)
    while any(token.id == token_id for token in tokens):
        token_id = secrets.token_hex(6)
    secret = f"lsk_{token_id}_{secrets.token_urlsafe(32)}"
    expires = None if ends is None else float(int(ends))
    created = float(int(now))
    return Token(token_id, digest(secret), label, dict(scopes), created, expires), secret


def _place(tokens: list[Token], token_id: str, path: Path) -> int:
    found = _SECRET.fullmatch(token_id)  # whoever finds a secret may not know its ID
    token_id = found[1] if found else token_id
    for place, token in enumerate(tokens):
        if token.id == token_id:
            return place
    raise ArgumentError(
        f"no token {token_id[:40]!r} in {str(path)!r}",
        expected=f"one of {len(tokens)}",
        remedy="linkstream token list shows them.",
    )
