"""Asking: what a verb sends, what comes back, and how one description serves both clients.

A verb is a generator: it yields requests, is sent the answer to each, and returns what the caller
gets. It does no input or output, so that it is written once: `Client` goes through its steps in a
blocking way, `AsyncClient` awaits them.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import types
import uuid
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np
import numpy.typing as npt

from linkstream.client import errors
from linkstream.errors import ArgumentError, LinkstreamError

JSON, BINARY = "application/json", "application/octet-stream"
KEY = "Idempotency-Key"
SLOW = 600.0  # seconds that work over everything may take to be answered

P = ParamSpec("P")
T = TypeVar("T")
Query = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. The path lies below the namespace, or with `whole` below the service.

    `slow`: work over everything, which may take longer than other calls.
    """

    method: str
    path: str
    query: Query = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    whole: bool = False
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path or '/'}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def good(self) -> bool:
        """Whether it is what was asked for, and not an error."""
        return 200 <= self.status < 300

    def error(self) -> LinkstreamError:
        """The error that it stands for."""
        return errors.of_answer(self.status, self.headers, self.body)

    def read(self, reader: Callable[[Any], T]) -> T:
        """What a reader makes of the answer's plain values; AnswerError if it cannot."""
        try:
            return reader(json.loads(self.body))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._foreign(error) from None

    def ids(self, n: int | None, name: str = "ids") -> npt.NDArray[np.int64]:
        """As many IDs as vectors were sent; however many if that is not known."""
        if self.headers.get("content-type", "").partition(";")[0].strip() == BINARY:
            whole = len(self.body) - len(self.body) % 8
            ids = np.frombuffer(self.body[:whole], dtype="<i8").astype(np.int64)
            sound = whole == len(self.body)
        else:
            ids = self.read(lambda told: np.array(told[name], dtype=np.int64))
            sound = ids.ndim == 1
        if not sound or n not in (None, len(ids)):
            raise self._foreign(f"{len(self.body)} bytes for the IDs of {n} vectors")
        return ids

    def _foreign(self, why: object) -> errors.AnswerError:
        reason = repr(why) if isinstance(why, Exception) else why
        error = errors.AnswerError(
            f"an answer that cannot be read ({reason!s:.200})",
            expected="what this version's service answers",
            remedy="Use a client and a service of one version; check what lies between them.",
        )
        error.status = self.status
        return error


Steps = Generator[Request, Answer, T]


class Blocking:
    """One that goes through a verb's steps, and returns when they are done."""

    def _perform(self, describe: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        raise NotImplementedError


class Awaiting:
    """One whose verbs are awaited."""

    async def _perform(
        self, describe: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        raise NotImplementedError


class verb(Generic[P, T]):  # noqa: N801 (used as a decorator)
    """A method that describes requests: on a `Client` it does them, on an `AsyncClient` awaited.

    To editors and type checkers it is a method with the same arguments either way.
    """

    def __init__(self, describe: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        @functools.wraps(describe)
        def perform(client: Blocking | Awaiting, *args: P.args, **kwargs: P.kwargs) -> Any:
            return client._perform(functools.partial(describe, client), *args, **kwargs)

        shown = inspect.signature(describe)  # with what the caller gets, for help()
        result = str(shown.return_annotation).removeprefix("Steps[").removesuffix("]")
        perform.__signature__ = shown.replace(return_annotation=result)  # type: ignore[attr-defined]
        self._method = perform
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        """A method, as of any function in a class."""
        return self._method if client is None else types.MethodType(self._method, client)


def get(
    path: str, *, whole: bool = False, slow: bool = False, accept: str = JSON, **query: Any
) -> Request:
    """A request that reads; what is None is left out."""
    return Request("GET", path, plain_query(query), {"Accept": accept}, whole=whole, slow=slow)


def post(
    path: str, values: Any, *, key: str | None = None, write: bool = True, slow: bool = False
) -> Request:
    """A request with plain values; one that writes has a key, so that retries count once."""
    headers = {"Content-Type": JSON} | (key_header(key) if write else {})
    return Request("POST", path, headers=headers, body=encoded(values), slow=slow)


def plain_query(query: Mapping[str, Any]) -> Query:
    """What is given, as plain values."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in query.items()
        if value is not None
    }


_KEY = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?")


def key_header(key: str | None) -> dict[str, str]:
    """The caller's key, or a new one for this call and all its retries."""
    if key is None:
        return {KEY: uuid.uuid4().hex}
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ArgumentError(
            f"idempotency_key={key!r:.80}",
            expected="a text of 1 to 255 characters of ASCII, without blanks at its ends",
            remedy="A batch's name or number will do; leave it out to have one made.",
        )
    return {KEY: key}


def encoded(values: Any) -> bytes:
    """Plain values as JSON."""
    try:
        return json.dumps(values, allow_nan=False, separators=(",", ":"), default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"values that are not JSON ({error})",
            expected="texts, finite numbers, yes or no, None, lists and objects of them",
            remedy="Make them plain, or attach a reference to where they lie.",
        ) from None


def _plain(value: object) -> object:
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__}")
