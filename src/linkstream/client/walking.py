"""Walking: through a verb's steps, with what goes wrong on the way; no input or output here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import httpx

from linkstream.client.asking import KEY, Answer, Request, Steps
from linkstream.client.errors import ServiceError
from linkstream.client.retrying import Patience
from linkstream.client.way import Way
from linkstream.errors import LinkstreamError

T = TypeVar("T")


class Walk(Generic[T]):
    """A verb under way. Whoever has it sends what it asks for, and tells it what came of that."""

    result: T  # once there is nothing more to ask

    def __init__(self, steps: Steps[T], way: Way) -> None:
        self._steps, self._way = steps, way
        self._step(partial(next, steps))

    def ask(self) -> dict[str, Any] | None:
        """What to send now, in httpx's words; None: the verb is done."""
        return None if self._request is None else self._way.arguments(self._request)

    def tell(self, outcome: Answer | httpx.HTTPError) -> float:
        """What came of it: seconds to wait before going on. Raises what the caller is told."""
        if isinstance(outcome, Answer) and outcome.good:
            self._step(partial(self._steps.send, outcome))
            return 0.0
        try:
            return self._patience.wait(outcome)
        except LinkstreamError as error:  # for the verb it may be an answer, too
            if isinstance(error, ServiceError) and self._request is not None:
                error.idempotency_key = self._request.headers.get(KEY)
            self._step(partial(self._steps.throw, error))
            return 0.0

    def _step(self, go: Callable[[], Request]) -> None:
        self._request: Request | None = None
        try:
            request = go()
        except StopIteration as done:
            self.result = done.value
        else:
            self._request = request
            self._patience = Patience(self._way.retries, str(request))
