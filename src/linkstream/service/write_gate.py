"""A gate that writes pass, and that a job may close while it computes and applies its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WriteGate:
    """Lets the writes of a namespace pass, or holds them back; for the event loop alone."""

    def __init__(self) -> None:
        self._open, self._idle = asyncio.Event(), asyncio.Event()
        self._open.set()
        self._idle.set()
        self._passing = 0

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Write within the context; wait first for as long as writes are held back."""
        while not self._open.is_set():
            await self._open.wait()
        self._passing += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._passing -= 1
            if not self._passing:
                self._idle.set()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold writes back within the context; those that have begun end first."""
        self._open.clear()
        try:
            await self._idle.wait()
            yield
        finally:
            self._open.set()
