"""One change of a clusterer: done wholly or not at all, whatever is raised on the way.

A verb of `Links` runs within a `Change`. Where it raises, memory that ran out included, all it did
is taken back. Where even that fails, the clusterer refuses every later call (`UnusableError`).
Ctrl-C is held back meanwhile: it is acted on between two vectors, or where only a proposal is
worked out.
"""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast

from linkstream.engine.contract import Engine
from linkstream.errors import UnusableError

if TYPE_CHECKING:
    from linkstream.clusterer.base import Ground
    from linkstream.identity.ledger import Ledger, Mark

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="Ground")

Handler = Callable[[int, FrameType | None], Any]

# The functions beneath those of `signal` take no memory, as they must not after a change is done,
# and less time.
_signal = importlib.import_module("_signal")
get_handler, set_handler = _signal.getsignal, _signal.signal
SIGINT = int(signal.SIGINT)


class _Unusable:
    """Stands for the engine of a clusterer whose state is not known any more."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # asked by Python's own tools of any object
            raise AttributeError(name)
        raise UnusableError(
            "a clusterer in which a change failed and could not be taken back",
            expected="one whose state is known",
            remedy="Go back to a snapshot, or open the store again; nothing was saved from it.",
        )


UNUSABLE = cast(Engine, _Unusable())


class Stopped(BaseException):
    """Ends a verb that was interrupted; what Ctrl-C raises follows."""


class Interrupts:
    """Holds Ctrl-C back. Python delivers signals to the main thread alone."""

    __slots__ = ("_handler", "_signal", "raised")

    def __init__(self) -> None:
        self._handler: Handler | None = None
        self._signal: tuple[int, FrameType | None] | None = None
        self.raised: BaseException | None = None  # by the caller's handler

    @property
    def stop(self) -> Callable[[], bool] | None:
        """What long work asks now and then; None: nothing can interrupt it."""
        return self.wanted if self._handler is not None else None

    def hold(self) -> None:
        """Hold Ctrl-C back from now on, where this thread would be interrupted by it."""
        if threading.get_ident() != threading.main_thread().ident:
            return
        handler = get_handler(SIGINT)
        if callable(handler):
            try:
                set_handler(SIGINT, self._note)
            except ValueError:  # an interpreter within another: none of its threads gets signals
                return
            self._handler = handler

    def release(self) -> None:
        """Let Ctrl-C through again; raise what one that was held back raises."""
        if self._handler is not None:
            set_handler(SIGINT, self._handler)
        if self._signal is not None:
            self.wanted()
        self._handler = None
        if self.raised is not None:
            raise self.raised from None

    def wanted(self) -> bool:
        """Whether the caller's handler, told of a Ctrl-C that was held back, raises."""
        if self._signal is not None and self.raised is None and self._handler is not None:
            number, frame = self._signal
            self._signal = None
            try:
                self._handler(number, frame)
            except BaseException as error:
                self.raised = error
        return self.raised is not None

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """Let Ctrl-C raise at once, where nothing is changed; what it raised is in `raised`."""
        if self._handler is None:
            yield
            return
        set_handler(SIGINT, self._raise)
        try:
            if self.wanted():
                raise Stopped
            yield
        finally:
            set_handler(SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signal = (number, frame)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self._note(number, frame)
        if self.wanted():
            raise Stopped


class Change:
    """What a clusterer was before a verb, as far as it takes to go back."""

    def __init__(self, links: Ground, interrupts: Interrupts) -> None:
        self.interrupts = interrupts
        self._links = links
        self._engine = self._open = links._engine
        self._ledger = links._ledger
        self._start = links._ledger.begin()
        self._mark: tuple[Engine, Ledger, Mark] | None = None
        self._kept = links._keep, links._undone
        self._rest = links._base, links._origin, links._direct, links._last
        self._cut_to: int | None = None
        self._ended = False
        if self._engine is not None:
            self._engine.begin()

    def mark(self) -> None:
        """Note a place to go back to: another engine has just taken over."""
        engine = self._links._engine
        assert engine is not None
        assert engine is not self._open, "an engine that took over"
        ledger = self._links._ledger
        mark = engine, ledger, ledger.begin()
        engine.begin()
        self._open, self._mark = engine, mark

    def back_to_mark(self) -> None:
        """Go back to the last mark, or to where the change began."""
        if self._mark is None:
            self.rollback()
            return
        self._links._engine = UNUSABLE
        engine, ledger, mark = self._mark
        engine.rollback()
        ledger.rollback(mark)
        self._links._ledger = ledger
        self._links._engine, self._open = engine, None
        self._cut_to = None

    def cut_kept(self, size: int) -> None:
        """Drop kept vectors from a number on, when all else is done."""
        self._cut_to = size

    def commit(self) -> None:
        """Keep all that was done."""
        if self._open is not None and self._links._engine is self._open:
            self._open.commit()
        if self._cut_to is not None and self._links._keep is not None:
            self._links._keep.cut(self._cut_to)
        self._links._ledger.commit()

    def rollback(self) -> None:
        """Go back to where the change began."""
        if self._ended:
            return
        links = self._links
        links._engine = UNUSABLE  # until all is as it was
        if self._engine is not None:
            self._engine.rollback()
        self._ledger.rollback(self._start)
        self._ledger.commit()
        links._ledger = self._ledger
        links._keep, links._undone = self._kept
        links._base, links._origin, links._direct, links._last = self._rest
        links._engine, self._open, self._ended = self._engine, None, True


def one_change(verb: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """Make a verb of a clusterer one change, unless it is part of another."""

    @wraps(verb)
    def changing(self: G, /, *args: P.args, **options: P.kwargs) -> R:
        with self._changing:
            if self._change is not None:
                return verb(self, *args, **options)
            interrupts = Interrupts()
            interrupts.hold()
            try:
                self._change = change = Change(self, interrupts)
                try:
                    answer = verb(self, *args, **options)
                    change.commit()
                except BaseException:
                    self._engine = UNUSABLE
                    change.rollback()
                    raise
                finally:
                    self._change = None
                return answer
            finally:
                interrupts.release()

    return changing
