"""All errors that linkstream raises.

```text
LinkstreamError                      root of all errors
├── ArgumentError (ValueError)       an argument is wrong; nothing has changed
│   ├── ThresholdError               thresholds are outside their ranges
│   ├── VectorError                  a vector cannot be used; names its row
│   │   ├── DimensionError           a vector has another dimension
│   │   └── KeyTakenError            another vector has the key; names it
│   ├── SpaceError                   a space does not fit the vectors or the model
│   ├── InputFileError               a file of vectors cannot be read
│   ├── UnknownIdError               an ID was never given
│   │   └── RemovedError             a vector or cluster was removed
│   ├── ContradictionError           an earlier correction forbids this one; names it
│   ├── UndoError                    there is nothing to undo
│   ├── IdempotencyError             an idempotency key was used for another call
│   └── ChangedError                 something changed since the call was prepared
├── SnapshotError                    a snapshot is damaged, malicious or of a newer version
├── StoreError                       a store cannot be used as it is
│   ├── DamagedStoreError            a store is damaged; names the location
│   ├── StoreLockedError             another writer has opened the store
│   ├── StoreMemoryError (MemoryError)  memory ran out; the files are unchanged
│   └── StoreClosedError             the store was closed, or a write failed: open it again
├── UnusableError                    a change of a clusterer failed half-way
├── NotTrackedError                  the answer needs data that was not kept
├── ConvergenceError                 an iteration did not reach its tolerance
├── EngineUnavailableError           the requested engine is not available
└── MissingExtraError (ImportError)  an optional dependency is not installed
```

Each message says what was *seen*, what was *expected*, and the *remedy*.
"""

from __future__ import annotations


class LinkstreamError(Exception):
    """Root of all linkstream errors.

    Args:
        seen: what was seen.
        expected: what was expected instead.
        remedy: a sentence that says what to do.
    """

    def __init__(self, seen: str, *, expected: str, remedy: str) -> None:
        super().__init__(f"{seen}; expected {expected}. {remedy}")
        self.seen = seen
        self.expected = expected
        self.remedy = remedy


class ArgumentError(LinkstreamError, ValueError):
    """An argument is wrong; nothing has changed."""


class ThresholdError(ArgumentError):
    """Thresholds are outside their ranges."""


class VectorError(ArgumentError):
    """A vector cannot be used; `row` is its row in the batch, or None."""

    def __init__(self, seen: str, *, expected: str, remedy: str, row: int | None = None) -> None:
        super().__init__(seen, expected=expected, remedy=remedy)
        self.row = row


class DimensionError(VectorError):
    """A vector has another dimension than the vectors before it."""


class KeyTakenError(VectorError):
    """Another vector has the key of a vector; `vector` is its number, None if in the same call."""

    def __init__(
        self,
        seen: str,
        *,
        expected: str,
        remedy: str,
        row: int | None = None,
        vector: int | None = None,
    ) -> None:
        super().__init__(seen, expected=expected, remedy=remedy, row=row)
        self.vector = vector


class SpaceError(ArgumentError):
    """A space does not fit the vectors or the model."""


class InputFileError(ArgumentError):
    """A file of vectors is missing, damaged, malicious or of another format."""


class UnknownIdError(ArgumentError):
    """An ID was never given."""


class RemovedError(UnknownIdError):
    """A vector or a cluster was removed."""


class ContradictionError(ArgumentError):
    """An earlier correction forbids this one; the message names it.

    `correction` is the number of the earlier correction, for `retract`; None if the reason is a
    name, a group or an enrolment. `chain` lists the steps of the reason in order, each once.
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
    """There is nothing to undo."""


class IdempotencyError(ArgumentError):
    """An idempotency key was used for another call."""


class ChangedError(ArgumentError):
    """Something changed between the preparation of a call and the call."""


class StoreError(LinkstreamError):
    """A store cannot be used as it is."""


class DamagedStoreError(StoreError):
    """A store is damaged; the message names the location."""


class StoreLockedError(StoreError):
    """Another process, or another object of this process, has opened the store for writing."""


class StoreMemoryError(StoreError, MemoryError):
    """Memory ran out while a store was read; its files are unchanged."""


class StoreClosedError(StoreError):
    """The store was closed, or a write failed; all acknowledged changes are safe."""


class SnapshotError(LinkstreamError):
    """A snapshot is damaged, malicious or of a newer version."""


class UnusableError(LinkstreamError):
    """The last change of a clusterer failed for lack of memory and could not be rolled back."""


class NotTrackedError(LinkstreamError):
    """The answer needs data that was not kept."""


class ConvergenceError(LinkstreamError):
    """An iteration did not reach its tolerance."""


class EngineUnavailableError(LinkstreamError):
    """The requested engine is not available."""


class MissingExtraError(LinkstreamError, ImportError):
    """An optional dependency is not installed.

    Args:
        module: the missing module.
        extra: the extra of linkstream that installs the module.
        purpose: what needs the module.
        instead: what to do without the module; None if there is nothing.
    """

    def __init__(
        self, module: str, *, extra: str, purpose: str, instead: str | None = None
    ) -> None:
        otherwise = "" if instead is None else f", or {instead}"
        super().__init__(
            f"{purpose} needs {module!r}, which is not installed",
            expected=f"the extra {extra!r}",
            remedy=f'Run: pip install "linkstream[{extra}]"{otherwise}',
        )
