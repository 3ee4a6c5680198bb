"""One change of a clusterer: kept as a whole, or rolled back if anything raises.

A function that changes a `Core` runs within a `Change`. If it raises, even MemoryError, the change
is rolled back. If the rollback fails, the clusterer refuses every later call (`UnusableError`).
Ctrl-C is held back during a change: it takes effect between two vectors, or while a proposal is
computed.
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

from linkstream.clusterer.inverses import Inverse
from linkstream.engine.contract import Engine
from linkstream.errors import ArgumentError, UnusableError

if TYPE_CHECKING:
    from linkstream.clusterer.core import Core
    from linkstream.identity.ledger import Ledger, Mark

P = ParamSpec("P")
R = TypeVar("R")

Handler = Callable[[int, FrameType | None], Any]

# The functions of `_signal` allocate no memory, which must not fail after a change, and are faster.
_signal = importlib.import_module("_signal")
get_handler, set_handler = _signal.getsignal, _signal.signal
SIGINT = int(signal.SIGINT)


class _Unusable:
    """Stand-in for the engine of a clusterer whose state is unknown."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # Python looks these up on any object
            raise AttributeError(name)
        raise UnusableError(
            "a clusterer in which a change failed and could not be taken back",
            expected="one whose state is known",
            remedy="Go back to a snapshot, or open the store again; nothing was saved from it.",
        )


UNUSABLE = cast(Engine, _Unusable())


class Stopped(BaseException):
    """Ends an interrupted change; then the error of Ctrl-C is raised."""


class Interrupts:
    """Hold Ctrl-C back. Python delivers signals to the main thread only."""

    __slots__ = ("_handler", "_signal", "raised")

    def __init__(self) -> None:
        self._handler: Handler | None = None
        self._signal: tuple[int, FrameType | None] | None = None
        self.raised: BaseException | None = None  # by the caller's handler

    @property
    def stop(self) -> Callable[[], bool] | None:
        """Function that long work calls now and then; None if nothing can interrupt it."""
        return self.wanted if self._handler is not None else None

    def hold(self) -> None:
        """Hold Ctrl-C back from now on, if this is the main thread."""
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
        """Let Ctrl-C through again; raise the error of one that was held back."""
        if self._handler is not None:
            set_handler(SIGINT, self._handler)
        if self._signal is not None:
            self.wanted()
        self._handler = None
        if self.raised is not None:
            raise self.raised from None

    def wanted(self) -> bool:
        """Call the caller's handler for a held-back Ctrl-C; return whether it raised."""
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
        """Let Ctrl-C raise at once, while nothing changes; its error is in `raised`."""
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
    """What a clusterer was before a change: all that a rollback needs."""

    def __init__(self, core: Core, interrupts: Interrupts) -> None:
        self.interrupts = interrupts
        self._core = core
        self._engine = self._open = core.engine
        self._ledger = core.ledger
        self._start = core.ledger.begin()
        self._first = None if core.engine is None else core.engine.n_events
        self._n_vectors = core.n_vectors
        self._mark: tuple[Engine, Ledger, Mark] | None = None
        self._vectors = core.vectors, core.undone
        self._rest = core.base, core.origin, core.last_decisions
        self._epochs = core.space, core.epochs, dict(core.former), core.before
        self._cut_to: int | None = None
        self._kept_from: Mark | None = None
        self._kept_unread = False
        self._taken_back: tuple[list[Inverse], int] | None = None
        self._n_inverses = len(core.inverses)
        self._ended = self._reading = False
        self.is_new = True  # no verb was called within this one
        if self._engine is not None:
            self._engine.begin()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let Ctrl-C raise at once, and refuse changes, during long work that changes nothing."""
        before, self._reading = self._reading, True
        try:
            with self.interrupts.let_through():
                yield
        finally:
            self._reading = before

    def refuse_while_reading(self) -> None:
        """Raise ArgumentError if the caller's `progress` tries to change the clusterer."""
        if self._reading:
            raise ArgumentError(
                "a change while subclusters are compared with one another",
                expected="a change before that, or after it",
                remedy="Let the report of progress change nothing; make the change after the call.",
            )

    def savepoint(self) -> Callable[[], None]:
        """Return a function that goes back to this moment.

        It costs what the change has done if that is nothing so far, else a copy of the state.
        """
        core = self._core
        assert core.engine is not None, "there is something to go back to"
        if core.engine is self._engine and core.engine.n_events == self._first:
            return self._begin_again
        state, ledger = core.engine.state(), core.ledger.copy()

        def back() -> None:
            core.ledger = ledger
            core.replace_state(state)

        return back

    def _begin_again(self) -> None:
        """Take back all that was done, and go on with the change."""
        core, engine = self._core, self._engine
        assert engine is not None, "there was one when the change began"
        core.engine = UNUSABLE
        engine.rollback()
        self._ledger.rollback(self._kept_from or self._start)
        core.ledger = self._ledger
        engine.begin()
        core.engine = self._open = engine

    def mark(self) -> None:
        """Set a point to roll back to, after another engine has taken over."""
        core = self._core
        assert core.engine is not None
        assert core.engine is not self._open, "another engine took over"
        mark = core.engine, core.ledger, core.ledger.begin()
        core.engine.begin()
        self._open, self._mark = core.engine, mark

    def back_to_mark(self) -> None:
        """Roll back to the last mark, or to the beginning of the change."""
        if self._mark is None:
            self.rollback()
            return
        self._core.engine = UNUSABLE
        engine, ledger, mark = self._mark
        engine.rollback()
        ledger.rollback(mark)
        self._core.ledger = ledger
        self._core.engine, self._open = engine, None
        self._cut_to = None

    def keep(self) -> None:
        """Keep what takes the change back; call it before anything has changed.

        Without memory for that the change is not kept.
        """
        core = self._core
        if self._engine is None or not (core.track_vectors and core.keep_vectors):
            return
        try:
            self._kept_from = core.up_to_date_ledger().begin()
        except MemoryError:
            self._reread_later(self._start)

    def keep_unread(self) -> None:
        """Do the same, but let the ledger read the change later, if only plain vectors come.

        Call `keep_now` before anything has changed if it is otherwise.
        """
        core = self._core
        self._kept_unread = core.fast_path and core.track_vectors and core.keep_vectors
        if not self._kept_unread:
            self.keep()

    def keep_now(self) -> None:
        """Let the ledger read the change at its end, after `keep_unread`."""
        if self._kept_unread:
            self._kept_unread = False
            self.keep()

    def keep_nothing(self) -> None:
        """Keep no inverse, after `keep_unread`."""
        self._kept_unread = False

    def _reread_later(self, mark: Mark) -> None:
        """Let the ledger read the events since a mark again when it is used next."""
        core = self._core
        core.ledger.rollback(mark)
        core.fast_path = core.is_ready = False

    def take_back(self, inverses: list[Inverse], reason: int) -> None:
        """Take back the newest changes when this one, which changes nothing else, is committed.

        Args:
            inverses: of the changes, oldest first.
            reason: the code of the event that tells of it; it names their first event.
        """
        self._taken_back = inverses, reason

    def cut_vectors(self, size: int) -> None:
        """Drop kept vectors from number `size` on when the change is committed."""
        self._cut_to = size

    def commit(self) -> None:
        """Keep the change."""
        core = self._core
        if self._taken_back is not None:
            self._take_back(*self._taken_back)
        elif self._open is not None and core.engine is self._open:
            self._commit(self._open)
        if self._cut_to is not None and core.vectors is not None:
            core.vectors.cut(self._cut_to)
        core.ledger.commit()

    def _commit(self, engine: Engine) -> None:
        """Commit the change of an engine, and keep its inverse if that is wanted."""
        n_events = engine.n_events
        changed = engine is self._engine and n_events != self._first
        if not (changed and engine.can_keep and self._inverted(n_events)):
            engine.commit()
            return
        engine.commit(keep=True)
        self._core.inverses.confirm(engine, n_events)

    def _inverted(self, n_events: int) -> bool:
        """Add the inverse of this change; return False if it is not kept."""
        core, first, mark = self._core, self._first, self._kept_from
        unread = self._kept_unread and first is not None and core.ledger.n_events <= first
        if first is None or not (unread or mark):
            return False
        now, inverse = core.ledger.begin(), None
        try:
            if mark is not None:
                inverse = core.up_to_date_ledger().inverse(mark)
            core.inverses.add(Inverse(first, n_events, self._n_vectors, inverse))
        except MemoryError:
            self._reread_later(now)
            return False
        return True

    def _take_back(self, inverses: list[Inverse], reason: int) -> None:
        core, engine = self._core, self._engine
        assert engine is not None, "it has kept changes"
        n_kept, n_events = engine.n_kept, engine.n_events + 1
        newest_first = inverses[::-1]
        core.engine = UNUSABLE
        engine.commit()  # of a change that has changed nothing
        try:
            engine.take_back(len(inverses), reason, inverses[0].first)
            for inverse in newest_first:
                assert inverse.ledger is not None, "the ledger has read it"
                core.ledger.take_back(inverse.ledger, n_events)
        except BaseException:
            if engine.n_kept != n_kept:
                self._engine = UNUSABLE
            raise
        core.inverses.cut(len(core.inverses) - len(inverses))
        core.inverses.confirm(engine, n_events)
        core.engine = engine

    def rollback(self) -> None:
        """Restore the clusterer as it was before the change."""
        if self._ended:
            return
        core = self._core
        core.engine = UNUSABLE  # until everything is restored
        if self._engine is not None:
            self._engine.rollback()
        core.inverses.cut(self._n_inverses)
        self._ledger.rollback(self._start)
        self._ledger.commit()
        core.ledger = self._ledger
        core.vectors, core.undone = self._vectors
        core.base, core.origin, core.last_decisions = self._rest
        core.space, core.epochs, core.former, core.before = self._epochs
        core.fast_path = core.is_ready = False
        core.engine, self._open, self._ended = self._engine, None, True


def one_change(function: Callable[Concatenate[Core, P], R]) -> Callable[Concatenate[Core, P], R]:
    """Make a function of a core one change, unless it is called within another change.

    It may change what corrections require: before vectors are added, the core is made ready again.
    What takes the change back is kept.
    """
    return one_return(_keeping(function))


def one_return(function: Callable[Concatenate[Core, P], R]) -> Callable[Concatenate[Core, P], R]:
    """Make a function of a core that undoes or redoes changes one change itself."""

    @wraps(function)
    def correcting(core: Core, /, *args: P.args, **options: P.kwargs) -> R:
        answer = function(core, *args, **options)
        core.fast_path = core.is_ready = False
        return answer

    return _one(correcting)


def one_addition(function: Callable[Concatenate[Core, P], R]) -> Callable[Concatenate[Core, P], R]:
    """Make a function of a core that adds vectors one change, unless it is within another.

    What takes the change back is kept.
    """

    @wraps(function)
    def adding(core: Core, /, *args: P.args, **options: P.kwargs) -> R:
        if core.change is not None and core.change.is_new:
            core.change.keep_unread()
        return function(core, *args, **options)

    return _one(adding)


def _keeping(function: Callable[Concatenate[Core, P], R]) -> Callable[Concatenate[Core, P], R]:
    """Make a function keep what takes its change back, unless it is a part of another change."""

    @wraps(function)
    def keeping(core: Core, /, *args: P.args, **options: P.kwargs) -> R:
        if core.change is not None and core.change.is_new:
            core.change.keep()
        return function(core, *args, **options)

    return keeping


def _one(function: Callable[Concatenate[Core, P], R]) -> Callable[Concatenate[Core, P], R]:
    """Make a function of a core one change, unless it is called within another change."""

    @wraps(function)
    def changing(core: Core, /, *args: P.args, **options: P.kwargs) -> R:
        with core.lock:
            if core.change is not None:
                core.change.refuse_while_reading()
                core.change.is_new = False
                return function(core, *args, **options)
            interrupts = Interrupts()
            interrupts.hold()
            try:
                core.change = change = Change(core, interrupts)
                try:
                    answer = function(core, *args, **options)
                    change.commit()
                except BaseException:
                    core.engine = UNUSABLE
                    change.rollback()
                    raise
                finally:
                    core.change = None
                return answer
            finally:
                interrupts.release()

    return changing
