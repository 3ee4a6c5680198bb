"""Tokens: who may call a service, and what they may do.

A secret is shown once, when it is made; the file stores its SHA-256. A secret has 256 random bits,
so a fast hash is enough. If anything is wrong with the file, all calls are refused.
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

CHECK_SECONDS = 1.0  # between two checks of the file; revoking takes effect within this time

_SECRET = re.compile(r"lsk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)
_NO_DIGEST = "0" * 64  # compared for unknown tokens, so that they take as long

_log = logging.getLogger("linkstream.service")


@dataclass(frozen=True, slots=True)
class Grant:
    """The scopes of a caller."""

    scopes: Mapping[str, str]  # "read", "write" or "admin" by namespace, or for "*"
    token: Token | None = None  # None if the service needs none

    def allows(self, scope: str, namespace: str | None) -> bool:
        """Return whether the caller has a scope for a namespace; None: for the whole service.

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
        """The namespaces that the caller may read; None for all."""
        return None if ALL in self.scopes else frozenset(self.scopes)


EVERYTHING = Grant({ALL: "admin"})


class Tokens:
    """The current tokens of a service; the file is read again when it changes.

    If the file was there and is gone, is damaged or is empty, all calls are refused. Only a service
    that never had a token file is open.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._mark: object = None
        self._checked = 0.0
        self._tokens: dict[str, Token] = {}
        self._needed = False

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time
    ) -> Tokens:
        """Read the tokens of a file; no file means no tokens.

        Raises:
            ArgumentError: the file is damaged, or others may write to it.
        """
        tokens = cls(Path(path), clock=clock)
        tokens.reload()
        return tokens

    @property
    def any(self) -> bool:
        """Whether callers need a token; once true, true until the service ends."""
        self._refresh()
        return self._needed

    def live(self) -> list[Token]:
        """Return the tokens that have not expired."""
        self._refresh()
        now = self._clock()
        return [token for token in self._tokens.values() if not token.ended(now)]

    def grant(self, secret: str | None) -> Grant | None:
        """Return the scopes of a secret; None if it is wrong, expired or missing.

        A service without tokens allows everything.
        """
        self._refresh()
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
        """Return whether a grant is still valid; for long responses."""
        self._refresh()
        if grant.token is None:
            return not self._needed
        now = self._tokens.get(grant.token.id)
        return now is not None and now.sha256 == grant.token.sha256 and not now.ended(self._clock())

    def _refresh(self) -> None:
        """Read the file again if it changed; checked once a second."""
        now = time.monotonic()
        if now - self._checked < CHECK_SECONDS:
            return
        self._checked = now
        if tokenfile.mark(self._path) == self._mark:
            return
        try:
            self.reload()
        except ArgumentError as error:
            self._tokens = {}
            _log.error("no token is accepted: %s", error)  # noqa: TRY400, RUF100

    def reload(self) -> None:
        """Read the file now; raise ArgumentError if it is damaged."""
        self._mark = tokenfile.mark(self._path)
        self._needed = self._needed or self._mark is not None
        self._tokens = {token.id: token for token in tokenfile.read(self._path)}
        self._needed = self._needed or bool(self._tokens)  # made between the check and the read
        self._checked = time.monotonic()


def digest(secret: str) -> str:
    """Return the hash of a secret, as stored in the file."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


# The commands of `linkstream token`: each reads the file, changes it and replaces it.


def create(
    path: Path,
    scopes: Mapping[str, str],
    *,
    label: str = "",
    seconds: float | None = None,
    now: float | None = None,
) -> tuple[Token, str]:
    """Make a token; return it with its secret, which is not stored.

    The token is valid for `seconds`, or for ever. `now` replaces the clock.
    """
    now = time.time() if now is None else now
    ends = None if seconds is None else now + seconds
    with _edited(path) as tokens:
        token, secret = _make(tokens, scopes, label, now, ends)
        tokens.append(token)
    return token, secret


def rotate(
    path: Path, old: str, *, overlap: float, seconds: float | None = None, now: float | None = None
) -> tuple[Token, str, Token]:
    """Replace a token by a new one with the same scopes and label.

    Returns the new token, its secret, and the old token, which stays valid for `overlap` seconds.
    `old` is an ID or a secret. Without `seconds` the new token is valid as long as the old one was.
    """
    now = time.time() if now is None else now
    with _edited(path) as tokens:
        index = _index(tokens, old, path)
        before = tokens[index]
        if seconds is None and before.expires is not None:
            seconds = max(before.expires - before.created, 1.0)
        ends = None if seconds is None else now + seconds
        token, secret = _make(tokens, before.scopes, before.label, now, ends)
        # An old token that expires sooner still does.
        last = min(now + overlap, now + overlap if before.expires is None else before.expires)
        tokens[index] = replace(before, expires=float(int(last)))
        tokens.append(token)
        return token, secret, tokens[index]


def revoke(path: Path, token_id: str) -> tuple[Token, int]:
    """Remove a token, given by its ID or secret; return it and the number of tokens left."""
    with _edited(path) as tokens:
        gone = tokens.pop(_index(tokens, token_id, path))
        return gone, len(tokens)


@contextmanager
def _edited(path: Path) -> Iterator[list[Token]]:
    with tokenfile.locked(path):
        tokens = tokenfile.read(path)
        yield tokens
        tokenfile.write(path, tokens)


def _make(
    tokens: list[Token], scopes: Mapping[str, str], label: str, now: float, ends: float | None
) -> tuple[Token, str]:
    token_id = secrets.token_hex(6)
    while any(token.id == token_id for token in tokens):
        token_id = secrets.token_hex(6)
    secret = f"lsk_{token_id}_{secrets.token_urlsafe(32)}"
    expires = None if ends is None else float(int(ends))
    created = float(int(now))
    return Token(token_id, digest(secret), label, dict(scopes), created, expires), secret


def _index(tokens: list[Token], token_id: str, path: Path) -> int:
    found = _SECRET.fullmatch(token_id)  # a leaked secret can be revoked without its ID
    token_id = found[1] if found else token_id
    for index, token in enumerate(tokens):
        if token.id == token_id:
            return index
    seen = f"no token {token_id[:40]!r} in {str(path)!r}"
    raise ArgumentError(seen, expected=f"one of {len(tokens)}", remedy="See linkstream token list.")
