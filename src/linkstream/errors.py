"""Every error linkstream raises on purpose.

```text
LinkstreamError                      root of all
├── ArgumentError (ValueError)       the caller's argument is wrong; nothing has changed
│   ├── ThresholdError               thresholds outside their ranges
│   ├── VectorError                  a vector that cannot be used; names its row
│   │   └── DimensionError           a vector of another dimension
│   ├── SpaceError                   a space that does not fit the vectors
│   ├── InputFileError               a file of vectors that cannot be read
│   ├── UnknownIdError               an ID that was never given
│   │   └── RemovedError             a vector or cluster that is no longer there
│   ├── ContradictionError           a correction that an earlier one forbids; names it
│   ├── UndoError                    there is nothing there to undo
│   └── IdempotencyError             a key that was used for another call
├── SnapshotError                    a file that is damaged, hostile or from a newer version
├── StoreError                       a store that cannot be used as it is
│   ├── DamagedStoreError            bytes that are not what was written; names the place
│   ├── StoreLockedError             another writer has it open
│   ├── StoreMemoryError (MemoryError)  memory ran out; the files are as they were
│   └── StoreClosedError             it was closed, or a write failed: open it again
├── UnusableError                    a clusterer in which a change failed half-way
├── NotTrackedError                  an answer that needs what the caller chose not to keep
├── ConvergenceError                 an iteration that did not reach its tolerance
├── EngineUnavailableError           the engine asked for is not there
└── MissingExtraError (ImportError)  an optional dependency is not installed
```

Each says what was *seen*, what was *expected*, and the *remedy*.
"""

from __future__ import annotations


class LinkstreamError(Exception):
    """Root of all linkstream errors: seen, expected, remedy."""

    def __init__(self, seen: str, *, expected: str, remedy: str) -> None:
        super().__init__(f"{seen}; expected {expected}. {remedy}")
        self.seen = seen
        self.expected = expected
        self.remedy = remedy


class ArgumentError(LinkstreamError, ValueError):
    """The caller's argument is wrong; nothing has changed."""


class ThresholdError(ArgumentError):
    """Thresholds outside their ranges."""


class VectorError(ArgumentError):
    """A vector that cannot be used; `row` is its place in the batch, or None."""

    def __init__(self, seen: str, *, expected: str, remedy: str, row: int | None = None) -> None:
        super().__init__(seen, expected=expected, remedy=remedy)
        self.row = row


class DimensionError(VectorError):
    """A vector of another dimension than the ones before it."""


class SpaceError(ArgumentError):
    """A space that does not fit the vectors or the model."""


class InputFileError(ArgumentError):
    """A file of vectors that is missing, damaged, hostile or of another kind."""


class UnknownIdError(ArgumentError):
    """An ID that was never given."""


class RemovedError(UnknownIdError):
    """A vector or a cluster that was there and was removed."""


class ContradictionError(ArgumentError):
    """A correction that an earlier one forbids; the message names that one.

    `correction` is its number, which `retract` takes, or None where it is no correction: a name, a
    group, an enrolment. `chain` has every step of the reason, in order, each once.
    """

    def __init__(
        self,
        seen: str,
        *,
        expected: str,
        remedy: str,
        chain: tuple[str, ...],
        correction: int | None = None,
    ) -> None:
        super().__init__(seen, expected=expected, remedy=remedy)
        self.chain = chain
        self.correction = correction


class UndoError(ArgumentError):
    """There is nothing there to undo."""


class IdempotencyError(ArgumentError):
    """An idempotency key that was used for another call."""


class StoreError(LinkstreamError):
    """A store that cannot be used as it is."""


class DamagedStoreError(StoreError):
    """Bytes that are not what was written; the message names the place."""


class StoreLockedError(StoreError):
    """Another process, or another object of this one, writes to the store."""


class StoreMemoryError(StoreError, MemoryError):
    """Memory ran out while a store was read; that says nothing about its files."""


class StoreClosedError(StoreError):
    """The store was closed, or a write failed; what was acknowledged is safe."""


class SnapshotError(LinkstreamError):
    """A snapshot that is damaged, hostile or from a newer version."""


class UnusableError(LinkstreamError):
    """A clusterer whose last change failed, for want of memory, and could not be taken back."""


class NotTrackedError(LinkstreamError):
    """An answer that needs what the caller chose not to keep."""


class ConvergenceError(LinkstreamError):
    """An iteration that did not reach its tolerance."""


class EngineUnavailableError(LinkstreamError):
    """The engine asked for is not there."""


class MissingExtraError(LinkstreamError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, module: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {module!r}, which is not installed",
            expected=f"the extra {extra!r}",
            remedy=f'Run: pip install "linkstream[{extra}]"',
        )
